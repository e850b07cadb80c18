#include "rules/functions.h"

#include <algorithm>

#include "rules/expr.h"
#include "rules/numbers.h"

namespace regie {
namespace {

constexpr int64_t kMaxList = 1024;

constexpr FunctionInfo kFunctions[] = {
    {"rank", RuleFunction::kRank, 1, 1, true},        {"dim", RuleFunction::kDim, 2, 2, true},
    {"dims", RuleFunction::kDims, 1, 2, true},        {"elem", RuleFunction::kElem, 1, 1, true},
    {"count", RuleFunction::kCount, 1, 1, true},      {"scalar", RuleFunction::kScalar, 1, 2, true},
    {"ints", RuleFunction::kInts, 1, 1, true},        {"range", RuleFunction::kRange, 2, 2, false},
    {"len", RuleFunction::kLen, 1, 1, false},         {"at", RuleFunction::kAt, 2, 2, false},
    {"min", RuleFunction::kMin, 1, 2, false},         {"max", RuleFunction::kMax, 1, 2, false},
    {"sum", RuleFunction::kSum, 1, 1, false},         {"slice", RuleFunction::kSlice, 3, 3, false},
    {"concat", RuleFunction::kConcat, 2, 2, false},   {"fill", RuleFunction::kFill, 2, 2, false},
    {"axes", RuleFunction::kAxes, 2, 2, false},       {"swap-last", RuleFunction::kSwapLast, 1, 1, false},
    {"default", RuleFunction::kDefault, 2, 2, false}, {"if-equal", RuleFunction::kIfEqual, 4, 4, false},
    {"splat", RuleFunction::kSplat, 1, 1, true},
};

std::optional<AttrValue> call_value(const RuleExpr& e, const MatchState& m) {
  uint32_t id = m.values[e.args[0].slot];
  if (id == kUnboundValue) return std::nullopt;
  if (id == REGIE_NONE) {
    if (e.function == RuleFunction::kScalar && e.args.size() == 2) return evaluate_expr(e.args[1], m);
    return std::nullopt;
  }
  const regie_value& v = m.graph->value(id);
  const regie_type& type = v.type;
  switch (e.function) {
    case RuleFunction::kRank:
      if (type.rank < 0) return std::nullopt;
      return AttrValue::integer("", type.rank);
    case RuleFunction::kElem:
      if (type.elem == REGIE_ELEM_UNKNOWN) return std::nullopt;
      return AttrValue::text("", std::string(elem_name(type.elem)));
    case RuleFunction::kDim: {
      auto index = evaluate_expr(e.args[1], m);
      if (type.rank < 0 || !index || index->kind != REGIE_ATTR_INT) return std::nullopt;
      int64_t i = index->i < 0 ? index->i + type.rank : index->i;
      if (i < 0 || i >= type.rank || type.dims[i] == REGIE_DIM_UNKNOWN) return std::nullopt;
      return from_dim(type.dims[i]);
    }
    case RuleFunction::kDims: {
      int64_t from = 0;
      if (e.args.size() == 2) {
        auto first = evaluate_expr(e.args[1], m);
        if (!first || first->kind != REGIE_ATTR_INT) return std::nullopt;
        from = first->i < 0 ? first->i + type.rank : first->i;
      }
      if (type.rank < 0 || from < 0 || from > type.rank) return std::nullopt;
      for (int64_t i = from; i < type.rank; ++i)
        if (type.dims[i] < 0) return std::nullopt;
      return AttrValue::integers("", std::vector<int64_t>(type.dims + from, type.dims + type.rank));
    }
    case RuleFunction::kCount: {
      if (type.rank < 0) return std::nullopt;
      std::span<const regie_dim> dims(type.dims, static_cast<size_t>(type.rank));
      if (std::find(dims.begin(), dims.end(), REGIE_DIM_UNKNOWN) != dims.end()) return std::nullopt;
      return from_dim(m.graph->dims().product(dims));
    }
    case RuleFunction::kSplat: {
      const auto element = splat_of(*m.graph, id);
      if (!element) return std::nullopt;
      return AttrValue::number("", *element);
    }
    case RuleFunction::kScalar: {
      if (!m.graph->is_constant(id) || !v.data ||
          element_count({v.data->dims, static_cast<size_t>(v.data->rank)}) != 1)
        return std::nullopt;
      if (auto i = is_float(type.elem) ? std::nullopt : integer_at(*v.data, 0))
        return AttrValue::integer("", *i);
      if (auto f = number_at(*v.data, 0)) return AttrValue::number("", *f);
      return std::nullopt;
    }
    default: {  // kInts
      std::vector<int64_t> list;
      if (v.data && m.graph->is_constant(id)) {
        int64_t n = element_count({v.data->dims, static_cast<size_t>(v.data->rank)});
        if (n > kMaxList) return std::nullopt;
        for (int64_t i = 0; i < n; ++i) {
          auto x = integer_at(*v.data, i);
          if (!x) return std::nullopt;
          list.push_back(*x);
        }
        return AttrValue::integers("", std::move(list));
      }
      if (!v.content) return std::nullopt;
      for (uint32_t i = 0; i < v.content_count; ++i) {
        if (v.content[i] < 0) return std::nullopt;
        list.push_back(v.content[i]);
      }
      return AttrValue::integers("", std::move(list));
    }
  }
}

bool present(const std::optional<AttrValue>& v) { return v && v->kind != 0; }

// Only what is chosen is computed.
std::optional<AttrValue> call_lazy(const RuleExpr& e, const MatchState& m) {
  auto first = evaluate_expr(e.args[0], m);
  if (e.function == RuleFunction::kDefault) return present(first) ? first : evaluate_expr(e.args[1], m);
  auto second = evaluate_expr(e.args[1], m);
  if (!first || !second) return std::nullopt;
  return evaluate_expr(e.args[same_attr(*first, *second) ? 2 : 3], m);
}

std::optional<AttrValue> least_or_greatest(const std::vector<AttrValue>& items, bool least) {
  const AttrValue* best = nullptr;
  for (const AttrValue& v : items) {
    auto x = as_number(v);
    if (!x) return std::nullopt;
    if (!best || (least ? *x < *as_number(*best) : *x > *as_number(*best))) best = &v;
  }
  if (!best) return std::nullopt;
  return *best;
}

// Axes counted from the front, in ascending order; nothing if one is outside of the rank or given twice.
std::optional<AttrValue> normal_axes(const AttrValue& list, const AttrValue& rank) {
  if (list.kind != REGIE_ATTR_INTS || rank.kind != REGIE_ATTR_INT) return std::nullopt;
  std::vector<int64_t> axes = list.ints;
  for (int64_t& a : axes) {
    if (a < -rank.i || a >= rank.i) return std::nullopt;
    if (a < 0) a += rank.i;
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return std::nullopt;
  return AttrValue::integers("", std::move(axes));
}

std::optional<AttrValue> call_on_list(const RuleExpr& e, const std::vector<AttrValue>& args) {
  auto list = list_items(args[0]);
  if (!list) return std::nullopt;
  const auto size = static_cast<int64_t>(list->size());
  switch (e.function) {
    case RuleFunction::kLen:
      return AttrValue::integer("", size);
    case RuleFunction::kAt: {
      if (args[1].kind != REGIE_ATTR_INT) return std::nullopt;
      int64_t i = args[1].i < 0 ? args[1].i + size : args[1].i;
      if (i < 0 || i >= size) return std::nullopt;
      return (*list)[static_cast<size_t>(i)];
    }
    case RuleFunction::kSlice: {
      if (args[1].kind != REGIE_ATTR_INT || args[2].kind != REGIE_ATTR_INT) return std::nullopt;
      if (args[1].i < 0 || args[1].i > args[2].i || args[2].i > size) return std::nullopt;
      list->erase(list->begin() + args[2].i, list->end());
      list->erase(list->begin(), list->begin() + args[1].i);
      return make_list(*list);
    }
    case RuleFunction::kConcat: {
      auto more = list_items(args[1]);
      if (!more) return std::nullopt;
      list->insert(list->end(), more->begin(), more->end());
      return make_list(*list);
    }
    case RuleFunction::kSwapLast:
      if (size < 2) return std::nullopt;
      std::swap((*list)[list->size() - 1], (*list)[list->size() - 2]);
      return make_list(*list);
    default: {  // kSum
      double total = 0;
      for (const AttrValue& v : *list) {
        auto x = as_number(v);
        if (!x) return std::nullopt;
        total += *x;
      }
      if (args[0].kind == REGIE_ATTR_INTS) return AttrValue::integer("", static_cast<int64_t>(total));
      return AttrValue::number("", total);
    }
  }
}

std::optional<AttrValue> call_plain(const RuleExpr& e, const MatchState& m) {
  std::vector<AttrValue> args;
  for (const RuleExpr& a : e.args) {
    auto v = evaluate_expr(a, m);
    if (!present(v)) return std::nullopt;
    args.push_back(std::move(*v));
  }
  switch (e.function) {
    case RuleFunction::kRange: {
      if (args[0].kind != REGIE_ATTR_INT || args[1].kind != REGIE_ATTR_INT) return std::nullopt;
      std::vector<int64_t> list;
      if (args[1].i > args[0].i + kMaxList) return std::nullopt;
      for (int64_t i = args[0].i; i < args[1].i; ++i) list.push_back(i);
      return AttrValue::integers("", std::move(list));
    }
    case RuleFunction::kFill: {
      if (args[0].kind != REGIE_ATTR_INT || args[0].i < 0 || args[0].i > kMaxList) return std::nullopt;
      return make_list(std::vector<AttrValue>(static_cast<size_t>(args[0].i), args[1]));
    }
    case RuleFunction::kAxes:
      return normal_axes(args[0], args[1]);
    case RuleFunction::kMin:
    case RuleFunction::kMax: {
      auto items = args.size() == 1 ? list_items(args[0]) : std::optional(args);
      if (!items) return std::nullopt;
      return least_or_greatest(*items, e.function == RuleFunction::kMin);
    }
    default:
      return call_on_list(e, args);
  }
}

}  // namespace

const FunctionInfo* find_function(std::string_view name) {
  for (const FunctionInfo& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const FunctionInfo& f : kFunctions) names.emplace_back(f.name);
  return names;
}

std::optional<AttrValue> call_function(const RuleExpr& e, const MatchState& m) {
  if (!e.args.empty() && e.args[0].kind == RuleExpr::Kind::kValue) return call_value(e, m);
  if (e.function == RuleFunction::kDefault || e.function == RuleFunction::kIfEqual) return call_lazy(e, m);
  return call_plain(e, m);
}

std::optional<double> as_number(const AttrValue& v) {
  if (v.kind == REGIE_ATTR_INT) return static_cast<double>(v.i);
  if (v.kind == REGIE_ATTR_FLOAT) return v.f;
  return std::nullopt;
}

std::optional<std::vector<double>> as_numbers(const AttrValue& v) {
  if (v.kind == REGIE_ATTR_FLOATS) return v.floats;
  if (v.kind == REGIE_ATTR_INTS) return std::vector<double>(v.ints.begin(), v.ints.end());
  return std::nullopt;
}

AttrValue from_dim(regie_dim d) {
  AttrValue v = AttrValue::integer("", d);
  if (d < 0) v.kind = kRuleDim;
  return v;
}
std::optional<AttrValue> make_list(const std::vector<AttrValue>& items) {
  AttrValue list;
  bool ints = true, strings = !items.empty();
  for (const AttrValue& i : items) {
    ints = ints && i.kind == REGIE_ATTR_INT;
    strings = strings && i.kind == REGIE_ATTR_STRING;
  }
  list.kind = ints ? REGIE_ATTR_INTS : strings ? REGIE_ATTR_STRINGS : REGIE_ATTR_FLOATS;
  for (const AttrValue& i : items) {
    if (ints) {
      list.ints.push_back(i.i);
    } else if (strings) {
      list.strings.push_back(i.s);
    } else {
      auto n = as_number(i);
      if (!n) return std::nullopt;
      list.floats.push_back(*n);
    }
  }
  return list;
}

std::optional<std::vector<AttrValue>> list_items(const AttrValue& list) {
  std::vector<AttrValue> items;
  if (list.kind == REGIE_ATTR_INTS) {
    for (int64_t i : list.ints) items.push_back(AttrValue::integer("", i));
  } else if (list.kind == REGIE_ATTR_FLOATS) {
    for (double f : list.floats) items.push_back(AttrValue::number("", f));
  } else if (list.kind == REGIE_ATTR_STRINGS) {
    for (const std::string& s : list.strings) items.push_back(AttrValue::text("", s));
  } else {
    return std::nullopt;
  }
  return items;
}

}  // namespace regie
