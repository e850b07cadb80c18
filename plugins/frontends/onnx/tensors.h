// Tensors of the file as dense data: raw bytes and external files are pointed to, typed fields and sparse
// tensors are decoded. Every length is checked against type and dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "context.h"
#include "reader.h"

namespace regie::onnx {

struct TensorData {
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  std::vector<int64_t> dims;
  const void* data = nullptr;  // into the file, an external file, `words` or `strings`
  uint64_t bytes = 0;
  std::vector<uint64_t> words;     // decoded elements
  std::vector<regie_str> strings;  // their bytes belong to the wire message

  // Room for `size` bytes in `words`; data and bytes are set.
  void* allocate(uint64_t size);
  regie_tensor view() const;
};

// ONNX's number of an element type as ours; UNSUPPORTED for one that the canonical operators do not have.
regie_elem element_type(const Context& context, int32_t number);
std::string_view element_name(regie_elem elem);
// "f32[16,3,3,3]"
std::string shape_text(regie_elem elem, const std::vector<int64_t>& dims);

// `what` names the tensor in messages: "initializer 'w'".
TensorData read_tensor(const Context& context, const wire::Tensor& tensor, const std::string& what);
TensorData read_sparse(Context& context, const wire::SparseTensor& tensor, const std::string& what);

TensorData integer(int64_t value);                        // i64[]
TensorData integers(const std::vector<int64_t>& values);  // i64[n]
TensorData floats(const std::vector<double>& values);     // f32[n]
// Element `at`, below the tensor's count, of a tensor of f32, f64, i32 or i64, cut to a whole number; nothing
// if it is of another type or beyond any size.
std::optional<int64_t> whole_at(const regie_tensor& tensor, int64_t at);
// A scalar of a floating-point or integer type; false if `elem` is neither.
bool scalar(regie_elem elem, double value, TensorData* out);

}  // namespace regie::onnx
