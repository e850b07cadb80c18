// fuse-pointwise at scale: a chain of 50,000 element-wise operators, 4,545 branches of eleven from one input,
// and one value with 50,000 readers. Less than a second of processor time each in a release build; the
// process fails otherwise.
#include "bench/cpu_limit.h"
#include "support/pass_harness.h"

namespace regie {
namespace {

using bench::need;

uint32_t add(Graph& g, const char* op, std::vector<uint32_t> operands) {
  NodeSpec spec;
  spec.op = op;
  spec.operands = std::move(operands);
  spec.name = "n" + std::to_string(g.node_count());
  spec.origins = {g.add_origin(spec.name + " (" + op + ")")};
  const uint32_t v = g.results(g.add_node(0, spec))[0];
  g.set_type(v, g.value(g.region(0).args[0]).type);
  return v;
}

// `branches` rows of `length` operators from one input, made one after the other or turn by turn.
std::unique_ptr<Graph> rows(uint32_t branches, uint32_t length, bool by_turns) {
  static constexpr const char* kOps[] = {"Relu", "Add", "Sigmoid", "Mul"};
  auto g = std::make_unique<Graph>();
  g->set_name("rows");
  const regie_dim dims[] = {g->dims().symbol("N", 1, 64), 16};
  const uint32_t x = g->add_argument(0, g->make_type(REGIE_F32, dims), "x");
  std::vector<uint32_t> at(branches, add(*g, "Neg", {x}));
  auto step = [&](uint32_t b, uint32_t i) {
    const bool two = i % 2;
    at[b] = two ? add(*g, kOps[i % 4], {at[b], x}) : add(*g, kOps[i % 4], {at[b]});
  };
  for (uint32_t k = 0; k < branches * length; ++k)
    by_turns ? step(k % branches, k / branches) : step(k / length, k % length);
  g->set_region_results(0, at);
  return g;
}

void fuse(benchmark::State& state, uint32_t branches, uint32_t length, bool by_turns) {
  bench::timed(
      state,
      [&] {
        auto h = std::make_unique<PassHarness>();
        need(h->open());
        h->take_graph(rows(branches, length, by_turns));
        return h;
      },
      [&](const std::unique_ptr<PassHarness>& h) {
        need(h->run_pass("fuse-pointwise"));
        state.counters["patches"] = h->patches;
        if (h->patches == 0) std::exit(1);
      });
}

#define REGIE_FUSE(name, ...)                \
  BENCHMARK_CAPTURE(fuse, name, __VA_ARGS__) \
      ->Name("fuse-pointwise/" #name)        \
      ->UseManualTime()                      \
      ->Iterations(3)                        \
      ->Unit(benchmark::kMillisecond)
REGIE_FUSE(chain_1000, 1, 1000, false);
REGIE_FUSE(chain_50000, 1, 50000, false);
REGIE_FUSE(branches, 4545, 11, false);
REGIE_FUSE(branches_by_turns, 4545, 11, true);
REGIE_FUSE(readers_of_one, 50000, 1, false);

}  // namespace
}  // namespace regie
