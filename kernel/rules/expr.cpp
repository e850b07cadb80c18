#include "rules/expr.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/toml.h"
#include "rules/numbers.h"

namespace regie {
namespace {

struct FunctionInfo {
  std::string_view name;
  RuleFunction function;
  size_t least, most;
  bool of_value;  // the first argument is a %value
};
constexpr FunctionInfo kFunctions[] = {
    {"rank", RuleFunction::kRank, 1, 1, true},     {"dim", RuleFunction::kDim, 2, 2, true},
    {"elem", RuleFunction::kElem, 1, 1, true},     {"count", RuleFunction::kCount, 1, 1, true},
    {"scalar", RuleFunction::kScalar, 1, 2, true}, {"ints", RuleFunction::kInts, 1, 1, true},
    {"range", RuleFunction::kRange, 2, 2, false},  {"len", RuleFunction::kLen, 1, 1, false},
    {"at", RuleFunction::kAt, 2, 2, false},        {"min", RuleFunction::kMin, 2, 2, false},
    {"max", RuleFunction::kMax, 2, 2, false},
};

std::vector<std::string> value_names(const RuleNames& names) {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < names.value_count; ++i) all.push_back((*names.values)[i].name);
  return all;
}

// Precedence climbing with an explicit bound on nesting, as the text is the user's.
class Parser {
 public:
  Parser(RuleCursor& at, const RuleNames& names, std::vector<uint32_t>* values)
      : at_(at), names_(names), values_(values) {}

  Result<RuleExpr> sum() {
    if (++depth_ > 64) return at_.error("expression nested too deeply");
    REGIE_ASSIGN(RuleExpr left, product());
    while (at_.at_sign("+") || at_.at_sign("-")) {
      auto kind = at_.next().text == "+" ? RuleExpr::Kind::kAdd : RuleExpr::Kind::kSub;
      REGIE_ASSIGN(RuleExpr right, product());
      left = binary(kind, std::move(left), std::move(right));
    }
    --depth_;
    return left;
  }

 private:
  static RuleExpr binary(RuleExpr::Kind kind, RuleExpr a, RuleExpr b) {
    RuleExpr e;
    e.kind = kind;
    e.args.push_back(std::move(a));
    e.args.push_back(std::move(b));
    return e;
  }
  static RuleExpr literal(AttrValue v) {
    RuleExpr e;
    e.literal = std::move(v);
    return e;
  }

  Result<RuleExpr> product() {
    REGIE_ASSIGN(RuleExpr left, atom());
    while (at_.at_sign("*") || at_.at_sign("/")) {
      auto kind = at_.next().text == "*" ? RuleExpr::Kind::kMul : RuleExpr::Kind::kDiv;
      REGIE_ASSIGN(RuleExpr right, atom());
      left = binary(kind, std::move(left), std::move(right));
    }
    return left;
  }

  Result<RuleExpr> atom() {
    if (at_.take_sign("-")) {
      if (++depth_ > 64) return at_.error("expression nested too deeply");
      REGIE_ASSIGN(RuleExpr inner, atom());
      --depth_;
      if (inner.kind == RuleExpr::Kind::kLiteral && inner.literal.kind == REGIE_ATTR_INT)
        return literal(AttrValue::integer("", -inner.literal.i));
      if (inner.kind == RuleExpr::Kind::kLiteral && inner.literal.kind == REGIE_ATTR_FLOAT)
        return literal(AttrValue::number("", -inner.literal.f));
      RuleExpr e;
      e.kind = RuleExpr::Kind::kNegate;
      e.args.push_back(std::move(inner));
      return e;
    }
    if (at_.take_sign("(")) {
      REGIE_ASSIGN(RuleExpr inner, sum());
      REGIE_TRY(at_.expect_sign(")"));
      return inner;
    }
    if (at_.take_sign("[")) return list();
    const RuleLexeme& l = at_.peek();
    switch (l.kind) {
      case RuleToken::kInteger:
        return literal(AttrValue::integer("", at_.next().integer));
      case RuleToken::kFloat:
        return literal(AttrValue::number("", at_.next().number));
      case RuleToken::kString:
        return literal(AttrValue::text("", at_.next().text));
      case RuleToken::kAttr: {
        auto slot = names_.find_attr(l.text);
        if (!slot) {
          auto near = nearest_name(l.text, *names_.attrs);
          return at_.error("$" + l.text + " is not bound in the match" +
                           (near ? "; did you mean $" + *near + "?" : ""));
        }
        at_.next();
        RuleExpr e;
        e.kind = RuleExpr::Kind::kAttr;
        e.slot = *slot;
        return e;
      }
      case RuleToken::kWord:
        return at_.at_sign("(", 1) ? call() : literal(AttrValue::text("", at_.next().text));
      default:
        return at_.expected("a number, a string, a list, $name or a function");
    }
  }

  Result<RuleExpr> list() {
    RuleExpr e;
    e.kind = RuleExpr::Kind::kList;
    while (!at_.at_sign("]")) {
      if (!e.args.empty()) REGIE_TRY(at_.expect_sign(","));
      REGIE_ASSIGN(RuleExpr item, sum());
      e.args.push_back(std::move(item));
    }
    at_.next();
    return e;
  }

  Result<RuleExpr> call() {
    const std::string name = at_.peek().text;
    const auto* info = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                    [&](const FunctionInfo& f) { return f.name == name; });
    if (info == std::end(kFunctions)) {
      std::vector<std::string> known;
      for (const FunctionInfo& f : kFunctions) known.emplace_back(f.name);
      auto near = nearest_name(name, known);
      return at_.error("unknown function '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : ""));
    }
    at_.next(), at_.next();
    RuleExpr e;
    e.kind = RuleExpr::Kind::kCall;
    e.function = info->function;
    while (!at_.at_sign(")")) {
      if (!e.args.empty()) REGIE_TRY(at_.expect_sign(","));
      if (e.args.empty() && info->of_value) {
        REGIE_ASSIGN(uint32_t slot, use_value(at_, names_));
        RuleExpr value;
        value.kind = RuleExpr::Kind::kValue;
        value.slot = slot;
        e.args.push_back(std::move(value));
        if (values_) values_->push_back(slot);
        continue;
      }
      REGIE_ASSIGN(RuleExpr arg, sum());
      e.args.push_back(std::move(arg));
    }
    if (e.args.size() < info->least || e.args.size() > info->most)
      return at_.error("'" + name + "' takes " + std::to_string(info->least) +
                       (info->most > info->least ? " or " + std::to_string(info->most) : "") +
                       " argument(s), has " + std::to_string(e.args.size()));
    at_.next();
    return e;
  }

  RuleCursor& at_;
  const RuleNames& names_;
  std::vector<uint32_t>* values_;
  int depth_ = 0;
};

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
bool is_dim(const AttrValue& v) { return v.kind == kRuleDim || (v.kind == REGIE_ATTR_INT && v.i >= 0); }

std::optional<AttrValue> arithmetic(RuleExpr::Kind kind, const AttrValue& a, const AttrValue& b,
                                    const Graph& graph) {
  using K = RuleExpr::Kind;
  if ((a.kind == kRuleDim || b.kind == kRuleDim) && is_dim(a) && is_dim(b)) {
    uint32_t op = kind == K::kAdd   ? REGIE_DIM_ADD
                  : kind == K::kSub ? REGIE_DIM_SUB
                  : kind == K::kMul ? REGIE_DIM_MUL
                                    : REGIE_DIM_FLOORDIV;
    regie_dim d = graph.dims().op(op, a.i, b.i);
    if (d == REGIE_DIM_UNKNOWN) return std::nullopt;
    return from_dim(d);
  }
  if (a.kind == REGIE_ATTR_INT && b.kind == REGIE_ATTR_INT) {
    int64_t r = 0;
    bool over = false;
    switch (kind) {
      case K::kAdd:
        over = __builtin_add_overflow(a.i, b.i, &r);
        break;
      case K::kSub:
        over = __builtin_sub_overflow(a.i, b.i, &r);
        break;
      case K::kMul:
        over = __builtin_mul_overflow(a.i, b.i, &r);
        break;
      default:
        over = b.i == 0 || (a.i == INT64_MIN && b.i == -1);
        if (!over) r = a.i / b.i;
    }
    if (over) return std::nullopt;
    return AttrValue::integer("", r);
  }
  auto x = as_number(a), y = as_number(b);
  if (!x || !y) return std::nullopt;
  switch (kind) {
    case K::kAdd:
      return AttrValue::number("", *x + *y);
    case K::kSub:
      return AttrValue::number("", *x - *y);
    case K::kMul:
      return AttrValue::number("", *x * *y);
    default:
      return AttrValue::number("", *x / *y);
  }
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
    case RuleFunction::kCount: {
      if (type.rank < 0) return std::nullopt;
      std::span<const regie_dim> dims(type.dims, static_cast<size_t>(type.rank));
      if (std::find(dims.begin(), dims.end(), REGIE_DIM_UNKNOWN) != dims.end()) return std::nullopt;
      return from_dim(m.graph->dims().product(dims));
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
        if (n > 1024) return std::nullopt;
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

std::optional<AttrValue> call_plain(const RuleExpr& e, const MatchState& m) {
  std::vector<AttrValue> args;
  for (const RuleExpr& a : e.args) {
    auto v = evaluate_expr(a, m);
    if (!v) return std::nullopt;
    args.push_back(std::move(*v));
  }
  switch (e.function) {
    case RuleFunction::kRange: {
      if (args[0].kind != REGIE_ATTR_INT || args[1].kind != REGIE_ATTR_INT) return std::nullopt;
      std::vector<int64_t> list;
      if (args[1].i > args[0].i + 1024) return std::nullopt;
      for (int64_t i = args[0].i; i < args[1].i; ++i) list.push_back(i);
      return AttrValue::integers("", std::move(list));
    }
    case RuleFunction::kLen: {
      auto n = as_numbers(args[0]);
      if (args[0].kind == REGIE_ATTR_STRINGS)
        return AttrValue::integer("", static_cast<int64_t>(args[0].strings.size()));
      if (!n) return std::nullopt;
      return AttrValue::integer("", static_cast<int64_t>(n->size()));
    }
    case RuleFunction::kAt: {
      auto list = as_numbers(args[0]);
      if (!list || args[1].kind != REGIE_ATTR_INT) return std::nullopt;
      auto size = static_cast<int64_t>(list->size());
      int64_t i = args[1].i < 0 ? args[1].i + size : args[1].i;
      if (i < 0 || i >= size) return std::nullopt;
      auto at = static_cast<size_t>(i);
      if (args[0].kind == REGIE_ATTR_INTS) return AttrValue::integer("", args[0].ints[at]);
      return AttrValue::number("", (*list)[at]);
    }
    default: {
      auto a = as_number(args[0]), b = as_number(args[1]);
      if (!a || !b) return std::nullopt;
      bool first = e.function == RuleFunction::kMin ? *a <= *b : *a >= *b;
      return first ? args[0] : args[1];
    }
  }
}

}  // namespace

std::optional<uint32_t> RuleNames::find_value(std::string_view name) const {
  for (uint32_t i = 0; i < value_count; ++i)
    if ((*values)[i].name == name) return i;
  return std::nullopt;
}

std::optional<uint32_t> RuleNames::find_attr(std::string_view name) const {
  for (uint32_t i = 0; i < attrs->size(); ++i)
    if ((*attrs)[i] == name) return i;
  return std::nullopt;
}

Result<uint32_t> use_value(RuleCursor& at, const RuleNames& names) {
  if (!at.at(RuleToken::kValue)) return at.expected("a value, such as %x");
  const std::string& name = at.peek().text;
  auto slot = names.find_value(name);
  if (!slot) {
    auto near = nearest_name(name, value_names(names));
    return at.error("%" + name + " is not known here" + (near ? "; did you mean %" + *near + "?" : ""));
  }
  at.next();
  return *slot;
}

Result<RuleExpr> parse_expr(RuleCursor& at, const RuleNames& names, std::vector<uint32_t>* values) {
  return Parser(at, names, values).sum();
}

bool same_attr(const AttrValue& a, const AttrValue& b) {
  auto near = [](double x, double y) {
    return x == y || static_cast<float>(x) == static_cast<float>(y) || (std::isnan(x) && std::isnan(y));
  };
  if (a.kind == REGIE_ATTR_INT && b.kind == REGIE_ATTR_INT) return a.i == b.i;
  if (a.kind == kRuleDim || b.kind == kRuleDim) return a.kind == b.kind && a.i == b.i;
  if (a.kind == REGIE_ATTR_INTS && b.kind == REGIE_ATTR_INTS) return a.ints == b.ints;
  if (auto x = as_number(a)) {
    auto y = as_number(b);
    return y && near(*x, *y);
  }
  if (auto x = as_numbers(a)) {
    auto y = as_numbers(b);
    return y && std::equal(x->begin(), x->end(), y->begin(), y->end(), near);
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case REGIE_ATTR_STRING:
      return a.s == b.s;
    case REGIE_ATTR_STRINGS:
      return a.strings == b.strings;
    case REGIE_ATTR_TENSOR:
      return a.tensor.digest() == b.tensor.digest();
    default:
      return true;  // both absent
  }
}

std::optional<AttrValue> evaluate_expr(const RuleExpr& e, const MatchState& m) {
  using K = RuleExpr::Kind;
  switch (e.kind) {
    case K::kLiteral:
      return e.literal;
    case K::kAttr: {
      const AttrBinding& b = m.attrs[e.slot];
      switch (b.kind) {
        case AttrBinding::Kind::kAttr:
          return AttrValue::of(*b.attr);
        case AttrBinding::Kind::kDefault:
          return *b.fallback;
        case AttrBinding::Kind::kOp:
          return AttrValue::text("", std::string(name_of(b.op)));
        case AttrBinding::Kind::kComputed:
          return b.computed;
        case AttrBinding::Kind::kAbsent:
          return AttrValue();
        default:
          return std::nullopt;
      }
    }
    case K::kValue:
      return std::nullopt;
    case K::kList: {
      std::vector<AttrValue> items;
      for (const RuleExpr& a : e.args) {
        auto v = evaluate_expr(a, m);
        if (!v) return std::nullopt;
        items.push_back(std::move(*v));
      }
      return make_list(items);
    }
    case K::kCall:
      return !e.args.empty() && e.args[0].kind == K::kValue ? call_value(e, m) : call_plain(e, m);
    case K::kNegate: {
      auto v = evaluate_expr(e.args[0], m);
      if (!v) return std::nullopt;
      return arithmetic(K::kSub, AttrValue::integer("", 0), *v, *m.graph);
    }
    default: {
      auto a = evaluate_expr(e.args[0], m), b = evaluate_expr(e.args[1], m);
      if (!a || !b) return std::nullopt;
      return arithmetic(e.kind, *a, *b, *m.graph);
    }
  }
}

}  // namespace regie
