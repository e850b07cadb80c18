#include "code_pool.h"

#include <mutex>

#if defined(__linux__) && defined(__x86_64__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <oneapi/dnnl/dnnl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace host_cpu {

namespace {

using Map = void* (*)(void*, size_t, int, int, int, off_t);
using Protect = int (*)(void*, size_t, int);
using Unmap = int (*)(void*, size_t);

// What oneDNN called before.
std::atomic<Map> next_map{nullptr};
std::atomic<Protect> next_protect{nullptr};
std::atomic<Unmap> next_unmap{nullptr};

constexpr size_t kPiece = size_t{256} << 10;  // of oneDNN's assembler, to begin with; then twice as much
constexpr size_t kRegionPieces = 64, kRegion = kRegionPieces * kPiece, kMostRegions = 64;
constexpr int kCodeProtection = PROT_READ | PROT_WRITE | PROT_EXEC;  // as oneDNN's assembler sets it

struct Region {
  std::atomic<char*> begin{nullptr};
  uint64_t taken = 0;  // a bit a piece
};

// Never destroyed: code lies in it until the process ends.
struct Pool {
  std::mutex mutex;
  Region regions[kMostRegions];
  std::atomic<size_t> count{0};
  bool refused = false;  // the system gives no such memory
};
Pool& pool() {
  static Pool* made = new Pool;
  return *made;
}

uint64_t bits(size_t pieces) { return pieces >= 64 ? ~uint64_t{0} : (uint64_t{1} << pieces) - 1; }

char* take(Region& region, size_t pieces) {
  for (size_t at = 0; at + pieces <= kRegionPieces; ++at)
    if (const uint64_t wanted = bits(pieces) << at; (region.taken & wanted) == 0) {
      region.taken |= wanted;
      return region.begin.load(std::memory_order_relaxed) + at * kPiece;
    }
  return nullptr;
}

// NULL: there is none.
void* take(size_t pieces) {
  Pool& p = pool();
  std::lock_guard lock(p.mutex);
  const size_t count = p.count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i)
    if (char* at = take(p.regions[i], pieces)) return at;
  if (p.refused || count == kMostRegions) return nullptr;
  void* at =
      next_map.load()(nullptr, kRegion, kCodeProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    p.refused = true;
    return nullptr;
  }
  ::madvise(at, kRegion, MADV_NOHUGEPAGE);  // most of a piece is never touched
  p.regions[count].begin.store(static_cast<char*>(at), std::memory_order_relaxed);
  p.count.store(count + 1, std::memory_order_release);
  return take(p.regions[count], pieces);
}

// The region that these bytes lie in; NULL: none, they are somebody else's.
Region* region_of(const void* address) {
  Pool& p = pool();
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < p.count.load(std::memory_order_acquire); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(p.regions[i].begin.load(std::memory_order_relaxed));
    if (at >= begin && at < begin + kRegion) return &p.regions[i];
  }
  return nullptr;
}

void* pooled_map(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  if (!address && size && size % kPiece == 0 && size <= kRegion && protection == (PROT_READ | PROT_WRITE) &&
      flags == (MAP_PRIVATE | MAP_ANONYMOUS))
    if (void* at = take(size / kPiece)) return at;
  return next_map.load()(address, size, protection, flags, file, offset);
}

int pooled_protect(void* address, size_t size, int protection) {
  return region_of(address) ? 0 : next_protect.load()(address, size, protection);
}

int pooled_unmap(void* address, size_t size) {
  Region* region = region_of(address);
  if (!region) return next_unmap.load()(address, size);
  ::madvise(address, size, MADV_DONTNEED);  // whoever gets it next finds zeros
  std::lock_guard lock(pool().mutex);
  const size_t at =
      static_cast<size_t>(static_cast<char*>(address) - region->begin.load(std::memory_order_relaxed));
  region->taken &= ~(bits((size + kPiece - 1) / kPiece) << (at / kPiece));
  return 0;
}

// What the dynamic linker needs of a library to bind its imported functions.
struct Imports {
  const ElfW(Rela) * relocations = nullptr;
  size_t count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
};

Imports imports_of(const link_map& library) {
  Imports found;
  bool with_addends = false;
  for (const ElfW(Dyn)* d = library.l_ld; d->d_tag != DT_NULL; ++d) {
    const auto address = reinterpret_cast<const char*>(d->d_un.d_ptr);  // glibc has relocated these
    if (d->d_tag == DT_JMPREL) found.relocations = reinterpret_cast<const ElfW(Rela)*>(address);
    if (d->d_tag == DT_PLTRELSZ) found.count = d->d_un.d_val / sizeof(ElfW(Rela));
    if (d->d_tag == DT_PLTREL) with_addends = d->d_un.d_val == DT_RELA;
    if (d->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_STRTAB) found.names = address;
  }
  if (!with_addends || !found.relocations || !found.symbols || !found.names) found.count = 0;
  return found;
}

// The place that holds the address of this imported function; NULL: there is not exactly one.
void** slot_of(const link_map& library, const Imports& imports, std::string_view function) {
  void** slot = nullptr;
  for (size_t i = 0; i < imports.count; ++i) {
    const ElfW(Rela)& r = imports.relocations[i];
    if (ELF64_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT) continue;
    if (imports.names + imports.symbols[ELF64_R_SYM(r.r_info)].st_name != function) continue;
    if (slot) return nullptr;
    slot = reinterpret_cast<void**>(library.l_addr + r.r_offset);
  }
  return slot;
}

// The part of a library that the linker makes read-only once it is bound.
struct Bound {
  uintptr_t library, begin = 0, end = 0;
};

Bound bound_part(const link_map& library) {
  Bound found{library.l_addr};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        auto& bound = *static_cast<Bound*>(to);
        if (info->dlpi_addr != bound.library) return 0;
        for (const ElfW(Phdr)* p = info->dlpi_phdr; p != info->dlpi_phdr + info->dlpi_phnum; ++p)
          if (p->p_type == PT_GNU_RELRO) {
            bound.begin = info->dlpi_addr + p->p_vaddr;
            bound.end = bound.begin + p->p_memsz;
          }
        return 1;
      },
      &found);
  return found;
}

struct Lead {
  void** slot;
  void* function;
};

// In this order, with two changes of protection for all of them: each stops every thread of the process.
void set(const Bound& bound, std::initializer_list<Lead> leads) {
  const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (const Lead& lead : leads) {
    const auto at = reinterpret_cast<uintptr_t>(lead.slot);
    begin = std::min(begin, at / size * size);
    end = std::max(end, at / size * size + size);
  }
  void* pages = reinterpret_cast<void*>(begin);
  // All within the part that is bound, or none: what lies between has another protection otherwise.
  const bool within = begin >= bound.begin / size * size && end <= bound.end / size * size;
  if (!within && end - begin != size) return;
  if (::mprotect(pages, end - begin, PROT_READ | PROT_WRITE) != 0) return;
  for (const Lead& lead : leads) __atomic_store_n(lead.slot, lead.function, __ATOMIC_RELEASE);
  if (within) ::mprotect(pages, end - begin, PROT_READ);
}

// Only in a shared library of oneDNN's own: in a binary that it is linked into, the table is everybody's.
const link_map* dnnl_library() {
  Dl_info info;
  link_map* map = nullptr;
  if (!::dladdr1(reinterpret_cast<void*>(&dnnl_engine_create), &info, reinterpret_cast<void**>(&map),
                 RTLD_DL_LINKMAP) ||
      !map || !map->l_name)
    return nullptr;
  std::string_view file(map->l_name);
  file.remove_prefix(file.rfind('/') + 1);
  return file.starts_with("libdnnl.so") ? map : nullptr;
}

// In lazily bound libraries a slot leads to the linker until the first call: not touched.
bool is_bound(const link_map& library) {
  for (const ElfW(Dyn)* d = library.l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_BIND_NOW) return true;
    if (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_BIND_NOW)) return true;
    if (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_NOW)) return true;
  }
  return false;
}

void lead_here() {
  const char* wanted = std::getenv("REGIE_CODE_POOL");
  if (wanted && std::string_view(wanted) == "off") return;
  const link_map* library = dnnl_library();
  if (!library || !is_bound(*library)) return;
  const Imports imports = imports_of(*library);
  void** map = slot_of(*library, imports, "mmap");
  void** protect = slot_of(*library, imports, "mprotect");
  void** unmap = slot_of(*library, imports, "munmap");
  if (!map || !protect || !unmap) return;
  next_map = reinterpret_cast<Map>(*map);
  next_protect = reinterpret_cast<Protect>(*protect);
  next_unmap = reinterpret_cast<Unmap>(*unmap);
  const Bound bound = bound_part(*library);
  // Mapping last: until then nothing lies in the pool, and the others pass everything on.
  set(bound, {{unmap, reinterpret_cast<void*>(&pooled_unmap)},
              {protect, reinterpret_cast<void*>(&pooled_protect)},
              {map, reinterpret_cast<void*>(&pooled_map)}});
}

}  // namespace

void pool_generated_code() {
  static std::once_flag once;
  std::call_once(once, lead_here);
}

}  // namespace host_cpu

#else

namespace host_cpu {
void pool_generated_code() {}
}  // namespace host_cpu

#endif
