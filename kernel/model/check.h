// The structural check of a model with a choice of failure code: CORRUPT for one that came from a file,
// INTERNAL for one that a compile made.
#pragma once

#include "base/status.h"
#include "model/model.h"

namespace regie {

inline constexpr uint32_t kMaxProgramDepth = 128;  // of control flow: the executor descends into it
inline constexpr uint32_t kMaxStreams = 4096;      // a device
inline constexpr uint32_t kMaxAlignment = 1u << 20;

Status check_model_as(const Model& model, regie_status code);

}  // namespace regie
