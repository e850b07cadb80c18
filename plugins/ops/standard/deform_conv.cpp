// DeformConv in two dimensions: a convolution whose taps lie where the offsets say, read between the pixels.
#include <cmath>

#include "op.h"
#include "window.h"

namespace regie::ops {
namespace {

enum Operand : uint32_t { kInput, kWeight, kOffset, kBias, kMask };

void infer_deform(const Infer& infer) {
  auto x = infer.shape(kInput), w = infer.shape(kWeight), offset = infer.shape(kOffset);
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    infer.unsupported("only pictures (rank 4) are covered, not " + infer.print(x));
  Window window(infer.op, infer.attrs, 2);
  if (!infer.agree(x[1], infer.dims.mul(w[1], infer.attrs.integer("group", 1))))
    infer.bad("the channels do not fit");
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < 2; ++i) y.push_back(window.result_dim(infer, i, x[2 + i], w[2 + i]));
  const regie_dim taps = infer.dims.mul(infer.dims.mul(w[2], w[3]), infer.attrs.integer("offset_group", 1));
  auto check = [&](uint32_t operand, regie_dim channels) {
    auto t = infer.shape(operand);
    if (t.size() != 4 || !infer.agree(t[0], x[0]) || !infer.agree(t[1], channels) ||
        !infer.agree(t[2], y[2]) || !infer.agree(t[3], y[3]))
      infer.bad("operand " + std::to_string(operand) + " is " + infer.print(t) + " and must be " +
                infer.print(Shape{x[0], channels, y[2], y[3]}));
  };
  check(kOffset, infer.dims.mul(taps, 2));
  if (infer.has(kMask)) check(kMask, taps);
  if (infer.has(kBias) && (infer.rank(kBias) != 1 || !infer.agree(infer.shape(kBias)[0], w[0])))
    infer.bad("needs one bias a filter");
  infer.result(0, infer.elem(kInput), y);
}

// Between pixels; outside of the picture there is 0.
template <class T>
double pixel(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return 0;
  const double top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
  auto at = [&](int64_t i, int64_t j) {
    return i < 0 || j < 0 || i >= height || j >= width
               ? 0.0
               : static_cast<double>(Compute<T>(plane[i * width + j]));
  };
  const auto i = static_cast<int64_t>(top), j = static_cast<int64_t>(left);
  return (1 - down) * ((1 - right) * at(i, j) + right * at(i, j + 1)) +
         down * ((1 - right) * at(i + 1, j) + right * at(i + 1, j + 1));
}

KernelPtr prepare_deform(Prepare& p) {
  Index x = p.shape(kInput), w = p.shape(kWeight);
  if (x.size() != 4 || w.size() != 4) p.unsupported("only pictures (rank 4) are covered");
  Window window(p.op, p.attrs, 2);
  window.kernel.assign(w.begin() + 2, w.end());
  const std::vector<int64_t> y = window.resolved_result(x[0], w[0], x.subspan(2));
  p.expect_result(0, y);
  const int64_t group = p.attrs.integer("group", 1), places = p.attrs.integer("offset_group", 1);
  const int64_t channels = w[1], filters = w[0], taps = w[2] * w[3], area = y[2] * y[3], kernel_width = w[3];
  if (group < 1 || places < 1 || x[1] != channels * group || filters % group != 0 || x[1] % places != 0)
    p.bad("the channels do not fit");
  auto check = [&](uint32_t operand, int64_t wanted) {
    const std::vector<int64_t> shape{x[0], wanted, y[2], y[3]};
    if (!std::equal(shape.begin(), shape.end(), p.shape(operand).begin(), p.shape(operand).end()) ||
        p.in(operand).elem != p.in(kInput).elem)
      p.bad("operand " + std::to_string(operand) + " does not fit");
  };
  check(kOffset, 2 * taps * places);
  if (p.has(kMask)) check(kMask, taps * places);
  if (p.has(kBias) && sdk::count_of(p.in(kBias)) != filters) p.bad("needs one bias a filter");
  if (p.in(kWeight).elem != p.in(kInput).elem) p.bad("weight and input differ in type");
  const bool bias = p.has(kBias), mask = p.has(kMask);
  const int64_t batch = x[0], height = x[2], width = x[3], all = x[1], columns = y[3];
  return p.dispatch(Floats(), p.in(kInput).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t f = 0; f < filters; ++f)
          for (int64_t at = 0; at < area; ++at) {
            double sum = bias ? static_cast<double>(Compute<T>(call.in<T>(kBias)[f])) : 0;
            const auto top = static_cast<double>(at / columns * window.strides[0] - window.begin[0]);
            const auto left = static_cast<double>(at % columns * window.strides[1] - window.begin[1]);
            for (int64_t c = 0; c < channels; ++c) {
              const int64_t channel = f / (filters / group) * channels + c;
              const int64_t place = (n * places + channel / (all / places)) * taps;
              const T* plane = call.in<T>(kInput) + (n * all + channel) * height * width;
              for (int64_t tap = 0; tap < taps; ++tap) {
                const T* moved = call.in<T>(kOffset) + 2 * (place + tap) * area + at;
                const double value =
                    pixel(plane, height, width,
                          top + static_cast<double>(tap / kernel_width * window.dilations[0]) +
                              static_cast<double>(Compute<T>(moved[0])),
                          left + static_cast<double>(tap % kernel_width * window.dilations[1]) +
                              static_cast<double>(Compute<T>(moved[area])));
                const double weight =
                    static_cast<double>(Compute<T>(call.in<T>(kWeight)[(f * channels + c) * taps + tap]));
                sum += value * weight *
                       (mask ? static_cast<double>(Compute<T>(call.in<T>(kMask)[(place + tap) * area + at]))
                             : 1);
              }
            }
            call.out<T>(0)[(n * filters + f) * area + at] = T(static_cast<Compute<T>>(sum));
          }
    });
  });
}

constexpr Op table[] = {{"DeformConv", 0, infer_deform, prepare_deform}};

}  // namespace

std::span<const Op> deform_conv_ops() { return table; }

}  // namespace regie::ops
