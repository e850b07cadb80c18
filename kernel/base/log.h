// Logging of the kernel and, through the host table, of plug-ins: spdlog behind four functions, so that only
// one file includes it. Goes to standard error. Level from REGIE_LOG=debug|info|warning|error|off (default:
// warning; info in -v).
#pragma once

#include <string_view>

#include "regie/c/log.h"

namespace regie {

void log(regie_log_level level, std::string_view component, std::string_view message);
void set_log_level(regie_log_level least);
bool log_enabled(regie_log_level level);

}  // namespace regie
