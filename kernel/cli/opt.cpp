// regie opt: text in, text out.
#include <cstdio>

#include "base/file.h"
#include "cli/command.h"
#include "passes/compiler.h"

namespace regie::cli {

namespace {

Result<std::string> optimise(const po::variables_map& values) {
  REGIE_ASSIGN(auto plugins, plugin_host(values));
  CompileOptions options;
  if (values.count("target")) options.target = values["target"].as<std::string>();
  if (values.count("set"))
    for (const std::string& s : values["set"].as<std::vector<std::string>>()) {
      size_t equals = s.find('=');
      if (equals == std::string::npos) return invalid_input("--set wants pass.option=value, not '" + s + "'");
      options.settings.emplace_back(s.substr(0, equals), s.substr(equals + 1));
    }
  Pipeline pipeline;
  if (values.count("passes")) {
    REGIE_ASSIGN(pipeline, pipeline_from_list(values["passes"].as<std::string>()));
  } else {
    REGIE_ASSIGN(pipeline, load_pipeline(*plugins, values["pipeline"].as<std::string>(), options.settings));
  }
  std::string path = values["GRAPH"].as<std::string>();
  REGIE_ASSIGN(std::string text, read_text_file(path));
  if (text.find('\0') != std::string::npos || text.find("graph") == std::string::npos)
    return invalid_input("this is no graph in text form; `regie compile MODEL --dump FOLDER` writes some",
                         path);
  return optimise_text(plugins, text, path, pipeline, options);
}

}  // namespace

int command_opt(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("plugin-path", po::value<std::string>(),
                        "folders with further plug-ins, rules, operators (colon separated)")(
      "passes", po::value<std::string>(), "passes to run, comma separated")(
      "pipeline", po::value<std::string>(), "or a pipeline: a name in configs/pipelines or a path")(
      "output,o", po::value<std::string>(), "write the result here instead of standard output")(
      "target", po::value<std::string>(), "engines that passes may ask (default: host_cpu)")(
      "set", po::value<std::vector<std::string>>()->composing(),
      "an option of a pass: pass.option=value; may be repeated");
  po::variables_map values;
  if (auto code = parse(arguments, options, {{"GRAPH", "a graph in text form (.rg)"}},
                        "opt GRAPH.rg --passes a,b | --pipeline FILE",
                        "  regie opt graph.rg --passes infer-shapes,fold-constants,remove-dead\n"
                        "  regie opt graph.rg --passes apply-rules --set apply-rules.rules=conv",
                        &values))
    return *code;
  if (values.count("passes") == values.count("pipeline"))
    return report(invalid_input("give --passes or --pipeline, one of them (--help shows an example)"));
  auto text = optimise(values);
  if (!text.ok()) return report(text.status());
  if (!values.count("output")) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  Status written = write_file_atomically(values["output"].as<std::string>(), *text);
  return written.ok() ? 0 : report(written);
}

}  // namespace regie::cli
