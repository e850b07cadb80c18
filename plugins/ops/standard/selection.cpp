// Unique: what it picks depends on values. The shape function finds out how much, where it is given the data,
// by the same code that the kernel runs.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- Unique ----

// The things that are compared: elements, or slices along an axis.
template <class T>
struct Items {
  const T* data;
  int64_t outer, count, inner;

  // Less, equal or greater, lexicographically; NaN is greater than all, and equal to itself.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const Compute<T> x = data[(o * count + a) * inner + i], y = data[(o * count + b) * inner + i];
        if (x < y) return -1;
        if (y < x) return 1;
        if (x == y) continue;
        const bool x_nan = x != x, y_nan = y != y;
        if (x_nan != y_nan) return x_nan ? 1 : -1;
      }
    return 0;
  }
};

// Which items are equal: `order` has them sorted, equal ones by position; group k begins with item
// `first[k]`, the earliest of it, and has `members[k]`. All arrays have a place an item. Gives the number of
// groups.
template <class T>
int64_t group(const Items<T>& items, int64_t* order, int64_t* first, int64_t* members) {
  std::iota(order, order + items.count, int64_t{0});
  std::sort(order, order + items.count, [&](int64_t a, int64_t b) {
    const int c = items.compare(a, b);
    return c != 0 ? c < 0 : a < b;
  });
  int64_t groups = 0;
  for (int64_t i = 0; i < items.count; ++i) {
    if (i == 0 || items.compare(order[i - 1], order[i]) != 0) {
      first[groups] = order[i];
      members[groups++] = 0;
    }
    ++members[groups - 1];
  }
  return groups;
}

// Outer, count and inner of the items of a tensor of this shape.
std::array<int64_t, 3> item_sizes(Index x, std::optional<size_t> axis) {
  std::array<int64_t, 3> sizes{1, 1, 1};
  for (size_t i = 0; i < x.size(); ++i) sizes[!axis ? 1 : i < *axis ? 0 : i == *axis ? 1 : 2] *= x[i];
  return sizes;
}

void infer_unique(const Infer& infer) {
  auto x = infer.shape(0);
  std::optional<size_t> axis;
  if (infer.attrs.has("axis")) axis = infer.axis_attribute(0);
  regie_dim groups = REGIE_DIM_UNKNOWN;
  if (const regie_tensor* t = infer.in(0).data; t && t->data) {
    const auto [outer, count, inner] = item_sizes(sdk::dims_of(*t), axis);
    std::vector<int64_t> work(3 * static_cast<size_t>(count));
    dispatch(All(), t->elem, [&]<class T>() {
      groups = group(Items<T>{static_cast<const T*>(t->data), outer, count, inner}, work.data(),
                     work.data() + count, work.data() + 2 * count);
    });
  }
  Shape y{groups};
  if (axis) {
    y.assign(x.begin(), x.end());
    y[*axis] = groups;
  }
  infer.result(0, infer.elem(0), y);
  const regie_dim items = axis ? x[*axis] : infer.dims.product(x);
  infer.result(1, REGIE_I64, {&groups, 1});
  infer.result(2, REGIE_I64, {&items, 1});
  infer.result(3, REGIE_I64, {&groups, 1});
}

KernelPtr prepare_unique(Prepare& p) {
  std::optional<size_t> axis;
  if (p.attrs.has("axis")) axis = p.axis_attribute(0);
  const auto [outer, count, inner] = item_sizes(p.shape(0), axis);
  if (!p.wants(0)) p.unsupported("its first result is omitted");
  Index y = p.out_shape(0);
  if (y.size() != (axis ? p.shape(0).size() : 1)) p.bad("the result has the shape " + print_shape(y));
  const int64_t wanted = y[axis.value_or(0)];
  const std::array<int64_t, 4> lengths{wanted, wanted, count, wanted};
  std::array<bool, 4> wants{true, false, false, false};
  for (uint32_t i = 1; i < 4; ++i)
    if ((wants[i] = p.wants(i))) p.expect_result(i, {&lengths[i], 1});
  if (wanted > count) p.bad("the result has the shape " + print_shape(y));
  const bool sorted = p.attrs.integer("sorted", 1) != 0;
  if (p.out(0).elem != p.in(0).elem) p.bad("the result has another type than the operand");
  const uint64_t block = static_cast<uint64_t>(inner) * elem_size(p.in(0).elem);
  p.scratch_bytes = 5 * static_cast<uint64_t>(count) * sizeof(int64_t);
  return p.dispatch(All(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, outer = outer, count = count, inner = inner](const Call& call) {
      int64_t *order = call.scratch<int64_t>(), *first = order + count, *members = first + count,
              *turn = members + count, *place = turn + count;
      const Items<T> items{call.in<T>(0), outer, count, inner};
      const int64_t groups = group(items, order, first, members);
      if (groups != wanted)
        throw sdk::Failure(REGIE_INVALID_INPUT, "Unique: there are " + std::to_string(groups) +
                                                    " different ones, not " + std::to_string(wanted));
      // turn[k]: which group is k-th in the result; place: the other way round.
      std::iota(turn, turn + groups, int64_t{0});
      if (!sorted) std::sort(turn, turn + groups, [&](int64_t a, int64_t b) { return first[a] < first[b]; });
      for (int64_t k = 0; k < groups; ++k) place[turn[k]] = k;
      char* to = call.out<char>(0);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < groups; ++k, to += block)
          copy_bytes(to, call.in<char>(0) + static_cast<uint64_t>(o * count + first[turn[k]]) * block, block);
      for (int64_t k = 0; k < groups; ++k) {
        if (wants[1]) call.out<int64_t>(1)[k] = first[turn[k]];
        if (wants[3]) call.out<int64_t>(3)[k] = members[turn[k]];
      }
      if (!wants[2]) return;
      for (int64_t i = 0, g = 0, left = groups ? members[0] : 0; i < count; ++i, --left) {
        if (left == 0) left = members[++g];
        call.out<int64_t>(2)[order[i]] = place[g];
      }
    });
  });
}

constexpr Op table[] = {
    {"Unique", 0, infer_unique, prepare_unique},
};

}  // namespace

std::span<const Op> selection_ops() { return table; }

}  // namespace regie::ops
