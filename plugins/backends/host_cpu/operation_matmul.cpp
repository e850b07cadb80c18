// Matrix products with what is added to them.
#include <algorithm>
#include <array>

#include "operation_parts.h"

namespace host_cpu {
namespace {

// Right-aligned to `rank` axes with 1 in front.
std::vector<int64_t> aligned(std::span<const int64_t> dims, size_t rank) {
  std::vector<int64_t> out(rank, 1);
  std::copy(dims.begin(), dims.end(), out.end() - static_cast<std::ptrdiff_t>(dims.size()));
  return out;
}

dnnl_memory_desc_t matrix(std::vector<int64_t> dims, bool transposed) {
  dnnl_memory_desc_t desc = plain(dims);
  if (!transposed) return desc;
  const size_t n = dims.size();
  std::swap(desc.dims[n - 1], desc.dims[n - 2]);
  std::swap(desc.padded_dims[n - 1], desc.padded_dims[n - 2]);
  std::swap(desc.format_desc.blocking.strides[n - 1], desc.format_desc.blocking.strides[n - 2]);
  return desc;
}

// An operand that broadcasts to `result`, as oneDNN is to see it beside dst. `row`: one value a column, or
// one in all.
dnnl_memory_desc_t addend(const Operation& op, const regie_tensor& t, std::span<const int64_t> result,
                          bool flat, bool* row) {
  const auto rank = static_cast<size_t>(op.dst.ndims);
  if (static_cast<size_t>(t.rank) > result.size()) refuse("an addend has more dimensions than the result");
  std::vector<int64_t> dims = aligned(regie::sdk::dims_of(t), result.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && dims[i] != result[i]) refuse("an addend does not broadcast to the result");
  *row = std::all_of(dims.begin(), dims.end() - 1, [](int64_t d) { return d == 1; });
  if (*row) return plain(aligned({&dims.back(), 1}, rank));
  if (!flat || dims.size() == rank) return plain(dims);
  if (!std::equal(dims.begin(), dims.end(), result.begin())) refuse("an addend broadcasts along inner axes");
  return op.dst;
}

// alpha * A * B + beta * C + R, then the activation. The usual case is oneDNN's own bias and sum; the rest
// are post-ops.
void add_post(Operation& op, const Request& r, std::span<const int64_t> result, bool flat) {
  const double alpha = r.attrs.number("alpha", 1), beta = r.attrs.number("beta", 1);
  // oneDNN 2.6's gemm:jit leaves the result as it finds it then.
  if (alpha == 0) refuse("the product counts for nothing (alpha is 0)");
  bool row = false;
  if (const regie_tensor* c = beta != 0 ? r.operand(2) : nullptr) {
    dnnl_memory_desc_t memory = addend(op, *c, result, flat, &row);
    if (alpha == 1 && beta == 1 && row && memory.dims[memory.ndims - 1] == op.dst.dims[op.dst.ndims - 1]) {
      op.bias = memory;
      op.bias_operand = 2;
    } else {
      op.scale = static_cast<float>(alpha / beta);
      op.post.push_back({PostOp::kBinaryAdd, dnnl_alg_kind_undef, 0, 0, 2, memory});
      if (beta != 1) append_eltwise(op.post, dnnl_eltwise_linear, beta, 0);
    }
  } else {
    op.scale = static_cast<float>(alpha);
  }
  if (const regie_tensor* residual = r.operand(3)) {
    dnnl_memory_desc_t memory = addend(op, *residual, result, flat, &row);
    const regie_tensor& y = r.results[0];
    if (residual->rank == y.rank && std::equal(y.dims, y.dims + y.rank, residual->dims)) {
      op.residual_operand = 3;
      op.post.push_back({PostOp::kSum, dnnl_alg_kind_undef, 1, 0, REGIE_NONE, {}});
    } else {
      op.post.push_back({PostOp::kBinaryAdd, dnnl_alg_kind_undef, 0, 0, 3, memory});
    }
  }
  append_activation(r.attrs, op.post);
  if (std::count_if(op.post.begin(), op.post.end(),
                    [](const PostOp& p) { return p.alg == dnnl_eltwise_linear; }) > 1)
    refuse("it would need two linear post-ops");
}

}  // namespace

Operation matmul(const Request& r) {
  Operation op;
  op.kind = Operation::kMatMul;
  const regie_tensor &a = need(r, 0), &b = need(r, 1), &y = r.results[0];
  const bool trans_a = r.attrs.integer("transA", 0) != 0, trans_b = r.attrs.integer("transB", 0) != 0;
  if (a.rank < 1 || b.rank < 1) refuse("an operand is a scalar");
  if ((trans_a && a.rank < 2) || (trans_b && b.rank < 2)) refuse("a vector cannot be transposed");
  std::vector<int64_t> da(a.dims, a.dims + a.rank), db(b.dims, b.dims + b.rank);
  if (a.rank == 1) da.insert(da.begin(), 1);
  if (b.rank == 1) db.push_back(1);
  const int64_t m = trans_a ? da.back() : da[da.size() - 2], k = trans_a ? da[da.size() - 2] : da.back();
  const int64_t n = trans_b ? db[db.size() - 2] : db.back(), kb = trans_b ? db.back() : db[db.size() - 2];
  if (k != kb) refuse("the inner dimensions differ");
  // The result's dimensions with the axes that vectors do not have put back.
  std::vector<int64_t> dy;
  const size_t rank = std::max(da.size(), db.size());
  auto batch_a = aligned({da.data(), da.size() - 2}, rank - 2),
       batch_b = aligned({db.data(), db.size() - 2}, rank - 2);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (batch_a[i] != batch_b[i] && batch_a[i] != 1 && batch_b[i] != 1)
      refuse("the batch dimensions do not broadcast");
    dy.push_back(batch_a[i] == 1 ? batch_b[i] : batch_a[i]);
  }
  dy.push_back(m);
  dy.push_back(n);
  if (product(dy) != product(regie::sdk::dims_of(y)))
    refuse("the result's size does not follow from the operands");
  const bool one_b = std::all_of(batch_b.begin(), batch_b.end(), [](int64_t d) { return d == 1; });
  const bool flat = one_b && (rank == 2 || !trans_a);
  if (flat) {
    const int64_t rows = rank == 2 ? m : static_cast<int64_t>(product({dy.data(), dy.size() - 1}));
    op.src = rank == 2 ? matrix(da, trans_a) : plain(std::array{rows, k});
    op.weights = matrix({db.end() - 2, db.end()}, trans_b);
    op.dst = plain(std::array{rows, n});
  } else {
    op.src = matrix(aligned(da, rank), trans_a);
    op.weights = matrix(aligned(db, rank), trans_b);
    op.dst = plain(dy);
  }
  op.weights_operand = 1;
  add_post(op, r, dy, flat);
  op.flops = 2 * product(dy) * static_cast<double>(k);
  return op;
}

}  // namespace host_cpu
