#include "profile/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace regie {

Summary summarise(std::vector<double> samples) {
  Summary s;
  s.count = samples.size();
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  auto percentile = [&](double share) {
    const double rank = std::ceil(share * n);
    return samples[static_cast<size_t>(std::clamp(rank, 1.0, n)) - 1];
  };
  const size_t middle = samples.size() / 2;
  s.min = samples.front();
  s.max = samples.back();
  s.median = samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  s.p90 = percentile(0.90);
  s.p95 = percentile(0.95);
  s.p99 = percentile(0.99);
  double sum = 0, squares = 0;
  for (double x : samples) sum += x;
  s.mean = sum / n;
  for (double x : samples) squares += (x - s.mean) * (x - s.mean);
  if (samples.size() > 1 && s.mean > 0) s.variation = std::sqrt(squares / (n - 1)) / s.mean;
  return s;
}

std::string time_text(double ms) {
  char text[64];
  if (ms < 0.1)
    std::snprintf(text, sizeof text, "%.3f us", ms * 1000);
  else
    std::snprintf(text, sizeof text, "%.4f ms", ms);
  return text;
}

}  // namespace regie
