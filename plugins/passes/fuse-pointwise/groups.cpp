#include "groups.h"

#include <algorithm>

#include "regie/c/op_kernel.h"

namespace fuse_pointwise {

using namespace regie::sdk;

namespace {

constexpr uint32_t kMostNotes = 64;  // near misses a compile

bool is_number(regie_elem e) {
  return (e >= REGIE_F32 && e <= REGIE_I64) || (e >= REGIE_BOOL && e <= REGIE_U64) || e == REGIE_BF16;
}

bool is_plain(const regie_type& t) {
  return t.container == REGIE_TENSOR && t.rank >= 0 && is_number(t.elem) && t.format == REGIE_FORMAT_ND;
}

// Each dimension of `from` is that of `to`, or 1.
bool broadcasts(const regie_type& from, const regie_type& to) {
  if (from.rank > to.rank) return false;
  for (int32_t i = 0; i < from.rank; ++i) {
    const regie_dim d = from.dims[i];
    if (d == REGIE_DIM_UNKNOWN || (d != 1 && d != to.dims[to.rank - from.rank + i])) return false;
  }
  return true;
}

}  // namespace

bool is_immediate(const regie_value& v) {
  return is_constant(v) && v.data && v.data->data && !v.data->strides && v.type.elem != REGIE_STRING &&
         count_of(*v.data) == 1;
}

Grouping::Grouping(PassContext& context, const Limits& limits, std::set<uint32_t>* noted)
    : context_(context),
      graph_(context.graph()),
      limits_(limits),
      is_waited_for_(graph_.node_count(), 0),
      is_handed_out_(graph_.value_count(), 0),
      group_of_node_(graph_.node_count(), REGIE_NONE),
      noted_(noted) {
  for (uint32_t r = 0; r < graph_.region_count(); ++r)
    for (uint32_t v : results_of(graph_.region(r)))
      if (v != REGIE_NONE) is_handed_out_[v] = 1;
  for (uint32_t n = 0; n < graph_.node_count(); ++n)
    if (graph_.live(n))
      for (uint32_t before : control_of(graph_.node(n))) is_waited_for_[before] = 1;
}

bool Grouping::is_immediate(uint32_t value) const {
  return value != REGIE_NONE && fuse_pointwise::is_immediate(graph_.value(value));
}

bool Grouping::counts_as_large(uint32_t value, const regie_type& shape) const {
  const regie_value& v = graph_.value(value);
  // Inputs and constants live anyhow, as does what is handed out.
  return v.kind == REGIE_VALUE_RESULT && same_dims(v.type, shape) && !is_handed_out_[value];
}

bool Grouping::is_elementwise(const regie_node& n) {
  auto [at, fresh] = flags_.emplace(n.op_id, 0);
  if (fresh) at->second = context_.op_flags(n.op);
  return (at->second & REGIE_OP_ELEMENTWISE) && !(at->second & REGIE_OP_NONDETERMINISTIC);
}

bool Grouping::is_candidate(const regie_node& n) {
  if (n.region_count || n.control_count || n.result_count != 1 || !is_elementwise(n)) return false;
  if (is_waited_for_[n.id]) return false;
  const regie_value* result = graph_.result(n, 0);
  // Arithmetic on shapes is done at compile time, by the operators one by one.
  if (!result || !is_plain(result->type) || result->content) return false;
  const regie_type& shape = result->type;
  bool any = false;
  for (uint32_t o : operands_of(n)) {
    if (o == REGIE_NONE) continue;
    const regie_value& v = graph_.value(o);
    if (!is_plain(v.type) || !broadcasts(v.type, shape)) return false;
    any |= !is_immediate(o);
  }
  // No dimension may come from two operands of which one is 1 or not, as the sizes will be.
  for (int32_t i = 0; i < shape.rank; ++i) {
    bool found = shape.dims[i] == 1;
    for (uint32_t o : operands_of(n)) {
      if (o == REGIE_NONE) continue;
      const regie_type& t = graph_.value(o).type;
      const int32_t axis = i - (shape.rank - t.rank);
      found |= axis >= 0 && t.dims[axis] == shape.dims[i];
    }
    if (!found) return false;
  }
  return any;
}

uint32_t Grouping::root(uint32_t group) {
  while (parent_[group] != group) group = parent_[group] = parent_[parent_[group]];
  return group;
}

uint32_t Grouping::group_of(uint32_t value) {
  if (value == REGIE_NONE || graph_.value(value).kind != REGIE_VALUE_RESULT) return REGIE_NONE;
  const uint32_t group = group_of_node_[graph_.value(value).owner];
  return group == REGIE_NONE ? REGIE_NONE : root(group);
}

// Does it only make larger elements of what others read as it is? Then its readers had better do so.
bool Grouping::widens_for_others(const regie_node& n) const {
  const regie_value* from = nullptr;
  for (uint32_t o : operands_of(n)) {
    if (o == REGIE_NONE || is_immediate(o)) continue;
    if (from) return false;
    from = &graph_.value(o);
  }
  return from && from->use_count > 1 && !is_handed_out_[n.results[0]] &&
         elem_bits(graph_.result(n, 0)->type.elem) > elem_bits(from->type.elem);
}

std::string Grouping::obstacle(const regie_node& n, const Group& g) const {
  const regie_type& theirs = graph_.result(graph_.node(g.members[0]), 0)->type;
  if (widens_for_others(n))
    return "it makes larger elements of what others read as it is, and had better be done where they are "
           "read";
  if (g.closed) return "another node that stands between reads what is computed before";
  if (!same_dims(graph_.result(n, 0)->type, theirs))
    return "it is of another shape, so that what is computed before would be computed again for each "
           "repetition";
  if (others_ > g.others && g.large > g.open)
    return "what is computed before takes less memory meanwhile than its operands";
  return {};
}

bool Grouping::fits(const regie_node& n, const std::vector<uint32_t>& joined, std::string* why) const {
  size_t nodes = 1;
  std::vector<uint32_t> operands;
  uint32_t open = 1;
  for (uint32_t g : joined) {
    const Group& group = groups_[g];
    nodes += group.members.size();
    open += group.open;
    operands.insert(operands.end(), group.operands.begin(), group.operands.end());
    // What n is the last one to read.
    for (const auto& [value, readers] : group.unread)
      if (readers &&
          readers == static_cast<uint32_t>(std::count(n.operands, n.operands + n.operand_count, value)))
        --open;
  }
  for (uint32_t o : operands_of(n)) {
    const bool inside = o != REGIE_NONE && std::any_of(joined.begin(), joined.end(), [&](uint32_t g) {
                          return groups_[g].unread.count(o) != 0;
                        });
    if (o != REGIE_NONE && !inside && !is_immediate(o)) operands.push_back(o);
  }
  std::sort(operands.begin(), operands.end());
  const auto distinct = static_cast<size_t>(std::unique(operands.begin(), operands.end()) - operands.begin());
  if (nodes > limits_.nodes)
    *why = "the group would have more than " + std::to_string(limits_.nodes) + " nodes";
  if (distinct > limits_.operands)
    *why = "the group would read more than " + std::to_string(limits_.operands) + " values";
  if (open > limits_.results)
    *why = "the group would give more than " + std::to_string(limits_.results) + " results";
  return why->empty();
}

void Grouping::join(const regie_node& n, const std::vector<uint32_t>& joined) {
  uint32_t to = static_cast<uint32_t>(groups_.size());
  if (joined.empty()) {
    groups_.emplace_back();
    parent_.push_back(to);
  } else {
    to = joined[0];
  }
  for (size_t i = 1; i < joined.size(); ++i) {
    Group& from = groups_[joined[i]];
    Group& into = groups_[to];
    into.members.insert(into.members.end(), from.members.begin(), from.members.end());
    std::inplace_merge(into.members.begin(),
                       into.members.end() - static_cast<std::ptrdiff_t>(from.members.size()),
                       into.members.end(),
                       [&](uint32_t a, uint32_t b) { return graph_.node(a).order < graph_.node(b).order; });
    for (uint32_t o : from.operands)
      if (std::find(into.operands.begin(), into.operands.end(), o) == into.operands.end()) {
        into.operands.push_back(o);
        into.large += counts_as_large(o, graph_.result(n, 0)->type);
      }
    into.unread.merge(from.unread);
    into.open += from.open;
    from = {};
    parent_[joined[i]] = to;
  }
  Group& group = groups_[to];
  for (uint32_t o : operands_of(n)) {
    if (o == REGIE_NONE || is_immediate(o)) continue;
    if (auto at = group.unread.find(o); at != group.unread.end()) {
      if (--at->second == 0) --group.open;
    } else if (std::find(group.operands.begin(), group.operands.end(), o) == group.operands.end()) {
      group.operands.push_back(o);
      group.large += counts_as_large(o, graph_.result(n, 0)->type);
    }
  }
  const regie_value& result = *graph_.result(n, 0);
  group.members.push_back(n.id);
  group.unread.emplace(result.id, result.use_count);
  group.open += result.use_count != 0;
  group.others = others_;
  group_of_node_[n.id] = to;
}

void Grouping::near_miss(const regie_node& n, const Group& g, const std::string& why) {
  if (noted_->size() >= kMostNotes || !noted_->insert(n.id).second) return;
  context_.note(
      n.id, "near-miss",
      graph_.describe(n) + " is not one with " + graph_.describe(graph_.node(g.members.back())) + ": " + why);
}

void Grouping::visit(const regie_node& n) {
  std::vector<uint32_t> read, joined;  // groups, each once
  for (uint32_t o : operands_of(n)) {
    const uint32_t g = group_of(o);
    if (g != REGIE_NONE && std::find(read.begin(), read.end(), g) == read.end()) read.push_back(g);
  }
  const bool candidate = is_candidate(n);
  if (candidate) {
    for (uint32_t g : read) {
      std::string why = obstacle(n, groups_[g]);
      if (why.empty()) {
        joined.push_back(g);
        if (fits(n, joined, &why)) continue;
        joined.pop_back();
      }
      near_miss(n, groups_[g], why);
    }
  }
  for (uint32_t g : read)
    if (std::find(joined.begin(), joined.end(), g) == joined.end()) groups_[g].closed = true;
  if (candidate) join(n, joined);
  // What only gives the same bytes another shape takes no time in which memory would be missed.
  else if (!(context_.op_flags(n.op) & REGIE_OP_VIEW))
    ++others_;
}

std::vector<Group> Grouping::find(uint32_t region) {
  groups_.clear();
  parent_.clear();
  for (const regie_node& n : graph_.nodes(region)) visit(n);
  std::erase_if(groups_, [](const Group& g) { return g.members.size() < 2 || g.open == 0; });
  std::sort(groups_.begin(), groups_.end(), [&](const Group& a, const Group& b) {
    return graph_.node(a.members.back()).order < graph_.node(b.members.back()).order;
  });
  return std::move(groups_);
}

}  // namespace fuse_pointwise
