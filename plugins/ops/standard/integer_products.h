// Products of 8-bit integers less their zero points: what MatMulInteger, QLinearMatMul and regie.QMatMul have
// in common, and the convolutions of the same kinds. What becomes of a sum is the operator's own: a type
// Finish, made from (const Prepare&, channels), which checks the operands that it reads, and called with
// (const Call&, place in the result, sum, channel). The channels are the result's columns, or filters.
#pragma once

#include <algorithm>

#include "broadcast.h"
#include "window.h"

namespace regie::ops {

using Bytes = Types<uint8_t, int8_t>;

// Which operands the factors and their zero points are; zero points may be absent.
struct Factors {
  uint32_t a, a_zero, b, b_zero;
};

// One for all, or one a row of the left factor, or a channel.
inline int64_t zero_point(const regie_tensor& t, int64_t at) {
  if (sdk::count_of(t) == 1) at = 0;
  return t.elem == REGIE_U8 ? static_cast<const uint8_t*>(t.data)[at]
                            : static_cast<const int8_t*>(t.data)[at];
}

inline void check_zero_point(const Prepare& p, uint32_t i, int64_t count) {
  if (!p.has(i)) return;
  if (const int64_t n = sdk::count_of(p.in(i)); n != 1 && n != count)
    p.bad("operand " + std::to_string(i) + " has " + std::to_string(n) + " zero points, not 1 or " +
          std::to_string(count));
}

// The integer of the result's type that a sum, scaled, rounds to.
inline void write_byte(const Call& call, int64_t i, double rounded, regie_elem elem) {
  if (elem == REGIE_U8)
    call.out<uint8_t>(0)[i] = saturated<uint8_t>(rounded);
  else
    call.out<int8_t>(0)[i] = saturated<int8_t>(rounded);
}

// `turned`: the right factor's columns are its last dimension but one.
inline Shape integer_matmul_shape(const Infer& infer, const Factors& at, bool turned) {
  auto a = infer.shape(at.a), b = infer.shape(at.b);
  if (a.size() < 2 || b.size() < 2) infer.unsupported("operands of a rank below 2");
  if (!infer.agree(a.back(), b[b.size() - (turned ? 1 : 2)])) infer.bad("the inner dimensions differ");
  Shape y = infer.broadcast(a.first(a.size() - 2), b.first(b.size() - 2));
  y.push_back(a[a.size() - 2]);
  y.push_back(b[b.size() - (turned ? 2 : 1)]);
  return y;
}

template <class Finish>
KernelPtr integer_matmul(Prepare& p, const Factors& at, bool turned) {
  Index a = p.shape(at.a), b = p.shape(at.b);
  if (a.size() < 2 || b.size() < 2) p.unsupported("operands of a rank below 2");
  const int64_t m = a[a.size() - 2], k = a.back(), n = b[b.size() - (turned ? 2 : 1)];
  if (b[b.size() - (turned ? 1 : 2)] != k) p.bad("the inner dimensions differ");
  Index a_batch = a.first(a.size() - 2), b_batch = b.first(b.size() - 2);
  std::vector<int64_t> y;
  for (Index batch : {a_batch, b_batch}) widen(&y, batch);
  check_rank(p.op, y.size() + 2);
  Walk<3> walk(y,
               {broadcast_strides(p.op, a_batch, y), broadcast_strides(p.op, b_batch, y), dense_strides(y)});
  y.insert(y.end(), {m, n});
  p.expect_result(0, y);
  check_zero_point(p, at.a_zero, m);
  check_zero_point(p, at.b_zero, n);
  const bool a_zero = p.has(at.a_zero), b_zero = p.has(at.b_zero);
  const int64_t down = turned ? 1 : n, across = turned ? k : 1;
  return p.dispatch(Bytes(), p.in(at.a).elem, [&]<class A>() {
    return p.dispatch(Bytes(), p.in(at.b).elem, [&]<class B>() {
      return make_kernel([=, finish = Finish(p, n)](const Call& call) {
        walk.rows([&](const auto& start, int64_t count, const auto& step) {
          for (int64_t g = 0; g < count; ++g) {
            const A* left = call.in<A>(at.a) + (start[0] + g * step[0]) * m * k;
            const B* right = call.in<B>(at.b) + (start[1] + g * step[1]) * k * n;
            for (int64_t i = 0; i < m; ++i) {
              const int64_t za = a_zero ? zero_point(call.operand(at.a_zero), i) : 0;
              for (int64_t j = 0; j < n; ++j) {
                const int64_t zb = b_zero ? zero_point(call.operand(at.b_zero), j) : 0;
                int64_t sum = 0;
                for (int64_t t = 0; t < k; ++t)
                  sum += (left[i * k + t] - za) * (right[t * down + j * across] - zb);
                finish(call, ((start[2] + g * step[2]) * m + i) * n + j, sum, j);
              }
            }
          }
        });
      });
    });
  });
}

inline Shape integer_conv_shape(const Infer& infer, const Factors& at) {
  auto x = infer.shape(at.a), w = infer.shape(at.b);
  if (x.size() < 3 || w.size() != x.size()) infer.bad("input and weight must have one rank of at least 3");
  Window window(infer.op, infer.attrs, x.size() - 2);
  const int64_t group = infer.attrs.integer("group", 1);
  if (group < 1) infer.bad("attribute 'group' is " + std::to_string(group));
  if (!infer.agree(x[1], infer.dims.mul(w[1], group))) infer.bad("the channels do not fit");
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < window.rank(); ++i) y.push_back(window.result_dim(infer, i, x[2 + i], w[2 + i]));
  return y;
}

template <class Finish>
KernelPtr integer_conv(Prepare& p, const Factors& at) {
  Index x = p.shape(at.a), w = p.shape(at.b);
  if (x.size() < 3 || w.size() != x.size()) p.bad("input and weight must have one rank of at least 3");
  Window window(p.op, p.attrs, x.size() - 2);
  window.kernel.assign(w.begin() + 2, w.end());
  p.expect_result(0, window.resolved_result(x[0], w[0], x.subspan(2)));
  const int64_t group = p.attrs.integer("group", 1), filters = w[0], channels = w[1];
  if (group < 1 || x[1] != channels * group || filters % group != 0) p.bad("the channels do not fit");
  check_zero_point(p, at.a_zero, 1);
  check_zero_point(p, at.b_zero, filters);
  Taps taps(window, p.out_shape(0).subspan(2), x.subspan(2));
  p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(int64_t);
  const bool x_zero = p.has(at.a_zero), w_zero = p.has(at.b_zero);
  return p.dispatch(Bytes(), p.in(at.a).elem, [&]<class X>() {
    return p.dispatch(Bytes(), p.in(at.b).elem, [&]<class W>() {
      return make_kernel([=, batch = x[0], finish = Finish(p, filters)](const Call& call) {
        auto* sum = call.scratch<int64_t>();
        const int64_t zx = x_zero ? zero_point(call.operand(at.a_zero), 0) : 0;
        for (int64_t plane = 0; plane < batch * filters; ++plane) {
          const int64_t f = plane % filters, n = plane / filters, first = f / (filters / group) * channels;
          const int64_t zw = w_zero ? zero_point(call.operand(at.b_zero), f) : 0;
          std::fill_n(sum, taps.dense_size(), 0);
          for (int64_t c = 0; c < channels; ++c) {
            const X* from = call.in<X>(at.a) + (n * channels * group + first + c) * taps.strided_size();
            for (int64_t tap = 0; tap < taps.count(); ++tap) {
              const int64_t factor = call.in<W>(at.b)[(f * channels + c) * taps.count() + tap] - zw;
              taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
                for (int64_t i = 0; i < count; ++i) sum[out + i] += factor * (from[in + i * step] - zx);
              });
            }
          }
          for (int64_t i = 0; i < taps.dense_size(); ++i)
            finish(call, plane * taps.dense_size() + i, sum[i], f);
        }
      });
    });
  });
}

}  // namespace regie::ops
