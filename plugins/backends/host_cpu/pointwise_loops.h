// The inner loops of element-wise kernels: each does one operator over a run of elements that lies in the
// first-level cache. They are compiled once for each level of instructions (pointwise_avx512.cpp ...), and
// the processor at hand chooses.
//
// Lanes are what loops compute with: 16-bit floats are widened to f32 when they are read, rounded after each
// operator, and narrowed when they are written.
#pragma once

#include <cstdint>

namespace host_cpu {

enum class Lane : uint8_t { kF32, kF64, kI32, kI64, kBool, kU8, kI8, kOther };

// x, y and z are the operands; p, q are numbers from attributes.
enum class Code : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kPow,  // x, y
  kEqual,
  kLess,
  kGreater,
  kLessOrEqual,
  kGreaterOrEqual,
  kAnd,
  kOr,
  kXor,  // x, y to bool
  kNeg,
  kAbs,
  kRelu,
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,
  kNot,  // x
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
  kElu,
  kSigmoid,
  kTanh,
  kErf,
  kExp,
  kLog,  // x
  // of x, more
  kGelu,
  kGeluTanh,
  kSwish,
  kSoftplus,
  kMish,
  kSelu,
  kSin,
  kCos,
  kSign,
  kSoftsign,
  kIsNaN,
  kPRelu,  // x, slope y
  kSquare,
  kCube,
  kSquareRootOf,  // x: powers 2, 3, 0.5
  kClip,          // x, lower y, upper z
  kWhere1,
  kWhere2,
  kWhere4,
  kWhere8,      // x ? y : z, by bytes
  kCast,        // x
  kQuantize,    // x, scale y, zero point z; to kU8 or kI8
  kDequantize,  // the same from them
  kWidenF16,
  kWidenBf16,
  kNarrowF16,
  kNarrowBf16,  // memory to lanes and back
  kRoundF16,
  kRoundBf16,  // f32 to what the type holds
};

struct LoopCall {
  void* result;  // may be an operand
  const void* operands[3];
  int64_t count;
  double p, q;
};
using Loop = void (*)(const LoopCall&);

// Of the best level that this processor has. Null if there is no loop for it. `to` matters for kCast and
// kQuantize.
Loop find_loop(Code code, Lane from, Lane to);

// One level each; those that need more than this processor has must not be called.
Loop find_loop_avx512(Code code, Lane from, Lane to);
Loop find_loop_avx2(Code code, Lane from, Lane to);
Loop find_loop_sse2(Code code, Lane from, Lane to);

}  // namespace host_cpu
