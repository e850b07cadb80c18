// What operators along rows give, by their definitions, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace aicore::test {

// Of `values` as rows of `width`: Softmax, LogSoftmax, LayerNormalization (epsilon 1e-5; `scale` of one row,
// `bias` too or empty), reductions and global pooling.
inline std::vector<double> along_rows(const std::string& op, const std::vector<double>& values, int64_t width,
                                      const std::vector<double>& scale = {},
                                      const std::vector<double>& bias = {}) {
  std::vector<double> out;
  const bool reduces = op[0] == 'R' || op[0] == 'G';
  for (size_t first = 0; first < values.size(); first += static_cast<size_t>(width)) {
    const double* v = values.data() + first;
    double most = -INFINITY, least = INFINITY, sum = 0, powers = 0, squares = 0;
    for (int64_t j = 0; j < width; ++j) {
      most = std::max(most, v[j]);
      least = std::min(least, v[j]);
      sum += v[j];
    }
    const double mean = sum / static_cast<double>(width);
    if (reduces) {
      out.push_back(op == "ReduceSum"                            ? sum
                    : op == "ReduceMax" || op == "GlobalMaxPool" ? most
                    : op == "ReduceMin"                          ? least
                                                                 : mean);
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      powers += std::exp(v[j] - most);
      squares += (v[j] - mean) * (v[j] - mean);
    }
    for (int64_t j = 0; j < width; ++j) {
      double y = v[j] - most;
      if (op == "Softmax") y = std::exp(y) / powers;
      if (op == "LogSoftmax") y -= std::log(powers);
      if (op == "LayerNormalization") {
        y = (v[j] - mean) / std::sqrt(squares / static_cast<double>(width) + 1e-5) *
            scale[static_cast<size_t>(j)];
        if (!bias.empty()) y += bias[static_cast<size_t>(j)];
      }
      out.push_back(y);
    }
  }
  return out;
}

}  // namespace aicore::test
