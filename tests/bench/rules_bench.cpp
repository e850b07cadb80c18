// Rules at scale: 20 rules on graphs of 100,000 nodes, and on a value with 50,000 readers. Each stays
// below a second.
#include "bench/cpu_limit.h"
#include "ir/edit.h"
#include "regie_test_paths.h"
#include "rules/rules.h"

namespace regie {
namespace {

// Elementwise operators only: every result has the type of the first operand.
class SameTypeOps : public OpSet {
 public:
  explicit SameTypeOps(const SchemaSet& schemas) : schemas_(schemas) {}
  Status check(const Graph& graph, uint32_t node) const override { return schemas_.check(graph, node); }
  Status infer(Graph& graph, uint32_t node) const override {
    regie_type type = graph.value(graph.operands(node)[0]).type;
    for (uint32_t r : graph.results(node))
      if (r != REGIE_NONE) graph.set_type(r, type);
    return {};
  }
  uint32_t flags(std::string_view) const override { return 0; }
  Result<std::vector<Tensor>> evaluate(const Graph&, uint32_t, const std::vector<Tensor>&,
                                       uint64_t) const override {
    return unsupported("not computed here");
  }

 private:
  const SchemaSet& schemas_;
};

const SchemaSet& schemas() {
  static const SchemaSet set = [] {
    SchemaSet s;
    for (const char* file : {"elementwise", "fused", "nn", "tensor"})
      if (!s.add_file(std::string(REGIE_TEST_SOURCE_DIR "/configs/ops/") + file + ".toml").ok()) std::abort();
    return s;
  }();
  return set;
}

// Two rules that fire on a chain of Abs, Neg, Relu, Exp, and eighteen that look at the same roots in vain.
std::shared_ptr<const RuleSet> rules() {
  std::string text = "schema = 1\nrevision = \"onnx-21\"\n";
  auto rule = [&](const std::string& name, const std::string& match, const std::string& when,
                  const std::string& replace) {
    text += "[[rule]]\nname = \"" + name + "\"\nmatch = '''\n" + match + "\n'''\nwhen = [" + when +
            "]\nreplace = '''\n" + replace + "\n'''\n";
  };
  for (int i = 0; i < 9; ++i) {
    rule("deep-" + std::to_string(i), "%a = Abs(%x)\n%b = Neg(%a)\n%y = Relu(%b)",
         "\"single-use(%a, %b)\", \"rank(%x) == " + std::to_string(5 + i) + "\"", "%y = Relu(%x)");
    rule("both-orders-" + std::to_string(i), "%a = Abs(%x)\n%y = Add~(%a, %z)", "\"elem(%x) in [f16]\"",
         "%y = Add(%x, %z)");
  }
  rule("abs-neg", "%a = Abs(%x)\n%y = Neg(%a)", "\"single-use(%a)\"", "%y = Abs(%x)");
  rule("relu-exp", "%a = Relu(%x)\n%y = Exp(%a)", "\"single-use(%a)\"", "%y = Exp(%x)");
  auto set = parse_rules(text, "bench.toml", schemas());
  if (!set.ok()) std::abort();
  return *set;
}

uint32_t add(Graph& g, const char* op, std::vector<uint32_t> operands) {
  NodeSpec spec;
  spec.op = op;
  spec.operands = std::move(operands);
  uint32_t v = g.results(g.add_node(0, spec))[0];
  g.set_type(v, g.value(g.operands(g.value(v).owner)[0]).type);
  return v;
}

template <class Build>
void apply_all(benchmark::State& state, Build build) {
  auto set = rules();
  SameTypeOps ops(schemas());
  bench::timed(
      state,
      [&] {
        auto graph = std::make_unique<Graph>();
        build(*graph, state.range(0));
        return graph;
      },
      [&](const std::unique_ptr<Graph>& graph) {
        Edit edit(*graph);
        RuleStatistics statistics;
        ApplyRulesOptions options;
        options.statistics = &statistics;
        auto done = apply_rules(
            *set, *graph, edit, [&] { return edit.apply(ops); }, options);
        bench::need(done.status());
        state.counters["applied"] = static_cast<double>(*done);
      });
}

void BM_RulesChain(benchmark::State& state) {
  apply_all(state, [](Graph& g, int64_t n) {
    const regie_dim dims[] = {4};
    uint32_t v = g.add_argument(0, g.make_type(REGIE_F32, dims), "x");
    const char* ops[] = {"Abs", "Neg", "Relu", "Exp"};
    for (int64_t i = 0; i < n; ++i) v = add(g, ops[i % 4], {v});
    g.set_region_results(0, std::vector<uint32_t>{v});
  });
}
BENCHMARK(BM_RulesChain)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)->UseManualTime();

// Every match swallows the one before: one node is left, by n patches one after the other.
void BM_RulesCollapse(benchmark::State& state) {
  apply_all(state, [](Graph& g, int64_t n) {
    const regie_dim dims[] = {4};
    uint32_t v = g.add_argument(0, g.make_type(REGIE_F32, dims), "x");
    v = add(g, "Abs", {v});
    for (int64_t i = 0; i < n; ++i) v = add(g, "Neg", {v});
    g.set_region_results(0, std::vector<uint32_t>{v});
  });
}
BENCHMARK(BM_RulesCollapse)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)->UseManualTime();

// One value with n readers, all roots; then they are summed up.
void BM_RulesHub(benchmark::State& state) {
  apply_all(state, [](Graph& g, int64_t n) {
    const regie_dim dims[] = {4};
    uint32_t x = add(g, "Abs", {g.add_argument(0, g.make_type(REGIE_F32, dims), "x")});
    uint32_t sum = x;
    for (int64_t i = 0; i < n; ++i) {
      uint32_t r = i % 2 ? add(g, "Neg", {x}) : add(g, "Exp", {add(g, "Relu", {x})});
      sum = i ? add(g, "Add", {sum, r}) : r;
    }
    g.set_region_results(0, std::vector<uint32_t>{sum});
  });
}
BENCHMARK(BM_RulesHub)->Arg(5000)->Arg(50000)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
}  // namespace regie
