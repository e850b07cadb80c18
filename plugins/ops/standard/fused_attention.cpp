// regie.Attention: softmax(scale * Q x K' + M) x V over the last two axes, the others broadcast.
#include <algorithm>
#include <cmath>
#include <limits>

#include "broadcast.h"

namespace regie::ops {
namespace {

// Q [..., S, D], K [..., T, D] (with transpose_k: [..., D, T]), V [..., T, E], M broadcasts to [..., S, T].
enum : uint32_t { kQ, kK, kV, kMask };

void infer_attention(const Infer& infer) {
  for (uint32_t i = kQ; i <= kV; ++i)
    if (infer.rank(i) < 2)
      infer.bad("operand " + std::to_string(i) + " has the shape " + infer.print(infer.shape(i)) +
                "; it needs a rank of at least 2");
  auto q = infer.shape(kQ), k = infer.shape(kK), v = infer.shape(kV);
  regie_dim depth = k[k.size() - 1], keys = k[k.size() - 2];
  if (infer.attrs.integer("transpose_k", 0) != 0) std::swap(depth, keys);
  if (!infer.agree(q.back(), depth))
    infer.bad("queries " + infer.print(q) + " and keys " + infer.print(k) + " do not fit: they have " +
              infer.dims.print(q.back()) + " and " + infer.dims.print(depth) + " features");
  if (!infer.agree(keys, v[v.size() - 2]))
    infer.bad("keys " + infer.print(k) + " and values " + infer.print(v) + " do not fit: there are " +
              infer.dims.print(keys) + " and " + infer.dims.print(v[v.size() - 2]));
  Shape y = infer.broadcast(q.first(q.size() - 2), k.first(k.size() - 2));
  Shape scores = y;
  scores.push_back(q[q.size() - 2]);
  scores.push_back(keys);
  check_addend(infer, kMask, scores);
  y = infer.broadcast(y, v.first(v.size() - 2));
  y.push_back(q[q.size() - 2]);
  y.push_back(v.back());
  infer.result(0, infer.elem(kQ), y);
}

struct Attention {
  int64_t queries, keys, depth, columns;
  int64_t k_key, k_depth;  // strides of K
  int64_t mask_row = 0, mask_key = 0;
  Walk<5> walk;  // batches: Q, K, V, result in matrices, the mask in elements
  double scale;
};

template <class T>
KernelPtr attention_kernel(Prepare& p, const Attention& a) {
  using A = Compute<T>;
  // The scores of one query, then its sums.
  p.scratch_bytes = static_cast<uint64_t>(a.keys + a.columns) * sizeof(A);
  return make_kernel([=, masked = p.has(kMask)](const Call& call) {
    A *score = call.scratch<A>(), *sum = score + a.keys;
    auto attend = [&](const T* q, const T* k, const T* v, const T* mask, T* y) {
      A most = -std::numeric_limits<A>::infinity();
      for (int64_t t = 0; t < a.keys; ++t) {
        A dot = 0;
        for (int64_t d = 0; d < a.depth; ++d) dot += A(q[d]) * A(k[t * a.k_key + d * a.k_depth]);
        score[t] = static_cast<A>(a.scale * static_cast<double>(dot));
        if (masked) score[t] += A(mask[t * a.mask_key]);
        most = std::max(most, score[t]);
      }
      double total = 0;
      for (int64_t t = 0; t < a.keys; ++t) total += score[t] = std::exp(score[t] - most);
      std::fill_n(sum, a.columns, A(0));
      for (int64_t t = 0; t < a.keys; ++t) {
        A share = score[t] / static_cast<A>(total);
        for (int64_t e = 0; e < a.columns; ++e) sum[e] += share * A(v[t * a.columns + e]);
      }
      for (int64_t e = 0; e < a.columns; ++e) y[e] = T(sum[e]);
    };
    a.walk.rows([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t batch = 0; batch < count; ++batch) {
        const T* q = call.in<T>(kQ) + (at[0] + batch * step[0]) * a.queries * a.depth;
        const T* k = call.in<T>(kK) + (at[1] + batch * step[1]) * a.keys * a.depth;
        const T* v = call.in<T>(kV) + (at[2] + batch * step[2]) * a.keys * a.columns;
        T* y = call.out<T>(0) + (at[3] + batch * step[3]) * a.queries * a.columns;
        const T* mask = masked ? call.in<T>(kMask) + at[4] + batch * step[4] : nullptr;
        for (int64_t s = 0; s < a.queries; ++s)
          attend(q + s * a.depth, k, v, masked ? mask + s * a.mask_row : nullptr, y + s * a.columns);
      }
    });
  });
}

KernelPtr prepare_attention(Prepare& p) {
  Index q = p.shape(kQ), k = p.shape(kK), v = p.shape(kV);
  if (q.size() < 2 || k.size() < 2 || v.size() < 2) p.bad("queries, keys and values need two axes each");
  const bool by_column = p.attrs.integer("transpose_k", 0) != 0;
  Attention a{};
  a.queries = q[q.size() - 2], a.depth = q.back(), a.columns = v.back();
  a.keys = by_column ? k.back() : k[k.size() - 2];
  a.k_key = by_column ? 1 : a.depth, a.k_depth = by_column ? a.keys : 1;
  a.scale = p.attrs.number("scale", 1);
  if ((by_column ? k[k.size() - 2] : k.back()) != a.depth || v[v.size() - 2] != a.keys)
    p.bad("shapes " + print_shape(q) + ", " + print_shape(k) + " and " + print_shape(v) +
          " do not fit each other");

  Index batches[] = {q.first(q.size() - 2), k.first(k.size() - 2), v.first(v.size() - 2)};
  std::vector<int64_t> y;
  for (Index batch : batches) widen(&y, batch);
  const size_t rank = y.size();
  check_rank(p.op, rank + 2);
  Dims mask{};
  if (p.has(kMask)) {
    std::vector<int64_t> scores = y;
    scores.push_back(a.queries), scores.push_back(a.keys);
    mask = broadcast_strides(p.op, p.shape(kMask), scores);
    a.mask_row = mask[rank], a.mask_key = mask[rank + 1];
  }
  a.walk = Walk<5>(y, {broadcast_strides(p.op, batches[0], y), broadcast_strides(p.op, batches[1], y),
                       broadcast_strides(p.op, batches[2], y), dense_strides(y), mask});
  y.push_back(a.queries), y.push_back(a.columns);
  p.expect_result(0, y);
  return p.dispatch(Floats(), p.in(kQ).elem, [&]<class T>() { return attention_kernel<T>(p, a); });
}

constexpr Op table[] = {
    {"regie.Attention", 0, infer_attention, prepare_attention},
};

}  // namespace

std::span<const Op> fused_attention_ops() { return table; }

}  // namespace regie::ops
