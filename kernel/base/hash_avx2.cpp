// XXH3 of many bytes, where the processor has AVX2: Debian's libxxhash has loops for SSE2 alone. Nothing but
// C is included: what is compiled here for AVX2 must not be what other files find by the same name.
#if defined(__x86_64__)
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_avx2.h"

namespace regie {

// One processor's loads get two thirds of what the memory gives it unless somebody asks ahead: the block
// after the one that is hashed is brought to its second cache meanwhile.
uint64_t hash64_avx2(const void* data, size_t size) {
  constexpr size_t kBlock = 4096, kLine = 64;
  if (size <= 2 * kBlock) return XXH3_64bits(data, size);
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  const char* at = static_cast<const char*>(data);
  while (size != 0) {
    const size_t now = size < kBlock ? size : kBlock, next = size - now < kBlock ? size - now : kBlock;
    for (size_t i = 0; i < next; i += kLine) _mm_prefetch(at + now + i, _MM_HINT_T1);
    XXH3_64bits_update(&state, at, now);
    at += now;
    size -= now;
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace regie
#endif
