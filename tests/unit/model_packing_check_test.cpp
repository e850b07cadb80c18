// The check of memory plans has to find what is wrong in them.
#include "model/packing_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace regie {
namespace {

TEST(PackingCheck, FindsFaults) {
  std::vector<PackedBuffer> b{{0, 4, 10, 1, 0}, {4, 8, 10, 1, 5}, {2, 6, 5, 1, 15}};
  EXPECT_FALSE(find_packing_fault(b));
  b[1].lower = 3;
  auto fault = find_packing_fault(b);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, PackingFault::kOverlap);
  EXPECT_EQ(std::min(fault->first, fault->second), 0u);
  EXPECT_EQ(std::max(fault->first, fault->second), 1u);
  b[1].size = 0;
  EXPECT_FALSE(find_packing_fault(b)) << "no bytes, nothing to share";
  b[2].alignment = 2;
  EXPECT_EQ(find_packing_fault(b)->kind, PackingFault::kMisaligned);
  b[2] = {2, 6, 5, 1, UINT64_MAX - 3};
  EXPECT_EQ(find_packing_fault(b)->kind, PackingFault::kEndless);
}

TEST(PackingCheck, AgreesWithAllPairs) {
  uint64_t state = 1;
  auto below = [&](uint64_t n) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % n;
  };
  size_t faulty = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<PackedBuffer> b(2 + below(8));
    for (auto& x : b) {
      x.lower = below(10);
      x.upper = x.lower + 1 + below(4);
      x.size = below(6);
      x.offset = below(24);
    }
    bool overlap = false;
    for (size_t i = 0; i < b.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        overlap |= b[i].size && b[j].size && b[i].lower < b[j].upper && b[j].lower < b[i].upper &&
                   b[i].offset < b[j].offset + b[j].size && b[j].offset < b[i].offset + b[i].size;
    ASSERT_EQ(find_packing_fault(b).has_value(), overlap) << round;
    faulty += overlap;
  }
  EXPECT_GT(faulty, 500u);
  EXPECT_LT(faulty, 2500u);
}

}  // namespace
}  // namespace regie
