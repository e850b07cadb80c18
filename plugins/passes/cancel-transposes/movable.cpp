#include "movable.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace transposes {
namespace {

using regie::sdk::Attrs;
using regie::sdk::GraphView;
using regie::sdk::sv;

// Sorted, for binary search.
constexpr std::array<std::string_view, 53> kElementwise = {
    "Abs",         "Acos",       "Acosh",    "Add",   "And",   "Asin",      "Asinh",   "Atan",
    "Atanh",       "Cast",       "Ceil",     "Celu",  "Clip",  "Cos",       "Cosh",    "Div",
    "Elu",         "Equal",      "Erf",      "Exp",   "Floor", "Gelu",      "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish",  "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less",    "LessOrEqual",
    "Log",         "Max",        "Min",      "Mish",  "Mul",   "Neg",       "Not",     "Or",
    "Pow",         "Reciprocal", "Relu",     "Round", "Selu",  "Sigmoid",   "Sign",    "Softplus",
    "Sqrt",        "Sub",        "Tanh",     "Where", "Xor"};

bool single(const regie_type& t) {
  return t.rank >= 0 && std::all_of(t.dims, t.dims + t.rank, [](regie_dim d) { return d == 1; });
}

// What takes the place of such a list is of i64, as others beside it are.
std::optional<std::vector<int64_t>> constant_numbers(const regie_value* v) {
  if (!v || v->type.elem != REGIE_I64 || v->type.rank > 1) return std::nullopt;
  return regie::sdk::constant_integers(v);
}

// Counted from the front; nothing if one is outside.
bool normal_axes(std::vector<int64_t>* axes, int64_t rank) {
  for (int64_t& a : *axes) {
    if (a < -rank || a >= rank) return false;
    if (a < 0) a += rank;
  }
  return true;
}

void set_attr(std::vector<regie_attr>* attrs, const regie_attr& with) {
  for (regie_attr& a : *attrs)
    if (sv(a.name) == sv(with.name)) {
      a = with;
      return;
    }
  attrs->push_back(with);
}

// Operands broadcast against each other.
bool elementwise(const GraphView& g, const regie_node& n, const Perm& p, const std::vector<bool>& moved,
                 Move* move) {
  const auto rank = static_cast<int32_t>(p.size());
  for (uint32_t i = 0; i < n.operand_count; ++i) {
    const regie_value* v = g.operand(n, i);
    if (!v) continue;
    if (moved[i]) continue;
    if (v->type.rank < 0 || v->type.rank > rank) return false;
    if (single(v->type)) {
      move->parts[i] = Part::kKept;
    } else if (regie::sdk::is_constant(*v) && v->data && sv(n.op) != "Clip") {
      move->parts[i] = Part::kTurned;
    } else {
      return false;
    }
  }
  return true;
}

// The first operand only (Concat: all) is moved, along an axis.
bool along_axis(const GraphView& g, const regie_node& n, const Perm& p, const std::vector<bool>& moved,
                int64_t fallback, Move* move) {
  const bool all = sv(n.op) == "Concat";
  for (uint32_t i = 0; i < n.operand_count; ++i) {
    if (!g.operand(n, i)) continue;
    if (i == 0 || all) {
      if (!moved[i]) return false;
    } else {
      if (moved[i]) return false;
      move->parts[i] = Part::kKept;
    }
  }
  std::vector<int64_t> axis{Attrs(n).integer("axis", fallback)};
  if (!normal_axes(&axis, static_cast<int64_t>(p.size()))) return false;
  set_attr(&move->attrs, regie::sdk::integer_attr("axis", p[static_cast<size_t>(axis[0])]));
  return true;
}

bool renumber(const GraphView& g, const regie_node& n, uint32_t operand, const Perm& p, Move* move) {
  auto axes = constant_numbers(g.operand(n, operand));
  if (!axes || axes->empty() || !normal_axes(&*axes, static_cast<int64_t>(p.size()))) return false;
  for (int64_t& a : *axes) a = p[static_cast<size_t>(a)];
  move->replacement = std::move(axes);
  move->replaced = operand;
  return true;
}

bool reduction(const GraphView& g, const regie_node& n, const Perm& p, const std::vector<bool>& moved,
               Move* move) {
  if (!moved[0] || n.operand_count < 2 || moved[1] || !renumber(g, n, 1, p, move)) return false;
  if (Attrs(n).integer("keepdims", 1) != 0) return true;
  // What is left must stand in its order already.
  int64_t last = -1;
  const std::vector<int64_t>& gone = *move->replacement;
  for (int64_t axis : p) {
    if (std::find(gone.begin(), gone.end(), axis) != gone.end()) continue;
    if (axis < last) return false;
    last = axis;
  }
  move->leaves = true;
  return true;
}

bool slice(const GraphView& g, const regie_node& n, const Perm& p, const std::vector<bool>& moved,
           Move* move) {
  for (uint32_t i = 1; i < n.operand_count; ++i) {
    if (!g.operand(n, i)) continue;
    if (moved[i]) return false;
    move->parts[i] = Part::kKept;
  }
  return moved[0] && renumber(g, n, 3, p, move);
}

bool pad(const GraphView& g, const regie_node& n, const Perm& p, const std::vector<bool>& moved, Move* move) {
  auto pads = constant_numbers(g.operand(n, 1));
  if (!moved[0] || g.operand(n, 3) || !pads || pads->size() != 2 * p.size()) return false;
  if (g.operand(n, 2)) {
    if (moved[2]) return false;
    move->parts[2] = Part::kKept;
  }
  std::vector<int64_t> turned(pads->size());
  for (size_t i = 0; i < p.size(); ++i) {
    turned[static_cast<size_t>(p[i])] = (*pads)[i];
    turned[static_cast<size_t>(p[i]) + p.size()] = (*pads)[i + p.size()];
  }
  move->replacement = std::move(turned);
  move->replaced = 1;
  return true;
}

}  // namespace

Perm perm_of(const regie_node& transpose, int32_t rank) {
  if (auto given = Attrs(transpose).integers("perm")) return Perm(given->begin(), given->end());
  Perm p(static_cast<size_t>(rank));
  std::iota(p.rbegin(), p.rend(), 0);
  return p;
}

Perm inverse(const Perm& p) {
  Perm q(p.size());
  for (size_t i = 0; i < p.size(); ++i) q[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  return q;
}

Perm compose(const Perm& first, const Perm& then) {
  Perm q;
  for (int64_t axis : then) q.push_back(first[static_cast<size_t>(axis)]);
  return q;
}

bool is_identity(const Perm& p) {
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::optional<Move> move_before(const GraphView& g, const regie_node& n, const Perm& p,
                                const std::vector<bool>& moved) {
  if (n.region_count || n.control_count) return std::nullopt;
  Move move;
  move.attrs.assign(n.attrs, n.attrs + n.attr_count);
  for (uint32_t i = 0; i < n.operand_count; ++i)
    move.parts.push_back(n.operands[i] == REGIE_NONE ? Part::kAbsent : Part::kMoved);
  const std::string_view op = sv(n.op);
  bool can = false;
  if (std::binary_search(kElementwise.begin(), kElementwise.end(), op)) {
    can = elementwise(g, n, p, moved, &move);
  } else if (op == "Softmax" || op == "LogSoftmax") {
    can = along_axis(g, n, p, moved, -1, &move);
  } else if (op == "Concat" || op == "Split") {
    can = along_axis(g, n, p, moved, 0, &move);
  } else if (op.starts_with("Reduce")) {
    can = reduction(g, n, p, moved, &move);
  } else if (op == "Slice") {
    can = slice(g, n, p, moved, &move);
  } else if (op == "Pad") {
    can = pad(g, n, p, moved, &move);
  }
  if (!can) return std::nullopt;
  return move;
}

}  // namespace transposes
