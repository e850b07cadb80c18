// Bump allocator for arrays that live as long as their owner. Nothing is freed singly; no destructors are
// run.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace regie {

class Arena {
 public:
  // Uninitialised storage for n objects; NULL for n == 0.
  template <class T>
  T* allocate(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (n == 0) return nullptr;
    return static_cast<T*>(raw(n * sizeof(T), alignof(T)));
  }
  template <class T>
  T* copy(std::span<const T> from) {
    T* to = allocate<T>(from.size());
    if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
    return to;
  }
  std::string_view copy(std::string_view text) {
    return {copy(std::span<const char>(text.data(), text.size())), text.size()};
  }

 private:
  void* raw(size_t bytes, size_t alignment) {
    size_t at = (used_ + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || at + bytes > size_) {
      size_ = bytes > kBlock ? bytes : kBlock;
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size_));
      at = 0;
    }
    used_ = at + bytes;
    return blocks_.back().get() + at;
  }
  static constexpr size_t kBlock = 64 << 10;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  size_t used_ = 0, size_ = 0;
};

}  // namespace regie
