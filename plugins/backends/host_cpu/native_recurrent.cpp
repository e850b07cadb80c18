// LSTM and GRU with their usual activations: the inputs of all steps in one matrix product, then a step at a
// time a product with the recurrent weights, read as the model has them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "dense_product.h"
#include "native.h"
#include "parallel.h"
#include "product.h"
#include "simd.h"

namespace host_cpu {
namespace {

struct Recurrent {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1, gates = 4;
  bool first_reversed = false, bias = false, initial_h = false, initial_c = false;
  bool before_reset = false;  // GRU: linear_before_reset
  bool y = false, y_h = false, y_c = false;
  uint32_t threads = 1;

  int64_t width() const { return gates * hidden; }
  // A GRU's candidate is multiplied by the state after it was reset, in a product of its own.
  bool candidate_apart() const { return gates == 3 && !before_reset; }
  // Two directions are independent of each other; one shares its products among the threads.
  bool directions_apart() const { return directions == 2 && threads > 1; }
  uint32_t step_threads() const { return directions_apart() ? 1 : threads; }

  std::optional<DenseProduct> input_product;  // of all steps' inputs
  // Of one step's state, for the gates and for a candidate. For batches only: for one or few, a loop over the
  // weights' rows is as fast.
  std::optional<Product> gates_product, candidate_product;
  void make_products() {
    auto product = [&](int64_t m, int64_t n, int64_t k, uint32_t callers, uint32_t width_of) {
      return Product({m, n, k, true, true, width()}, callers, width_of);
    };
    input_product.emplace(steps * batch, width(), inputs, threads);
    if (batch < 4) return;
    const auto callers = static_cast<uint32_t>(directions);
    gates_product = product(batch, candidate_apart() ? 2 * hidden : width(), hidden, callers, step_threads());
    if (candidate_apart()) candidate_product = product(batch, hidden, hidden, callers, step_threads());
  }

  // In scratch, for each direction: gates of all steps, state, cell, what a step needs besides; then that of
  // the products.
  int64_t gates_floats() const { return steps * batch * width(); }
  int64_t product_floats() const {
    uint64_t bytes = input_product->scratch_bytes();
    for (const auto* p : {&gates_product, &candidate_product})
      if (*p) bytes = std::max(bytes, (*p)->scratch_bytes());
    return static_cast<int64_t>(bytes / sizeof(float));
  }
  int64_t own_floats() const {
    return (gates_floats() + batch * (2 * hidden + width() + hidden) + 15) / 16 * 16;
  }
  int64_t floats() const { return own_floats() + product_floats(); }
};

// out[rows of weights] += weights x state, for each of the batch.
dnnl_status_t add_product(const Recurrent& r, const std::optional<Product>& product, int64_t direction,
                          const float* state, const float* weights, int64_t rows, float* out,
                          float* scratch) {
  if (product) return product->run(static_cast<uint32_t>(direction), state, weights, out, scratch);
  constexpr int64_t kRows = 32;
  parallel(r.step_threads(), (rows + kRows - 1) / kRows, kRows * r.hidden * r.batch,
           [&](int64_t begin, int64_t end) {
             const int64_t first = begin * kRows, last = std::min(rows, end * kRows);
             simd().gemv_dot(out + first, r.width(), weights + first * r.hidden, state, last - first,
                             r.hidden, r.batch);
           });
  return dnnl_success;
}

class Layer {
 public:
  Layer(const Recurrent& r, const regie_launch& l, int64_t direction) : r_(r), l_(l), direction_(direction) {
    gates_ = static_cast<float*>(l.scratch) + direction * r.floats();
    inner_ = gates_ + r.own_floats();
    state_ = gates_ + r.gates_floats();
    cell_ = state_ + r.batch * r.hidden;
    product_ = cell_ + r.batch * r.hidden;
    reset_ = product_ + r.batch * r.width();
    recurrent_ = in_data<float>(l, 2) + direction * r.width() * r.hidden;
    bias_ = r.bias ? in_data<float>(l, 3) + direction * 2 * r.width() : nullptr;
  }

  // The inputs' part of all gates, with the biases that simply add.
  void take_inputs() {
    const int64_t width = r_.width(), added = r_.before_reset ? 2 * r_.hidden : width;
    float* const bias = product_;  // not used before the steps
    if (bias_) {
      simd().binary(Binary::kAdd, bias, bias_, bias_ + width, added, 1, 1);
      std::memcpy(bias + added, bias_ + added, static_cast<size_t>(width - added) * sizeof(float));
    }
    note(r_.input_product->run(in_data<float>(l_, 0), in_data<float>(l_, 1) + direction_ * width * r_.inputs,
                               bias_ ? bias : nullptr, gates_, inner_));
  }

  template <class Step>
  void run(Step step) {
    const int64_t n = r_.batch * r_.hidden;
    start(state_, r_.initial_h, 5, n);
    start(cell_, r_.initial_c, 6, n);
    const bool reversed = r_.first_reversed || direction_ == 1;
    for (int64_t i = 0; i < r_.steps; ++i) {
      const int64_t t = reversed ? r_.steps - 1 - i : i;
      step(*this, gates_ + t * r_.batch * r_.width());
      if (r_.y)
        std::memcpy(out_data<float>(l_, 0) + (t * r_.directions + direction_) * n, state_,
                    static_cast<size_t>(n) * sizeof(float));
    }
    if (r_.y_h)
      std::memcpy(out_data<float>(l_, 1) + direction_ * n, state_, static_cast<size_t>(n) * sizeof(float));
    if (r_.y_c)
      std::memcpy(out_data<float>(l_, 2) + direction_ * n, cell_, static_cast<size_t>(n) * sizeof(float));
  }

  dnnl_status_t failed() const { return failed_; }

  void lstm_step(float* gates) {
    const int64_t h = r_.hidden, width = r_.width();
    add(r_.gates_product, state_, recurrent_, width, gates);
    for (int64_t b = 0; b < r_.batch; ++b) {
      const float* g = gates + b * width;  // input, output, forget, cell
      simd().lstm_step(g, g + h, g + 2 * h, g + 3 * h, cell_ + b * h, state_ + b * h, h);
    }
  }

  void gru_step(float* gates) {
    const int64_t h = r_.hidden, width = r_.width();  // update, reset, hidden
    if (r_.before_reset) {
      for (int64_t b = 0; b < r_.batch; ++b) {
        float* p = product_ + b * width;
        std::memset(p, 0, static_cast<size_t>(2 * h) * sizeof(float));
        if (bias_)
          std::memcpy(p + 2 * h, bias_ + width + 2 * h, static_cast<size_t>(h) * sizeof(float));
        else
          std::memset(p + 2 * h, 0, static_cast<size_t>(h) * sizeof(float));
      }
      add(r_.gates_product, state_, recurrent_, width, product_);
    } else {
      add(r_.gates_product, state_, recurrent_, 2 * h, gates);
    }
    for (int64_t b = 0; b < r_.batch; ++b) {
      float *g = gates + b * width, *p = product_ + b * width, *rh = reset_ + b * h;
      if (r_.before_reset) simd().binary(Binary::kAdd, g, g, p, 2 * h, 1, 1);
      simd().unary(Unary::kSigmoid, g + h, g + h, h, 0, 0);
      if (r_.before_reset) {
        simd().binary(Binary::kMul, rh, g + h, p + 2 * h, h, 1, 1);
        simd().binary(Binary::kAdd, g + 2 * h, g + 2 * h, rh, h, 1, 1);
      } else {
        simd().binary(Binary::kMul, rh, g + h, state_ + b * h, h, 1, 1);
      }
    }
    if (!r_.before_reset) add(r_.candidate_product, reset_, recurrent_ + 2 * h * h, h, gates + 2 * h);
    for (int64_t b = 0; b < r_.batch; ++b)
      simd().gru_mix(gates + b * width, gates + b * width + 2 * h, state_ + b * h, h);
  }

 private:
  void note(dnnl_status_t status) {
    if (status != dnnl_success) failed_ = status;
  }
  void add(const std::optional<Product>& product, const float* state, const float* weights, int64_t rows,
           float* out) {
    note(add_product(r_, product, direction_, state, weights, rows, out, inner_));
  }
  void start(float* to, bool given, uint32_t operand, int64_t n) {
    if (given)
      std::memcpy(to, in_data<float>(l_, operand) + direction_ * n, static_cast<size_t>(n) * sizeof(float));
    else
      std::memset(to, 0, static_cast<size_t>(n) * sizeof(float));
  }
  const Recurrent& r_;
  const regie_launch& l_;
  int64_t direction_;
  dnnl_status_t failed_ = dnnl_success;
  float *gates_, *state_, *cell_, *product_, *reset_, *inner_;
  const float *recurrent_, *bias_;
};

Recurrent read(const NativeRequest& r, int64_t gates) {
  Recurrent c;
  c.gates = gates;
  c.threads = r.threads;
  for (size_t i = 0; i < 3; ++i) r.need_float(i);
  for (size_t i : {3, 5, 6})
    if (r.has(i)) r.need_float(i);
  r.need_float_results();
  if (r.attrs.integer("layout", 0)) refuse("layout 1");
  if (r.attrs.has("clip")) refuse("clip");
  if (r.attrs.integer("input_forget", 0)) refuse("input_forget");
  if (r.has(4)) refuse("sequence_lens");
  if (r.has(7)) refuse("peepholes");
  if (const regie_attr* a = r.attrs.find("activations"); a && a->count) {
    static constexpr std::string_view kLstm[] = {"Sigmoid", "Tanh", "Tanh"}, kGru[] = {"Sigmoid", "Tanh"};
    const std::span<const std::string_view> usual =
        gates == 4 ? std::span<const std::string_view>(kLstm) : kGru;
    for (uint32_t i = 0; i < a->count; ++i)
      if (a->kind != REGIE_ATTR_STRINGS || regie::sdk::sv(a->v.strs[i]) != usual[i % usual.size()])
        refuse("unusual activations");
  }
  const std::string_view direction = r.attrs.text("direction", "forward");
  c.directions = direction == "bidirectional" ? 2 : 1;
  c.first_reversed = direction == "reverse";
  const NativeTensor &x = r.in(0), &w = r.in(1), &h = r.in(2);
  if (x.rank() != 3 || w.rank() != 3 || h.rank() != 3) refuse("the operands have not rank 3");
  c.steps = x.dims[0];
  c.batch = x.dims[1];
  c.inputs = x.dims[2];
  c.hidden = h.dims[2];
  if (w.dims != std::vector<int64_t>{c.directions, c.width(), c.inputs} ||
      h.dims != std::vector<int64_t>{c.directions, c.width(), c.hidden})
    refuse("the weights' shapes do not fit");
  if (c.steps == 0 || c.batch == 0 || c.inputs == 0 || c.hidden == 0) refuse("a dimension is 0");
  c.bias = r.has(3);
  c.initial_h = r.has(5);
  c.initial_c = r.has(6);
  if (c.bias && r.in(3).dims != std::vector<int64_t>{c.directions, 2 * c.width()})
    refuse("the bias does not fit");
  for (size_t i : {5, 6})
    if (r.has(i) && r.in(i).dims != std::vector<int64_t>{c.directions, c.batch, c.hidden})
      refuse("an initial state does not fit");
  c.y = r.wants(0);
  c.y_h = r.wants(1);
  c.y_c = r.wants(2);
  if (c.y && r.out(0).count() != c.steps * c.directions * c.batch * c.hidden)
    refuse("the result does not fit");
  for (size_t i : {1, 2})
    if (r.wants(i) && r.out(i).count() != c.directions * c.batch * c.hidden)
      refuse("the last state does not fit");
  return c;
}

template <class Step>
NativePtr recurrent_kernel(Recurrent c, Step step) {
  c.make_products();
  const uint64_t scratch = static_cast<uint64_t>(c.directions * c.floats()) * sizeof(float);
  auto made = std::make_shared<const Recurrent>(std::move(c));
  return native_kernel(
      [made, step](const regie_launch& l) {
        const Recurrent& r = *made;
        dnnl_status_t failed[2] = {dnnl_success, dnnl_success};
        for (int64_t d = 0; d < r.directions; ++d) {
          Layer layer(r, l, d);
          layer.take_inputs();
          failed[d] = layer.failed();
        }
        auto run = [&](int64_t begin, int64_t end) {
          for (int64_t d = begin; d < end; ++d) {
            Layer layer(r, l, d);
            layer.run(step);
            if (layer.failed()) failed[d] = layer.failed();
          }
        };
        if (r.directions_apart())
          parallel(2, 2, r.steps * r.width() * r.hidden, run);
        else
          run(0, r.directions);
        for (dnnl_status_t status : failed) check(status, "running a product of a recurrent layer");
      },
      scratch);
}

NativePtr make_lstm(const NativeRequest& r) {
  return recurrent_kernel(read(r, 4), [](Layer& layer, float* gates) { layer.lstm_step(gates); });
}
NativePtr make_gru(const NativeRequest& r) {
  Recurrent c = read(r, 3);
  c.before_reset = r.attrs.integer("linear_before_reset", 0) != 0;
  return recurrent_kernel(std::move(c), [](Layer& layer, float* gates) { layer.gru_step(gates); });
}

constexpr NativeOp kOps[] = {
    {"GRU", make_gru, Takes::kPlain, false, 0},
    {"LSTM", make_lstm, Takes::kPlain, false, 0},
};

}  // namespace

std::span<const NativeOp> native_recurrent() { return kOps; }

}  // namespace host_cpu
