// Builds the graph through the host: model in, calls of regie_import and regie_edit_api out.
#pragma once

#include "regie/c/frontend.h"

namespace regie::onnx {

regie_status import_model(const regie_import* import);

}  // namespace regie::onnx
