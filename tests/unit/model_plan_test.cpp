// The plan check against plans whose faults are known by construction.
#include "model_plan_support.h"

#include <gmock/gmock.h>

namespace regie::plan_test {
namespace {

using ::testing::HasSubstr;

TEST(ModelPlan, ReuseInOrder) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b"), c = p.buffer("c");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {b});
  p.launch(p.d, 0, "scale:2", {b}, {c});  // where a was
  p.launch(p.d, 0, "scale:2", {c}, {p.output("y", p.t)});
  EXPECT_EQ(p.check_on_one_place({a, c}), "");
}

TEST(ModelPlan, InPlace) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {b});
  p.launch(p.d, 0, "scale:2", {b}, {p.output("y", p.t)});
  EXPECT_EQ(p.check_on_one_place({a, b}), "");
}

TEST(ModelPlan, InPlaceInOneBuffer) {
  Plan p;
  const Arg a = p.buffer("a");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)});
  EXPECT_EQ(p.check(), "");
}

TEST(ModelPlan, OverwrittenBeforeItIsRead) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {p.x}, {b});
  p.launch(p.d, 0, "add", {a, b}, {p.output("y", p.t)});
  EXPECT_THAT(
      p.check_on_one_place({a, b}),
      HasSubstr(
          "task 2 (node 't2') reads what task 1 (node 't1') has overwritten with buffer 'b'; bytes 0 to "
          "16 of memory space 'host' (buffer 'a')"));
}

TEST(ModelPlan, NeverWritten) {
  Plan p;
  p.launch(p.d, 0, "scale:2", {p.buffer("a")}, {p.output("y", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("reads bytes that no task has written"));
}

TEST(ModelPlan, PartlyWritten) {
  Plan p;
  const Arg a = p.buffer("a");
  Arg half = a;
  half.type = p.f32({2});
  p.launch(p.d, 0, "scale:2", {p.x}, {half});
  p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("reads bytes that no task has written"));
}

TEST(ModelPlan, WrittenInParts) {
  Plan p;
  const Arg a = p.buffer("a");
  Arg low = a, high = a;
  low.type = high.type = p.f32({2});
  high.offset = 8;
  p.launch(p.d, 0, "scale:2", {p.x}, {high});
  p.launch(p.d, 1, "scale:2", {p.x}, {low});
  p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)}, {1});
  EXPECT_EQ(p.check(), "");
}

TEST(ModelPlan, ReadWithoutWaiting) {
  for (const bool waits : {true, false}) {
    Plan p;
    const Arg a = p.buffer("a");
    p.launch(p.d, 0, "scale:2", {p.x}, {a});
    p.launch(p.d, 1, "scale:2", {a}, {p.output("y", p.t)},
             waits ? std::vector<uint32_t>{0} : std::vector<uint32_t>{});
    const std::string text = p.check();
    if (waits) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_THAT(
          text,
          HasSubstr("task 1 (node 't1') reads what task 0 (node 't0') writes, and does not wait for it"));
    }
  }
}

TEST(ModelPlan, WaitingThroughOthers) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 1, "scale:2", {p.x}, {b}, {0});
  p.launch(p.d, 2, "scale:2", {a}, {p.output("y", p.t)}, {1});
  EXPECT_EQ(p.check(), "");
}

TEST(ModelPlan, OverwrittenWhileAnotherStreamReads) {
  for (const bool waits : {true, false}) {
    Plan p;
    const Arg a = p.buffer("a"), b = p.buffer("b");
    p.launch(p.d, 0, "scale:2", {p.x}, {a});
    p.launch(p.d, 1, "scale:2", {a}, {p.output("y", p.t)}, {0});
    p.launch(p.d, 0, "scale:2", {p.x}, {b}, waits ? std::vector<uint32_t>{1} : std::vector<uint32_t>{});
    p.launch(p.d, 0, "scale:2", {b}, {p.output("z", p.t)});
    const std::string text = p.check_on_one_place({a, b});
    if (waits) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_THAT(
          text, HasSubstr("task 2 (node 't2') writes over what task 1 (node 't1') reads, and does not wait"));
    }
  }
}

TEST(ModelPlan, WrittenTwice) {
  Plan p;
  const Arg a = p.buffer("a");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("writes a second time what task 0 (node 't0') has written"));
}

// Values that share one buffer: b lies on a, which is read once more; or on a part of it only.
TEST(ModelPlan, AValueOverwrittenInItsOwnBuffer) {
  for (const int fault : {0, 1, 2}) {
    Plan p;
    Arg a = p.buffer("a"), b = a, c = p.buffer("c");
    a.value = 1, b.value = 2, c.value = 3;
    Arg first = a, last = fault == 2 ? a : b;
    if (fault == 2) first.type = b.type = p.f32({2}), first.offset = b.offset = 8;  // the second half of it
    p.launch(p.d, 0, "scale:2", {p.x}, {a});
    p.launch(p.d, 0, "scale:2", {first}, {b});
    p.launch(p.d, 0, "add", {fault == 1 ? a : last, last}, {c});
    p.launch(p.d, 0, "scale:2", {c}, {p.output("y", p.t)});
    if (fault == 0) {
      EXPECT_EQ(p.check(), "");
    } else {
      EXPECT_THAT(
          p.check(),
          HasSubstr("task 2 (node 't2') reads what task 1 (node 't1') has overwritten with another value"));
    }
  }
}

// Values side by side in one buffer do not disturb each other, nor does a reader that does not say which
// value it means.
TEST(ModelPlan, ValuesSideBySide) {
  Plan p;
  Arg a = p.buffer("a"), low = a, high = a;
  low.type = high.type = p.f32({2});
  high.offset = 8;
  low.value = 1, high.value = 2;
  p.launch(p.d, 0, "scale:2", {p.x}, {high});
  p.launch(p.d, 0, "scale:2", {p.x}, {low});
  p.launch(p.d, 0, "scale:2", {high}, {p.output("z", p.f32({2}))});
  p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)});
  EXPECT_EQ(p.check(), "");
}

TEST(ModelPlan, AnOutputOverwrittenByAnother) {
  for (const bool over : {false, true}) {
    Plan p;
    Arg y = p.output("y", p.t), z = p.output("z", p.t);
    y.value = 1, z.value = 2;
    p.m.output_sources[0] = y;
    if (over) z.index = 0;
    p.m.output_sources[1] = z;
    p.launch(p.d, 0, "scale:2", {p.x}, {y});
    p.launch(p.d, 0, "scale:2", {y}, {z});
    if (over) {
      EXPECT_THAT(p.check(),
                  HasSubstr("the end of the run reads what task 1 (node 't1') has overwritten with another"));
    } else {
      EXPECT_EQ(p.check(), "");
    }
  }
}

TEST(ModelPlan, ResultOverAPartOfAnOperand) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.m.buffers[a.index].alignment = p.m.buffers[b.index].alignment = 8;
  p.m.buffers[b.index].offset = 8;
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {b});
  p.launch(p.d, 0, "scale:2", {b}, {p.output("y", p.t)});
  EXPECT_THAT(p.check(false), HasSubstr("writes over a part of its own operand buffer 'a'"));
}

TEST(ModelPlan, Scratch) {
  for (const int fault : {0, 1, 2}) {
    Plan p;
    const Arg a = p.buffer("a");
    const uint32_t s = p.scratch("s", 0, 16);
    p.launch(p.d, 0, "scale:2", {p.x}, {a});
    p.launch(p.d, 0, "scale:2", {a}, {p.output("y", p.t)});
    p.m.programs[0].tasks.back().scratch = s;
    // Shared by two tasks: in order, or at the same time.
    p.launch(p.d, fault == 1 ? 1 : 0, "scale:2", {p.x}, {p.output("z", p.t)});
    p.m.programs[0].tasks.back().scratch = s;
    p.m.buffers[s].offset = fault == 2 ? 0 : 64;
    const std::string text = p.check(false);
    if (fault == 0) {
      EXPECT_EQ(text, "");
    }
    if (fault == 1) {
      EXPECT_THAT(text, HasSubstr("task 2 (node 't2') writes over what task 1 (node 't1') writes"));
    }
    if (fault == 2) {
      EXPECT_THAT(text, HasSubstr("its own operand"));
    }
  }
}

TEST(ModelPlan, OutputsAreWrittenAtTheEnd) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {p.x}, {b});
  p.output("y", p.t);
  EXPECT_THAT(p.check(), HasSubstr("the end of the run reads bytes that no task has written"));
  p.m.output_sources[0] = a;
  EXPECT_EQ(p.check(), "");
  EXPECT_THAT(p.check_on_one_place({a, b}), HasSubstr("the end of the run reads what task 1"));
}

TEST(ModelPlan, FiguresAreWhatTheBuffersSay) {
  Plan p;
  const Arg a = p.buffer("a"), b = p.buffer("b");
  p.launch(p.d, 0, "scale:2", {p.x}, {a});
  p.launch(p.d, 0, "scale:2", {a}, {b});
  p.launch(p.d, 0, "scale:2", {b}, {p.output("y", p.t)});
  std::shared_ptr<Model> m = p.finish();
  EXPECT_EQ(m->spaces[0].arena_bytes, 80u);
  EXPECT_EQ(m->spaces[0].lower_bound, 32u);
  ASSERT_TRUE(check_plan(*m).ok());
  m->spaces[0].arena_bytes = 160;
  EXPECT_THAT(check_plan(*m).message(),
              HasSubstr("says that its arena takes 160 bytes, but its buffers end at 80"));
  m->spaces[0].arena_bytes = 80;
  m->spaces[0].lower_bound = 16;
  EXPECT_THAT(check_plan(*m).message(), HasSubstr("says that its lower bound is 16 bytes"));
  m->spaces[0].lower_bound = 192;
  EXPECT_THAT(check_plan(*m).message(),
              HasSubstr("says that its lower bound is 192 bytes, but its buffers say 128"));
  m->spaces[0].lower_bound = 32;
  m->buffers[0].upper = 1;
  EXPECT_THAT(check_plan(*m).message(), HasSubstr("touches it in step 1, but it lives from 0 to 1"));
}

TEST(ModelPlan, OtherShapes) {
  Plan p;
  const ModelDim n = p.symbol("N", 0, 0, 1, 64, 4);
  const uint32_t t = p.f32({n});
  p.m.inputs[0].type = t;
  const Arg x{Arg::kInput, 0, 0, t, false};
  const Arg a = p.ModelBuilder::buffer("a", 0, t, p.times(n, 4));
  const Arg b = p.ModelBuilder::buffer("b", 0, t, p.times(n, 4));
  p.launch(p.d, 0, "scale:2", {x}, {a});
  p.launch(p.d, 0, "scale:2", {x}, {b});
  p.launch(p.d, 0, "add", {a, b}, {p.output("y", t)});
  std::shared_ptr<Model> m = p.finish();
  for (const int64_t v : {1, 4, 5, 64})
    EXPECT_TRUE(check_plan(*m, {v}).ok()) << check_plan(*m, {v}).to_string();
  // A plan that is right at the reference only.
  m->buffers[1].below.clear();
  m->buffers[0].below = {1};
  m->placement_order = {1, 0};
  m->buffers[1].size = 16;
  const Status s = check_plan(*m, {32});
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.to_string(), HasSubstr("while checking the plan at N=32"));
}

// ---- Control flow ----

// y = c ? 2x : r, r computed in the second branch; `early` is captured by both.
struct Branch : Plan {
  Arg c, early, y, r, temporary;
  Branch() {
    for (int i = 0; i < 3; ++i) program();
    c = ModelBuilder::buffer("c", 0, type(REGIE_BOOL, {}), 1);
    early = buffer("early");
    y = buffer("y");
    r = buffer("r");
    temporary = buffer("temporary");
    launch(d, 0, "less:3", {x}, {c});
    launch(d, 1, "scale:2", {x}, {early});
    launch(d, 0, "scale:2", {early}, {y}, {}, 1);
    launch(d, 1, "scale:3", {early}, {temporary}, {}, 2);
    launch(d, 1, "scale:3", {temporary}, {r}, {}, 2);
    branch(d, 0, c, {y}, 1, {y}, 2, {r});
  }
};

TEST(ModelPlan, BranchesInOrder) {
  Branch p;
  p.launch(p.d, 1, "add", {p.y, p.early}, {p.output("z", p.t)});
  EXPECT_EQ(p.check(), "");
  // Of two branches one runs: what one works in may be the other's result.
  EXPECT_EQ(p.check_on_one_place({p.y, p.temporary}), "");
}

TEST(ModelPlan, OnlyABranchWritesIt) {
  Branch p;
  p.launch(p.d, 1, "add", {p.temporary, p.early}, {p.output("z", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("reads what only a branch writes: task 0 of program 2"));
}

TEST(ModelPlan, ABranchOverwritesWhatIsNeededAfter) {
  Branch p;
  p.launch(p.d, 1, "add", {p.y, p.early}, {p.output("z", p.t)});
  EXPECT_NE(p.check_on_one_place({p.early, p.temporary}), "");
}

TEST(ModelPlan, AResultThatItsBranchDoesNotWrite) {
  Branch p;
  p.m.programs[2].tasks.pop_back();  // r stays unwritten
  p.launch(p.d, 1, "add", {p.y, p.early}, {p.output("z", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("the end of program 2 reads bytes that no task has written"));
}

TEST(ModelPlan, ResultsThatAreCopiedOverEachOther) {
  Plan p;
  for (int i = 0; i < 3; ++i) p.program();
  const Arg c = p.ModelBuilder::buffer("c", 0, p.type(REGIE_BOOL, {}), 1), a = p.buffer("a"),
            b = p.buffer("b");
  p.launch(p.d, 0, "less:3", {p.x}, {c});
  p.launch(p.d, 0, "scale:2", {p.x}, {a}, {}, 1);
  p.launch(p.d, 0, "scale:2", {p.x}, {b}, {}, 1);
  p.launch(p.d, 0, "scale:2", {p.x}, {a}, {}, 2);
  p.launch(p.d, 0, "scale:2", {p.x}, {b}, {}, 2);
  p.branch(p.d, 0, c, {a, b}, 1, {a, b}, 2,
           {b, a});  // swapped: the first copy destroys what the second reads
  p.launch(p.d, 0, "add", {a, b}, {p.output("y", p.t)});
  EXPECT_THAT(p.check(), HasSubstr("copies a branch's result over another one that is copied later"));
}

}  // namespace
}  // namespace regie::plan_test
