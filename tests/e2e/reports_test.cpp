// What bench, profile, explain and compile report, checked against what can be computed from it by other
// ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "regie/api/regie.hpp"
#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// Who computes a small convolution here.
std::string small_convolution() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return "own direct convolution";
#endif
  return "oneDNN";
}

const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";

// A value with two readers, and a chain that is fused.
constexpr char kBranch[] =
    "graph @branch(%x: f32[1,3,8,8]) -> (%y, %z) {\n"
    "  %w: const f32[1,3,1,1] = [1.0, 2.0, 3.0]\n"
    "  %c: f32[1,1,8,8] = Conv(%x, %w) @name(\"shared\") @from(\"shared (Conv)\")\n"
    "  %y: f32[1,1,8,8] = Relu(%c) @name(\"first\") @from(\"first (Relu)\")\n"
    "  %z: f32[1,1,8,8] = Sigmoid(%c) @name(\"second\") @from(\"second (Sigmoid)\")\n"
    "}\n";

Json json_of(const std::string& arguments) {
  const ProcessResult r = run_regie(arguments);
  EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
  EXPECT_EQ(r.err, "") << arguments << ": nothing is told where nobody watches";
  Json j = Json::parse(r.out, nullptr, false);
  EXPECT_FALSE(j.is_discarded()) << arguments << ": " << r.out.substr(0, 400);
  return j;
}

std::string offline_digits(const Scratch& scratch, const std::string& more = "") {
  const std::string path = scratch.path("digits.rgm");
  const ProcessResult r =
      run_regie("compile " + shell_word(kDigits) + " -o " + shell_word(path) + " " + more);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return path;
}

TEST(Bench, FiguresFollowFromTheSamples) {
  Scratch scratch;
  const Json j = json_of("bench " + shell_word(offline_digits(scratch)) +
                         " --duration 0.05 --warm-up-ms 5 --iterations 25 --threads 2 --json");
  std::vector<double> samples = j.at("samples_ms");
  ASSERT_GE(samples.size(), 25u);
  EXPECT_EQ(j.at("iterations"), samples.size());
  double sum = 0, squares = 0;
  for (double s : samples) sum += s;
  EXPECT_GE(sum, 45) << "about the duration that was asked for";
  const double n = static_cast<double>(samples.size()), mean = sum / n;
  for (double s : samples) squares += (s - mean) * (s - mean);
  const double variation = std::sqrt(squares / (n - 1)) / mean;
  std::sort(samples.begin(), samples.end());
  const Json& latency = j.at("latency_ms");
  EXPECT_DOUBLE_EQ(latency.at("min"), samples.front());
  EXPECT_DOUBLE_EQ(latency.at("max"), samples.back());
  EXPECT_NEAR(latency.at("mean"), mean, 1e-9);
  const size_t half = samples.size() / 2;
  EXPECT_DOUBLE_EQ(latency.at("median"),
                   samples.size() % 2 ? samples[half] : (samples[half - 1] + samples[half]) / 2);
  for (auto [key, share] : {std::pair("p90", 0.90), {"p95", 0.95}, {"p99", 0.99}}) {
    const double at = latency.at(key);
    const auto below = std::upper_bound(samples.begin(), samples.end(), at) - samples.begin();
    const auto under = std::lower_bound(samples.begin(), samples.end(), at) - samples.begin();
    EXPECT_GE(static_cast<double>(below), share * n) << key;
    EXPECT_LT(static_cast<double>(under), share * n) << key << ": a lesser sample would do";
  }
  EXPECT_NEAR(j.at("coefficient_of_variation"), variation, 1e-9);
  EXPECT_EQ(j.at("unstable"), variation > 0.025);
  EXPECT_NEAR(j.at("throughput_per_s"), 1000 * n / sum, 0.01 * 1000 * n / sum);
  EXPECT_EQ(j.at("threads"), 2);
  EXPECT_EQ(j.at("compiled"), false);
  for (const char* key : {"load_ms", "session_ms", "first_inference_ms", "peak_resident_bytes"})
    EXPECT_GT(j.at(key).get<double>(), 0) << key;
  const double reference = j.at("reference_kernels").at("share");
  double parts = 0;
  for (const auto& [op, share] : j.at("reference_kernels").at("by_operator").items())
    parts += share.get<double>();
  EXPECT_GE(reference, 0);
  EXPECT_LE(reference, 1);
  EXPECT_NEAR(parts, reference, 1e-9);
}

TEST(Bench, ShapesOfRandomInputs) {
  Scratch scratch;
  const std::string few = " --duration 0 --warm-up-ms 0 --json";
  const Json fixed = json_of("bench " + shell_word(kDigits) + " --shape x=4,1,8,8" + few);
  EXPECT_EQ(fixed.at("inputs")[0].at("dims"), Json::parse("[4,1,8,8]"));
  EXPECT_EQ(fixed.at("iterations"), 10);
  EXPECT_EQ(fixed.at("compiled"), true);
  const std::string offline = shell_word(offline_digits(scratch));
  EXPECT_EQ(json_of("bench " + offline + " --shape x=3,1,8,8" + few).at("inputs")[0].at("dims"),
            Json::parse("[3,1,8,8]"));
  for (const char* wrong : {"--shape y=1,1,8,8", "--shape x=1,8", "--shape x=a,1,8,8", "--shape x=1,2,8,8",
                            "--iterations 0", "--duration -1", "--input x=/nowhere.npy", "--threads 0"}) {
    const ProcessResult r = run_regie("bench " + offline + " " + wrong);
    EXPECT_EQ(r.exit_code, 2) << wrong << r.err;
    EXPECT_EQ(r.out, "") << wrong;
  }
}

struct Slice {
  double begin, end;
  Json event;
};

// Every task once a run on the lane of its stream, inside of the run, and never two at a time on a lane.
void check_trace(const Json& trace, const Json& plan, size_t runs) {
  std::map<std::pair<int, int>, std::vector<Slice>> lanes;
  std::map<uint64_t, int> arrows;
  std::set<std::string> names;
  size_t copies = 0, events = 0;
  for (const Json& e : trace.at("traceEvents")) {
    const std::string phase = e.at("ph");
    if (phase == "M") {
      names.insert(e.at("args").at("name").get<std::string>());
    } else if (phase == "X") {
      ASSERT_GE(e.at("dur").get<double>(), 0);
      lanes[{e.at("pid"), e.at("tid")}].push_back(
          {e.at("ts"), e.at("ts").get<double>() + e.at("dur").get<double>(), e});
      copies += e.at("cat") == "copy";
    } else {
      ASSERT_TRUE(phase == "s" || phase == "f") << phase;
      arrows[e.at("id")] += phase == "s" ? 1 : -1;
      events += phase == "s" && e.at("cat") == "event";
    }
  }
  for (const auto& [id, balance] : arrows) EXPECT_EQ(balance, 0) << id;
  size_t tasks = 0, waits = 0, copy_tasks = 0;
  for (const Json& t : plan.at("programs")[0].at("tasks")) {
    ++tasks;
    waits += t.contains("waits") ? t["waits"].size() : 0;
    copy_tasks += t.at("kind") == "copy";
  }
  EXPECT_EQ(copies, runs * copy_tasks);
  EXPECT_EQ(events, runs * waits);
  EXPECT_TRUE(names.count("host"));
  size_t on_devices = 0;
  for (auto& [lane, slices] : lanes) {
    std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    if (lane.first == 1) continue;  // the host's slices lie within its runs
    on_devices += slices.size();
    for (size_t i = 1; i < slices.size(); ++i)
      EXPECT_LE(slices[i - 1].end, slices[i].begin + 0.002) << slices[i].event.dump();
  }
  EXPECT_EQ(on_devices, runs * tasks);
  std::vector<Slice> spans;
  for (const Slice& s : lanes[{1, 0}])
    if (s.event.at("cat") == "run") spans.push_back(s);
  ASSERT_EQ(spans.size(), runs);
  for (const auto& [lane, slices] : lanes)
    for (const Slice& s : slices)
      EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&](const Slice& run) {
        return run.begin <= s.begin + 0.002 && s.end <= run.end + 0.002;
      })) << s.event.dump();
}

TEST(Profile, TraceHasEveryTaskOnTheLaneOfItsStream) {
  for (const char* target : {"host_cpu", "host_and_null"}) {
    Scratch scratch;
    const std::string rgm = offline_digits(scratch, std::string("--target ") + target);
    const Json summary = json_of("profile " + shell_word(rgm) + " -o " +
                                 shell_word(scratch.path("trace.json")) + " --runs 3 --json");
    const Json trace = Json::parse(slurp(scratch.path("trace.json")));
    const Json plan = Json::parse(api::Model::load(rgm).plan());
    ASSERT_NO_FATAL_FAILURE(check_trace(trace, plan, 3)) << target;
    // Slices carry the framework's names.
    const std::string text = trace.dump();
    for (const std::string& part :
         {std::string("widen.conv (Conv) + widen.norm (BatchNormalization) + widen.relu (Relu)"),
          "\"kernel\":\"" + small_convolution()})
      EXPECT_NE(text.find(part), std::string::npos) << part;
    double share = 0;
    for (const Json& part : summary.at("by_operator")) share += part.at("share").get<double>();
    EXPECT_NEAR(share, 1, 1e-6);
    EXPECT_LE(summary.at("kernels_ms_a_run"), summary.at("run_ms").at("max"));
  }
}

TEST(Profile, TimesThroughTheApi) {
  api::Model model = api::Model::compile(kDigits);
  api::Session session(model);
  api::Context context = session.acquire();
  const std::vector<float> image(64, 0.5f);
  const int64_t dims[] = {1, 1, 8, 8};
  const regie_tensor x = api::tensor<float>(image, dims);
  context.run({&x, 1});
  EXPECT_TRUE(context.task_times().empty());
  context.set_profiling(true);
  context.run({&x, 1});
  const auto times = context.task_times();
  ASSERT_EQ(times.size(), Json::parse(model.plan()).at("programs")[0].at("tasks").size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].task, i);
    EXPECT_LE(times[i].issue_ns, times[i].begin_ns);
    EXPECT_LE(times[i].begin_ns, times[i].end_ns);
    EXPECT_LE(times[i].end_ns, times[i].issued_ns) << "host_cpu runs it before it returns";
    if (i) {
      EXPECT_LE(times[i - 1].issued_ns, times[i].issue_ns);
    }
  }
  context.set_profiling(false);
  context.run({&x, 1});
  EXPECT_TRUE(context.task_times().empty());
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  for (char c : line) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

struct Row {
  uint64_t id, lower, upper, size, offset;
  std::string alias, kind, space;
};

std::vector<Row> read_plan(const std::string& path) {
  std::istringstream text(slurp(path));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "id,lower,upper,size,offset,alias,kind,space,name");
  std::vector<Row> rows;
  while (std::getline(text, line)) {
    const auto c = cells(line);
    EXPECT_EQ(c.size(), 9u) << line;
    rows.push_back({std::stoull(c[0]), std::stoull(c[1]), std::stoull(c[2]), std::stoull(c[3]),
                    std::stoull(c[4]), c[5], c[6], c[7]});
  }
  return rows;
}

TEST(ExportPlan, BothFiguresCanBeComputedAgain) {
  for (const char* options : {"", "--target host_and_null", "--no-optimise", "--shape x=16,1,8,8"}) {
    Scratch scratch;
    const Json report =
        json_of("compile " + shell_word(kDigits) + " -o " + shell_word(scratch.path("d.rgm")) +
                " --export-plan " + shell_word(scratch.path("plan.csv")) + " --json " + options);
    const std::vector<Row> rows = read_plan(scratch.path("plan.csv"));
    ASSERT_FALSE(rows.empty());
    uint64_t arenas = 0, bounds = 0;
    for (const Json& memory : report.at("memory")) {
      std::map<uint64_t, int64_t> changes;
      uint64_t arena = 0;
      for (const Row& r : rows) {
        if (r.space != memory.at("space").get<std::string>()) continue;
        EXPECT_LT(r.lower, r.upper);
        changes[r.lower] += static_cast<int64_t>(r.size);
        changes[r.upper] -= static_cast<int64_t>(r.size);
        arena = std::max(arena, r.offset + r.size);
        if (!r.alias.empty()) {
          ASSERT_LT(std::stoull(r.alias), rows.size());
          const Row& base = rows[std::stoull(r.alias)];
          EXPECT_EQ(base.alias, "");
          EXPECT_TRUE(base.offset <= r.offset && r.offset < base.offset + base.size);
          EXPECT_EQ(r.size, 0u) << "a view takes no bytes of its own";
          continue;
        }
        for (const Row& o : rows)
          if (o.id < r.id && o.space == r.space && o.alias.empty() && o.lower < r.upper &&
              r.lower < o.upper) {
            EXPECT_TRUE(o.offset + o.size <= r.offset || r.offset + r.size <= o.offset)
                << o.id << " and " << r.id;
          }
      }
      int64_t live = 0, bound = 0;
      for (const auto& [step, change] : changes) bound = std::max(bound, live += change);
      EXPECT_EQ(memory.at("arena_bytes"), arena) << options;
      EXPECT_EQ(memory.at("lower_bound_bytes"), static_cast<uint64_t>(bound)) << options;
      arenas += arena;
      bounds += static_cast<uint64_t>(bound);
    }
    EXPECT_EQ(report.at("arena_bytes"), arenas);
    EXPECT_EQ(report.at("arena_lower_bound_bytes"), bounds);
    for (const char* key : {"operators_before", "operators_after", "fusions", "stages",
                            "sum_of_tensors_bytes", "tasks", "streams", "events", "compile_ms"})
      EXPECT_TRUE(report.contains(key)) << key;
  }
}

TEST(ExportPlan, AFolderThatIsNotThereIsAnError) {
  Scratch scratch;
  const ProcessResult r = run_regie("compile " + shell_word(kDigits) + " -o " +
                                    shell_word(scratch.path("d.rgm")) + " --export-plan /nowhere/plan.csv");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("/nowhere/plan.csv"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("d.rgm")));
}

TEST(Explain, ANodeThatWasFusedAway) {
  Scratch scratch;
  const std::string rgm = offline_digits(scratch);
  for (const std::string& model : {kDigits, rgm}) {
    const ProcessResult r = run_regie("explain " + shell_word(model) + " block1.norm1");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("rule conv-batchnorm"));
    EXPECT_THAT(r.out,
                HasSubstr("node 'block1.conv1' (regie.FusedConv) on cpu, kernel " + small_convolution()));
    EXPECT_THAT(r.out, HasSubstr("us (" + small_convolution())) << "what the engine said when it was asked";
    EXPECT_THAT(r.out, HasSubstr("made from: block1.conv1 (Conv), block1.norm1 (BatchNormalization)"));
  }
  // The ledger that is kept says the same as a fresh one, as nothing of a small model is left out of it.
  for (const char* what : {"block1.norm1", "scores", "x", "--rule conv-activation", "head.flatten", ""}) {
    Json fresh = json_of("explain " + shell_word(kDigits) + " " + what + " --json");
    Json kept = json_of("explain " + shell_word(rgm) + " " + what + " --json");
    fresh.erase("model");
    kept.erase("model");
    EXPECT_EQ(fresh, kept) << what;
  }
}

// Of pooling and soft-max, which the target's `null` takes, the user keeps one node and one operator back.
// The embedding API gives the words of the command, of a model in memory and of its file.
TEST(Explain, ThroughTheApi) {
  Scratch scratch;
  const std::string rgm = offline_digits(scratch);
  const api::Model compiled = api::Model::compile(kDigits), loaded = api::Model::load(rgm);
  const std::vector<std::pair<std::string, api::Options>> questions = {
      {"", {}},
      {"--json", {{"json", "1"}}},
      {"block1.norm1", {{"node", "block1.norm1"}}},
      {"--rule conv-activation --json", {{"rule", "conv-activation"}, {"json", "1"}}},
      {"scores --all", {{"node", "scores"}, {"all", "1"}}}};
  for (const auto& [words, options] : questions) {
    EXPECT_EQ(run_regie("explain " + shell_word(rgm) + " " + words).out, loaded.explain(options)) << words;
    EXPECT_EQ(run_regie("explain " + shell_word(kDigits) + " " + words).out, compiled.explain(options))
        << words;
  }
  EXPECT_THROW(compiled.explain({{"node", "block1.norm"}}), api::Error);
  EXPECT_THAT(regie_last_error(), HasSubstr("did you mean 'block1.norm1'?"));
}

TEST(Explain, EnginesByTheUsersWord) {
  Scratch scratch;
  const std::string pipeline = scratch.write("mine.toml", R"(schema = 1
name = "mine"
extends = "default"
[[force]]
engine = "cpu"
node = "second"
[[force]]
engine = "cpu"
operator = "Softmax"
)");
  const std::string model = scratch.write("three.rg", R"(
graph @three(%x: f32[1,4,8,8]) -> (%y) {
  %a: f32[1,4,4,4] = MaxPool(%x) {kernel_shape = [2,2], strides = [2,2]} @name("first")
  %b: f32[1,4,2,2] = MaxPool(%a) {kernel_shape = [2,2], strides = [2,2]} @name("second")
  %y: f32[1,4,2,2] = Softmax(%b) {axis = 1} @name("third")
}
)");
  auto engines = [&](const std::string& options) {
    const Json j = json_of("compile " + shell_word(model) + " -o " + shell_word(scratch.path("m.rgm")) +
                           " --target host_and_null --json " + options);
    std::string list;
    for (const Json& p : j.at("placements")) list += p.at("engine").get<std::string>() + " ";
    return list;
  };
  EXPECT_EQ(engines(""), "null null null ");
  EXPECT_EQ(engines("--set placement=greedy"), "null null null ");
  EXPECT_EQ(engines("--pipeline " + shell_word(pipeline)), "null cpu cpu ");
  const ProcessResult r = run_regie("explain " + shell_word(model) +
                                    " second --target host_and_null --pipeline " + shell_word(pipeline));
  EXPECT_THAT(r.out, HasSubstr("asked for by the user")) << r.err;
  // Nodes that an operator became a part of are meant, too: here two became one element-wise pass.
  const std::string chain = scratch.write("chain.rg", R"(
graph @chain(%x: f32[64]) -> (%y) {
  %a: f32[64] = Sigmoid(%x) @name("first")
  %y: f32[64] = Tanh(%a) @name("second")
}
)");
  const std::string tanh = scratch.write("tanh.toml",
                                         "schema = 1\nname = \"mine\"\nextends = "
                                         "\"default\"\n[[force]]\nengine = \"null\"\noperator = \"Tanh\"\n");
  const ProcessResult no =
      run_regie("compile " + shell_word(chain) + " -o " + shell_word(scratch.path("c.rgm")) +
                " --target host_and_null --pipeline " + shell_word(tanh));
  EXPECT_EQ(no.exit_code, 2);
  EXPECT_THAT(no.err, HasSubstr("null"));
  EXPECT_THAT(no.err, HasSubstr("regie.Pointwise"));
}

TEST(Explain, WhyItWasNotFusedAndWhoIsInTheWay) {
  Scratch scratch;
  const std::string model = scratch.write("branch.rg", kBranch);
  for (const char* name : {"shared", "c"}) {
    const Json j = json_of("explain " + shell_word(model) + " " + name + " --json");
    std::map<std::string, Json> rules;
    for (const Json& r : j.at("rules")) rules[r.at("name")] = r;
    ASSERT_TRUE(rules.count("conv-activation")) << j.dump(1);
    const Json& stopped = rules["conv-activation"].at("stopped");
    ASSERT_GE(stopped.size(), 1u);
    EXPECT_EQ(stopped[0].at("at"), "node 'first' (Relu)");
    EXPECT_THAT(stopped[0].at("stopped").get<std::string>(), HasSubstr("%c has 2 readers"));
    EXPECT_EQ(stopped[0].at("in_the_way"), "node 'second' (Sigmoid)");
    ASSERT_EQ(j.at("runs_as").size(), 1u);
    EXPECT_EQ(j["runs_as"][0].at("engine"), "cpu");
    EXPECT_NE(j["runs_as"][0].at("reason"), "");
  }
  const ProcessResult all = run_regie("explain " + shell_word(model));
  EXPECT_THAT(all.out, HasSubstr("conv-activation, 2 nodes: when: single-use(%c)"));
  const ProcessResult rule = run_regie("explain " + shell_word(model) + " --rule conv-activation");
  EXPECT_THAT(rule.out, HasSubstr("in the way: node 'second' (Sigmoid)"));
}

TEST(Explain, NamesThatAreNotThere) {
  struct Case {
    const char *arguments, *words;
  };
  for (const Case& c :
       {Case{"block1.nrm1", "did you mean 'block1.norm1'?"},
        Case{"--rule conv-activaton", "did you mean 'conv-activation'?"},
        Case{"--rule zzzz", " rules the nearest are: "}, Case{"utterly-different", "near names: "},
        Case{"stem.conv --rule gemm", "one of them"}}) {
    const ProcessResult r = run_regie("explain " + shell_word(kDigits) + " " + c.arguments);
    EXPECT_EQ(r.exit_code, 2) << c.arguments;
    EXPECT_EQ(r.out, "") << c.arguments;
    EXPECT_THAT(r.err, HasSubstr(c.words)) << c.arguments;
  }
}

TEST(Progress, ACompileTellsWhereItStands) {
  std::vector<std::string> told;
  regie_set_progress(
      [](void* context, const char* what, uint64_t done, uint64_t total) {
        EXPECT_LE(done, total);
        static_cast<std::vector<std::string>*>(context)->push_back(what);
      },
      &told);
  api::Model::compile(kDigits);
  const size_t count = told.size();
  regie_set_progress(nullptr, nullptr);
  api::Model::compile(kDigits);
  EXPECT_EQ(told.size(), count);
  for (const char* what : {"reading the model", "compiling: fuse", "compiling kernels", "making the model"})
    EXPECT_THAT(told, testing::Contains(what));
}

TEST(Verbosity, TwoVsTellEachPatch) {
  Scratch scratch;
  const std::string rest = " compile " + shell_word(kDigits) + " -o " + shell_word(scratch.path("d.rgm"));
  const std::string one = run_regie("-v" + rest).err, two = run_regie("-vv" + rest).err;
  EXPECT_THAT(one, HasSubstr("fuse"));
  EXPECT_THAT(one, testing::Not(HasSubstr("'rule conv-batchnorm'")));
  EXPECT_THAT(two, HasSubstr("'rule conv-batchnorm': node 'stem.norm' (BatchNormalization)"));
}

}  // namespace
}  // namespace regie::test
