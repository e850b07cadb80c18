// JSON as the commands and the embedding API print it: indented. Bytes that are no UTF-8 are replaced, as
// names of files and models may hold any.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace regie {

inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace regie
