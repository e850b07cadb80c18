// The two tables of this plug-in.
#pragma once

#include "regie/c/device.h"
#include "regie/c/engine.h"

namespace host_cpu {
extern const regie_engine_table engine_table;
extern const regie_device_table device_table;
}  // namespace host_cpu
