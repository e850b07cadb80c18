// Algorithms at scale whose unit tests ask for right answers alone: the labelling of choose-formats on 50,000
// vertices, the check of a plan of 10,000 and 100,000 tasks. Less than a second of processor time each in a
// release build; the process fails otherwise.
#include <random>

#include "bench/cpu_limit.h"
#include "choose-formats/labelling.h"
#include "model/plan_check.h"
#include "support/lanes_model.h"

namespace regie {
namespace {

// A chain, and one source that feeds many places of it.
void label_chain(benchmark::State& state) {
  std::mt19937_64 random(1);
  choose_formats::Labelling l;
  const auto vertices = static_cast<uint32_t>(state.range(0));
  auto costs = [&](size_t n) {
    std::vector<double> c(n);
    for (double& x : c) x = static_cast<double>(random() % 1000);
    return c;
  };
  for (uint32_t i = 0; i < vertices; ++i) l.add_vertex(costs(3));
  for (uint32_t i = 1; i < vertices; ++i) {
    l.add_edge(i - 1, i, costs(9));
    if (i % 11 == 0) l.add_edge(0, i, costs(9));
  }
  bench::timed(
      state, [&] { return &l; },
      [](choose_formats::Labelling* of) { benchmark::DoNotOptimize(of->solve()); });
}

void check_lanes(benchmark::State& state) {
  const std::shared_ptr<Model> m = test::two_lanes(static_cast<uint32_t>(state.range(0)));
  bench::timed(
      state, [&] { return m.get(); }, [](const Model* of) { bench::need(check_plan(*of)); });
}

#define REGIE_AT_SCALE(f, name) \
  BENCHMARK(f)->Name(name)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond)
REGIE_AT_SCALE(label_chain, "choose-formats/labelling")->Arg(5000)->Arg(50000);
REGIE_AT_SCALE(check_lanes, "plan_check/lanes")->Arg(10000)->Arg(100000);

}  // namespace
}  // namespace regie
