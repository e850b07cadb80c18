// regie explain: why a graph became what it is.
#include <cstdio>

#include "api/compile_options.h"
#include "cache/plans_compile.h"
#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/json.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "model/check.h"
#include "model/file.h"
#include "model/plan_set.h"
#include "text/text.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;

// What a plan is made by; folders of plug-ins are only looked through.
bool asks_for_compile(const po::variables_map& values) {
  for (const auto& [key, value] : compile_options(values))
    if (key != "plugin-path") return true;
  return false;
}

Result<size_t> wanted_plan(const PlanSet& set, const po::variables_map& values) {
  std::string known;
  for (size_t p = 0; p < set.plan_count(); ++p) known += (p ? "; " : "") + set.plan_text(p);
  if (values.count("plan")) {
    const std::string wanted = values["plan"].as<std::string>();
    for (size_t p = 0; p < set.plan_count(); ++p)
      if (wanted == set.plan_text(p)) return p;
    return invalid_input("there is no plan for '" + wanted + "'; there are: " + known, "--plan");
  }
  const size_t greatest = set.plans.size() - 1;
  std::fprintf(stderr, "regie: explained is the plan for %s; --plan chooses another: %s\n",
               set.plan_text(greatest).c_str(), known.c_str());
  return greatest;
}

// `set`: the plans of the model file that is compiled again, if it has several.
Result<Compilation> compile_now(const std::string& path, const po::variables_map& values,
                                const PlanSet* set = nullptr) {
  const auto pairs = compile_options(values);
  const auto list = api_options(pairs);
  REGIE_ASSIGN(ApiCompile given, read_api_compile(list.data(), list.size()));
  if (given.shapes.mode == ShapeSpec::kBuckets)
    return invalid_input(
        "this makes a plan for each combination of sizes, and one compile is explained; fix the "
        "sizes of one with --shape",
        "--shapes");
  CompileRequest request{given.plugins, path, {}, given.options};
  if (set && !given.sizes_said) {
    REGIE_ASSIGN(const size_t plan, wanted_plan(*set, values));
    REGIE_ASSIGN(const auto all, plan_requests(request, set->spec));
    request = all[plan].second;
  } else if (values.count("plan")) {
    return invalid_input("the sizes are said by other options already; leave it out", "--plan");
  }
  request.options.explain = true;
  const ShowProgress progress;
  REGIE_ASSIGN(Compiled compiled, compile(request.plugins, path, {}, request.options));
  Compilation c;
  c.model = std::move(compiled.model);
  c.ledger = Json::parse(compiled.report);
  return c;
}

// From a compile with these options, or from what a model file has kept of its own.
Result<Compilation> look_at(const std::string& path, const po::variables_map& values) {
  for (const char* key : {"cache", "cache-dir", "cache-size"})
    if (values.count(key))
      return invalid_input(
          "what is explained is in the model file or comes from a compile of its own, never from "
          "the cache; leave it out",
          std::string("--") + key);
  REGIE_ASSIGN(const bool offline, is_offline_model(path));
  Compilation c;
  std::string portable;
  if (offline) {
    REGIE_ASSIGN(const std::shared_ptr<const PlanSet> set, load_plan_set(path));
    if (!set && values.count("plan")) return invalid_input("the model has one plan; leave it out", "--plan");
    if (asks_for_compile(values)) {
      REGIE_ASSIGN(c, compile_now(path, values, set.get()));
      std::fprintf(stderr, "regie: compiled again from the portable graph in %s\n", path.c_str());
    } else {
      if (set) {
        REGIE_ASSIGN(const size_t plan, wanted_plan(*set, values));
        c.model = set->plan(plan);
        portable = set->ports->portable_graph;
      } else {
        REGIE_ASSIGN(c.model, load_model(path));
      }
      c.ledger = Json::parse(c.model->ledger_json, nullptr, false);
      if (c.ledger.is_discarded() || !c.ledger.is_object() || !c.ledger.contains("operators_before"))
        return Status::error(REGIE_CORRUPT, "its ledger cannot be read; compile the model again", path);
      c.complete = false;
    }
  } else {
    if (values.count("plan"))
      return invalid_input("a framework's model has no plans yet; fix the sizes of one with --shape",
                           "--plan");
    REGIE_ASSIGN(c, compile_now(path, values));
  }
  c.path = path;
  regie::ParseOptions parse_options;
  parse_options.max_depth = regie::kMaxProgramDepth;
  if (portable.empty()) portable = c.model->portable_graph;
  REGIE_ASSIGN(c.imported, regie::parse(portable, path + " (portable graph)", parse_options));
  return c;
}

Result<std::string> answer(const po::variables_map& values) {
  const std::string path = values["MODEL"].as<std::string>();
  REGIE_ASSIGN(const Compilation c, look_at(path, values));
  Json json;
  std::string (*text)(const Json&, bool) = explain_all_text;
  try {
    if (values.count("NODE")) {
      REGIE_ASSIGN(json, explain_node(c, values["NODE"].as<std::string>()));
      text = explain_node_text;
    } else if (values.count("rule")) {
      REGIE_ASSIGN(json, explain_rule(c, values["rule"].as<std::string>()));
      text = explain_rule_text;
    } else {
      json = explain_all(c);
    }
    if (values.count("json")) return json_text(json);
    return text(json, values.count("all") != 0);
  } catch (const Json::exception& e) {  // a file may hold any ledger
    return Status::error(REGIE_CORRUPT,
                         std::string("its ledger is not as this version writes it: ") + e.what(), path);
  }
}

}  // namespace

int command_explain(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("rule", po::value<std::string>(),
                        "explain one rule: where it was applied, where it stopped")(
      "plan", po::value<std::string>(),
      "of a model file with several plans the one to explain, such as 'x.0=4' (default: of the greatest "
      "sizes)")("all", "every rule that was tried and every reason, not only those that got furthest")(
      "json", "print one JSON object instead of text");
  add_compile_options(&options);
  po::variables_map values;
  if (auto code = parse(arguments, options,
                        {{"MODEL",
                          "a framework's model, which is compiled to see, or an offline model (.rgm), whose "
                          "ledger is read; with options of `regie compile` it is compiled again"},
                         {"[NODE]", "the name of a node, an output or a tensor in the framework's model"}},
                        "explain MODEL [NODE | --rule NAME] [options]",
                        "  regie explain model.onnx\n  regie explain model.rgm stem.norm\n"
                        "  regie explain model.onnx --rule conv-activation",
                        &values))
    return *code;
  if (values.count("NODE") && values.count("rule"))
    return report(invalid_input("give a node or --rule, one of them (--help shows an example)"));
  auto text = answer(values);
  if (!text.ok()) return report(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace regie::cli
