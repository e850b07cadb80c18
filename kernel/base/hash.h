// Content hashing (XXH3, 128 bits) for digests and checksums. Not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace regie {

uint64_t hash64(const void* data, size_t size);
// The same of parts that stand behind each other, in pieces: `next` is called with each before it is read,
// `done` after.
using HashPiece = std::span<const std::byte>;
uint64_t hash64(std::span<const HashPiece> parts, const std::function<void(HashPiece)>& next,
                const std::function<void(HashPiece)>& done);

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher& bytes(const void* data, size_t size);
  Hasher& text(std::string_view s);  // length first, so that ("a","bc") differs from ("ab","c")
  Hasher& number(uint64_t n);
  std::string hex() const;  // 32 digits

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regie
