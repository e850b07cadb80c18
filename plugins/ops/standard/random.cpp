// Random numbers: RandomUniform, RandomNormal, their -Like, Bernoulli, Multinomial.
//
// Each number is a hash of the kernel's seed and of how many were drawn before it, so that a launch needs no
// state but a counter, which threads share. Without the attribute `seed` every kernel starts elsewhere.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numbers>
#include <random>

#include "op.h"

namespace regie::ops {
namespace {

// The finaliser of SplitMix64: passes the usual statistical tests on a counter.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// `count` draws that no other launch of this kernel gets.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t first) : seed_(seed), next_(first) {}
  uint64_t bits() { return mixed(seed_ + ++next_ * 0x9e3779b97f4a7c15u); }
  // 0 <= x < 1, a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Of mean 0 and variance 1, by Box and Muller; takes two draws.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t seed_, next_;
};

class Source {
 public:
  explicit Source(const sdk::Attrs& attrs) {
    const double given = attrs.number("seed", std::numeric_limits<double>::quiet_NaN());
    if (std::isnan(given)) {
      std::random_device device;
      seed_ = uint64_t{device()} << 32 | device();
    } else {
      seed_ = mixed(std::bit_cast<uint64_t>(given));
    }
  }
  Draws take(uint64_t count) const { return {seed_, drawn_->fetch_add(count, std::memory_order_relaxed)}; }

 private:
  uint64_t seed_ = 0;
  std::shared_ptr<std::atomic<uint64_t>> drawn_ = std::make_shared<std::atomic<uint64_t>>(0);
};

bool is_one_of_floats(regie_elem elem) {
  return dispatch(Floats(), elem, []<class T>() {});
}

// The type that `dtype` asks for, or else `fallback`.
regie_elem wanted(const Infer& infer, regie_elem fallback) {
  return static_cast<regie_elem>(infer.attrs.integer("dtype", fallback));
}

void infer_listed(const Infer& infer) {
  const regie_elem elem = wanted(infer, REGIE_F32);
  if (!is_one_of_floats(elem)) infer.bad("attribute 'dtype' must be a floating-point type");
  Shape shape;
  for (int64_t d : infer.attrs.integers("shape").value_or(std::span<const int64_t>())) {
    if (d < 0) infer.bad("attribute 'shape' has the negative dimension " + std::to_string(d));
    shape.push_back(infer.dim(d));
  }
  infer.result(0, elem, shape);
}

void infer_like(const Infer& infer) {
  const regie_elem elem = wanted(infer, infer.elem(0));
  if (!is_one_of_floats(elem))
    infer.bad("the result would be " + std::string(elem_name(elem)) +
              ", which is no floating-point type: attribute 'dtype' must say one");
  infer.result(0, elem, infer.shape(0));
}

void infer_bernoulli(const Infer& infer) { infer.result(0, wanted(infer, infer.elem(0)), infer.shape(0)); }

void infer_multinomial(const Infer& infer) {
  if (infer.rank(0) != 2) infer.bad("the input needs the shape [batch, classes]");
  const int64_t samples = infer.attrs.integer("sample_size", 1);
  if (samples < 0) infer.bad("attribute 'sample_size' is negative");
  const regie_elem elem = wanted(infer, REGIE_I32);
  if (elem != REGIE_I32 && elem != REGIE_I64) infer.bad("attribute 'dtype' must be int32 or int64");
  const regie_dim dims[2] = {infer.shape(0)[0], infer.dim(samples)};
  infer.result(0, elem, dims);
}

KernelPtr prepare_uniform(Prepare& p) {
  const double low = p.attrs.number("low", 0), high = p.attrs.number("high", 1);
  const int64_t count = sdk::count_of(p.out(0));
  return p.dispatch(Floats(), p.out(0).elem, [&]<class T>() {
    return make_kernel([=, source = Source(p.attrs)](const Call& call) {
      Draws draws = source.take(static_cast<uint64_t>(count));
      T* to = call.out<T>(0);
      for (int64_t i = 0; i < count; ++i) {
        const T x = T(static_cast<Compute<T>>(low + (high - low) * draws.uniform()));
        // Rounding may reach `high`, which is not in the range.
        to[i] = low < high && static_cast<double>(x) >= high ? T(static_cast<Compute<T>>(low)) : x;
      }
    });
  });
}

KernelPtr prepare_normal(Prepare& p) {
  const double mean = p.attrs.number("mean", 0), scale = p.attrs.number("scale", 1);
  const int64_t count = sdk::count_of(p.out(0));
  return p.dispatch(Floats(), p.out(0).elem, [&]<class T>() {
    return make_kernel([=, source = Source(p.attrs)](const Call& call) {
      Draws draws = source.take(2 * static_cast<uint64_t>(count));
      T* to = call.out<T>(0);
      for (int64_t i = 0; i < count; ++i) to[i] = T(static_cast<Compute<T>>(mean + scale * draws.normal()));
    });
  });
}

KernelPtr prepare_bernoulli(Prepare& p) {
  p.expect_result(0, p.shape(0));
  const int64_t count = sdk::count_of(p.out(0));
  const Source source(p.attrs);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class P>() {
    return p.dispatch(All(), p.out(0).elem, [&]<class T>() {
      return make_kernel([=](const Call& call) {
        Draws draws = source.take(static_cast<uint64_t>(count));
        const P* chance = call.in<P>(0);
        T* to = call.out<T>(0);
        for (int64_t i = 0; i < count; ++i)
          to[i] = T(static_cast<Compute<T>>(draws.uniform() < static_cast<double>(chance[i])));
      });
    });
  });
}

// The input has logarithms of the classes' weights, which need not add up to 1.
KernelPtr prepare_multinomial(Prepare& p) {
  const Index x = p.shape(0);
  if (x.size() != 2) p.bad("the input needs the shape [batch, classes]");
  const int64_t batch = x[0], classes = x[1], samples = p.attrs.integer("sample_size", 1);
  p.expect_result(0, std::array{batch, samples});
  if (classes == 0 && batch * samples != 0) p.bad("there is no class to draw");
  p.scratch_bytes = static_cast<uint64_t>(classes) * sizeof(double);
  const Source source(p.attrs);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class P>() {
    return p.dispatch(IndexTypes(), p.out(0).elem, [&]<class T>() {
      return make_kernel([=](const Call& call) {
        Draws draws = source.take(static_cast<uint64_t>(batch * samples));
        T* to = call.out<T>(0);
        double* sums = call.scratch<double>();
        for (int64_t b = 0; b < batch; ++b) {
          const P* row = call.in<P>(0) + b * classes;
          double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
          for (int64_t c = 0; c < classes; ++c) greatest = std::max(greatest, static_cast<double>(row[c]));
          for (int64_t c = 0; c < classes; ++c)
            sums[c] = sum += std::exp(static_cast<double>(row[c]) - greatest);
          for (int64_t s = 0; s < samples; ++s) {
            const double* at = std::upper_bound(sums, sums + classes, draws.uniform() * sum);
            *to++ = static_cast<T>(std::min<int64_t>(at - sums, classes - 1));
          }
        }
      });
    });
  });
}

constexpr uint32_t kFresh = REGIE_OP_NONDETERMINISTIC;
constexpr Op table[] = {
    {"RandomUniform", kFresh, infer_listed, prepare_uniform},
    {"RandomUniformLike", kFresh, infer_like, prepare_uniform},
    {"RandomNormal", kFresh, infer_listed, prepare_normal},
    {"RandomNormalLike", kFresh, infer_like, prepare_normal},
    {"Bernoulli", kFresh, infer_bernoulli, prepare_bernoulli},
    {"Multinomial", kFresh, infer_multinomial, prepare_multinomial},
};

}  // namespace

std::span<const Op> random_ops() { return table; }

}  // namespace regie::ops
