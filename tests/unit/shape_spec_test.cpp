// What --shapes says, as text; and symbols that are numbers from the beginning.
#include "model/shape_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/dim.h"
#include "text/text.h"

namespace regie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShapeSpec, IsReadAndPrinted) {
  const auto spec = read_shape_spec("buckets:input.1.0=1|4|16,x.2=320|640", "force", "resize");
  ASSERT_TRUE(spec.ok()) << spec.status().to_string();
  ASSERT_EQ(spec->axes.size(), 2u);
  EXPECT_EQ(spec->axes[0].input, "input.1");  // names may have dots
  EXPECT_EQ(spec->axes[0].axis, 0u);
  EXPECT_THAT(spec->axes[0].sizes, ElementsAre(1, 4, 16));
  EXPECT_EQ(spec->axes[1].axis, 2u);
  EXPECT_EQ(spec->padding, ShapeSpec::kForce);
  EXPECT_EQ(spec->overflow, ShapeSpec::kResize);
  EXPECT_EQ(to_text(*spec), "buckets:input.1.0=1|4|16,x.2=320|640");
  const auto max = read_shape_spec("max:x.0=16", "", "");
  ASSERT_TRUE(max.ok());
  EXPECT_EQ(to_text(*max), "buckets:x.0=16");
  const auto none = read_shape_spec("", "", "");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(to_text(*none), "dynamic");
}

TEST(ShapeSpec, SaysWhatIsWrong) {
  for (const auto& [text, words] : {std::pair{"bukets:x.0=1", "did you mean 'buckets'"},
                                    {"buckets", "write dynamic, buckets:"},
                                    {"buckets:x.a=1", "an axis must be a number"},
                                    {"buckets:x.0=1|a", "a size must be a number"},
                                    {"buckets:.0=1", "no input.axis"},
                                    {"buckets:x.99=1", "no axis 99"},
                                    {"buckets:x.0=99999999999999999999", "a size must be a number"}}) {
    const auto spec = read_shape_spec(text, "", "");
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.status().to_string(), HasSubstr(words)) << text;
  }
}

TEST(FixedSymbols, AreNumbersWhereverTheyComeFrom) {
  DimTable dims;
  dims.fix_symbol("N", 4);
  EXPECT_EQ(dims.symbol("N"), 4);
  EXPECT_EQ(dims.symbol("N", 1, 8), 4);
  EXPECT_EQ(dims.symbol("N", 5, 8), REGIE_DIM_UNKNOWN);  // outside of its range
  EXPECT_EQ(dims.find_symbol("N"), 4);
  EXPECT_EQ(dims.symbol_count(), 0u);
  const auto parsed = dims.parse("2*N+M");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(dims.print(*parsed), "M+8");
}

TEST(FixedSymbols, InTextToo) {
  const std::string text =
      "graph @g(%x: f32[N,M]) -> (%y) where N in 1..8, M in 1..8 {\n  %y: f32[N,M] = Relu(%x)\n}\n";
  ParseOptions options;
  options.sizes = {{"N", 3}};
  const auto g = parse(text, "g.rg", options);
  ASSERT_TRUE(g.ok()) << g.status().to_string();
  EXPECT_THAT(print(**g), HasSubstr("f32[3,M]"));
  options.sizes = {{"N", 9}};
  EXPECT_THAT(parse(text, "g.rg", options).status().to_string(), HasSubstr("the range of N is empty"));
}

}  // namespace
}  // namespace regie
