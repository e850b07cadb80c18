#include "rules/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/toml.h"
#include "ir/verify.h"
#include "rules/evaluate.h"
#include "rules/numbers.h"
#include "rules/variants.h"
#include "text/text.h"

namespace regie {
namespace {

// splitmix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform(double least, double greatest) {
    return least + (greatest - least) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }

 private:
  uint64_t state_;
};

// Types of all results, inner regions before the node that owns them.
Status infer_all(Graph& graph, const OpSet& ops) {
  struct Step {
    uint32_t node;
    bool entered;
  };
  std::vector<Step> stack{{graph.region(0).first, false}};
  while (!stack.empty()) {
    Step& step = stack.back();
    if (step.node == REGIE_NONE) {
      stack.pop_back();
      continue;
    }
    const regie_node& n = graph.node(step.node);
    if (!step.entered && n.region_count > 0) {
      step.entered = true;
      for (uint32_t i = n.region_count; i-- > 0;) stack.push_back({graph.region(n.regions[i]).first, false});
      continue;
    }
    uint32_t node = step.node;
    REGIE_TRY(ops.infer(graph, node));
    stack.back() = {graph.node(node).next, false};
  }
  return {};
}

struct Trial {
  std::vector<std::optional<int64_t>> symbols;
  ValueBindings bindings;
  std::vector<Tensor> expected;
};

// Gives the graph the shapes of one trial while it lives: reference kernels want numbers, rules want symbols.
class Concrete {
 public:
  Concrete(Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops) {}
  Status enter(const std::vector<std::optional<int64_t>>& symbols) {
    for (uint32_t v = 0; v < graph_.value_count(); ++v) {
      const regie_value& value = graph_.value(v);
      if (!graph_.live_value(v) || value.kind == REGIE_VALUE_RESULT || value.type.rank < 0) continue;
      std::vector<regie_dim> dims;
      for (int32_t i = 0; i < value.type.rank; ++i) {
        REGIE_ASSIGN(int64_t d, graph_.dims().evaluate(value.type.dims[i], symbols));
        dims.push_back(d);
      }
      if (std::equal(dims.begin(), dims.end(), value.type.dims)) continue;
      saved_.emplace_back(v, value.type);
      graph_.set_type(v, graph_.make_type(value.type.elem, dims, value.type.container));
    }
    return saved_.empty() ? Status() : infer_all(graph_, ops_);
  }
  Status leave() {
    if (saved_.empty()) return {};
    for (auto& [value, type] : saved_) graph_.set_type(value, type);
    saved_.clear();
    return infer_all(graph_, ops_);
  }

 private:
  Graph& graph_;
  const OpSet& ops_;
  std::vector<std::pair<uint32_t, regie_type>> saved_;
};

// Variants have other random numbers and sizes; what is wrong is the same.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char* at = text.c_str(); *at;) {
    char* end = nullptr;
    const bool sign = (*at == '-' || *at == '+') && at[1] >= '0' && at[1] <= '9';
    if (sign || (*at >= '0' && *at <= '9')) (void)std::strtod(at, &end);
    out += end && end != at ? '#' : *at;
    at = end && end != at ? end : at + 1;
  }
  return out;
}

class Checker {
 public:
  Checker(const RuleSet& rules, const SchemaSet& schemas, const OpSet& ops, const CheckOptions& options)
      : rules_(rules), schemas_(schemas), ops_(ops), options_(options) {}

  Result<RuleCheck> check(const Rule& rule) {
    rule_ = &rule;
    out_ = {};
    said_.clear();
    again_.clear();
    out_.rule = rule.name;
    out_.where = rule.where;
    bool fires = false, rests = false;
    by_pattern_.assign(rules_.groups[rule.group].count, 0);
    for (size_t i = 0; i < rule.tests.size(); ++i) {
      const RuleTest& t = rule.tests[i];
      test_ = &t;
      (t.fires ? fires : rests) = true;
      ++out_.tests;
      label_ = "test " + std::to_string(i + 1);
      REGIE_TRY(run_test(t));
    }
    label_.clear();
    test_ = nullptr;
    if (!fires) fail("no test in which the rule fires; add [[rule.test]] with a graph");
    if (!rests)
      fail("no test in which the rule must not fire; add [[rule.test]] with expect = \"does-not-fire\"");
    for (size_t i = 0; i < by_pattern_.size(); ++i)
      if (fires && by_pattern_[i] == 0)
        fail("no test in which pattern " + std::to_string(i + 1) + " of 'match' fires");
    for (const auto& [failure, n] : again_)
      out_.failures[failure] +=
          " (and the same in " + std::to_string(n) + (n == 1 ? " variant)" : " variants)");
    return std::move(out_);
  }

 private:
  void fail(std::string what) {
    std::string place = test_ ? test_->where : rule_->where;
    // Further random inputs of one graph fail alike: the first says it.
    const std::string where = place + ": " + (label_.empty() ? "" : label_ + ": ");
    if (!label_.empty() && !out_.failures.empty() && out_.failures.back().starts_with(where)) return;
    // A variant that fails as another case of its test does says nothing new: it is counted.
    const bool variant = label_.find(", variant") != std::string::npos;
    if (variant)
      if (const auto it = said_.find(place + without_numbers(what)); it != said_.end()) {
        ++again_[it->second];
        return;
      }
    said_.emplace(place + without_numbers(what), out_.failures.size());
    out_.failures.push_back(where + what);
  }

  Result<std::unique_ptr<Graph>> fresh(const std::string& text, const std::string& from) {
    auto graph = parse(text, from);
    if (!graph.ok())
      return std::move(graph).status().while_doing("reading the test graph of rule '" + rule_->name + "'");
    return graph;
  }

  std::span<const Rule> patterns() const {
    const RuleSet::Group& group = rules_.groups[rule_->group];
    return std::span(rules_.rules).subspan(group.first, group.count);
  }

  Status run_test(const RuleTest& t) {
    REGIE_ASSIGN(auto graph, fresh(t.before, t.before_file));
    std::vector<Variant> variants;
    if (options_.variants) variants = make_variants(patterns(), *graph, schemas_);
    // A test graph that is wrong in itself is bad input; a variant that cannot be is left out.
    REGIE_TRY(infer_all(*graph, ops_).while_doing("inferring the test graph at " + t.before_file));
    REGIE_TRY(verify_graph(*graph).while_doing("checking the test graph at " + t.before_file));
    auto trials = prepare(*graph, t);
    if (!trials.ok())
      return std::move(trials).status().while_doing("evaluating the test graph at " + t.before_file);
    bool fired = run_case(*graph, *trials, t.fires, true);
    if (fired && !t.after.empty()) REGIE_TRY(compare_after(*graph, t));
    const std::string test = label_;
    for (const Variant& v : variants) {
      label_ = test + ", variant '" + v.label + "'";
      REGIE_ASSIGN(auto changed, fresh(t.before, t.before_file));
      v.change(*changed);
      if (!infer_all(*changed, ops_).ok()) {
        ++out_.unmade;
        continue;
      }
      if (Status sound = verify_graph(*changed); !sound.ok()) {
        fail("the variant is not a graph: " + sound.to_string());
        continue;
      }
      auto changed_trials = prepare(*changed, t);
      if (!changed_trials.ok()) {
        ++out_.unmade;
        continue;
      }
      ++out_.variants;
      run_case(*changed, *changed_trials, t.fires, v.same_verdict);
    }
    label_ = test;
    return {};
  }

  Status verify_graph(const Graph& graph) const {
    VerifyOptions options;
    options.ops = &ops_;
    return verify(graph, options);
  }

  Result<std::vector<Trial>> prepare(Graph& graph, const RuleTest& t) const {
    std::vector<Trial> trials;
    const size_t count = graph.dims().symbol_count() > 0 ? 2 : 1;
    for (size_t i = 0; i < count; ++i) {
      Trial trial;
      trial.symbols = choose_symbols(graph, i);
      REGIE_ASSIGN(trial.bindings, bind(graph, t, trial.symbols, i));
      REGIE_ASSIGN(trial.expected, evaluate(graph, trial));
      trials.push_back(std::move(trial));
    }
    return trials;
  }

  // Applies the rule and evaluates again. Gives whether it fired.
  bool run_case(Graph& graph, const std::vector<Trial>& trials, bool should_fire, bool verdict_matters) {
    Edit edit(graph);
    RuleStatistics statistics;
    ApplyRulesOptions apply;
    apply.only = {rule_->name};
    apply.statistics = &statistics;
    auto applied = apply_rules(
        rules_, graph, edit, [&] { return edit.apply(ops_); }, apply);
    if (!applied.ok()) {
      fail("the replacement is refused: " + applied.status().to_string());
      return false;
    }
    bool fired = *applied > 0;
    if (fired) ++out_.fired;
    for (size_t i = 0; i < by_pattern_.size(); ++i)
      by_pattern_[i] += statistics.rules[rule_->group].by_pattern[i];
    if (verdict_matters && fired != should_fire)
      fail(fired ? "the rule fires and must not" : why_not(statistics));
    if (Status s = verify_graph(graph); !s.ok()) {
      fail("the graph is broken afterwards: " + s.to_string());
      return fired;
    }
    for (const Trial& trial : trials) {
      auto after = evaluate(graph, trial);
      if (!after.ok()) {
        fail("the graph cannot be evaluated afterwards: " + after.status().to_string());
        return fired;
      }
      compare(trial.expected, *after);
    }
    return fired;
  }

  std::string why_not(const RuleStatistics& statistics) const {
    std::string text = "the rule does not fire";
    for (const RuleCount& c : statistics.rules) {
      if (c.name != rule_->name) continue;
      if (c.details.empty()) text += ": no node has the operator of its last line";
      for (const NearMiss& m : c.details) text += "; " + m.node_text + ": " + m.stopped_at;
    }
    return text;
  }

  Result<std::vector<Tensor>> evaluate(Graph& graph, const Trial& trial) const {
    Concrete shapes(graph, ops_);
    REGIE_TRY(shapes.enter(trial.symbols));
    auto results = evaluate_graph(graph, ops_, trial.bindings);
    REGIE_TRY(shapes.leave());
    return results;
  }

  // Small values, different from each other at first, then all as small as can be.
  static std::vector<std::optional<int64_t>> choose_symbols(const Graph& graph, size_t trial) {
    std::vector<std::optional<int64_t>> symbols;
    for (size_t i = 0; i < graph.dims().symbol_count(); ++i) {
      const DimSymbol& s = graph.dims().symbol_at(i);
      int64_t least = std::max<int64_t>(s.lower, 1);
      int64_t wished = trial == 0 ? least + 1 + static_cast<int64_t>(i % 3) : least;
      symbols.emplace_back(std::min(wished, std::max(s.upper, s.lower)));
    }
    return symbols;
  }

  // Random tensors for arguments and constants without bytes.
  Result<ValueBindings> bind(const Graph& graph, const RuleTest& t,
                             const std::vector<std::optional<int64_t>>& symbols, size_t trial) const {
    ValueBindings bindings;
    Random random(options_.seed * 1000003 + trial);
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      const regie_value& value = graph.value(v);
      bool argument = value.kind == REGIE_VALUE_ARGUMENT && value.owner == 0;
      bool abstract = graph.is_constant(v) && !graph.tensor(v);
      if (!argument && !abstract) continue;
      std::vector<int64_t> dims;
      if (value.type.rank < 0)
        return invalid_input(graph.describe_value(v) + " needs a type with known rank", t.before_file);
      for (int32_t i = 0; i < value.type.rank; ++i) {
        auto d = graph.dims().evaluate(value.type.dims[i], symbols);
        if (!d.ok())
          return std::move(d).status().while_doing("choosing a shape for " + graph.describe_value(v));
        dims.push_back(*d);
      }
      double least = is_float(value.type.elem) ? -2 : 0, greatest = is_float(value.type.elem) ? 2 : 1;
      for (const auto& [name, range] : t.ranges)
        if (name == view(value.name)) std::tie(least, greatest) = range;
      if (value.type.elem == REGIE_STRING || value.type.elem == REGIE_ELEM_UNKNOWN)
        return invalid_input(graph.describe_value(v) + " has a type that tests cannot fill", t.before_file);
      REGIE_ASSIGN(Tensor tensor, Tensor::try_zeros(value.type.elem, dims, graph.describe_value(v)));
      for (int64_t i = 0; i < tensor.count(); ++i) {
        double x = random.uniform(least, is_float(value.type.elem) ? greatest : greatest + 1);
        if (!set_number(tensor, i, is_float(value.type.elem) ? x : std::min(std::floor(x), greatest)))
          return invalid_input(graph.describe_value(v) + " has a type that tests cannot fill", t.before_file);
      }
      bindings.emplace(v, std::move(tensor));
    }
    return bindings;
  }

  void compare(const std::vector<Tensor>& expected, const std::vector<Tensor>& found) {
    if (expected.size() != found.size()) return fail("the graph has another number of results");
    for (size_t r = 0; r < expected.size(); ++r) {
      const Tensor &a = expected[r], &b = found[r];
      const std::string result = "result " + std::to_string(r);
      if (a.elem() != b.elem() ||
          !std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()))
        return fail(result + " has another type or shape");
      double scale = 0;
      for (int64_t i = 0; i < a.count(); ++i)
        if (auto x = number_at(a.view(), i); x && std::isfinite(*x)) scale = std::max(scale, std::fabs(*x));
      for (int64_t i = 0; i < a.count(); ++i) {
        auto x = number_at(a.view(), i), y = number_at(b.view(), i);
        if (!x || !y) return fail(result + " has a type that cannot be compared");
        if (std::isnan(*x))
          return fail(result +
                      " is not a number before the rule; give ranges for the random values: "
                      "ranges = { var = [0.5, 2.0] }");
        if (*x == *y) continue;
        double error = std::fabs(*x - *y);
        if (error <= options_.relative * scale + options_.absolute) {
          out_.max_error = std::max(out_.max_error, error / std::max(scale, 1e-30));
          continue;
        }
        char text[160];
        std::snprintf(text, sizeof text, "%s differs at element %lld: %.9g before, %.9g after",
                      result.c_str(), static_cast<long long>(i), *x, *y);
        return fail(text);
      }
    }
  }

  // Equal up to the names of inner values.
  Status compare_after(Graph& graph, const RuleTest& t) {
    REGIE_ASSIGN(auto wanted, fresh(t.after, t.after_file));
    REGIE_TRY(infer_all(*wanted, ops_).while_doing("inferring the test graph at " + t.after_file));
    const std::string a = normal_text(*wanted), b = normal_text(graph);
    if (a != b) fail("the graph is not as in 'after'; it should be\n" + a + "and is\n" + b);
    return {};
  }

  static std::string normal_text(Graph& graph) {
    const regie_region& main = graph.region(0);
    graph.set_name("graph");
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      if (!graph.live_value(v) || graph.value(v).kind != REGIE_VALUE_RESULT) continue;
      if (std::find(main.results, main.results + main.result_count, v) == main.results + main.result_count)
        graph.set_value_name(v, "");
    }
    PrintOptions options;
    options.assignments = options.provenance = false;
    return print(graph, options);
  }

  const RuleSet& rules_;
  const SchemaSet& schemas_;
  const OpSet& ops_;
  const CheckOptions& options_;
  const Rule* rule_ = nullptr;
  const RuleTest* test_ = nullptr;
  std::string label_;
  std::vector<uint64_t> by_pattern_;  // how often each pattern has fired
  RuleCheck out_;
  std::map<std::string, size_t> said_;  // place and words: which failure
  std::map<size_t, size_t> again_;      // by failure: how many variants fail alike
};

}  // namespace

bool CheckReport::passed() const {
  return std::all_of(rules.begin(), rules.end(), [](const RuleCheck& r) { return r.failures.empty(); });
}

std::string CheckReport::to_text() const {
  std::string text;
  size_t failed = 0;
  for (const RuleCheck& r : rules) {
    char line[256];
    std::snprintf(
        line, sizeof line, "%-4s %s: %u tests, %u variants, fired %u times, greatest relative error %.2g\n",
        r.failures.empty() ? "ok" : "FAIL", r.rule.c_str(), r.tests, r.variants, r.fired, r.max_error);
    text += line;
    if (r.unmade > 0)
      text += "     " + std::to_string(r.unmade) + " variants are not possible for these graphs\n";
    for (const std::string& f : r.failures) text += "     " + f + "\n";
    failed += !r.failures.empty();
  }
  text += std::to_string(rules.size()) + " rules, " + std::to_string(failed) + " failed\n";
  return text;
}

Result<CheckReport> check_rules(const RuleSet& rules, const SchemaSet& schemas, const OpSet& ops,
                                const CheckOptions& options) {
  const std::vector<std::string> names = rule_names(rules);
  for (const std::string& name : options.only) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    auto near = nearest_name(name, names);
    return not_found("there is no rule '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : ""));
  }
  CheckReport report;
  Checker checker(rules, schemas, ops, options);
  for (const RuleSet::Group& group : rules.groups) {
    const Rule& rule = rules.rules[group.first];
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), rule.name) == options.only.end())
      continue;
    REGIE_ASSIGN(RuleCheck check, checker.check(rule));
    report.rules.push_back(std::move(check));
  }
  return report;
}

}  // namespace regie
