// The table of the plug-in.
#pragma once

#include "regie/c/engine.h"

namespace aicore {
extern const regie_engine_table engine_table;
}  // namespace aicore
