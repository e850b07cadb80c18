// What the plug-in's entry gives out.
#pragma once

#include "regie/c/device_trace.h"

namespace regie::simulator {

extern const regie_device_table device_table;
extern const regie_device_trace_table trace_table;

}  // namespace regie::simulator
