#include "model/sections.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "model/file.h"

namespace regie {

namespace {

constexpr size_t kVersionAt = 8, kCountAt = 12, kTotalAt = 16, kChecksumAt = 24;
constexpr uint32_t kMaxSections = 1024;
constexpr const char* kAgain = "copy or compile the file again";

void put(std::string* out, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) (*out)[at + i] = static_cast<char>(value >> (8 * i));
}

uint64_t get(std::span<const std::byte> from, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(from[at + i]) << (8 * i);
  return value;
}

uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Over header and table, the field itself taken as zero.
uint64_t head_checksum(std::span<const std::byte> head) {
  std::string copy(reinterpret_cast<const char*>(head.data()), head.size());
  put(&copy, kChecksumAt, 0, 8);
  return hash64(copy.data(), copy.size());
}

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 0; i < 16; ++i) text[15 - i] = "0123456789abcdef"[(value >> (4 * i)) & 15];
  return text;
}

}  // namespace

std::string section_name(uint32_t kind) {
  switch (static_cast<SectionKind>(kind)) {
    case SectionKind::kModel:
      return "'model'";
    case SectionKind::kGraph:
      return "'graph'";
    case SectionKind::kLedger:
      return "'ledger'";
    case SectionKind::kKernels:
      return "'kernels'";
    case SectionKind::kWeights:
      return "'weights'";
    case SectionKind::kPlans:
      return "'plans'";
  }
  return "of unknown kind " + std::to_string(kind);
}

Layout lay_out(std::span<const Section> sections, uint32_t format_version) {
  Layout layout;
  layout.head.assign(kHeaderBytes + sections.size() * kSectionEntryBytes, '\0');
  uint64_t at = layout.head.size();
  for (size_t i = 0; i < sections.size(); ++i) {
    const bool page = sections[i].kind == static_cast<uint32_t>(SectionKind::kWeights);
    at = round_up(at, page ? kPageBytes : 64);
    const SectionPlace place{at, sections[i].bytes.size(),
                             hash64(sections[i].bytes.data(), sections[i].bytes.size())};
    const size_t entry = kHeaderBytes + i * kSectionEntryBytes;
    put(&layout.head, entry, sections[i].kind, 4);
    put(&layout.head, entry + 4, sections[i].flags, 4);
    put(&layout.head, entry + 8, place.offset, 8);
    put(&layout.head, entry + 16, place.size, 8);
    put(&layout.head, entry + 24, place.checksum, 8);
    layout.places.push_back(place);
    at += place.size;
  }
  layout.total = at;
  std::memcpy(layout.head.data(), kModelMagic.data(), kModelMagic.size());
  put(&layout.head, kVersionAt, format_version, 4);
  put(&layout.head, kCountAt, sections.size(), 4);
  put(&layout.head, kTotalAt, layout.total, 8);
  put(&layout.head, kChecksumAt, head_checksum(std::as_bytes(std::span(layout.head))), 8);
  return layout;
}

std::string head_checksum_text(std::span<const std::byte> file) {
  return file.size() < kHeaderBytes || !looks_like_model_file(file) ? "" : hex(get(file, kChecksumAt, 8));
}

std::span<const std::byte> glance_at_section(std::span<const std::byte> file, SectionKind kind) {
  if (file.size() < kHeaderBytes || !looks_like_model_file(file)) return {};
  const uint64_t count = std::min<uint64_t>(get(file, kCountAt, 4), kMaxSections);
  for (uint64_t i = 0; i < count && kHeaderBytes + (i + 1) * kSectionEntryBytes <= file.size(); ++i) {
    const size_t entry = kHeaderBytes + i * kSectionEntryBytes;
    if (get(file, entry, 4) != static_cast<uint32_t>(kind)) continue;
    const uint64_t offset = get(file, entry + 8, 8), size = get(file, entry + 16, 8);
    // Of a section without bytes, where it is.
    if (offset > file.size() || size > file.size() - offset) return file.first(0);
    return file.subspan(offset, size);
  }
  return {};
}

bool names_section(std::span<const std::byte> file, SectionKind kind) {
  return glance_at_section(file, kind).data() != nullptr;
}

Status check_sum(uint32_t kind, uint64_t actual, uint64_t expected, const std::string& path) {
  if (actual == expected) return {};
  return corrupt("section " + section_name(kind) + " is damaged: its checksum is " + hex(actual) + ", not " +
                     hex(expected) + "; " + kAgain,
                 path);
}

Result<std::vector<Section>> read_sections(std::span<const std::byte> file, const std::string& path,
                                           UncheckedWeights* weights) {
  const std::string again = kAgain;
  if (!looks_like_model_file(file))
    return invalid_model(file.empty() ? "the file is empty; compile the model again"
                                      : "this is not a Regie model file (.rgm): it does not begin with " +
                                            std::string(kModelMagic),
                         path);
  if (file.size() < kHeaderBytes)
    return corrupt(
        "the file ends within its header, after " + std::to_string(file.size()) + " bytes; " + again, path);
  const uint64_t version = get(file, kVersionAt, 4), count = get(file, kCountAt, 4),
                 total = get(file, kTotalAt, 8);
  const size_t head_size = kHeaderBytes + std::min<uint64_t>(count, kMaxSections) * kSectionEntryBytes;
  const bool whole_head = count <= kMaxSections && head_size <= file.size();
  const bool sound_head = whole_head && head_checksum(file.first(head_size)) == get(file, kChecksumAt, 8);
  if (version > kModelFormatVersion) {
    std::string text = "the file has format version " + std::to_string(version) +
                       ", this program reads up to " + std::to_string(kModelFormatVersion) +
                       "; use a newer Regie, or compile the model with this one";
    if (!sound_head) text += " (the header's checksum differs too, so the file may just be damaged)";
    return unsupported(std::move(text), path);
  }
  if (!whole_head) return corrupt("the file ends within its section table; " + again, path);
  if (!sound_head) return corrupt("the header is damaged: its checksum differs; " + again, path);
  if (version == 0) return corrupt("format version 0 does not exist; " + again, path);
  if (total != file.size())
    return corrupt("the file has " + std::to_string(file.size()) + " bytes and should have " +
                       std::to_string(total) +
                       (file.size() < total ? ": it was cut off; " : ": something was appended; ") + again,
                   path);
  std::vector<Section> sections;
  auto gap_is_zero = [&](uint64_t from, uint64_t to) {
    return std::all_of(file.begin() + static_cast<ptrdiff_t>(from), file.begin() + static_cast<ptrdiff_t>(to),
                       [](std::byte b) { return b == std::byte{0}; });
  };
  uint64_t at = head_size;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t entry = kHeaderBytes + i * kSectionEntryBytes;
    Section s;
    s.kind = static_cast<uint32_t>(get(file, entry, 4));
    s.flags = static_cast<uint32_t>(get(file, entry + 4, 4));
    const uint64_t offset = get(file, entry + 8, 8), size = get(file, entry + 16, 8),
                   sum = get(file, entry + 24, 8);
    const std::string name = "section " + section_name(s.kind);
    if (offset < at || offset > file.size() || size > file.size() - offset)
      return corrupt(name + " lies outside of the file or over another section; " + again, path);
    if (s.kind == static_cast<uint32_t>(SectionKind::kWeights) && offset % kPageBytes)
      return corrupt(name + " is not on a page boundary; " + again, path);
    if (!gap_is_zero(at, offset)) return corrupt("the bytes before " + name + " are damaged; " + again, path);
    s.bytes = file.subspan(offset, size);
    if (weights && s.kind == static_cast<uint32_t>(SectionKind::kWeights))
      *weights = {s.bytes, sum, {}, 0};
    else
      REGIE_TRY(check_sum(s.kind, hash64(s.bytes.data(), s.bytes.size()), sum, path));
    for (const Section& other : sections)
      if (other.kind == s.kind) return corrupt(name + " stands there twice; " + again, path);
    at = offset + size;
    sections.push_back(s);
  }
  if (!gap_is_zero(at, file.size()))
    return corrupt("the bytes after the last section are damaged; " + again, path);
  return sections;
}

}  // namespace regie
