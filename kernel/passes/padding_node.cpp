#include "passes/padding_node.h"

#include <algorithm>
#include <map>

#include "base/elem.h"
#include "base/names.h"
#include "regie/c/op_kernel.h"

namespace regie {

namespace {

const std::string kNotFitting = "has operands of other ranks than it declares padding for";

// By axis: what stands for it in the pattern: a name, "...2" for the second from the right of those in "...",
// nothing where it is needed whole. No value: the rank does not fit.
std::optional<std::vector<std::string>> axis_keys(const PaddingPattern& p, size_t rank) {
  size_t open = p.axes.size();
  for (size_t i = 0; i < p.axes.size(); ++i)
    if (p.axes[i] == "..." || p.axes[i] == "**") open = i;
  const size_t fixed = p.axes.size() - (open < p.axes.size());
  if (open == p.axes.size() ? rank != fixed : rank < fixed) return std::nullopt;
  std::vector<std::string> keys;
  for (size_t i = 0; i < p.axes.size(); ++i) {
    if (i != open) {
      keys.push_back(p.axes[i] == "*" ? "" : p.axes[i]);
      continue;
    }
    for (size_t k = rank - fixed; k > 0; --k)
      keys.push_back(p.axes[i] == "**" ? "" : std::string("...").append(std::to_string(k)));
  }
  return keys;
}

}  // namespace

PaddingNode::PaddingNode(const Graph& graph, const PluginOpSet& ops, const PaddedSymbols& symbols,
                         const std::vector<PaddingMark>& marks, uint32_t node)
    : g_(graph),
      symbols_(symbols),
      marks_(marks),
      n_(graph.node(node)),
      schema_(ops.schemas().find(n_.op_id)),
      attrs_(ops.schemas().with_defaults(graph, node)),
      elementwise_((ops.flags(view(n_.op)) & REGIE_OP_ELEMENTWISE) != 0) {}

PaddingNode::Dims PaddingNode::dims(uint32_t value) const {
  const regie_type& t = g_.value(value).type;
  return {t.dims, static_cast<size_t>(std::max(t.rank, 0))};
}

bool PaddingNode::any_padded(Dims d) const {
  return std::any_of(d.begin(), d.end(), [&](regie_dim x) { return padded(x); });
}

// Of a postfix program: does the value grow with each symbol that is loaded, does it fall, is it negative?
bool PaddingNode::grows(regie_dim d) const {
  if (d >= 0) return true;
  struct Slope {
    bool up, down, not_negative, not_positive;
  };
  std::vector<Slope> stack;
  const DimCode code = g_.dims().code(d);
  for (size_t w = 0; w + 1 < code.words.size(); w += 2) {
    const int64_t op = code.words[w], x = code.words[w + 1];
    if (op == DimCode::kPush) {
      stack.push_back({true, true, x >= 0, x <= 0});
      continue;
    }
    if (op == DimCode::kLoad) {
      const bool moves = symbols_.count(static_cast<size_t>(x)) != 0;
      stack.push_back({true, !moves, true, false});
      continue;
    }
    if (stack.size() < 2) return false;
    const Slope b = stack.back();
    stack.pop_back();
    Slope& a = stack.back();
    const bool fixed = b.up && b.down;
    switch (op) {
      case REGIE_DIM_ADD:
        a = {a.up && b.up, a.down && b.down, a.not_negative && b.not_negative,
             a.not_positive && b.not_positive};
        break;
      case REGIE_DIM_SUB:
        a = {a.up && b.down, a.down && b.up, a.not_negative && b.not_positive,
             a.not_positive && b.not_negative};
        break;
      case REGIE_DIM_MUL: {
        const bool same = (a.not_negative && b.not_negative) || (a.not_positive && b.not_positive);
        const bool other = (a.not_negative && b.not_positive) || (a.not_positive && b.not_negative);
        const bool constant = a.up && a.down && fixed;
        // By a number below zero what grew falls.
        const bool turned = (a.up && a.down && a.not_positive) || (fixed && b.not_positive);
        const bool plain = (a.not_negative && b.not_negative) || (fixed && b.not_negative) ||
                           (a.up && a.down && a.not_negative);
        a = {constant || (plain && a.up && b.up) || (turned && a.down && b.down) ||
                 (turned && ((fixed && a.down) || (a.up && a.down && b.down))),
             constant || (plain && a.down && b.down) ||
                 (turned && ((fixed && a.up) || (a.up && a.down && b.up))),
             same, other};
        break;
      }
      case REGIE_DIM_FLOORDIV:
      case REGIE_DIM_CEILDIV:
        a = fixed && b.not_negative ? Slope{a.up, a.down, a.not_negative, a.not_positive}
                                    : Slope{a.up && a.down && fixed, a.up && a.down && fixed, false, false};
        break;
      case REGIE_DIM_MIN:
      case REGIE_DIM_MAX:
        a = {a.up && b.up, a.down && b.down, a.not_negative && b.not_negative,
             a.not_positive && b.not_positive};
        break;
      default:
        a = {a.up && a.down && fixed, a.up && a.down && fixed, false, false};
    }
  }
  return stack.size() == 1 && stack[0].up;
}

std::string PaddingNode::name_of(regie_dim d) const {
  std::string names;
  g_.dims().visit_symbols(d, [&](size_t s) {
    if (auto it = symbols_.find(s); it != symbols_.end())
      names += (names.empty() ? "" : " and ") + it->second;
  });
  return names;
}

std::string PaddingNode::value_name(uint32_t value) const { return g_.describe_value(value); }

const PaddingMark& PaddingNode::mark(uint32_t value) const {
  static const PaddingMark exact;
  return value == REGIE_NONE ? exact : marks_[value];
}

const regie_attr* PaddingNode::attr(std::string_view name) const {
  for (const regie_attr& a : attrs_)
    if (view(a.name) == name) return &a;
  return nullptr;
}

std::optional<size_t> PaddingNode::operand_named(std::string_view name) const {
  for (size_t i = 0; schema_ && i < schema_->operands.size(); ++i)
    if (schema_->operands[i].name == name) return i;
  return std::nullopt;
}

std::optional<std::vector<regie_dim>> PaddingNode::contents(uint32_t value) const {
  if (value == REGIE_NONE) return std::nullopt;
  const regie_value& v = g_.value(value);
  if (!g_.is_constant(value)) {
    if (!v.content ||
        std::find(v.content, v.content + v.content_count, REGIE_DIM_UNKNOWN) != v.content + v.content_count)
      return std::nullopt;
    return std::vector<regie_dim>(v.content, v.content + v.content_count);
  }
  // Below zero these are numbers, not expressions.
  const Tensor& t = g_.tensor(value);
  if (!t || (t.elem() != REGIE_I64 && t.elem() != REGIE_I32) || t.count() > 1024) return std::nullopt;
  std::vector<regie_dim> out;
  for (int64_t i = 0; i < t.count(); ++i)
    out.push_back(t.elem() == REGIE_I64 ? static_cast<const int64_t*>(t.data())[i]
                                        : static_cast<const int32_t*>(t.data())[i]);
  return out;
}

std::optional<std::vector<int64_t>> PaddingNode::integers(std::string_view name) const {
  if (const regie_attr* a = attr(name)) {
    if (a->kind == REGIE_ATTR_INT) return std::vector<int64_t>{a->v.i};
    if (a->kind == REGIE_ATTR_INTS) return std::vector<int64_t>(a->v.ints, a->v.ints + a->count);
    return std::nullopt;
  }
  const auto i = operand_named(name);
  if (!i || operand(*i) == REGIE_NONE || !g_.is_constant(operand(*i))) return std::nullopt;
  return contents(operand(*i));
}

std::string PaddingNode::mixes(uint32_t value, size_t axis) const {
  return "does not keep the elements along axis " + std::to_string(axis) + " of " + value_name(value) +
         " apart, whose size depends on " + name_of(dims(value)[axis]);
}

bool PaddingNode::guarded(const PaddingRule& rule) const {
  for (const auto& [key, values] : rule.guards) {
    std::string is;
    if (key == "elem") {
      if (operand(0) != REGIE_NONE) is = elem_name(g_.value(operand(0)).type.elem);
    } else if (const regie_attr* a = attr(key)) {
      if (a->kind == REGIE_ATTR_INT) is = std::to_string(a->v.i);
      if (a->kind == REGIE_ATTR_STRING) is = std::string(view(a->v.s));
    }
    if (std::find(values.begin(), values.end(), is) == values.end()) return false;
  }
  return true;
}

std::string PaddingNode::refused() const {
  static const PaddingRule by_element = *read_padding_rule("[...] -> [...]");
  std::vector<const PaddingRule*> rules;
  for (size_t i = 0; schema_ && i < schema_->padding.size(); ++i) rules.push_back(&schema_->padding[i]);
  if (rules.empty() && elementwise_) rules.push_back(&by_element);
  if (rules.empty()) return "declares nothing about padding";
  std::string first, why = "has attributes or element types that it declares no padding for";
  for (const PaddingRule* rule : rules) {
    if (!guarded(*rule)) continue;
    why = apply(*rule);
    if (why.empty()) {
      zeros_ = rule->zeros || rule->kind == PaddingRule::kLinear || rule->kind == PaddingRule::kPermuted;
      zeros_ = zeros_ && mark(operand(0)).zeros;
      break;
    }
    if (first.empty() || first == kNotFitting) first = why;
  }
  if (!why.empty()) return first.empty() ? why : first;
  for (uint32_t r = 0; r < n_.result_count; ++r) {
    if (n_.results[r] == REGIE_NONE) continue;
    const Dims d = dims(n_.results[r]);
    for (size_t axis = 0; axis < d.size(); ++axis)
      if (padded(d[axis]) && !grows(d[axis]))
        return "gives a result whose axis " + std::to_string(axis) + ", " + g_.dims().print(d[axis]) +
               ", does not grow with " + name_of(d[axis]);
  }
  return {};
}

std::string PaddingNode::apply(const PaddingRule& rule) const {
  switch (rule.kind) {
    case PaddingRule::kPatterns:
      return patterns(rule);
    case PaddingRule::kLinear:
      return linear();
    case PaddingRule::kPermuted:
      return only_first(SIZE_MAX);
    case PaddingRule::kReduced:
      return reduced(rule);
    case PaddingRule::kLookup:
      return lookup(rule);
    case PaddingRule::kSliced:
      return sliced();
    case PaddingRule::kBordered:
      return bordered(rule);
    case PaddingRule::kEquation:
      return equation(rule);
  }
  return "declares nothing about padding";
}

std::string PaddingNode::patterns(const PaddingRule& rule) const {
  std::vector<std::vector<std::string>> results(n_.result_count);
  for (uint32_t r = 0; r < n_.result_count; ++r) {
    if (n_.results[r] == REGIE_NONE) continue;
    const auto keys = axis_keys(rule.result(r), dims(n_.results[r]).size());
    if (!keys) return kNotFitting;
    results[r] = *keys;
  }
  std::vector<bool> whole;  // axes of operand 0 that `except` or `from` name
  const size_t rank = n_.operand_count && n_.operands[0] != REGIE_NONE ? dims(n_.operands[0]).size() : 0;
  if (const std::string& name = rule.except.empty() ? rule.from : rule.except; !name.empty()) {
    const auto axes = integers(name);
    whole.assign(rank, !axes.has_value());
    for (int64_t a : axes.value_or(std::vector<int64_t>())) {
      if (a < 0) a += static_cast<int64_t>(rank);
      if (a < 0 || a >= static_cast<int64_t>(rank)) return kNotFitting;
      const size_t end = rule.from.empty() ? static_cast<size_t>(a) + 1 : rank;
      for (size_t k = static_cast<size_t>(a); k < end; ++k) whole[k] = true;
    }
  }
  bool sizes = false;
  std::map<std::string, bool> given;  // by key: some operand has the size
  for (uint32_t i = 0; i < n_.operand_count; ++i) {
    const uint32_t v = n_.operands[i];
    if (v == REGIE_NONE) continue;
    const PaddingPattern& p = rule.operand(i);
    const PaddingMark::State state = mark(v).state;
    if (p.kind == PaddingPattern::kSize) sizes = true;
    if (state == PaddingMark::kSized && p.kind != PaddingPattern::kSize)
      return "computes with " + value_name(v) + ", which is made of the padded sizes";
    if (state == PaddingMark::kPadded && p.kind != PaddingPattern::kAxes)
      return "needs " + value_name(v) + " whole";
    if (p.kind != PaddingPattern::kAxes) continue;
    const Dims d = dims(v);
    auto keys = axis_keys(p, d.size());
    if (!keys) return kNotFitting;
    if (d.size() == whole.size())
      for (size_t a = 0; a < d.size(); ++a)
        if (whole[a]) (*keys)[a].clear();
    for (size_t a = 0; a < d.size(); ++a) {
      const std::string& key = (*keys)[a];
      if (key.empty()) {
        if (padded(d[a])) return mixes(v, a);
        continue;
      }
      for (uint32_t r = 0; r < n_.result_count; ++r) {
        if (n_.results[r] == REGIE_NONE) continue;
        const auto at = std::find(results[r].begin(), results[r].end(), key);
        if (at == results[r].end()) {
          if (padded(d[a])) return mixes(v, a);
          continue;
        }
        const regie_dim of_result = dims(n_.results[r])[static_cast<size_t>(at - results[r].begin())];
        if (d[a] == of_result) {
          given[key] = true;
        } else if (d[a] != 1 && (padded(d[a]) || padded(of_result))) {
          return "has sizes " + g_.dims().print(d[a]) + " and " + g_.dims().print(of_result) +
                 " for one axis, which are equal at some sizes only";
        }
      }
    }
  }
  for (uint32_t r = 0; r < n_.result_count; ++r) {
    if (n_.results[r] == REGIE_NONE) continue;
    const Dims d = dims(n_.results[r]);
    for (size_t a = 0; a < d.size(); ++a) {
      if (!padded(d[a])) continue;
      if (d.size() == whole.size() && whole[a]) return mixes(n_.results[r], a);
      if (results[r][a].empty() || (!sizes && !given.count(results[r][a]))) return mixes(n_.results[r], a);
    }
  }
  return {};
}

}  // namespace regie
