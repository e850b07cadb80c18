#include "trial_product.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "regie/type_view.hpp"

namespace aicore {

namespace {

using regie::sdk::Attrs;
using regie::sdk::count_of;
using regie::sdk::dims_of;
using regie::sdk::sv;
using Dims = dnnl::memory::dims;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// As regie.FusedConv and regie.FusedMatMul define them; others are not taken.
struct Activation {
  std::string name;
  float alpha, beta;
  explicit Activation(const Attrs& a)
      : name(a.text("activation", "")),
        alpha(static_cast<float>(a.number("activation_alpha", 0))),
        beta(static_cast<float>(a.number("activation_beta", 0))) {}

  template <class F>
  static void each(float* y, int64_t n, F&& f) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(y[i]);
  }
  bool apply(float* y, int64_t n) const {
    const float a = alpha, b = beta;
    auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
    if (name.empty()) return true;
    if (name == "Relu") return each(y, n, [](float x) { return x < 0 ? 0 : x; }), true;
    if (name == "LeakyRelu") return each(y, n, [=](float x) { return x < 0 ? a * x : x; }), true;
    if (name == "Clip") return each(y, n, [=](float x) { return std::min(std::max(x, a), b); }), true;
    if (name == "Sigmoid") return each(y, n, sigmoid), true;
    if (name == "Tanh") return each(y, n, [](float x) { return std::tanh(x); }), true;
    if (name == "HardSigmoid")
      return each(y, n, [=](float x) { return std::min(std::max(a * x + b, 0.f), 1.f); }), true;
    if (name == "HardSwish")
      return each(y, n, [](float x) { return x * std::min(std::max(x / 6 + 0.5f, 0.f), 1.f); }), true;
    if (name == "Elu") return each(y, n, [=](float x) { return x < 0 ? a * std::expm1(x) : x; }), true;
    if (name == "Swish") return each(y, n, [=](float x) { return x * sigmoid(x); }), true;
    if (name == "Gelu")
      return each(y, n, [](float x) { return 0.5f * x * (1 + std::erf(x * 0.70710678f)); }), true;
    if (name == "GeluTanh")
      return each(y, n,
                  [](float x) {
                    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
                  }),
             true;
    return false;
  }
};

// The attribute, or `fallback` for each of `n`.
Dims list(const Attrs& attrs, const char* name, size_t n, int64_t fallback) {
  const auto given = attrs.integers(name);
  return given && given->size() == n ? Dims(given->begin(), given->end()) : Dims(n, fallback);
}

// Row-major.
dnnl::memory::desc plain(const Dims& d) {
  Dims steps(d.size(), 1);
  for (size_t i = d.size() - 1; i-- > 0;) steps[i] = steps[i + 1] * d[i + 1];
  return {d, dnnl::memory::data_type::f32, steps};
}

void add_residual(const regie_tensor* residual, float* y, int64_t n) {
  if (!residual) return;
  const auto* r = static_cast<const float*>(residual->data);
  for (int64_t i = 0; i < n; ++i) y[i] += r[i];
}

class Convolution : public TrialProduct {
 public:
  Convolution(const Attrs& attrs, std::span<const regie_tensor> operands, const regie_tensor& y)
      : activation_(attrs), count_(count_of(y)) {
    const regie_tensor &x = operands[0], &w = operands[1];
    const auto axes = static_cast<size_t>(x.rank - 2);
    const int64_t group = attrs.integer("group", 1);
    Dims weights;
    if (group > 1) weights.push_back(group);
    weights.insert(weights.end(), {w.dims[0] / group, w.dims[1]});
    weights.insert(weights.end(), w.dims + 2, w.dims + w.rank);
    Dims strides = list(attrs, "strides", axes, 1), dilations = list(attrs, "dilations", axes, 1), before,
         after;
    const Dims pads = list(attrs, "pads", 2 * axes, 0);
    const std::string_view mode = attrs.text("auto_pad", "NOTSET");
    for (size_t i = 0; i < axes; ++i) {
      const int64_t all = std::max<int64_t>(
          0, (y.dims[2 + i] - 1) * strides[i] + (w.dims[2 + i] - 1) * dilations[i] + 1 - x.dims[2 + i]);
      before.push_back(mode == "SAME_UPPER"   ? all / 2
                       : mode == "SAME_LOWER" ? all - all / 2
                       : mode == "VALID"      ? 0
                                              : pads[i]);
      after.push_back(all - before.back());
      --dilations[i];
    }
    using M = dnnl::memory;
    const auto any = [](const Dims& d) { return M::desc(d, M::data_type::f32, M::format_tag::any); };
    const Dims xd(x.dims, x.dims + x.rank), yd(y.dims, y.dims + y.rank);
    const bool biased = operands.size() > 2 && operands[2].elem != REGIE_ELEM_UNKNOWN;
    const M::desc bias = biased ? plain({y.dims[1]}) : M::desc();
    const dnnl::convolution_forward::desc d(dnnl::prop_kind::forward_inference,
                                            dnnl::algorithm::convolution_direct, any(xd), any(weights), bias,
                                            any(yd), strides, dilations, before, after);
    const dnnl::convolution_forward::primitive_desc pd(d, cpu());
    convolution_ = dnnl::convolution_forward(pd);
    x_ = M(plain(xd), cpu(), nullptr);
    y_ = M(plain(yd), cpu(), nullptr);
    own_x_ = pd.src_desc() == x_.get_desc() ? M() : M(pd.src_desc(), cpu());
    own_y_ = pd.dst_desc() == y_.get_desc() ? M() : M(pd.dst_desc(), cpu());
    if (biased) bias_ = M(bias, cpu(), nullptr);
    M w_plain(plain(weights), cpu(), const_cast<void*>(w.data));
    weights_ = M(pd.weights_desc(), cpu());
    dnnl::stream stream(cpu());
    dnnl::reorder(w_plain, weights_).execute(stream, w_plain, weights_);
  }

  void run(std::span<const regie_tensor* const> operands, float* result) override {
    dnnl::stream stream(cpu());
    x_.set_data_handle(const_cast<void*>(operands[0]->data));
    y_.set_data_handle(result);
    if (own_x_) dnnl::reorder(x_, own_x_).execute(stream, x_, own_x_);
    dnnl::memory &x = own_x_ ? own_x_ : x_, &y = own_y_ ? own_y_ : y_;
    std::unordered_map<int, dnnl::memory> args{
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, y}};
    if (bias_) {  // a constant or not
      bias_.set_data_handle(const_cast<void*>(operands[2]->data));
      args.emplace(DNNL_ARG_BIAS, bias_);
    }
    convolution_.execute(stream, args);
    if (own_y_) dnnl::reorder(own_y_, y_).execute(stream, own_y_, y_);
    stream.wait();
    add_residual(operands.size() > 3 ? operands[3] : nullptr, result, count_);
    activation_.apply(result, count_);
  }

 private:
  Activation activation_;
  int64_t count_;
  dnnl::convolution_forward convolution_;
  dnnl::memory x_, y_, own_x_, own_y_, bias_, weights_;
};

// Transposed: weights [inputs, outputs of a group, ...].
class Deconvolution : public TrialProduct {
 public:
  // Null where oneDNN has no such padding.
  static std::unique_ptr<TrialProduct> make(const Attrs& attrs, std::span<const regie_tensor> operands,
                                            const regie_tensor& y) {
    const regie_tensor &x = operands[0], &w = operands[1];
    const auto axes = static_cast<size_t>(x.rank - 2);
    const std::string_view mode = attrs.text("auto_pad", "NOTSET");
    if (mode != "NOTSET" && mode != "VALID") return nullptr;
    const Dims pads = list(attrs, "pads", 2 * axes, 0), strides = list(attrs, "strides", axes, 1);
    Dims dilations = list(attrs, "dilations", axes, 1), before, after;
    for (size_t i = 0; i < axes; ++i) {
      before.push_back(mode == "VALID" ? 0 : pads[i]);
      after.push_back((x.dims[2 + i] - 1) * strides[i] + (w.dims[2 + i] - 1) * dilations[i] + 1 -
                      before.back() - y.dims[2 + i]);
      if (before.back() < 0 || after.back() < 0) return nullptr;
      --dilations[i];
    }
    return std::unique_ptr<TrialProduct>(
        new Deconvolution(operands, y, attrs.integer("group", 1), strides, dilations, before, after));
  }

  void run(std::span<const regie_tensor* const> operands, float* result) override {
    dnnl::stream stream(cpu());
    x_.set_data_handle(const_cast<void*>(operands[0]->data));
    y_.set_data_handle(result);
    std::unordered_map<int, dnnl::memory> args{
        {DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, y_}};
    if (bias_) {  // a constant or not
      bias_.set_data_handle(const_cast<void*>(operands[2]->data));
      args.emplace(DNNL_ARG_BIAS, bias_);
    }
    deconvolution_.execute(stream, args);
    stream.wait();
  }

 private:
  Deconvolution(std::span<const regie_tensor> operands, const regie_tensor& y, int64_t group,
                const Dims& strides, const Dims& dilations, const Dims& before, const Dims& after) {
    using M = dnnl::memory;
    const regie_tensor &x = operands[0], &w = operands[1];
    const Dims xd(x.dims, x.dims + x.rank), yd(y.dims, y.dims + y.rank);
    int64_t window = 1;
    for (int32_t i = 2; i < w.rank; ++i) window *= w.dims[i];
    const int64_t ins = w.dims[0] / group, outs = w.dims[1];
    Dims wd{group, outs, ins}, step{ins * outs * window, window, outs * window};
    for (int32_t i = 2; i < w.rank; ++i) wd.push_back(w.dims[i]);
    int64_t inner = window;
    for (int32_t i = 2; i < w.rank; ++i) step.push_back(inner /= w.dims[i]);
    if (group == 1) {
      wd.erase(wd.begin());
      step.erase(step.begin());
    }
    const bool biased = operands.size() > 2 && operands[2].elem != REGIE_ELEM_UNKNOWN;
    const M::desc bias = biased ? plain({y.dims[1]}) : M::desc();
    const dnnl::deconvolution_forward::desc d(dnnl::prop_kind::forward_inference,
                                              dnnl::algorithm::deconvolution_direct, plain(xd),
                                              M::desc(wd, M::data_type::f32, M::format_tag::any), bias,
                                              plain(yd), strides, dilations, before, after);
    const dnnl::deconvolution_forward::primitive_desc pd(d, cpu());
    deconvolution_ = dnnl::deconvolution_forward(pd);
    x_ = M(plain(xd), cpu(), nullptr);
    y_ = M(plain(yd), cpu(), nullptr);
    if (biased) bias_ = M(bias, cpu(), nullptr);
    M given(M::desc(wd, M::data_type::f32, step), cpu(), const_cast<void*>(w.data));
    weights_ = M(pd.weights_desc(), cpu());
    dnnl::stream stream(cpu());
    dnnl::reorder(given, weights_).execute(stream, given, weights_);
    stream.wait();
  }

  dnnl::deconvolution_forward deconvolution_;
  dnnl::memory x_, y_, bias_, weights_;
};

// One matrix on the right for all of the batch, or one for each.
class Product : public TrialProduct {
 public:
  Product(const Attrs& attrs, std::span<const regie_tensor> operands, const regie_tensor& y)
      : activation_(attrs),
        alpha_(static_cast<float>(attrs.number("alpha", 1))),
        transposed_(attrs.integer("transB", 0) != 0),
        n_(y.dims[y.rank - 1]),
        count_(count_of(y)) {
    const regie_tensor &a = operands[0], &b = operands[1];
    k_ = a.dims[a.rank - 1];
    if (b.rank > 2)
      for (int32_t i = 0; i + 2 < b.rank; ++i) matrices_ *= b.dims[i];
  }
  void run(std::span<const regie_tensor* const> operands, float* y) override {
    const int64_t m = count_ / n_, rows = m / matrices_;
    for (int64_t i = 0; i < matrices_; ++i)
      dnnl_sgemm('N', transposed_ ? 'T' : 'N', rows, n_, k_, alpha_,
                 static_cast<const float*>(operands[0]->data) + i * rows * k_, k_,
                 static_cast<const float*>(operands[1]->data) + i * k_ * n_, transposed_ ? k_ : n_, 0,
                 y + i * rows * n_, n_);
    for (size_t i = 2; i < operands.size(); ++i) {
      if (!operands[i]) continue;
      if (count_of(*operands[i]) == count_) {
        add_residual(operands[i], y, count_);
        continue;
      }
      const auto* c = static_cast<const float*>(operands[i]->data);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t j = 0; j < n_; ++j) y[r * n_ + j] += c[j];
    }
    activation_.apply(y, count_);
  }

 private:
  Activation activation_;
  float alpha_;
  bool transposed_;
  int64_t n_, count_, k_ = 0, matrices_ = 1;
};

// softmax(scale * Q x K' + M) x V over the last two axes, the others alike in all of them but M.
class Attention : public TrialProduct {
 public:
  Attention(const Attrs& attrs, std::span<const regie_tensor> operands, const regie_tensor& y)
      : scale_(static_cast<float>(attrs.number("scale", 1))),
        turned_(attrs.integer("transpose_k", 0) != 0),
        dims_(y.dims, y.dims + y.rank) {
    const regie_tensor &q = operands[0], &v = operands[2];
    rows_ = q.dims[q.rank - 2];
    depth_ = q.dims[q.rank - 1];
    keys_ = v.dims[v.rank - 2];
    width_ = v.dims[v.rank - 1];
    for (int32_t i = 0; i + 2 < q.rank; ++i) heads_ *= q.dims[i];
    scores_.resize(static_cast<size_t>(rows_ * keys_));
    if (operands.size() > 3 && operands[3].elem != REGIE_ELEM_UNKNOWN) masked_ = true;
  }
  void run(std::span<const regie_tensor* const> operands, float* y) override {
    const auto* q = static_cast<const float*>(operands[0]->data);
    const auto* k = static_cast<const float*>(operands[1]->data);
    const auto* v = static_cast<const float*>(operands[2]->data);
    float* s = scores_.data();
    for (int64_t h = 0; h < heads_; ++h) {
      dnnl_sgemm('N', turned_ ? 'N' : 'T', rows_, keys_, depth_, scale_, q + h * rows_ * depth_, depth_,
                 k + h * keys_ * depth_, turned_ ? keys_ : depth_, 0, s, keys_);
      if (masked_) add_mask(*operands[3], h);
      for (int64_t r = 0; r < rows_; ++r) {
        float* row = s + r * keys_;
        const float most = *std::max_element(row, row + keys_);
        float sum = 0;
        for (int64_t j = 0; j < keys_; ++j) sum += row[j] = std::exp(row[j] - most);
        for (int64_t j = 0; j < keys_; ++j) row[j] /= sum;
      }
      dnnl_sgemm('N', 'N', rows_, width_, keys_, 1, s, keys_, v + h * keys_ * width_, width_, 0,
                 y + h * rows_ * width_, width_);
    }
  }

 private:
  // Of head `h`, counted over all axes but the last two; the mask broadcasts to [..., rows, keys].
  void add_mask(const regie_tensor& mask, int64_t h) {
    int64_t step = 1, at = 0;
    const auto size = [&](int32_t axis) {  // from the back
      return axis < mask.rank ? mask.dims[mask.rank - 1 - axis] : 1;
    };
    const int64_t over_keys = size(0) > 1 ? 1 : 0, over_rows = size(1) > 1 ? size(0) : 0;
    step = size(0) * size(1);
    for (int32_t axis = 2; axis < static_cast<int32_t>(dims_.size()); ++axis) {
      const int64_t n = dims_[dims_.size() - 1 - static_cast<size_t>(axis)];
      if (size(axis) > 1) at += h % n * step;
      step *= size(axis);
      h /= n;
    }
    const auto* m = static_cast<const float*>(mask.data) + at;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t j = 0; j < keys_; ++j)
        scores_[static_cast<size_t>(r * keys_ + j)] += m[r * over_rows + j * over_keys];
  }

  float scale_;
  bool turned_, masked_ = false;
  std::vector<int64_t> dims_;
  int64_t heads_ = 1, rows_ = 0, keys_ = 0, depth_ = 0, width_ = 0;
  std::vector<float> scores_;
};

bool same_but_matrices(const regie_tensor& a, const regie_tensor& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank - 2, b.dims);
}

}  // namespace

std::unique_ptr<TrialProduct> trial_product(const regie_node& n, std::span<const regie_tensor> operands,
                                            const regie_tensor& y) {
  const std::string_view op = sv(n.op);
  const Attrs attrs(n);
  const bool convolution = op == "Conv" || op == "regie.FusedConv",
             product = op == "MatMul" || op == "Gemm" || op == "regie.FusedMatMul";
  const bool attention = op == "regie.Attention", transposed = op == "ConvTranspose";
  if (!convolution && !product && !attention && !transposed) return nullptr;
  for (const regie_tensor& t : operands)
    if (t.elem != REGIE_ELEM_UNKNOWN && t.elem != REGIE_F32) return nullptr;
  if (operands.size() < 2 || y.elem != REGIE_F32 || !Activation(attrs).apply(nullptr, 0)) return nullptr;
  try {
    if (attention) {
      const bool alike = operands.size() > 2 && operands[0].rank >= 2 &&
                         same_but_matrices(operands[0], operands[1]) &&
                         same_but_matrices(operands[0], operands[2]) && same_but_matrices(operands[0], y);
      return alike ? std::make_unique<Attention>(attrs, operands, y) : nullptr;
    }
    if (convolution || transposed) {
      if (operands[0].rank < 3 || operands[0].rank > 5 || !operands[1].data) return nullptr;
      if (transposed) return Deconvolution::make(attrs, operands, y);
      return std::make_unique<Convolution>(attrs, operands, y);
    }
    const regie_tensor &a = operands[0], &b = operands[1];
    if (a.rank < 2 || (b.rank != 2 && !same_but_matrices(a, b)) || attrs.integer("transA", 0) ||
        attrs.number("beta", 1) != 1)
      return nullptr;
    const int64_t width = y.dims[y.rank - 1];
    for (const regie_tensor& t : operands.subspan(2)) {
      if (t.elem == REGIE_ELEM_UNKNOWN) continue;
      const bool row = count_of(t) == width && t.rank >= 1 && t.dims[t.rank - 1] == width;
      if (!row && count_of(t) != count_of(y)) return nullptr;
    }
    return std::make_unique<Product>(attrs, operands, y);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace aicore
