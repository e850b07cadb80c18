// What the command line of the suite says, for its tests.
#pragma once

#include "harness.h"

namespace regie::conformance {

struct Suite {
  const Library* library = nullptr;
  uint32_t device = 0, engine = 0;  // indices into the library's tables
  Settings device_settings, engine_settings;
};
const Suite& suite();

}  // namespace regie::conformance
