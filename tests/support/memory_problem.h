// Memory problems for tests: made, read, planned through a planner's C table, and judged by comparing all
// pairs of buffers, which shares nothing with any planner.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/provider.h"

namespace regie::test {

using Buffers = std::vector<regie_memory_buffer>;
using Conflicts = std::vector<regie_memory_conflict>;
using Options = std::vector<std::pair<std::string, std::string>>;

inline regie_memory_buffer buffer(uint64_t lower, uint64_t upper, uint64_t size, uint64_t alignment = 64,
                                  uint64_t offset = REGIE_OFFSET_FREE, uint32_t group = 0) {
  return {lower, upper, size, offset, alignment, group, 0};
}

inline Buffers random_buffers(uint64_t seed, size_t count, uint64_t steps, uint64_t life, uint64_t size,
                              bool mixed) {
  std::mt19937_64 random(seed);
  Buffers b;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t lower = random() % steps;
    const uint64_t upper = lower + 1 + random() % life;
    const uint64_t bytes = random() % size;
    b.push_back(buffer(lower, upper, bytes, mixed ? uint64_t{1} << random() % 9 : 64));
  }
  return b;
}

// id,lower,upper,size
inline Buffers read_problem(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line.substr(0, 19), "id,lower,upper,size") << path;
  Buffers b;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::string id, lower, upper, size;
    std::getline(cells, id, ',');
    std::getline(cells, lower, ',');
    std::getline(cells, upper, ',');
    std::getline(cells, size, ',');
    b.push_back(buffer(std::stoull(lower), std::stoull(upper), std::stoull(size), 1));
  }
  return b;
}

// What no two buffers may do, and what each must.
inline void check_offsets(const Buffers& b, const Conflicts& conflicts, const std::vector<uint64_t>& offsets,
                          uint64_t claimed_peak, const std::string& what) {
  uint64_t peak = 0;
  auto share_bytes = [&](size_t i, size_t j) {
    return b[i].size && b[j].size && offsets[i] < offsets[j] + b[j].size &&
           offsets[j] < offsets[i] + b[i].size;
  };
  for (size_t i = 0; i < b.size(); ++i) {
    ASSERT_EQ(offsets[i] % b[i].alignment, 0u) << what << ": buffer " << i;
    if (b[i].offset != REGIE_OFFSET_FREE) {
      ASSERT_EQ(offsets[i], b[i].offset) << what << ": buffer " << i;
    }
    if (b[i].size) peak = std::max(peak, offsets[i] + b[i].size);
    for (size_t j = 0; j < i; ++j) {
      const bool together = b[i].lower < b[j].upper && b[j].lower < b[i].upper;
      if (b[i].group && b[i].group == b[j].group) {
        ASSERT_EQ(offsets[i], offsets[j]) << what << ": buffers " << i << " and " << j << " of one group";
      } else if (together) {
        ASSERT_FALSE(share_bytes(i, j)) << what << ": buffers " << i << " and " << j;
      }
    }
  }
  for (const auto& c : conflicts)
    ASSERT_FALSE(share_bytes(c.first, c.second)) << what << ": conflict " << c.first << " " << c.second;
  EXPECT_EQ(claimed_peak, peak) << what;
}

class Planner {
 public:
  explicit Planner(const std::string& name) : name_(name), planner_(&PluginHost::memory, name) {}

  Status plan(const Buffers& buffers, uint64_t capacity = UINT64_MAX, uint64_t budget = 0,
              const Options& options = {}, const Conflicts& conflicts = {}) {
    regie_memory_problem p{};
    p.struct_size = sizeof(p);
    p.buffer_count = buffers.size();
    p.buffers = buffers.data();
    p.capacity = capacity;
    p.node_budget = budget;
    p.conflict_count = conflicts.size();
    p.conflicts = conflicts.data();
    std::vector<regie_setting> settings;
    for (const auto& [k, v] : options) settings.push_back({{k.data(), k.size()}, {v.data(), v.size()}});
    const regie_config config{static_cast<uint32_t>(settings.size()), 0, settings.data()};
    offsets.assign(buffers.size(), 0);
    answer = {};
    return call_plugin(name_, [&] {
      return planner_.table->plan(planner_.index, host_table(), &config, &p, offsets.data(), &answer);
    });
  }

  std::vector<uint64_t> offsets;
  regie_memory_answer answer{};

 private:
  std::string name_;
  Provided<regie_memory_table> planner_;
};

}  // namespace regie::test
