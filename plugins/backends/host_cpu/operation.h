// One operator as oneDNN sees it, at concrete shapes: memory descriptions, geometry, post-ops. Made from
// ONNX's attributes by both halves of the backend: the engine asks whether it can be, the device makes it
// again for the shapes at hand. Everything is checked here, as a device reads attributes from a file.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <string_view>
#include <vector>

#include "formats.h"
#include "regie/plugin.hpp"

namespace host_cpu {

struct PostOp {
  enum Kind { kSum, kEltwise, kBinaryAdd, kBinaryMul } kind;
  dnnl_alg_kind_t alg = dnnl_alg_kind_undef;  // of kEltwise
  float alpha = 0, beta = 0;
  uint32_t operand = REGIE_NONE;  // of kBinaryAdd and kBinaryMul
  dnnl_memory_desc_t memory{};
};

struct Operation {
  enum Kind { kConvolution, kDeconvolution, kMatMul, kPooling } kind = kConvolution;
  bool convolves() const { return kind == kConvolution || kind == kDeconvolution; }
  dnnl_memory_desc_t src{}, weights{}, bias{}, dst{};  // plain layouts; ndims 0: absent
  uint32_t src_operand = 0, weights_operand = REGIE_NONE, bias_operand = REGIE_NONE;
  uint32_t residual_operand = REGIE_NONE;  // added to the result (post-op sum): as dst in type, shape, layout
  dnnl_alg_kind_t alg = dnnl_alg_kind_undef;
  // Per spatial axis; dilates as oneDNN counts: 0 = dense.
  dnnl_dims_t strides{}, dilates{}, kernel{}, pad_l{}, pad_r{};
  float scale = 1;  // of the product, before all post-ops; only where there is no bias
  // No two of one algorithm: oneDNN 2.6 gives the second the parameters of the first.
  std::vector<PostOp> post;
  double flops = 0;

  // Of quantised operators. What counts as zero in src and weights, and as what zero is written.
  int32_t src_zero = 0, weights_zero = 0, dst_zero = 0;
  uint32_t src_zero_operand = REGIE_NONE;  // where it is known at run time only
  std::vector<float> scales;               // of the product and the bias, in place of `scale`: one a channel
  std::vector<float> bias_values;          // in place of bias_operand
  bool quantised() const { return src.data_type == dnnl_u8 || src.data_type == dnnl_s8; }
};

// Row-major weights of a transposed convolution: oneDNN's axes are results, inputs, ...; the model's bytes
// have the inputs first. `desc` is row-major in oneDNN's axes; `grouped`: the groups' axis is in front of
// them.
void swap_channels(dnnl_memory_desc_t& desc, bool grouped);

// A dense convolution of 3 x 3 with stride 1: what Winograd's algorithm is for.
bool suits_winograd(const Operation& op);

// Is this an operator that oneDNN is asked about at all?
bool is_lowered(std::string_view op);

// Throws Failure(UNSUPPORTED) with the reason where oneDNN cannot, or where it would mean something else than
// ONNX. Tensors without any element are the caller's to handle.
Operation describe(std::string_view op, const regie::sdk::Attrs& attrs, const regie_tensor* operands,
                   uint32_t operand_count, const regie_tensor* results, uint32_t result_count);
// Puts operand 0, the residual and the result into their formats. Throws UNSUPPORTED where operator and
// formats do not go together.
void set_formats(Operation& op, const Formats& formats, const regie_tensor* operands,
                 const regie_tensor* results);

// Which operand may be overwritten by the result of this operator, as its residual; REGIE_NONE: none.
uint32_t residual_operand(std::string_view op);
// Of convolutions and pooling: may a window lie in the padding altogether?
bool may_miss(const Operation& op);

// Is it a product of bytes, with scales and zero points?
bool is_quantised(std::string_view op);

// Empty, or why an activation of this name cannot be part of a kernel.
std::string activation_problem(const regie::sdk::Attrs& attrs);
// Empty, or why 8-bit products cannot be computed exactly by this processor.
std::string byte_product_problem();
// Empty, or why regie.QConv or regie.QMatMul would be worse than the product of floats that it is made of.
std::string quantisation_problem(const regie_graph& graph, const regie_node& node);

}  // namespace host_cpu
