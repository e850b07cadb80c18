// Strings in a model. A tensor of strings holds addresses of characters: what a file says of them must never
// let other bytes be taken for addresses. Places that hold strings hold nothing else, are written before they
// are read, and are not handed from one iteration of a loop to the next, whose kernels give their characters
// back when they run again.
#pragma once

#include "base/status.h"
#include "model/model.h"

namespace regie {

// For a model that is well-formed otherwise. UNSUPPORTED for what cannot be done; `code` for what must not
// be.
Status check_strings(const Model& model, regie_status code);

}  // namespace regie
