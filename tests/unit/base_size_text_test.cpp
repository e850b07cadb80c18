// Sizes as people write them; the right values are the units' definitions (IEC 80000-13).
#include "base/size_text.h"

#include <gtest/gtest.h>

namespace regie {
namespace {

TEST(SizeText, UnitsInAnyCase) {
  const struct {
    const char* text;
    uint64_t bytes;
  } cases[] = {
      {"0", 0},
      {"12", 12},
      {"12B", 12},
      {"3k", 3 * 1024},
      {"3K", 3 * 1024},
      {"3KiB", 3 * 1024},
      {"3kib", 3 * 1024},
      {"3KIB", 3 * 1024},
      {"3kB", 3000},
      {"3KB", 3000},
      {"4MB", 4'000'000},
      {"4mb", 4'000'000},
      {"64MiB", 67'108'864},
      {"64 MiB", 67'108'864},
      {"1g", 1'073'741'824},
      {"2G", 2'147'483'648},
      {"1GB", 1'000'000'000},
      {"1T", 1'099'511'627'776},
      {"1TB", 1'000'000'000'000},
      {"1.5G", 1'610'612'736},
      {"0.5KiB", 512},
      {"1.25MB", 1'250'000},
      {"0.0009KiB", 0},  // 0.9216 bytes
      {"18446744073709551615", UINT64_MAX},
      {"16777215T", 16777215ull << 40},
  };
  for (const auto& c : cases) {
    const auto bytes = parse_size(c.text);
    ASSERT_TRUE(bytes.ok()) << c.text << ": " << bytes.status().to_string();
    EXPECT_EQ(*bytes, c.bytes) << c.text;
  }
}

TEST(SizeText, WhatIsNoSizeSaysWhatOneIs) {
  for (const char* bad : {"",
                          " ",
                          "G",
                          "GiB",
                          "1.G",
                          ".5G",
                          "1.",
                          "-1",
                          "+1",
                          "1e6",
                          "1X",
                          "1Ki",
                          "1KiBs",
                          "1 ",
                          "1  G",
                          "1 G ",
                          "1,5G",
                          "0x10",
                          "18446744073709551616",
                          "99999999999999999999",
                          "16777216T",
                          "99999999999999T"}) {
    const auto bytes = parse_size(bad);
    ASSERT_FALSE(bytes.ok()) << bad << " is " << *bytes;
    EXPECT_EQ(bytes.status().code(), REGIE_INVALID_INPUT);
    for (const char* word : {"MiB", "1024", "MB", "1000"})
      EXPECT_NE(bytes.status().message().find(word), std::string::npos) << bytes.status().message();
    EXPECT_NE(bytes.status().message().find("'" + std::string(bad) + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace regie
