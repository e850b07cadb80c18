// The memory plan of a model as a table, for programs that check or draw it (docs/memory-plan.md).
#pragma once

#include <string>

#include "base/status.h"
#include "regie/api/regie.h"

namespace regie::cli {

Status export_plan(const regie_model* model, const std::string& path);

}  // namespace regie::cli
