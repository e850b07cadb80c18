// Weights of bytes as programs read them, and the tables behind them.
#include <algorithm>

#include "quantised.h"

namespace aicore {

namespace {

// Calls body(column, group, k within the group's blocks, value minus zero point) for all weights.
template <class Body>
void each_weight(const CubeProblem& p, const regie_tensor& w, const ByteColumns& columns, Body&& body) {
  auto zero = [&](int64_t n) {
    return columns.weight_zeros[columns.weight_zeros.size() == 1 ? 0 : static_cast<size_t>(n)];
  };
  if (!p.convolution) {
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t n = 0; n < p.n; ++n)
        body(n, 0, k, byte_at(w, p.transposed_b ? n * p.k + k : k * p.n + n) - zero(n));
    return;
  }
  const int64_t count = p.channels / p.model_groups * p.kernel_h * p.kernel_w;  // of a channel
  for (int64_t n = 0; n < p.out_channels; ++n)
    each_of_channel(p, n, [&](int64_t k, int64_t i) {
      body(n, n / p.out_group, k, byte_at(w, n * count + i) - zero(n));
    });
}

template <class T>
void append(std::string& to, const std::vector<T>& table) {
  to.append(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(T));
}

}  // namespace

int64_t parts_of(const CubeProblem& p, const regie_tensor& w, const ByteColumns& columns) {
  if (w.elem == REGIE_I8 &&
      std::all_of(columns.weight_zeros.begin(), columns.weight_zeros.end(), [](int32_t z) { return z == 0; }))
    return 1;
  int32_t least = 0, most = 0;
  each_weight(p, w, columns, [&](int64_t, int64_t, int64_t, int32_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  });
  return std::max<int64_t>({1, up(most, 127), up(-least, 128)});
}

std::string pack_bytes(const CubeProblem& p, const CubePlan& t, const regie_tensor& w,
                       const ByteColumns& columns) {
  const int64_t kb = p.k_blocks(), parts = p.right_parts();
  std::string out(static_cast<size_t>(p.groups * kb * t.n_tiles * t.columns * parts * kFractal), '\0');
  std::vector<int32_t> sums(static_cast<size_t>(p.result_columns()), 0);
  each_weight(p, w, columns, [&](int64_t n, int64_t group, int64_t k, int32_t value) {
    sums[static_cast<size_t>(n)] += value;
    const int64_t column = p.convolution ? n - group * p.out_group : n, block = column / 16;
    for (int64_t part = 0; part < parts; ++part) {
      const int32_t piece = std::clamp(value, -128, 127);
      value -= piece;
      const int64_t at =
          (((group * kb + k / 32) * t.n_tiles + block / t.columns) * parts + part) * t.columns +
          block % t.columns;
      out[static_cast<size_t>(at * kFractal + column % 16 * 32 + k % 32)] = static_cast<char>(piece);
    }
  });
  if (p.bytes.corrected) {
    const bool late = p.bytes.zero_operand != REGIE_NONE;
    std::vector<int32_t> corrections;
    for (size_t n = 0; n < sums.size(); ++n) {
      // As the cube's sums, these wrap.
      uint32_t value =
          uint32_t{0} - static_cast<uint32_t>(sums[n]) * (late ? 1U : static_cast<uint32_t>(p.bytes.pad));
      if (!columns.biases.empty()) value += static_cast<uint32_t>(columns.biases[n]);
      corrections.push_back(static_cast<int32_t>(value));
    }
    append(out, corrections);
  }
  if (p.bytes.scaled) append(out, columns.factors);
  if (p.bytes.biased) append(out, columns.float_biases);
  return out;
}

}  // namespace aicore
