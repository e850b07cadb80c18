// cancel-transposes: computes before a Transpose what can be, where that leaves fewer of them.
#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

#include "movable.h"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;
using namespace transposes;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "cancel-transposes",
    .doc = "Moves Transpose behind what can be computed before it, where that leaves fewer of them",
    .requires_ = kRequires,
});

constexpr int32_t kNone = -1;

class CancelTransposes {
 public:
  explicit CancelTransposes(const Config&) {}

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    if (g.changed().empty()) return;
    order_ = g.all_nodes(GraphView::Order::kOwnerFirst);
    if (std::none_of(order_.begin(), order_.end(), [&](uint32_t n) { return is_transpose(g.node(n)); }))
      return;
    classify(g);
    mark_useful(g);
    decide(c);
    apply(c);
  }

 private:
  struct NodeFacts {
    std::optional<Move> move;  // of a node that can be computed before the Transpose
    bool useful = false;       // and leads to another Transpose, or joins two
  };
  // Nodes and Transposes that hang together.
  struct Group {
    int64_t saved = 0;
    bool any = false;  // it has a node or pair to change
    bool chosen = false;
    std::vector<uint32_t> ends;  // Transposes that read it
  };

  static bool is_transpose(const regie_node& n) { return sv(n.op) == "Transpose"; }
  bool counts(const GraphView& g, uint32_t node) const {
    if (done_.count(node)) return false;
    for (uint32_t v : results_of(g.node(node)))
      if (v != REGIE_NONE && g.value(v).use_count) return true;
    return false;
  }

  // By value: which Transpose it can be taken before. One sweep in program order.
  void classify(const GraphView& g) {
    class_.assign(g.value_count(), kNone);
    facts_.assign(g.node_count(), {});
    parent_.resize(g.node_count());
    std::iota(parent_.begin(), parent_.end(), 0u);
    for (uint32_t id : order_) {
      const regie_node& n = g.node(id);
      if (!counts(g, id)) continue;
      if (is_transpose(n)) {
        const regie_value* x = g.operand(n, 0);
        if (x && x->type.rank > 0 && n.control_count == 0)
          class_[n.results[0]] = intern(perm_of(n, x->type.rank));
        continue;
      }
      int32_t common = kNone;
      for (uint32_t v : operands_of(n))
        if (v != REGIE_NONE && class_[v] != kNone && common == kNone) common = class_[v];
      if (common == kNone) continue;
      std::vector<bool> moved;
      for (uint32_t v : operands_of(n)) moved.push_back(v != REGIE_NONE && class_[v] == common);
      auto move = move_before(g, n, perms_[static_cast<size_t>(common)], moved);
      if (!move) continue;
      for (uint32_t v : results_of(n))
        if (v != REGIE_NONE && !move->leaves) class_[v] = common;
      for (uint32_t i = 0; i < n.operand_count; ++i)
        if (moved[i]) unite(g.value(n.operands[i]).owner, id);
      facts_[id].move = std::move(move);
    }
  }

  void mark_useful(const GraphView& g) {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      NodeFacts& f = facts_[*at];
      if (!f.move) continue;
      const regie_node& n = g.node(*at);
      bool useful = f.move->leaves;
      for (uint32_t v : results_of(n)) {
        if (v == REGIE_NONE) continue;
        for (const regie_use& use : uses_of(g.value(v)))
          if (!is_region_use(use) && !done_.count(use.node))
            useful =
                useful || facts_[use.node].useful || (is_transpose(g.node(use.node)) && counts(g, use.node));
      }
      uint32_t first = REGIE_NONE;
      for (uint32_t i = 0; i < n.operand_count; ++i) {
        if (f.move->parts[i] != Part::kMoved || i == f.move->replaced) continue;
        useful = useful || (first != REGIE_NONE && n.operands[i] != first);
        first = n.operands[i];
      }
      f.useful = useful;
    }
  }

  // Whether the reader takes the value before the Transpose when its group is changed.
  bool inside(const regie_use& use) const { return !is_region_use(use) && facts_[use.node].useful; }

  // A Transpose of a moved value takes it before both; two that undo each other are gone, unless a result of
  // a region would have to be something that it cannot be.
  bool can_vanish(const GraphView& g, const regie_node& reader, uint32_t moved) const {
    if (!is_region_result(g.value(reader.results[0]))) return true;
    const regie_node& producer = g.node(g.value(moved).owner);
    if (!is_transpose(producer)) return !vanished_into_.count(moved);
    const regie_value& x = *g.operand(producer, 0);
    return x.kind == REGIE_VALUE_RESULT && !is_region_result(x) && !vanished_into_.count(x.id);
  }

  void decide(PassContext& c) {
    const GraphView& g = c.graph();
    groups_.clear();
    vanished_into_.clear();
    for (uint32_t id : order_) {
      const regie_node& n = g.node(id);
      const bool transpose = is_transpose(n);
      if (!counts(g, id) || !(transpose || facts_[id].useful)) continue;
      Group& group = groups_[find(id)];
      group.any = group.any || !transpose;
      for (uint32_t v : results_of(n)) {
        if (v == REGIE_NONE || class_[v] == kNone) continue;
        bool outside = false;
        for (const regie_use& use : uses_of(g.value(v))) {
          if (!is_region_use(use) && done_.count(use.node)) continue;
          if (inside(use)) continue;
          if (is_region_use(use) || !is_transpose(g.node(use.node))) {
            outside = true;
            continue;
          }
          const regie_node& reader = g.node(use.node);
          if (!counts(g, use.node)) continue;
          const bool undone = is_identity(
              compose(perms_[static_cast<size_t>(class_[v])], perm_of(reader, g.value(v).type.rank)));
          if (undone && !can_vanish(g, reader, v)) {
            outside = true;
            continue;
          }
          group.any = true;
          group.ends.push_back(reader.id);
          if (!undone) continue;
          ++group.saved;
          if (is_region_result(g.value(reader.results[0])))
            vanished_into_.insert(transpose ? g.operand(n, 0)->id : v);
        }
        // A Transpose that only the group reads is gone; a value that others read needs one of its own.
        if (transpose && !outside) ++group.saved;
        if (!transpose && outside) --group.saved;
      }
    }
    // A Transpose that ends one group may begin another: one of the two waits for the next run.
    std::unordered_set<uint32_t> waiting;
    for (auto& [root, group] : groups_) {
      if (!group.any || group.saved <= 0 || waiting.count(root)) continue;
      group.chosen = std::none_of(group.ends.begin(), group.ends.end(),
                                  [&](uint32_t end) { return groups_[find(end)].chosen; });
      if (!group.chosen) continue;
      for (uint32_t end : group.ends) waiting.insert(find(end));
    }
  }

  void apply(PassContext& c) {
    const GraphView& g = c.graph();
    std::map<uint32_t, uint32_t> before;  // value: what it is before the Transpose
    vanished_into_.clear();
    for (uint32_t id : order_) {
      const regie_node& n = g.node(id);
      const bool transpose = is_transpose(n);
      if (!counts(g, id) || !(transpose || facts_[id].useful)) continue;
      if (!groups_[find(id)].chosen) continue;
      if (transpose) {
        before[n.results[0]] = n.operands[0];
      } else {
        compute_before(c, n, &before);
      }
      for (uint32_t v : results_of(n))
        if (v != REGIE_NONE && class_[v] != kNone) take_over(c, n, v, before.at(v));
    }
  }

  void compute_before(PassContext& c, const regie_node& n, std::map<uint32_t, uint32_t>* before) {
    const Move& move = *facts_[n.id].move;
    const Perm& p = perms_[static_cast<size_t>(class_of_moved(n, move))];
    Patch patch(c, "before its Transpose: " + std::string(sv(n.op)), n.id);
    NewNode made{.op = sv(n.op), .name = sv(n.name), .attrs = move.attrs, .result_count = n.result_count};
    for (uint32_t i = 0; i < n.operand_count; ++i) {
      if (i == move.replaced) {
        made.operands.push_back(numbers(patch, *move.replacement));
      } else if (move.parts[i] == Part::kMoved) {
        made.operands.push_back(before->at(n.operands[i]));
      } else if (move.parts[i] == Part::kTurned) {
        made.operands.push_back(turned(c, patch, n.operands[i], p));
      } else {
        made.operands.push_back(n.operands[i]);
      }
    }
    const auto results = patch.node(made).results;
    if (move.leaves) {
      patch.replace(n.results[0], results[0]);
      patch.remove(n.id);
    } else {
      for (uint32_t i = 0; i < n.result_count; ++i)
        if (n.results[i] != REGIE_NONE) (*before)[n.results[i]] = results[i];
    }
    patch.commit();
    done_.insert(n.id);
  }

  // Readers of `v` outside of the group: Transposes take it from before, the others get one.
  void take_over(PassContext& c, const regie_node& n, uint32_t v, uint32_t moved) {
    const GraphView& g = c.graph();
    const Perm& p = perms_[static_cast<size_t>(class_[v])];
    bool outside = false;
    for (const regie_use& use : uses_of(g.value(v))) {
      if (!is_region_use(use) && (done_.count(use.node) || inside(use))) continue;
      if (is_region_use(use) || !is_transpose(g.node(use.node))) {
        outside = true;
        continue;
      }
      const regie_node& reader = g.node(use.node);
      if (!counts(g, use.node)) continue;
      const Perm both = compose(p, perm_of(reader, g.value(v).type.rank));
      if (is_identity(both) && !can_vanish(g, reader, v)) {
        outside = true;
        continue;
      }
      if (is_identity(both)) {
        if (is_region_result(g.value(reader.results[0])))
          vanished_into_.insert(is_transpose(n) ? g.operand(n, 0)->id : v);
        Patch patch(c, "Transposes that undo each other", reader.id);
        patch.replace(reader.results[0], moved);
        patch.remove(reader.id);
        patch.commit();
      } else {
        Patch patch(c, "Transpose of a Transpose", reader.id);
        patch.replace(reader.results[0], transpose(patch, moved, both, sv(reader.name)));
        patch.remove(reader.id);
        patch.commit();
      }
      done_.insert(reader.id);
    }
    if (!outside || is_transpose(n)) return;
    Patch patch(c, "Transpose of what was computed before it", n.id);
    patch.replace(v, transpose(patch, moved, p, {}));
    patch.commit();
  }

  static uint32_t transpose(Patch& patch, uint32_t value, const Perm& p, std::string_view name) {
    regie_attr perm{};
    perm.name = lit("perm");
    perm.kind = REGIE_ATTR_INTS;
    perm.count = static_cast<uint32_t>(p.size());
    perm.v.ints = p.data();
    return patch.node({.op = "Transpose", .operands = {value}, .name = name, .attrs = {perm}}).results[0];
  }

  static uint32_t numbers(Patch& patch, std::vector<int64_t> list) {
    const int64_t count = static_cast<int64_t>(list.size());
    return patch.constant(REGIE_VALUE_CONSTANT,
                          {REGIE_I64, 0, 1, &count, nullptr, list.data(), list.size() * 8});
  }

  // A constant that was broadcast behind the Transpose, for broadcasting before it; fold-constants computes
  // it.
  static uint32_t turned(PassContext& c, Patch& patch, uint32_t value, const Perm& p) {
    const regie_type& t = c.graph().value(value).type;
    uint32_t full = value;
    if (t.rank < static_cast<int32_t>(p.size())) {
      std::vector<int64_t> shape(p.size() - static_cast<size_t>(t.rank), 1);
      shape.insert(shape.end(), t.dims, t.dims + t.rank);
      full = patch.node({.op = "Reshape", .operands = {value, numbers(patch, shape)}}).results[0];
    }
    return transpose(patch, full, inverse(p), {});
  }

  int32_t class_of_moved(const regie_node& n, const Move& move) const {
    for (uint32_t i = 0; i < n.operand_count; ++i)
      if (move.parts[i] == Part::kMoved && i != move.replaced) return class_[n.operands[i]];
    return kNone;
  }

  int32_t intern(const Perm& p) {
    auto at = std::find(perms_.begin(), perms_.end(), p);
    if (at == perms_.end()) at = perms_.insert(at, p);
    return static_cast<int32_t>(at - perms_.begin());
  }

  uint32_t find(uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void unite(uint32_t a, uint32_t b) { parent_[find(a)] = find(b); }

  std::vector<uint32_t> order_;
  std::vector<Perm> perms_;
  std::vector<int32_t> class_;    // by value: index into perms_
  std::vector<NodeFacts> facts_;  // by node
  std::vector<uint32_t> parent_;  // union-find over nodes
  std::map<uint32_t, Group> groups_;
  std::unordered_set<uint32_t> vanished_into_;  // values that became results of a region
  std::unordered_set<uint32_t> done_;           // nodes that others stand for: remove-dead takes them
};

constexpr regie_pass_table kTable = pass_table<CancelTransposes>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
