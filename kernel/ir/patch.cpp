#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "ir/recording.h"
#include "ir/types.h"
#include "text/text.h"

namespace regie::recording {

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// May results of what reads `now` instead of `before` be known better?
bool tells_more(const regie_value& now, const regie_value& before) {
  if (!same_type(now.type, before.type)) return true;
  const bool constant = now.kind == REGIE_VALUE_CONSTANT || now.kind == REGIE_VALUE_WEIGHT;
  if (now.kind != before.kind && constant) return true;
  return now.content && (now.content_count != before.content_count || !before.content ||
                         !std::equal(now.content, now.content + now.content_count, before.content));
}
}  // namespace

bool PatchApplier::stale() const {
  const Ids& first = patch_.first;
  auto value = [&](uint32_t v) { return v != REGIE_NONE && v < first.value && !graph_.live_value(v); };
  auto node = [&](uint32_t n) { return n != REGIE_NONE && n < first.node && !graph_.live(n); };
  auto values = [&](const std::vector<uint32_t>& list) {
    return std::any_of(list.begin(), list.end(), value);
  };
  auto nodes = [&](const std::vector<uint32_t>& list) { return std::any_of(list.begin(), list.end(), node); };
  if (node(patch_.anchor)) return true;
  auto met = Overloaded{[&](const MakeConstant&) { return false; },
                        [&](const OpenRegion&) { return false; },
                        [&](const MakeNode& s) { return values(s.spec.operands) || nodes(s.spec.control); },
                        [&](const CloseRegion& s) { return values(s.results); },
                        [&](const Replace& s) { return value(s.old_value) || value(s.new_value); },
                        [&](const Remove& s) { return node(s.node); },
                        [&](const SetOperand& s) { return node(s.node) || value(s.value); },
                        [&](const InlineRegion& s) {
                          if (node(s.node) || values(s.args) || values(s.results)) return true;
                          // The results were told from the region as it was; an earlier patch may have
                          // changed them.
                          const regie_region& r = graph_.region(graph_.node(s.node).regions[s.which]);
                          for (uint32_t i = 0; i < r.result_count; ++i) {
                            const regie_value& v = graph_.value(r.results[i]);
                            bool argument = v.kind == REGIE_VALUE_ARGUMENT && v.owner == r.id;
                            if (s.results[i] != (argument ? s.args[v.index] : v.id)) return true;
                          }
                          return false;
                        }};
  for (const Step& s : patch_.steps)
    if (std::visit(met, s)) return true;
  return false;
}

Status PatchApplier::run() {
  home_ = patch_.anchor == REGIE_NONE ? 0 : graph_.node(patch_.anchor).region;
  graph_.skip_ids(patch_.first.value, patch_.first.node, patch_.first.region);
  for (const Step& s : patch_.steps) {
    const Remove* remove = std::get_if<Remove>(&s);
    if (!remove) continue;
    removed_.push_back(remove->node);
    removed_set_.insert(remove->node);
  }
  for (const Step& s : patch_.steps) REGIE_TRY(std::visit([&](const auto& one) { return step(one); }, s));
  REGIE_TRY(check_removals());
  for (uint32_t n : rewired_)
    if (!removed_set_.count(n)) REGIE_TRY(ops_.check(graph_, n));
  stand_in_for_control();
  return repair_order();
}

// ---- Steps ----

Status PatchApplier::check_visible(uint32_t value, uint32_t region, const std::string& reader) const {
  if (!graph_.live_value(value)) return bad_plugin(reader + " reads " + graph_.describe_value(value));
  if (graph_.visible(value, region)) return {};
  return bad_plugin(reader + " reads " + graph_.describe_value(value) +
                    " of another region; captures must be operands of the node that owns the region");
}

void PatchApplier::note_edge(uint32_t value, uint32_t reader) {
  if (value == REGIE_NONE || graph_.value(value).kind != REGIE_VALUE_RESULT) return;
  edges_.emplace_back(graph_.value(value).owner, reader);
}

Status PatchApplier::step(const MakeConstant& s) {
  uint32_t v = graph_.add_constant(region(), s.kind, s.tensor, s.name);
  log_.push_back(MadeConstant{v});
  perhaps_unread_.push_back(v);
  return v == s.id ? Status() : internal_error("ids of a patch came out of step");
}

Status PatchApplier::step(const MakeNode& s) {
  std::string reader = "new node '" + s.spec.name + "' (" + s.spec.op + ")";
  for (uint32_t v : s.spec.operands)
    if (v != REGIE_NONE) REGIE_TRY(check_visible(v, region(), reader));
  for (uint32_t c : s.spec.control)
    if (!graph_.live(c) || graph_.node(c).region != region())
      return bad_plugin(reader + " has a control edge from " + graph_.describe_node(c) +
                        " of another region");
  for (uint32_t r : s.spec.regions)
    if (!graph_.live_region(r) || r < patch_.first.region || graph_.region(r).parent != REGIE_NONE ||
        graph_.scope(r) != region() || std::find(open_.begin(), open_.end(), r) != open_.end())
      return bad_plugin(reader + " takes a region that was not opened and closed for it");
  uint32_t n = graph_.add_node(region(), s.spec, open_.empty() ? patch_.anchor : REGIE_NONE);
  log_.push_back(MadeNode{n});
  new_nodes_.push_back(n);
  if (n != s.id) return internal_error("ids of a patch came out of step");
  if (open_.empty()) {
    for (uint32_t v : s.spec.operands) note_edge(v, n);
    for (uint32_t c : s.spec.control) edges_.emplace_back(c, n);
  }
  REGIE_TRY(ops_.check(graph_, n));
  return infer(n);
}

// Where types are not known yet, or no shape function covers the node, its types stay open: what it replaces
// may tell them, and whoever needs them asks.
Status PatchApplier::infer(uint32_t node) {
  for (uint32_t v : graph_.operands(node)) {
    if (v == REGIE_NONE) continue;
    const regie_type& t = graph_.value(v).type;
    if (t.elem == REGIE_ELEM_UNKNOWN || (t.rank < 0 && t.container == REGIE_TENSOR)) return {};
  }
  Status s = ops_.infer(graph_, node);
  return s.code() == REGIE_UNSUPPORTED ? Status() : s;
}

Status PatchApplier::step(const OpenRegion& s) {
  uint32_t r = graph_.add_region(s.name, region());
  log_.push_back(MadeRegion{r});
  for (size_t i = 0; i < s.types.size(); ++i)
    graph_.add_argument(r, s.types[i], i < s.names.size() ? s.names[i] : std::string());
  open_.push_back(r);
  return r == s.id ? Status() : internal_error("ids of a patch came out of step");
}

Status PatchApplier::step(const CloseRegion& s) {
  for (uint32_t v : s.results) REGIE_TRY(check_visible(v, region(), "the result list of a new region"));
  log_.push_back(ClosedRegion{region()});
  graph_.set_region_results(region(), s.results);
  open_.pop_back();
  return {};
}

void PatchApplier::rewire(regie_use use, uint32_t value) {
  bool of_region = use.node & REGIE_USE_REGION;
  uint32_t id = use.node & ~REGIE_USE_REGION;
  uint32_t old = of_region ? graph_.region(id).results[use.operand] : graph_.node(id).operands[use.operand];
  if (old != REGIE_NONE && graph_.is_constant(old)) perhaps_unread_.push_back(old);
  if (old != REGIE_NONE && value != REGIE_NONE && tells_more(graph_.value(value), graph_.value(old))) {
    const uint32_t reader = of_region ? graph_.region(id).parent : id;
    if (reader != REGIE_NONE) learned_.push_back(reader);
  }
  log_.push_back(ChangedUse{use, old});
  if (of_region) {
    graph_.set_region_result(id, use.operand, value);
  } else {
    graph_.set_operand(id, use.operand, value);
    note_edge(value, id);
  }
}

Status PatchApplier::step(const Replace& s) {
  const regie_type old_type = graph_.value(s.old_value).type, new_type = graph_.value(s.new_value).type;
  if (!graph_.live_value(s.new_value) || !graph_.live_value(s.old_value))
    return bad_plugin("it replaces a value that does not exist");
  if (!types_agree(old_type, new_type))
    return bad_plugin("it replaces " + graph_.describe_value(s.old_value) + ", which is " +
                      print_type(graph_, old_type) + ", by " + graph_.describe_value(s.new_value) +
                      ", which is " + print_type(graph_, new_type));
  std::vector<regie_use> uses;
  for (regie_use u : graph_.uses(s.old_value)) {
    bool of_region = u.node & REGIE_USE_REGION;
    uint32_t id = u.node & ~REGIE_USE_REGION;
    if (of_region ? id >= patch_.first.region : id >= patch_.first.node) continue;
    uint32_t where = of_region ? id : graph_.node(id).region;
    if (where != graph_.region_of(s.new_value))
      REGIE_TRY(
          check_visible(s.new_value, where, of_region ? "a region's result list" : graph_.describe_node(id)));
    uses.push_back(u);
  }
  if (graph_.value(s.new_value).kind == REGIE_VALUE_RESULT) {
    regie_type merged = merge_types(graph_, new_type, old_type);
    if (!same_type(merged, new_type)) {
      log_.push_back(ChangedType{s.new_value, new_type});
      graph_.set_type(s.new_value, merged);
    }
  }
  for (regie_use u : uses) rewire(u, s.new_value);
  return {};
}

// Removals take effect at the end; until then the nodes are there to be read.
Status PatchApplier::step(const Remove& s) {
  return graph_.live(s.node) ? Status() : bad_plugin("it removes a node that does not exist");
}

Status PatchApplier::step(const SetOperand& s) {
  if (!graph_.live(s.node) || s.operand >= graph_.node(s.node).operand_count)
    return bad_plugin("it sets operand " + std::to_string(s.operand) + " of " + graph_.describe_node(s.node) +
                      ", which does not exist");
  if (s.value != REGIE_NONE)
    REGIE_TRY(check_visible(s.value, graph_.node(s.node).region, graph_.describe_node(s.node)));
  rewire({s.node, s.operand}, s.value);
  rewired_.push_back(s.node);
  return {};
}

void PatchApplier::move(uint32_t node, uint32_t region, uint32_t before) {
  log_.push_back(Moved{node, graph_.node(node).region, graph_.node(node).next});
  graph_.move(node, region, before);
}

Status PatchApplier::step(const InlineRegion& s) {
  uint32_t region = graph_.node(s.node).regions[s.which];
  uint32_t outer = graph_.node(s.node).region;
  std::vector<uint32_t> inner_args(graph_.region(region).args,
                                   graph_.region(region).args + graph_.region(region).arg_count);
  for (uint32_t c : graph_.constants(region)) {
    log_.push_back(MovedConstant{c, region});
    graph_.move_constant(c, outer);
  }
  while (graph_.region(region).first != REGIE_NONE) move(graph_.region(region).first, outer, s.node);
  for (size_t i = 0; i < s.args.size(); ++i) {
    REGIE_TRY(check_visible(s.args[i], outer, "the region inlined from " + graph_.describe_node(s.node)));
    if (!types_agree(graph_.value(inner_args[i]).type, graph_.value(s.args[i]).type))
      return bad_plugin("it inlines a region of " + graph_.describe_node(s.node) + " with " +
                        graph_.describe_value(s.args[i]) + ", which does not fit argument " +
                        std::to_string(i));
    std::vector<regie_use> uses(graph_.uses(inner_args[i]).begin(), graph_.uses(inner_args[i]).end());
    for (regie_use u : uses)
      if (!(u.node & REGIE_USE_REGION)) rewire(u, s.args[i]);
  }
  return {};
}

// ---- The whole ----

Status PatchApplier::check_removals() {
  for (uint32_t n : removed_) {
    for (uint32_t v : graph_.results(n)) {
      if (v == REGIE_NONE) continue;
      for (regie_use u : graph_.uses(v)) {
        bool of_region = u.node & REGIE_USE_REGION;
        uint32_t id = u.node & ~REGIE_USE_REGION;
        if (removed_set_.count(of_region ? graph_.region(id).parent : id)) continue;
        std::string reader = !of_region ? graph_.describe_node(id)
                             : id == 0  ? "graph output '" + std::string(graph_.output_name(u.operand)) + "'"
                                        : "a region of " + graph_.describe_node(graph_.region(id).parent);
        return bad_plugin("it removes " + graph_.describe_node(n) + ", whose " + graph_.describe_value(v) +
                          " is still read by " + reader);
      }
    }
  }
  return {};
}

void PatchApplier::set_control(uint32_t node, std::vector<uint32_t> control) {
  const regie_node& n = graph_.node(node);
  log_.push_back(ChangedControl{node, std::vector<uint32_t>(n.control, n.control + n.control_count)});
  graph_.set_control(node, control);
  for (uint32_t c : control) edges_.emplace_back(c, node);
}

// What had to run before a removed node has to run before the new ones, and they before what waited for it.
// Without new nodes the order goes through.
void PatchApplier::stand_in_for_control() {
  std::vector<uint32_t> before, after, fresh;
  for (uint32_t n : removed_) {
    for (uint32_t k = 0; k < graph_.node(n).control_count; ++k)
      if (!removed_set_.count(graph_.node(n).control[k])) before.push_back(graph_.node(n).control[k]);
    for (uint32_t r : graph_.control_readers(n))
      if (!removed_set_.count(r)) after.push_back(r);
  }
  if (before.empty() && after.empty()) return;
  for (uint32_t n : new_nodes_)
    if (beside_anchor(n)) fresh.push_back(n);
  auto extend = [&](uint32_t node, const std::vector<uint32_t>& more) {
    const regie_node& n = graph_.node(node);
    std::vector<uint32_t> all(n.control, n.control + n.control_count);
    for (uint32_t m : more)
      if (m != node && graph_.node(m).region == n.region) all.push_back(m);
    set_control(node, std::move(all));
  };
  for (uint32_t n : fresh) extend(n, before);
  for (uint32_t n : after) extend(n, fresh.empty() ? before : fresh);
}

Status PatchApplier::repair_order() {
  for (size_t i = 0; i < edges_.size(); ++i) {
    auto [from, to] = edges_[i];
    if (removed_set_.count(from) || removed_set_.count(to)) continue;
    if (from == to) return bad_plugin("it makes " + graph_.describe_node(to) + " read its own result");
    if (!graph_.before(from, to)) REGIE_TRY(repair_edge(from, to));
  }
  return {};
}

// Moves `to`, and what depends on it and stands before `from`, to just behind `from`. All other edges between
// nodes stay as good as they were, so that one repair an edge is enough, and a cycle shows as `from`
// depending on `to`.
Status PatchApplier::repair_edge(uint32_t from, uint32_t to) {
  std::vector<uint32_t> found{to};
  std::unordered_set<uint32_t> seen{to};
  bool cycle = false;
  auto reach = [&](uint32_t n) {
    if (n == from) cycle = true;
    if (!graph_.before(n, from) || removed_set_.count(n) || !seen.insert(n).second) return;
    found.push_back(n);
  };
  for (size_t i = 0; i < found.size() && !cycle; ++i) {
    for (uint32_t v : graph_.results(found[i]))
      if (v != REGIE_NONE)
        for (regie_use u : graph_.uses(v))
          if (!(u.node & REGIE_USE_REGION)) reach(u.node);
    for (uint32_t r : graph_.control_readers(found[i])) reach(r);
  }
  if (cycle)
    return bad_plugin("it makes a cycle: " + graph_.describe_node(from) + " and " + graph_.describe_node(to) +
                      " would need each other's results");
  std::sort(found.begin(), found.end(), [&](uint32_t a, uint32_t b) { return graph_.before(a, b); });
  uint32_t before = graph_.node(from).next;
  for (uint32_t n : found) move(n, graph_.node(from).region, before);
  return {};
}

void PatchApplier::undo() {
  auto back =
      Overloaded{[&](const MadeNode& u) {
                   if (graph_.live(u.node)) graph_.remove_node(u.node);
                 },
                 [&](const MadeConstant& u) {
                   if (graph_.live_value(u.value)) graph_.remove_value(u.value);
                 },
                 [&](const MadeRegion& u) {
                   if (graph_.live_region(u.region)) graph_.remove_region(u.region);
                 },
                 [&](const ClosedRegion& u) {
                   if (graph_.live_region(u.region)) graph_.set_region_results(u.region, {});
                 },
                 [&](const ChangedUse& u) {
                   if (u.use.node & REGIE_USE_REGION) {
                     graph_.set_region_result(u.use.node & ~REGIE_USE_REGION, u.use.operand, u.old_value);
                   } else {
                     graph_.set_operand(u.use.node, u.use.operand, u.old_value);
                   }
                 },
                 [&](const ChangedType& u) { graph_.set_type(u.value, u.type); },
                 [&](const Moved& u) { graph_.move(u.node, u.region, u.before); },
                 [&](const MovedConstant& u) { graph_.move_constant(u.value, u.region); },
                 [&](const ChangedControl& u) { graph_.set_control(u.node, u.control); }};
  for (size_t i = log_.size(); i-- > 0;) std::visit(back, log_[i]);
  log_.clear();
}

void PatchApplier::finish(AppliedPatch* applied) {
  applied->title = patch_.title;
  applied->added = new_nodes_;
  for (uint32_t n : removed_) applied->removed.push_back(graph_.describe_node(n));

  for (const Step& s : patch_.steps) {
    const Replace* r = std::get_if<Replace>(&s);
    if (!r || r->new_value < patch_.first.value) continue;
    const regie_value& old = graph_.value(r->old_value);
    bool goes = old.kind == REGIE_VALUE_RESULT && removed_set_.count(old.owner);
    if (!goes || old.name.size == 0 || graph_.value(r->new_value).kind != REGIE_VALUE_RESULT) continue;
    std::string name(view(old.name));
    graph_.set_value_name(r->old_value, {});
    graph_.set_value_name(r->new_value, name);
  }

  std::vector<uint32_t> heirs;
  auto inherit = [&](uint32_t n) {
    heirs.insert(heirs.end(), graph_.node(n).origins, graph_.node(n).origins + graph_.node(n).origin_count);
  };
  for (uint32_t n : removed_) inherit(n);
  if (removed_.empty() && patch_.anchor != REGIE_NONE) inherit(patch_.anchor);
  // A node that goes on inside a new one, by its name, keeps its own.
  std::unordered_map<std::string_view, uint32_t> by_name;
  for (uint32_t n : removed_)
    if (graph_.node(n).name.size) by_name.emplace(view(graph_.node(n).name), n);
  for (uint32_t n : new_nodes_) {
    std::vector<uint32_t> origins = heirs;
    if (!beside_anchor(n))
      if (auto it = by_name.find(view(graph_.node(n).name)); it != by_name.end())
        origins.assign(graph_.node(it->second).origins,
                       graph_.node(it->second).origins + graph_.node(it->second).origin_count);
    origins.insert(origins.end(), graph_.node(n).origins,
                   graph_.node(n).origins + graph_.node(n).origin_count);
    graph_.set_origins(n, origins);
  }

  // Constants that the removed nodes, or nodes inside them, read.
  std::vector<uint32_t> inside = removed_;
  for (size_t i = 0; i < inside.size(); ++i) {
    for (uint32_t v : graph_.operands(inside[i]))
      if (v != REGIE_NONE && graph_.is_constant(v)) perhaps_unread_.push_back(v);
    for (uint32_t k = 0; k < graph_.node(inside[i]).region_count; ++k) {
      const regie_region& r = graph_.region(graph_.node(inside[i]).regions[k]);
      for (uint32_t o = 0; o < r.result_count; ++o)
        if (graph_.is_constant(r.results[o])) perhaps_unread_.push_back(r.results[o]);
      for (uint32_t m = r.first; m != REGIE_NONE; m = graph_.node(m).next) inside.push_back(m);
    }
  }
  // First all let go of what they read, then the owners of regions, which hold values of what was inlined.
  for (uint32_t n : removed_)
    for (uint32_t o = 0; o < graph_.node(n).operand_count; ++o) graph_.set_operand(n, o, REGIE_NONE);
  std::stable_partition(removed_.begin(), removed_.end(),
                        [&](uint32_t n) { return graph_.node(n).region_count > 0; });
  for (uint32_t n : removed_)
    if (graph_.live(n)) graph_.remove_node(n);
  for (uint32_t v : perhaps_unread_)
    if (graph_.live_value(v) && graph_.uses(v).empty()) graph_.remove_value(v);
  infer_readers();
}

// Types and contents go on downstream as far as they become better known, each node once, in program order.
// What cannot be inferred keeps what it has.
void PatchApplier::infer_readers() {
  std::set<std::tuple<uint32_t, uint64_t, uint32_t>> waiting;  // region, order, node
  auto wait = [&](uint32_t n) {
    if (graph_.live(n)) waiting.emplace(graph_.node(n).region, graph_.node(n).order, n);
  };
  for (uint32_t n : learned_) wait(n);
  std::vector<std::pair<regie_type, std::vector<regie_dim>>> before;
  while (!waiting.empty()) {
    const uint32_t n = std::get<2>(*waiting.begin());
    waiting.erase(waiting.begin());
    before.clear();
    for (uint32_t v : graph_.results(n)) {
      if (v == REGIE_NONE) continue;
      const regie_value& r = graph_.value(v);
      before.emplace_back(r.type, std::vector<regie_dim>(r.content, r.content + r.content_count));
    }
    if (!infer(n).ok()) continue;
    size_t i = 0;
    for (uint32_t v : graph_.results(n)) {
      if (v == REGIE_NONE) continue;
      const regie_value& r = graph_.value(v);
      const auto& [type, content] = before[i++];
      if (same_type(r.type, type) &&
          std::equal(content.begin(), content.end(), r.content, r.content + r.content_count))
        continue;
      for (const regie_use& use : graph_.uses(v)) {
        const bool of_region = use.node & REGIE_USE_REGION;
        const uint32_t reader = of_region ? graph_.region(use.node & ~REGIE_USE_REGION).parent : use.node;
        if (reader != REGIE_NONE) wait(reader);
      }
    }
  }
}

}  // namespace regie::recording
