// The command line: one file a sub-command, each a function of this shape, listed in main.cpp. Exit codes: 0
// done, 1 the answer is "no" (a check failed) or Regie itself is at fault, 2 the input is wrong and the
// message says what to do.
#pragma once

#include <boost/program_options.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "regie/api/regie.h"

namespace regie {
class PluginHost;
}

namespace regie::cli {

namespace po = boost::program_options;
using Arguments = std::vector<std::string>;  // after the sub-command's name

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

int command_compile(const Arguments&);
int command_run(const Arguments&);
int command_opt(const Arguments&);
int command_check(const Arguments&);
int command_plugins(const Arguments&);
int command_inspect(const Arguments&);
int command_bench(const Arguments&);
int command_profile(const Arguments&);
int command_explain(const Arguments&);
int command_plan_memory(const Arguments&);
int command_cache(const Arguments&);
int command_shapes(const Arguments&);

// Parses `arguments`; prints help and gives an exit code if asked for or if they are wrong. `usage` is the
// line after "regie", `example` one or more commands that work. A positional name that ends in "..." takes
// all that follow; one in brackets may be left out.
std::optional<int> parse(const Arguments& arguments, const po::options_description& options,
                         const std::vector<std::pair<const char*, const char*>>& positional,
                         const char* usage, const char* example, po::variables_map* values);

// "regie: message" on standard error; the exit code for it.
int report(const Status& status);
int report_api(regie_status code);  // with regie_last_error()

// Options that compile and run share, as they are handed to the embedding API.
void add_compile_options(po::options_description* options);
std::vector<std::pair<std::string, std::string>> compile_options(const po::variables_map& values);
// Views for the API; valid while `pairs` lives.
std::vector<regie_option> api_options(const std::vector<std::pair<std::string, std::string>>& pairs);
// That of --plugin-path, where there is such an option.
Result<std::shared_ptr<PluginHost>> plugin_host(const po::variables_map& values);

}  // namespace regie::cli
