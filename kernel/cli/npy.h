// NumPy's .npy files: the inputs and outputs of `regie run`.
#pragma once

#include <string>
#include <vector>

#include "base/elem.h"
#include "base/file.h"
#include "base/status.h"

namespace regie::cli {

// Little endian, format 1 to 3, of either order: the tensor is in C order. Types that numpy has: f16 f32 f64,
// integers, bool.
Result<Tensor> read_npy(const std::string& path);
// bf16 is widened to f32; other types that numpy lacks are UNSUPPORTED.
Status write_npy(const std::string& path, const regie_tensor& tensor);
Result<PendingFile> pending_npy(const std::string& path, const regie_tensor& tensor);

}  // namespace regie::cli
