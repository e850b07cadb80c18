#include <algorithm>
#include <cmath>
#include <optional>

#include "base/toml.h"
#include "rules/expr.h"
#include "rules/functions.h"
#include "rules/numbers.h"
#include "text/text.h"

namespace regie {
namespace {

// What the match reads from outside, by its slot, where that is `v`, which it makes: Add(%c, %r) of one
// value. What stands in the place of the match would read it still.
uint32_t outside_name(const MatchState& m, uint32_t v) {
  for (uint32_t slot = 0; slot < m.values.size(); ++slot)
    if (m.rule->values[slot].node == kNoSlot && m.values[slot] == v) return slot;
  return kNoSlot;
}

struct PredicateInfo {
  std::string_view name;
  PredicateKind kind;
  size_t least, most;  // values
};
constexpr PredicateInfo kPredicates[] = {
    {"const", PredicateKind::kConst, 1, SIZE_MAX},
    {"weight", PredicateKind::kWeight, 1, SIZE_MAX},
    {"present", PredicateKind::kPresent, 1, 1},
    {"absent", PredicateKind::kAbsent, 1, 1},
    {"single-use", PredicateKind::kSingleUse, 1, SIZE_MAX},
    {"not-output", PredicateKind::kNotOutput, 1, SIZE_MAX},
    {"same-shape", PredicateKind::kSameShape, 2, SIZE_MAX},
    {"same-elem", PredicateKind::kSameElem, 2, SIZE_MAX},
    {"same-type", PredicateKind::kSameType, 2, SIZE_MAX},
    {"is-splat", PredicateKind::kSplat, 1, SIZE_MAX},
    {"static-shape", PredicateKind::kStaticShape, 1, SIZE_MAX},
    {"broadcasts-to-channel", PredicateKind::kBroadcastsToChannel, 2, 2},
    {"broadcasts-to", PredicateKind::kBroadcastsTo, 2, 2},
    {"varies-along", PredicateKind::kVariesAlong, 2, 2},
};

// Takes an axis behind its two values.
bool takes_axis(PredicateKind kind) {
  return kind == PredicateKind::kBroadcastsToChannel || kind == PredicateKind::kVariesAlong;
}

Result<Predicate> parse_call(RuleCursor& at, const RuleNames& names, const PredicateInfo& info) {
  Predicate p;
  p.kind = info.kind;
  at.next(), at.next();
  while (!at.at_sign(")")) {
    if (!p.values.empty()) REGIE_TRY(at.expect_sign(","));
    if (takes_axis(info.kind) && p.values.size() == 2) {
      REGIE_ASSIGN(RuleExpr axis, parse_expr(at, names, nullptr));
      p.exprs.push_back(std::move(axis));
      break;
    }
    REGIE_ASSIGN(uint32_t slot, use_value(at, names));
    p.values.push_back(slot);
  }
  if (p.values.size() < info.least || p.values.size() > info.most)
    return at.error("'" + std::string(info.name) + "' takes " + (info.least == info.most ? "" : "at least ") +
                    std::to_string(info.least) + " value(s), has " + std::to_string(p.values.size()));
  REGIE_TRY(at.expect_sign(")"));
  if (takes_axis(p.kind) && p.exprs.empty()) {
    RuleExpr axis;
    axis.literal = AttrValue::integer("", 1);
    p.exprs.push_back(std::move(axis));
  }
  return p;
}

std::optional<CompareOp> take_compare(RuleCursor& at) {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  for (auto [sign, op] : kOps)
    if (at.take_sign(sign)) return op;
  return std::nullopt;
}

bool known_dims(const regie_type& t) {
  return t.rank >= 0 && std::find(t.dims, t.dims + t.rank, REGIE_DIM_UNKNOWN) == t.dims + t.rank;
}

bool same_dims(const regie_type& a, const regie_type& b) {
  return known_dims(a) && known_dims(b) && std::equal(a.dims, a.dims + a.rank, b.dims, b.dims + b.rank);
}

// Where the two can be broadcast to each other at all, is the result's dimension b? It is if a is 1 or b, or
// never greater than b, and 0 only where b is: then it is b or 1, as b is.
bool fits_into(regie_dim a, regie_dim b, DimTable& dims) {
  if (a == 1 || a == b) return true;
  if (a >= 0 && b >= 0) return false;
  const regie_dim more = dims.sub(b, a);
  if (more == REGIE_DIM_UNKNOWN || dims.range(more).first < 0) return false;
  return dims.range(a).first >= 1 || dims.op(REGIE_DIM_MIN, a, 1) == dims.op(REGIE_DIM_MIN, b, 1);
}

// %a broadcast against %b, right-aligned, does not enlarge %b; with `axis` it has one element on all others.
bool broadcasts_to(const regie_type& a, const regie_type& b, std::optional<int64_t> axis, DimTable& dims) {
  if (!known_dims(a) || !known_dims(b) || a.rank > b.rank) return false;
  if (axis && *axis < 0) *axis += b.rank;
  if (axis && (*axis < 0 || *axis >= b.rank)) return false;
  const int32_t shift = b.rank - a.rank;
  for (int32_t i = 0; i < a.rank; ++i) {
    const bool free = !axis || i + shift == *axis;
    if (a.dims[i] != 1 && !(free && fits_into(a.dims[i], b.dims[i + shift], dims))) return false;
  }
  return true;
}

// The same, and it has one element per index of `axis`.
bool broadcasts_to_channel(const regie_type& a, const regie_type& b, int64_t axis, DimTable& dims) {
  if (!broadcasts_to(a, b, axis, dims)) return false;
  if (axis < 0) axis += b.rank;
  const int64_t own = axis - (b.rank - a.rank);
  return own >= 0 && a.dims[own] == b.dims[axis];
}

bool holds_broadcast(const Predicate& p, const MatchState& m) {
  const regie_type& a = m.graph->value(m.values[p.values[0]]).type;
  const regie_type& b = m.graph->value(m.values[p.values[1]]).type;
  DimTable& dims = m.graph->dims();
  if (!takes_axis(p.kind)) return broadcasts_to(a, b, std::nullopt, dims);
  const auto axis = evaluate_expr(p.exprs[0], m);
  if (!axis || axis->kind != REGIE_ATTR_INT) return false;
  return p.kind == PredicateKind::kVariesAlong ? broadcasts_to(a, b, axis->i, dims)
                                               : broadcasts_to_channel(a, b, axis->i, dims);
}

bool compare(const Predicate& p, const AttrValue& a, const AttrValue& b, const Graph& graph) {
  if (a.kind == kRuleDim || b.kind == kRuleDim) {
    if (a.kind == b.kind && a.i == b.i)
      return p.op == CompareOp::kEq || p.op == CompareOp::kLe || p.op == CompareOp::kGe;
    auto usable = [](const AttrValue& v) {
      return v.kind == kRuleDim || (v.kind == REGIE_ATTR_INT && v.i >= 0);
    };
    if (!usable(a) || !usable(b)) return false;
    regie_dim difference = graph.dims().sub(a.i, b.i);
    if (difference == REGIE_DIM_UNKNOWN) return false;
    auto [least, most] = graph.dims().range(difference);
    switch (p.op) {
      case CompareOp::kEq:
        return least == 0 && most == 0;
      case CompareOp::kNe:
        return least > 0 || most < 0;
      case CompareOp::kLt:
        return most < 0;
      case CompareOp::kLe:
        return most <= 0;
      case CompareOp::kGt:
        return least > 0;
      case CompareOp::kGe:
        return least >= 0;
    }
  }
  auto number = [](const AttrValue& v) -> std::optional<double> {
    if (v.kind == REGIE_ATTR_INT) return static_cast<double>(v.i);
    if (v.kind == REGIE_ATTR_FLOAT) return v.f;
    return std::nullopt;
  };
  auto x = number(a), y = number(b);
  if (p.op == CompareOp::kEq || p.op == CompareOp::kNe) {
    bool same = x && y && p.tolerance > 0 ? std::fabs(*x - *y) <= p.tolerance : same_attr(a, b);
    return same == (p.op == CompareOp::kEq);
  }
  if (!x || !y) return false;
  switch (p.op) {
    case CompareOp::kLt:
      return *x < *y;
    case CompareOp::kLe:
      return *x <= *y;
    case CompareOp::kGt:
      return *x > *y;
    default:
      return *x >= *y;
  }
}

bool is_in(const AttrValue& a, const AttrValue& list) {
  for (const std::string& s : list.strings)
    if (same_attr(a, AttrValue::text("", s))) return true;
  for (int64_t i : list.ints)
    if (same_attr(a, AttrValue::integer("", i))) return true;
  for (double f : list.floats)
    if (same_attr(a, AttrValue::number("", f))) return true;
  return false;
}

bool holds_for_all(const Predicate& p, const MatchState& m) {
  const Graph& g = *m.graph;
  for (uint32_t slot : p.values) {
    uint32_t v = m.values[slot];
    if (v == REGIE_NONE) continue;
    bool ok = true;
    switch (p.kind) {
      case PredicateKind::kConst:
        ok = g.is_constant(v);
        break;
      case PredicateKind::kWeight:
        ok = g.value(v).kind == REGIE_VALUE_WEIGHT;
        break;
      case PredicateKind::kSingleUse:
        for (const regie_use& use : g.uses(v)) {  // the first reader outside ends it: hubs have many
          ok = !(use.node & REGIE_USE_REGION) && m.matched(use.node);
          if (!ok) break;
        }
        ok = ok && outside_name(m, v) == kNoSlot;
        break;
      case PredicateKind::kNotOutput:
        ok = !m.read_by_region(v);
        break;
      case PredicateKind::kSplat:
        ok = splat_of(g, v).has_value();
        break;
      default: {
        const regie_type& t = g.value(v).type;
        ok = known_dims(t) && std::all_of(t.dims, t.dims + t.rank, [](regie_dim d) { return d >= 0; });
      }
    }
    if (!ok) return false;
  }
  return true;
}

bool holds_pairwise(const Predicate& p, const MatchState& m) {
  const regie_type* first = nullptr;
  for (uint32_t slot : p.values) {
    if (m.values[slot] == REGIE_NONE) continue;
    const regie_type& t = m.graph->value(m.values[slot]).type;
    if (p.kind != PredicateKind::kSameShape && t.elem == REGIE_ELEM_UNKNOWN) return false;
    if (p.kind != PredicateKind::kSameElem && !known_dims(t)) return false;
    if (!first) first = &t;
    if (p.kind != PredicateKind::kSameShape && t.elem != first->elem) return false;
    if (p.kind != PredicateKind::kSameElem && !same_dims(*first, t)) return false;
  }
  return true;
}

}  // namespace

Result<Predicate> parse_predicate(std::string_view text, const std::string& file, int line,
                                  const RuleNames& names) {
  std::string plain(text);
  constexpr std::string_view kPlusMinus = "\xC2\xB1";
  for (size_t at; (at = plain.find(kPlusMinus)) != std::string::npos;)
    plain.replace(at, kPlusMinus.size(), "+- ");
  REGIE_ASSIGN(auto lexemes, lex_rule(plain, file, line));
  RuleCursor at(std::move(lexemes), file);
  Predicate p;
  bool call = at.at(RuleToken::kWord) && at.at_sign("(", 1);
  const auto* info = std::find_if(std::begin(kPredicates), std::end(kPredicates),
                                  [&](const PredicateInfo& i) { return call && at.at_word(i.name); });
  if (info != std::end(kPredicates)) {
    REGIE_ASSIGN(p, parse_call(at, names, *info));
  } else {
    std::vector<std::string> known = function_names();
    if (call && std::find(known.begin(), known.end(), at.peek().text) == known.end()) {
      // What is nothing but a call is a predicate; in a comparison it is a function.
      const size_t last = plain.find_last_not_of(' ');
      std::vector<std::string> predicates;
      for (const PredicateInfo& i : kPredicates) predicates.emplace_back(i.name);
      std::optional<std::string> near;
      if (last != std::string::npos && plain[last] == ')' && plain.find_first_of("<>=") == std::string::npos)
        near = nearest_name(at.peek().text, predicates);
      known.insert(known.end(), predicates.begin(), predicates.end());
      if (!near) near = nearest_name(at.peek().text, known);
      return at.error("unknown predicate '" + at.peek().text + "'" +
                      (near ? "; did you mean '" + *near + "'?" : "; docs/rules.md lists them"));
    }
    REGIE_ASSIGN(RuleExpr left, parse_expr(at, names, &p.values));
    if (at.at_word("in")) {
      at.next();
      p.kind = PredicateKind::kIn;
    } else {
      auto op = take_compare(at);
      if (!op) return at.expected("a comparison (== != < <= > >=) or 'in [...]'");
      p.kind = PredicateKind::kCompare;
      p.op = *op;
    }
    REGIE_ASSIGN(RuleExpr right, parse_expr(at, names, &p.values));
    if (p.kind == PredicateKind::kIn && right.kind != RuleExpr::Kind::kList)
      return at.error("'in' needs a list: in [f32, f16]");
    if (at.take_sign("+-")) {
      if (!at.at(RuleToken::kInteger) && !at.at(RuleToken::kFloat)) return at.expected("a tolerance");
      if (p.kind != PredicateKind::kCompare || (p.op != CompareOp::kEq && p.op != CompareOp::kNe))
        return at.error("a tolerance goes with == or != only");
      p.tolerance = at.next().number;
    }
    p.exprs.push_back(std::move(left));
    p.exprs.push_back(std::move(right));
  }
  if (!at.at(RuleToken::kLine) && !at.at(RuleToken::kEnd)) return at.expected("the end of the condition");
  p.text = std::string(text);
  return p;
}

bool holds(const Predicate& p, const MatchState& m) {
  if (p.kind == PredicateKind::kPresent) return m.values[p.values[0]] != REGIE_NONE;
  if (p.kind == PredicateKind::kAbsent) return m.values[p.values[0]] == REGIE_NONE;
  // Nothing is asked of an absent value.
  bool whole =
      std::none_of(p.values.begin(), p.values.end(), [&](uint32_t v) { return m.values[v] == REGIE_NONE; });
  switch (p.kind) {
    case PredicateKind::kSameShape:
    case PredicateKind::kSameElem:
    case PredicateKind::kSameType:
      return holds_pairwise(p, m);
    case PredicateKind::kBroadcastsTo:
    case PredicateKind::kVariesAlong:
    case PredicateKind::kBroadcastsToChannel:
      return !whole || holds_broadcast(p, m);
    case PredicateKind::kCompare:
    case PredicateKind::kIn: {
      if (!whole) return true;
      auto a = evaluate_expr(p.exprs[0], m), b = evaluate_expr(p.exprs[1], m);
      if (!a || !b) return false;
      return p.kind == PredicateKind::kIn ? is_in(*a, *b) : compare(p, *a, *b, *m.graph);
    }
    default:
      return holds_for_all(p, m);
  }
}

std::string describe_binding(const MatchState& m, uint32_t slot) {
  std::string text = "%" + m.rule->values[slot].name + ": ";
  uint32_t v = m.values[slot];
  if (v == REGIE_NONE) return text + "absent";
  if (v == kUnboundValue) return text + "not reached";
  return text + print_type(*m.graph, m.graph->value(v).type);
}

std::string explain(const Predicate& p, const MatchState& m, uint32_t* in_the_way) {
  const Graph& g = *m.graph;
  *in_the_way = REGIE_NONE;
  if (p.kind == PredicateKind::kSingleUse || p.kind == PredicateKind::kNotOutput) {
    for (uint32_t slot : p.values) {
      uint32_t v = m.values[slot];
      if (v == REGIE_NONE) continue;
      const std::string name = "%" + m.rule->values[slot].name;
      if (m.read_by_region(v)) return name + " is a result of the graph or region";
      if (p.kind == PredicateKind::kNotOutput) continue;
      if (const uint32_t outside = outside_name(m, v); outside != kNoSlot)
        return name + " is %" + m.rule->values[outside].name + " as well, which stays";
      std::string readers;
      size_t listed = 0, count = g.uses(v).size();
      for (const regie_use& use : g.uses(v)) {
        if (*in_the_way == REGIE_NONE && !m.matched(use.node)) *in_the_way = use.node;
        if (++listed > 4) continue;
        readers += (listed > 1 ? ", " : "") + g.describe_node(use.node);
      }
      if (*in_the_way == REGIE_NONE) continue;
      return name + " has " + std::to_string(count) + " readers: " + readers + (listed > 4 ? ", ..." : "");
    }
  }
  std::string text = "when: " + p.text;
  std::string found;
  std::vector<uint32_t> said;
  for (uint32_t slot : p.values) {
    if (std::find(said.begin(), said.end(), slot) != said.end()) continue;
    said.push_back(slot);
    uint32_t v = m.values[slot];
    found += (found.empty() ? "" : ", ") + describe_binding(m, slot);
    if (v >= kUnboundValue) continue;
    const regie_value& value = g.value(v);
    if ((p.kind == PredicateKind::kConst || p.kind == PredicateKind::kWeight) && !g.is_constant(v)) {
      found += " is " + g.describe_value(v);
    }
    if (value.kind == REGIE_VALUE_RESULT && !m.matched(value.owner) && *in_the_way == REGIE_NONE)
      *in_the_way = value.owner;
  }
  if (p.kind == PredicateKind::kCompare || p.kind == PredicateKind::kIn) {
    for (const RuleExpr& e : p.exprs) {
      if (e.kind == RuleExpr::Kind::kLiteral || e.kind == RuleExpr::Kind::kList) continue;
      auto v = evaluate_expr(e, m);
      std::string shown = !v                             ? "unknown"
                          : v->kind == REGIE_ATTR_INT    ? std::to_string(v->i)
                          : v->kind == REGIE_ATTR_FLOAT  ? std::to_string(v->f)
                          : v->kind == REGIE_ATTR_STRING ? v->s
                          : v->kind == kRuleDim          ? g.dims().print(v->i)
                          : v->kind == 0                 ? "absent"
                                                         : "a list";
      found += (found.empty() ? "" : ", ") + std::string("found ") + shown;
    }
  }
  return found.empty() ? text : text + " (" + found + ")";
}

}  // namespace regie
