#include "window.h"

#include <algorithm>

namespace regie::ops {

namespace {
constexpr std::string_view auto_pads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// The list `name`, or `size` times `fallback`.
std::vector<int64_t> list(std::string_view op, const sdk::Attrs& attrs, std::string_view name, size_t size,
                          int64_t fallback, int64_t least) {
  auto given = attrs.integers(name);
  if (!given || given->empty()) return std::vector<int64_t>(size, fallback);
  auto bad = [&](const std::string& what) {
    throw sdk::Failure(REGIE_INVALID_MODEL,
                       std::string(op) + ": attribute '" + std::string(name) + "' " + what);
  };
  if (given->size() != size)
    bad("has " + std::to_string(given->size()) + " numbers; it needs " + std::to_string(size));
  for (int64_t n : *given)
    if (n < least || n > INT32_MAX)
      bad("has the number " + std::to_string(n) + "; at least " + std::to_string(least) + " is allowed");
  return {given->begin(), given->end()};
}
}  // namespace

Window::Window(std::string_view op, const sdk::Attrs& attrs, size_t spatial_rank) {
  auto fail = [&](regie_status code, const std::string& what) {
    throw sdk::Failure(code, std::string(op) + ": " + what);
  };
  if (spatial_rank == 0)
    fail(REGIE_INVALID_MODEL, "the input needs at least one axis after batch and channels");
  if (spatial_rank > max_spatial_rank)
    fail(REGIE_UNSUPPORTED,
         std::to_string(spatial_rank) + " spatial axes; at most " + std::to_string(max_spatial_rank));
  if (attrs.has("kernel_shape")) kernel = list(op, attrs, "kernel_shape", spatial_rank, 1, 1);
  strides = list(op, attrs, "strides", spatial_rank, 1, 1);
  dilations = list(op, attrs, "dilations", spatial_rank, 1, 1);
  std::vector<int64_t> pads = list(op, attrs, "pads", 2 * spatial_rank, 0, 0);
  begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial_rank));
  end.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial_rank), pads.end());
  ceil_mode = attrs.integer("ceil_mode", 0) != 0;
  std::string_view mode = attrs.text("auto_pad", auto_pads[0]);
  if (mode.empty()) mode = auto_pads[0];
  const auto* found = std::find(std::begin(auto_pads), std::end(auto_pads), mode);
  if (found == std::end(auto_pads)) fail(REGIE_INVALID_MODEL, "unknown auto_pad '" + std::string(mode) + "'");
  auto_pad = static_cast<AutoPad>(found - std::begin(auto_pads));
  if (auto_pad != kNotSet) {
    std::fill(begin.begin(), begin.end(), 0);
    std::fill(end.begin(), end.end(), 0);
  }
}

regie_dim Window::result_dim(const Infer& infer, size_t axis, regie_dim size, regie_dim kernel_size) const {
  const sdk::Dims& d = infer.dims;
  if (auto_pad == kSameUpper || auto_pad == kSameLower) return d.ceildiv(size, strides[axis]);
  regie_dim extent = d.add(d.mul(d.sub(kernel_size, 1), dilations[axis]), 1);
  regie_dim room = d.sub(d.add(size, begin[axis] + end[axis]), extent);
  if (!ceil_mode) return d.add(d.floordiv(room, strides[axis]), 1);
  // A window must begin inside of the input or the padding before it.
  regie_dim starts = d.ceildiv(d.add(size, begin[axis]), strides[axis]);
  return d.min(d.add(d.ceildiv(room, strides[axis]), 1), starts);
}

int64_t Window::result_size(size_t axis, int64_t size) const {
  int64_t room = size + begin[axis] + end[axis] - extent(axis);
  if (auto_pad == kSameUpper || auto_pad == kSameLower) return ceil_div(size, strides[axis]);
  if (!ceil_mode) return floor_div(room, strides[axis]) + 1;
  return std::min(ceil_div(room, strides[axis]) + 1, ceil_div(size + begin[axis], strides[axis]));
}

void Window::resolve(Index input) {
  if (auto_pad != kSameUpper && auto_pad != kSameLower) return;
  for (size_t axis = 0; axis < rank(); ++axis) {
    int64_t result = ceil_div(input[axis], strides[axis]);
    int64_t total = std::max<int64_t>(0, (result - 1) * strides[axis] + extent(axis) - input[axis]);
    begin[axis] = auto_pad == kSameUpper ? total / 2 : total - total / 2;
    end[axis] = total - begin[axis];
  }
}

std::vector<int64_t> Window::resolved_result(int64_t batch, int64_t channels, Index input) {
  resolve(input);
  std::vector<int64_t> shape{batch, channels};
  for (size_t i = 0; i < rank(); ++i) shape.push_back(result_size(i, input[i]));
  return shape;
}

Taps::Taps(const Window& window, Index dense, Index strided)
    : rank_(window.rank()),
      kernel_(window.kernel),
      dense_(dense.begin(), dense.end()),
      strided_(strided.begin(), strided.end()),
      strides_(window.strides),
      spans_(rank_) {
  for (size_t axis = 0; axis < rank_; ++axis) {
    count_ *= kernel_[axis];
    dense_size_ *= dense[axis];
    strided_size_ *= strided[axis];
    for (int64_t k = 0; k < kernel_[axis]; ++k) {
      int64_t shift = k * window.dilations[axis] - window.begin[axis];
      int64_t first = std::max<int64_t>(0, ceil_div(-shift, strides_[axis]));
      int64_t last = std::min(dense[axis], floor_div(strided[axis] - 1 - shift, strides_[axis]) + 1);
      spans_[axis].push_back({first, last, shift});
    }
  }
}

}  // namespace regie::ops
