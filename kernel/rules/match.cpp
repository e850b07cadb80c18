#include "rules/match.h"

#include <algorithm>

#include "rules/emit.h"
#include "rules/expr.h"
#include "text/text.h"

namespace regie {
namespace {

AttrValue value_of(const AttrBinding& b) {
  switch (b.kind) {
    case AttrBinding::Kind::kAttr:
      return AttrValue::of(*b.attr);
    case AttrBinding::Kind::kDefault:
      return *b.fallback;
    default:
      return {};
  }
}

// A rule that only renames its root cannot keep the name of a graph's output, so it must not be one.
bool gives_existing_value(const Rule& rule, uint32_t replacement) {
  for (const Statement& s : rule.statements)
    if (s.kind == Statement::Kind::kAlias && s.results[0] == replacement) return true;
  return false;
}

}  // namespace

bool MatchState::read_by_region(uint32_t value) const {
  auto [at, fresh] = region_reads.try_emplace(value, false);
  if (fresh)
    for (const regie_use& use : graph->uses(value)) at->second = at->second || (use.node & REGIE_USE_REGION);
  return at->second;
}

bool MatchState::matched(uint32_t node) const {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::vector<uint32_t> MatchState::removable() const {
  std::vector<uint32_t> gone{nodes.back()};
  std::vector<uint32_t> read;  // by the replacement
  auto reads = [&](uint32_t slot) {
    if (slot < rule->match_values && values[slot] < kUnboundValue) read.push_back(values[slot]);
  };
  for (const Statement& s : rule->statements) {
    if (s.condition != kNoSlot && (values[s.condition] != REGIE_NONE) != s.if_present) continue;
    for (uint32_t slot : s.operands) reads(slot);
  }
  for (size_t i = nodes.size() - 1; i-- > 0;) {
    bool unread = true;
    for (uint32_t value : graph->results(nodes[i])) {
      if (value == REGIE_NONE) continue;
      unread = unread && std::find(read.begin(), read.end(), value) == read.end();
      std::span<const regie_use> uses = graph->uses(value);
      for (size_t u = 0; unread && u < uses.size(); ++u)
        unread = !(uses[u].node & REGIE_USE_REGION) &&
                 std::find(gone.begin(), gone.end(), uses[u].node) != gone.end();
    }
    if (unread && std::find(gone.begin(), gone.end(), nodes[i]) == gone.end()) gone.push_back(nodes[i]);
  }
  return gone;
}

bool Matcher::fail(MatchFailure::Kind kind, uint32_t node, uint32_t index, uint32_t graph_node) {
  failure_ = {kind, node, index, graph_node, progress_};
  return false;
}

bool Matcher::bind_value(uint32_t slot, uint32_t value) {
  uint32_t& bound = state_.values[slot];
  if (bound == kUnboundValue) {
    bound = value;
    return true;
  }
  return bound == value;
}

bool Matcher::bind_attr(const AttrPattern& pattern, const AttrValue& fallback, const regie_attr* attr) {
  AttrBinding binding;
  if (attr) {
    binding.kind = AttrBinding::Kind::kAttr;
    binding.attr = attr;
  } else if (fallback.kind != 0) {
    binding.kind = AttrBinding::Kind::kDefault;
    binding.fallback = &fallback;
  } else {
    binding.kind = AttrBinding::Kind::kAbsent;
  }
  switch (pattern.kind) {
    case AttrPattern::Kind::kNone:
      return !attr;
    case AttrPattern::Kind::kDefault:
      return !attr || (fallback.kind != 0 && same_attr(AttrValue::of(*attr), fallback));
    case AttrPattern::Kind::kLiteral:
      return binding.kind != AttrBinding::Kind::kAbsent && same_attr(value_of(binding), pattern.literal);
    case AttrPattern::Kind::kBind:
      break;
  }
  AttrBinding& slot = state_.attrs[pattern.slot];
  if (slot.kind != AttrBinding::Kind::kUnbound) return same_attr(value_of(slot), value_of(binding));
  slot = binding;
  return true;
}

bool Matcher::match_node(uint32_t index, bool swap) {
  using F = MatchFailure::Kind;
  const Rule& rule = *state_.rule;
  const Graph& g = *state_.graph;
  const PatternNode& p = rule.nodes[index];
  uint32_t id = root_;
  if (p.via != kNoSlot) {
    const regie_value& v = g.value(state_.values[p.via]);
    if (v.kind != REGIE_VALUE_RESULT) return fail(F::kNotProduced, index, 0, REGIE_NONE);
    id = v.owner;
  }
  const regie_node& node = g.node(id);
  const PatternOp* op = nullptr;
  for (const PatternOp& o : p.ops)
    if (o.op == node.op_id) op = &o;
  if (!op) return fail(p.via == kNoSlot ? F::kRootOp : F::kOp, index, 0, id);
  ++progress_;
  state_.nodes[index] = id;
  if (p.op_slot != kNoSlot) {
    AttrBinding& b = state_.attrs[p.op_slot];
    if (b.kind == AttrBinding::Kind::kOp && b.op != node.op_id) return fail(F::kOp, index, 0, id);
    b.kind = AttrBinding::Kind::kOp;
    b.op = node.op_id;
  }
  if (node.region_count > 0) return fail(F::kRegions, index, 0, id);
  if (node.control_count > 0) return fail(F::kControl, index, 0, id);

  for (uint32_t r = 0; r < std::max<size_t>(p.results.size(), node.result_count); ++r) {
    uint32_t have = r < node.result_count ? node.results[r] : REGIE_NONE;
    if (r >= p.results.size()) {
      if (have != REGIE_NONE && g.value(have).use_count > 0) return fail(F::kResult, index, r, id);
    } else if (p.results[r] != kNoSlot && (have == REGIE_NONE || !bind_value(p.results[r], have))) {
      return fail(F::kResult, index, r, id);
    }
  }
  ++progress_;

  for (uint32_t a = 0; a < p.attrs.size(); ++a) {
    if (!bind_attr(p.attrs[a], op->defaults[a], g.find_attr(id, p.attrs[a].name)))
      return fail(F::kAttr, index, a, id);
    ++progress_;
  }

  for (uint32_t o = 0; o < std::max<size_t>(p.operands.size(), node.operand_count); ++o) {
    uint32_t from = swap && o < 2 ? 1 - o : o;
    uint32_t have = from < node.operand_count ? node.operands[from] : REGIE_NONE;
    if (o >= p.operands.size()) {
      if (have != REGIE_NONE) return fail(F::kOperandExtra, index, o, id);
      continue;
    }
    const PatternOperand& operand = p.operands[o];
    if (operand.value == kNoSlot) {
      if (have != REGIE_NONE) return fail(F::kOperandPresent, index, o, id);
      continue;
    }
    if (have == REGIE_NONE && !operand.optional) return fail(F::kOperandMissing, index, o, id);
    if (!bind_value(operand.value, have)) return fail(F::kNotSame, index, o, id);
    ++progress_;
  }
  return true;
}

bool Matcher::condition(uint32_t index) {
  if (!holds(state_.rule->when[index], state_)) return fail(MatchFailure::Kind::kWhen, 0, index, REGIE_NONE);
  ++progress_;
  return true;
}

bool Matcher::attempt(uint64_t swaps, uint32_t* seen) {
  using F = MatchFailure::Kind;
  const Rule& rule = *state_.rule;
  state_.nodes.assign(rule.nodes.size(), REGIE_NONE);
  state_.values.assign(rule.values.size(), kUnboundValue);
  state_.attrs.assign(rule.attrs.size(), {});
  for (uint32_t slot : rule.absent_values) state_.values[slot] = REGIE_NONE;
  for (uint32_t slot : rule.absent_attrs) state_.attrs[slot].kind = AttrBinding::Kind::kAbsent;
  progress_ = 0;
  *seen = 0;
  for (size_t step = 0; step < rule.order.size(); ++step) {
    const uint32_t index = rule.order[step];
    bool swap = false;
    if (rule.nodes[index].commutative) swap = swaps >> (63 - (*seen)++) & 1;
    if (!match_node(index, swap)) return false;
    for (uint32_t i : rule.when_at[step])
      if (!condition(i)) return false;
  }
  for (uint32_t i = 0; i < rule.lets.size(); ++i) {
    const Let& let = rule.lets[i];
    bool vacuous = false;
    for (uint32_t slot : let.values) vacuous = vacuous || state_.values[slot] == REGIE_NONE;
    auto value = evaluate_expr(let.expr, state_);
    if (!value && !vacuous) return fail(F::kLet, 0, i, REGIE_NONE);
    AttrBinding& b = state_.attrs[let.slot];
    b.kind = value ? AttrBinding::Kind::kComputed : AttrBinding::Kind::kAbsent;
    if (value) b.computed = std::move(*value);
    ++progress_;
  }
  for (uint32_t i : rule.when_last)
    if (!condition(i)) return false;
  if (uint32_t statement = 0; !can_emit(state_, &statement))
    return fail(F::kReplace, 0, statement, REGIE_NONE);
  for (auto [root, replacement] : rule.replaced) {
    if (!gives_existing_value(rule, replacement)) continue;
    if (state_.read_by_region(state_.values[root])) return fail(F::kOutput, 0, root, root_);
  }
  return true;
}

bool Matcher::may_match(const Rule& rule, uint32_t root) const {
  const Graph& g = *state_.graph;
  const std::span<const uint32_t> operands = g.operands(root);
  auto made_by = [&](uint32_t operand, const PatternNode& producer) {
    if (operand >= operands.size() || operands[operand] == REGIE_NONE) return false;
    const regie_value& v = g.value(operands[operand]);
    if (v.kind != REGIE_VALUE_RESULT) return false;
    const NameId op = g.node(v.owner).op_id;
    return std::any_of(producer.ops.begin(), producer.ops.end(),
                       [&](const PatternOp& o) { return o.op == op; });
  };
  const bool commutative = rule.nodes.back().commutative;
  return std::all_of(rule.feeders.begin(), rule.feeders.end(), [&](const auto& feeder) {
    const auto& [operand, node] = feeder;
    return made_by(operand, rule.nodes[node]) ||
           (commutative && operand < 2 && made_by(1 - operand, rule.nodes[node]));
  });
}

bool Matcher::match(const Rule& rule, uint32_t root) {
  state_.rule = &rule;
  root_ = root;
  best_ = {};
  // Bit 63 - i of `swaps` is the order of the i-th commutative node that an attempt meets. A failure after
  // `seen` of them does not depend on the rest, so the next attempt is the next number in those bits.
  uint64_t swaps = 0;
  for (bool first = true;; first = false) {
    uint32_t seen = 0;
    if (attempt(swaps, &seen)) {
      best_ = {};
      return true;
    }
    if (first || failure_.progress > best_.progress) {
      best_ = failure_;
      best_swaps_ = swaps;
    }
    if (seen == 0) return false;
    uint64_t bit = uint64_t{1} << (64 - seen);
    uint64_t next = (swaps & ~(bit - 1)) + bit;
    if (next == 0) return false;  // wrapped: all orders were tried
    swaps = next;
  }
}

std::string Matcher::reason() const {
  using F = MatchFailure::Kind;
  const Rule& rule = *state_.rule;
  const MatchFailure& f = best_;
  const PatternNode& p = rule.nodes[f.node];
  const std::string via = p.via == kNoSlot ? "the root " + p.ops_text : "%" + rule.values[p.via].name;
  const std::string op = p.via == kNoSlot ? via : via + " (" + p.ops_text + ")";
  auto operand = [&] {
    if (f.index < p.operands.size() && p.operands[f.index].value != kNoSlot)
      return "%" + rule.values[p.operands[f.index].value].name;
    return "operand " + std::to_string(f.index);
  };
  switch (f.kind) {
    case F::kNone:
      return "it matches";
    case F::kRootOp:
    case F::kNotProduced:
    case F::kOp:
      return via + ": " + p.ops_text + " expected";
    case F::kResult:
      return op + ": result " + std::to_string(f.index) +
             (f.index < p.results.size() ? " is not there" : " is used");
    case F::kOperandMissing:
      return op + ": " + operand() + " is absent";
    case F::kOperandExtra:
    case F::kOperandPresent:
      return op + ": operand " + std::to_string(f.index) + " must be absent";
    case F::kNotSame:
      return op + ": " + operand() + " is not the same value everywhere";
    case F::kAttr:
      return op + ": attribute '" + p.attrs[f.index].name + "' has another value";
    case F::kRegions:
      return op + ": the node has regions";
    case F::kControl:
      return op + ": the node has control edges";
    case F::kOutput:
      return "%" + rule.values[f.index].name + " is a result of the graph or region";
    case F::kLet:
      return "let: " + rule.lets[f.index].text + " cannot be computed";
    case F::kReplace:
      return "replace: the attributes or the constant of line " +
             std::to_string(rule.statements[f.index].line) + " cannot be computed";
    case F::kWhen:
      return "when: " + rule.when[f.index].text;
  }
  return {};
}

std::string Matcher::details(uint32_t* in_the_way) {
  using F = MatchFailure::Kind;
  const MatchFailure f = best_;
  uint32_t seen = 0;
  attempt(best_swaps_, &seen);  // the state may be that of a later attempt
  best_ = f;
  const Graph& g = *state_.graph;
  *in_the_way = f.graph_node;
  std::string text = reason();
  switch (f.kind) {
    case F::kNotProduced:
      return text + ", found " + g.describe_value(state_.values[state_.rule->nodes[f.node].via]);
    case F::kRootOp:
    case F::kOp:
      return text + ", found " + g.describe_node(f.graph_node);
    case F::kLet: {
      for (uint32_t slot : state_.rule->lets[f.index].values) text += ", " + describe_binding(state_, slot);
      return text;
    }
    case F::kWhen:
      return explain(state_.rule->when[f.index], state_, in_the_way);
    default:
      if (f.graph_node != REGIE_NONE && f.graph_node != root_) text += " at " + g.describe_node(f.graph_node);
      return text;
  }
}

}  // namespace regie
