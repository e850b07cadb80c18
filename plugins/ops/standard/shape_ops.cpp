// Operators about shapes: Shape, Size, ConstantOfShape.
#include <algorithm>

#include "op.h"

namespace regie::ops {
namespace {

// ---- Shape: dimensions start..end-1 ----

std::pair<size_t, size_t> shape_range(const sdk::Attrs& attrs, size_t rank) {
  auto size = static_cast<int64_t>(rank);
  auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  int64_t start = place(attrs.integer("start", 0)), end = place(attrs.integer("end", size));
  return {static_cast<size_t>(start), static_cast<size_t>(std::max(start, end))};
}

void infer_shape(const Infer& infer) {
  auto [start, end] = shape_range(infer.attrs, infer.shape(0).size());
  regie_dim length = static_cast<regie_dim>(end - start);
  infer.result(0, REGIE_I64, {&length, 1});
  infer.content(0, infer.shape(0).subspan(start, end - start));
}

KernelPtr prepare_shape(Prepare& p) {
  Index x = p.shape(0);
  auto [start, end] = shape_range(p.attrs, x.size());
  auto length = static_cast<int64_t>(end - start);
  p.expect_result(0, {&length, 1});
  std::vector<int64_t> dims(x.begin() + static_cast<std::ptrdiff_t>(start),
                            x.begin() + static_cast<std::ptrdiff_t>(end));
  return make_kernel([dims](const Call& call) { std::copy(dims.begin(), dims.end(), call.out<int64_t>(0)); });
}

void infer_size(const Infer& infer) {
  regie_dim size = infer.dims.product(infer.shape(0));
  infer.result(0, REGIE_I64, {});
  infer.content(0, {&size, 1});
}

KernelPtr prepare_size(Prepare& p) {
  p.expect_result(0, {});
  return make_kernel([size = sdk::count_of(p.in(0))](const Call& call) { *call.out<int64_t>(0) = size; });
}

// ---- ConstantOfShape ----

void infer_constant_of_shape(const Infer& infer) {
  if (infer.rank(0) != 1) infer.bad("the shape must be a list");
  const regie_tensor* value = infer.attrs.tensor("value");
  if (value && sdk::count_of(*value) != 1) infer.bad("attribute 'value' must have one element");
  Shape y = infer.list(0);
  infer.result(0, value ? value->elem : regie_elem{REGIE_F32}, y);
  if (!value || y.size() > 1 || (y.size() == 1 && (y[0] < 0 || y[0] > 1024))) return;
  size_t count = y.empty() ? 1 : static_cast<size_t>(y[0]);
  if (value->elem == REGIE_I64)
    infer.content(0, Shape(count, infer.dim(*static_cast<const int64_t*>(value->data))));
  if (value->elem == REGIE_I32)
    infer.content(0, Shape(count, infer.dim(*static_cast<const int32_t*>(value->data))));
}

KernelPtr prepare_constant_of_shape(Prepare& p) {
  const regie_tensor* value = p.attrs.tensor("value");
  if (value && sdk::count_of(*value) != 1) p.bad("attribute 'value' must have one element");
  regie_elem elem = value ? value->elem : regie_elem{REGIE_F32};
  if (p.out(0).elem != elem) p.bad("the result must be of type " + std::string(elem_name(elem)));
  int64_t count = sdk::count_of(p.out(0));
  return p.dispatch(All(), elem, [&]<class T>() {
    T filling = value ? *static_cast<const T*>(value->data) : T{};
    return make_kernel([=](const Call& call) { std::fill_n(call.out<T>(0), count, filling); });
  });
}

constexpr Op table[] = {
    {"Shape", 0, infer_shape, prepare_shape},
    {"Size", 0, infer_size, prepare_size},
    {"ConstantOfShape", 0, infer_constant_of_shape, prepare_constant_of_shape},
};

}  // namespace

std::span<const Op> shape_ops() { return table; }

}  // namespace regie::ops
