#include "rules/emit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rules/expr.h"
#include "rules/numbers.h"

namespace regie {
namespace {

bool in_force(const Statement& s, const MatchState& m) {
  return s.condition == kNoSlot || (m.values[s.condition] != REGIE_NONE) == s.if_present;
}

// Numbers take the kind that the schema asks for, where nothing is lost.
bool convert(AttrValue* v, uint32_t kind) {
  if (v->kind == kRuleDim) return false;
  if (kind == 0 || v->kind == kind) return true;
  if (kind == REGIE_ATTR_FLOAT && v->kind == REGIE_ATTR_INT) {
    v->f = static_cast<double>(v->i);
  } else if (kind == REGIE_ATTR_INT && v->kind == REGIE_ATTR_FLOAT && v->f == std::nearbyint(v->f) &&
             std::fabs(v->f) < 9e15) {
    v->i = static_cast<int64_t>(v->f);
  } else if (kind == REGIE_ATTR_FLOATS && v->kind == REGIE_ATTR_INTS) {
    v->floats.assign(v->ints.begin(), v->ints.end());
  } else if (kind != REGIE_ATTR_STRINGS || v->kind != REGIE_ATTR_INTS || !v->ints.empty()) {
    return false;  // the last case: an empty list
  }
  v->kind = kind;
  return true;
}

void put(std::vector<AttrValue>* attrs, AttrValue v) {
  auto at = std::find_if(attrs->begin(), attrs->end(), [&](const AttrValue& a) { return a.name == v.name; });
  if (at != attrs->end()) attrs->erase(at);
  if (v.kind != 0) attrs->push_back(std::move(v));
}

// Copies first, so that what is named wins wherever it stands.
std::optional<std::vector<AttrValue>> make_attrs(const Statement& s, const MatchState& m) {
  std::vector<AttrValue> attrs;
  for (const AttrAssignment& a : s.attrs) {
    if (a.spread == kNoSlot) continue;
    const regie_node& from = m.graph->node(m.nodes[a.spread]);
    for (uint32_t i = 0; i < from.attr_count; ++i) put(&attrs, AttrValue::of(from.attrs[i]));
  }
  for (const AttrAssignment& a : s.attrs) {
    if (a.spread != kNoSlot) continue;
    auto v = evaluate_expr(a.expr, m);
    if (!v || (v->kind != 0 && !convert(&*v, a.kind))) return std::nullopt;
    v->name = a.name;
    put(&attrs, std::move(*v));
  }
  return attrs;
}

// A number gives a tensor of rank 0, a list one of rank 1.
std::optional<Tensor> make_constant(const Statement& s, const MatchState& m) {
  auto v = evaluate_expr(s.expr, m);
  if (!v) return std::nullopt;
  regie_elem elem = s.elem;
  if (s.elem_of != kNoSlot) {
    uint32_t like = m.values[s.elem_of];
    if (like >= kUnboundValue) return std::nullopt;
    elem = m.graph->value(like).type.elem;
  }
  if (!is_float(elem) && !is_integer(elem) && elem != REGIE_BOOL) return std::nullopt;
  bool list = v->kind == REGIE_ATTR_INTS || v->kind == REGIE_ATTR_FLOATS;
  if (v->kind == REGIE_ATTR_INT) v->ints.push_back(v->i);
  if (v->kind == REGIE_ATTR_FLOAT) v->floats.push_back(v->f);
  if (v->ints.empty() && v->floats.empty() && !list) return std::nullopt;
  const int64_t count = static_cast<int64_t>(v->ints.size() + v->floats.size());
  Tensor t = Tensor::zeros(elem, list ? std::span<const int64_t>(&count, 1) : std::span<const int64_t>());
  if (elem == REGIE_I64 && !v->ints.empty()) {
    std::memcpy(t.mutable_data(), v->ints.data(), v->ints.size() * sizeof(int64_t));
    return t;
  }
  if (!is_float(elem))
    for (double f : v->floats)
      if (f != std::nearbyint(f)) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    double number = v->ints.empty() ? v->floats[static_cast<size_t>(i)]
                                    : static_cast<double>(v->ints[static_cast<size_t>(i)]);
    if (!set_number(t, i, number)) return std::nullopt;
  }
  return t;
}

// The framework's name: of the node whose attributes are copied, else of the root for what takes the root's
// place.
std::string node_name(const Statement& s, const MatchState& m) {
  for (const AttrAssignment& a : s.attrs)
    if (a.spread != kNoSlot) return std::string(view(m.graph->node(m.nodes[a.spread]).name));
  for (auto [root, slot] : m.rule->replaced)
    if (std::find(s.results.begin(), s.results.end(), slot) != s.results.end())
      return std::string(view(m.graph->node(m.nodes.back()).name));
  return {};
}

}  // namespace

bool can_emit(const MatchState& m, uint32_t* statement) {
  for (uint32_t i = 0; i < m.rule->statements.size(); ++i) {
    const Statement& s = m.rule->statements[i];
    *statement = i;
    if (!in_force(s, m)) continue;
    if (s.kind == Statement::Kind::kNode && !make_attrs(s, m)) return false;
    if (s.kind == Statement::Kind::kConstant && !make_constant(s, m)) return false;
    if (s.kind == Statement::Kind::kAlias && s.operands[0] < m.rule->match_values &&
        m.values[s.operands[0]] == REGIE_NONE)
      return false;
  }
  return true;
}

Result<EmittedPatch> emit(const MatchState& m, Edit& edit) {
  const Rule& rule = *m.rule;
  EmittedPatch out;
  std::vector<uint32_t> values(m.values);
  REGIE_TRY(edit.begin("rule " + rule.name, m.nodes.back()));
  for (const Statement& s : rule.statements) {
    if (!in_force(s, m)) continue;
    for (uint32_t slot : s.operands)
      if (slot < rule.match_values && values[slot] < kUnboundValue) out.read.push_back(values[slot]);
    if (s.kind == Statement::Kind::kAlias) {
      values[s.results[0]] = values[s.operands[0]];
      continue;
    }
    if (s.kind == Statement::Kind::kConstant) {
      auto tensor = make_constant(s, m);
      if (!tensor) return internal_error("constant of rule '" + rule.name + "' cannot be made");
      REGIE_ASSIGN(values[s.results[0]], edit.constant(REGIE_VALUE_CONSTANT, std::move(*tensor), ""));
      continue;
    }
    auto attrs = make_attrs(s, m);
    if (!attrs) return internal_error("attributes of rule '" + rule.name + "' cannot be made");
    NodeSpec spec;
    spec.op = std::string(name_of(s.op_slot == kNoSlot ? s.op : m.attrs[s.op_slot].op));
    spec.name = node_name(s, m);
    for (uint32_t slot : s.operands) spec.operands.push_back(slot == kNoSlot ? REGIE_NONE : values[slot]);
    while (!spec.operands.empty() && spec.operands.back() == REGIE_NONE) spec.operands.pop_back();
    spec.attrs = std::move(*attrs);
    spec.result_count = static_cast<uint32_t>(s.results.size());
    REGIE_ASSIGN(auto results, edit.node(std::move(spec)));
    for (size_t i = 0; i < results.size(); ++i) values[s.results[i]] = results[i];
    out.made.insert(out.made.end(), results.begin(), results.end());
  }
  for (auto [root, slot] : rule.replaced) REGIE_TRY(edit.replace(values[root], values[slot]));
  out.removed = m.removable();
  for (uint32_t node : out.removed) REGIE_TRY(edit.remove(node));
  REGIE_TRY(edit.commit());
  return out;
}

}  // namespace regie
