#include "labelling.h"

#include <algorithm>
#include <set>
#include <utility>

namespace choose_formats {

uint32_t Labelling::add_vertex(std::vector<double> costs) {
  vertices_.push_back({std::move(costs), {}});
  return static_cast<uint32_t>(vertices_.size() - 1);
}

void Labelling::add_edge(uint32_t a, uint32_t b, const std::vector<double>& costs) {
  const auto id = static_cast<uint32_t>(edges_.size());
  edges_.push_back({a, b, costs});
  vertices_[a].edges.push_back(id);
  vertices_[b].edges.push_back(id);
}

double Labelling::cost(const std::vector<uint32_t>& chosen) const {
  double sum = 0;
  for (size_t v = 0; v < vertices_.size(); ++v) sum += vertices_[v].costs[chosen[v]];
  for (const Edge& e : edges_) sum += e.costs[chosen[e.a] * vertices_[e.b].costs.size() + chosen[e.b]];
  return sum;
}

// The problem while it shrinks. An eliminated vertex keeps its costs and edges as they were then: that is all
// that its option depends on once its neighbours' are known.
class Reduction {
 public:
  explicit Reduction(const Labelling& problem) : vertices_(problem.vertices_.size()), problem_(problem) {
    for (size_t v = 0; v < vertices_.size(); ++v) vertices_[v].costs = problem.vertices_[v].costs;
    for (const Labelling::Edge& e : problem.edges_) link(e.a, e.b, e.costs);
    for (uint32_t v = 0; v < vertices_.size(); ++v) queue_.emplace(degree(v), v);
  }

  // Takes out all vertices of degree up to two, the least degree first.
  void eliminate() {
    while (!queue_.empty()) {
      const auto [least, v] = *queue_.begin();
      if (least > 2) return;
      queue_.erase(queue_.begin());
      if (least == 0) base_ += *std::min_element(vertices_[v].costs.begin(), vertices_[v].costs.end());
      if (least == 1) fold_one(v);
      if (least == 2) fold_two(v);
      order_.push_back(v);
    }
  }
  // Of what `eliminate` has left.
  size_t left() const { return queue_.size(); }
  uint32_t greatest() const { return std::prev(queue_.end())->second; }
  std::vector<uint32_t> rest() const {
    std::vector<uint32_t> all;
    for (const auto& [degree, v] : queue_) all.push_back(v);
    std::sort(all.begin(), all.end());
    return all;
  }
  uint32_t options(uint32_t v) const { return static_cast<uint32_t>(vertices_[v].costs.size()); }
  // What remains, as a problem of its own: vertices in the order of `rest`.
  Labelling core() const {
    Labelling out;
    const std::vector<uint32_t> all = rest();
    for (uint32_t v : all) out.add_vertex(vertices_[v].costs);
    auto number = [&](uint32_t v) {
      return static_cast<uint32_t>(std::lower_bound(all.begin(), all.end(), v) - all.begin());
    };
    for (uint32_t v : all)
      for (const Link& l : vertices_[v].links)
        if (l.other > v) out.add_edge(number(v), number(l.other), l.costs);
    return out;
  }
  // No completion costs less.
  double bound() const {
    double sum = base_;
    for (const auto& [degree, v] : queue_) {
      const Vertex& vertex = vertices_[v];
      sum += *std::min_element(vertex.costs.begin(), vertex.costs.end());
      for (const Link& l : vertex.links)
        if (l.other > v) sum += *std::min_element(l.costs.begin(), l.costs.end());
    }
    return sum;
  }
  void decide_greedily() { fix(greatest(), likely(greatest())); }

  // The options of all, once nothing is left.
  std::vector<uint32_t> unwind() {
    chosen_.assign(vertices_.size(), 0);
    for (size_t i = order_.size(); i-- > 0;) chosen_[order_[i]] = best(vertices_[order_[i]]);
    improve();
    return chosen_;
  }

  void fix(uint32_t v, size_t chosen) {
    queue_.erase({degree(v), v});
    Vertex& vertex = vertices_[v];
    base_ += vertex.costs[chosen];
    for (size_t i = 0; i < vertex.costs.size(); ++i)
      if (i != chosen) vertex.costs[i] = kImpossible * 16;
    for (const Link& l : vertex.links) {
      const size_t n = options(l.other);
      unlink(l.other, v);
      for (size_t j = 0; j < n; ++j) vertices_[l.other].costs[j] += l.costs[chosen * n + j];
      requeue(l.other);
    }
    order_.push_back(v);
  }

 private:
  struct Link {
    uint32_t other;
    std::vector<double> costs;  // own option x option of the other
  };
  struct Vertex {
    std::vector<double> costs;
    std::vector<Link> links;  // by `other`, ascending
  };
  uint32_t degree(uint32_t v) const { return static_cast<uint32_t>(vertices_[v].links.size()); }

  static std::vector<double> transposed(const std::vector<double>& m, size_t rows, size_t columns) {
    std::vector<double> t(m.size());
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) t[j * rows + i] = m[i * columns + j];
    return t;
  }
  std::vector<Link>::iterator find(uint32_t v, uint32_t other) {
    std::vector<Link>& links = vertices_[v].links;
    return std::lower_bound(links.begin(), links.end(), other,
                            [](const Link& l, uint32_t o) { return l.other < o; });
  }
  void add_half(uint32_t v, uint32_t other, const std::vector<double>& costs) {
    auto at = find(v, other);
    if (at == vertices_[v].links.end() || at->other != other) {
      vertices_[v].links.insert(at, {other, costs});
      return;
    }
    for (size_t i = 0; i < costs.size(); ++i) at->costs[i] += costs[i];
  }
  void link(uint32_t a, uint32_t b, const std::vector<double>& costs) {
    if (a == b) {
      for (size_t i = 0; i < options(a); ++i) vertices_[a].costs[i] += costs[i * options(a) + i];
      return;
    }
    add_half(a, b, costs);
    add_half(b, a, transposed(costs, options(a), options(b)));
  }
  // Takes `v` out of its neighbour's list; `v` keeps its own.
  void unlink(uint32_t neighbour, uint32_t v) {
    queue_.erase({degree(neighbour), neighbour});
    vertices_[neighbour].links.erase(find(neighbour, v));
  }
  void requeue(uint32_t v) { queue_.emplace(degree(v), v); }

  void fold_one(uint32_t v) {
    const Link& l = vertices_[v].links[0];
    const size_t n = options(l.other);
    unlink(l.other, v);
    for (size_t j = 0; j < n; ++j) {
      double least = kImpossible * 4;
      for (size_t i = 0; i < options(v); ++i)
        least = std::min(least, vertices_[v].costs[i] + l.costs[i * n + j]);
      vertices_[l.other].costs[j] += least;
    }
    requeue(l.other);
  }

  void fold_two(uint32_t v) {
    const Link& y = vertices_[v].links[0];
    const Link& z = vertices_[v].links[1];
    const size_t ny = options(y.other), nz = options(z.other);
    std::vector<double> joint(ny * nz, kImpossible * 4);
    for (size_t j = 0; j < ny; ++j)
      for (size_t k = 0; k < nz; ++k)
        for (size_t i = 0; i < options(v); ++i)
          joint[j * nz + k] =
              std::min(joint[j * nz + k], vertices_[v].costs[i] + y.costs[i * ny + j] + z.costs[i * nz + k]);
    unlink(y.other, v);
    unlink(z.other, v);
    link(y.other, z.other, joint);
    requeue(y.other);
    requeue(z.other);
  }

  // The option that is best if each neighbour may answer for itself.
  size_t likely(uint32_t v) const {
    const Vertex& vertex = vertices_[v];
    size_t chosen = 0;
    double least = kImpossible * 64;
    for (size_t i = 0; i < options(v); ++i) {
      double cost = vertex.costs[i];
      for (const Link& l : vertex.links) {
        const size_t n = options(l.other);
        double beside = kImpossible * 4;
        for (size_t j = 0; j < n; ++j)
          beside = std::min(beside, l.costs[i * n + j] + vertices_[l.other].costs[j]);
        cost += beside;
      }
      if (cost < least) {
        least = cost;
        chosen = i;
      }
    }
    return chosen;
  }

  uint32_t best(const Vertex& vertex) const {
    uint32_t chosen = 0;
    double least = kImpossible * 1024;
    for (uint32_t i = 0; i < vertex.costs.size(); ++i) {
      double cost = vertex.costs[i];
      for (const Link& l : vertex.links) cost += l.costs[i * options(l.other) + chosen_[l.other]];
      if (cost < least) {
        least = cost;
        chosen = i;
      }
    }
    return chosen;
  }

  // On the problem as it was given.
  void improve() {
    constexpr int kSweeps = 8;
    bool changed = true;
    for (int sweep = 0; sweep < kSweeps && changed; ++sweep) {
      changed = false;
      for (uint32_t v = 0; v < vertices_.size(); ++v) {
        const Labelling::Vertex& vertex = problem_.vertices_[v];
        std::vector<double> costs = vertex.costs;
        for (uint32_t id : vertex.edges) {
          const Labelling::Edge& e = problem_.edges_[id];
          const size_t nb = problem_.vertices_[e.b].costs.size();
          for (size_t i = 0; i < costs.size(); ++i) {
            const size_t row = e.a == v ? i : chosen_[e.a], column = e.b == v ? i : chosen_[e.b];
            costs[i] += e.costs[row * nb + column];
          }
        }
        const auto at = static_cast<uint32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
        if (costs[at] < costs[chosen_[v]] - 1e-6) {
          chosen_[v] = at;
          changed = true;
        }
      }
    }
  }

  std::vector<Vertex> vertices_;
  const Labelling& problem_;
  std::set<std::pair<uint32_t, uint32_t>> queue_;  // degree, vertex
  std::vector<uint32_t> chosen_, order_;
  double base_ = 0;  // of those that no neighbour carries on
};

namespace {

// A small problem without vertices of low degree: each option of the vertex of greatest degree is tried, what
// it leaves reduced again. Begins with a greedy answer; a budget bounds the work, not the quality of small
// ones.
class Search {
 public:
  explicit Search(const Labelling& problem) : problem_(problem) {
    Reduction greedy(problem);
    for (greedy.eliminate(); greedy.left(); greedy.eliminate()) greedy.decide_greedily();
    take(greedy.unwind());
  }
  std::vector<uint32_t> run() {
    visit(Reduction(problem_));
    return std::move(chosen_);
  }

 private:
  void take(std::vector<uint32_t> chosen) {
    const double cost = problem_.cost(chosen);
    if (!chosen_.empty() && cost >= cost_) return;
    cost_ = cost;
    chosen_ = std::move(chosen);
  }
  void visit(Reduction at) {
    at.eliminate();
    if (!at.left()) return take(at.unwind());
    if (at.bound() >= cost_ || visits_ == kVisits) return;
    ++visits_;
    const uint32_t v = at.greatest();
    for (uint32_t option = 0; option < at.options(v); ++option) {
      Reduction next = at;
      next.fix(v, option);
      visit(std::move(next));
    }
  }

  static constexpr uint32_t kVisits = 4000;
  const Labelling& problem_;
  std::vector<uint32_t> chosen_;
  double cost_ = 0;
  uint32_t visits_ = 0;
};

constexpr size_t kSearched = 48;  // vertices of a core

}  // namespace

std::vector<uint32_t> Labelling::solve() const {
  Reduction all(*this);
  for (all.eliminate(); all.left() > kSearched; all.eliminate()) all.decide_greedily();
  const std::vector<uint32_t> rest = all.rest();
  if (!rest.empty()) {
    const Labelling core = all.core();
    const std::vector<uint32_t> chosen = Search(core).run();
    for (size_t i = 0; i < rest.size(); ++i) all.fix(rest[i], chosen[i]);
  }
  return all.unwind();
}

}  // namespace choose_formats
