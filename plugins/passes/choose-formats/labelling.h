// Choosing one option for each vertex of a graph so that the costs of the options and of the edges between
// them are least in all (the "partitioned boolean quadratic problem"). Vertices of degree 0, 1 and 2 are
// eliminated exactly, so trees, chains and series-parallel networks (residual blocks) get the true optimum.
// Of a larger core the vertex of greatest degree is decided greedily until few are left; these are searched
// by branching and bounding, reducing again after each branch, within a budget that small graphs never reach.
// The result is then improved vertex by vertex until nothing changes. Near-linear in vertices and edges; the
// answer is a function of the input alone.
#pragma once

#include <cstdint>
#include <vector>

namespace choose_formats {

constexpr double kImpossible = 1e18;  // less than infinity, so that sums stay comparable

class Labelling {
 public:
  // The cost of each option; at least one.
  uint32_t add_vertex(std::vector<double> costs);
  // costs[i * options(b) + j]: of option i of `a` beside option j of `b`. Several edges between two add up.
  void add_edge(uint32_t a, uint32_t b, const std::vector<double>& costs);
  void add_cost(uint32_t vertex, uint32_t option, double cost) { vertices_[vertex].costs[option] += cost; }
  // The chosen option of each vertex.
  std::vector<uint32_t> solve() const;
  double cost(const std::vector<uint32_t>& chosen) const;

 private:
  struct Vertex {
    std::vector<double> costs;
    std::vector<uint32_t> edges;
  };
  struct Edge {
    uint32_t a, b;
    std::vector<double> costs;
  };
  friend class Reduction;
  std::vector<Vertex> vertices_;
  std::vector<Edge> edges_;
};

}  // namespace choose_formats
