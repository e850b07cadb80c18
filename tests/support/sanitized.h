// A sanitizer makes a test slower by an order of magnitude.
#pragma once

#include <cstdint>

namespace regie::test {

// How many of `all` random cases to try: a fifth of them under a sanitizer, along the same paths.
constexpr int64_t cases(int64_t all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (all + 4) / 5;
#else
  return all;
#endif
}

}  // namespace regie::test
