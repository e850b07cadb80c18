// What the plan check must see in loops: each fault is one that a planner could make.
#include "model_plan_support.h"

#include <gmock/gmock.h>

namespace regie::plan_test {
namespace {

using testing::HasSubstr;

// `sum` is carried from x on: next = sum + early, where `early` is made outside. `go` is what the body says
// of going on; `first` and `second` are made and read inside; `all` collects `second` twice.
struct Looping : Plan {
  Arg count, go, early, sum, next, first, second, all;
  Looping() {
    program();
    program();
    count = input("count", type(REGIE_I64, {}));
    go = ModelBuilder::buffer("go", 0, type(REGIE_BOOL, {}), 1);
    early = buffer("early");
    sum = buffer("sum");
    next = buffer("next");
    first = buffer("first");
    second = buffer("second");
    all = ModelBuilder::buffer("all", 0, type(REGIE_F32, {2, 4}), 32);
    launch(d, 1, "scale:2", {x}, {early});
    launch(d, 0, "add", {sum, early}, {next}, {}, 1);
    launch(d, 0, "scale:2", {early}, {first}, {}, 1);
    launch(d, 0, "scale:2", {first}, {second}, {}, 1);
    launch(d, 0, "less:3", {second}, {go}, {}, 1);
  }
  void close() {
    loop(d, 0, {count, {}, x}, {{}, {}, sum}, {sum, all}, 1, {go, next, second});
    launch(d, 1, "add", {sum, sum}, {output("y", t)});
  }
};

TEST(ModelLoopPlan, IsSound) {
  Looping p;
  p.close();
  EXPECT_EQ(p.check(), "");
  // What is over in an iteration is.
  EXPECT_EQ(p.check_on_one_place({p.first, p.go}), "");
}

// In the order of steps nobody reads `early` after the first task of the body; the next iteration does.
TEST(ModelLoopPlan, WhatTheNextIterationReadsOfOutside) {
  Looping p;
  p.close();
  std::swap(p.m.programs[1].tasks[0], p.m.programs[1].tasks[1]);
  for (const Arg& inner : {p.second, p.go})
    EXPECT_THAT(p.check_on_one_place({p.early, inner}), HasSubstr("has overwritten with")) << inner.index;
}

TEST(ModelLoopPlan, WhatIsCarriedIsWorkedIn) {
  Looping p;
  p.close();
  // After its only reader, but before the body's end: with a body that hands it on it is lost.
  p.m.programs[0].tasks.back().operands[0] = p.x;
  p.m.programs[0].tasks[1].program_results[0][1] = p.sum;
  EXPECT_THAT(p.check_on_one_place({p.sum, p.second}), HasSubstr("has overwritten with"));
}

TEST(ModelLoopPlan, WhatWasCollectedIsOverwrittenByTheNextIteration) {
  Looping p;
  p.close();
  EXPECT_THAT(p.check_on_one_place({p.all, p.first}), HasSubstr("has overwritten with"));
}

TEST(ModelLoopPlan, WhatIsCarriedMeetsWhatIsCollected) {
  Looping p;
  p.close();
  EXPECT_THAT(p.check_on_one_place({p.all, p.sum}), HasSubstr("lays what it carries or collects over"));
}

// Two in one place cannot both be handed over.
TEST(ModelLoopPlan, TwoCarriedValuesMeet) {
  Looping p;
  const Arg other = p.buffer("other");
  p.loop(p.d, 0, {p.count, {}, p.x, p.early}, {{}, {}, p.sum, other}, {p.sum, other}, 1,
         {p.go, p.next, p.first});
  p.launch(p.d, 1, "add", {p.sum, other}, {p.output("y", p.t)});
  EXPECT_EQ(p.check(), "");
  EXPECT_THAT(p.check_on_one_place({p.sum, other}), HasSubstr("lays what it carries or collects over"));
}

TEST(ModelLoopPlan, ReadsWhatTheIterationBeforeHasMade) {
  Looping p;
  std::swap(p.m.programs[1].tasks[1], p.m.programs[1].tasks[2]);  // reads `first` before it is made
  p.close();
  EXPECT_THAT(p.check(), HasSubstr("reads bytes that no task has written"));
  Looping q;
  q.launch(q.d, 1, "scale:2", {q.x}, {q.first});  // made outside too, in the same buffer
  std::swap(q.m.programs[1].tasks[1], q.m.programs[1].tasks[2]);
  q.close();
  EXPECT_THAT(q.check(), HasSubstr("writes a second time"));
}

TEST(ModelLoopPlan, ThereMayBeNoIteration) {
  Looping p;
  p.close();
  p.m.programs[0].tasks.back().operands[1] = p.second;
  EXPECT_THAT(p.check(), HasSubstr("reads what only an iteration writes: task 2 of program 1"));
}

// On two streams, the first reader of an iteration may come before the last of the one before: the host waits
// between them, but not inside of one.
TEST(ModelLoopPlan, StreamsInsideOfABody) {
  Looping p;
  p.m.programs[1].tasks[2].stream = 1;
  p.close();
  EXPECT_THAT(p.check(), HasSubstr("does not wait for it"));
  p.m.programs[1].tasks[2].waits = {1};
  p.m.programs[1].tasks[3].waits = {2};
  EXPECT_EQ(p.check(), "");
}

TEST(ModelLoopPlan, LoopsInLoops) {
  Looping p;
  const uint32_t outer = p.program();
  const Arg held = p.buffer("held"), again = p.ModelBuilder::buffer("again", 0, p.type(REGIE_BOOL, {}), 1);
  p.launch(p.d, 0, "less:3", {held}, {again}, {}, outer);
  p.loop(p.d, 0, {p.count, {}, held}, {{}, {}, p.sum}, {p.sum, p.all}, 1, {p.go, p.next, p.second}, {},
         outer);
  p.loop(p.d, 0, {p.count, {}, p.x}, {{}, {}, held}, {held}, outer, {again, p.sum});
  p.launch(p.d, 1, "add", {held, held}, {p.output("y", p.t)});
  EXPECT_EQ(p.check(), "");
  // Only the outer loop's second iteration shows it.
  EXPECT_THAT(p.check_on_one_place({p.early, again}), HasSubstr("has overwritten with"));
}

}  // namespace
}  // namespace regie::plan_test
