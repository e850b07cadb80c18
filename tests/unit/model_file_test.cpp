// The model file: what is written is read back; what is damaged is named; nothing that bytes can say makes
// the reader crash.
#include "model/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

#include "base/hash.h"
#include "model/sections.h"
#include "model/weight_check.h"
#include "support/model_builder.h"

namespace regie {
namespace {

using test::ModelBuilder;
using ::testing::HasSubstr;

std::shared_ptr<Model> sample() {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"),
                 acc = b.device("acc", "fake_async", {{"delay-us", "5"}});
  b.space("host", cpu);
  b.space("hbm", acc);
  b.m.name = "sample";
  b.m.producer = "a test";
  b.m.target = "host_and_fake";
  b.m.plugins = {"fake_device 0.1.0"};
  b.m.options = {{"optimise", "1"}};
  const Arg x0 = b.input("x", 0);
  const ModelDim n = b.symbol("N", 0, 0, 1, 32, 4);
  const uint32_t t = b.f32({n, 2});
  Arg x = x0;
  x.type = t;
  b.m.inputs[0].type = t;
  const Arg y = b.output("y", t);
  const Arg far = b.buffer("x on acc", 1, t, b.times(n, 8));
  const Arg sum = b.buffer("sum", 1, t, b.times(n, 8));
  const Arg back = b.buffer("back", 0, t, b.times(n, 8));
  b.copy(acc, 0, x, far);
  b.launch(acc, 1, "add", {far, b.weight({5}, b.f32({}))}, {sum}, {0});
  b.copy(acc, 1, sum, back);
  b.launch(cpu, 0, "scale:3", {back}, {y}, {2});
  b.m.portable_graph = "graph @sample() -> () {}\n";
  b.m.ledger_json = "{\"stages\": []}";
  b.m.portable_constants = {{"digest0", 0}};
  return b.finish();
}

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "model_file_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".rgm";
  }
  void TearDown() override { std::remove(path_.c_str()); }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Result<std::shared_ptr<const Model>> load(const std::string& text) {
    auto owner = std::make_shared<const std::string>(text);
    return load_model(std::as_bytes(std::span(*owner)), owner, path_);
  }
  std::string saved() {
    EXPECT_TRUE(save_model(*sample(), path_).ok());
    return read(path_);
  }
  // The section's number in the table of a file.
  static uint64_t field(const std::string& file, size_t at, size_t size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; ++i)
      v |= static_cast<uint64_t>(static_cast<uint8_t>(file[at + i])) << (8 * i);
    return v;
  }
  static void put(std::string* file, size_t at, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) (*file)[at + i] = static_cast<char>(value >> (8 * i));
  }
  // As docs/model-file.md says: sums of all sections that lie in the file, then that of header and table.
  static void fix_checksums(std::string* file) {
    if (file->size() < 64) return;
    const uint64_t count = field(*file, 12, 4);
    const size_t head = 64 + 40 * count;
    if (count > 100 || head > file->size()) return;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t offset = field(*file, 64 + 40 * i + 8, 8), size = field(*file, 64 + 40 * i + 16, 8);
      if (offset <= file->size() && size <= file->size() - offset)
        put(file, 64 + 40 * i + 24, hash64(file->data() + offset, size), 8);
    }
    put(file, 24, 0, 8);
    put(file, 24, hash64(file->data(), head), 8);
  }
  std::string path_;
};

TEST_F(ModelFile, RoundTrip) {
  const std::shared_ptr<Model> m = sample();
  ASSERT_TRUE(check_model(*m).ok()) << check_model(*m).to_string();
  ASSERT_TRUE(save_model(*m, path_).ok());
  Result<std::shared_ptr<const Model>> r = load_model(path_);
  ASSERT_TRUE(r.ok()) << r.status().to_string();
  const Model& l = **r;
  EXPECT_EQ(l.name, "sample");
  EXPECT_EQ(l.plugins, m->plugins);
  EXPECT_EQ(l.options, m->options);
  EXPECT_EQ(l.symbols[0].name, "N");
  EXPECT_EQ(l.symbols[0].upper, 32);
  EXPECT_EQ(l.types, m->types);
  EXPECT_EQ(l.devices[1].params, m->devices[1].params);
  EXPECT_EQ(l.spaces[1].arena_bytes, 96u);  // two buffers of 4*2*4 bytes, the second on the next 64
  EXPECT_EQ(l.buffers[1].offset, 64u);
  EXPECT_EQ(l.buffers[1].below, std::vector<uint32_t>{0});
  EXPECT_EQ(l.placement_order, m->placement_order);
  EXPECT_EQ(l.kernels, m->kernels);
  ASSERT_EQ(l.programs[0].tasks.size(), 4u);
  EXPECT_EQ(l.programs[0].tasks[1].waits, std::vector<uint32_t>{0});
  EXPECT_EQ(l.programs[0].tasks[3].origins, std::vector<std::string>{"origin3"});
  EXPECT_EQ(l.programs[0].tasks[1].operands[1].kind, Arg::kWeight);
  EXPECT_EQ(l.output_sources[0].kind, Arg::kOutput);
  EXPECT_EQ(l.portable_graph, m->portable_graph);
  EXPECT_EQ(l.portable_constants, m->portable_constants);
  EXPECT_EQ(l.ledger_json, m->ledger_json);
  ASSERT_EQ(l.weight_bytes.size(), 4u);
  EXPECT_EQ(*reinterpret_cast<const float*>(l.weight_bytes.data()), 5.0f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(l.weight_bytes.data()) % 4096, 0u) << "mapped on a page";
}

// A quick look before anything is checked: each name once, and not any number of them.
TEST_F(ModelFile, ALookAtTheDevicesPluginsIsShort) {
  const auto look = [&](uint32_t count, uint32_t names) {
    ModelBuilder b;
    for (uint32_t i = 0; i < count; ++i) b.device("d" + std::to_string(i), "p" + std::to_string(i % names));
    EXPECT_TRUE(save_model(b.m, path_).ok());
    const std::string file = read(path_);
    return device_plugins(std::as_bytes(std::span(file)));
  };
  EXPECT_THAT(look(3, 2), ::testing::ElementsAre("p0", "p1"));
  EXPECT_THAT(look(400, 2), ::testing::ElementsAre("p0", "p1"));
  EXPECT_EQ(look(400, 400).size(), 16u);
}

// Weights that lie on each other would be read many times over: then all are checked at once.
TEST_F(ModelFile, WeightsThatLieOnEachOtherAreNotReadOverAndOver) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  const uint32_t t = b.f32({16});
  const Arg w = b.weight(std::vector<float>(32, 1), b.f32({32}));
  for (uint64_t offset : {0, 64}) {
    b.m.weights.push_back({offset, 64, "portable", "part" + std::to_string(offset)});
    b.output("y" + std::to_string(offset), t);
    b.m.output_sources.back() = {Arg::kWeight, static_cast<uint32_t>(b.m.weights.size() - 1), 0, t, true};
  }
  b.output("z", b.f32({32}));
  b.m.output_sources.back() = w;
  ASSERT_TRUE(save_model(*b.finish(), path_).ok());
  auto model = load_model(path_, WeightChecking::kInBackground);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_EQ((*model)->weight_check->wait().code(), REGIE_OK);
  EXPECT_EQ(&(*model)->weight_check->wait(), &(*model)->weight_check->wait_for_all());
}

// What is checked beside the work is waited for before anything made from it is given out.
TEST_F(ModelFile, LargeWeightsAreCheckedInTheBackground) {
  const std::shared_ptr<Model> m = sample();
  auto bytes = std::make_shared<std::vector<std::byte>>((size_t{3} << 20) + 5);
  std::memcpy(bytes->data(), m->weight_bytes.data(), m->weight_bytes.size());
  m->weight_bytes = *bytes;
  ASSERT_TRUE(save_model(*m, path_).ok());
  const std::string good = read(path_);
  // In a weight that a task reads, in bytes that nothing reads, and in the last one.
  const size_t weights = good.size() - bytes->size();
  for (const size_t at : {size_t{0}, weights, weights + (size_t{2} << 20), good.size() - 1}) {
    std::string bad = good;
    if (at) bad[at] = static_cast<char>(bad[at] ^ 1);
    std::ofstream(path_, std::ios::binary) << bad;
    EXPECT_EQ(load_model(path_).ok(), at == 0) << at;
    Result<std::shared_ptr<const Model>> r = load_model(path_, WeightChecking::kInBackground);
    ASSERT_TRUE(r.ok()) << r.status().to_string();
    ASSERT_NE((*r)->weight_check, nullptr);
    const std::string copy = path_ + ".copy";
    const Status saved = save_model(**r, copy);
    // A run is told of what it reads alone.
    EXPECT_EQ((*r)->weight_check->wait().code(), at == weights ? REGIE_CORRUPT : REGIE_OK) << at;
    for (const Status& s : {(*r)->weight_check->wait_for_all(), saved}) {
      EXPECT_EQ(s.code(), at ? REGIE_CORRUPT : REGIE_OK) << at;
      if (at) {
        EXPECT_THAT(s.to_string(), HasSubstr(path_ + ": section 'weights' is damaged"));
      }
    }
    EXPECT_EQ(std::ifstream(copy).good(), at == 0);
    std::remove(copy.c_str());
  }
}

TEST_F(ModelFile, SameModelSameBytes) {
  const std::string first = saved();
  Result<std::shared_ptr<const Model>> r = load_model(path_);
  ASSERT_TRUE(r.ok());
  const std::string other = path_ + "2";
  ASSERT_TRUE(save_model(**r, other).ok());
  EXPECT_EQ(read(other), first);
  std::remove(other.c_str());
}

TEST_F(ModelFile, EveryFlippedByteIsNoticed) {
  const std::string good = saved();
  ASSERT_GT(good.size(), 4096u);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    Result<std::shared_ptr<const Model>> r = load(bad);
    ASSERT_FALSE(r.ok()) << "byte " << at;
    EXPECT_THAT(r.status().to_string(), HasSubstr(path_));
  }
}

TEST_F(ModelFile, DamageNamesTheSection) {
  const std::string good = saved();
  const char* names[] = {"'model'", "'graph'", "'ledger'", "'kernels'", "'weights'"};
  for (size_t s = 0; s < 5; ++s) {
    std::string bad = good;
    bad[field(good, 64 + 40 * s + 8, 8)] ^= 1;
    Result<std::shared_ptr<const Model>> r = load(bad);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), REGIE_CORRUPT);
    EXPECT_THAT(r.status().message(), HasSubstr(std::string("section ") + names[s] + " is damaged"));
    EXPECT_THAT(r.status().message(), HasSubstr("copy or compile the file again"));
  }
}

TEST_F(ModelFile, Truncated) {
  const std::string good = saved();
  for (size_t size = 0; size < good.size(); size += size < 600 ? 1 : 97) {
    Result<std::shared_ptr<const Model>> r = load(good.substr(0, size));
    ASSERT_FALSE(r.ok()) << size;
    EXPECT_EQ(r.status().code(), size < 8 ? REGIE_INVALID_MODEL : REGIE_CORRUPT) << size;
  }
  Result<std::shared_ptr<const Model>> longer = load(good + "x");
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.status().message(), HasSubstr("something was appended"));
}

TEST_F(ModelFile, NotAModel) {
  Result<std::shared_ptr<const Model>> r = load("ONNX or whatever this is");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), REGIE_INVALID_MODEL);
  EXPECT_FALSE(load_model(path_ + ".absent").ok());
}

TEST_F(ModelFile, NewerFormatNamesBothVersions) {
  std::string newer = saved();
  put(&newer, 8, 7, 4);
  for (const bool sound : {false, true}) {
    if (sound) fix_checksums(&newer);
    Result<std::shared_ptr<const Model>> r = load(newer);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), REGIE_UNSUPPORTED);
    EXPECT_THAT(r.status().message(), HasSubstr("format version 7, this program reads up to 1"));
    EXPECT_EQ(r.status().message().find("damaged") == std::string::npos, sound);
  }
}

TEST_F(ModelFile, UnknownSections) {
  // One more entry fits before the first section only if the table has room: take the ledger's place.
  for (const bool optional : {true, false}) {
    std::string file = saved();
    put(&file, 64 + 40 * 2, 99, 4);
    put(&file, 64 + 40 * 2 + 4, optional ? kSectionOptional : 0, 4);
    fix_checksums(&file);
    Result<std::shared_ptr<const Model>> r = load(file);
    ASSERT_EQ(r.ok(), optional) << r.status().to_string();
    if (optional) continue;
    EXPECT_EQ(r.status().code(), REGIE_UNSUPPORTED);
    EXPECT_THAT(r.status().message(), HasSubstr("unknown kind 99"));
  }
}

// Whatever the bytes say with right checksums: an error, or a model that holds every invariant.
TEST_F(ModelFile, HostileBytesAreRefusedOrHarmless) {
  const std::string good = saved();
  std::minstd_rand random(1);
  size_t accepted = 0;
  const uint64_t begin = field(good, 64 + 8, 8), size = field(good, 64 + 16, 8);
  for (int round = 0; round < 4000; ++round) {
    std::string bad = good;
    const int flips = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < flips; ++i) {
      const bool inside = random() % 4 != 0;  // mostly where the tasks are
      const size_t at = inside ? begin + random() % size : random() % std::min<size_t>(bad.size(), 600);
      bad[at] = static_cast<char>(random() % 3 ? random() : 0xff);
    }
    fix_checksums(&bad);
    Result<std::shared_ptr<const Model>> r = load(bad);
    if (!r.ok()) continue;
    ++accepted;
    EXPECT_TRUE(check_model(**r).ok());
  }
  EXPECT_GT(accepted, 100u) << "names may change; if nothing passes, the test does not reach the checks";
  EXPECT_LT(accepted, 3900u);
}

// Sound files whose weights are too small for what reads them, or are packed for another reader. What is
// opaque is the device's to compare, where a kernel names it as packed; nobody else may read it.
TEST_F(ModelFile, WeightsAreAsLargeAsTheirReadersTakeThem) {
  auto model = [](std::string layout, bool as_kernel_weight, bool as_operand, int64_t floats) {
    ModelBuilder b;
    const uint32_t cpu = b.device("cpu", "fake_inline");
    b.space("host", cpu);
    const uint32_t t = b.f32({floats});
    const Arg x = b.input("x", t), own = b.weight(std::vector<float>(static_cast<size_t>(floats)), t);
    const Arg small = b.weight({1, 2}, t, std::move(layout));
    b.launch(cpu, 0, "add", {x, as_operand ? small : own}, {b.output("y", t)});
    if (as_kernel_weight) b.m.programs[0].tasks[0].kernel_weights = {REGIE_NONE, small.index};
    return b.finish();
  };
  struct Case {
    const char* layout;
    bool as_kernel_weight, as_operand;
    int64_t floats;
    const char* says;  // "": it is right
  };
  const Case cases[] = {
      {"portable", true, false, 2, ""},
      {"portable", true, true, 2, ""},
      {"portable", false, true, 2, ""},
      {"portable", true, false, 3, "its weight has 8 bytes, its type takes 12"},
      {"portable", true, true, 3, "its weight has 8 bytes, its type takes 12"},
      {"portable", false, true, 3, "12 bytes at 0 are outside of its 8"},
      {"opaque:e:1", true, false, 3, ""},
      {"opaque:e:1", true, true, 3, ""},
      {"opaque:e:1", false, true, 2,
       "is a packed weight, which nothing but a kernel's packed operand can read"},
      {"opaque:e:1", false, true, 3,
       "is a packed weight, which nothing but a kernel's packed operand can read"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.layout) + (c.as_kernel_weight ? " kernel weight" : "") +
                 (c.as_operand ? " operand" : "") + " of " + std::to_string(c.floats));
    const std::shared_ptr<Model> m = model(c.layout, c.as_kernel_weight, c.as_operand, c.floats);
    ASSERT_TRUE(save_model(*m, path_).ok());
    Result<std::shared_ptr<const Model>> r = load_model(path_);
    if (!*c.says) {
      EXPECT_TRUE(r.ok()) << r.status().to_string();
      continue;
    }
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.status().code(), REGIE_CORRUPT);
    EXPECT_THAT(r.status().to_string(), HasSubstr("task 0 of program 0 (node 't0'): operand 1"));
    EXPECT_THAT(r.status().to_string(), HasSubstr(c.says));
  }
  // In the place of what is computed, or beyond the list.
  for (const bool beyond : {false, true}) {
    const std::shared_ptr<Model> m = model("opaque:e:1", true, false, 2);
    m->programs[0].tasks[0].kernel_weights = {beyond ? REGIE_NONE : 1u, beyond ? 7u : REGIE_NONE};
    ASSERT_TRUE(save_model(*m, path_).ok());
    EXPECT_EQ(load_model(path_).status().code(), REGIE_CORRUPT);
  }
}

TEST_F(ModelFile, UnwritablePathLeavesNothing) {
  Status s = save_model(*sample(), "/proc/nowhere/model.rgm");
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.code(), REGIE_IO);
  EXPECT_THAT(s.to_string(), HasSubstr("/proc/nowhere/model.rgm"));
}

TEST_F(ModelFile, Inspect) {
  saved();
  Result<std::string> text = inspect_model(path_);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  for (const char* part :
       {"x: f32[N,2]", "N in 1..32, planned for 4", "hbm of acc: 96 bytes, lower bound 64 (x1.500)",
        "add (fake/1) on acc/1  # node 't1'", "waits for 0", "weights: 1, 4 bytes",
        "weights: 4 bytes at 4096"})
    EXPECT_THAT(*text, HasSubstr(part));
}

}  // namespace
}  // namespace regie
