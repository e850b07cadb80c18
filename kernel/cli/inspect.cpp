#include <cstdio>

#include "cli/command.h"
#include "model/file.h"

namespace regie::cli {

int command_inspect(const Arguments& arguments) {
  po::variables_map values;
  if (auto code = parse(arguments, po::options_description("Options"), {{"MODEL", "an offline model (.rgm)"}},
                        "inspect MODEL.rgm", "  regie inspect model.rgm", &values))
    return *code;
  auto text = inspect_model(values["MODEL"].as<std::string>());
  if (!text.ok()) return report(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace regie::cli
