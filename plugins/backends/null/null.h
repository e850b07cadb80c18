// What the three files of this plug-in share: its parameters, its kernel format, its tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regie/c/device.h"
#include "regie/c/engine.h"

namespace null_backend {

// A blob of this format is one operator with its attributes (regie/op_blob.hpp).
constexpr char kFormat[] = "null.reference/1";
// A launch carries at most this many addresses, so that a queue entry has a fixed size.
constexpr uint32_t kMaxArguments = 64;

struct Settings {
  std::vector<std::string> operators;  // that the engine says yes to
  double cost_ns = 500;                // what it says a node costs
  uint64_t capacity_bytes = uint64_t{1} << 30;
  uint32_t streams = 8, queue_depth = 256;
  uint64_t wait_timeout_ns = 30'000'000'000;
  uint64_t launch_delay_ns = 0;  // for tests of timeouts: added to each launch
  uint64_t fail_at_launch = 0;   // for tests of failures: the n-th launch of the device fails; 0: none
};
// Strict: throws Failure(INVALID_INPUT) for a key that it does not know. The engine gets its device's keys as
// well.
Settings read_settings(const regie_config* params);

extern const regie_engine_table engine_table;
extern const regie_device_table device_table;

}  // namespace null_backend
