// regie explain: why a graph became what it is.
#include <cstdio>
#include <optional>

#include "api/compile_options.h"
#include "cache/plans_compile.h"
#include "cli/command.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "explain/explanation.h"
#include "model/file.h"
#include "model/plan_set.h"

namespace regie::cli {

namespace {

std::optional<std::string> text_of(const po::variables_map& values, const char* key) {
  return values.count(key) ? std::optional(values[key].as<std::string>()) : std::nullopt;
}

// What a plan is made by; folders of plug-ins are only looked through.
bool asks_for_compile(const po::variables_map& values) {
  for (const auto& [key, value] : compile_options(values))
    if (key != "plugin-path") return true;
  return false;
}

Result<size_t> wanted_plan(const PlanSet& set, const po::variables_map& values) {
  auto plan = find_plan(set, text_of(values, "plan"));
  if (!plan.ok()) return std::move(std::move(plan).status().set_where("--plan"));
  if (!values.count("plan"))
    std::fprintf(stderr, "regie: explained is the plan for %s; --plan chooses another: %s\n",
                 set.plan_text(*plan).c_str(), plan_names(set).c_str());
  return plan;
}

// `set`: the plans of the model file that is compiled again, if it has several.
Result<std::shared_ptr<const Model>> compile_now(const std::string& path, const po::variables_map& values,
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
  return compiled.model;
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
  std::shared_ptr<const Model> model, imported;  // the graph as it was imported is in the latter
  if (offline) {
    REGIE_ASSIGN(const std::shared_ptr<const PlanSet> set, load_plan_set(path));
    if (!set && values.count("plan")) return invalid_input("the model has one plan; leave it out", "--plan");
    if (asks_for_compile(values)) {
      REGIE_ASSIGN(model, compile_now(path, values, set.get()));
      std::fprintf(stderr, "regie: compiled again from the portable graph in %s\n", path.c_str());
    } else if (set) {
      REGIE_ASSIGN(const size_t plan, wanted_plan(*set, values));
      model = set->plan(plan);
      imported = set->ports;
    } else {
      REGIE_ASSIGN(model, load_model(path));
    }
  } else {
    if (values.count("plan"))
      return invalid_input("a framework's model has no plans yet; fix the sizes of one with --shape",
                           "--plan");
    REGIE_ASSIGN(model, compile_now(path, values));
  }
  return look_back(path, model, (imported ? imported : model)->portable_graph);
}

Result<std::string> answer(const po::variables_map& values) {
  REGIE_ASSIGN(const Compilation c, look_at(values["MODEL"].as<std::string>(), values));
  return regie::answer(c, {text_of(values, "NODE"), text_of(values, "rule"), values.count("all") != 0,
                           values.count("json") != 0});
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
