#include <algorithm>

#include "base/toml.h"
#include "rules/expr.h"
#include "rules/parse.h"

namespace regie {

Result<const OpSchema*> find_schema(const SchemaSet& schemas, const std::string& op,
                                    const std::string& where) {
  if (const OpSchema* s = schemas.find(intern(op))) return s;
  if (const std::string as = schemas.written_out(op); !as.empty())
    return invalid_input("no graph has the operator '" + op + "': frontends write it out as " + as +
                             ", which is what a rule matches",
                         where);
  auto near = nearest_name(op, schemas.names());
  return invalid_input("unknown operator '" + op + "'" + (near ? "; did you mean '" + *near + "'?" : ""),
                       where);
}

std::vector<std::string> attr_names(const OpSchema& schema) {
  std::vector<std::string> names;
  for (const SchemaAttr& a : schema.attrs) names.push_back(a.name);
  return names;
}

Status unknown_attr(const std::string& name, const std::vector<const OpSchema*>& schemas,
                    const std::string& where) {
  std::vector<std::string> known;
  std::string ops;
  for (const OpSchema* s : schemas) {
    ops += (ops.empty() ? "" : "|") + s->name;
    for (std::string& n : attr_names(*s)) known.push_back(std::move(n));
  }
  auto near = nearest_name(name, known);
  return invalid_input(
      ops + " has no attribute '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : ""), where);
}

namespace {

constexpr size_t kMaxNodes = 64, kMaxCommutative = 16;

bool kinds_agree(uint32_t literal, uint32_t schema) {
  if (literal == schema) return true;
  if (literal == REGIE_ATTR_INT) return schema == REGIE_ATTR_FLOAT;
  return literal == REGIE_ATTR_INTS && (schema == REGIE_ATTR_FLOATS || schema == REGIE_ATTR_STRINGS);
}

class MatchParser {
 public:
  MatchParser(RuleCursor& at, const SchemaSet& schemas, const std::vector<std::string>& commutative,
              Rule* rule)
      : at_(at), schemas_(schemas), commutative_(commutative), rule_(*rule) {}

  Status run() {
    while (!at_.at(RuleToken::kEnd)) {
      if (rule_.nodes.size() == kMaxNodes) return at_.error("a match has at most 64 nodes");
      REGIE_TRY(statement());
      if (at_.at(RuleToken::kLine)) {
        at_.next();
      } else if (!at_.at(RuleToken::kEnd)) {
        return at_.expected("the end of the line");
      }
    }
    if (rule_.nodes.empty()) return at_.error("the match is empty");
    rule_.match_values = static_cast<uint32_t>(rule_.values.size());
    return order();
  }

 private:
  uint32_t slot_of(const std::string& name) {
    for (uint32_t i = 0; i < rule_.values.size(); ++i)
      if (rule_.values[i].name == name) return i;
    rule_.values.push_back({name, kNoSlot, 0});
    return static_cast<uint32_t>(rule_.values.size() - 1);
  }
  uint32_t attr_slot(const std::string& name) {
    auto at = std::find(rule_.attrs.begin(), rule_.attrs.end(), name);
    if (at == rule_.attrs.end()) at = rule_.attrs.insert(at, name);
    return static_cast<uint32_t>(at - rule_.attrs.begin());
  }

  Status statement() {
    PatternNode node;
    node.line = at_.peek().line;
    REGIE_TRY(results(&node));
    REGIE_TRY(at_.expect_sign("="));
    REGIE_TRY(operators(&node));
    REGIE_TRY(at_.expect_sign("("));
    REGIE_TRY(operands(&node));
    if (at_.take_sign("{")) REGIE_TRY(attributes(&node));
    REGIE_TRY(check_attributes(&node));
    rule_.nodes.push_back(std::move(node));
    return {};
  }

  Status results(PatternNode* node) {
    const auto index = static_cast<uint32_t>(rule_.nodes.size());
    do {
      if (at_.at_word("_")) {
        at_.next();
        node->results.push_back(kNoSlot);
        continue;
      }
      const std::string where = at_.where();
      REGIE_ASSIGN(std::string name, at_.expect(RuleToken::kValue, "a result, such as %y"));
      const size_t known = rule_.values.size();
      uint32_t slot = slot_of(name);
      if (slot < known)
        return invalid_input("%" + name +
                                 (rule_.values[slot].node == kNoSlot ? " is used above the line that makes it"
                                                                     : " is made twice"),
                             where);
      rule_.values[slot].node = index;
      rule_.values[slot].index = static_cast<uint32_t>(node->results.size());
      node->results.push_back(slot);
    } while (at_.take_sign(","));
    return {};
  }

  Status operators(PatternNode* node) {
    bool paren = at_.take_sign("(");
    if (paren && at_.at(RuleToken::kAttr)) {
      node->op_slot = attr_slot(at_.next().text);
      REGIE_TRY(at_.expect_sign(":"));
    }
    do {
      const std::string where = at_.where();
      REGIE_ASSIGN(std::string name, at_.expect(RuleToken::kWord, "an operator"));
      REGIE_ASSIGN(const OpSchema* schema, find_schema(schemas_, name, where));
      for (const OpSchema* s : ops_of_node_)
        if (s == schema) return invalid_input("operator '" + name + "' is named twice", where);
      ops_of_node_.push_back(schema);
      node->ops.push_back({intern(name), {}});
      node->ops_text += (node->ops_text.empty() ? "" : "|") + name;
      node->commutative = node->commutative ||
                          std::find(commutative_.begin(), commutative_.end(), name) != commutative_.end();
    } while (at_.take_sign("|"));
    if (paren) REGIE_TRY(at_.expect_sign(")"));
    node->commutative = at_.take_sign("~") || node->commutative;
    return {};
  }

  Status operands(PatternNode* node) {
    const auto index = static_cast<uint32_t>(rule_.nodes.size());
    while (!at_.at_sign(")")) {
      if (!node->operands.empty()) REGIE_TRY(at_.expect_sign(","));
      PatternOperand operand;
      if (at_.at_word("_")) {
        at_.next();
      } else {
        REGIE_ASSIGN(std::string name, at_.expect(RuleToken::kValue, "an operand: %x, %x? or _"));
        operand.value = slot_of(name);
        operand.optional = at_.take_sign("?");
        const ValueSlot& v = rule_.values[operand.value];
        if (v.node == index) return at_.error("%" + name + " is made by the node that reads it");
        if (operand.optional && v.node != kNoSlot)
          return at_.error("%" + name + " is made by the match, so it cannot be optional");
      }
      node->operands.push_back(operand);
    }
    at_.next();
    // An operand that only some of the operators take must be optional or absent.
    size_t needed = 0, most = 0;
    for (size_t i = 0; i < node->operands.size(); ++i)
      if (node->operands[i].value != kNoSlot && !node->operands[i].optional) needed = i + 1;
    for (const OpSchema* s : ops_of_node_) {
      bool variadic = !s->operands.empty() && s->operands.back().variadic;
      size_t takes = variadic ? SIZE_MAX : s->operands.size();
      most = std::max(most, takes);
      if (needed > takes)
        return at_.error(s->name + " has at most " + std::to_string(takes) + " operand(s), the match names " +
                         std::to_string(needed));
      bool results_variadic = !s->results.empty() && s->results.back().variadic;
      if (!results_variadic && node->results.size() > s->results.size())
        return at_.error(s->name + " has at most " + std::to_string(s->results.size()) +
                         " result(s), the match names " + std::to_string(node->results.size()));
    }
    if (node->operands.size() > most)
      return at_.error(node->ops_text + " has at most " + std::to_string(most) +
                       " operands, the match names " + std::to_string(node->operands.size()));
    if (!node->commutative) return {};
    if (node->operands.size() != 2) return at_.error("a commutative operator has two operands");
    if (++commutative_nodes_ > kMaxCommutative) return at_.error("a match has at most 16 commutative nodes");
    return {};
  }

  Status attributes(PatternNode* node) {
    bool first = true;
    while (!at_.at_sign("}")) {
      if (!first) REGIE_TRY(at_.expect_sign(","));
      first = false;
      if (at_.at(RuleToken::kSpread)) {
        at_.next();
        node->waives = true;
        continue;
      }
      const std::string where = at_.where();
      AttrPattern a;
      REGIE_ASSIGN(a.name, at_.expect(RuleToken::kWord, "an attribute or '...'"));
      for (const AttrPattern& other : node->attrs)
        if (other.name == a.name) return invalid_input("attribute '" + a.name + "' is named twice", where);
      REGIE_TRY(at_.expect_sign("="));
      if (at_.at(RuleToken::kAttr)) {
        a.kind = AttrPattern::Kind::kBind;
        a.slot = attr_slot(at_.next().text);
      } else if (at_.at_word("default") || at_.at_word("none")) {
        a.kind = at_.next().text == "none" ? AttrPattern::Kind::kNone : AttrPattern::Kind::kDefault;
      } else {
        REGIE_TRY(literal(&a, where));
      }
      bool known = false;
      for (const OpSchema* s : ops_of_node_) {
        const SchemaAttr* sa = s->find_attr(a.name);
        known = known || sa || s->open_attrs;
        if (sa && a.kind == AttrPattern::Kind::kLiteral && !kinds_agree(a.literal.kind, sa->kind))
          return invalid_input("attribute '" + a.name + "' of " + s->name + " is of another kind", where);
      }
      if (!known) return unknown_attr(a.name, ops_of_node_, where);
      node->attrs.push_back(std::move(a));
    }
    at_.next();
    return {};
  }

  Status literal(AttrPattern* a, const std::string& where) {
    const std::vector<std::string> no_attrs;
    const std::vector<ValueSlot> no_values;
    RuleNames none{&no_values, 0, &no_attrs};
    bool word = at_.at(RuleToken::kWord);
    REGIE_ASSIGN(RuleExpr e, parse_expr(at_, none, nullptr));
    MatchState nothing;
    auto v = word ? std::nullopt : evaluate_expr(e, nothing);
    if (!v)
      return invalid_input("attribute '" + a->name +
                               "' must be a number, a string in quotes, a list, $name, " +
                               "'default' or 'none'",
                           where);
    a->literal = std::move(*v);
    return {};
  }

  // Every attribute of every operator must be named or waived, so that a new one never slips through unseen.
  Status check_attributes(PatternNode* node) {
    const std::string where = at_.file() + ":" + std::to_string(node->line);
    for (size_t i = 0; i < node->ops.size(); ++i) {
      const OpSchema& s = *ops_of_node_[i];
      for (const AttrPattern& a : node->attrs) {
        const SchemaAttr* sa = s.find_attr(a.name);
        node->ops[i].defaults.push_back(sa && sa->has_default ? sa->default_value : AttrValue());
      }
      if (node->waives) continue;
      if (s.open_attrs) return invalid_input(s.name + " takes any attribute: waive them with '...'", where);
      for (const SchemaAttr& sa : s.attrs) {
        bool named = std::any_of(node->attrs.begin(), node->attrs.end(),
                                 [&](const AttrPattern& a) { return a.name == sa.name; });
        if (!named)
          return invalid_input("attribute '" + sa.name + "' of " + s.name +
                                   " is neither named nor waived; write " + sa.name +
                                   " = ..., or '...' for all that are not named",
                               where);
      }
    }
    ops_of_node_.clear();
    return {};
  }

  // The root is last; every other node must be reached from it by way of operands, readers before producers.
  Status order() {
    const auto count = static_cast<uint32_t>(rule_.nodes.size());
    std::vector<bool> reached(count, false);
    reached[count - 1] = true;
    rule_.order.push_back(count - 1);
    for (size_t i = 0; i < rule_.order.size(); ++i) {
      for (const PatternOperand& o : rule_.nodes[rule_.order[i]].operands) {
        if (o.value == kNoSlot) continue;
        uint32_t maker = rule_.values[o.value].node;
        if (maker == kNoSlot || reached[maker]) continue;
        reached[maker] = true;
        rule_.nodes[maker].via = o.value;
        rule_.order.push_back(maker);
      }
    }
    for (uint32_t i = 0; i < count; ++i)
      if (!reached[i])
        return invalid_input("the last line of the match does not read this node, directly or through others",
                             at_.file() + ":" + std::to_string(rule_.nodes[i].line));
    return {};
  }

  RuleCursor& at_;
  const SchemaSet& schemas_;
  const std::vector<std::string>& commutative_;
  Rule& rule_;
  std::vector<const OpSchema*> ops_of_node_;
  size_t commutative_nodes_ = 0;
};

}  // namespace

Status parse_match(std::string_view text, const std::string& file, int line, const SchemaSet& schemas,
                   const std::vector<std::string>& commutative, Rule* rule) {
  REGIE_ASSIGN(auto lexemes, lex_rule(text, file, line));
  RuleCursor at(std::move(lexemes), file);
  return MatchParser(at, schemas, commutative, rule).run();
}

}  // namespace regie
