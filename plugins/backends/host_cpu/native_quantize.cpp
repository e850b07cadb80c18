// DynamicQuantizeLinear: the range of a tensor, then its bytes.
#include <algorithm>
#include <array>
#include <cmath>

#include "native.h"
#include "parallel.h"
#include "pointwise_loops.h"

namespace host_cpu {
namespace {

constexpr int64_t kChunk = 512;

struct Extent {
  float low = 0, high = 0;  // there is always 0 in it
};

// In lanes of their own, which the compiler makes vectors of.
Extent extent_of(const float* x, int64_t count) {
  constexpr int64_t kLanes = 64;
  std::array<float, kLanes> low{}, high{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) {
      const auto lane = static_cast<size_t>(k);
      low[lane] = x[i + k] < low[lane] ? x[i + k] : low[lane];
      high[lane] = x[i + k] > high[lane] ? x[i + k] : high[lane];
    }
  Extent e{*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
  for (; i < count; ++i) {
    e.low = x[i] < e.low ? x[i] : e.low;
    e.high = x[i] > e.high ? x[i] : e.high;
  }
  return e;
}

NativePtr make_dynamic_quantize(const NativeRequest& r) {
  r.need_float(0);
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.dims != y.dims || y.elem != REGIE_U8) refuse("operand and result differ");
  if (r.out(1).elem != REGIE_F32 || r.out(1).count() != 1 || r.out(2).elem != REGIE_U8 ||
      r.out(2).count() != 1)
    refuse("scale or zero point are not of their types");
  const Loop loop = find_loop(Code::kQuantize, Lane::kF32, Lane::kU8);
  if (!loop) refuse("there is no loop for it");
  const int64_t count = x.count();
  const uint32_t threads = r.threads;
  const auto scratch = static_cast<uint64_t>(threads) * sizeof(Extent);
  return native_kernel(
      [=](const regie_launch& l) {
        const auto* from = in_data<float>(l, 0);
        auto* parts = static_cast<Extent*>(l.scratch);
        std::fill_n(parts, threads, Extent{});
        parallel(threads, threads, count / threads, [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            const int64_t first = count * t / threads, last = count * (t + 1) / threads;
            parts[t] = extent_of(from + first, last - first);
          }
        });
        Extent e;
        for (uint32_t t = 0; t < threads; ++t)
          e = {std::min(e.low, parts[t].low), std::max(e.high, parts[t].high)};
        const float scale = e.high == e.low ? 1.0f : (e.high - e.low) / 255.0f;
        const float zero = std::nearbyint(-e.low / scale);
        *out_data<float>(l, 1) = scale;
        const auto byte = static_cast<uint8_t>(zero > 0 ? std::min(zero, 255.0f) : 0.0f);
        *out_data<uint8_t>(l, 2) = byte;
        std::array<float, kChunk> scales;
        std::array<uint8_t, kChunk> zeros;
        scales.fill(scale);
        zeros.fill(byte);
        auto* to = out_data<uint8_t>(l, 0);
        parallel(threads, (count + kChunk - 1) / kChunk, kChunk, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin * kChunk; at < std::min(end * kChunk, count); at += kChunk)
            loop({to + at, {from + at, scales.data(), zeros.data()}, std::min(kChunk, count - at), 0, 0});
        });
      },
      scratch);
}

constexpr NativeOp kOps[] = {{"DynamicQuantizeLinear", make_dynamic_quantize, Takes::kPlain, false, 2}};

}  // namespace

std::span<const NativeOp> native_quantize() { return kOps; }

}  // namespace host_cpu
