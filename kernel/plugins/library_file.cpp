#include "plugins/library_file.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "regie/c/entry.h"

namespace regie {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Dynamic = ElfW(Dyn);
using Symbol = ElfW(Sym);

constexpr int kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr int kOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

std::optional<uint16_t> own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#else
  return std::nullopt;
#endif
}

// Reads of an untrusted file: every access is checked, and a failed one gives nothing.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool covers(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  template <class T>
  bool at(uint64_t offset, T* value) const {
    if (!covers(offset, sizeof(T))) return false;
    std::memcpy(value, bytes_.data() + offset, sizeof(T));
    return true;
  }
  // Where the byte at this address of the loaded image lies in the file.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Segment& s : loads)
      if (address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) return s.p_offset + (address - s.p_vaddr);
    return std::nullopt;
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const auto* from = reinterpret_cast<const char*>(bytes_.data() + offset);
    return {from, strnlen(from, bytes_.size() - offset)};
  }
  uint64_t size() const { return bytes_.size(); }

  std::vector<Segment> loads;

 private:
  std::span<const std::byte> bytes_;
};

Status refusal(std::string why) { return bad_plugin(std::move(why)); }

Status truncated(uint64_t needed, uint64_t size) {
  return refusal("the file is truncated: by its headers it has at least " + std::to_string(needed) +
                 " bytes, but there are " + std::to_string(size) + "; build or copy it again");
}

Status damaged() { return refusal("the file's headers contradict each other; build or copy it again"); }

Status check_header(const Reader& file, Header* header) {
  if (file.size() == 0) return refusal("the file is empty; build or copy it again");
  char magic[SELFMAG];
  if (!file.at(0, &magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
    return refusal(
        "the file is no shared library (it does not begin as an ELF file); give a library built for Linux");
  if (!file.at(0, header)) return truncated(sizeof(Header), file.size());
  const std::optional<uint16_t> machine = own_machine();
  if (header->e_ident[EI_CLASS] != kClass || header->e_ident[EI_DATA] != kOrder ||
      (machine && header->e_machine != *machine))
    return refusal("the library was built for another kind of machine; build it for this one");
  if (header->e_type != ET_DYN)
    return refusal(
        "the file is an ELF file but no shared library; link it with -shared, or build it by "
        "regie_add_plugin");
  return {};
}

// Fills `file.loads`, and gives the dynamic segment.
Status read_segments(Reader& file, const Header& header, Segment* dynamic) {
  bool found = false;
  if (header.e_phentsize != sizeof(Segment)) return damaged();
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t at = header.e_phoff + i * sizeof(Segment);
    Segment s;
    if (!file.at(at, &s)) return truncated(at + sizeof(Segment), file.size());
    if (s.p_type == PT_LOAD || s.p_type == PT_DYNAMIC) {
      if (!file.covers(s.p_offset, s.p_filesz)) return truncated(s.p_offset + s.p_filesz, file.size());
    }
    if (s.p_type == PT_LOAD) file.loads.push_back(s);
    if (s.p_type == PT_DYNAMIC) {
      *dynamic = s;
      found = true;
    }
  }
  // The section headers are the last thing in a file, and tell best whether it is whole.
  if (header.e_shoff != 0) {
    const uint64_t needed = header.e_shoff + uint64_t{header.e_shnum} * sizeof(Section);
    if (needed < header.e_shoff) return damaged();
    if (needed > file.size()) return truncated(needed, file.size());
  }
  return found ? Status() : refusal("the file has no dynamic section; build the plug-in by regie_add_plugin");
}

struct Tables {
  uint64_t symbols = 0, strings = 0, strings_size = 0;  // file offsets
  uint64_t count = 0;
  std::vector<uint64_t> needed;  // places of names among the strings
};

// The number of symbols is told by the hash tables alone: the greatest chain's end.
bool count_by_gnu_hash(const Reader& file, uint64_t at, uint64_t* count) {
  uint32_t head[4];  // buckets, first hashed symbol, bloom words, shift
  if (!file.at(at, &head)) return false;
  const uint64_t buckets = at + sizeof head + uint64_t{head[2]} * sizeof(ElfW(Addr));
  const uint64_t chains = buckets + uint64_t{head[0]} * 4;
  if (!file.covers(buckets, uint64_t{head[0]} * 4)) return false;
  uint32_t last = 0;
  for (uint64_t i = 0; i < head[0]; ++i) {
    uint32_t first;
    if (!file.at(buckets + i * 4, &first)) return false;
    last = last > first ? last : first;
  }
  if (last < head[1]) {
    *count = head[1];
    return true;
  }
  for (uint64_t symbol = last;; ++symbol) {
    uint32_t chain;
    if (!file.at(chains + (symbol - head[1]) * 4, &chain)) return false;
    if (chain & 1) {
      *count = symbol + 1;
      return true;
    }
  }
}

bool read_tables(const Reader& file, const Segment& dynamic, Tables* tables) {
  std::optional<uint64_t> symbols, strings, hash, gnu_hash;
  for (uint64_t at = dynamic.p_offset; at + sizeof(Dynamic) <= dynamic.p_offset + dynamic.p_filesz;
       at += sizeof(Dynamic)) {
    Dynamic d;
    if (!file.at(at, &d) || d.d_tag == DT_NULL) break;
    if (d.d_tag == DT_SYMTAB) symbols = file.offset_of(d.d_un.d_ptr);
    if (d.d_tag == DT_STRTAB) strings = file.offset_of(d.d_un.d_ptr);
    if (d.d_tag == DT_NEEDED) tables->needed.push_back(d.d_un.d_val);
    if (d.d_tag == DT_STRSZ) tables->strings_size = d.d_un.d_val;
    if (d.d_tag == DT_HASH) hash = file.offset_of(d.d_un.d_ptr);
    if (d.d_tag == DT_GNU_HASH) gnu_hash = file.offset_of(d.d_un.d_ptr);
  }
  if (!symbols || !strings || !file.covers(*strings, tables->strings_size)) return false;
  tables->symbols = *symbols;
  tables->strings = *strings;
  uint32_t counts[2];
  if (hash && file.at(*hash, &counts))
    tables->count = counts[1];
  else if (!gnu_hash || !count_by_gnu_hash(file, *gnu_hash, &tables->count))
    return false;
  return tables->count <= file.size() / sizeof(Symbol) &&
         file.covers(tables->symbols, tables->count * sizeof(Symbol));
}

}  // namespace

Result<LibraryFile> read_library_file(const std::string& path) {
  REGIE_ASSIGN(const MappedFile mapped, MappedFile::open(path));
  Reader file(mapped.bytes());
  Header header;
  REGIE_TRY(check_header(file, &header));
  Segment dynamic{};
  REGIE_TRY(read_segments(file, header, &dynamic));
  Tables tables;
  if (!read_tables(file, dynamic, &tables)) return damaged();

  LibraryFile facts;
  for (uint64_t name : tables.needed) {
    if (name >= tables.strings_size) return damaged();
    facts.needed.emplace_back(file.text(tables.strings + name));
  }
  for (uint64_t i = 1; i < tables.count; ++i) {
    Symbol s;
    if (!file.at(tables.symbols + i * sizeof(Symbol), &s) || s.st_name >= tables.strings_size)
      return damaged();
    const std::string_view name = file.text(tables.strings + s.st_name);
    if (s.st_shndx == SHN_UNDEF) {
      if (name == "__asan_init") facts.needs |= REGIE_BUILD_ASAN;
      if (name == "__tsan_init") facts.needs |= REGIE_BUILD_TSAN;
      continue;
    }
    if (name != "regie_plugin_entry") continue;
    facts.has_entry = (s.st_info & 15) == STT_OBJECT;
    const std::optional<uint64_t> at = file.offset_of(s.st_value);
    uint32_t numbers[5];
    // Data that is all zero has no bytes in the file: then the numbers stay zero, and the magic tells.
    if (at && file.at(*at, &numbers))
      facts.numbers = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
  }
  return facts;
}

}  // namespace regie
