// Mod, BitShift and the bitwise operators with two tensors.
#include <cmath>

#include "broadcast.h"

namespace regie::ops {
namespace {

// Mod of shapes' sizes stays an expression; ONNX's has the sign of the divisor, as expressions have for
// positive ones.
void infer_mod(const Infer& infer) {
  Shape shape = broadcast_operands(infer, 0, 2);
  infer.result(0, infer.elem(0), shape);
  auto a = infer.content(0), b = infer.content(1);
  if (shape.size() > 1 || !a || !b || a->size() != 1 || b->size() != 1) return;
  if (!infer.surely_at_least(a->front(), 0) || !infer.surely_at_least(b->front(), 1)) return;
  regie_dim d = infer.dims.mod(a->front(), b->front());
  infer.content(0, {&d, 1});
}

void infer_shift(const Infer& infer) {
  std::string_view direction = infer.attrs.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    infer.bad("attribute 'direction' must be LEFT or RIGHT, not '" + std::string(direction) + "'");
  infer_broadcast(infer);
}

// The remainder with the divisor's sign (fmod = 0) or the dividend's (fmod = 1).
template <bool c_like>
struct Remainder {
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_floating_point_v<A>) {
      const A r = std::fmod(a, b);
      return c_like || r == A(0) || (r < A(0)) == (b < A(0)) ? r : r + b;
    } else {
      if (b == 0) throw sdk::Failure(REGIE_INVALID_INPUT, "Mod: division of an integer by zero");
      if constexpr (std::is_signed_v<A>)
        if (b == A(-1)) return A(0);
      const A r = static_cast<A>(a % b);
      if constexpr (c_like || std::is_unsigned_v<A>) return r;
      return r == A(0) || (r < A(0)) == (b < A(0)) ? r : static_cast<A>(r + b);
    }
  }
};
// By more places than there are, or fewer than none, only what fills the places is left.
template <class A>
bool beyond(A places) {
  return places < A(0) || static_cast<uint64_t>(places) >= sizeof(A) * 8;
}
struct ShiftLeft {
  template <class A>
  A operator()(A a, A b) const {
    return beyond(b) ? A(0) : static_cast<A>(static_cast<uint64_t>(a) << b);
  }
};
struct ShiftRight {
  template <class A>
  A operator()(A a, A b) const {
    return beyond(b) ? static_cast<A>(a < A(0) ? -1 : 0) : static_cast<A>(a >> b);
  }
};
struct BitsAnd {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a & b);
  }
};
struct BitsOr {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a | b);
  }
};
struct BitsXor {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(a ^ b);
  }
};

KernelPtr prepare_mod(Prepare& p) {
  return p.attrs.integer("fmod", 0) != 0 ? prepare_binary<Remainder<true>>(p)
                                         : prepare_binary<Remainder<false>>(p);
}

KernelPtr prepare_shift(Prepare& p) {
  return p.attrs.text("direction", "") == "LEFT" ? prepare_binary<ShiftLeft, Ints>(p)
                                                 : prepare_binary<ShiftRight, Ints>(p);
}

constexpr uint32_t flags = REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE;
constexpr Op table[] = {
    {"Mod", flags, infer_mod, prepare_mod},
    {"BitShift", flags, infer_shift, prepare_shift},
    {"BitwiseAnd", flags, infer_broadcast, prepare_binary<BitsAnd, Ints>},
    {"BitwiseOr", flags, infer_broadcast, prepare_binary<BitsOr, Ints>},
    {"BitwiseXor", flags, infer_broadcast, prepare_binary<BitsXor, Ints>},
};

}  // namespace

std::span<const Op> integer_ops() { return table; }

}  // namespace regie::ops
