#include "native.h"

#include <algorithm>
#include <vector>

namespace host_cpu {

int64_t NativeTensor::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

const NativeTensor& NativeRequest::in(size_t i) const {
  if (!has(i)) refuse("operand " + std::to_string(i) + " is absent");
  return operands[i];
}
const NativeTensor& NativeRequest::out(size_t i) const {
  if (!wants(i)) refuse("result " + std::to_string(i) + " is absent");
  return results[i];
}
void NativeRequest::need_float(size_t operand) const {
  if (in(operand).elem != REGIE_F32) refuse("operand " + std::to_string(operand) + " is not float32");
}
void NativeRequest::need_float_results() const {
  for (const NativeTensor& t : results)
    if (t.present() && t.elem != REGIE_F32) refuse("a result is not float32");
}
std::vector<int64_t> NativeRequest::constant_integers(size_t operand) const {
  const NativeTensor& t = in(operand);
  if (!t.data) refuse("operand " + std::to_string(operand) + " is not a constant");
  std::vector<int64_t> values(static_cast<size_t>(t.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (t.elem == REGIE_I64)
      values[i] = static_cast<const int64_t*>(t.data)[i];
    else if (t.elem == REGIE_I32)
      values[i] = static_cast<const int32_t*>(t.data)[i];
    else
      refuse("operand " + std::to_string(operand) + " is of no integer type");
  }
  return values;
}

int64_t normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) refuse("an axis is outside of the tensor");
  return axis < 0 ? axis + rank : axis;
}

uint32_t elem_size(regie_elem elem) {
  switch (elem) {
    case REGIE_U8:
    case REGIE_I8:
    case REGIE_BOOL:
      return 1;
    case REGIE_U16:
    case REGIE_I16:
    case REGIE_F16:
    case REGIE_BF16:
      return 2;
    case REGIE_F32:
    case REGIE_I32:
    case REGIE_U32:
      return 4;
    case REGIE_I64:
    case REGIE_U64:
    case REGIE_F64:
      return 8;
    default:
      refuse("its element type is not covered");
  }
}

std::vector<int64_t> row_major_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  return strides;
}

const NativeOp* find_native(std::string_view op) {
  // By name, made once.
  static const std::vector<const NativeOp*> all = [] {
    std::vector<const NativeOp*> list;
    for (std::span<const NativeOp> family :
         {native_moves(), native_elementwise(), native_reductions(), native_norms(), native_resize(),
          native_recurrent(), native_attention(), native_quantize()})
      for (const NativeOp& o : family) list.push_back(&o);
    std::sort(list.begin(), list.end(),
              [](const NativeOp* a, const NativeOp* b) { return a->name < b->name; });
    return list;
  }();
  auto at = std::lower_bound(all.begin(), all.end(), op,
                             [](const NativeOp* o, std::string_view name) { return o->name < name; });
  return at != all.end() && (*at)->name == op ? *at : nullptr;
}

NativePtr make_native(const NativeRequest& request) {
  const NativeOp* op = find_native(request.op);
  if (!op) refuse("there is no kernel of our own for it");
  for (const auto* list : {&request.operands, &request.results})
    for (const NativeTensor& t : *list)
      if (t.present() && t.format != kPlainFormat && op->takes == Takes::kPlain)
        refuse("it is computed row-major only");
  return op->make(request);
}

}  // namespace host_cpu
