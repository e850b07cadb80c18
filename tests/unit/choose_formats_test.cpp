// The labelling behind choose-formats against exhaustive search: exact where the graph is series-parallel,
// never improvable by one vertex elsewhere. Its time at scale is in tests/bench/scale_bench.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "choose-formats/labelling.h"

namespace {

using choose_formats::kImpossible;
using choose_formats::Labelling;

struct Problem {
  std::vector<std::vector<double>> vertices;
  struct Edge {
    uint32_t a, b;
    std::vector<double> costs;
  };
  std::vector<Edge> edges;

  double cost(const std::vector<uint32_t>& options) const {
    double sum = 0;
    for (size_t v = 0; v < vertices.size(); ++v) sum += vertices[v][options[v]];
    for (const Edge& e : edges) sum += e.costs[options[e.a] * vertices[e.b].size() + options[e.b]];
    return sum;
  }
  std::vector<uint32_t> solve() const {
    Labelling l;
    for (const auto& costs : vertices) l.add_vertex(costs);
    for (const Edge& e : edges) l.add_edge(e.a, e.b, e.costs);
    return l.solve();
  }
  double best() const {
    std::vector<uint32_t> options(vertices.size(), 0);
    double least = cost(options);
    for (;;) {
      size_t v = 0;
      while (v < vertices.size() && ++options[v] == vertices[v].size()) options[v++] = 0;
      if (v == vertices.size()) return least;
      least = std::min(least, cost(options));
    }
  }
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}
  uint32_t vertex(Problem& p) {
    std::vector<double> costs(1 + random_() % 3);
    for (double& c : costs) c = -static_cast<double>(random_() % 1000);
    p.vertices.push_back(costs);
    return static_cast<uint32_t>(p.vertices.size() - 1);
  }
  void edge(Problem& p, uint32_t a, uint32_t b) {
    std::vector<double> costs(p.vertices[a].size() * p.vertices[b].size());
    for (double& c : costs) c = random_() % 10 == 0 ? kImpossible : static_cast<double>(random_() % 1000);
    costs[0] = 0;  // row-major to row-major: a solution always exists
    p.edges.push_back({a, b, costs});
  }
  uint64_t below(uint64_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

// An edge between two vertices is replaced by a vertex on it, or doubled, at random.
TEST(ChooseFormats, IsExactOnSeriesParallelGraphs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Maker make(seed);
    Problem p;
    std::vector<std::pair<uint32_t, uint32_t>> links;
    const uint32_t first = make.vertex(p), second = make.vertex(p);
    links.emplace_back(first, second);
    while (p.vertices.size() < 8) {
      const auto [a, b] = links[make.below(links.size())];
      const uint32_t middle = make.vertex(p);
      links.emplace_back(a, middle);
      links.emplace_back(middle, b);
    }
    for (const auto& [a, b] : links) make.edge(p, a, b);
    EXPECT_NEAR(p.cost(p.solve()), p.best(), 1e-6) << "seed " << seed;
  }
}

// Ten vertices and edges at random, dense ones too.
TEST(ChooseFormats, IsExactOnSmallGraphs) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Maker make(seed);
    Problem p;
    const uint64_t count = 2 + make.below(9), edges = make.below(46);
    for (uint64_t i = 0; i < count; ++i) make.vertex(p);
    for (uint64_t i = 0; i < edges; ++i) {
      const auto a = static_cast<uint32_t>(make.below(count)), b = static_cast<uint32_t>(make.below(count));
      if (a != b) make.edge(p, a, b);
    }
    EXPECT_NEAR(p.cost(p.solve()), p.best(), 1e-6) << "seed " << seed;
  }
}

TEST(ChooseFormats, CannotBeImprovedByOneVertexElsewhere) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Maker make(seed);
    Problem p;
    for (int i = 0; i < 30; ++i) make.vertex(p);
    for (int i = 0; i < 120; ++i) {
      const auto a = static_cast<uint32_t>(make.below(30)), b = static_cast<uint32_t>(make.below(30));
      if (a != b) make.edge(p, a, b);
    }
    std::vector<uint32_t> options = p.solve();
    const double found = p.cost(options);
    EXPECT_LT(found, kImpossible) << "seed " << seed;
    for (size_t v = 0; v < p.vertices.size(); ++v) {
      const uint32_t kept = options[v];
      for (options[v] = 0; options[v] < p.vertices[v].size(); ++options[v])
        EXPECT_GE(p.cost(options), found - 1e-3) << "seed " << seed;
      options[v] = kept;
    }
  }
}

// One source that feeds many places of a chain: for each option of the source the best of the chain is found
// by going along it.
TEST(ChooseFormats, IsExactOnFiftyThousandVertices) {
  Maker make(1);
  Problem p;
  make.vertex(p);
  std::vector<const std::vector<double>*> along(50000), from_source(50000);
  for (uint32_t i = 1; i < 50000; ++i) make.vertex(p);
  p.edges.reserve(2 * p.vertices.size());
  for (uint32_t i = 1; i < 50000; ++i) {
    make.edge(p, i - 1, i);
    along[i] = &p.edges.back().costs;
    if (i % 11 != 0) continue;
    make.edge(p, 0, i);
    from_source[i] = &p.edges.back().costs;
  }
  double least = kImpossible;
  for (size_t source = 0; source < p.vertices[0].size(); ++source) {
    std::vector<double> best(p.vertices[0].size(), kImpossible);
    best[source] = p.vertices[0][source];
    for (size_t i = 1; i < p.vertices.size(); ++i) {
      const size_t options = p.vertices[i].size();
      std::vector<double> next(options, kImpossible);
      for (size_t o = 0; o < options; ++o) {
        for (size_t before = 0; before < best.size(); ++before)
          next[o] = std::min(next[o], best[before] + (*along[i])[before * options + o]);
        next[o] += p.vertices[i][o];
        if (from_source[i]) next[o] += (*from_source[i])[source * options + o];
      }
      best = std::move(next);
    }
    least = std::min(least, *std::min_element(best.begin(), best.end()));
  }
  EXPECT_LT(least, kImpossible);
  EXPECT_NEAR(p.cost(p.solve()), least, 1e-3);
}

}  // namespace
