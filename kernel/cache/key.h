// What a compiled model depends on, part by part: the model's bytes, each option, each file and library that
// took part. Two compiles with equal keys give equal models; the parts, kept beside each entry of the cache,
// say which one differs where there is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regie {

struct KeyPart {
  std::string kind;   // "option", "rules", "plug-in" ...: see the table in key.cpp
  std::string name;   // "threads", "conv.toml", "host_cpu"; may be empty
  std::string value;  // "2"; or a digest where the thing itself is too long
  bool operator==(const KeyPart&) const = default;
};

class CacheKey {
 public:
  void add(std::string kind, std::string name, std::string value);
  const std::vector<KeyPart>& parts() const { return parts_; }
  // The value of the first part of that kind and name; empty if there is none.
  std::string_view find(std::string_view kind, std::string_view name) const;
  std::string digest() const;  // 32 digits, over all parts in their order
  bool operator==(const CacheKey&) const = default;

 private:
  std::vector<KeyPart> parts_;
};

// A sentence for each part that differs: "the option threads: 1 here, 2 there", "rule file conv.toml: other
// text". In the order of `here`'s parts, then what only `there` has.
std::vector<std::string> differences(const CacheKey& here, const CacheKey& there);

// One line a field, tabs between: the form of all small files of the cache. Control characters and
// backslashes are escaped.
std::string to_line(const std::vector<std::string>& fields);
std::vector<std::vector<std::string>> read_lines(std::string_view text);
// The lines with their checksum as a last one; and those before it, nothing if it is not theirs.
std::string with_checksum(std::string lines);
std::optional<std::vector<std::vector<std::string>>> checked_lines(std::string_view text);

}  // namespace regie
