// ScatterElements and ScatterND, with their reductions, and NonZero and Compress of constants.
#include <algorithm>
#include <vector>

#include "arithmetic.h"
#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

enum class Reduce { kNone, kAdd, kMul, kMax, kMin };

Reduce reduction(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"none", "add", "mul", "max", "min"};
  return static_cast<Reduce>(choice(op, attrs, "reduction", names));
}

template <class A>
A reduced(Reduce how, A a, A b) {
  switch (how) {
    case Reduce::kNone:
      return b;
    case Reduce::kAdd:
      return Plus()(a, b);
    case Reduce::kMul:
      return Times()(a, b);
    case Reduce::kMax:
      return Greatest()(a, b);
    case Reduce::kMin:
      return Least()(a, b);
  }
  return b;
}

void infer_scatter_elements(const Infer& infer) {
  infer.axis_attribute(0);
  reduction(infer.op, infer.attrs);
  if (infer.rank(0) != infer.rank(1) || infer.rank(1) != infer.rank(2))
    infer.bad("data, indices and updates must have one rank");
  for (size_t i = 0; i < infer.shape(1).size(); ++i)
    if (!infer.agree(infer.shape(1)[i], infer.shape(2)[i]))
      infer.bad("indices and updates differ in shape: " + infer.print(infer.shape(1)) + " and " +
                infer.print(infer.shape(2)));
  infer.result(0, infer.elem(0), infer.shape(0));
}

KernelPtr prepare_scatter_elements(Prepare& p) {
  Index x = p.shape(0), u = p.shape(2);
  check_rank(p.op, x.size());
  p.expect_result(0, x);
  const auto axis = p.axis_attribute(0);
  if (!std::equal(u.begin(), u.end(), p.shape(1).begin(), p.shape(1).end()) || u.size() != x.size())
    p.bad("indices and updates differ in shape");
  for (size_t i = 0; i < x.size(); ++i)
    if (i != axis && u[i] > x[i])
      p.bad("the updates " + print_shape(u) + " do not fit into " + print_shape(x));
  const Reduce how = reduction(p.op, p.attrs);
  Dims strides = dense_strides(x);
  const int64_t step = strides[axis], size = x[axis], count = sdk::count_of(p.in(0));
  strides[axis] = 0;
  Walk<2> walk(u, {strides, dense_strides(u)});
  return p.dispatch(All(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(IndexTypes(), p.in(1).elem, [&]<class I>() {
      return make_kernel([=](const Call& call) {
        T* y = call.out<T>(0);
        copy_bytes(y, call.in<T>(0), static_cast<uint64_t>(count) * sizeof(T));
        walk.rows([&](const auto& at, int64_t n, const auto& by) {
          for (int64_t i = 0; i < n; ++i) {
            const int64_t from = at[1] + i * by[1];
            T& to = y[at[0] + i * by[0] + normal_index("ScatterElements", call.in<I>(1)[from], size) * step];
            to = T(reduced<Compute<T>>(how, to, call.in<T>(2)[from]));
          }
        });
      });
    });
  });
}

void infer_scatter_nd(const Infer& infer) {
  auto x = infer.shape(0), indices = infer.shape(1), u = infer.shape(2);
  reduction(infer.op, infer.attrs);
  if (indices.empty()) infer.bad("the indices must not be a scalar");
  auto depth = infer.number(indices.back());
  if (!depth) infer.unsupported("the last dimension of the indices must be a number");
  if (*depth < 0 || *depth > infer.rank(0)) infer.bad("the indices are deeper than the data");
  Shape wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), x.begin() + *depth, x.end());
  bool fits = wanted.size() == u.size();
  for (size_t i = 0; fits && i < u.size(); ++i) fits = infer.agree(u[i], wanted[i]);
  if (!fits) infer.bad("the updates have the shape " + infer.print(u) + "; they need " + infer.print(wanted));
  infer.result(0, infer.elem(0), x);
}

KernelPtr prepare_scatter_nd(Prepare& p) {
  Index x = p.shape(0), indices = p.shape(1);
  p.expect_result(0, x);
  if (indices.empty() || indices.back() > static_cast<int64_t>(x.size())) p.bad("the indices do not fit");
  const auto depth = static_cast<size_t>(indices.back());
  std::vector<int64_t> sizes(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(depth));
  int64_t block = 1, rows = 1;
  for (int64_t d : x.subspan(depth)) block *= d;
  for (int64_t d : indices.first(indices.size() - 1)) rows *= d;
  if (sdk::count_of(p.in(2)) != rows * block) p.bad("the updates do not fit");
  const Reduce how = reduction(p.op, p.attrs);
  const int64_t count = sdk::count_of(p.in(0));
  return p.dispatch(All(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(IndexTypes(), p.in(1).elem, [&]<class I>() {
      return make_kernel([=](const Call& call) {
        T* y = call.out<T>(0);
        copy_bytes(y, call.in<T>(0), static_cast<uint64_t>(count) * sizeof(T));
        const I* index = call.in<I>(1);
        const T* from = call.in<T>(2);
        for (int64_t r = 0; r < rows; ++r) {
          int64_t at = 0;
          for (int64_t size : sizes) at = at * size + normal_index("ScatterND", *index++, size);
          for (int64_t i = 0; i < block; ++i, ++from) {
            T& to = y[at * block + i];
            to = T(reduced<Compute<T>>(how, to, *from));
          }
        }
      });
    });
  });
}

// ---- TensorScatter: rows of a sequence written into a cache, at a place of each item's own ----

void infer_tensor_scatter(const Infer& infer) {
  auto x = infer.shape(0), u = infer.shape(1);
  const size_t axis = infer.axis_attribute(-2);
  if (axis == 0) infer.bad("the axis must not be the batch");
  bool fits = x.size() == u.size();
  for (size_t i = 0; fits && i < x.size(); ++i) fits = i == axis || infer.agree(x[i], u[i]);
  if (!fits) infer.bad("an update of shape " + infer.print(u) + " does not fit into " + infer.print(x));
  infer.result(0, infer.elem(0), x);
}

KernelPtr prepare_tensor_scatter(Prepare& p) {
  Index x = p.shape(0), u = p.shape(1);
  p.expect_result(0, x);
  const auto axis = p.axis_attribute(-2);
  if (x.size() != u.size() || axis == 0) p.bad("the update does not fit");
  int64_t batch = x[0], outer = 1, block = p.moved_bytes(p.in(0));
  if (p.in(1).elem != p.in(0).elem) p.bad("the update has another type");
  for (size_t i = 0; i < x.size(); ++i) {
    if (i != axis && x[i] != u[i])
      p.bad("an update of shape " + print_shape(u) + " does not fit into " + print_shape(x));
    if (i > 0 && i != axis) (i < axis ? outer : block) *= x[i];
  }
  if (p.has(2) && (p.in(2).elem != REGIE_I64 || sdk::count_of(p.in(2)) != batch))
    p.bad("needs one i64 place an item of the batch");
  const bool circular = p.attrs.text("mode", "linear") == "circular", given = p.has(2);
  return make_kernel([=, size = x[axis], rows = u[axis]](const Call& call) {
    copy_bytes(call.out<char>(0), call.in<char>(0), static_cast<uint64_t>(batch * outer * size * block));
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t first = given ? call.in<int64_t>(2)[b] : 0;
      if (rows > size || first < 0 || (!circular && first + rows > size))
        throw sdk::Failure(REGIE_INVALID_INPUT, "TensorScatter: " + std::to_string(rows) + " rows from " +
                                                    std::to_string(first) + " on do not fit into " +
                                                    std::to_string(size));
      for (int64_t o = b * outer; o < (b + 1) * outer; ++o)
        for (int64_t r = 0; r < rows; ++r)
          copy_bytes(call.out<char>(0) + (o * size + (first + r) % size) * block,
                     call.in<char>(1) + (o * rows + r) * block, static_cast<uint64_t>(block));
    }
  });
}

// ---- NonZero, Compress: how much is picked depends on data ----

// How many elements of operand `i` are not zero, of the first `most`; REGIE_DIM_UNKNOWN if only the run
// tells.
regie_dim count_picked(const Infer& infer, uint32_t i, int64_t most) {
  int64_t picked = 0;
  const regie_tensor* t = infer.in(i).data;
  if (t && t->data && dispatch(All(), t->elem, [&]<class T>() {
        const T* from = static_cast<const T*>(t->data);
        const int64_t count = std::min(sdk::count_of(*t), most);
        for (int64_t k = 0; k < count; ++k) picked += Compute<T>(from[k]) != Compute<T>(0);
      }))
    return picked;
  const auto numbers = infer.numbers(i);
  if (!numbers) return REGIE_DIM_UNKNOWN;
  for (size_t k = 0; k < numbers->size(); ++k) picked += (*numbers)[k] != 0 && static_cast<int64_t>(k) < most;
  return picked;
}

void infer_non_zero(const Infer& infer) {
  const Shape y{infer.rank(0), count_picked(infer, 0, INT64_MAX)};
  infer.result(0, REGIE_I64, y);
}

KernelPtr prepare_non_zero(Prepare& p) {
  Index y = p.out_shape(0), x = p.shape(0);
  if (y.size() != 2 || y[0] != static_cast<int64_t>(x.size()))
    p.bad("the result has the shape " + print_shape(y));
  std::vector<int64_t> shape(x.begin(), x.end());
  const int64_t wanted = y[1], count = sdk::count_of(p.in(0)), length = shape.empty() ? 1 : shape.back(),
                rows = length ? count / length : 0;
  return p.dispatch(All(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      const T* from = call.in<T>(0);
      auto* to = call.out<int64_t>(0);
      int64_t found = 0;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < length; ++i) {
          if (Compute<T>(from[row * length + i]) == Compute<T>(0)) continue;
          if (found < wanted && !shape.empty()) {
            int64_t rest = row;
            for (size_t axis = shape.size() - 1; axis-- > 0; rest /= shape[axis])
              to[static_cast<int64_t>(axis) * wanted + found] = rest % shape[axis];
            to[static_cast<int64_t>(shape.size() - 1) * wanted + found] = i;
          }
          ++found;
        }
      if (found != wanted)
        throw sdk::Failure(REGIE_INVALID_INPUT,
                           "NonZero: the number of elements that are not zero has changed");
    });
  });
}

void infer_compress(const Infer& infer) {
  auto x = infer.shape(0);
  // A condition may be longer than what it is for; what is beyond picks nothing.
  const bool by_axis = infer.attrs.has("axis");
  const auto size = infer.number(by_axis ? x[infer.axis_attribute(0)] : infer.dims.product(x));
  const regie_dim picked = count_picked(infer, 1, size.value_or(INT64_MAX));
  if (!by_axis) return infer.result(0, infer.elem(0), {&picked, 1});
  Shape y(x.begin(), x.end());
  y[infer.axis_attribute(0)] = picked;
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_compress(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  int64_t outer = 1, size = sdk::count_of(p.in(0)), inner = p.moved_bytes(p.in(0)), wanted = 0;
  if (p.attrs.has("axis")) {
    const auto axis = p.axis_attribute(0);
    for (size_t i = 0; i < x.size(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= x[i];
    size = x[axis];
    wanted = y[axis];
  } else {
    wanted = y[0];
  }
  const int64_t conditions = std::min(size, sdk::count_of(p.in(1)));
  return make_kernel([=](const Call& call) {
    char* to = call.out<char>(0);
    for (int64_t o = 0; o < outer; ++o) {
      int64_t found = 0;
      for (int64_t i = 0; i < conditions; ++i) {
        if (!call.in<Bool>(1)[i]) continue;
        if (++found > wanted) break;
        copy_bytes(to, call.in<char>(0) + (o * size + i) * inner, static_cast<uint64_t>(inner));
        to += inner;
      }
      if (found != wanted)
        throw sdk::Failure(REGIE_INVALID_INPUT,
                           "Compress: the number of elements that are picked has changed");
    }
  });
}

constexpr Op table[] = {
    {"ScatterElements", 0, infer_scatter_elements, prepare_scatter_elements},
    {"ScatterND", 0, infer_scatter_nd, prepare_scatter_nd},
    {"TensorScatter", 0, infer_tensor_scatter, prepare_tensor_scatter},
    {"NonZero", 0, infer_non_zero, prepare_non_zero},
    {"Compress", 0, infer_compress, prepare_compress},
};

}  // namespace

std::span<const Op> scatter_ops() { return table; }

}  // namespace regie::ops
