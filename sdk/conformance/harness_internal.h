// What the files of the harness share.
#pragma once

#include "harness.h"

namespace regie::conformance {

// Throws std::runtime_error with `what` and the words of the thread's last failure.
[[noreturn]] void raise(const std::string& what);
void must(regie_status code, const std::string& what);
regie_tensor view(const TensorData& t, bool with_data);

}  // namespace regie::conformance
