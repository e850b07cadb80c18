// Attention and RotaryEmbedding, which ONNX has from operator set 23 on.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op.h"
#include "sums.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- Attention ----
// Operands: Q, K, V, mask, past key, past value, lengths without padding. Results: Y, present key, present
// value, scores. Q, K and V are [batch, heads, sequence, size], or [batch, sequence, heads * size].

template <class D, class Divide>
struct Heads {
  D batch, heads, steps, size;
  static Heads of(std::span<const D> s, int64_t heads, Divide divide) {
    if (s.size() == 4) return {s[0], s[1], s[2], s[3]};
    return {s[0], static_cast<D>(heads), s[1], divide(s[2], heads)};
  }
};

void infer_attention(const Infer& infer) {
  const sdk::Dims& d = infer.dims;
  for (uint32_t i = 0; i < 3; ++i)
    if (infer.rank(i) != infer.rank(0) || (infer.rank(i) != 3 && infer.rank(i) != 4))
      infer.bad("query, key and value must all have rank 3 or all rank 4");
  const int64_t q_heads = infer.attrs.integer("q_num_heads", 0),
                kv_heads = infer.attrs.integer("kv_num_heads", 0);
  if (infer.rank(0) == 3 && (q_heads < 1 || kv_heads < 1))
    infer.bad("operands of rank 3 need the attributes q_num_heads and kv_num_heads");
  if (infer.has(4) != infer.has(5)) infer.bad("past key and past value go together");
  if (infer.has(6) && infer.has(4)) infer.bad("lengths and a past exclude each other");
  auto divide = [&](regie_dim a, int64_t b) { return d.floordiv(a, b); };
  using H = Heads<regie_dim, decltype(divide)>;
  const H q = H::of(infer.shape(0), q_heads, divide), k = H::of(infer.shape(1), kv_heads, divide);
  const H v = H::of(infer.shape(2), kv_heads, divide);
  if (!infer.agree(q.size, k.size) || !infer.agree(k.steps, v.steps))
    infer.bad("query " + infer.print(infer.shape(0)) + ", key " + infer.print(infer.shape(1)) +
              " and value " + infer.print(infer.shape(2)) + " do not fit");
  regie_dim total = k.steps;
  for (uint32_t i : {4u, 5u})
    if (infer.has(i) && infer.rank(i) != 4)
      infer.bad("past key and past value must have rank 4, not " + infer.print(infer.shape(i)));
  if (infer.has(4)) total = d.add(total, infer.shape(4)[2]);
  if (infer.rank(0) == 4) {
    infer.result(0, infer.elem(0), Shape{q.batch, q.heads, q.steps, v.size});
  } else {
    infer.result(0, infer.elem(0), Shape{q.batch, q.steps, d.mul(v.size, q_heads)});
  }
  infer.result(1, infer.elem(1), Shape{q.batch, k.heads, total, q.size});
  infer.result(2, infer.elem(2), Shape{q.batch, k.heads, total, v.size});
  infer.result(3, infer.elem(0), Shape{q.batch, q.heads, q.steps, total});
}

struct AttentionSetup {
  int64_t batch, q_heads, kv_heads, steps, fresh, past, size, v_size;
  bool flat;  // rank 3
  double scale, softcap;
  int64_t mode, left, right;
  bool causal, mask, mask_is_bool, lengths, scores, present_key, present_value;
  int64_t mask_columns = 0;
  std::array<int64_t, 3> mask_strides{};  // batch, head, row; in elements
  int64_t total() const { return past + fresh; }
};

template <class T>
struct AttentionRun {
  using A = Compute<T>;
  const AttentionSetup& s;
  const Call& call;

  // Row `step` of the key (operand 1) or value (2), from the past or from what is new.
  const T* row(uint32_t operand, int64_t b, int64_t h, int64_t step, int64_t width) const {
    if (step < s.past) return call.in<T>(operand + 3) + ((b * s.kv_heads + h) * s.past + step) * width;
    step -= s.past;
    const int64_t at = s.flat ? (b * s.fresh + step) * s.kv_heads + h : (b * s.kv_heads + h) * s.fresh + step;
    return call.in<T>(operand) + at * width;
  }

  void run() const {
    A* score = call.scratch<A>();
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.q_heads; ++h) {
        const int64_t kv = h / (s.q_heads / s.kv_heads);
        for (int64_t i = 0; i < s.steps; ++i) one(b, h, kv, i, score);
      }
    for (uint32_t k = 1; k <= 2; ++k) {
      if (!(k == 1 ? s.present_key : s.present_value)) continue;
      const int64_t width = k == 1 ? s.size : s.v_size;
      T* to = call.out<T>(k);
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.kv_heads; ++h)
          for (int64_t t = 0; t < s.total(); ++t, to += width)
            copy_bytes(to, row(k, b, h, t, width), static_cast<uint64_t>(width) * sizeof(T));
    }
  }

  void one(int64_t b, int64_t h, int64_t kv, int64_t i, A* score) const {
    const int64_t total = s.total();
    const int64_t at = s.flat ? (b * s.steps + i) * s.q_heads + h : (b * s.q_heads + h) * s.steps + i;
    const T* query = call.in<T>(0) + at * s.size;
    T* shown = s.scores ? call.out<T>(3) + ((b * s.q_heads + h) * s.steps + i) * total : nullptr;
    auto show = [&](int64_t mode) {
      if (shown && s.mode == mode)
        for (int64_t j = 0; j < total; ++j) shown[j] = T(score[j]);
    };
    const A scale = static_cast<A>(s.scale), cap = static_cast<A>(s.softcap);
    for (int64_t j = 0; j < total; ++j) score[j] = dot<A>(query, row(1, b, kv, j, s.size), s.size) * scale;
    show(0);
    if (cap > 0)
      for (int64_t j = 0; j < total; ++j) score[j] = cap * std::tanh(score[j] / cap);
    show(1);
    const A never = -std::numeric_limits<A>::infinity();
    if (s.mask) {
      const int64_t from = b * s.mask_strides[0] + h * s.mask_strides[1] + i * s.mask_strides[2];
      for (int64_t j = 0; j < total; ++j) {
        const int64_t column = s.mask_columns == 1 ? 0 : j;
        if (column >= s.mask_columns) {
          score[j] = never;
        } else if (s.mask_is_bool) {
          if (!call.in<Bool>(3)[from + column]) score[j] = never;
        } else {
          score[j] += A(call.in<T>(3)[from + column]);
        }
      }
    }
    const int64_t valid = s.lengths ? call.in<int64_t>(6)[b] : total;
    const int64_t position = i + (s.lengths ? valid - s.steps : s.past);
    for (int64_t j = 0; j < total; ++j)
      if (j >= valid || (s.causal && j > position) || (s.left >= 0 && position - j > s.left) ||
          (s.right >= 0 && j - position > s.right))
        score[j] = never;
    show(2);
    A most = never;
    for (int64_t j = 0; j < total; ++j) most = std::max(most, score[j]);
    double sum = 0;
    for (int64_t j = 0; j < total; ++j) sum += score[j] = most == never ? A(0) : std::exp(score[j] - most);
    // Where nothing may be attended, the result is zero.
    const A divisor = sum == 0 ? A(1) : static_cast<A>(sum);
    for (int64_t j = 0; j < total; ++j) score[j] /= divisor;
    show(3);
    A* result = score + total;
    std::fill_n(result, s.v_size, A(0));
    for (int64_t j = 0; j < total; ++j) {
      if (score[j] == A(0)) continue;
      const T* value = row(2, b, kv, j, s.v_size);
      for (int64_t k = 0; k < s.v_size; ++k) result[k] += score[j] * A(value[k]);
    }
    T* to = call.out<T>(0) + at * s.v_size;
    for (int64_t k = 0; k < s.v_size; ++k) to[k] = T(result[k]);
  }
};

KernelPtr prepare_attention(Prepare& p) {
  AttentionSetup s{};
  Index q = p.shape(0), k = p.shape(1), v = p.shape(2);
  s.flat = q.size() == 3;
  if (k.size() != q.size() || v.size() != q.size() || (q.size() != 3 && q.size() != 4))
    p.bad("the ranks do not fit");
  s.q_heads = s.flat ? p.attrs.integer("q_num_heads", 0) : q[1];
  s.kv_heads = s.flat ? p.attrs.integer("kv_num_heads", 0) : k[1];
  if (s.q_heads < 1 || s.kv_heads < 1 || s.q_heads % s.kv_heads != 0)
    p.bad("the numbers of heads do not fit");
  auto divide = [](int64_t a, int64_t b) { return a / b; };
  using H = Heads<int64_t, decltype(divide)>;
  const H hq = H::of(q, s.q_heads, divide), hk = H::of(k, s.kv_heads, divide),
          hv = H::of(v, s.kv_heads, divide);
  s.batch = hq.batch, s.steps = hq.steps, s.fresh = hk.steps, s.size = hq.size, s.v_size = hv.size;
  if (hk.size != s.size || hv.steps != s.fresh || hk.batch != s.batch || hv.batch != s.batch ||
      hk.heads != s.kv_heads || hv.heads != s.kv_heads)
    p.bad("query " + print_shape(q) + ", key " + print_shape(k) + " and value " + print_shape(v) +
          " do not fit");
  if (p.has(4)) {
    if (p.shape(4).size() != 4 || p.shape(5).size() != 4) p.bad("the past must have rank 4");
    s.past = p.shape(4)[2];
    if (sdk::count_of(p.in(4)) != s.batch * s.kv_heads * s.past * s.size ||
        sdk::count_of(p.in(5)) != s.batch * s.kv_heads * s.past * s.v_size)
      p.bad("the past does not fit");
  }
  for (uint32_t i : {1u, 2u, 4u, 5u})
    if (p.has(i) && p.in(i).elem != p.in(0).elem) p.unsupported("query, key and value of different types");
  // Products of nothing are 0, whatever they are scaled by.
  s.scale = p.attrs.number("scale", s.size ? 1 / std::sqrt(static_cast<double>(s.size)) : 1);
  s.softcap = p.attrs.number("softcap", 0);
  s.mode = p.attrs.integer("qk_matmul_output_mode", 0);
  s.left = p.attrs.integer("left_window_size", -1), s.right = p.attrs.integer("right_window_size", -1);
  s.causal = p.attrs.integer("is_causal", 0) != 0;
  s.mask = p.has(3), s.lengths = p.has(6);
  s.present_key = p.wants(1), s.present_value = p.wants(2), s.scores = p.wants(3);
  if (s.mask) {
    Index m = p.shape(3);
    s.mask_is_bool = p.in(3).elem == REGIE_BOOL;
    if (m.empty() || m.size() > 4 || (!s.mask_is_bool && p.in(3).elem != p.in(0).elem))
      p.bad("the mask does not fit");
    s.mask_columns = m.back();
    int64_t stride = m.back();
    const int64_t sizes[] = {s.batch, s.q_heads, s.steps};
    for (size_t back = 2; back <= m.size(); ++back) {
      const int64_t size = m[m.size() - back];
      if (size != 1 && size != sizes[4 - back]) p.bad("the mask " + print_shape(m) + " does not fit");
      s.mask_strides[4 - back] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  if (s.lengths && (p.in(6).elem != REGIE_I64 || sdk::count_of(p.in(6)) != s.batch))
    p.bad("needs one i64 length an item of the batch");
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    p.scratch_bytes = static_cast<uint64_t>(s.total() + s.v_size) * sizeof(Compute<T>);
    return make_kernel([s](const Call& call) { AttentionRun<T>{s, call}.run(); });
  });
}

// ---- RotaryEmbedding ----

void infer_rotary(const Infer& infer) {
  if (infer.rank(0) != 3 && infer.rank(0) != 4) infer.bad("the input needs rank 3 or 4");
  if (infer.rank(0) == 3 && infer.attrs.integer("num_heads", 0) < 1)
    infer.bad("an input of rank 3 needs the attribute num_heads");
  auto cosine = infer.shape(1), sine = infer.shape(2);
  bool alike = cosine.size() == sine.size() && !cosine.empty();
  for (size_t i = 0; alike && i < cosine.size(); ++i) alike = infer.agree(cosine[i], sine[i]);
  if (!alike)
    infer.bad("the caches must have one shape, not " + infer.print(cosine) + " and " + infer.print(sine));
  infer.result(0, infer.elem(0), infer.shape(0));
}

KernelPtr prepare_rotary(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const bool flat = x.size() == 3, ids = p.has(3), interleaved = p.attrs.integer("interleaved", 0) != 0;
  if (!flat && x.size() != 4) p.bad("the input needs rank 3 or 4");
  const int64_t heads = flat ? p.attrs.integer("num_heads", 0) : x[1];
  if (flat && (heads < 1 || x[2] % heads != 0)) p.bad("attribute num_heads does not fit");
  const int64_t batch = x[0], steps = x[flat ? 1 : 2], size = flat ? x[2] / heads : x[3];
  int64_t rotated = p.attrs.integer("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  const int64_t half = rotated / 2;
  Index cache = p.shape(1);
  if (cache.empty() || cache.back() != half || rotated > size ||
      !std::equal(cache.begin(), cache.end(), p.shape(2).begin(), p.shape(2).end()))
    p.bad("the caches " + print_shape(cache) + " and " + print_shape(p.shape(2)) + " do not fit");
  const int64_t rows = half == 0 ? 0 : sdk::count_of(p.in(1)) / half;
  if (ids ? sdk::count_of(p.in(3)) != batch * steps || p.in(3).elem != REGIE_I64 : rows != batch * steps)
    p.bad("the positions do not fit");
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t t = 0; t < steps; ++t) {
          const int64_t row = ids ? call.in<int64_t>(3)[b * steps + t] : b * steps + t;
          if (row < 0 || row >= rows)
            throw sdk::Failure(REGIE_INVALID_INPUT, "RotaryEmbedding: position " + std::to_string(row) +
                                                        " is outside of the cache");
          const T *cosine = call.in<T>(1) + row * half, *sine = call.in<T>(2) + row * half;
          for (int64_t h = 0; h < heads; ++h) {
            const int64_t at = (flat ? (b * steps + t) * heads + h : (b * heads + h) * steps + t) * size;
            const T* from = call.in<T>(0) + at;
            T* to = call.out<T>(0) + at;
            for (int64_t i = 0; i < half; ++i) {
              const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : half + i;
              const A a = from[first], c = from[second], co = cosine[i], si = sine[i];
              to[first] = T(co * a - si * c);
              to[second] = T(si * a + co * c);
            }
            for (int64_t i = rotated; i < size; ++i) to[i] = from[i];
          }
        }
    });
  });
}

constexpr Op table[] = {
    {"Attention", 0, infer_attention, prepare_attention},
    {"RotaryEmbedding", 0, infer_rotary, prepare_rotary},
};

}  // namespace

std::span<const Op> attention_ops() { return table; }

}  // namespace regie::ops
