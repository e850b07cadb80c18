// 16-bit floats of the plug-in interface.
#include "regie/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace regie::sdk {
namespace {

// Against the definition of IEEE binary16, computed in double precision.
TEST(Half, EveryHalfBothWays) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto b = static_cast<uint16_t>(bits);
    int exponent = (b >> 10) & 31, fraction = b & 0x3ff;
    float got = half_value(b);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(got), fraction != 0);
      EXPECT_EQ(std::isinf(got), fraction == 0);
    } else {
      double want = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
      EXPECT_EQ(static_cast<double>(got), b & 0x8000 ? -want : want);
    }
    // Conversion makes a signalling NaN quiet.
    EXPECT_EQ(half_bits(got), std::isnan(got) ? b | 0x200 : b);
  }
  // Half way between two halves: to the even one; above the greatest by half a unit: infinity.
  EXPECT_EQ(half_bits(1 + 1.0f / 2048), 0x3c00);
  EXPECT_EQ(half_bits(1 + 3.0f / 2048), 0x3c02);
  EXPECT_EQ(half_bits(65519.996f), 0x7bff);
  EXPECT_EQ(half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(half_bits(std::ldexp(1.0f, -25)), 0);
  EXPECT_EQ(half_bits(std::ldexp(1.5f, -25)), 1);
  EXPECT_EQ(half_bits(std::ldexp(1023.5f, -24)), 0x400);
  EXPECT_EQ(bfloat_bits(1 + 1.0f / 256), 0x3f80);
  EXPECT_EQ(bfloat_bits(1 + 3.0f / 256), 0x3f82);
}

// The nearest of all halves, ties to the even one, by the distances in double precision.
TEST(Half, AnyFloatToTheNearest) {
  const auto magnitude = [](uint32_t h) {
    return h == 0x7c00 ? 65536.0 : static_cast<double>(half_value(static_cast<uint16_t>(h)));
  };
  std::mt19937 random(11);
  for (int i = 0; i < 200000; ++i) {
    // Every second one where halves are.
    const auto drawn = static_cast<uint32_t>(random());
    const uint32_t bits = i % 2 ? drawn : (drawn & 0x9fffffffu) + 0x30000000u;
    const float f = std::bit_cast<float>(bits);
    if (std::isnan(f)) continue;
    const double a = std::fabs(static_cast<double>(f));
    uint32_t low = 0, high = 0x7c00;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (magnitude(middle) <= a ? low : high) = middle;
    }
    const double down = a - magnitude(low), up = magnitude(high) - a;
    const uint32_t want = a >= 65536 || up < down || (up == down && low % 2) ? high : low;
    ASSERT_EQ(half_bits(f), (bits >> 16 & 0x8000u) | want) << f;
    // A bfloat is the upper half of a float: the nearest of the two around it, and the carry is right.
    const double lower = std::bit_cast<float>(bits & 0x7fff0000u),
                 step = std::bit_cast<float>((bits & 0x7f800000u)) / 128;
    const double rest = a - lower;
    const uint32_t kept = bits >> 16 & 0x7fffu;
    if (std::isinf(f) || (bits & 0x7f800000u) == 0) continue;
    ASSERT_EQ(bfloat_bits(f) & 0x7fffu, kept + (rest > step / 2 || (rest == step / 2 && kept % 2))) << f;
  }
}

TEST(Half, NansStayNans) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
    const float f = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(half_value(half_bits(f)))) << bits;
    EXPECT_TRUE(std::isnan(bfloat_value(bfloat_bits(f)))) << bits;
    EXPECT_EQ(uint32_t{half_bits(f)} >> 15, bits >> 31);
  }
}

static_assert(half_bits(1.0f) == 0x3c00 && half_value(0xc000) == -2.0f && bfloat_bits(-1.5f) == 0xbfc0);

}  // namespace
}  // namespace regie::sdk
