// Scaled dot-product attention without the whole matrix of scores: a block of rows of one head at a time, on
// all threads, with the scores of a block in a corner of scratch that stays in the cache.
#include <algorithm>
#include <atomic>
#include <memory>

#include "native.h"
#include "parallel.h"
#include "primitive.h"
#include "product.h"
#include "simd.h"

namespace host_cpu {
namespace {

struct Attention {
  int64_t batch = 1, s = 0, t = 0, d = 0, e = 0, block = 0;
  bool keys_transposed = false, masked = false;
  float scale = 1;
  std::vector<int64_t> lead, mask_steps;  // of the leading axes
  int64_t mask_row = 0;
  uint32_t threads = 1;
  // Of a whole block of rows, and of the last one, which may be shorter.
  struct Products {
    Products(int64_t rows, const Attention& a)
        : scores({rows, a.t, a.d, !a.keys_transposed, false}, a.threads, 1),
          sums({rows, a.e, a.t, false, false}, a.threads, 1) {}
    Product scores, sums;
    uint64_t scratch_bytes() const { return std::max(scores.scratch_bytes(), sums.scratch_bytes()); }
  };
  std::shared_ptr<const Products> whole, last;

  // Of a thread: scores, and a sum a row; then the products' own.
  uint64_t block_bytes() const { return round_up(static_cast<uint64_t>(block * (t + 1)) * sizeof(float)); }
  uint64_t thread_bytes() const {
    return block_bytes() + std::max(whole->scratch_bytes(), last->scratch_bytes());
  }
  int64_t mask_offset(int64_t index) const {
    int64_t at = 0;
    for (size_t i = lead.size(); i-- > 0;) {
      at += index % lead[i] * mask_steps[i];
      index /= lead[i];
    }
    return at;
  }

  void run(const regie_launch& l) const {
    const int64_t blocks = (s + block - 1) / block;
    std::atomic<dnnl_status_t> failed{dnnl_success};
    parallel(threads, batch * blocks, block * t * d / 4, [&](int64_t begin, int64_t end) {
      const auto thread = static_cast<uint32_t>(omp_get_thread_num());
      std::byte* scratch = static_cast<std::byte*>(l.scratch) + thread_bytes() * thread;
      auto* scores = reinterpret_cast<float*>(scratch);
      std::byte* inner = scratch + block_bytes();
      float* sums = scores + block * t;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / blocks, first = i % blocks * block, rows = std::min(block, s - first);
        const float* q = in_data<float>(l, 0) + (b * s + first) * d;
        const float* k = in_data<float>(l, 1) + b * t * d;
        const float* v = in_data<float>(l, 2) + b * t * e;
        float* y = out_data<float>(l, 0) + (b * s + first) * e;
        const Products& products = rows == block ? *whole : *last;
        if (dnnl_status_t status = products.scores.run(thread, q, k, scores, inner)) failed = status;
        for (int64_t row = 0; row < rows; ++row) {
          const float* mask =
              masked ? in_data<float>(l, 3) + mask_offset(b) + (first + row) * mask_row : nullptr;
          sums[row] = simd().exp_row(scores + row * t, mask, scale, t);
        }
        if (dnnl_status_t status = products.sums.run(thread, scores, v, y, inner)) failed = status;
        for (int64_t row = 0; row < rows; ++row)
          simd().affine_one(y + row * e, y + row * e, 1.f / sums[row], 0.f, e);
      }
    });
    check(failed, "running a product of an attention");
  }
};

NativePtr make_attention(const NativeRequest& r) {
  for (size_t i = 0; i < 3; ++i) r.need_float(i);
  r.need_float_results();
  const NativeTensor &q = r.in(0), &k = r.in(1), &v = r.in(2), &y = r.out(0);
  const size_t rank = q.dims.size();
  if (rank < 2 || k.dims.size() != rank || v.dims.size() != rank || y.dims.size() != rank)
    refuse("the operands differ in rank");
  Attention a;
  a.threads = r.threads;
  a.keys_transposed = r.attrs.integer("transpose_k", 0) != 0;
  a.scale = static_cast<float>(r.attrs.number("scale", 1));
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (q.dims[i] != k.dims[i] || q.dims[i] != v.dims[i] || q.dims[i] != y.dims[i])
      refuse("the leading dimensions of the operands differ");
    a.lead.push_back(q.dims[i]);
    a.batch *= q.dims[i];
  }
  a.s = q.dims[rank - 2];
  a.d = q.dims[rank - 1];
  a.t = v.dims[rank - 2];
  a.e = v.dims[rank - 1];
  const int64_t kt = k.dims[rank - (a.keys_transposed ? 1 : 2)],
                kd = k.dims[rank - (a.keys_transposed ? 2 : 1)];
  if (kt != a.t || kd != a.d || y.dims[rank - 2] != a.s || y.dims[rank - 1] != a.e)
    refuse("the operands' sizes do not fit");
  if (a.s == 0 || a.t == 0 || a.d == 0 || a.e == 0) refuse("a dimension is 0");
  if (r.has(3)) {
    r.need_float(3);
    std::vector<int64_t> dims(rank, 1);
    const NativeTensor& m = r.in(3);
    if (m.dims.size() > rank) refuse("the mask has a higher rank than the operands");
    std::copy(m.dims.begin(), m.dims.end(), dims.end() - static_cast<std::ptrdiff_t>(m.dims.size()));
    const auto strides = row_major_strides(dims);
    for (size_t i = 0; i < rank; ++i) {
      const int64_t size = i + 2 < rank ? q.dims[i] : i + 2 == rank ? a.s : a.t;
      if (dims[i] != 1 && dims[i] != size) refuse("the mask does not broadcast to the scores");
      if (i + 2 < rank) a.mask_steps.push_back(dims[i] == 1 ? 0 : strides[i]);
    }
    if (dims[rank - 1] != a.t) refuse("the mask is one value a row");
    a.mask_row = dims[rank - 2] == 1 ? 0 : strides[rank - 2];
    a.masked = true;
  }
  // Rows whose scores fit into half a second-level cache, or less where threads would stay idle.
  constexpr int64_t kCache = 128 * 1024;
  a.block = std::clamp<int64_t>(kCache / a.t / 16 * 16, 16, 256);
  const int64_t wanted = 2 * static_cast<int64_t>(a.threads);
  while (a.block > 16 && a.batch * ((a.s + a.block - 1) / a.block) < wanted) a.block /= 2;
  a.block = std::min(a.block, a.s);
  a.whole = a.last = std::make_shared<Attention::Products>(a.block, a);
  if (const int64_t rest = a.s % a.block) a.last = std::make_shared<Attention::Products>(rest, a);
  const uint64_t scratch = a.thread_bytes() * a.threads;
  return native_kernel([a = std::move(a)](const regie_launch& l) { a.run(l); }, scratch);
}

constexpr NativeOp kOps[] = {{"regie.Attention", make_attention, Takes::kPlain, false, 64}};

}  // namespace

std::span<const NativeOp> native_attention() { return kOps; }

}  // namespace host_cpu
