// regie check: the tests that rule files carry, and variants of them, against the reference kernels.
#include <cstdio>

#include "cli/command.h"
#include "base/json_text.h"
#include "passes/plugin_op_set.h"
#include "rules/check.h"

namespace regie::cli {

namespace {

Result<CheckReport> check(const po::variables_map& values) {
  REGIE_ASSIGN(auto plugins, plugin_host(values));
  REGIE_ASSIGN(auto ops, PluginOpSet::create(plugins));
  std::vector<std::string> paths;
  for (const std::string& name : values["FILES"].as<std::vector<std::string>>()) {
    REGIE_ASSIGN(std::string path, plugins->find_config("rules", name));
    paths.push_back(std::move(path));
  }
  REGIE_ASSIGN(auto rules, load_rules(paths, ops->schemas()));
  CheckOptions options;
  options.seed = values["seed"].as<uint64_t>();
  options.variants = !values.count("no-variants");
  if (values.count("rule")) options.only = values["rule"].as<std::vector<std::string>>();
  return check_rules(*rules, ops->schemas(), *ops, options);
}

std::string to_json(const CheckReport& report) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const RuleCheck& r : report.rules)
    all.push_back({{"rule", r.rule},
                   {"where", r.where},
                   {"tests", r.tests},
                   {"variants", r.variants},
                   {"not_possible", r.unmade},
                   {"fired", r.fired},
                   {"max_error", r.max_error},
                   {"failures", r.failures}});
  return json_text(all);
}

}  // namespace

int command_check(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("rule", po::value<std::vector<std::string>>()->composing(),
                        "check this rule only; may be repeated")(
      "seed", po::value<uint64_t>()->default_value(1), "of the random tensors")(
      "no-variants", "only the tests as they are written")("json", "the report as JSON");
  po::variables_map values;
  if (auto code = parse(arguments, options, {{"FILES...", "rule files: paths, or names in configs/rules"}},
                        "check FILES...",
                        "  regie check my_rules.toml\n  regie check conv --rule conv-batchnorm", &values))
    return *code;
  auto report_or = check(values);
  if (!report_or.ok()) return report(report_or.status());
  std::fputs((values.count("json") ? to_json(*report_or) : report_or->to_text()).c_str(), stdout);
  return report_or->passed() ? 0 : 1;
}

}  // namespace regie::cli
