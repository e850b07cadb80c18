// Graphs of a size that shows what is quadratic: a chain of 100,000 nodes, and a value with 50,000 readers.
// Each step must take less than a second of processor time in a release build; the process fails otherwise.
#include "bench/cpu_limit.h"
#include "ir/edit.h"
#include "ir/verify.h"
#include "support/fake_op_set.h"
#include "text/text.h"

namespace regie {
namespace {

using bench::need;
using bench::timed;

constexpr uint32_t kChain = 100'000, kReaders = 50'000;

std::unique_ptr<Graph> chain() {
  auto g = std::make_unique<Graph>();
  g->set_name("chain");
  const regie_dim n = g->dims().symbol("N", 1, 64);
  const regie_dim dims[] = {n, 16};
  uint32_t v = g->add_argument(0, g->make_type(REGIE_F32, dims), "x");
  regie_type type = g->value(v).type;
  for (uint32_t i = 0; i < kChain; ++i) {
    NodeSpec spec;
    spec.op = i % 2 ? "Identity" : "Relu";
    spec.name = "layer" + std::to_string(i);
    spec.operands = {v};
    spec.attrs = {AttrValue::integer("axis", i % 7)};
    spec.origins = {g->add_origin(spec.name + " (" + spec.op + ")")};
    spec.result_names = {"v" + std::to_string(i)};
    v = g->results(g->add_node(0, spec))[0];
    g->set_type(v, type);
  }
  const uint32_t results[] = {v};
  g->set_region_results(0, results);
  return g;
}

// One Identity read by kReaders nodes, each an Identity that a Sink reads.
std::unique_ptr<Graph> fan() {
  auto g = std::make_unique<Graph>();
  g->set_name("fan");
  const regie_dim dims[] = {4};
  uint32_t x = g->add_argument(0, g->make_type(REGIE_F32, dims), "x");
  regie_type type = g->value(x).type;
  NodeSpec spec;
  spec.op = "Identity";
  spec.operands = {x};
  spec.result_names = {"popular"};
  uint32_t popular = g->results(g->add_node(0, spec))[0];
  g->set_type(popular, type);
  for (uint32_t i = 0; i < kReaders; ++i) {
    NodeSpec reader;
    reader.op = "Identity";
    reader.operands = {popular};
    uint32_t v = g->results(g->add_node(0, reader))[0];
    g->set_type(v, type);
    NodeSpec sink;
    sink.op = "Sink";
    sink.operands = {v};
    sink.result_count = 0;
    g->add_node(0, sink);
  }
  const uint32_t results[] = {popular};
  g->set_region_results(0, results);
  return g;
}

// Takes out every Identity that `which` selects, a patch each.
template <class F>
void drop_identities(Graph& g, uint32_t expected, F&& which) {
  test::FakeOpSet ops;
  Edit edit(g);
  g.for_each_node([&](uint32_t n) {
    if (view(g.node(n).op) != "Identity" || !which(n)) return;
    need(edit.begin("drop identity", n));
    // An Identity of an Identity: the patch before replaced what this one reads, so name what is left.
    need(edit.replace(g.results(n)[0], g.operands(n)[0]));
    need(edit.remove(n));
    need(edit.commit());
  });
  auto outcome = edit.apply(ops);
  need(outcome.status());
  if (outcome->applied.size() != expected || outcome->dropped != 0) {
    std::fprintf(stderr, "%zu patches applied, %u dropped; expected %u\n", outcome->applied.size(),
                 outcome->dropped, expected);
    std::exit(1);
  }
}

template <class Make>
void parse_text(benchmark::State& state, Make make) {
  std::string text = print(*make());
  timed(
      state, [&] { return text; },
      [](const std::string& t) {
        auto g = parse(t, "bench.rg");
        need(g.status());
        benchmark::DoNotOptimize(g->get());
      });
}
template <class Make>
void verify_graph(benchmark::State& state, Make make) {
  timed(state, make, [](auto& g) { need(verify(*g)); });
}
template <class Make>
void print_graph(benchmark::State& state, Make make) {
  timed(state, make, [](auto& g) { benchmark::DoNotOptimize(print(*g).size()); });
}

void chain_drop(benchmark::State& state) {
  timed(state, chain, [](auto& g) { drop_identities(*g, kChain / 2, [](uint32_t) { return true; }); });
}
void fan_drop_readers(benchmark::State& state) {
  timed(state, fan, [](auto& g) { drop_identities(*g, kReaders, [](uint32_t n) { return n != 0; }); });
}
void fan_replace_popular(benchmark::State& state) {
  timed(state, fan, [](auto& g) { drop_identities(*g, 1, [](uint32_t n) { return n == 0; }); });
}
// A node that 50,000 others wait for is taken out: they wait for what it waited for.
void control_fan_drop(benchmark::State& state) {
  const auto make = [] {
    auto g = std::make_unique<Graph>();
    NodeSpec spec;
    spec.op = "Make";
    spec.result_count = 0;
    const uint32_t first = g->add_node(0, spec);
    spec.control = {first};
    const uint32_t gate = g->add_node(0, spec);
    spec.control = {gate};
    for (uint32_t i = 0; i < kReaders; ++i) g->add_node(0, spec);
    return g;
  };
  timed(state, make, [](auto& g) {
    test::FakeOpSet ops;
    Edit edit(*g);
    need(edit.begin("drop gate", 1));
    need(edit.remove(1));
    need(edit.commit());
    auto outcome = edit.apply(ops);
    need(outcome.status());
    need(verify(*g));
    if (g->control_readers(0).size() != kReaders) std::exit(1);
  });
}
// All new nodes stand before the last reader, so each patch must move the readers of what it replaced.
void chain_repair_order(benchmark::State& state) {
  timed(state, chain, [](auto& g) {
    test::FakeOpSet ops;
    Edit edit(*g);
    for (uint32_t n = 0; n + 10 < kChain; n += 20) {
      need(edit.begin("late", n + 9));
      NodeSpec spec;
      spec.op = "Neg";
      spec.operands = {g->operands(n)[0]};
      auto made = edit.node(spec);
      need(made.status());
      need(edit.replace(g->results(n)[0], (*made)[0]));
      need(edit.remove(n));
      need(edit.commit());
    }
    auto outcome = edit.apply(ops);
    need(outcome.status());
    need(verify(*g));
  });
}
// Inserting at one place over and over exhausts the labels of program order.
void insert_at_one_place(benchmark::State& state) {
  timed(
      state, [] { return std::make_unique<Graph>(); },
      [](auto& g) {
        NodeSpec spec;
        spec.op = "Make";
        uint32_t last = g->add_node(0, spec);
        for (uint32_t i = 0; i < kChain; ++i) g->add_node(0, spec, i % 2 ? last : g->node(last).prev);
        need(verify(*g));
      });
}

#define REGIE_SCALE(name, ...) \
  BENCHMARK_CAPTURE(__VA_ARGS__)->Name(name)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond)
REGIE_SCALE("ir_scale/chain/parse", parse_text, chain, chain);
REGIE_SCALE("ir_scale/chain/verify", verify_graph, chain, chain);
REGIE_SCALE("ir_scale/chain/print", print_graph, chain, chain);
REGIE_SCALE("ir_scale/fan/parse", parse_text, fan, fan);
REGIE_SCALE("ir_scale/fan/verify", verify_graph, fan, fan);
REGIE_SCALE("ir_scale/fan/print", print_graph, fan, fan);
#define REGIE_SCALE_PLAIN(name, f) \
  BENCHMARK(f)->Name(name)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond)
REGIE_SCALE_PLAIN("ir_scale/chain/drop_50000_nodes", chain_drop);
REGIE_SCALE_PLAIN("ir_scale/fan/drop_50000_readers", fan_drop_readers);
REGIE_SCALE_PLAIN("ir_scale/control_fan/drop_gate", control_fan_drop);
REGIE_SCALE_PLAIN("ir_scale/fan/replace_popular", fan_replace_popular);
REGIE_SCALE_PLAIN("ir_scale/chain/repair_order", chain_repair_order);
REGIE_SCALE_PLAIN("ir_scale/insert_at_one_place", insert_at_one_place);

}  // namespace
}  // namespace regie
