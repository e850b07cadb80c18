#include "cli/shape_trace.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"

namespace regie::cli {

Result<std::vector<RequestShape>> read_shape_trace(const std::string& path) {
  REGIE_ASSIGN(const std::string text, read_text_file(path));
  std::vector<RequestShape> out;
  std::istringstream lines(text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto wrong = [&](const std::string& why) {
      return invalid_input(why + "; a line is like {\"x\":[1,3,320,320]}",
                           path + ":" + std::to_string(number));
    };
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return wrong("this is no JSON object");
    RequestShape& shape = out.emplace_back();
    for (const auto& [name, dims] : json.items()) {
      if (!dims.is_array()) return wrong("'" + name + "' has no list of dimensions");
      std::vector<int64_t>& to = shape[name];
      for (const auto& d : dims) {
        if (!d.is_number_integer() || d.get<int64_t>() < 0)
          return wrong("a dimension of '" + name + "' is no number from 0");
        to.push_back(d.get<int64_t>());
      }
    }
    if (out.size() > 1 && shape.size() != out.front().size())
      return wrong("it has other inputs than the lines before");
    for (const auto& [name, dims] : shape) {
      const auto first = out.front().find(name);
      if (first == out.front().end())
        return wrong("it has other inputs than the lines before: '" + name + "'");
      if (first->second.size() != dims.size())
        return wrong("'" + name + "' has another rank than in the first line");
    }
  }
  if (out.empty()) return invalid_input("there is no shape in it", path);
  return out;
}

std::string to_text(const RequestShape& shape) {
  std::string text;
  for (const auto& [name, dims] : shape) {
    text += (text.empty() ? "" : " ") + name + "=";
    for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  }
  return text;
}

}  // namespace regie::cli
