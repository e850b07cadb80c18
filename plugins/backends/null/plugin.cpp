// The entry of the plug-in, and its parameters in the target file.

#include <string_view>

#include "null.h"
#include "regie/plugin.hpp"

namespace null_backend {
namespace {

using regie::sdk::Failure;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, end);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

struct Number {
  std::string_view key;
  int64_t least, most;
  void (*set)(Settings&, int64_t);
};
constexpr Number kNumbers[] = {
    {"capacity_bytes", 1, INT64_MAX,
     [](Settings& s, int64_t n) { s.capacity_bytes = static_cast<uint64_t>(n); }},
    {"cost_ns", 0, INT64_MAX, [](Settings& s, int64_t n) { s.cost_ns = static_cast<double>(n); }},
    {"fail_at_launch", 0, INT64_MAX,
     [](Settings& s, int64_t n) { s.fail_at_launch = static_cast<uint64_t>(n); }},
    {"launch_delay_us", 0, 60'000'000,
     [](Settings& s, int64_t n) { s.launch_delay_ns = static_cast<uint64_t>(n) * 1000; }},
    {"queue_depth", 1, 65536, [](Settings& s, int64_t n) { s.queue_depth = static_cast<uint32_t>(n); }},
    {"streams", 1, 64, [](Settings& s, int64_t n) { s.streams = static_cast<uint32_t>(n); }},
    {"wait_timeout_ms", 1, 1'000'000'000,
     [](Settings& s, int64_t n) { s.wait_timeout_ns = static_cast<uint64_t>(n) * 1'000'000; }},
};

}  // namespace

Settings read_settings(const regie_config* params) {
  Settings settings;
  const regie::sdk::Config config(params);
  for (uint32_t i = 0; params && i < params->count; ++i) {
    const std::string_view key = regie::sdk::sv(params->settings[i].key);
    if (key == "operators") {
      settings.operators = split(regie::sdk::sv(params->settings[i].value));
      continue;
    }
    const Number* found = nullptr;
    std::string known = "operators";
    for (const Number& n : kNumbers) {
      if (n.key == key) found = &n;
      known += ", " + std::string(n.key);
    }
    if (!found)
      throw Failure(REGIE_INVALID_INPUT,
                    "null: unknown parameter '" + std::string(key) + "'; known: " + known);
    const int64_t value = config.integer(key, 0);
    if (value < found->least || value > found->most)
      throw Failure(REGIE_INVALID_INPUT, "null: parameter '" + std::string(key) + "' must be " +
                                             std::to_string(found->least) + " to " +
                                             std::to_string(found->most));
    found->set(settings, value);
  }
  return settings;
}

namespace {
const void* find(const char* id) {
  const std::string_view wanted = id;
  if (wanted == REGIE_ENGINE_ID) return &engine_table;
  if (wanted == REGIE_DEVICE_ID) return &device_table;
  return nullptr;
}
}  // namespace

}  // namespace null_backend

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, null_backend::find)
