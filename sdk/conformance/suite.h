// What the command line of the suite says, for its tests.
#pragma once

#include "harness.h"

namespace regie::conformance {

struct Suite {
  const Library* library = nullptr;         // of the device
  const Library* engine_library = nullptr;  // the same, or another one that compiles for the device
  uint32_t device = 0, engine = 0;          // indices into the libraries' tables
  Settings device_settings, engine_settings;
};
const Suite& suite();

}  // namespace regie::conformance
