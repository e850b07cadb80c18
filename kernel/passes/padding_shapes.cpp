// The rules for operators that give elements another place: reshapes, slices, look-ups, reductions.
#include <algorithm>
#include <set>

#include "passes/padding_node.h"

namespace regie {

std::string PaddingNode::only_first(size_t sizes_from) const {
  for (uint32_t i = 0; i < n_.operand_count; ++i) {
    const PaddingMark::State state = mark(n_.operands[i]).state;
    if (state == PaddingMark::kSized && i < sizes_from)
      return "computes with " + value_name(n_.operands[i]) + ", which is made of the padded sizes";
    if (state == PaddingMark::kPadded && i > 0) return "needs " + value_name(n_.operands[i]) + " whole";
  }
  return {};
}

// Operand and result are cut into groups of axes that have the same elements. Within a group the padding must
// be at the end in the order of memory: its first axis (longer than 1) is the only one that is padded.
std::string PaddingNode::linear() const {
  if (std::string why = only_first(1); !why.empty()) return why;
  const Dims a = dims(n_.operands[0]), b = dims(n_.results[0]);
  DimTable& table = g_.dims();
  auto products = [&](Dims d) {
    std::vector<std::pair<regie_dim, regie_dim>> out(d.size() + 1, {1, 1});  // before, from here on
    for (size_t i = 0; i < d.size(); ++i) out[i + 1].first = table.mul(out[i].first, d[i]);
    for (size_t i = d.size(); i-- > 0;) out[i].second = table.mul(out[i + 1].second, d[i]);
    return out;
  };
  const auto pa = products(a), pb = products(b);
  auto sound = [&](Dims d, size_t from, size_t to) {
    bool first = true;
    for (size_t i = from; i < to; ++i) {
      if (d[i] == 1) continue;
      if (padded(d[i]) && !first) return false;
      first = false;
    }
    return true;
  };
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    size_t next_i = a.size(), next_j = b.size();
    bool found = false;
    for (size_t x = i; x <= a.size() && !found; ++x)
      for (size_t y = j; y <= b.size() && !found; ++y)
        if ((x > i || y > j) && pa[x] == pb[y] && pa[x].first != REGIE_DIM_UNKNOWN &&
            pa[x].second != REGIE_DIM_UNKNOWN) {
          found = true;
          next_i = x;
          next_j = y;
        }
    if (!sound(a, i, next_i) || !sound(b, j, next_j)) {
      for (size_t x = i; x < next_i; ++x)
        if (padded(a[x]))
          return "makes one axis of several, or several of one, of which axis " + std::to_string(x) + " of " +
                 value_name(n_.operands[0]) + " depends on " + name_of(a[x]) + " and is not the first";
      return "gives its elements to other axes, of which one that is not the first is padded";
    }
    i = next_i;
    j = next_j;
  }
  return {};
}

std::string PaddingNode::reduced(const PaddingRule& rule) const {
  if (std::string why = only_first(SIZE_MAX); !why.empty()) return why;
  const Dims a = dims(n_.operands[0]);
  const regie_attr* keep = attr(rule.keep);
  const bool kept = keep && keep->kind == REGIE_ATTR_INT && keep->v.i != 0;
  const auto axes = integers(rule.name);
  std::set<int64_t> gone;
  for (int64_t x : axes.value_or(std::vector<int64_t>()))
    gone.insert(x < 0 ? x + static_cast<int64_t>(a.size()) : x);
  for (uint32_t r = 0; r < n_.result_count; ++r) {
    if (n_.results[r] == REGIE_NONE) continue;
    const Dims b = dims(n_.results[r]);
    size_t to = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      // Without axes: all, or none where the sizes are what they were.
      const bool here = gone.empty() ? !(b.size() == a.size() && b[i] == a[i] && a[i] != 1)
                                     : gone.count(static_cast<int64_t>(i)) != 0;
      if (padded(a[i]) && (here || to >= b.size() || b[to] != a[i])) return mixes(n_.operands[0], i);
      to += !here || kept;
    }
  }
  return {};
}

std::string PaddingNode::lookup(const PaddingRule& rule) const {
  const auto axes = integers(rule.name);
  const uint32_t data = operand(0), places = operand(1);
  if (!axes || axes->size() != 1 || data == REGIE_NONE || places == REGIE_NONE)
    return "declares nothing about padding";
  for (uint32_t v : {data, places})
    if (mark(v).state == PaddingMark::kSized)
      return "computes with " + value_name(v) + ", which is made of the padded sizes";
  const Dims d = dims(data);
  const int64_t axis = axes->front() < 0 ? axes->front() + static_cast<int64_t>(d.size()) : axes->front();
  if (axis < 0 || axis >= static_cast<int64_t>(d.size())) return "has an axis that is not there";
  if (padded(d[static_cast<size_t>(axis)])) return mixes(data, static_cast<size_t>(axis));
  if (mark(places).state == PaddingMark::kPadded && !mark(places).zeros)
    return "looks up places of " + value_name(places) +
           ", whose padding, computed from zeros, may be no place";
  return {};
}

std::string PaddingNode::sliced() const {
  for (uint32_t i = 1; i < n_.operand_count; ++i)
    if (mark(n_.operands[i]).state == PaddingMark::kPadded)
      return "needs " + value_name(n_.operands[i]) + " whole";
  for (size_t i : {0, 3, 4})
    if (mark(operand(i)).state == PaddingMark::kSized)
      return "computes with " + value_name(operand(i)) + ", which is made of the padded sizes";
  const Dims a = dims(n_.operands[0]), b = dims(n_.results[0]);
  if (a.size() != b.size()) return "has sizes that are not known";
  const auto starts = contents(operand(1));
  auto axes = contents(operand(3)), steps = contents(operand(4));
  if (!starts || (operand(3) != REGIE_NONE && !axes) || (operand(4) != REGIE_NONE && !steps)) {
    if (any_padded(b) || any_padded(a)) return "takes a part that only the run tells";
    return "computes with places that are made of the padded sizes";
  }
  std::vector<std::pair<regie_dim, regie_dim>> part(a.size(), {0, 1});  // start and step
  for (size_t k = 0; k < starts->size(); ++k) {
    regie_dim axis = axes ? (k < axes->size() ? (*axes)[k] : REGIE_DIM_UNKNOWN) : static_cast<regie_dim>(k);
    // Contents below zero are expressions' handles or negative numbers; those of constants are numbers.
    if (axes && axis < 0 && g_.is_constant(operand(3))) axis += static_cast<regie_dim>(a.size());
    if (axis < 0 || axis >= static_cast<regie_dim>(a.size())) return "has an axis that is not known";
    const bool plain = g_.is_constant(operand(1)) || (*starts)[k] >= 0;
    part[static_cast<size_t>(axis)] = {plain ? (*starts)[k] : REGIE_DIM_UNKNOWN,
                                       !steps                                            ? 1
                                       : g_.is_constant(operand(4)) && k < steps->size() ? (*steps)[k]
                                                                                         : 0};
  }
  for (size_t i = 0; i < a.size(); ++i) {
    const auto [start, step] = part[i];
    if (padded(a[i])) {
      // The whole of it, at every size: of as many elements, ascending, there is no other choice.
      if (step < 1 || a[i] != b[i]) return mixes(n_.operands[0], i);
    } else if (padded(b[i])) {
      // The first ones, as many as there are.
      if (step < 1 || start < 0)
        return "takes a part of axis " + std::to_string(i) + " that begins, or runs, where " + name_of(b[i]) +
               " says";
    } else if (mark(operand(1)).state == PaddingMark::kSized && start == REGIE_DIM_UNKNOWN) {
      return "takes a part of axis " + std::to_string(i) + " that begins where the padded sizes say";
    }
  }
  return {};
}

std::string PaddingNode::bordered(const PaddingRule& rule) const {
  if (std::string why = only_first(SIZE_MAX); !why.empty()) return why;
  const Dims a = dims(n_.operands[0]), b = dims(n_.results[0]);
  const auto amounts = integers(rule.name);
  const auto named = operand_named("axes");
  std::optional<std::vector<int64_t>> axes;
  if (named && operand(*named) != REGIE_NONE) {
    axes = integers("axes");
    if (!axes) return "adds to axes that only the run tells";
  }
  const size_t count = axes ? axes->size() : a.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!padded(a[i])) continue;
    if (!amounts || amounts->size() != 2 * count || a[i] != b[i]) return mixes(n_.operands[0], i);
    for (size_t k = 0; k < count; ++k) {
      int64_t axis = axes ? (*axes)[k] : static_cast<int64_t>(k);
      if (axis < 0) axis += static_cast<int64_t>(a.size());
      if (axis == static_cast<int64_t>(i) && ((*amounts)[k] || (*amounts)[k + count]))
        return mixes(n_.operands[0], i);
    }
  }
  return {};
}

// "bij,bjk->bik": a padded letter must be in the result.
std::string PaddingNode::equation(const PaddingRule& rule) const {
  const regie_attr* a = attr(rule.name);
  if (!a || a->kind != REGIE_ATTR_STRING) return "declares nothing about padding";
  std::string text(view(a->v.s));
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos || text.find('.') != std::string::npos)
    return "has an equation that leaves axes unnamed";
  const std::string result = text.substr(arrow + 2);
  const Dims b = dims(n_.results[0]);
  if (b.size() != result.size()) return "has an equation that does not fit its result";
  size_t at = 0;
  for (uint32_t i = 0; i < n_.operand_count; ++i) {
    const uint32_t v = n_.operands[i];
    if (mark(v).state == PaddingMark::kSized)
      return "computes with " + value_name(v) + ", which is made of the padded sizes";
    const std::string letters = text.substr(at, std::min(text.find(',', at), arrow) - at);
    at += letters.size() + 1;
    const Dims d = dims(v);
    if (letters.size() != d.size()) return "has an equation that does not fit its operands";
    for (size_t x = 0; x < d.size(); ++x) {
      const size_t to = result.find(letters[x]);
      if (to == std::string::npos) {
        if (padded(d[x])) return mixes(v, x);
      } else if (d[x] != b[to] && (padded(d[x]) || padded(b[to]))) {
        return mixes(v, x);
      }
    }
  }
  return {};
}

}  // namespace regie
