// Nodes at random shapes, of which tests of host_cpu's own kernels are made.
#pragma once

#include <random>

#include "support/backends.h"

namespace regie::test_backends {

using NodePtr = std::unique_ptr<Node>;

constexpr double kNativeTolerance = 2e-6;  // relative to the largest element, at least 1

inline TensorData integers(Ints dims, Ints values) {
  TensorData t = constant(zeros(REGIE_I64, std::move(dims)));
  std::memcpy(t.bytes.data(), values.data(), values.size() * sizeof(int64_t));
  return t;
}
inline Ints random_dims(std::mt19937_64& r, size_t rank, int64_t most = 20) {
  Ints d(rank);
  for (int64_t& n : d) n = random_in(r, 1, most);
  return d;
}
inline std::vector<TensorData> list(std::initializer_list<TensorData> t) { return t; }

struct Case {
  const char* name;
  NodePtr (*make)(std::mt19937_64&);
};

inline NodePtr concat(std::mt19937_64& r, size_t rank, int64_t axis, int64_t block) {
  Ints y = random_dims(r, rank, 9);
  std::vector<TensorData> parts;
  int64_t sum = 0;
  for (int64_t i = random_in(r, 1, 3); i >= 0; --i) {
    Ints d = y;
    d[static_cast<size_t>(axis)] = block * random_in(r, 1, 4);
    sum += d[static_cast<size_t>(axis)];
    parts.push_back(random_floats(d, r()));
  }
  y[static_cast<size_t>(axis)] = sum;
  return std::make_unique<Node>("Concat", std::vector<Attr>{attr("axis", axis)}, std::move(parts),
                                list({zeros(REGIE_F32, y)}));
}
inline NodePtr by_channel(const char* op, std::mt19937_64& r, std::vector<Attr> attrs, int64_t channels) {
  Ints d{random_in(r, 1, 3), channels, random_in(r, 2, 9), random_in(r, 2, 9)};
  auto operands = list({random_floats(d, r())});
  const size_t parameters = std::string(op).ends_with("BatchNormalization") ? 4 : 2;
  for (size_t i = 0; i < parameters; ++i) {
    operands.push_back(constant(random_floats({channels}, r())));
    if (i == 3)
      for (int64_t c = 0; c < channels; ++c) operands.back().as<float>()[c] += 2;  // a variance
  }
  return std::make_unique<Node>(op, std::move(attrs), std::move(operands), list({zeros(REGIE_F32, d)}));
}

}  // namespace regie::test_backends
