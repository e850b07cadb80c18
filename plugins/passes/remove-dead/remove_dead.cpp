// remove-dead: removes nodes whose results nobody reads.
#include <string>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_pass_info kInfo = pass_info({
    .name = "remove-dead",
    .doc = "Removes nodes whose results nobody reads, and what only they had read",
});

class RemoveDead {
 public:
  explicit RemoveDead(const Config&) {}

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    const std::vector<uint32_t> order = g.all_nodes(GraphView::Order::kOwnerFirst);

    // What keeps a node: readers of its results, and nodes that must run after it.
    std::vector<uint32_t> needed(g.node_count(), 0);
    for (uint32_t id : order) {
      for (uint32_t v : results_of(g.node(id)))
        if (v != REGIE_NONE) needed[id] += g.value(v).use_count;
      for (uint32_t before : control_of(g.node(id))) ++needed[before];
    }
    std::vector<uint32_t> work;
    for (uint32_t id : order)
      if (needed[id] == 0) work.push_back(id);

    std::vector<bool> dead(g.node_count(), false);
    uint32_t count = 0;
    auto drop = [&](uint32_t id) {
      if (--needed[id] == 0) work.push_back(id);
    };
    while (!work.empty()) {
      const regie_node& n = g.node(work.back());
      work.pop_back();
      dead[n.id] = true;
      ++count;
      for (uint32_t v : operands_of(n))
        if (v != REGIE_NONE && g.value(v).kind == REGIE_VALUE_RESULT) drop(g.value(v).owner);
      for (uint32_t before : control_of(n)) drop(before);
    }
    if (count == 0) return;

    // One patch: removing is not a decision that one would want to take node by node. What is inside a dead
    // owner goes with it.
    std::vector<bool> gone_with_owner(g.node_count(), false);
    std::vector<uint32_t> removed;
    for (uint32_t id : order) {
      const uint32_t owner = g.region(g.node(id).region).parent;
      gone_with_owner[id] = owner != REGIE_NONE && (dead[owner] || gone_with_owner[owner]);
      if (dead[id] && !gone_with_owner[id]) removed.push_back(id);
    }
    if (removed.empty()) return;
    Patch patch(c, "remove nodes that nobody reads", removed.front());
    for (auto id = removed.rbegin(); id != removed.rend(); ++id) patch.remove(*id);
    patch.commit();
  }
};

constexpr regie_pass_table kTable = pass_table<RemoveDead>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
