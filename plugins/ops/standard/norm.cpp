// BatchNormalization (inference), regie.FusedBatchNormalization, Softmax and LogSoftmax.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

void infer_batch_norm(const Infer& infer) {
  if (infer.attrs.integer("training_mode", 0) != 0)
    infer.unsupported("training_mode = 1; export the model for inference");
  auto x = infer.shape(0);
  if (x.empty()) infer.bad("the input must not be a scalar");
  regie_dim channels = x.size() > 1 ? x[1] : 1;
  for (uint32_t i = 1; i <= 4; ++i)
    if (infer.rank(i) != 1 || !infer.agree(infer.shape(i)[0], channels))
      infer.bad("operand " + std::to_string(i) + " has the shape " + infer.print(infer.shape(i)) +
                "; it needs [" + infer.dims.print(channels) + "]");
  infer.result(0, infer.elem(0), x);
}

using Reader = double (*)(const void* from, int64_t index);
template <class T>
double read(const void* from, int64_t index) {
  return static_cast<double>(Compute<T>(static_cast<const T*>(from)[index]));
}

KernelPtr prepare_batch_norm(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  int64_t channels = x.size() > 1 ? x[1] : 1, area = 1;
  for (size_t i = 2; i < x.size(); ++i) area *= x[i];
  std::array<Reader, 5> readers{};
  for (uint32_t i = 1; i <= 4; ++i) {
    if (sdk::count_of(p.in(i)) != channels)
      p.bad("operand " + std::to_string(i) + " does not fit the channels");
    if (!dispatch(Floats(), p.in(i).elem, [&]<class S>() { readers[i] = read<S>; })) p.no_type(p.in(i).elem);
  }
  double epsilon = p.attrs.number("epsilon", 1e-5);
  const std::string_view activation = p.attrs.text("activation", "");
  if (!activation.empty() && activation != "Relu") p.bad("the activation is not known");
  const bool relu = !activation.empty();
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, batch = x.empty() ? 0 : x[0]](const Call& call) {
      using A = Compute<T>;
      auto parameter = [&](uint32_t i, int64_t c) { return readers[i](call.operand(i).data, c); };
      for (int64_t c = 0; c < channels; ++c) {
        double factor = parameter(1, c) / std::sqrt(parameter(4, c) + epsilon);
        A scale = static_cast<A>(factor), shift = static_cast<A>(parameter(2, c) - parameter(3, c) * factor);
        for (int64_t n = 0; n < batch; ++n) {
          const T* from = call.in<T>(0) + (n * channels + c) * area;
          T* to = call.out<T>(0) + (n * channels + c) * area;
          for (int64_t i = 0; i < area; ++i) {
            const A y = A(from[i]) * scale + shift;
            to[i] = T(relu && y < A(0) ? A(0) : y);
          }
        }
      }
    });
  });
}

void infer_softmax(const Infer& infer) {
  auto x = infer.shape(0);
  if (!x.empty()) infer.axis_attribute(-1);
  infer.result(0, infer.elem(0), x);
}

template <bool logarithm>
KernelPtr prepare_softmax(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const Lines lines(x, x.empty() ? 0 : p.axis_attribute(-1));
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      lines.each([&, size = lines.size, step = lines.inner](int64_t first) {
        const T* from = call.in<T>(0) + first;
        T* to = call.out<T>(0) + first;
        A most = -std::numeric_limits<A>::infinity();
        for (int64_t i = 0; i < size; ++i) most = std::max(most, A(from[i * step]));
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) sum += std::exp(A(from[i * step]) - most);
        A divisor = static_cast<A>(logarithm ? std::log(sum) : sum);
        for (int64_t i = 0; i < size; ++i) {
          A shifted = A(from[i * step]) - most;
          to[i * step] = T(logarithm ? shifted - divisor : std::exp(shifted) / divisor);
        }
      });
    });
  });
}

constexpr Op table[] = {
    {"BatchNormalization", REGIE_OP_INPLACE, infer_batch_norm, prepare_batch_norm},
    {"regie.FusedBatchNormalization", REGIE_OP_INPLACE, infer_batch_norm, prepare_batch_norm},
    {"Softmax", REGIE_OP_INPLACE, infer_softmax, prepare_softmax<false>},
    {"LogSoftmax", REGIE_OP_INPLACE, infer_softmax, prepare_softmax<true>},
};

}  // namespace

std::span<const Op> norm_ops() { return table; }

}  // namespace regie::ops
