// What the files that describe operators to oneDNN share (operation.h): the request, and how tensors, numbers
// and activations are read from it. Each throws UNSUPPORTED with the reason where oneDNN cannot.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "operation.h"

namespace host_cpu {

struct Request {
  std::string_view op;
  const regie::sdk::Attrs& attrs;
  std::span<const regie_tensor> operands, results;
  const regie_tensor* operand(size_t i) const {
    return i < operands.size() && operands[i].elem != REGIE_ELEM_UNKNOWN ? &operands[i] : nullptr;
  }
};
// A row-major float32 tensor of these dimensions.
dnnl_memory_desc_t plain(std::span<const int64_t> dims);
const regie_tensor& need(const Request& r, size_t i);
double product(std::span<const int64_t> dims);

void append_eltwise(std::vector<PostOp>& post, dnnl_alg_kind_t alg, double alpha, double beta);
// The activation that the attributes name, if any.
void append_activation(const regie::sdk::Attrs& attrs, std::vector<PostOp>& post);

Operation convolution(const Request& r);
Operation transposed_convolution(const Request& r);
Operation matmul(const Request& r);
Operation quantised_convolution(const Request& r);  // regie.QConv
Operation quantised_matmul(const Request& r);       // regie.QMatMul
Operation linear_convolution(const Request& r);     // QLinearConv
Operation linear_matmul(const Request& r);
Operation integer_convolution(const Request& r);  // ConvInteger
Operation integer_matmul(const Request& r);
dnnl_data_type_t dnnl_type(regie_elem elem);
Operation max_pool(const Request& r);
Operation average_pool(const Request& r);
Operation global_average_pool(const Request& r);
Operation global_max_pool(const Request& r);

}  // namespace host_cpu
