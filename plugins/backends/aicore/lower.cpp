#include "lower.h"

#include <algorithm>

#include "matrices.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::sv;

struct Family {
  std::string_view op;
  Lowered (*lower)(const Request&);
};
constexpr Family kFamilies[] = {
    {"AveragePool", lower_pooling},
    {"BatchNormalization", lower_batch_normalization},
    {"Concat", lower_blocks},
    {"Conv", lower_convolution},
    {"ConvInteger", lower_bytes},
    {"ConvTranspose", lower_conv_transpose},
    {"Expand", lower_move},
    {"Gather", lower_gather},
    {"Gemm", lower_product},
    {"GlobalAveragePool", lower_rows},
    {"GlobalMaxPool", lower_rows},
    {"LayerNormalization", lower_rows},
    {"LogSoftmax", lower_rows},
    {"MatMul", lower_product},
    {"MatMulInteger", lower_bytes},
    {"MaxPool", lower_pooling},
    {"QLinearConv", lower_bytes},
    {"QLinearMatMul", lower_bytes},
    {"ReduceMax", lower_rows},
    {"ReduceMean", lower_rows},
    {"ReduceMin", lower_rows},
    {"ReduceSum", lower_rows},
    {"regie.Reformat", lower_reformat},
    {"Reshape", lower_reshape},
    {"Resize", lower_resize},
    {"Slice", lower_blocks},
    {"Softmax", lower_rows},
    {"Split", lower_blocks},
    {"Transpose", lower_move},
    {"regie.Attention", lower_attention},
    {"regie.FusedConv", lower_convolution},
    {"regie.FusedMatMul", lower_product},
    {"regie.QConv", lower_bytes},
    {"regie.QConvAdd", lower_bytes},
    {"regie.QMatMul", lower_bytes},
};

bool any_blocked(const Request& r) {
  return std::any_of(r.operand_formats.begin(), r.operand_formats.end(), is_blocked) ||
         std::any_of(r.result_formats.begin(), r.result_formats.end(), is_blocked);
}
bool any_byte_blocks(const Request& r) {
  const auto is = [](regie_format f) { return f == kByteBlockedFormat; };
  return std::any_of(r.operand_formats.begin(), r.operand_formats.end(), is) ||
         std::any_of(r.result_formats.begin(), r.result_formats.end(), is);
}

// Only these can read or write what is not row-major; which combinations, they say themselves.
void check_formats(const Request& r) {
  auto check = [](const regie_tensor& t, regie_format f, const char* what) {
    if (!is_known_format(f)) refuse(std::string(what) + " lies in a format of another engine");
    if (is_blocked(f) && !blocks_fit({t.dims, static_cast<size_t>(t.rank)}))
      refuse(std::string(what) + " has no blocks of channels");
    if (is_matrix(f) && (t.rank < 2 || regie::sdk::rows_axis_of(f, t.rank) < 0))
      refuse(std::string(what) + " has no rows and columns");
    if (f == kByteBlockedFormat && !byte_blocks_fit(t.elem, {t.dims, static_cast<size_t>(t.rank)}))
      refuse(std::string(what) + " is not of whole blocks of 32 bytes");
  };
  for (size_t i = 0; i < r.operand_formats.size(); ++i)
    if (r.operand(i)) check(*r.operand(i), r.operand_format(i), "an operand");
  for (size_t i = 0; i < r.result_formats.size(); ++i)
    if (r.results[i].elem != REGIE_ELEM_UNKNOWN) check(r.results[i], r.result_format(i), "a result");
  if (any_byte_blocks(r) && !takes_byte_blocks(r.op)) refuse("it has no program for blocks of bytes");
  if ((!any_blocked(r) || takes_blocks(r.op)) && (!any_matrix(r) || takes_matrices(r.op))) return;
  refuse("its programs are for row-major tensors");
}

}  // namespace

// What no kernel of an AI Core can do, whatever the operator.
void check_request(const Request& r) {
  if (regie::sdk::is_control_flow(r.node)) refuse("control flow is the host's");
  // Lists that only say what is to be done may be empty: no program reads them.
  const size_t tensors = r.op == "Resize" || r.op == "Reshape" ? 1 : r.operands.size();
  for (auto list : {r.operands.first(std::min(tensors, r.operands.size())), r.results})
    for (const regie_tensor& t : list) {
      if (t.elem == REGIE_ELEM_UNKNOWN) continue;
      if (t.elem == REGIE_STRING) refuse("strings");
      if (t.strides) refuse("a tensor is strided");
      double count = 1;
      for (int32_t i = 0; i < t.rank; ++i) {
        if (t.dims[i] < 0) refuse("a shape depends on data: programs are made for concrete shapes");
        if (t.dims[i] == 0) refuse("a tensor has no element");
        count *= static_cast<double>(t.dims[i]);
      }
      if (count > 1e9) refuse("a tensor has more than 10^9 elements");
    }
  for (const regie_tensor& t : r.results)
    if (t.elem == REGIE_I64 || t.elem == REGIE_U64) refuse("arithmetic of 64-bit integers");
  // A program is bound to the shapes that it is made for, and the model's other shapes would run it all the
  // same.
  for (auto ids : {regie::sdk::operands_of(r.node), regie::sdk::results_of(r.node)})
    for (uint32_t v : ids)
      if (v != REGIE_NONE)
        for (regie_dim d : regie::sdk::dims_of(r.graph->values[v].type))
          if (d < 0)
            refuse(
                "its dimensions are symbols: programs are made for concrete shapes (fix the inputs' with "
                "--shape)");
  check_formats(r);
  if (r.results.empty() || r.results[0].elem == REGIE_ELEM_UNKNOWN)
    refuse("its first result is not asked for");
}

void refuse(std::string why) { throw regie::sdk::Failure(REGIE_UNSUPPORTED, std::move(why)); }

bool is_reduction(std::string_view op) {
  return op == "GlobalAveragePool" || op == "GlobalMaxPool" || op == "ReduceMean" || op == "ReduceSum" ||
         op == "ReduceMax" || op == "ReduceMin";
}

bool is_float(regie_elem e) { return e == REGIE_F32 || e == REGIE_F16; }

int64_t integer_at(const regie::sdk::Attrs& attrs, const char* name, size_t i, int64_t fallback) {
  const auto list = attrs.integers(name);
  if (!list || list->empty()) return fallback;
  if (i >= list->size()) refuse(std::string("attribute '") + name + "' is too short");
  return (*list)[i];
}

int64_t padding_before(const regie::sdk::Attrs& attrs, size_t axis, int64_t in, int64_t out, int64_t kernel,
                       int64_t stride, int64_t dilation) {
  const std::string_view mode = attrs.text("auto_pad", "NOTSET");
  const int64_t needed = std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation + 1 - in);
  if (mode == "SAME_UPPER") return needed / 2;
  if (mode == "SAME_LOWER") return needed - needed / 2;
  return mode == "VALID" ? 0 : integer_at(attrs, "pads", axis, 0);
}

int32_t axis_of(const Request& r, int32_t rank, int64_t fallback) {
  int64_t axis = r.attrs.integer("axis", fallback);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) refuse("its axis is out of range");
  return static_cast<int32_t>(axis);
}

std::vector<int64_t> reduced_axes(const Request& r, int32_t rank) {
  std::vector<int64_t> axes;
  if (auto list = r.attrs.integers("axes")) axes.assign(list->begin(), list->end());
  if (r.node.operand_count > 1 && r.node.operands[1] != REGIE_NONE) {
    auto list = regie::sdk::constant_integers(&r.graph->values[r.node.operands[1]]);
    if (!list) refuse("its axes are not constant");
    axes = *list;
  }
  for (int64_t& a : axes) {
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) refuse("an axis is out of range");
  }
  return axes;
}

const regie_tensor& Request::need(size_t i) const {
  const regie_tensor* t = operand(i);
  if (!t) refuse("operand " + std::to_string(i) + " is absent");
  return *t;
}

Lowered lower(const Request& r) {
  check_request(r);
  return lower_checked(r);
}

Lowered lower_checked(const Request& r) {
  if (any_blocked(r) && is_reduction(r.op)) return lower_blocked_reduction(r);
  for (const Family& f : kFamilies)
    if (f.op == r.op) return f.lower(r);
  if (r.op == "regie.Pointwise" || r.op == "Cast" || r.op == "Sum" || r.op == "regie.Quantize" ||
      r.op == "regie.Dequantize" || find_vector_op(r.op))
    return lower_elementwise(r);
  if (r.op == "GatherND" || r.op == "GatherElements" || r.op == "ScatterND")
    refuse("irregular moves of data");
  refuse("there is no tile program for " + std::string(r.op));
}

}  // namespace aicore
