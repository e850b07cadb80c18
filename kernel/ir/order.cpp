// Program order of a graph: the linked list of each region, its labels, and topological sorting.
//
// Labels follow the order-maintenance scheme of Bender, Cole, Demaine, Farach-Colton and Zito ("Two
// simplified algorithms for maintaining order in a list", 2002): where no label is free between two
// neighbours, the smallest enclosing range of labels that is sparse enough is spread evenly, which costs
// O(log n) labels an insertion, amortised.
#include <algorithm>
#include <cassert>
#include <queue>

#include "ir/graph.h"

namespace regie {

namespace {
constexpr uint32_t kBits = 62;
constexpr uint64_t kEnd = uint64_t{1} << kBits;  // labels lie strictly between 0 and this
constexpr uint64_t kStep = uint64_t{1} << 32;    // gap left when appending
}  // namespace

void Graph::link(uint32_t region, uint32_t node, uint32_t before) {
  regie_region& r = regions_[region];
  assert(before == REGIE_NONE || nodes_[before].region == region);
  regie_node& n = nodes_[node];
  n.region = region;
  n.next = before;
  n.prev = before == REGIE_NONE ? r.last : nodes_[before].prev;
  (n.prev == REGIE_NONE ? r.first : nodes_[n.prev].next) = node;
  (n.next == REGIE_NONE ? r.last : nodes_[n.next].prev) = node;
  uint64_t low = n.prev == REGIE_NONE ? 0 : nodes_[n.prev].order;
  uint64_t high = n.next == REGIE_NONE ? kEnd : nodes_[n.next].order;
  if (high - low < 2) {
    n.order = low;  // shares its neighbour's label until relabelled
    relabel_around(region, node);
  } else if (n.prev == REGIE_NONE && n.next == REGIE_NONE) {
    n.order = kEnd / 2;
  } else if (n.next == REGIE_NONE) {
    n.order = low + std::min(kStep, (high - low) / 2);
  } else if (n.prev == REGIE_NONE) {
    n.order = high - std::min(kStep, (high - low) / 2);
  } else {
    n.order = low + (high - low) / 2;
  }
}

void Graph::unlink(uint32_t node) {
  regie_node& n = nodes_[node];
  regie_region& r = regions_[n.region];
  (n.prev == REGIE_NONE ? r.first : nodes_[n.prev].next) = n.next;
  (n.next == REGIE_NONE ? r.last : nodes_[n.next].prev) = n.prev;
  n.prev = n.next = REGIE_NONE;
}

void Graph::relabel_around(uint32_t region, uint32_t node) {
  uint64_t label = nodes_[node].order;
  uint32_t first = node, last = node;
  uint64_t count = 1;
  double density = 1;  // allowed share of taken labels, falling by 1/T a level
  constexpr double kT = 1.3;
  for (uint32_t level = 1; level <= kBits; ++level) {
    uint64_t size = uint64_t{1} << level;
    uint64_t low = label & ~(size - 1), high = low + size;
    while (nodes_[first].prev != REGIE_NONE && nodes_[nodes_[first].prev].order >= low) {
      first = nodes_[first].prev;
      ++count;
    }
    while (nodes_[last].next != REGIE_NONE && nodes_[nodes_[last].next].order < high) {
      last = nodes_[last].next;
      ++count;
    }
    density /= kT;
    if (static_cast<double>(count) + 1 > static_cast<double>(size) * density) continue;
    uint64_t step = size / (count + 1);
    if (step < 2) continue;
    uint64_t next = low;
    for (uint32_t n = first;; n = nodes_[n].next) {
      nodes_[n].order = next += step;
      if (n == last) return;
    }
  }
  assert(false && "more nodes in a region than labels");
  (void)region;
}

void Graph::move(uint32_t node, uint32_t region, uint32_t before) {
  assert(live(node) && node != before);
  unlink(node);
  link(region, node, before);
  for (uint32_t k = 0; k < nodes_[node].region_count; ++k) region_scope_[nodes_[node].regions[k]] = region;
}

void Graph::move_constant(uint32_t value, uint32_t region) {
  assert(is_constant(value));
  values_[value].owner = region;
  region_constants_[region].push_back(value);
}

Status Graph::sort_region(uint32_t region) {
  std::vector<uint32_t> order;
  for (uint32_t n = regions_[region].first; n != REGIE_NONE; n = nodes_[n].next) order.push_back(n);
  std::unordered_map<uint32_t, uint32_t> position;
  position.reserve(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) position.emplace(order[i], i);

  // Edges between positions; doubles are harmless, as they are counted on both sides.
  std::vector<uint32_t> waiting(order.size(), 0);
  std::vector<std::vector<uint32_t>> followers(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    auto after = [&](uint32_t node) {
      auto it = position.find(node);
      if (it == position.end()) return;
      followers[it->second].push_back(i);
      ++waiting[i];
    };
    for (uint32_t v : operands(order[i]))
      if (v != REGIE_NONE && values_[v].kind == REGIE_VALUE_RESULT) after(values_[v].owner);
    for (uint32_t k = 0; k < nodes_[order[i]].control_count; ++k) after(nodes_[order[i]].control[k]);
  }
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < order.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<uint32_t> sorted;
  while (!ready.empty()) {
    uint32_t i = ready.top();
    ready.pop();
    sorted.push_back(order[i]);
    for (uint32_t f : followers[i])
      if (--waiting[f] == 0) ready.push(f);
  }
  if (sorted.size() != order.size()) {
    // Whoever still waits is on a cycle or behind one; walking to what it waits for must come round.
    uint32_t at = 0;
    while (waiting[at] == 0) ++at;
    std::vector<uint32_t> waits_for(order.size(), REGIE_NONE);
    for (uint32_t i = 0; i < order.size(); ++i)
      if (waiting[i])
        for (uint32_t f : followers[i])
          if (waiting[f]) waits_for[f] = i;
    for (size_t i = 0; i < order.size(); ++i) at = waits_for[at];
    return invalid_model("the graph has a cycle through " + describe_node(order[at]) +
                         "; a node must not need its own result");
  }
  if (sorted == order) return {};
  uint32_t previous = REGIE_NONE;
  uint64_t step = std::min(kStep, (kEnd - 1) / (sorted.size() + 1));
  uint64_t label = (kEnd - step * sorted.size()) / 2;
  for (uint32_t n : sorted) {
    nodes_[n].prev = previous;
    nodes_[n].next = REGIE_NONE;
    nodes_[n].order = label += step;
    (previous == REGIE_NONE ? regions_[region].first : nodes_[previous].next) = n;
    previous = n;
  }
  regions_[region].last = previous;
  return {};
}

}  // namespace regie
