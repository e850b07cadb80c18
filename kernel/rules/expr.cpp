#include "rules/expr.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/toml.h"
#include "rules/functions.h"

namespace regie {
namespace {

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
    const FunctionInfo* info = find_function(name);
    if (!info) {
      auto near = nearest_name(name, function_names());
      return at_.error("unknown function '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : ""));
    }
    at_.next(), at_.next();
    const size_t outside = values_ ? values_->size() : 0;
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
    // What has a default for an absent value asks for no presence.
    const bool defaults =
        e.function == RuleFunction::kDefault || (e.function == RuleFunction::kScalar && e.args.size() == 2);
    if (values_ && defaults) values_->resize(outside);
    return e;
  }

  RuleCursor& at_;
  const RuleNames& names_;
  std::vector<uint32_t>* values_;
  int depth_ = 0;
};

bool is_dim(const AttrValue& v) { return v.kind == kRuleDim || (v.kind == REGIE_ATTR_INT && v.i >= 0); }

std::optional<AttrValue> arithmetic(RuleExpr::Kind kind, const AttrValue& a, const AttrValue& b,
                                    const Graph& graph);

// Two lists of one length.
std::optional<AttrValue> element_by_element(RuleExpr::Kind kind, const AttrValue& a, const AttrValue& b,
                                            const Graph& graph) {
  auto left = list_items(a), right = list_items(b);
  if (!left || !right || left->size() != right->size()) return std::nullopt;
  std::vector<AttrValue> items;
  for (size_t i = 0; i < left->size(); ++i) {
    auto v = arithmetic(kind, (*left)[i], (*right)[i], graph);
    if (!v) return std::nullopt;
    items.push_back(std::move(*v));
  }
  return make_list(items);
}

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
  if (auto left = as_numbers(a), right = as_numbers(b); left || right)
    return element_by_element(kind, a, b, graph);
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
      return call_function(e, m);
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
