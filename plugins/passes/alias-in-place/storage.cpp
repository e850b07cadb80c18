#include "storage.h"

#include <algorithm>

namespace alias_in_place {

using namespace regie::sdk;

Storage::Storage(const GraphView& graph) : graph_(graph), readers_(graph.value_count()) {
  links_.resize(graph.value_count());
  for (uint32_t v = 0; v < links_.size(); ++v) links_[v] = {v, 0};
}

Storage::Place Storage::place(uint32_t value) const {
  uint32_t root = value;
  uint64_t offset = 0;
  while (links_[root].base != root) {
    offset += links_[root].offset;
    root = links_[root].base;
  }
  // Everyone on the way points to the root afterwards.
  uint64_t left = offset;
  for (uint32_t v = value; links_[v].base != v;) {
    const Link next = links_[v];
    links_[v] = {root, left};
    left -= next.offset;
    v = next.base;
  }
  return {root, offset};
}

Readers& Storage::readers(uint32_t root) {
  Readers& all = readers_[root];
  if (!all.known) {
    all.known = true;
    add_readers(root, &all);
  }
  return all;
}

void Storage::put(uint32_t moved, uint32_t base, uint64_t offset) {
  const Place to = place(base);
  const Readers theirs = readers(moved);
  links_[moved] = {to.root, to.offset + offset};
  Readers& all = readers(to.root);
  if (theirs.handed_out != REGIE_NONE) all.handed_out = theirs.handed_out;
  if (theirs.last_node != REGIE_NONE && theirs.last >= all.last) {
    all.last = theirs.last;
    all.last_node = theirs.last_node;
    all.last_value = theirs.last_value;
  }
  for (uint32_t node : theirs.on)
    if (node != REGIE_NONE) add_reader(node, &all);
}

void Storage::add_readers(uint32_t value, Readers* all) {
  for (const regie_use& u : uses_of(graph_.value(value))) {
    if (is_region_use(u)) {
      all->handed_out = value;
      continue;
    }
    const regie_node& reader = graph_.node(u.node);
    if (reader.order >= all->last) {
      all->last = reader.order;
      all->last_node = reader.id;
      all->last_value = value;
    }
    add_reader(reader.id, all);
  }
}

void Storage::add_reader(uint32_t node, Readers* all) {
  if (all->on[0] == REGIE_NONE)
    all->on[0] = node;
  else if (all->on[1] == REGIE_NONE && device(node) != device(all->on[0]))
    all->on[1] = node;
}

uint32_t Storage::device(uint32_t node) const {
  const uint32_t engine = graph_.node(node).engine;
  if (engine == REGIE_NONE)
    throw Failure(REGIE_INTERNAL, "it has no engine, although the graph is placed",
                  graph_.describe(graph_.node(node)));
  return graph_.engine(engine).device_index;
}

Timeline::Timeline(const GraphView& graph)
    : graph_(graph), begin_(graph.node_count(), 0), end_(graph.node_count(), 0) {
  struct Frame {
    uint32_t next, owner;
  };
  std::vector<Frame> stack{{graph.region(0).first, REGIE_NONE}};
  while (!stack.empty()) {
    const Frame f = stack.back();
    if (f.next == REGIE_NONE) {
      ++steps_;  // what a region hands out is handed out
      if (f.owner != REGIE_NONE) end_[f.owner] = steps_;
      stack.pop_back();
      continue;
    }
    const regie_node& n = graph.node(f.next);
    stack.back().next = n.next;
    begin_[n.id] = steps_++;
    end_[n.id] = steps_;
    if (!is_control_flow(n)) continue;
    for (uint32_t r = n.region_count; r-- > 0;) stack.push_back({graph.region(n.regions[r]).first, n.id});
  }
}

std::vector<uint64_t> Timeline::peaks(const PassContext& context, const Storage& storage) const {
  struct Life {
    uint32_t from = UINT32_MAX, to = 0;
  };
  std::vector<Life> lives(graph_.value_count());
  auto touch = [&](uint32_t value, uint32_t from, uint32_t to) {
    // What a branch reads of outside lives while its owner runs.
    Life& life = lives[storage.root(value)];
    life.from = std::min(life.from, from);
    life.to = std::max(life.to, to);
  };
  for (uint32_t region : graph_.task_regions())
    for (const regie_node& n : graph_.nodes(region)) {
      for (uint32_t v : operands_of(n))
        if (v != REGIE_NONE) touch(v, begin_[n.id], end_[n.id]);
      for (uint32_t v : results_of(n))
        if (v != REGIE_NONE) touch(v, begin_[n.id], end_[n.id]);
    }
  uint32_t spaces = 1;
  for (const regie_engine_ref& e : graph_.engines()) spaces = std::max(spaces, e.space + 1);
  std::vector<std::vector<int64_t>> changes(spaces, std::vector<int64_t>(steps_ + 2, 0));
  for (uint32_t v = 0; v < lives.size(); ++v) {
    const regie_value& value = graph_.value(v);
    if (value.kind != REGIE_VALUE_RESULT || lives[v].from >= lives[v].to || value.space >= spaces) continue;
    uint32_t to = lives[v].to;
    if (is_region_result(value)) {
      if (graph_.node(value.owner).region == 0) continue;  // lies in memory of the receiver
      to = std::max(to, end_[graph_.region(graph_.node(value.owner).region).parent]);
    }
    const auto size = static_cast<int64_t>((least_bytes(value.type, context.dims()) + 63) / 64 * 64);
    changes[value.space][lives[v].from] += size;
    changes[value.space][to] -= size;
  }
  std::vector<uint64_t> peaks;
  for (const auto& of_space : changes) {
    int64_t live = 0, most = 0;
    for (int64_t change : of_space) most = std::max(most, live += change);
    peaks.push_back(static_cast<uint64_t>(most));
  }
  return peaks;
}

}  // namespace alias_in_place
