// RandomUniformLike and RandomNormalLike. With a seed, the numbers are those of NumPy's RandomState, which
// ONNX's reference implementation draws from: a Mersenne twister, 53 bits a number, and Marsaglia's polar
// method. Without one, each run draws others.
#include <sys/random.h>

#include <cmath>
#include <random>

#include "op.h"

namespace regie::ops {
namespace {

class Source {
 public:
  explicit Source(std::optional<uint32_t> seed) : engine_(seed ? *seed : any()) {}

  double uniform() {
    const uint32_t high = engine_() >> 5, low = engine_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    spare_ = factor * x;
    has_spare_ = true;
    return factor * y;
  }

 private:
  static uint32_t any() {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
      throw sdk::Failure(REGIE_INTERNAL, "the system gives no random numbers");
    return seed;
  }
  std::mt19937 engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

regie_elem result_elem(const sdk::Attrs& attrs, regie_elem like) {
  return static_cast<regie_elem>(attrs.integer("dtype", like));
}

void infer_random(const Infer& infer) {
  const regie_elem elem = result_elem(infer.attrs, infer.elem(0));
  if (!dispatch(Floats(), elem, []<class T>() {}))
    infer.bad("random numbers are floats; attribute 'dtype' must name such a type");
  infer.result(0, elem, infer.shape(0));
}

template <bool normal>
KernelPtr prepare_random(Prepare& p) {
  p.expect_result(0, p.shape(0));
  std::optional<uint32_t> seed;
  if (p.attrs.has("seed")) seed = static_cast<uint32_t>(saturated<int64_t>(p.attrs.number("seed", 0)));
  // Two numbers: from, width; or mean, deviation.
  const double first = p.attrs.number(normal ? "mean" : "low", 0);
  const double factor = normal ? p.attrs.number("scale", 1) : p.attrs.number("high", 1) - first;
  return p.dispatch(Floats(), p.out(0).elem, [&]<class T>() {
    return make_kernel([=, count = sdk::count_of(p.out(0))](const Call& call) {
      Source source(seed);
      for (int64_t i = 0; i < count; ++i) {
        const double x = normal ? source.normal() : source.uniform();
        call.out<T>(0)[i] = T(static_cast<Compute<T>>(first + factor * x));
      }
    });
  });
}

constexpr Op table[] = {
    {"RandomNormalLike", REGIE_OP_NONDETERMINISTIC, infer_random, prepare_random<true>},
    {"RandomUniformLike", REGIE_OP_NONDETERMINISTIC, infer_random, prepare_random<false>},
};

}  // namespace

std::span<const Op> random_ops() { return table; }

}  // namespace regie::ops
