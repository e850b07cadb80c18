#include <algorithm>

#include "base/toml.h"
#include "rules/expr.h"
#include "rules/parse.h"

namespace regie {
namespace {

class ReplaceParser {
 public:
  ReplaceParser(RuleCursor& at, const SchemaSet& schemas, Rule* rule)
      : at_(at), schemas_(schemas), rule_(*rule) {}

  Status run() {
    // Until a statement makes it anew, a name means the matched value.
    for (uint32_t i = 0; i < rule_.match_values; ++i) current_.push_back(i);
    while (!at_.at(RuleToken::kEnd)) {
      REGIE_TRY(statement());
      if (at_.at(RuleToken::kLine)) {
        at_.next();
      } else if (!at_.at(RuleToken::kEnd)) {
        return at_.expected("the end of the line");
      }
    }
    for (uint32_t slot : rule_.nodes.back().results) {
      if (slot == kNoSlot) continue;
      if (current_[slot] == slot)
        return at_.error("the replacement does not make %" + rule_.values[slot].name);
      if (!made(current_[slot], Statement()))
        return at_.error("%" + rule_.values[slot].name + " is made under a condition only");
      rule_.replaced.emplace_back(slot, current_[slot]);
    }
    return {};
  }

 private:
  Status statement() {
    Statement s;
    s.line = at_.peek().line;
    std::vector<std::pair<std::string, std::string>> results;  // name, where
    do {
      std::string where = at_.where();
      REGIE_ASSIGN(std::string name, at_.expect(RuleToken::kValue, "a result, such as %y"));
      results.emplace_back(std::move(name), std::move(where));
    } while (at_.take_sign(","));
    REGIE_TRY(at_.expect_sign("="));
    if (at_.at(RuleToken::kValue)) {
      s.kind = Statement::Kind::kAlias;
      REGIE_ASSIGN(uint32_t slot, operand());
      s.operands.push_back(slot);
    } else if (at_.at_word("const") && at_.at_sign("(", 1)) {
      REGIE_TRY(constant(&s));
    } else {
      REGIE_TRY(node(&s, results.size()));
    }
    if (s.kind != Statement::Kind::kNode && results.size() != 1) return at_.error("this makes one value");
    if (at_.at_word("if")) REGIE_TRY(condition(&s));
    for (uint32_t slot : s.operands)
      if (slot != kNoSlot && !made(slot, s))
        return at_.error("%" + rule_.values[slot].name +
                         " is made under a condition that this line does not have");
    for (auto& [name, where] : results) {
      REGIE_ASSIGN(uint32_t slot, define(name, where, s));
      s.results.push_back(slot);
    }
    rule_.statements.push_back(std::move(s));
    return {};
  }

  // Whether the value is there whenever `reader` is in force.
  bool made(uint32_t slot, const Statement& reader) const {
    if (slot < rule_.match_values) return true;
    bool either[2] = {false, false};
    for (const Statement& s : rule_.statements) {
      if (std::find(s.results.begin(), s.results.end(), slot) == s.results.end()) continue;
      if (s.condition == kNoSlot || (s.condition == reader.condition && s.if_present == reader.if_present))
        return true;
      either[s.if_present] = true;
    }
    return either[0] && either[1];
  }

  // Two statements may make one name if exactly one of them is in force: `if present(%b)` and `if
  // absent(%b)`.
  Result<uint32_t> define(const std::string& name, const std::string& where, const Statement& s) {
    std::optional<uint32_t> root;
    for (uint32_t i = 0; i < rule_.match_values; ++i) {
      if (rule_.values[i].name != name) continue;
      root = i;
      if (rule_.values[i].node + 1 != rule_.nodes.size())
        return invalid_input(
            "%" + name + " is a value of the match; only results of its last line are replaced", where);
    }
    for (uint32_t i = rule_.match_values; i < rule_.values.size(); ++i) {
      if (rule_.values[i].name != name) continue;
      for (const Statement& other : rule_.statements) {
        bool makes = std::find(other.results.begin(), other.results.end(), i) != other.results.end();
        if (makes &&
            (s.condition == kNoSlot || other.condition != s.condition || other.if_present == s.if_present))
          return invalid_input("%" + name + " is made twice", where);
      }
      return i;
    }
    rule_.values.push_back({name, kNoSlot, 0});
    auto slot = static_cast<uint32_t>(rule_.values.size() - 1);
    current_.resize(rule_.values.size());
    current_[slot] = slot;
    if (root) current_[*root] = slot;
    return slot;
  }

  Result<uint32_t> operand() {
    RuleNames names{&rule_.values, static_cast<uint32_t>(rule_.values.size()), &rule_.attrs};
    const std::string where = at_.where();
    REGIE_ASSIGN(uint32_t named, use_value(at_, names));
    at_.take_sign("?");
    uint32_t slot = current_[named];
    if (slot < rule_.match_values && rule_.values[slot].node + 1 == rule_.nodes.size())
      return invalid_input("%" + rule_.values[slot].name + " is what is replaced and cannot be read here",
                           where);
    return slot;
  }

  Status constant(Statement* s) {
    s->kind = Statement::Kind::kConstant;
    at_.next(), at_.next();
    if (at_.at_word("elem") && at_.at_sign("(", 1)) {
      at_.next(), at_.next();
      REGIE_ASSIGN(s->elem_of, use_value(at_, match_names()));
      REGIE_TRY(at_.expect_sign(")"));
    } else {
      const std::string where = at_.where();
      REGIE_ASSIGN(std::string name,
                   at_.expect(RuleToken::kWord, "an element type, such as f32 or elem(%x)"));
      auto elem = elem_from_name(name);
      if (!elem) return invalid_input("unknown element type '" + name + "'", where);
      s->elem = *elem;
    }
    REGIE_TRY(at_.expect_sign(","));
    REGIE_ASSIGN(s->expr, parse_expr(at_, match_names(), nullptr));
    return at_.expect_sign(")");
  }

  Status node(Statement* s, size_t results) {
    std::vector<const OpSchema*> schemas;
    const std::string where = at_.where();
    if (at_.at(RuleToken::kAttr)) {
      const std::string name = at_.next().text;
      for (const PatternNode& n : rule_.nodes) {
        if (n.op_slot == kNoSlot || rule_.attrs[n.op_slot] != name) continue;
        s->op_slot = n.op_slot;
        for (const PatternOp& o : n.ops) schemas.push_back(schemas_.find(o.op));
      }
      if (s->op_slot == kNoSlot)
        return invalid_input("$" + name + " is not bound to an operator in the match", where);
    } else {
      REGIE_ASSIGN(std::string name, at_.expect(RuleToken::kWord, "an operator"));
      REGIE_ASSIGN(const OpSchema* schema, find_schema(schemas_, name, where));
      s->op = intern(name);
      schemas.push_back(schema);
    }
    REGIE_TRY(at_.expect_sign("("));
    while (!at_.at_sign(")")) {
      if (!s->operands.empty()) REGIE_TRY(at_.expect_sign(","));
      if (at_.at_word("_")) {
        at_.next();
        s->operands.push_back(kNoSlot);
        continue;
      }
      REGIE_ASSIGN(uint32_t slot, operand());
      s->operands.push_back(slot);
    }
    at_.next();
    if (at_.take_sign("{")) REGIE_TRY(attributes(s, schemas));
    for (const OpSchema* schema : schemas) REGIE_TRY(check_node(*s, *schema, results, where));
    return {};
  }

  Status attributes(Statement* s, const std::vector<const OpSchema*>& schemas) {
    while (!at_.at_sign("}")) {
      if (!s->attrs.empty()) REGIE_TRY(at_.expect_sign(","));
      const std::string where = at_.where();
      AttrAssignment a;
      if (at_.at(RuleToken::kSpread)) {
        at_.next();
        REGIE_ASSIGN(uint32_t slot, use_value(at_, match_names()));
        a.spread = rule_.values[slot].node;
        if (a.spread == kNoSlot)
          return invalid_input("%" + rule_.values[slot].name + " is not made by a node of the match", where);
        REGIE_TRY(check_spread(a.spread, schemas, where));
      } else {
        REGIE_ASSIGN(a.name, at_.expect(RuleToken::kWord, "an attribute or ...%value"));
        for (const AttrAssignment& other : s->attrs)
          if (other.name == a.name) return invalid_input("attribute '" + a.name + "' is given twice", where);
        REGIE_TRY(at_.expect_sign("="));
        bool known = false;
        for (const OpSchema* schema : schemas) {
          const SchemaAttr* sa = schema->find_attr(a.name);
          if (sa) a.kind = sa->kind;
          known = known || sa || schema->open_attrs;
        }
        if (!known) return unknown_attr(a.name, schemas, where);
        REGIE_ASSIGN(a.expr, parse_expr(at_, match_names(), nullptr));
      }
      s->attrs.push_back(std::move(a));
    }
    at_.next();
    return {};
  }

  Status check_spread(uint32_t node, const std::vector<const OpSchema*>& targets,
                      const std::string& where) const {
    for (const PatternOp& o : rule_.nodes[node].ops) {
      const OpSchema* from = schemas_.find(o.op);
      for (const OpSchema* to : targets) {
        if (to->open_attrs) continue;
        for (const SchemaAttr& a : from->attrs)
          if (!to->find_attr(a.name))
            return invalid_input("'...' would copy attribute '" + a.name + "' of " + from->name + ", which " +
                                     to->name + " does not have; name the attributes one by one",
                                 where);
      }
    }
    return {};
  }

  Status check_node(const Statement& s, const OpSchema& schema, size_t results,
                    const std::string& where) const {
    size_t least = 0;
    for (size_t i = 0; i < schema.operands.size(); ++i)
      if (!schema.operands[i].optional && !schema.operands[i].variadic) least = i + 1;
    bool variadic = !schema.operands.empty() && schema.operands.back().variadic;
    if (s.operands.size() < least || (!variadic && s.operands.size() > schema.operands.size()))
      return invalid_input(schema.name + " takes " + std::to_string(least) + " to " +
                               (variadic ? "any number of" : std::to_string(schema.operands.size())) +
                               " operands, the replacement gives " + std::to_string(s.operands.size()),
                           where);
    bool many = !schema.results.empty() && schema.results.back().variadic;
    if (!many && results > schema.results.size())
      return invalid_input(schema.name + " has " + std::to_string(schema.results.size()) + " result(s)",
                           where);
    bool spreads =
        std::any_of(s.attrs.begin(), s.attrs.end(), [](const auto& a) { return a.spread != kNoSlot; });
    for (const SchemaAttr& a : schema.attrs) {
      bool given =
          std::any_of(s.attrs.begin(), s.attrs.end(), [&](const auto& g) { return g.name == a.name; });
      if (a.required && !given && !spreads)
        return invalid_input("attribute '" + a.name + "' of " + schema.name + " must be given", where);
    }
    return {};
  }

  Status condition(Statement* s) {
    at_.next();
    s->if_present = at_.at_word("present");
    if (!s->if_present && !at_.at_word("absent")) return at_.expected("present(%b) or absent(%b)");
    at_.next();
    REGIE_TRY(at_.expect_sign("("));
    REGIE_ASSIGN(s->condition, use_value(at_, match_names()));
    return at_.expect_sign(")");
  }

  RuleNames match_names() const { return {&rule_.values, rule_.match_values, &rule_.attrs}; }

  RuleCursor& at_;
  const SchemaSet& schemas_;
  Rule& rule_;
  std::vector<uint32_t> current_;  // by slot: what its name means now
};

}  // namespace

Status parse_replace(std::string_view text, const std::string& file, int line, const SchemaSet& schemas,
                     Rule* rule) {
  REGIE_ASSIGN(auto lexemes, lex_rule(text, file, line));
  RuleCursor at(std::move(lexemes), file);
  return ReplaceParser(at, schemas, rule).run();
}

}  // namespace regie
