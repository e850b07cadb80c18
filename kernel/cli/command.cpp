#include "cli/command.h"

#include <cstdio>
#include <iostream>

#include "api/objects.h"

namespace regie::cli {

namespace {
// "FILES" of "FILES...", "NODE" of "[NODE]".
std::string plain(std::string_view name) {
  if (name.ends_with("...")) name.remove_suffix(3);
  if (name.starts_with("[")) name = name.substr(1, name.size() - 2);
  return std::string(name);
}
}  // namespace

std::optional<int> parse(const Arguments& arguments, const po::options_description& options,
                         const std::vector<std::pair<const char*, const char*>>& positional,
                         const char* usage, const char* example, po::variables_map* values) {
  po::options_description visible = options, all;
  visible.add_options()("help,h", "show this help");
  all.add(visible);
  po::options_description hidden;
  po::positional_options_description places;
  for (auto [name, doc] : positional) {
    const std::string key = plain(name);
    const bool many = std::string_view(name).ends_with("...");
    if (many)
      hidden.add_options()(key.c_str(), po::value<std::vector<std::string>>(), doc);
    else
      hidden.add_options()(key.c_str(), po::value<std::string>(), doc);
    places.add(key.c_str(), many ? -1 : 1);
  }
  all.add(hidden);
  auto help = [&](std::ostream& out) {
    out << "Usage: regie " << usage << "\n\n";
    for (auto [name, doc] : positional) out << "  " << name << "  " << doc << "\n";
    out << "\n" << visible << "\nExample:\n" << example << "\n";
  };
  try {
    po::store(po::command_line_parser(arguments).options(all).positional(places).run(), *values);
    if (values->count("help")) {
      help(std::cout);
      return 0;
    }
    po::notify(*values);
  } catch (const po::error& e) {
    std::fprintf(stderr, "regie: %s\nregie: usage: regie %s (--help says more)\n", e.what(), usage);
    return 2;
  }
  for (auto [name, doc] : positional) {
    const std::string key = plain(name);
    if (values->count(key) || name[0] == '[') continue;
    std::fprintf(stderr, "regie: %s is missing\nregie: usage: regie %s (--help says more)\n", key.c_str(),
                 usage);
    return 2;
  }
  return std::nullopt;
}

namespace {
int exit_code(regie_status code) {
  return code == REGIE_OK                                                          ? 0
         : code == REGIE_INTERNAL || code == REGIE_DEVICE || code == REGIE_TIMEOUT ? 1
                                                                                   : 2;
}
}  // namespace

int report(const Status& status) {
  std::fprintf(stderr, "regie: %s\n", status.to_string().c_str());
  return exit_code(status.code());
}

int report_api(regie_status code) {
  std::fprintf(stderr, "regie: %s\n", regie_last_error());
  return exit_code(code);
}

void add_compile_options(po::options_description* options) {
  using Strings = std::vector<std::string>;
  options->add_options()("target", po::value<std::string>(),
                         "what to compile for: a name in configs/targets or a path (default: host_cpu)")(
      "pipeline", po::value<std::string>(),
      "passes to run: a name in configs/pipelines or a path (default: default)")(
      "shape", po::value<Strings>()->composing(),
      "fix an input's dimensions, e.g. x=16,1,8,8; may be repeated")(
      "typical", po::value<Strings>()->composing(),
      "sizes that open axes of an input usually have, e.g. x=16,?,224,224: what is planned for; other sizes "
      "run too; may be repeated")(
      "fold-defaults",
      "inputs that the model has a value for are constants: faster, but a run cannot give them any more")(
      "shapes", po::value<std::string>(),
      "dynamic (the default): kernels made ready for each shape as it comes; buckets:x.0=1|4|16,x.2=320|640: "
      "a "
      "plan for each combination of these sizes of axes 0 and 2 of input x, which requests are padded up to; "
      "max:x.0=16: one")(
      "padding", po::value<std::string>(),
      "with --shapes buckets or max: allow (default; refused at compile time where an operator "
      "would mix it with what is real), refuse (a request has one of the sizes), force")(
      "overflow", po::value<std::string>(),
      "what becomes of a request above the largest size: error (default), dynamic, or resize (images)")(
      "set", po::value<Strings>()->composing(),
      "an option of a pass, e.g. fold-constants.budget-bytes=4096, or a parameter of the target's engine, "
      "e.g. "
      "aicore.operands=f16; may be repeated")("threads", po::value<std::string>(),
                                              "threads that kernels may use (default: 1)")(
      "memory-limit", po::value<std::string>(),
      "most bytes that the arenas of all memory spaces may take together, such as 64MiB, 64MB or 1g (K, M, "
      "G, T "
      "and KiB, ... count by 1024, KB, ... by 1000, in any case): cheap values are computed again where that "
      "needs it")("dump", po::value<std::string>(), "write the graph after each stage into this folder")(
      "no-optimise", "only what is needed to run: no fusion, no folding, no reuse of memory by aliasing")(
      "no-verify", "skip the checks of graph and plan after each stage")(
      "plugin-path", po::value<std::string>(),
      "folders with further plug-ins, rules, operators (colon separated)")(
      "cache", po::value<std::string>(),
      "off, read or on: whether what was compiled before serves again (default: REGIE_CACHE, else on if a "
      "folder is named here or by REGIE_CACHE_DIR, else off)")(
      "cache-dir", po::value<std::string>(),
      "folder of the cache (default: REGIE_CACHE_DIR, else regie in XDG_CACHE_HOME or ~/.cache)")(
      "cache-size", po::value<std::string>(), "most bytes of it, such as 500M, 500MB or 2GiB (default: 4G)");
}

std::vector<std::pair<std::string, std::string>> compile_options(const po::variables_map& values) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const char* key : {"target", "pipeline", "threads", "dump", "plugin-path", "cache", "cache-dir",
                          "cache-size", "shapes", "padding", "overflow", "memory-limit"})
    if (values.count(key)) pairs.emplace_back(key, values[key].as<std::string>());
  for (const char* key : {"shape", "typical", "set"})
    if (values.count(key))
      for (const std::string& v : values[key].as<std::vector<std::string>>()) pairs.emplace_back(key, v);
  if (values.count("no-optimise")) pairs.emplace_back("optimise", "0");
  if (values.count("no-verify")) pairs.emplace_back("verify", "0");
  if (values.count("fold-defaults")) pairs.emplace_back("fold-defaults", "1");
  return pairs;
}

std::vector<regie_option> api_options(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<regie_option> options;
  for (const auto& [k, v] : pairs) options.push_back({k.c_str(), v.c_str()});
  return options;
}

Result<std::shared_ptr<PluginHost>> plugin_host(const po::variables_map& values) {
  return api_plugin_host(values.count("plugin-path") ? values["plugin-path"].as<std::string>() : "");
}

}  // namespace regie::cli
