// The runtime on hand-made models and the fake device: values by hand, other shapes, wrong inputs, weights,
// scratch.
#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/file.h"
#include "support/run_model.h"
#include "support/scratch.h"

namespace regie {
namespace {

using test::Answer;
using test::Floats;
using test::ModelBuilder;
using test::open;
using test::row;
using test::run;
using test::run_once;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = 3 * (x + [10, 20]) on the calling thread.
std::shared_ptr<Model> inline_model() {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  const uint32_t t = b.f32({2});
  const Arg x = b.input("x", t), y = b.output("y", t), h = b.buffer("h", 0, t);
  b.launch(cpu, 0, "add", {x, b.weight({10, 20}, t)}, {h});
  b.launch(cpu, 0, "scale:3", {h}, {y});
  return b.finish();
}

// y = 2 * x of [N, 2] with N in 1..32 planned for 4; z = sum over all; the work is on a device with memory of
// its own.
std::shared_ptr<Model> symbolic_model() {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"),
                 acc = b.device("acc", "fake_async", {{"delay-us", "100"}});
  b.space("host", cpu);
  b.space("own", acc);
  b.input("x", 0);
  const ModelDim n = b.symbol("N", 0, 0, 1, 32, 4);
  const uint32_t t = b.f32({n, 2});
  b.m.inputs[0].type = t;
  const Arg x{Arg::kInput, 0, 0, t, false}, y = b.output("y", t), z = b.output("z", b.f32({1}));
  const ModelDim bytes = b.times(n, 8);
  const Arg far = b.buffer("far", 1, t, bytes), twice = b.buffer("twice", 1, t, bytes);
  const Arg sum = b.buffer("sum", 1, b.f32({1}), 4);
  b.copy(acc, 0, x, far);
  b.launch(acc, 1, "scale:2", {far}, {twice}, {0});
  b.copy(acc, 1, twice, y);
  b.launch(acc, 0, "sum", {twice}, {sum}, {1});
  b.copy(acc, 2, sum, z, {3});
  return b.finish();
}

Floats rows(int64_t n) {
  Floats f{{n, 2}, {}};
  for (int64_t i = 0; i < 2 * n; ++i) f.values.push_back(static_cast<float>(i + 1));
  return f;
}

TEST(RuntimeSession, InlineModel) {
  const Answer a = run_once(inline_model(), {row({1, 2})});
  ASSERT_TRUE(a.status.ok()) << a.status.to_string();
  EXPECT_THAT(a.outputs[0].values, ElementsAre(33, 66));
  EXPECT_THAT(a.outputs[0].dims, ElementsAre(2));
}

// A large file's weights are checked while the session is made ready; what came of damaged ones is not given
// out.
TEST(RuntimeSession, DamagedWeightsFailTheFirstRun) {
  const test::Scratch folder;
  const std::string path = folder.path("m.rgm");
  std::shared_ptr<Model> made = inline_model();
  std::vector<std::byte> bytes(size_t{2} << 20);
  std::memcpy(bytes.data(), made->weight_bytes.data(), made->weight_bytes.size());
  made->weight_bytes = bytes;
  for (const int damaged : {0, 1, 0, 1}) {
    if (!damaged) {
      // First all of it is the weight, then two numbers: the rest is nothing that a run reads.
      made->weights[0].size = made->weights[0].size == bytes.size() ? 8 : bytes.size();
      ASSERT_TRUE(save_model(*made, path).ok());
    }
    const bool small = made->weights[0].size == 8;
    const std::streamoff from_end = small ? static_cast<std::streamoff>(bytes.size()) - 5 : 5;
    if (damaged || small) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-(damaged ? from_end : 5), std::ios::end).put('x');
    }
    const std::shared_ptr<const Model> loaded = load_model(path, WeightChecking::kInBackground).value();
    Result<std::shared_ptr<Session>> session = open(loaded);
    ASSERT_TRUE(session.ok()) << session.status().to_string();
    std::shared_ptr<Context> context = (*session)->acquire().value();
    for (int turn = 0; turn < 2; ++turn) {
      const Floats x = row({1, 2});
      regie_tensor in = x.view(), y{};
      const Status s = context->run({&in, 1}, {&y, 1});
      EXPECT_EQ(s.code(), damaged ? REGIE_CORRUPT : REGIE_OK) << s.to_string();
      if (damaged) {
        EXPECT_THAT(s.to_string(), HasSubstr(path + ": section 'weights' is damaged"));
      }
    }
  }
}

// What no kernel reads is given out all the same: an output that is a weight, and one that a branch gives.
TEST(RuntimeSession, DamagedWeightsThatAreOutputsFailTheRun) {
  const test::Scratch folder;
  const std::string path = folder.path("m.rgm");
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  const uint32_t t = b.f32({2}), flag = b.type(REGIE_BOOL, {});
  const Arg x = b.input("x", t), w = b.weight({7, 8}, t), v = b.weight({5, 6}, t);
  b.output("constant", t);
  const Arg chosen = b.output("chosen", t), small = b.buffer("small", 0, flag);
  for (int i = 0; i < 3; ++i) b.program();
  b.launch(cpu, 0, "less:3", {x}, {small});
  b.branch(cpu, 0, small, {chosen}, 1, {v}, 2, {x}, {0});
  b.m.output_sources[0] = w;
  const std::shared_ptr<Model> made = b.finish();
  for (const Arg* damaged : {static_cast<const Arg*>(nullptr), &w, &v}) {
    ASSERT_TRUE(save_model(*made, path).ok());
    if (damaged) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const uint64_t from_end = made->weight_bytes.size() - made->weights[damaged->index].offset - 1;
      file.seekp(-static_cast<std::streamoff>(from_end), std::ios::end).put('x');
    }
    const std::shared_ptr<const Model> loaded = load_model(path, WeightChecking::kInBackground).value();
    std::shared_ptr<Session> session = open(loaded).value();
    std::shared_ptr<Context> context = session->acquire().value();
    const Answer a = run(*context, {row({1, 2})}, 2);
    EXPECT_EQ(a.status.code(), damaged ? REGIE_CORRUPT : REGIE_OK) << a.status.to_string();
    if (a.status.ok()) {
      EXPECT_THAT(a.outputs[0].values, ElementsAre(7, 8));
      EXPECT_THAT(a.outputs[1].values, ElementsAre(5, 6));
    }
  }
}

TEST(RuntimeSession, UnalignedInputAndOutputInTheCallersMemory) {
  Result<std::shared_ptr<Session>> session = open(inline_model());
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  std::shared_ptr<Context> context = (*session)->acquire().value();
  const Floats x = row({1, 2});
  std::vector<std::byte> in(16), out(16);
  std::memcpy(in.data() + 1, x.values.data(), 8);
  regie_tensor given = x.view(), y{};
  given.data = in.data() + 1;
  y.data = out.data() + 3;
  y.bytes = 8;
  ASSERT_TRUE(context->run({&given, 1}, {&y, 1}).ok());
  float values[2];
  std::memcpy(values, out.data() + 3, 8);
  EXPECT_EQ(values[0], 33);
  EXPECT_EQ(values[1], 66);
  EXPECT_EQ(y.data, out.data() + 3);
  y.bytes = 7;
  const Status s = context->run({&given, 1}, {&y, 1});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_THAT(s.message(), HasSubstr("output 'y' takes 8 bytes (f32[2]), but there is room for 7"));
}

TEST(RuntimeSession, OutputsThatNoTaskWrites) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"),
                 acc = b.device("acc", "fake_async", {{"delay-us", "200"}});
  b.space("host", cpu);
  b.space("own", acc);
  const uint32_t t = b.f32({2});
  const Arg x = b.input("x", t);
  for (const char* name : {"input", "constant", "computed", "same", "far"}) b.output(name, t);
  const Arg far = b.buffer("far", 1, t), twice = b.buffer("twice", 1, t);
  const Arg computed{Arg::kOutput, 2, 0, t, false};
  b.copy(acc, 0, x, far);
  b.launch(acc, 0, "scale:2", {far}, {twice});
  b.launch(cpu, 0, "scale:5", {x}, {computed});
  b.m.output_sources = {x, b.weight({7, 8}, t), computed, computed, twice};
  const Answer a = run_once(b.finish(), {row({1, 2})});
  ASSERT_TRUE(a.status.ok()) << a.status.to_string();
  EXPECT_THAT(a.outputs[0].values, ElementsAre(1, 2));
  EXPECT_THAT(a.outputs[1].values, ElementsAre(7, 8));
  EXPECT_THAT(a.outputs[2].values, ElementsAre(5, 10));
  EXPECT_THAT(a.outputs[3].values, ElementsAre(5, 10));
  EXPECT_THAT(a.outputs[4].values, ElementsAre(2, 4));
}

TEST(RuntimeSession, OtherShapesFromOneModel) {
  Result<std::shared_ptr<Session>> session = open(symbolic_model());
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  std::shared_ptr<Context> context = (*session)->acquire().value();
  for (int64_t n : {4, 1, 7, 32, 7, 1, 4}) {
    const Answer a = run(*context, {rows(n)}, 2);
    ASSERT_TRUE(a.status.ok()) << a.status.to_string();
    EXPECT_THAT(a.outputs[0].dims, ElementsAre(n, 2));
    for (int64_t i = 0; i < 2 * n; ++i)
      EXPECT_EQ(a.outputs[0].values[static_cast<size_t>(i)], static_cast<float>(2 * (i + 1)));
    EXPECT_EQ(a.outputs[1].values[0], static_cast<float>(2 * n * (2 * n + 1)));  // 2 * (1 + ... + 2n)
  }
  EXPECT_EQ(context->statistics().runs, 7u);
  EXPECT_EQ(context->statistics().shapes_prepared, 4u);
  EXPECT_EQ(context->statistics().last_shape_change, "x.0: 7 -> 32");
}

// A kernel for one shape runs at that and is refused at others, whether or not its device would notice.
TEST(RuntimeSession, KernelsForOneShape) {
  std::shared_ptr<Model> m = symbolic_model();
  for (ModelKernel& k : m->kernels)
    if (k.name == "scale:2") k.flags = 0;
  EXPECT_TRUE(run_once(m, {rows(4)}).status.ok());
  const Answer a = run_once(m, {rows(5)});
  EXPECT_EQ(a.status.code(), REGIE_UNSUPPORTED);
  EXPECT_THAT(a.status.to_string(), HasSubstr("kernel 'scale:2' was compiled for N=4 alone, not for N=5"));
}

TEST(RuntimeSession, KeepsTheShapesUsedLast) {
  SessionOptions options;
  options.shapes_kept = 2;
  std::shared_ptr<Session> session = open(symbolic_model(), options).value();
  std::shared_ptr<Context> context = session->acquire().value();
  // 1 2 | 1 hit | 3 drops 2 | 1 hit | 2 again drops 3
  for (int64_t n : {1, 2, 1, 3, 1, 2}) ASSERT_TRUE(run(*context, {rows(n)}, 2).status.ok());
  EXPECT_EQ(context->statistics().shapes_prepared, 4u);
}

TEST(RuntimeSession, WrongInputsAreNamed) {
  std::shared_ptr<Session> session = open(symbolic_model()).value();
  std::shared_ptr<Context> context = session->acquire().value();
  auto refused = [&](const regie_tensor& t) {
    regie_tensor out[2] = {};
    const Status s = context->run({&t, 1}, out);
    EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
    return s.to_string();
  };
  EXPECT_THAT(refused(rows(33).view()),
              HasSubstr("input 'x': dimension 0 (N) is 33; the model was compiled for N from 1 to 32"));
  EXPECT_THAT(refused(Floats{{2, 3}, std::vector<float>(6)}.view()),
              HasSubstr("input 'x' must be f32[N,2], but is f32[2,3]: dimension 1 must be 2, not 3"));
  EXPECT_THAT(refused(row({1, 2}).view()),
              HasSubstr("must be f32[N,2], but is f32 of rank 1: it must have 2 dimensions"));
  Floats good = rows(2);
  regie_tensor t = good.view();
  for (const int32_t rank : {3, INT32_MAX}) {  // there are only two dimensions to read
    t.rank = rank;
    EXPECT_THAT(refused(t), HasSubstr("but is f32 of rank " + std::to_string(rank) + ": it must have 2"));
  }
  t = good.view();
  t.elem = REGIE_I32;
  EXPECT_THAT(refused(t), HasSubstr("must be f32[N,2], but is i32[2,2]: the element type differs"));
  t = good.view();
  const int64_t across[] = {1, 2}, dense[] = {2, 1};
  t.strides = across;
  EXPECT_THAT(refused(t), HasSubstr("input 'x' has strides"));
  t = good.view();
  t.bytes = 12;
  EXPECT_THAT(refused(t), HasSubstr("takes 16 bytes, but only 12 were given"));
  t = good.view();
  t.data = nullptr;
  EXPECT_THAT(refused(t), HasSubstr("input 'x' has no data"));
  t = good.view();
  t.strides = dense;
  regie_tensor out[2] = {};
  EXPECT_TRUE(context->run({&t, 1}, out).ok()) << "strides that say row-major are none";
  EXPECT_EQ(context->run({}, out).code(), REGIE_INVALID_INPUT);
}

TEST(RuntimeSession, OneSymbolInTwoInputs) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  b.input("a", 0);
  b.input("b", 0);
  const ModelDim n = b.symbol("N", 0, 0, 0, 100, 2);
  const uint32_t t = b.f32({n});
  b.m.inputs[0].type = b.m.inputs[1].type = t;
  b.launch(cpu, 0, "add", {{Arg::kInput, 0, 0, t, false}, {Arg::kInput, 1, 0, t, false}}, {b.output("y", t)});
  const std::shared_ptr<Model> m = b.finish();
  EXPECT_THAT(run_once(m, {row({1, 2, 3}), row({4, 5, 6})}).outputs[0].values, ElementsAre(5, 7, 9));
  const Answer a = run_once(m, {row({1, 2, 3}), row({4, 5})});
  EXPECT_EQ(a.status.code(), REGIE_INVALID_INPUT);
  EXPECT_THAT(
      a.status.message(),
      HasSubstr("input 'b' must be f32[N], but is f32[2]: dimension 0 must be 3, as N is 3 in dimension 0 of "
                "input 'a', not 2"));
}

TEST(RuntimeSession, NothingToCompute) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"),
                 acc = b.device("acc", "fake_async", {{"delay-us", "100"}});
  b.space("host", cpu);
  b.space("own", acc);
  b.input("a", 0);
  const ModelDim n = b.symbol("N", 0, 0, 0, 100, 2);
  const uint32_t t = b.f32({n}), one = b.f32({1});
  b.m.inputs[0].type = t;
  const Arg far = b.buffer("far", 1, t, b.times(n, 4)), sum = b.buffer("sum", 1, one);
  b.copy(acc, 0, {Arg::kInput, 0, 0, t, false}, far);
  b.launch(acc, 1, "sum", {far}, {sum}, {0});
  b.copy(acc, 0, far, b.output("y", t));
  b.copy(acc, 1, sum, b.output("z", one));
  const Answer a = run_once(b.finish(), {Floats{{0}, {}}});
  ASSERT_TRUE(a.status.ok()) << a.status.to_string();
  EXPECT_THAT(a.outputs[0].dims, ElementsAre(0));
  EXPECT_THAT(a.outputs[1].values, ElementsAre(0)) << "the sum over nothing is still computed";
}

TEST(RuntimeSession, PackedWeightsAndWeightsOnTheDevice) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"), acc = b.device("acc", "fake_async");
  b.space("host", cpu);
  b.space("own", acc);
  const uint32_t t = b.f32({2});
  const Arg x = b.input("x", t);
  const Arg plain = b.weight({3}, b.f32({1}));
  const Arg packed = b.weight({0, 0, 4}, b.f32({1}), "opaque:fake:1");
  const Arg far = b.buffer("far", 1, t), product = b.buffer("product", 1, t);
  const Arg near_ = b.buffer("near", 0, t);
  b.copy(acc, 0, x, far);
  b.launch(acc, 0, "packed", {far, plain}, {product});
  b.m.programs[0].tasks.back().kernel_weights = {REGIE_NONE, packed.index};
  b.copy(acc, 0, product, near_);
  b.launch(cpu, 0, "packed", {near_, packed}, {b.output("y", t)}, {2});
  b.m.programs[0].tasks.back().kernel_weights = {REGIE_NONE, packed.index};
  const Answer a = run_once(b.finish(), {row({1, 2})});
  ASSERT_TRUE(a.status.ok()) << a.status.to_string();
  EXPECT_THAT(a.outputs[0].values, ElementsAre(16, 32));
}

// A constant that a device reads while it prepares is as long as its type at each shape, not at the reference
// alone.
TEST(RuntimeSession, AWeightThatIsTooShortAtOtherShapes) {
  for (const bool packed : {false, true}) {
    ModelBuilder b;
    const uint32_t cpu = b.device("cpu", "fake_inline");
    b.space("host", cpu);
    b.input("x", 0);
    const ModelDim n = b.symbol("N", 0, 0, 1, 1000000, 2);
    const uint32_t t = b.f32({n});
    b.m.inputs[0].type = t;
    const Arg x{Arg::kInput, 0, 0, t, false};
    const Arg w = b.weight({1, 2}, t);
    b.launch(cpu, 0, "add", {x, w}, {b.output("y", t)});
    if (packed) b.m.programs[0].tasks.back().kernel_weights = {REGIE_NONE, w.index};
    Result<std::shared_ptr<Session>> session = open(b.finish());
    ASSERT_TRUE(session.ok()) << session.status().to_string();
    std::shared_ptr<Context> context = (*session)->acquire().value();
    EXPECT_TRUE(run(*context, {row({1, 2})}, 1).status.ok());
    const Answer longer = run(*context, {Floats{{1000000}, std::vector<float>(1000000)}}, 1);
    EXPECT_EQ(longer.status.code(), REGIE_CORRUPT) << longer.status.to_string();
    EXPECT_THAT(longer.status.to_string(), HasSubstr("node 't0'"));
  }
}

// A device keeps addresses in its scratch: a file whose plan lets others write there is refused before it
// runs, whatever it says of itself.
TEST(RuntimeSession, APlanInWhichTasksMeetInScratch) {
  for (const int fault : {0, 1, 2}) {
    ModelBuilder b;
    const uint32_t acc = b.device("acc", "fake_async", {{"visible", "1"}});
    b.space("host", acc);
    const uint32_t t = b.f32({2});
    const Arg x = b.input("x", t), h = b.buffer("h", 0, t);
    const uint32_t scratch = b.scratch("scratch", 0, 256);
    b.m.buffers[scratch].offset = fault == 1 ? 0 : 64;
    b.launch(acc, 0, "scratch:256", {x}, {h});
    b.m.programs[0].tasks.back().scratch = scratch;
    b.launch(acc, fault == 2 ? 1 : 0, "scratch:256", {x}, {b.output("z", t)});
    b.m.programs[0].tasks.back().scratch = scratch;
    b.launch(acc, 0, "scale:1", {h}, {b.output("y", t)});
    const Answer a = run_once(b.finish(false), {row({1, 2})});
    if (fault == 0) {
      EXPECT_TRUE(a.status.ok()) << a.status.to_string();
      continue;
    }
    EXPECT_EQ(a.status.code(), REGIE_CORRUPT) << a.status.to_string();
    EXPECT_THAT(a.status.to_string(), HasSubstr(fault == 1 ? "its own operand" : "does not wait for it"));
  }
}

TEST(RuntimeSession, ScratchInAndOutsideOfThePlan) {
  for (const int64_t planned : {0, 64, 256}) {
    for (const bool symbolic : {false, true}) {
      ModelBuilder b;
      const uint32_t acc = b.device("acc", "fake_async", {{"visible", "1"}});
      b.space("host", acc);
      b.input("x", 0);
      const ModelDim n = symbolic ? b.symbol("N", 0, 0, 1, 9, 2) : 2;
      const uint32_t t = b.f32({n});
      b.m.inputs[0].type = t;
      const Arg x{Arg::kInput, 0, 0, t, false};
      const uint32_t scratch = planned ? b.scratch("scratch", 0, planned) : REGIE_NONE;
      const Arg after = b.buffer("after", 0, t, symbolic ? b.times(n, 4) : 8);
      const Arg beside = b.buffer("beside", 0, t, symbolic ? b.times(n, 4) : 8);
      b.launch(acc, 0, "scale:1", {x}, {after});
      // Two streams at once: each must have scratch of its own.
      b.launch(acc, 0, "scratch:256", {after}, {b.output("y", t)});
      b.m.programs[0].tasks.back().scratch = scratch;
      b.launch(acc, 1, "scale:2", {x}, {beside});
      b.launch(acc, 1, "scratch:256", {beside}, {b.output("z", t)});
      const Answer a = run_once(b.finish(), {row({5, 6})});
      ASSERT_TRUE(a.status.ok()) << planned << symbolic << a.status.to_string();
      EXPECT_THAT(a.outputs[0].values, ElementsAre(5, 6)) << planned << symbolic;
      EXPECT_THAT(a.outputs[1].values, ElementsAre(10, 12)) << planned << symbolic;
    }
  }
}

TEST(RuntimeSession, RefusesWhatTheDeviceCannot) {
  std::shared_ptr<Model> m = inline_model();
  m->kernels[0].format = "other/2";
  Result<std::shared_ptr<Session>> s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.status().code(), REGIE_UNSUPPORTED);
  EXPECT_THAT(s.status().to_string(),
              HasSubstr("kernel 'add' has the format other/2; device 'cpu' (fake_inline) accepts "
                        "fake/1; compile the model again"));
  m = inline_model();
  m->kernels[1].requires_ = {"fast"};
  s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.status().to_string(),
              HasSubstr("kernel 'scale:3' needs 'fast', which device 'cpu' (fake_inline) does"));
  m->devices[0].params = {{"fast", "1"}};
  EXPECT_TRUE(open(m).ok());
  m->kernels[1].blob = "nonsense";
  s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.status().to_string(), HasSubstr("knows no kernel 'nonsense'"));
  EXPECT_THAT(s.status().to_string(), HasSubstr("while loading kernel 'scale:3'"));
  m = inline_model();
  m->devices[0].plugin = "no_such_device";
  s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.status().code(), REGIE_NOT_FOUND);
  m = symbolic_model();
  m->devices[1].params = {{"streams", "2"}};
  s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.status().to_string(), HasSubstr("uses 3 streams of device 'acc' (fake_async), which has 2"));
  m = symbolic_model();
  m->symbols[0].input = REGIE_NONE;
  s = open(m);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.status().code(), REGIE_UNSUPPORTED);
  EXPECT_THAT(s.status().to_string(), HasSubstr("'N' depends on computed data"));
  m = symbolic_model();
  m->devices[1].params = {{"capacity", "100"}};
  std::shared_ptr<Session> small = open(m).value();
  const Answer a = run(*small->acquire().value(), {rows(32)}, 2);
  EXPECT_EQ(a.status.code(), REGIE_OUT_OF_MEMORY);
  EXPECT_THAT(a.status.to_string(), HasSubstr("in memory space 'own'"));
}

TEST(RuntimeSession, ContextsAreReused) {
  std::shared_ptr<Session> session = open(symbolic_model()).value();
  Context* first = nullptr;
  {
    std::shared_ptr<Context> c = session->acquire().value();
    first = c.get();
    ASSERT_TRUE(run(*c, {rows(3)}, 2).status.ok());
  }
  std::shared_ptr<Context> again = session->acquire().value(), other = session->acquire().value();
  EXPECT_EQ(again.get(), first);
  EXPECT_NE(other.get(), first);
  session.reset();  // contexts go on
  EXPECT_TRUE(run(*again, {rows(3)}, 2).status.ok());
  EXPECT_TRUE(run(*other, {rows(5)}, 2).status.ok());
}

}  // namespace
}  // namespace regie
