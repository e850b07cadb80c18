// Tensors of bytes for tests: all values of the type, scales around a size, single numbers.
#pragma once

#include "node.h"

namespace aicore::test {

inline int64_t low_of(regie_elem e) { return e == REGIE_U8 ? 0 : -128; }

inline Array random_bytes(Random& random, std::vector<int64_t> dims, regie_elem elem) {
  Array a{std::move(dims), {}};
  a.values.resize(static_cast<size_t>(a.count()));
  for (double& v : a.values) v = static_cast<double>(low_of(elem) + static_cast<int64_t>(random() % 256));
  return a;
}
inline Array random_scales(Random& random, int64_t count, double around) {
  Array a{count == 1 && pick(random, 0, 1) ? std::vector<int64_t>{} : std::vector<int64_t>{count}, {}};
  for (int64_t i = 0; i < count; ++i)
    a.values.push_back(static_cast<float>(around * (0.25 + static_cast<double>(random() % 1000) / 500)));
  return a;
}
inline Array one(double value) { return {{}, {value}}; }

}  // namespace aicore::test
