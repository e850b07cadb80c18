// What `bench` and `profile` say about a series of samples.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace regie {

// Percentiles are samples: the least one that at least that share of all samples does not exceed. The median
// of an even number is the mean of the two in the middle.
struct Summary {
  size_t count = 0;
  double min = 0, max = 0, mean = 0, median = 0, p90 = 0, p95 = 0, p99 = 0;
  double variation = 0;  // standard deviation / mean
};

Summary summarise(std::vector<double> samples);

// "1.2345 ms", and "12.345 us" below a tenth of a millisecond, where digits would be lost.
std::string time_text(double ms);

}  // namespace regie
