#include "passes/rule_pass.h"

#include <filesystem>

#include "rules/rules.h"

namespace regie {

namespace {

constexpr regie_str literal(std::string_view s) { return {s.data(), s.size()}; }
constexpr regie_str kRequires[] = {literal("shapes-known")};
constexpr regie_option_info kOptions[] = {
    {literal("rules"), literal(""), literal("rule files: names in configs/rules or paths, comma separated")},
    {literal("only"), literal(""), literal("names of rules, comma separated; empty: all of the files")},
};
constexpr regie_pass_info kInfo = {literal("apply-rules"),
                                   literal("rewrites what the rule files match, to a fixpoint"),
                                   1,
                                   0,
                                   0,
                                   2,
                                   kRequires,
                                   nullptr,
                                   nullptr,
                                   kOptions};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

// The option of this name: `--set` beats the pipeline.
std::string option(const CompileOptions& options, const PassUse& use, std::string_view key) {
  std::string value;
  for (const auto& [k, v] : use.options)
    if (k == key) value = v;
  for (const auto& [k, v] : options.settings)
    if (k == std::string(RulePass::kName) + "." + std::string(key)) value = v;
  return value;
}

LedgerDetail detail_of(const NearMiss& miss, const Graph& graph) {
  LedgerDetail d{std::string(RulePass::kName),
                 miss.node_text,
                 "near-miss",
                 miss.stopped_at,
                 {},
                 miss.reason,
                 miss.passed,
                 {}};
  if (miss.in_the_way != REGIE_NONE) d.in_the_way = graph.describe_node(miss.in_the_way);
  for (uint32_t n : miss.reached) d.reached.push_back(graph.describe_node(n));
  return d;
}

}  // namespace

const regie_pass_info* RulePass::info() { return &kInfo; }

std::string RulePass::rules_of(const CompileOptions& options, const PassUse& use) {
  return option(options, use, "rules");
}

Result<std::vector<std::string>> RulePass::paths(const PluginHost& plugins, std::string_view rules,
                                                 const std::string& where) {
  std::vector<std::string> paths;
  for (const std::string& name : split(rules)) {
    std::string stem = name.ends_with(".toml") && name.find('/') == std::string::npos
                           ? name.substr(0, name.size() - 5)
                           : name;
    if (std::error_code error; name.ends_with(".toml") && std::filesystem::is_regular_file(name, error)) {
      paths.push_back(name);
      continue;
    }
    // A pipeline may bring its rules along. `where` is its file and line.
    if (const size_t colon = where.rfind(".toml"); colon != std::string::npos) {
      const std::filesystem::path pipeline(where.substr(0, colon + 5));
      std::filesystem::path beside = pipeline.parent_path() / "rules" / (stem + ".toml");
      if (std::error_code error;
          name.find('/') == std::string::npos && std::filesystem::is_regular_file(beside, error)) {
        paths.push_back(beside.string());
        continue;
      }
    }
    auto path = plugins.find_config("rules", stem);
    if (!path.ok()) return std::move(std::move(path).status().set_where(where));
    paths.push_back(*path);
  }
  return paths;
}

Result<RulePass> RulePass::create(const CompileState& state, const PassUse& use) {
  RulePass pass;
  REGIE_ASSIGN(const std::vector<std::string> paths,
               RulePass::paths(*state.plugins, rules_of(state.options, use), use.where));
  if (paths.empty()) return invalid_input("apply-rules needs `rules`, the rule files to apply", use.where);
  REGIE_ASSIGN(pass.rules_, load_rules(paths, state.ops->schemas()));
  pass.only_ = split(option(state.options, use, "only"));
  pass.statistics_ = std::make_shared<RuleStatistics>();
  return pass;
}

Status RulePass::run(CompileState& state, const std::vector<uint32_t>& changed,
                     const std::function<Result<ApplyOutcome>(Edit&)>& apply) {
  Edit edit(*state.graph);
  ApplyRulesOptions options;
  options.only = only_;
  options.changed = &changed;
  options.statistics = statistics_.get();
  if (state.ledger.everything) options.details = options.details_a_reason = SIZE_MAX;
  auto applied = apply_rules(
      *rules_, *state.graph, edit, [&] { return apply(edit); }, options);
  if (!applied.ok()) return std::move(applied).status();
  told_.resize(statistics_->rules.size());
  for (size_t i = 0; i < statistics_->rules.size(); ++i) {
    const RuleCount& c = statistics_->rules[i];
    RuleRecord& record = state.ledger.rule(c.name);
    // Other steps of the pipeline may have applied the same rules.
    record.matched += c.matched - std::exchange(told_[i].first, c.matched);
    record.applied += c.applied - std::exchange(told_[i].second, c.applied);
    record.near_misses.clear();
    for (const auto& [reason, count] : c.reasons) record.near_misses[reason] = count;
    record.details.clear();
    for (const NearMiss& miss : c.details) record.details.push_back(detail_of(miss, *state.graph));
  }
  return {};
}

}  // namespace regie
