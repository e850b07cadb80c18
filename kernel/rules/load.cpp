#include <algorithm>

#include "base/file.h"
#include "base/toml.h"
#include "rules/expr.h"
#include "rules/parse.h"
#include "rules/rule.h"

namespace regie {
namespace {

constexpr int64_t kSchema = 1;

// Line of the first character of a multi-line string: TOML drops a line's end right after the quotes.
int first_line(const TomlValue& v, const std::string& text) {
  return v.line() + (text.find('\n') != std::string::npos ? 1 : 0);
}

class FileLoader {
 public:
  FileLoader(const SchemaSet& schemas, RuleSet* set) : schemas_(schemas), set_(*set) {}

  Status load(const TomlTable& file) {
    file_ = file.file();
    REGIE_TRY(file.check_schema(kSchema));
    REGIE_ASSIGN(TomlValue revision, file.require("revision"));
    REGIE_ASSIGN(std::string written_for, revision.as_string());
    if (!schemas_.revision().empty() && written_for != schemas_.revision())
      return invalid_input("the rules are written for operator set '" + written_for + "', this build has '" +
                               schemas_.revision() + "'; adapt them and state the new revision",
                           revision.where());
    REGIE_ASSIGN(std::string doc, file.string_or("doc", ""));
    REGIE_ASSIGN(TomlValue list, file.require("rule"));
    REGIE_ASSIGN(auto rules, list.as_array());
    for (const TomlValue& r : rules) {
      REGIE_ASSIGN(TomlTable table, r.as_table());
      REGIE_TRY(rule(table));
    }
    return file.finish();
  }

 private:
  Status rule(const TomlTable& t) {
    Rule r;
    r.where = t.where();
    REGIE_ASSIGN(TomlValue name, t.require("name"));
    REGIE_ASSIGN(r.name, name.as_string());
    if (r.name.empty()) return invalid_input("a rule needs a name", name.where());
    for (const Rule& other : set_.rules)
      if (other.name == r.name)
        return invalid_input("rule '" + r.name + "' is there already, at " + other.where, name.where());
    r.group = static_cast<uint32_t>(set_.groups.size());
    const auto first = static_cast<uint32_t>(set_.rules.size());
    REGIE_TRY(body(t, r).while_doing("reading rule '" + r.name + "'"));
    set_.groups.push_back({r.name, first, static_cast<uint32_t>(set_.rules.size()) - first});
    return {};
  }

  // `head`: what all patterns of the rule have in common.
  Status body(const TomlTable& t, Rule head) {
    REGIE_ASSIGN(head.doc, t.string_or("doc", ""));
    REGIE_ASSIGN(auto commutative, t.strings_or("commutative", {}));
    for (const std::string& op : commutative) {
      auto at = t.find("commutative");
      REGIE_ASSIGN(const OpSchema* schema, find_schema(schemas_, op, at->where()));
      (void)schema;
    }
    REGIE_ASSIGN(TomlValue match, t.require("match"));
    std::vector<TomlValue> patterns{match};
    if (match.is_array()) {
      REGIE_ASSIGN(patterns, match.as_array());
    }
    if (patterns.empty()) return invalid_input("'match' needs a pattern", match.where());
    std::vector<Rule> rules(patterns.size(), head);
    for (size_t i = 0; i < patterns.size(); ++i) {
      REGIE_ASSIGN(std::string text, patterns[i].as_string());
      REGIE_TRY(parse_match(text, file_, first_line(patterns[i], text), schemas_, commutative, &rules[i]));
    }
    share_names(&rules);
    REGIE_ASSIGN(TomlValue replace, t.require("replace"));
    REGIE_ASSIGN(std::string replace_text, replace.as_string());
    for (Rule& r : rules) {
      REGIE_TRY(lets(t, &r));
      REGIE_TRY(conditions(t, &r));
      schedule_conditions(&r);
      REGIE_TRY(parse_replace(replace_text, file_, first_line(replace, replace_text), schemas_, &r));
    }
    if (auto tests = t.find("test")) {
      REGIE_ASSIGN(auto list, tests->as_array());
      for (const TomlValue& v : list) {
        REGIE_ASSIGN(TomlTable table, v.as_table());
        REGIE_TRY(test(table, &rules[0]));
      }
    }
    for (Rule& r : rules) set_.rules.push_back(std::move(r));
    return t.finish();
  }

  // A name of one pattern may be used for all of them; where it does not occur it is absent.
  static void share_names(std::vector<Rule>* rules) {
    std::vector<std::string> values, attrs;
    auto note = [](std::vector<std::string>* list, const std::string& name) {
      if (std::find(list->begin(), list->end(), name) == list->end()) list->push_back(name);
    };
    for (const Rule& r : *rules) {
      for (const ValueSlot& v : r.values) note(&values, v.name);
      for (const std::string& a : r.attrs) note(&attrs, a);
    }
    for (Rule& r : *rules) {
      for (const std::string& name : values) {
        if (names(r).find_value(name)) continue;
        r.absent_values.push_back(static_cast<uint32_t>(r.values.size()));
        r.values.push_back({name, kNoSlot, 0});
        r.match_values = static_cast<uint32_t>(r.values.size());
      }
      for (const std::string& name : attrs) {
        if (names(r).find_attr(name)) continue;
        r.absent_attrs.push_back(static_cast<uint32_t>(r.attrs.size()));
        r.attrs.push_back(name);
      }
    }
  }

  static RuleNames names(const Rule& r) { return {&r.values, r.match_values, &r.attrs}; }

  // let = ["$axes = range(1, rank(%w))"]; a later one may use an earlier one.
  Status lets(const TomlTable& t, Rule* r) {
    auto list = t.find("let");
    if (!list) return {};
    REGIE_ASSIGN(auto items, list->as_array());
    for (const TomlValue& item : items) {
      Let let;
      REGIE_ASSIGN(let.text, item.as_string());
      REGIE_ASSIGN(auto lexemes, lex_rule(let.text, file_, item.line()));
      RuleCursor at(std::move(lexemes), file_);
      REGIE_ASSIGN(std::string name, at.expect(RuleToken::kAttr, "$name = expression"));
      if (names(*r).find_attr(name)) return at.error("$" + name + " is bound already");
      REGIE_TRY(at.expect_sign("="));
      REGIE_ASSIGN(let.expr, parse_expr(at, names(*r), &let.values));
      if (!at.at(RuleToken::kLine)) return at.expected("the end of the text");
      let.slot = static_cast<uint32_t>(r->attrs.size());
      r->attrs.push_back(std::move(name));
      r->lets.push_back(std::move(let));
    }
    return {};
  }

  Status conditions(const TomlTable& t, Rule* r) {
    auto list = t.find("when");
    if (!list) return {};
    REGIE_ASSIGN(auto items, list->as_array());
    for (const TomlValue& item : items) {
      REGIE_ASSIGN(std::string text, item.as_string());
      REGIE_ASSIGN(Predicate p, parse_predicate(text, file_, item.line(), names(*r)));
      r->when.push_back(std::move(p));
    }
    return {};
  }

  static bool uses_attr(const RuleExpr& e) {
    return e.kind == RuleExpr::Kind::kAttr || std::any_of(e.args.begin(), e.args.end(), uses_attr);
  }
  static void collect_values(const RuleExpr& e, std::vector<uint32_t>* values) {
    if (e.kind == RuleExpr::Kind::kValue) values->push_back(e.slot);
    for (const RuleExpr& a : e.args) collect_values(a, values);
  }

  // Fills when_at and when_last. What asks for all nodes of the match, or for attributes, comes last.
  static void schedule_conditions(Rule* r) {
    std::vector<size_t> bound(r->match_values, r->order.size());  // by slot: the step that binds it
    for (uint32_t slot : r->absent_values) bound[slot] = 0;
    for (size_t step = 0; step < r->order.size(); ++step) {
      const PatternNode& n = r->nodes[r->order[step]];
      auto bind = [&](uint32_t slot) {
        if (slot != kNoSlot) bound[slot] = std::min(bound[slot], step);
      };
      for (uint32_t slot : n.results) bind(slot);
      for (const PatternOperand& o : n.operands) bind(o.value);
    }
    r->when_at.resize(r->order.size());
    for (uint32_t i = 0; i < r->when.size(); ++i) {
      const Predicate& p = r->when[i];
      std::vector<uint32_t> values = p.values;
      for (const RuleExpr& e : p.exprs) collect_values(e, &values);
      size_t step = 0;
      for (uint32_t slot : values) step = std::max(step, bound[slot]);
      const bool late = values.empty() || p.kind == PredicateKind::kSingleUse ||
                        std::any_of(p.exprs.begin(), p.exprs.end(), uses_attr);
      if (late || step >= r->order.size()) {
        r->when_last.push_back(i);
      } else {
        r->when_at[step].push_back(i);
      }
    }
  }

  // `before` and `after` are a graph's text, or the path of a file with it, seen from the rule file.
  Status graph_text(const TomlValue& v, std::string* text, std::string* from) {
    REGIE_ASSIGN(*text, v.as_string());
    *from = v.where();
    if (text->find('{') != std::string::npos) return {};
    if (text->find('\n') != std::string::npos)
      return invalid_input("a test graph must be a graph's text or the path of a .rg file", v.where());
    size_t slash = file_.rfind('/');
    std::string path = text->empty() || (*text)[0] == '/' || slash == std::string::npos
                           ? *text
                           : file_.substr(0, slash + 1) + *text;
    auto read = read_text_file(path);
    if (!read.ok())
      return std::move(read).status().while_doing("reading the test graph named at " + v.where());
    *text = std::move(read).value();
    *from = path;
    return {};
  }

  Status test(const TomlTable& t, Rule* r) {
    RuleTest test;
    test.where = t.where();
    REGIE_ASSIGN(TomlValue before, t.require("before"));
    REGIE_TRY(graph_text(before, &test.before, &test.before_file));
    if (auto after = t.find("after")) REGIE_TRY(graph_text(*after, &test.after, &test.after_file));
    REGIE_ASSIGN(std::string expect, t.string_or("expect", "fires"));
    if (expect != "fires" && expect != "does-not-fire")
      return invalid_input("expect must be \"fires\" or \"does-not-fire\"", t.find("expect")->where());
    test.fires = expect == "fires";
    if (!test.fires && !test.after.empty())
      return invalid_input("a test that does not fire has no 'after'", t.find("after")->where());
    if (auto ranges = t.find("ranges")) {
      REGIE_ASSIGN(TomlTable table, ranges->as_table());
      for (const std::string& key : table.keys()) {
        REGIE_ASSIGN(TomlValue v, table.require(key));
        REGIE_ASSIGN(auto pair, v.as_array());
        if (pair.size() != 2) return invalid_input("a range is [least, greatest]", v.where());
        REGIE_ASSIGN(double least, pair[0].as_number());
        REGIE_ASSIGN(double greatest, pair[1].as_number());
        if (!(least <= greatest)) return invalid_input("a range is [least, greatest]", v.where());
        test.ranges.emplace_back(key, std::pair(least, greatest));
      }
    }
    r->tests.push_back(std::move(test));
    return t.finish();
  }

  const SchemaSet& schemas_;
  RuleSet& set_;
  std::string file_;
};

void index(RuleSet* set) {
  for (uint32_t i = 0; i < set->rules.size(); ++i) {
    Rule& r = set->rules[i];
    const PatternNode& root = r.nodes.back();
    for (const PatternOp& o : root.ops) set->by_root[o.op].push_back(i);
    for (uint32_t o = 0; o < root.operands.size(); ++o) {
      const PatternOperand& operand = root.operands[o];
      if (operand.value != kNoSlot && !operand.optional && r.values[operand.value].node != kNoSlot)
        r.feeders.emplace_back(o, r.values[operand.value].node);
    }
    // Longest way from the root: a node is read by lines below it only, so one sweep upwards settles it.
    std::vector<uint32_t> depth(r.nodes.size(), 1);
    for (size_t n = r.nodes.size(); n-- > 0;) {
      for (const PatternOperand& o : r.nodes[n].operands)
        if (o.value != kNoSlot && r.values[o.value].node != kNoSlot) {
          uint32_t& d = depth[r.values[o.value].node];
          d = std::max(d, depth[n] + 1);
          set->depth = std::max(set->depth, d);
        }
      if (n + 1 < r.nodes.size())
        for (const PatternOp& o : r.nodes[n].ops) set->inner[o.op] = true;
    }
  }
}

}  // namespace

Result<std::shared_ptr<const RuleSet>> load_rules(const std::vector<std::string>& paths,
                                                  const SchemaSet& schemas) {
  auto set = std::make_shared<RuleSet>();
  for (const std::string& path : paths) {
    REGIE_ASSIGN(TomlTable file, TomlTable::parse_file(path));
    REGIE_TRY(FileLoader(schemas, set.get()).load(file));
  }
  index(set.get());
  return std::shared_ptr<const RuleSet>(std::move(set));
}

Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view toml, const std::string& file_name,
                                                   const SchemaSet& schemas) {
  auto set = std::make_shared<RuleSet>();
  REGIE_ASSIGN(TomlTable file, TomlTable::parse(toml, file_name));
  REGIE_TRY(FileLoader(schemas, set.get()).load(file));
  index(set.get());
  return std::shared_ptr<const RuleSet>(std::move(set));
}

std::vector<std::string> rule_names(const RuleSet& rules) {
  std::vector<std::string> names;
  for (const RuleSet::Group& g : rules.groups) names.push_back(g.name);
  return names;
}

}  // namespace regie
