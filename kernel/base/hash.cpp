#include "base/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <new>

#include "base/hash_avx2.h"

namespace regie {

uint64_t hash64(const void* data, size_t size) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide) return hash64_avx2(data, size);
#endif
  return XXH3_64bits(data, size);
}

uint64_t hash64(std::span<const HashPiece> parts, const std::function<void(HashPiece)>& next,
                const std::function<void(HashPiece)>& done) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  for (HashPiece bytes : parts)
    while (!bytes.empty()) {
      const HashPiece piece = bytes.first(std::min(bytes.size(), kPiece));
      next(piece);
      XXH3_64bits_update(state.get(), piece.data(), piece.size());
      done(piece);
      bytes = bytes.subspan(piece.size());
    }
  return XXH3_64bits_digest(state.get());
}

struct Hasher::Impl {
  XXH3_state_t* state = XXH3_createState();
  Impl() {
    if (!state) throw std::bad_alloc();
    XXH3_128bits_reset(state);
  }
  ~Impl() { XXH3_freeState(state); }
};

Hasher::Hasher() : impl_(std::make_unique<Impl>()) {}
Hasher::~Hasher() = default;

Hasher& Hasher::bytes(const void* data, size_t size) {
  if (size != 0) XXH3_128bits_update(impl_->state, data, size);
  return *this;
}

Hasher& Hasher::text(std::string_view s) { return number(s.size()).bytes(s.data(), s.size()); }

Hasher& Hasher::number(uint64_t n) {
  unsigned char little[8];
  for (unsigned char& byte : little) {
    byte = static_cast<unsigned char>(n);
    n >>= 8;
  }
  return bytes(little, sizeof little);
}

std::string Hasher::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(impl_->state));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace regie
