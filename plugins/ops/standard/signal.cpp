// DFT, STFT, the windows (Hann, Hamming, Blackman) and MelWeightMatrix.
//
// Transforms are sums over a table of roots of unity, in double: n * n steps for n values, which serves the
// frames of audio networks.
#include <algorithm>
#include <cmath>
#include <vector>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

constexpr double pi = 3.14159265358979323846;

// A single number, if it is known: of a constant, or computed from shapes.
std::optional<int64_t> integer(const Infer& infer, uint32_t i) {
  if (infer.length(i) != 1) infer.bad("operand " + std::to_string(i) + " must be a single number");
  const auto numbers = infer.numbers(i);
  return numbers ? std::optional(numbers->front()) : std::nullopt;
}

// The same for kernels.
template <class Number>
Number need_constant(const Prepare& p, uint32_t i) {
  const auto value = scalar_of<Number>(&p.in(i));
  if (!value) p.bad("operand " + std::to_string(i) + " must be constant");
  return *value;
}

struct Root {
  double cosine, sine;
};
std::vector<Root> roots_of(int64_t n) {
  std::vector<Root> roots;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = -2 * pi * static_cast<double>(i) / static_cast<double>(n);
    roots.push_back({std::cos(angle), std::sin(angle)});
  }
  return roots;
}

// ---- DFT: operands signal, length, axis; the signal's last dimension is 1 (real) or 2 (complex) ----

std::optional<size_t> dft_axis(const Infer& infer) {
  const auto axis = infer.has(2) ? integer(infer, 2) : std::optional<int64_t>(-2);
  if (!axis) return std::nullopt;
  const int64_t found = infer.axis(*axis, infer.rank(0));
  if (found == infer.rank(0) - 1) infer.bad("the axis must not be the last");
  return static_cast<size_t>(found);
}

void infer_dft(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() < 2) infer.bad("the signal needs a rank of at least 2");
  const auto known_axis = dft_axis(infer);
  const bool onesided = infer.attrs.integer("onesided", 0) != 0,
             inverse = infer.attrs.integer("inverse", 0) != 0;
  const sdk::Dims& d = infer.dims;
  const regie_dim parts = onesided && inverse ? 1 : 2;
  if (!known_axis) {  // each may be the one
    Shape y = Infer::unknown(x.size());
    y.back() = parts;
    return infer.result(0, infer.elem(0), y);
  }
  const size_t axis = *known_axis;
  regie_dim length = x[axis];
  if (inverse && onesided) length = d.mul(2, d.sub(length, 1));
  if (infer.has(1)) {
    Shape given = infer.list(1);
    if (given.size() != 1) infer.bad("the length must be a single number");
    length = given[0];
    // The kernel of one side is made for the length, which must therefore be a number.
    if (onesided && !inverse && !infer.number(length)) length = REGIE_DIM_UNKNOWN;
  }
  Shape y(x.begin(), x.end());
  y[axis] = onesided && !inverse ? d.add(d.floordiv(length, 2), 1) : length;
  y.back() = parts;
  infer.result(0, infer.elem(0), y);
}

struct Transform {
  int64_t outer, size, length, inner, results, parts;  // `parts`: 1 real, 2 complex
  bool inverse, half;                                  // half: one side of the spectrum goes in
  std::vector<Root> roots;
};

template <class T>
void transform(const Transform& t, const T* x, T* y, int64_t y_parts) {
  for (int64_t o = 0; o < t.outer; ++o)
    for (int64_t i = 0; i < t.inner; ++i)
      for (int64_t k = 0; k < t.results; ++k) {
        double real = 0, imaginary = 0;
        auto add = [&](int64_t n, double re, double im) {
          const Root& r = t.roots[static_cast<size_t>(n * k % t.length)];
          const double sine = t.inverse ? -r.sine : r.sine;
          real += re * r.cosine - im * sine;
          imaginary += re * sine + im * r.cosine;
        };
        for (int64_t n = 0; n < std::min(t.size, t.half ? t.length / 2 + 1 : t.length); ++n) {
          const T* at = x + ((o * t.size + n) * t.inner + i) * t.parts;
          const double re = static_cast<double>(Compute<T>(at[0])),
                       im = t.parts == 2 ? static_cast<double>(Compute<T>(at[1])) : 0;
          add(n, re, im);
          // The other side is the mirror.
          if (t.half && n != 0 && 2 * n != t.length) add(t.length - n, re, -im);
        }
        const double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1;
        T* to = y + ((o * t.results + k) * t.inner + i) * y_parts;
        to[0] = T(static_cast<Compute<T>>(real * scale));
        if (y_parts == 2) to[1] = T(static_cast<Compute<T>>(imaginary * scale));
      }
}

KernelPtr prepare_dft(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  const int64_t given = p.has(2) ? need_constant<int64_t>(p, 2) : -2;
  const auto axis = static_cast<size_t>(p.axis(given, static_cast<int64_t>(x.size())));
  if (axis + 1 >= x.size() || x.size() != y.size() || (x.back() != 1 && x.back() != 2))
    p.bad("the signal " + print_shape(x) + " does not fit");
  Transform t{};
  const bool onesided = p.attrs.integer("onesided", 0) != 0;
  t.inverse = p.attrs.integer("inverse", 0) != 0;
  t.half = onesided && t.inverse;
  t.outer = t.inner = 1;
  for (size_t i = 0; i < axis; ++i) t.outer *= x[i];
  for (size_t i = axis + 1; i + 1 < x.size(); ++i) t.inner *= x[i];
  t.size = x[axis], t.results = y[axis], t.parts = x.back();
  t.length = t.results;
  if (onesided && !t.inverse) {
    // Only the length's half is in the result; without a length operand, it is that of the signal.
    t.length = p.has(1) ? need_constant<int64_t>(p, 1) : t.size;
    if (t.length < 1 || t.length / 2 + 1 != t.results) p.bad("the length does not fit");
  }
  t.roots = roots_of(t.length);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel(
        [t, parts = y.back()](const Call& call) { transform<T>(t, call.in<T>(0), call.out<T>(0), parts); });
  });
}

// ---- STFT: operands signal, step, window, frame length ----

void infer_stft(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() < 2) infer.bad("the signal needs rank 3");
  const auto step = integer(infer, 1);
  if (step && *step < 1) infer.bad("the step must be positive");
  regie_dim length = REGIE_DIM_UNKNOWN;
  if (infer.has(3)) {
    length = integer(infer, 3).value_or(REGIE_DIM_UNKNOWN);
  } else if (infer.has(2)) {
    if (infer.rank(2) != 1) infer.bad("the window must be a list, not " + infer.print(infer.shape(2)));
    length = infer.shape(2)[0];
  } else {
    infer.bad("needs a window or a frame length");
  }
  const sdk::Dims& d = infer.dims;
  const regie_dim frames =
      step ? d.add(d.floordiv(d.sub(x[1], length), *step), 1) : regie_dim{REGIE_DIM_UNKNOWN};
  const bool onesided = infer.attrs.integer("onesided", 1) != 0;
  infer.result(0, infer.elem(0), Shape{x[0], frames, onesided ? d.add(d.floordiv(length, 2), 1) : length, 2});
}

KernelPtr prepare_stft(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  if (x.size() > 3 || x.size() < 2 || y.size() != 4) p.bad("the signal needs rank 3");
  const auto step = need_constant<int64_t>(p, 1);
  const int64_t length = p.has(3)                          ? need_constant<int64_t>(p, 3)
                         : p.has(2) && !p.shape(2).empty() ? p.shape(2)[0]
                                                           : 0;
  const int64_t parts = x.size() == 3 ? x[2] : 1, frames = y[1], size = x[1], batch = x[0], results = y[2];
  if (step < 1 || length < 1 || (frames - 1) * step + length > size ||
      (p.has(2) && sdk::count_of(p.in(2)) != length))
    p.bad("signal, step, window and frame length do not fit");
  const bool window = p.has(2);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, roots = roots_of(length)](const Call& call) {
      T* to = call.out<T>(0);
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t f = 0; f < frames; ++f)
          for (int64_t k = 0; k < results; ++k, to += 2) {
            double real = 0, imaginary = 0;
            const T* from = call.in<T>(0) + (b * size + f * step) * parts;
            for (int64_t n = 0, turn = 0; n < length;
                 ++n, turn = turn + k >= length ? turn + k - length : turn + k) {
              const double w = window ? static_cast<double>(Compute<T>(call.in<T>(2)[n])) : 1;
              const double re = w * static_cast<double>(Compute<T>(from[n * parts]));
              const double im = parts == 2 ? w * static_cast<double>(Compute<T>(from[n * parts + 1])) : 0;
              const Root& r = roots[static_cast<size_t>(turn)];
              real += re * r.cosine - im * r.sine;
              imaginary += re * r.sine + im * r.cosine;
            }
            to[0] = T(static_cast<Compute<T>>(real));
            to[1] = T(static_cast<Compute<T>>(imaginary));
          }
    });
  });
}

// ---- Windows ----

void infer_window(const Infer& infer) {
  Shape size = infer.list(0);
  if (size.size() != 1 || infer.rank(0) != 0) infer.bad("the size must be a single number");
  infer.result(0, static_cast<regie_elem>(infer.attrs.integer("output_datatype", REGIE_F32)), size);
}

enum class WindowShape { kHann, kHamming, kBlackman };

template <WindowShape shape>
KernelPtr prepare_signal_window(Prepare& p) {
  if (p.out(0).rank != 1) p.bad("the result must be a list");
  const int64_t count = p.out_shape(0)[0];
  const double period = static_cast<double>(p.attrs.integer("periodic", 1) != 0 ? count : count - 1);
  return p.dispatch(Floats(), p.out(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      for (int64_t i = 0; i < count; ++i) {
        const double angle = 2 * pi * static_cast<double>(i) / period;
        const double value = shape == WindowShape::kHann ? 0.5 - 0.5 * std::cos(angle)
                             : shape == WindowShape::kHamming
                                 ? 25.0 / 46 - 21.0 / 46 * std::cos(angle)
                                 : 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
        call.out<T>(0)[i] = T(static_cast<Compute<T>>(value));
      }
    });
  });
}

// ---- MelWeightMatrix: operands bins, DFT length, sample rate, lowest and highest frequency ----

void infer_mel(const Infer& infer) {
  const auto bins = integer(infer, 0), length = integer(infer, 1);
  if ((bins && *bins < 0) || (length && *length < 0)) infer.bad("the sizes must not be negative");
  // The kernel is made for all five numbers.
  bool all = bins && length && integer(infer, 2);
  for (uint32_t i : {3u, 4u}) all = all && scalar_of<double>(infer.in(i).data);
  infer.result(0, static_cast<regie_elem>(infer.attrs.integer("output_datatype", REGIE_F32)),
               all ? Shape{*length / 2 + 1, *bins} : Infer::unknown(2));
}

KernelPtr prepare_mel(Prepare& p) {
  Index y = p.out_shape(0);
  if (y.size() != 2) p.bad("the result must be a matrix");
  std::array<double, 5> number{};
  for (uint32_t i = 0; i < 5; ++i) number[i] = need_constant<double>(p, i);
  const int64_t rows = y[0], bins = y[1];
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number[3]), step = (mel(number[4]) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    edges.push_back(static_cast<int64_t>(std::floor((number[1] + 1) * hertz / number[2])));
  }
  for (int64_t e : edges)
    if (e < 0 || e >= rows) p.bad("the frequencies are outside of the spectrum");
  return p.dispatch(Floats(), p.out(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      T* to = call.out<T>(0);
      std::fill_n(to, rows * bins, T(Compute<T>(0)));
      for (int64_t i = 0; i < bins; ++i) {
        auto edge = [&](int64_t k) { return edges[static_cast<size_t>(i + k)]; };
        auto set = [&](int64_t row, double value) { to[row * bins + i] = T(static_cast<Compute<T>>(value)); };
        const int64_t left = edge(0), centre = edge(1), right = edge(2);
        if (left == centre) set(centre, 1);
        for (int64_t j = left; left != centre && j <= centre; ++j)
          set(j, static_cast<double>(j - left) / static_cast<double>(centre - left));
        for (int64_t j = centre; j < right; ++j)
          set(j, static_cast<double>(right - j) / static_cast<double>(right - centre));
      }
    });
  });
}

constexpr Op table[] = {
    {"DFT", 0, infer_dft, prepare_dft},
    {"STFT", 0, infer_stft, prepare_stft},
    {"HannWindow", 0, infer_window, prepare_signal_window<WindowShape::kHann>},
    {"HammingWindow", 0, infer_window, prepare_signal_window<WindowShape::kHamming>},
    {"BlackmanWindow", 0, infer_window, prepare_signal_window<WindowShape::kBlackman>},
    {"MelWeightMatrix", 0, infer_mel, prepare_mel},
};

}  // namespace

std::span<const Op> signal_ops() { return table; }

}  // namespace regie::ops
