#include "settings.h"

#include <cmath>
#include <cstdlib>

#include "regie/plugin.hpp"

namespace host_cpu {
namespace {

using regie::sdk::Failure;

double positive(std::string_view key, std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end || !std::isfinite(value) || value <= 0)
    throw Failure(REGIE_INVALID_INPUT, "host_cpu: parameter '" + std::string(key) +
                                           "' must be a positive number, not '" + copy + "'");
  return value;
}

std::optional<Layout> layout(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "plain") return Layout::kPlain;
  if (text == "own") return Layout::kOwn;
  throw Failure(REGIE_INVALID_INPUT,
                "host_cpu: parameter 'layout' must be auto, plain or own, not '" + std::string(text) + "'");
}

Winograd winograd(std::string_view text) {
  if (text == "auto") return Winograd::kInLittleRoom;
  if (text == "always") return Winograd::kAlways;
  if (text == "off") return Winograd::kOff;
  throw Failure(REGIE_INVALID_INPUT, "host_cpu: parameter 'winograd' must be auto, always or off, not '" +
                                         std::string(text) + "'");
}

Convolutions convolutions(std::string_view text) {
  if (text == "ahead") return Convolutions::kAhead;
  if (text == "generated") return Convolutions::kGenerated;
  throw Failure(REGIE_INVALID_INPUT, "host_cpu: parameter 'convolutions' must be ahead or generated, not '" +
                                         std::string(text) + "'");
}

struct Key {
  std::string_view name;
  void (*set)(Settings&, std::string_view name, std::string_view text);
};
constexpr Key kKeys[] = {
    {"bytes_per_ns",
     [](Settings& s, std::string_view k, std::string_view v) { s.bytes_per_ns = positive(k, v); }},
    {"convolutions",
     [](Settings& s, std::string_view, std::string_view v) { s.convolutions = convolutions(v); }},
    {"flops_per_ns",
     [](Settings& s, std::string_view k, std::string_view v) { s.flops_per_ns = positive(k, v); }},
    {"layout", [](Settings& s, std::string_view, std::string_view v) { s.layout = layout(v); }},
    {"overhead_ns",
     [](Settings& s, std::string_view k, std::string_view v) { s.overhead_ns = positive(k, v); }},
    {"reference_flops_per_ns",
     [](Settings& s, std::string_view k, std::string_view v) { s.reference_flops_per_ns = positive(k, v); }},
    {"streams",
     [](Settings& s, std::string_view k, std::string_view v) {
       const double number = positive(k, v);
       if (number != std::floor(number) || number > 1024)
         throw Failure(REGIE_INVALID_INPUT,
                       "host_cpu: parameter 'streams' must be a whole number from 1 to 1024");
       s.streams = static_cast<uint32_t>(number);
     }},
    {"wait_timeout_ms",
     [](Settings& s, std::string_view k, std::string_view v) {
       s.wait_timeout_ns = static_cast<uint64_t>(std::fmin(positive(k, v), 1e12) * 1e6);
     }},
    {"winograd", [](Settings& s, std::string_view, std::string_view v) { s.winograd = winograd(v); }},
};

}  // namespace

Settings read_settings(const regie_config* params) {
  Settings settings;
  for (uint32_t i = 0; params && i < params->count; ++i) {
    const std::string_view name = regie::sdk::sv(params->settings[i].key);
    const Key* found = nullptr;
    std::string known;
    for (const Key& k : kKeys) {
      if (k.name == name) found = &k;
      known += (known.empty() ? "" : ", ") + std::string(k.name);
    }
    if (!found)
      throw Failure(REGIE_INVALID_INPUT,
                    "host_cpu: unknown parameter '" + std::string(name) + "'; known: " + known);
    found->set(settings, name, regie::sdk::sv(params->settings[i].value));
  }
  return settings;
}

}  // namespace host_cpu
