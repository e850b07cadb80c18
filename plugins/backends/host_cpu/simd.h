// The inner loops of host_cpu's own kernels, over contiguous floats, compiled for several instruction sets
// (simd_*.cpp, all from simd_kernels.inl) and chosen once for the machine at hand.
//
// NaN goes through as ONNX has it. Nothing here allocates, throws or starts threads. Destination and sources
// may be the same array, never overlap otherwise.
#pragma once

#include <cstdint>

namespace host_cpu {

enum class Unary : uint32_t {
  kAbs,
  kCeil,
  kClip,
  kElu,
  kErf,
  kExp,
  kFloor,
  kGelu,
  kGeluTanh,
  kHardSigmoid,
  kHardSwish,
  kLeakyRelu,
  kLog,
  kMish,
  kNeg,
  kReciprocal,
  kRelu,
  kRound,
  kSelu,
  kSigmoid,
  kSign,
  kSoftplus,
  kSoftsign,
  kSqrt,
  kSwish,
  kTanh,
  kThresholdedRelu
};
enum class Binary : uint32_t { kAdd, kSub, kMul, kDiv, kMax, kMin, kPRelu };
enum class Fold : uint32_t { kSum, kMax, kMin, kProd, kSumAbs, kSumSquare };

struct Simd {
  void (*unary)(Unary op, float* y, const float* x, int64_t n, float a, float b);
  // `steps`: 0: the one element of a is meant throughout; likewise b.
  void (*binary)(Binary op, float* y, const float* a, const float* b, int64_t n, int a_step, int b_step);
  // y = x * scale + shift, element by element, or with one scale and shift.
  void (*affine)(float* y, const float* x, const float* scale, const float* shift, int64_t n);
  void (*affine_one)(float* y, const float* x, float scale, float shift, int64_t n);
  float (*fold_row)(Fold op, const float* x, int64_t n);
  void (*fold_into)(Fold op, float* acc, const float* x, int64_t n);
  void (*softmax_row)(float* y, const float* x, int64_t n, bool log);
  // For attention, in place: x = exp(x * scale + mask - max) where a mask is given; returns the sum.
  float (*exp_row)(float* x, const float* mask, float scale, int64_t n);
  // y = (x - mean) / sqrt(variance + epsilon) * scale + shift; NULL: 1 and 0.
  void (*normalise_row)(float* y, const float* x, const float* scale, const float* shift, int64_t n,
                        float epsilon);
  void (*moments)(const float* x, int64_t n, double* sum, double* square);
  // y[b * y_step + i] += sum over j of w[i * columns + j] * x[b * columns + j], for each of the batch.
  void (*gemv_dot)(float* y, int64_t y_step, const float* w, const float* x, int64_t rows, int64_t columns,
                   int64_t batch);
  // y[j] += sum over i of x[i] * w[i * width + j], for `width` of them.
  void (*gemv_columns)(float* y, const float* w, const float* x, int64_t width, int64_t columns);
  // y[j] = sum over the rows of x[row * step + j].
  void (*sum_rows)(float* y, const float* x, int64_t rows, int64_t step, int64_t n);
  // Gates i, o, f, c of n each (already summed): cell and hidden state of one step.
  void (*lstm_step)(const float* i, const float* o, const float* f, const float* c, float* cell,
                    float* hidden, int64_t n);
  // h = (1 - sigmoid(z)) * tanh(h~) + sigmoid(z) * h.
  void (*gru_mix)(const float* z, const float* candidate, float* hidden, int64_t n);
};

// The instruction sets that loops are compiled for; the best that this processor has.
enum class CpuLevel { kBase, kAvx2, kAvx512 };
CpuLevel cpu_level();
const Simd& simd();

extern const Simd simd_base;
#if defined(__x86_64__)
extern const Simd simd_avx2, simd_avx512;
#endif

}  // namespace host_cpu
