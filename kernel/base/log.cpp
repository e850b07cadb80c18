#include "base/log.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace regie {

namespace {

spdlog::level::level_enum level_of(regie_log_level level) {
  switch (level) {
    case REGIE_LOG_DEBUG:
      return spdlog::level::debug;
    case REGIE_LOG_INFO:
      return spdlog::level::info;
    case REGIE_LOG_WARNING:
      return spdlog::level::warn;
    default:
      return level < REGIE_LOG_DEBUG ? spdlog::level::debug : spdlog::level::err;
  }
}

// Never destroyed: plug-ins may log until the very end of the process.
spdlog::logger& logger() {
  static spdlog::logger* instance = [] {
    auto* l = new spdlog::logger("regie", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    l->set_pattern("regie %l: %v");
    l->set_level(spdlog::level::warn);
    if (const char* wanted = std::getenv("REGIE_LOG"); wanted && *wanted) {
      const std::string_view name = wanted;
      if (name == "debug")
        l->set_level(spdlog::level::debug);
      else if (name == "info")
        l->set_level(spdlog::level::info);
      else if (name == "error")
        l->set_level(spdlog::level::err);
      else if (name == "off")
        l->set_level(spdlog::level::off);
      else if (name != "warning")
        l->warn("log: REGIE_LOG is '{}'; use debug, info, warning, error or off", name);
    }
    return l;
  }();
  return *instance;
}

}  // namespace

void log(regie_log_level level, std::string_view component, std::string_view message) {
  logger().log(level_of(level), "{}: {}", component, message);
}

void set_log_level(regie_log_level least) { logger().set_level(level_of(least)); }

bool log_enabled(regie_log_level level) { return logger().should_log(level_of(level)); }

}  // namespace regie
