// regie explain: why a graph became what it is.
#include <cstdio>

#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "model/check.h"
#include "model/file.h"
#include "passes/compiler.h"
#include "text/text.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;

CompileOptions options_of(const po::variables_map& values) {
  CompileOptions o;
  const auto text = [&](const char* key) {
    return values.count(key) ? values[key].as<std::string>() : std::string();
  };
  if (values.count("target")) o.target = text("target");
  o.pipeline = text("pipeline");
  o.dump = text("dump");
  o.optimise = !values.count("no-optimise");
  o.verify = !values.count("no-verify");
  o.explain = true;
  return o;
}

Result<Compilation> compile_now(const std::string& path, const po::variables_map& values) {
  CompileOptions o = options_of(values);
  if (!o.optimise && !o.pipeline.empty())
    return invalid_input(
        "give a pipeline or switch optimisation off, not both: the pipeline says what is run");
  REGIE_ASSIGN(o.threads, threads_of(values));
  for (const auto& [key, value] : compile_options(values)) {
    if (key == "shape") o.import_options.emplace_back(key, value);
    if (key != "set") continue;
    const size_t equals = value.find('=');
    if (equals == std::string::npos)
      return invalid_input("--set wants pass.option=value, not '" + value + "'");
    o.settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  }
  std::vector<std::string> folders;
  if (values.count("plugin-path")) folders = split_path(values["plugin-path"].as<std::string>());
  REGIE_ASSIGN(auto plugins, PluginHost::create(folders));
  set_current_plugin_host(plugins);
  const ShowProgress progress;
  REGIE_ASSIGN(Compiled compiled, compile(plugins, path, {}, o));
  Compilation c;
  c.model = std::move(compiled.model);
  c.ledger = Json::parse(compiled.report);
  return c;
}

// From a compile with these options, or from what a model file has kept of its own.
Result<Compilation> look_at(const std::string& path, const po::variables_map& values) {
  REGIE_ASSIGN(const bool offline, is_offline_model(path));
  Compilation c;
  if (offline) {
    REGIE_ASSIGN(c.model, load_model(path));
    c.ledger = Json::parse(c.model->ledger_json, nullptr, false);
    if (c.ledger.is_discarded() || !c.ledger.is_object() || !c.ledger.contains("operators_before"))
      return Status::error(REGIE_CORRUPT, "its ledger cannot be read; compile the model again", path);
    c.complete = false;
  } else {
    REGIE_ASSIGN(c, compile_now(path, values));
  }
  c.path = path;
  regie::ParseOptions parse_options;
  parse_options.max_depth = regie::kMaxProgramDepth;
  auto imported = regie::parse(c.model->portable_graph, path + " (portable graph)", parse_options);
  if (!imported.ok()) return std::move(imported).status();
  c.imported = std::move(imported).value();
  return c;
}

Result<std::string> answer(const po::variables_map& values) {
  const std::string path = values["MODEL"].as<std::string>();
  REGIE_ASSIGN(const Compilation c, look_at(path, values));
  Json json;
  std::string (*text)(const Json&) = explain_all_text;
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
    if (values.count("json")) return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return text(json);
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
      "json", "print one JSON object instead of text");
  add_compile_options(&options);
  po::variables_map values;
  if (auto code = parse(arguments, options,
                        {{"MODEL",
                          "a framework's model, which is compiled to see, or an offline model (.rgm), whose "
                          "ledger is read"},
                         {"[NODE]", "the name of a node, an output or a tensor in the framework's model"}},
                        "explain MODEL [NODE | --rule NAME] [options]",
                        "  regie explain model.onnx\n  regie explain model.rgm stem.norm\n"
                        "  regie explain model.onnx --rule conv-activation",
                        &values))
    return *code;
  if (values.count("NODE") && values.count("rule"))
    return report(invalid_input("give a node or --rule, one of them (--help shows an example)"));
  expect_many_small_objects();
  auto text = answer(values);
  if (!text.ok()) return report(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace regie::cli
