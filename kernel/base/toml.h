// Strict TOML: every key must be asked for. An unknown key is an error with file, line and the nearest known
// key. This is the only door to toml++; nobody else includes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regie {

class TomlTable;

// One value with its place. Cheap to copy; keeps the document alive.
class TomlValue {
 public:
  bool is_string() const;
  bool is_integer() const;
  bool is_number() const;  // integer or float
  bool is_bool() const;
  bool is_array() const;
  bool is_table() const;
  // INVALID_INPUT "file:line: 'key' must be a string" etc.
  Result<std::string> as_string() const;
  Result<int64_t> as_integer() const;
  Result<double> as_number() const;
  Result<bool> as_bool() const;
  Result<std::vector<TomlValue>> as_array() const;
  Result<std::vector<std::string>> as_strings() const;
  Result<TomlTable> as_table() const;
  std::string to_text()
      const;  // scalars as text, e.g. for regie_config; arrays as "[1, 2]", strings without quotes
  std::string where() const;  // "file:line"
  int line() const;

 private:
  friend class TomlTable;
  std::shared_ptr<const void> document_;
  const void* node_ = nullptr;
  std::string key_;
};

class TomlTable {
 public:
  static Result<TomlTable> parse_file(const std::string& path);
  static Result<TomlTable> parse(std::string_view text, std::string file_name);

  std::optional<TomlValue> find(std::string_view key) const;  // marks the key as known
  Result<TomlValue> require(std::string_view key) const;      // "file:line: key 'name' is missing"
  // Typed getters with default; an error if the type is wrong.
  Result<std::string> string_or(std::string_view key, std::string fallback) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<bool> bool_or(std::string_view key, bool fallback) const;
  Result<std::vector<std::string>> strings_or(std::string_view key, std::vector<std::string> fallback) const;
  // All keys in the order of the file, marked as known (for free-form tables such as parameters).
  std::vector<std::string> keys() const;
  // Error for the first key that nobody asked for, with the nearest known one. Call when done with this
  // table.
  Status finish() const;
  // `schema = N` must be there and be 1..max.
  Status check_schema(int64_t max) const;
  std::string where() const;
  const std::string& file() const;

 private:
  friend class TomlValue;
  struct Rep;
  std::shared_ptr<Rep> rep_;
};

// The candidate with the least edit distance, if it is near enough to be meant; for "did you mean".
std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace regie
