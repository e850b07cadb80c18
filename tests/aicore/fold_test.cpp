// Rows of an input of few channels that are folded to channels (cube_fold.cpp): maps whose ends no row of
// tiles fills, strides, kernels and paddings of all kinds.
#include <gtest/gtest.h>

#include <iostream>

#include "convolution.h"

namespace aicore::test {
namespace {

TEST(Aicore, FoldedRows) {
  int64_t folded = 0, all = 0;
  for_seeds(80, 930'000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    Convolution c;
    c.n = pick(random, 1, 3);
    c.in = pick(random, 1, 8);
    c.out = pick(random, 1, 40);
    c.kh = pick(random, 2, 8);
    c.kw = pick(random, 1, 5);
    c.sh = pick(random, 1, 3);
    c.sw = pick(random, 1, 3);
    c.top = pick(random, 0, c.kh - 1);
    c.bottom = pick(random, 0, c.kh - 1);
    c.left = pick(random, 0, c.kw - 1);
    c.right = pick(random, 0, c.kw - 1);
    c.h = pick(random, 8, 40);
    c.w = 16 * pick(random, 1, pick(random, 0, 3) ? 4 : 15);
    c.oh = (c.h + c.top + c.bottom - c.kh) / c.sh + 1;
    c.ow = (c.w + c.left + c.right - c.kw) / c.sw + 1;
    if (c.products() > 4'000'000) return;
    const regie_elem elem = pick(random, 0, 1) ? REGIE_F16 : REGIE_F32;
    const Array x = random_array(random, c.x_dims()), weight = random_array(random, c.w_dims());
    Node node("Conv", elem);
    node.operand(x).operand(weight, true).result(c.y_dims());
    c.put_attrs(node);
    std::vector<double> expected;
    c.each_element([&](int64_t b, int64_t o, int64_t i) {
      double sum = 0;
      c.each_product(b, o, i,
                     [&](size_t left, size_t right) { sum += x.values[left] * weight.values[right]; });
      expected.push_back(sum);
    });
    SCOPED_TRACE("seed " + std::to_string(seed) + ' ' + c.text() + (elem == REGIE_F16 ? " f16" : ""));
    ++all;
    check(node, chip, expected, 2e-3);
    folded += node.name.find("folded") != std::string::npos;
  });
  std::cout << "rows folded in " << folded << " of " << all << std::endl;
  EXPECT_GT(20 * folded, all);
}

}  // namespace
}  // namespace aicore::test
