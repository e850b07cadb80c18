#include "cli/export_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace regie::cli {

namespace {

// Rows can be split at commas: a name that holds one has a semicolon there.
std::string cell(std::string text) {
  for (char& c : text) {
    if (c == ',') c = ';';
    if (c == '"') c = '\'';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

Status export_plan(const regie_model* model, const std::string& path) {
  const auto plan = nlohmann::json::parse(regie_model_plan(model));
  std::string text = "id,lower,upper,size,offset,alias,kind,space,name\n", views;
  uint64_t id = 0;
  const auto& buffers = plan.at("buffers");
  auto late = [](const nlohmann::json& b) { return b.contains("late"); };  // not in the plan
  uint64_t view = buffers.size() - static_cast<uint64_t>(std::count_if(buffers.begin(), buffers.end(), late));
  for (const auto& b : buffers) {
    if (late(b)) continue;
    const auto number = [](const nlohmann::json& from, const char* key) {
      return std::to_string(from.at(key).get<uint64_t>());
    };
    const std::string space = cell(plan.at("spaces").at(b.at("space").get<size_t>()).at("name"));
    text += std::to_string(id) + "," + number(b, "lower") + "," + number(b, "upper") + "," +
            number(b, "size") + "," + number(b, "offset") + ",," + b.at("kind").get<std::string>() + "," +
            space + "," + cell(b.at("name")) + "\n";
    if (b.contains("inside"))
      for (const auto& v : b["inside"])
        views += std::to_string(view++) + "," + number(v, "lower") + "," + number(b, "upper") + ",0," +
                 std::to_string(b.at("offset").get<uint64_t>() + v.at("offset").get<uint64_t>()) + "," +
                 std::to_string(id) + ",view," + space + "," + cell(v.at("name")) + "\n";
    ++id;
  }
  return write_file_atomically(path, text + views);
}

}  // namespace regie::cli
