// Element-wise operators, alone or as the region of a regie.Pointwise: one walk over the result. Dimensions
// that all tensors walk through alike are merged; what is left are rows of contiguous elements, and loops
// around them. A tile of rows is computed in f32 in UB: registers of the tile's size, given out by last use.
#include <algorithm>

#include "elementwise.h"

namespace aicore {

namespace {

// Merges dimension d, `strides` one an operand, into what is inside it.
void put_outside(Shape& s, int64_t size, const std::vector<int64_t>& strides) {
  bool joins = !s.dims.empty();
  for (size_t i = 0; i < strides.size() && joins; ++i)
    joins = strides[i] == s.strides[i].front() * s.dims.front();
  if (joins) {
    s.dims.front() *= size;
    return;
  }
  s.dims.insert(s.dims.begin(), size);
  for (size_t i = 0; i < strides.size(); ++i) s.strides[i].insert(s.strides[i].begin(), strides[i]);
}
void finish(Shape& s) {
  if (!s.dims.empty()) return;
  s.dims = {1};
  for (auto& l : s.strides) l = {0};
}

Shape merge(const Request& r) {
  const regie_tensor& y = r.results[0];
  for (const regie_tensor& t : r.results)
    if (t.rank != y.rank || !std::equal(y.dims, y.dims + y.rank, t.dims))
      refuse("results of different shapes");
  Shape s;
  s.strides.resize(r.operands.size());
  std::vector<int64_t> step(r.operands.size(), 1);
  for (int32_t d = y.rank - 1; d >= 0; --d) {
    if (y.dims[d] == 1) continue;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < r.operands.size(); ++i) {
      const regie_tensor& t = r.operands[i];
      const int32_t own = d - (y.rank - t.rank);
      const int64_t size = t.elem == REGIE_ELEM_UNKNOWN || own < 0 ? 1 : t.dims[own];
      if (size != 1 && size != y.dims[d]) refuse("an operand does not broadcast to the result");
      strides.push_back(size == 1 ? 0 : step[i]);
      step[i] *= size;
    }
    put_outside(s, y.dims[d], strides);
  }
  finish(s);
  return s;
}
}  // namespace

Lowered lower_elementwise(const Request& r) {
  if (r.results.size() > 8 || r.operands.size() > 24) refuse("it has too many operands and results");
  Code code = compile_elementwise(r);
  return lowered(r, std::move(code), merge(r));
}

Lowered lower_move(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || x.elem != y.elem) refuse("elements other than f32 and f16");
  Shape s;
  if (r.op == "Transpose") {
    std::vector<int64_t> order;
    if (const auto given = r.attrs.integers("perm"); given && !given->empty())
      order.assign(given->begin(), given->end());
    else
      for (int32_t d = x.rank; d-- > 0;) order.push_back(d);
    if (order.size() != static_cast<size_t>(x.rank)) refuse("attribute 'perm' has another length");
    std::vector<int64_t> strides(order.size(), 1);
    for (size_t d = order.size(); d-- > 1;) strides[d - 1] = strides[d] * x.dims[d];
    s.strides.resize(1);
    for (size_t d = order.size(); d-- > 0;) {
      if (order[d] < 0 || order[d] >= x.rank) refuse("attribute 'perm' is no permutation");
      const auto from = static_cast<size_t>(order[d]);
      if (x.dims[from] != 1) put_outside(s, x.dims[from], {strides[from]});
    }
    finish(s);
    if (s.dims.back() > 1 && s.strides[0].back() != 1)
      refuse("it moves single elements: the last axis does not stay the last");
  } else {  // Expand
    Request one = r;
    one.operands = r.operands.first(1);
    s = merge(one);
  }
  Code code;
  Step step;
  step.vector.op = find_vector_op("Identity");
  step.vector.in.resize(1);
  step.in = {{Location::kOperand, 0, 0}};
  step.out = {Location::kResult, 0, 0};
  code.steps.push_back(std::move(step));
  code.operands = {0};
  code.quick = 1;
  return lowered(r, std::move(code), std::move(s));
}

}  // namespace aicore
