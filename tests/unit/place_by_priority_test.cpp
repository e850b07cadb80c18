// Placing by priority, through the C table, with engines whose answers the test makes up.
#include <gtest/gtest.h>

#include "support/placement.h"

namespace regie {
namespace {

constexpr test::PlacementAnswer kNo = test::kCannot;

class PlaceByPriority : public ::testing::Test, protected test::PlacementRun {
 protected:
  PlaceByPriority() : PlacementRun("place-by-priority") {}
};

constexpr std::string_view kOne =
    R"(graph @g(%x: f32[100]) -> (%y) on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %y: f32[100] = Relu(%x) @name("act1")
}
)";

TEST_F(PlaceByPriority, TheFirstThatCan) {
  Status s = place(kOne, {{{true, false, 900, "vector unit"}, {true, false, 1, "fast"}}});
  ASSERT_TRUE(s.ok()) << s.to_string();
  EXPECT_EQ(engine[0], 0u) << "priority before cost";
  EXPECT_NE(reason[0].find("vector unit"), std::string::npos) << reason[0];
  ASSERT_TRUE(place(kOne, {{kNo, {true, false, 1, ""}}}).ok());
  EXPECT_EQ(engine[0], 1u);
  EXPECT_NE(reason[0].find("npu says: not in its list"), std::string::npos) << reason[0];
}

TEST_F(PlaceByPriority, AReferenceKernelGivesWayWhereThatIsFaster) {
  // The input lies on the host: 1000 + 400 ns to bring it to the npu.
  ASSERT_TRUE(place(kOne, {{{true, true, 600, ""}, {true, false, 1999, ""}}}).ok());
  EXPECT_EQ(engine[0], 1u) << "600 + 1400 against 1999";
  EXPECT_NE(reason[0].find("npu: reference kernel only"), std::string::npos) << reason[0];
  ASSERT_TRUE(place(kOne, {{{true, true, 600, ""}, {true, false, 2001, ""}}}).ok());
  EXPECT_EQ(engine[0], 0u) << "600 + 1400 against 2001";
  ASSERT_TRUE(place(kOne, {{{true, true, 600, ""}, {true, true, 1, ""}}}).ok());
  EXPECT_EQ(engine[0], 0u) << "a reference kernel does not give way to another one";
}

TEST_F(PlaceByPriority, TransfersCountFromWhereTheOperandWasPlaced) {
  constexpr std::string_view two =
      R"(graph @g(%x: f32[100]) -> (%y) on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[100] = Relu(%x)
  %y: f32[100] = Neg(%a)
}
)";
  ASSERT_TRUE(
      place(two, {{{true, false, 1, ""}, kNo}, {{true, true, 1000, ""}, {true, false, 10, ""}}}).ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{0, 0})) << "1000 there, against 10 + 1400 back on the host";
}

TEST_F(PlaceByPriority, SymbolsCountAsTheirLeastValue) {
  constexpr std::string_view text =
      R"(graph @g(%x: f32[N,25]) -> (%y) where N in 4..100 on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %y: f32[N,25] = Relu(%x)
}
)";
  ASSERT_TRUE(place(text, {{{true, true, 600, ""}, {true, false, 1999, ""}}}).ok());
  EXPECT_EQ(engine[0], 1u);
  ASSERT_TRUE(place(text, {{{true, true, 600, ""}, {true, false, 2001, ""}}}).ok());
  EXPECT_EQ(engine[0], 0u);
}

TEST_F(PlaceByPriority, WhatIsAskedForIsObeyedOrRefused) {
  ASSERT_TRUE(place(kOne, {{{true, false, 1, ""}, {true, true, 1, ""}}}, {1}).ok());
  EXPECT_EQ(engine[0], 1u);
  Status s = place(kOne, {{kNo, {true, false, 1, ""}}}, {0});
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  EXPECT_NE(s.to_string().find("node 'act1' (Relu)"), std::string::npos) << s.to_string();
  EXPECT_NE(s.to_string().find("engine 'npu', which says: not in its list"), std::string::npos)
      << s.to_string();
}

TEST_F(PlaceByPriority, NobodyCan) {
  Status s = place(kOne, {{kNo, {false, false, 0, "only f64"}}});
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  for (const char* part :
       {"node 'act1' (Relu)", "can compute Relu", "npu says: not in its list", "cpu says: only f64"})
    EXPECT_NE(s.to_string().find(part), std::string::npos) << part << " in " << s.to_string();
}

TEST_F(PlaceByPriority, ControlFlowIsNotAskedAbout) {
  constexpr std::string_view text =
      R"(graph @g(%c: bool[], %x: f32[2]) -> (%y) on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %y: f32[2] = If(%c, %x) region (%a: f32[2]) -> (%p) {
    %p: f32[2] = Relu(%a)
  } region (%b: f32[2]) -> (%b) {
  }
}
)";
  ASSERT_TRUE(place(text, {{kNo, kNo}, {{true, false, 1, ""}, kNo}}, {1, REGIE_NONE}).ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{1, 0}));
  EXPECT_NE(reason[0].find("control flow"), std::string::npos) << reason[0];
}

}  // namespace
}  // namespace regie
