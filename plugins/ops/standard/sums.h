// Sums of products that the compiler may vectorise: eight partial sums instead of one chain of additions.
#pragma once

#include <cstdint>

namespace regie::ops {

// a[0] * b[0] + ... in A, whatever the elements are stored as.
template <class A, class T, class U>
A dot(const T* a, const U* b, int64_t count) {
  A parts[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) parts[k] += A(a[i + k]) * A(b[i + k]);
  for (int k = 0; i < count; ++i, ++k) parts[k] += A(a[i]) * A(b[i]);
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

}  // namespace regie::ops
