// Arrays of tables ([[pass]], [[device]] ...): the loop that every configuration reader needs.
#pragma once

#include <string_view>

#include "base/toml.h"

namespace regie {

// Calls read(table) -> Status for each [[key]] of `doc`, and that table's finish(); an absent key is an empty
// list.
template <class F>
Status for_each_table(const TomlTable& doc, std::string_view key, F&& read) {
  auto list = doc.find(key);
  if (!list) return {};
  REGIE_ASSIGN(auto items, list->as_array());
  for (const TomlValue& item : items) {
    REGIE_ASSIGN(TomlTable t, item.as_table());
    REGIE_TRY(read(t));
    REGIE_TRY(t.finish());
  }
  return {};
}

inline Result<std::string> require_string(const TomlTable& t, std::string_view key) {
  REGIE_ASSIGN(TomlValue v, t.require(key));
  return v.as_string();
}

}  // namespace regie
