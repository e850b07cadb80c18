// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: [N, C, d...] of scores, classes [N, d...], weights
// [C].
#include <cmath>
#include <limits>

#include "op.h"

namespace regie::ops {
namespace {

enum class Reduction { kMean, kSum, kNone };

Reduction reduction(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"mean", "sum", "none"};
  return static_cast<Reduction>(choice(op, attrs, "reduction", names));
}

void infer_loss(const Infer& infer) {
  auto x = infer.shape(0), target = infer.shape(1);
  bool fits = x.size() >= 2 && target.size() + 1 == x.size();
  for (size_t i = 0; fits && i < target.size(); ++i) fits = infer.agree(target[i], x[i == 0 ? 0 : i + 1]);
  if (!fits) infer.bad("scores " + infer.print(x) + " and classes " + infer.print(target) + " do not fit");
  if (infer.has(2) && (infer.rank(2) != 1 || !infer.agree(infer.shape(2)[0], x[1])))
    infer.bad("needs one weight a class");
  infer.result(0, infer.elem(0),
               reduction(infer.op, infer.attrs) == Reduction::kNone ? target : std::span<const regie_dim>());
  infer.result(1, infer.elem(0), x);
}

// `scores`: the operand is not logarithms of probabilities yet.
template <bool scores>
KernelPtr prepare_loss(Prepare& p) {
  Index x = p.shape(0), target = p.shape(1);
  if (x.size() < 2 || target.size() + 1 != x.size() || target[0] != x[0])
    p.bad("scores and classes do not fit");
  int64_t area = 1;
  for (size_t i = 2; i < x.size(); ++i) {
    if (x[i] != target[i - 1]) p.bad("scores and classes do not fit");
    area *= x[i];
  }
  const Reduction how = reduction(p.op, p.attrs);
  if (how == Reduction::kNone) {
    p.expect_result(0, target);
  } else {
    p.expect_result(0, {});
  }
  const bool ignoring = p.attrs.has("ignore_index"), weighted = p.has(2), logarithms = p.wants(1);
  const int64_t ignored = p.attrs.integer("ignore_index", 0), batch = x[0], classes = x[1];
  if (weighted && (sdk::count_of(p.in(2)) != classes || p.in(2).elem != p.in(0).elem))
    p.bad("needs one weight a class");
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(IndexTypes(), p.in(1).elem, [&]<class I>() {
      return make_kernel([=](const Call& call) {
        using A = Compute<T>;
        double sum = 0, weights = 0;
        for (int64_t n = 0; n < batch; ++n)
          for (int64_t i = 0; i < area; ++i) {
            const T* from = call.in<T>(0) + n * classes * area + i;
            double shift = 0;
            if constexpr (scores) {
              double most = -std::numeric_limits<double>::infinity(), exponentials = 0;
              for (int64_t c = 0; c < classes; ++c)
                most = std::max(most, static_cast<double>(A(from[c * area])));
              for (int64_t c = 0; c < classes; ++c)
                exponentials += std::exp(static_cast<double>(A(from[c * area])) - most);
              shift = most + std::log(exponentials);
              for (int64_t c = 0; logarithms && c < classes; ++c)
                call.out<T>(1)[(n * classes + c) * area + i] =
                    T(static_cast<A>(static_cast<double>(A(from[c * area])) - shift));
            }
            const auto index = static_cast<int64_t>(call.in<I>(1)[n * area + i]);
            double loss = 0;
            if (!ignoring || index != ignored) {
              if (index < 0 || index >= classes)
                throw sdk::Failure(REGIE_INVALID_INPUT, "class " + std::to_string(index) + " is outside of " +
                                                            std::to_string(classes));
              const double weight = weighted ? static_cast<double>(A(call.in<T>(2)[index])) : 1;
              loss = weight * (shift - static_cast<double>(A(from[index * area])));
              weights += weight;
            }
            if (how == Reduction::kNone) call.out<T>(0)[n * area + i] = T(static_cast<A>(loss));
            sum += loss;
          }
        if (how != Reduction::kNone)
          *call.out<T>(0) = T(static_cast<A>(how == Reduction::kMean ? sum / weights : sum));
      });
    });
  });
}

constexpr Op table[] = {
    {"NegativeLogLikelihoodLoss", 0, infer_loss, prepare_loss<false>},
    {"SoftmaxCrossEntropyLoss", 0, infer_loss, prepare_loss<true>},
};

}  // namespace

std::span<const Op> loss_ops() { return table; }

}  // namespace regie::ops
