#include "settings.h"

namespace regie::simulator {

namespace {

using sdk::Failure;

bool choice(std::string_view key, std::string_view text, std::string_view no, std::string_view yes) {
  if (text == yes) return true;
  if (text == no) return false;
  throw Failure(REGIE_INVALID_INPUT, "simulator: parameter '" + std::string(key) + "' must be " +
                                         std::string(no) + " or " + std::string(yes) + ", not '" +
                                         std::string(text) + "'");
}

}  // namespace

Settings read_settings(const regie_config* params) {
  Settings s;
  const sdk::Config config(params);
  s.hardware =
      sdk::read_accelerator("simulator", params, {}, [&](std::string_view key, std::string_view text) {
        if (key == "mode") {
          s.sink = choice(key, text, "issue", "sink");
        } else if (key == "numerics") {
          s.numerics = choice(key, text, "off", "on");
        } else if (key == "wait_timeout_ms") {
          const int64_t ms = config.integer(key, 0);
          if (ms < 1 || ms > 1'000'000'000)
            throw Failure(REGIE_INVALID_INPUT,
                          "simulator: parameter 'wait_timeout_ms' must be 1 to 1000000000");
          s.wait_timeout_ns = static_cast<uint64_t>(ms) * 1'000'000;
        } else {
          return false;
        }
        return true;
      });
  return s;
}

}  // namespace regie::simulator
