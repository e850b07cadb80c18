// Sizes that only a run knows, and that do not go together: an error that names the node, whatever
// optimisation made of the graph, and never a read or a write beside a tensor.
#include <gmock/gmock.h>

#include "support/api_model.h"
#include "support/process.h"

namespace regie::test {
namespace {

using ::testing::HasSubstr;

struct Unequal {
  const char *name, *graph, *node;
  std::vector<int64_t> fits, does_not;  // of x
};
void PrintTo(const Unequal& u, std::ostream* out) { *out << u.name; }

class UnequalSizes : public ::testing::TestWithParam<Unequal> {};

TEST_P(UnequalSizes, AreRefusedByTheRun) {
  const Unequal& u = GetParam();
  Scratch scratch;
  const std::string file = scratch.write("g.rg", u.graph);
  for (const char* optimise : {"0", "1"})
    for (const char* threads : {"1", "2"}) {
      ModelPtr model = compile_file(file, {{"optimise", optimise}, {"threads", threads}});
      ASSERT_TRUE(model) << regie_last_error();
      Runner runner(model, {{"threads", threads}});
      ASSERT_TRUE(runner.ready()) << regie_last_error();
      for (int turn = 0; turn < 2; ++turn) {
        runner.run({{"x", Tensor::zeros(REGIE_F32, u.fits)}});
        EXPECT_EQ(runner.status(), REGIE_OK) << regie_last_error();
        runner.run({{"x", Tensor::zeros(REGIE_F32, u.does_not)}});
        EXPECT_NE(runner.status(), REGIE_OK);
        EXPECT_THAT(regie_last_error(), HasSubstr(u.node));
      }
    }
}

const Unequal kUnequal[] = {
    {"halved_and_doubled",
     "graph @g(%x: f32[N,2,H,W]) -> (%y) where N in 1.., H in 2.., W in 2.. {\n"
     "  %half = MaxPool(%x) {kernel_shape = [2, 2], strides = [2, 2]}\n"
     "  %s: const f32[4] = [1.0, 1.0, 2.0, 2.0]\n  %up = Resize(%half, _, %s)\n"
     "  %join = Concat(%x, %up) {axis = 1}\n  %y = Relu(%join)\n}\n",
     "(Concat)",
     {1, 2, 6, 4},
     {1, 2, 5, 5}},
    {"with_a_constant",
     "graph @g(%x: f32[N]) -> (%y) where N in 1.. {\n  %shape: const i64[2] = [-1, 4]\n"
     "  %r = Reshape(%x, %shape)\n  %c: const f32[3,1] = [1.0, 2.0, 3.0]\n  %y = Concat(%r, %c) {axis = "
     "1}\n}\n",
     "(Concat)",
     {12},
     {160000}},
    {"blocks",
     "graph @g(%x: f32[1,1,H,W]) -> (%y) where H in 1.., W in 1.. {\n  %y = SpaceToDepth(%x) {blocksize = "
     "2}\n}\n",
     "(SpaceToDepth)",
     {1, 1, 4, 6},
     {1, 1, 5, 6}},
    {"depths",
     "graph @g(%x: f32[1,C,2,3]) -> (%y) where C in 1.. {\n  %y = DepthToSpace(%x) {blocksize = 2}\n}\n",
     "(DepthToSpace)",
     {1, 8, 2, 3},
     {1, 6, 2, 3}},
};
INSTANTIATE_TEST_SUITE_P(Of, UnequalSizes, ::testing::ValuesIn(kUnequal),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace regie::test
