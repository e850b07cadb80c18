// From a node to a kernel: what a node asks for is read and checked here, cut to tiles, and written as a
// program when it is asked for. `lower` says whether and at what price; the rest is done by `Lowered::write`.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cube.h"
#include "formats.h"
#include "regie/c/engine.h"

namespace aicore {

struct PackedWeight {
  uint32_t operand;
  std::string bytes, layout;
};

struct Written {
  regie::tile::Program program;
  std::vector<PackedWeight> weights;
  uint64_t scratch_bytes = 0;
};

struct Lowered {
  std::string name;   // for profiles
  double cycles = 0;  // of the slowest core
  std::function<Written()> write;
};

// Plans already found in this compile.
using PlanCache = std::map<std::vector<int64_t>, CubePlan>;

struct Request {
  const Chip& chip;
  PlanCache& plans;
  const regie_graph* graph;
  const regie_node& node;
  std::string_view op;
  regie::sdk::Attrs attrs;
  std::span<const regie_tensor> operands, results;

  const regie_tensor* operand(size_t i) const {
    return i < operands.size() && operands[i].elem != REGIE_ELEM_UNKNOWN ? &operands[i] : nullptr;
  }
  const regie_tensor& need(size_t i) const;
  // Formats of operands and results; all row-major where they are empty. A tensor whose format says halves
  // has elements of f16 in `operands` and `results`.
  std::vector<regie_format> operand_formats = {}, result_formats = {};
  regie_format operand_format(size_t i) const {
    return i < operand_formats.size() ? operand_formats[i] : kPlainFormat;
  }
  regie_format result_format(size_t i) const {
    return i < result_formats.size() ? result_formats[i] : kPlainFormat;
  }
};

[[noreturn]] void refuse(std::string why);

// Throws UNSUPPORTED with the reason.
Lowered lower(const Request& request);
// The part of it that holds for all programs, whoever wrote them; and what is left of it then.
void check_request(const Request& request);
Lowered lower_checked(const Request& request);

// One function for each family.
Lowered lower_convolution(const Request& r);
Lowered lower_product(const Request& r);
Lowered lower_bytes(const Request& r);  // products and convolutions of bytes
Lowered lower_elementwise(const Request& r);
Lowered lower_batch_normalization(const Request& r);
Lowered lower_move(const Request& r);  // Transpose and Expand, by rows
Lowered lower_copy(const Request& r);  // of operand and result of one shape
// Of every steps[d]-th element along each axis, from starts[d] on: a Slice.
Lowered lower_steps(const Request& r, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps);
Lowered lower_blocks(const Request& r);  // Concat, Split, Slice
Lowered lower_gather(const Request& r);  // by constant indices
Lowered lower_pooling(const Request& r);
Lowered lower_resize(const Request& r);
// Resize by interpolation: two products with matrices of weights.
Lowered lower_interpolation(const Request& r);
Lowered lower_conv_transpose(const Request& r);
Lowered lower_blocked_reduction(const Request& r);  // over the positions of NC1HWC0
Lowered lower_reformat(const Request& r);
Lowered lower_attention(const Request& r);  // regie.Attention
Lowered lower_rows(const Request& r);       // along the last axis: Softmax, LayerNormalization, reductions

bool is_float(regie_elem e);  // f32 or f16
bool is_reduction(std::string_view op);

// Attributes of several families. The i-th of a list; `fallback` where there is none.
int64_t integer_at(const regie::sdk::Attrs& attrs, const char* name, size_t i, int64_t fallback);
// Before the first element of spatial axis `axis`, by "auto_pad" or "pads".
int64_t padding_before(const regie::sdk::Attrs& attrs, size_t axis, int64_t in, int64_t out, int64_t kernel,
                       int64_t stride, int64_t dilation);
// "axis", counted from the front.
int32_t axis_of(const Request& r, int32_t rank, int64_t fallback);
// Of a reduction: "axes" or the constant operand 1, counted from the front; empty where there is neither.
std::vector<int64_t> reduced_axes(const Request& r, int32_t rank);

// The geometry of a convolution, from attributes and shapes.
void read_convolution(const Request& r, const regie_tensor& x, const regie_tensor& w, const regie_tensor& y,
                      CubeProblem& problem);

// Where the chip's operands are two halves, as far as this problem's can be.
void take_two_halves(const Chip& chip, CubeProblem& p);

// The plan of a problem, searched once.
CubePlan plan_once(const Request& r, const CubeProblem& p);

}  // namespace aicore
