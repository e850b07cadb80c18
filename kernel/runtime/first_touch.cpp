#include "runtime/first_touch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <thread>

namespace regie {

namespace {

// A large page, where the system has them. Between pieces others may map and unmap memory.
constexpr size_t kPiece = size_t{2} << 20;
constexpr size_t kWorthThread = size_t{1} << 20;  // less is there as soon as a thread

// All pages of it. What they hold stays as it is; advice, which the system need not take.
void touch(std::span<std::byte> memory) {
  constexpr uintptr_t kPage = 4096;
  const auto at = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t begin = (at + kPage - 1) / kPage * kPage, end = (at + memory.size()) / kPage * kPage;
#if defined(__x86_64__)
  // By faults, which hold up nobody else. MADV_POPULATE_WRITE holds the lock of all mappings, of a large page
  // for a fraction of a millisecond: threads that begin or allocate stand still. Adding no bit, at once, is
  // safe beside a run that writes there.
  for (uintptr_t page = begin; page < end; page += kPage)
    __asm__ volatile("lock orb $0, %0" : "+m"(*reinterpret_cast<char*>(page)));
#elif defined(MADV_POPULATE_WRITE)
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
}

}  // namespace

FirstTouch::FirstTouch(std::vector<std::span<std::byte>> memory) {
  size_t bytes = 0;
  for (std::span<std::byte> rest : memory) {
    bytes += rest.size();
    while (!rest.empty()) {
      // Ends on a boundary of large pages, so that no two threads give the same one.
      const size_t to_boundary = kPiece - reinterpret_cast<uintptr_t>(rest.data()) % kPiece;
      pieces_.push_back(rest.first(std::min(rest.size(), to_boundary)));
      rest = rest.subspan(pieces_.back().size());
    }
  }
  if (bytes >= kWorthThread && std::thread::hardware_concurrency() > 1)
    other_.begin(Background::Urgency::kMemory, 1, [this] { return touch_next(); });
}

FirstTouch::~FirstTouch() { next_.store(pieces_.size(), std::memory_order_relaxed); }

bool FirstTouch::touch_next() {
  const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
  if (i >= pieces_.size()) return false;
  touch(pieces_[i]);
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces_.size()) done_.notify_all();
  return true;
}

void FirstTouch::finish() {
  while (touch_next()) {
  }
  for (size_t n = 0; (n = done_.load(std::memory_order_acquire)) < pieces_.size();)
    done_.wait(n, std::memory_order_acquire);
}

}  // namespace regie
