// LSTM, GRU and RNN: all directions, layouts, activations, sequence lengths, peepholes and initial states.
//
// A sequence of the batch is one row of work: its states live in scratch while it is walked from its first
// step to its last (backwards for the reverse direction), and one step is a few vectors of `hidden` numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "functors.h"
#include "op.h"
#include "sums.h"

namespace regie::ops {
namespace {

enum Cell { kRnn, kGru, kLstm };

constexpr int64_t gates_of(Cell cell) { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }

int64_t directions(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"forward", "reverse", "bidirectional"};
  return choice(op, attrs, "direction", names) == 2 ? 2 : 1;
}

// ---- Activations of gates ----

class GateFunction {
 public:
  GateFunction() = default;
  // Takes what it needs from the lists of alphas and betas, whose order is that of the functions.
  GateFunction(std::string_view op, std::string_view name, std::span<const double>* alphas,
               std::span<const double>* betas) {
    struct Row {
      std::string_view name;
      Kind kind;
      bool takes_alpha, takes_beta;
      double alpha, beta;
    };
    static constexpr Row rows[] = {
        {"Relu", kRelu, false, false, 0, 0},
        {"Tanh", kTanh, false, false, 0, 0},
        {"Sigmoid", kSigmoid, false, false, 0, 0},
        {"Affine", kAffine, true, true, 1, 0},
        {"LeakyRelu", kLeakyRelu, true, false, 0.01, 0},
        {"ThresholdedRelu", kThresholdedRelu, true, false, 1, 0},
        {"ScaledTanh", kScaledTanh, true, true, 1, 1},
        {"HardSigmoid", kHardSigmoid, true, true, 0.2, 0.5},
        {"Elu", kElu, true, false, 1, 0},
        {"Softsign", kSoftsign, false, false, 0, 0},
        {"Softplus", kSoftplus, false, false, 0, 0},
    };
    auto same = [](char a, char b) { return (a | 32) == (b | 32); };
    for (const Row& row : rows) {
      if (!std::equal(name.begin(), name.end(), row.name.begin(), row.name.end(), same)) continue;
      kind_ = row.kind;
      alpha_ = row.takes_alpha ? take(alphas, row.alpha) : row.alpha;
      beta_ = row.takes_beta ? take(betas, row.beta) : row.beta;
      return;
    }
    throw sdk::Failure(REGIE_INVALID_MODEL,
                       std::string(op) + ": unknown activation '" + std::string(name) + "'");
  }

  template <class A>
  void apply(A* x, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) x[i] = one(x[i]);
  }

 private:
  enum Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };

  static double take(std::span<const double>* list, double fallback) {
    if (list->empty()) return fallback;
    const double value = list->front();
    *list = list->subspan(1);
    return value;
  }

  template <class A>
  A one(A x) const {
    switch (kind_) {
      case kRelu:
        return Relu(alpha_, beta_)(x);
      case kTanh:
        return Tanh(alpha_, beta_)(x);
      case kSigmoid:
        return Sigmoid(alpha_, beta_)(x);
      case kAffine:
        return static_cast<A>(alpha_) * x + static_cast<A>(beta_);
      case kLeakyRelu:
        return LeakyRelu(alpha_, beta_)(x);
      case kThresholdedRelu:
        return ThresholdedRelu{alpha_}(x);
      case kScaledTanh:
        return static_cast<A>(alpha_) * std::tanh(static_cast<A>(beta_) * x);
      case kHardSigmoid:
        return HardSigmoid(alpha_, beta_)(x);
      case kElu:
        return Elu(alpha_, beta_)(x);
      case kSoftsign:
        return Softsign()(x);
      case kSoftplus:
        return Softplus()(x);
    }
    return x;
  }

  Kind kind_ = kTanh;
  double alpha_ = 0, beta_ = 0;
};

// The functions of each direction: f, g, h for LSTM, f, g for GRU, f for RNN.
std::vector<GateFunction> gate_functions(Cell cell, std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view defaults[] = {"Sigmoid", "Tanh", "Tanh"};
  const size_t each = cell == kLstm ? 3 : cell == kGru ? 2 : 1;
  const size_t count = each * static_cast<size_t>(directions(op, attrs));
  auto alphas = attrs.numbers("activation_alpha").value_or(std::span<const double>());
  auto betas = attrs.numbers("activation_beta").value_or(std::span<const double>());
  auto names = texts(attrs, "activations");
  if (names.empty())
    for (size_t i = 0; i < count; ++i) names.push_back(cell == kRnn ? defaults[1] : defaults[i % each]);
  if (names.size() != count)
    throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": attribute 'activations' has " +
                                                std::to_string(names.size()) + " functions; " +
                                                std::to_string(count) + " are needed");
  std::vector<GateFunction> functions;
  for (std::string_view name : names) functions.emplace_back(op, name, &alphas, &betas);
  return functions;
}

// ---- Shapes ----

template <Cell cell>
void infer_recurrent(const Infer& infer) {
  auto x = infer.shape(0), w = infer.shape(1), r = infer.shape(2);
  const int64_t count = directions(infer.op, infer.attrs), gates = gates_of(cell);
  gate_functions(cell, infer.op, infer.attrs);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3)
    infer.bad("the input and both weights must have rank 3");
  const bool batch_first = infer.attrs.integer("layout", 0) != 0;
  regie_dim steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], hidden = r[2];
  auto need = [&](uint32_t i, std::initializer_list<regie_dim> dims) {
    if (!infer.has(i)) return;
    auto s = infer.shape(i);
    bool fits = s.size() == dims.size();
    for (size_t k = 0; fits && k < s.size(); ++k) fits = infer.agree(s[k], dims.begin()[k]);
    if (!fits)
      infer.bad("operand " + std::to_string(i) + " has the shape " + infer.print(s) + "; it needs " +
                infer.print(std::span(dims.begin(), dims.size())));
  };
  const regie_dim rows = infer.dims.mul(hidden, gates);
  if (infer.attrs.has("hidden_size") && !infer.agree(infer.attrs.integer("hidden_size", 0), hidden))
    infer.bad("hidden_size is " + std::to_string(infer.attrs.integer("hidden_size", 0)) +
              ", the weights have " + infer.dims.print(hidden));
  need(1, {count, rows, x[2]});
  need(2, {count, rows, hidden});
  need(3, {count, infer.dims.mul(rows, 2)});
  need(4, {batch});
  for (uint32_t i = 5; i <= (cell == kLstm ? 6u : 5u); ++i) {
    if (batch_first) {
      need(i, {batch, count, hidden});
    } else {
      need(i, {count, batch, hidden});
    }
  }
  if (cell == kLstm) need(7, {count, infer.dims.mul(hidden, 3)});
  const Shape all = batch_first ? Shape{batch, steps, count, hidden} : Shape{steps, count, batch, hidden};
  const Shape last = batch_first ? Shape{batch, count, hidden} : Shape{count, batch, hidden};
  infer.result(0, infer.elem(0), all);
  infer.result(1, infer.elem(0), last);
  if (cell == kLstm) infer.result(2, infer.elem(0), last);
}

// ---- Kernels ----

struct Setup {
  int64_t steps, batch, input, hidden, count;
  bool batch_first, reverse_first, before_reset, coupled;
  double clip;  // no clipping: infinity
  std::vector<GateFunction> functions;
  bool bias, lengths, initial_h, initial_c, peepholes, all, last_h, last_c;

  // Positions in elements.
  int64_t x_at(int64_t n, int64_t t) const { return (batch_first ? n * steps + t : t * batch + n) * input; }
  int64_t y_at(int64_t n, int64_t t, int64_t d) const {
    return (batch_first ? (n * steps + t) * count + d : (t * count + d) * batch + n) * hidden;
  }
  int64_t state_at(int64_t n, int64_t d) const {
    return (batch_first ? n * count + d : d * batch + n) * hidden;
  }
};

// One direction of one sequence: pointers to its weights, and its rows of scratch.
template <class T, Cell cell>
struct Sequence {
  using A = Compute<T>;
  const Setup& s;
  const T *w, *r, *wb, *rb, *peephole;
  A *h, *c, *gates, *reset;
  const GateFunction* f;

  void clip(A* x, int64_t count) const {
    const A bound = static_cast<A>(s.clip);
    if (std::isinf(s.clip)) return;
    for (int64_t i = 0; i < count; ++i) x[i] = std::clamp(x[i], -bound, bound);
  }
  // gates[from..to) = W x + bias, plus R h (with its bias) where `recurrent`.
  void project(const T* x, int64_t from, int64_t to, bool recurrent) const {
    for (int64_t g = from; g < to; ++g) {
      A sum = dot<A>(w + g * s.input, x, s.input);
      if (wb) sum += A(wb[g]);
      if (recurrent) {
        sum += dot<A>(r + g * s.hidden, h, s.hidden);
        if (rb) sum += A(rb[g]);
      }
      gates[g] = sum;
    }
  }

  void step(const T* x) const {
    const int64_t n = s.hidden;
    if constexpr (cell == kRnn) {
      project(x, 0, n, true);
      clip(gates, n);
      f[0].apply(gates, n);
      std::copy_n(gates, n, h);
    } else if constexpr (cell == kGru) {
      project(x, 0, 2 * n, true);  // z, r
      clip(gates, 2 * n);
      f[0].apply(gates, 2 * n);
      project(x, 2 * n, 3 * n, false);
      const A *z = gates, *gate = gates + n;
      A* fresh = gates + 2 * n;
      if (!s.before_reset)
        for (int64_t i = 0; i < n; ++i) reset[i] = gate[i] * h[i];
      for (int64_t i = 0; i < n; ++i) {
        A sum = dot<A>(r + (2 * n + i) * n, s.before_reset ? h : reset, n);
        if (rb) sum += A(rb[2 * n + i]);
        fresh[i] += s.before_reset ? gate[i] * sum : sum;
      }
      clip(fresh, n);
      f[1].apply(fresh, n);
      for (int64_t i = 0; i < n; ++i) h[i] = (A(1) - z[i]) * fresh[i] + z[i] * h[i];
    } else {
      project(x, 0, 4 * n, true);  // i, o, f, c
      A *in = gates, *out = gates + n, *forget = gates + 2 * n, *fresh = gates + 3 * n;
      if (peephole)
        for (int64_t i = 0; i < n; ++i) {
          in[i] += A(peephole[i]) * c[i];
          forget[i] += A(peephole[2 * n + i]) * c[i];
        }
      clip(in, n);
      clip(forget, 2 * n);  // and the cell's, which lies behind
      f[0].apply(in, n);
      if (s.coupled) {
        for (int64_t i = 0; i < n; ++i) forget[i] = A(1) - in[i];
      } else {
        f[0].apply(forget, n);
      }
      f[1].apply(fresh, n);
      for (int64_t i = 0; i < n; ++i) c[i] = forget[i] * c[i] + in[i] * fresh[i];
      if (peephole)
        for (int64_t i = 0; i < n; ++i) out[i] += A(peephole[n + i]) * c[i];
      clip(out, n);
      f[0].apply(out, n);
      std::copy_n(c, n, h);
      f[2].apply(h, n);
      for (int64_t i = 0; i < n; ++i) h[i] *= out[i];
    }
  }
};

template <class T, Cell cell>
void run_recurrent(const Setup& s, const Call& call) {
  using A = Compute<T>;
  const int64_t n = s.hidden, rows = gates_of(cell) * n;
  const size_t each = cell == kLstm ? 3 : cell == kGru ? 2 : 1;
  auto* scratch = call.scratch<A>();
  auto write = [&](uint32_t result, int64_t at, const A* from) {
    T* to = call.out<T>(result) + at;
    for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
  };
  for (int64_t d = 0; d < s.count; ++d) {
    const bool backwards = d == 1 || s.reverse_first;
    const T* bias = s.bias ? call.in<T>(3) + d * 2 * rows : nullptr;
    Sequence<T, cell> q{s,
                        call.in<T>(1) + d * rows * s.input,
                        call.in<T>(2) + d * rows * n,
                        bias,
                        bias ? bias + rows : nullptr,
                        s.peepholes ? call.in<T>(7) + d * 3 * n : nullptr,
                        scratch,
                        scratch + n,
                        scratch + 2 * n,
                        scratch + 2 * n + rows,
                        s.functions.data() + static_cast<size_t>(d) * each};
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t length = s.lengths ? call.in<int32_t>(4)[b] : s.steps;
      if (length < 0 || length > s.steps)
        throw sdk::Failure(REGIE_INVALID_INPUT, "a sequence has the length " + std::to_string(length) +
                                                    "; there are " + std::to_string(s.steps) + " steps");
      for (int64_t i = 0; i < n; ++i) {
        q.h[i] = s.initial_h ? A(call.in<T>(5)[s.state_at(b, d) + i]) : A(0);
        q.c[i] = s.initial_c ? A(call.in<T>(6)[s.state_at(b, d) + i]) : A(0);
      }
      for (int64_t k = 0; k < length; ++k) {
        const int64_t t = backwards ? length - 1 - k : k;
        q.step(call.in<T>(0) + s.x_at(b, t));
        if (s.all) write(0, s.y_at(b, t, d), q.h);
      }
      if (s.all)
        for (int64_t t = length; t < s.steps; ++t) std::fill_n(call.out<T>(0) + s.y_at(b, t, d), n, T(A(0)));
      if (s.last_h) write(1, s.state_at(b, d), q.h);
      if (s.last_c) write(2, s.state_at(b, d), q.c);
    }
  }
}

template <Cell cell>
KernelPtr prepare_recurrent(Prepare& p) {
  Index x = p.shape(0), w = p.shape(1), r = p.shape(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) p.bad("the input and both weights need rank 3");
  Setup s{};
  s.batch_first = p.attrs.integer("layout", 0) != 0;
  s.steps = x[s.batch_first ? 1 : 0], s.batch = x[s.batch_first ? 0 : 1], s.input = x[2], s.hidden = r[2];
  s.count = directions(p.op, p.attrs);
  s.reverse_first = p.attrs.text("direction", "forward") == "reverse";
  s.before_reset = p.attrs.integer("linear_before_reset", 0) != 0;
  s.coupled = p.attrs.integer("input_forget", 0) != 0;
  s.clip = p.attrs.number("clip", 0);
  if (!(s.clip > 0)) s.clip = std::numeric_limits<double>::infinity();
  s.functions = gate_functions(cell, p.op, p.attrs);
  const int64_t rows = gates_of(cell) * s.hidden, states = s.count * s.batch * s.hidden;
  auto need = [&](uint32_t i, int64_t count) {
    if (p.has(i) && sdk::count_of(p.in(i)) != count)
      p.bad("operand " + std::to_string(i) + " of shape " + print_shape(p.shape(i)) + " does not fit");
    return p.has(i);
  };
  need(1, s.count * rows * s.input);
  need(2, s.count * rows * s.hidden);
  s.bias = need(3, s.count * 2 * rows);
  s.lengths = need(4, s.batch);
  s.initial_h = need(5, states);
  s.initial_c = cell == kLstm && need(6, states);
  s.peepholes = cell == kLstm && need(7, s.count * 3 * s.hidden);
  s.all = p.wants(0), s.last_h = p.wants(1), s.last_c = cell == kLstm && p.wants(2);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    p.scratch_bytes = static_cast<uint64_t>(3 * s.hidden + rows) * sizeof(Compute<T>);
    return make_kernel([s](const Call& call) { run_recurrent<T, cell>(s, call); });
  });
}

constexpr Op table[] = {
    {"RNN", 0, infer_recurrent<kRnn>, prepare_recurrent<kRnn>},
    {"GRU", 0, infer_recurrent<kGru>, prepare_recurrent<kGru>},
    {"LSTM", 0, infer_recurrent<kLstm>, prepare_recurrent<kLstm>},
};

}  // namespace

std::span<const Op> recurrent_ops() { return table; }

}  // namespace regie::ops
