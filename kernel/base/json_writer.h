// Writes JSON straight into a string: for reports with tens of thousands of entries, where a tree of values
// would cost more than what it says. What begins a line is up to the caller; the rest is compact.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace regie {

class JsonWriter {
 public:
  // Objects and arrays; `lines`: each member on a line of its own.
  JsonWriter& open_object(bool lines = false) { return open('{', lines); }
  JsonWriter& open_array(bool lines = false) { return open('[', lines); }
  JsonWriter& close();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool yes);
  JsonWriter& value(double number);  // not finite: null
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T number) {
    before();
    out_ += std::to_string(number);
    return *this;
  }
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }
  template <class List>
  JsonWriter& strings(std::string_view name, const List& list) {
    key(name).open_array();
    for (const auto& text : list) value(std::string_view(text));
    return close();
  }
  std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char bracket, bool lines);
  void before();  // comma, line
  void quoted(std::string_view text);
  std::string out_;
  std::string
      open_;  // a letter a level: object or array, upper case if its members are on lines of their own
  bool first_ = true, keyed_ = false;
};

}  // namespace regie
