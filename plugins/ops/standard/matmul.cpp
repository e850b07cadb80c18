// MatMul, Gemm and regie.FusedMatMul: one kernel for all three.
#include <algorithm>

#include "broadcast.h"
#include "functors.h"

namespace regie::ops {
namespace {

using GemmTypes = Join<Floats, WideInts>;

// Rank 1 counts as a row on the left and as a column on the right; the axis that this adds is not in the
// result.
template <class D>
std::vector<D> as_matrix(std::span<const D> shape, bool left, bool transposed) {
  std::vector<D> matrix(shape.begin(), shape.end());
  if (matrix.size() == 1) matrix.insert(left ? matrix.begin() : matrix.end(), D(1));
  if (transposed && shape.size() > 1) std::swap(matrix[matrix.size() - 1], matrix[matrix.size() - 2]);
  return matrix;
}

Shape matmul_shape(const Infer& infer, bool transpose_a, bool transpose_b) {
  if (infer.rank(0) == 0 || infer.rank(1) == 0) infer.bad("scalars cannot be multiplied as matrices");
  Shape a = as_matrix(infer.shape(0), true, transpose_a), b = as_matrix(infer.shape(1), false, transpose_b);
  if (!infer.agree(a.back(), b[b.size() - 2]))
    infer.bad("shapes " + infer.print(infer.shape(0)) + " and " + infer.print(infer.shape(1)) +
              " do not fit: the inner dimensions are " + infer.dims.print(a.back()) + " and " +
              infer.dims.print(b[b.size() - 2]));
  Shape y = infer.broadcast(std::span(a).first(a.size() - 2), std::span(b).first(b.size() - 2));
  if (infer.rank(0) > 1) y.push_back(a[a.size() - 2]);
  if (infer.rank(1) > 1) y.push_back(b.back());
  return y;
}

void infer_matmul(const Infer& infer) { infer.result(0, infer.elem(0), matmul_shape(infer, false, false)); }

void infer_gemm(const Infer& infer) {
  if (infer.rank(0) != 2 || infer.rank(1) != 2)
    infer.bad("both matrices must have rank 2, not " + std::to_string(infer.rank(0)) + " and " +
              std::to_string(infer.rank(1)));
  Shape y = matmul_shape(infer, infer.attrs.integer("transA", 0) != 0, infer.attrs.integer("transB", 0) != 0);
  check_addend(infer, 2, y);
  infer.result(0, infer.elem(0), y);
}

void infer_fused_matmul(const Infer& infer) {
  Activation(infer.op, infer.attrs);
  Shape y = matmul_shape(infer, infer.attrs.integer("transA", 0) != 0, infer.attrs.integer("transB", 0) != 0);
  check_addend(infer, 2, y);
  check_addend(infer, 3, y);
  infer.result(0, infer.elem(0), y);
}

struct Product {
  int64_t m, n, k, batches;
  int64_t a_row, a_inner, b_inner, b_column;  // strides in elements
  Dims batch_shape{};
  size_t batch_rank = 0;
  Walk<3> walk;  // batches: a, b, result, in matrices
  double alpha, beta;
};

template <class T>
KernelPtr product_kernel(Prepare& p, const Product& g, bool residual) {
  using A = Compute<T>;
  Index y = p.out_shape(0);
  Dims dense = dense_strides(y);
  Walk<2> add_c, add_r;
  bool addend = p.has(2) && g.beta != 0;
  if (addend) add_c = Walk<2>(y, {broadcast_strides(p.op, p.shape(2), y), dense});
  if (residual) add_r = Walk<2>(y, {broadcast_strides(p.op, p.shape(3), y), dense});
  constexpr bool direct = std::is_same_v<A, T>;
  int64_t total = sdk::count_of(p.out(0));
  if (!direct) p.scratch_bytes = static_cast<uint64_t>(total) * sizeof(A);
  return make_kernel([=, activation = Activation(p.op, p.attrs)](const Call& call) {
    A* sum;
    if constexpr (direct) {
      sum = call.out<T>(0);
    } else {
      sum = call.scratch<A>();
    }
    std::fill_n(sum, total, A(0));
    g.walk.rows([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t batch = 0; batch < count; ++batch) {
        const T* a = call.in<T>(0) + (at[0] + batch * step[0]) * g.m * g.k;
        const T* b = call.in<T>(1) + (at[1] + batch * step[1]) * g.k * g.n;
        A* c = sum + (at[2] + batch * step[2]) * g.m * g.n;
        for (int64_t i = 0; i < g.m; ++i, c += g.n) {
          if (g.b_column == 1) {
            for (int64_t k = 0; k < g.k; ++k) {
              A factor = a[i * g.a_row + k * g.a_inner];
              const T* row = b + k * g.b_inner;
              for (int64_t j = 0; j < g.n; ++j) c[j] += factor * A(row[j]);
            }
          } else {
            for (int64_t j = 0; j < g.n; ++j)
              for (int64_t k = 0; k < g.k; ++k)
                c[j] += A(a[i * g.a_row + k * g.a_inner]) * A(b[k * g.b_inner + j * g.b_column]);
          }
        }
      }
    });
    if (g.alpha != 1)
      for (int64_t i = 0; i < total; ++i) sum[i] = static_cast<A>(g.alpha * static_cast<Sum<T>>(sum[i]));
    auto add = [&](const Walk<2>& walk, const T* from, double factor) {
      walk.rows([&](const auto& at, int64_t count, const auto& step) {
        for (int64_t i = 0; i < count; ++i) {
          A& to = sum[at[1] + i * step[1]];
          A term = from[at[0] + i * step[0]];
          to += factor == 1 ? term : static_cast<A>(factor * static_cast<Sum<T>>(term));
        }
      });
    };
    if (addend) add(add_c, call.in<T>(2), g.beta);
    if (residual) add(add_r, call.in<T>(3), 1);
    if constexpr (is_float<T>) activation.apply(sum, total);
    if constexpr (!direct)
      for (int64_t i = 0; i < total; ++i) call.out<T>(0)[i] = T(sum[i]);
  });
}

// `beta` scales operand 2; `residual`: operand 3 is added.
KernelPtr prepare_product(Prepare& p, bool transpose_a, bool transpose_b, double alpha, double beta,
                          bool residual) {
  Index a_shape = p.shape(0), b_shape = p.shape(1);
  if (a_shape.empty() || b_shape.empty()) p.bad("scalars cannot be multiplied as matrices");
  auto a = as_matrix(a_shape, true, transpose_a), b = as_matrix(b_shape, false, transpose_b);
  Product g{};
  g.m = a[a.size() - 2], g.k = a.back(), g.n = b.back();
  if (b[b.size() - 2] != g.k)
    p.bad("shapes " + print_shape(a_shape) + " and " + print_shape(b_shape) + " do not fit each other");
  transpose_a = transpose_a && a_shape.size() > 1, transpose_b = transpose_b && b_shape.size() > 1;
  g.a_row = transpose_a ? 1 : g.k, g.a_inner = transpose_a ? g.m : 1;
  g.b_inner = transpose_b ? 1 : g.n, g.b_column = transpose_b ? g.k : 1;
  g.alpha = alpha, g.beta = beta;

  Index a_batch = Index(a).first(a.size() - 2), b_batch = Index(b).first(b.size() - 2);
  std::vector<int64_t> y;
  for (Index batch : {a_batch, b_batch}) widen(&y, batch);
  check_rank(p.op, y.size() + 2);
  g.walk = Walk<3>(
      y, {broadcast_strides(p.op, a_batch, y), broadcast_strides(p.op, b_batch, y), dense_strides(y)});
  if (a_shape.size() > 1) y.push_back(g.m);
  if (b_shape.size() > 1) y.push_back(g.n);
  p.expect_result(0, y);
  return p.dispatch(GemmTypes(), p.in(0).elem, [&]<class T>() { return product_kernel<T>(p, g, residual); });
}

KernelPtr prepare_matmul(Prepare& p) { return prepare_product(p, false, false, 1, 0, false); }

KernelPtr prepare_gemm(Prepare& p) {
  if (p.shape(0).size() != 2 || p.shape(1).size() != 2) p.bad("both matrices must have rank 2");
  return prepare_product(p, p.attrs.integer("transA", 0) != 0, p.attrs.integer("transB", 0) != 0,
                         p.attrs.number("alpha", 1), p.attrs.number("beta", 1), false);
}

KernelPtr prepare_fused_matmul(Prepare& p) {
  return prepare_product(p, p.attrs.integer("transA", 0) != 0, p.attrs.integer("transB", 0) != 0,
                         p.attrs.number("alpha", 1), 1, p.has(3));
}

constexpr Op table[] = {
    {"MatMul", 0, infer_matmul, prepare_matmul},
    {"Gemm", 0, infer_gemm, prepare_gemm},
    {"regie.FusedMatMul", 0, infer_fused_matmul, prepare_fused_matmul},
};

}  // namespace

std::span<const Op> matmul_ops() { return table; }

}  // namespace regie::ops
