// LinearAttention: a state of keys by values for each head, which every position fades, corrects and reads.
#include <algorithm>
#include <cmath>

#include "op.h"

namespace regie::ops {
namespace {

enum Operand : uint32_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };
constexpr std::string_view kRules[] = {"gated_delta", "linear", "gated", "delta"};

struct Rule {
  bool gates, corrects;
};
template <class Request>
Rule rule_of(const Request& request) {
  const size_t which = choice(request.op, request.attrs, "update_rule", kRules);
  const Rule rule{which == 0 || which == 2, which == 0 || which == 3};
  if (rule.gates != request.has(kDecay))
    request.bad(std::string("rule '") + std::string(kRules[which]) +
                (rule.gates ? "' needs a decay" : "' takes no decay"));
  if (rule.corrects != request.has(kBeta))
    request.bad(std::string("rule '") + std::string(kRules[which]) +
                (rule.corrects ? "' needs a beta" : "' takes no beta"));
  return rule;
}

struct Heads {
  int64_t query, pair;  // of queries; of keys and values
};
template <class Request>
Heads heads_of(const Request& request) {
  const Heads h{request.attrs.integer("q_num_heads", 0), request.attrs.integer("kv_num_heads", 0)};
  if (h.query < 1 || h.pair < 1 || h.query % h.pair != 0)
    request.bad("q_num_heads must be a multiple of kv_num_heads, both at least 1");
  return h;
}

void infer_linear_attention(const Infer& infer) {
  rule_of(infer);
  const Heads heads = heads_of(infer);
  auto q = infer.shape(kQuery), k = infer.shape(kKey), v = infer.shape(kValue);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3) infer.bad("query, key and value must have the rank 3");
  auto width = [&](regie_dim whole, int64_t count) {
    if (auto n = infer.number(whole); n && *n % count != 0)
      infer.bad("a width does not split into its heads");
    return infer.dims.floordiv(whole, count);
  };
  for (auto other : {k, v})
    if (!infer.agree(q[0], other[0]) || !infer.agree(q[1], other[1]))
      infer.bad("query, key and value differ in batch or length");
  const regie_dim key = width(q[2], heads.query), value = width(v[2], heads.pair);
  if (!infer.agree(width(k[2], heads.pair), key)) infer.bad("query and key differ in the width of a head");
  const Shape state{q[0], heads.pair, key, value};
  if (infer.has(kPast)) {
    auto past = infer.shape(kPast);
    bool fits = past.size() == 4;
    for (size_t i = 0; fits && i < 4; ++i) fits = infer.agree(past[i], state[i]);
    if (!fits) infer.bad("the past state " + infer.print(past) + " must be " + infer.print(state));
  }
  infer.result(0, infer.elem(kQuery), Shape{q[0], q[1], infer.dims.mul(value, heads.query)});
  infer.result(1, infer.elem(infer.has(kPast) ? kPast : kQuery), state);
}

KernelPtr prepare_linear_attention(Prepare& p) {
  const Rule rule = rule_of(p);
  const Heads heads = heads_of(p);
  Index q = p.shape(kQuery), k = p.shape(kKey), v = p.shape(kValue);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || q[2] % heads.query != 0 || v[2] % heads.pair != 0)
    p.bad("query, key and value must have the rank 3 and split into heads");
  const int64_t batch = q[0], length = q[1], key = q[2] / heads.query, value = v[2] / heads.pair;
  if (k[0] != batch || v[0] != batch || k[1] != length || v[1] != length || k[2] != key * heads.pair)
    p.bad("query, key and value do not fit");
  p.expect_result(0, std::vector<int64_t>{batch, length, value * heads.query});
  const std::vector<int64_t> state_shape{batch, heads.pair, key, value};
  if (p.wants(1)) p.expect_result(1, state_shape);
  if (p.has(kPast) &&
      !std::equal(state_shape.begin(), state_shape.end(), p.shape(kPast).begin(), p.shape(kPast).end()))
    p.bad("the past state does not fit");
  // One a head, or one a key.
  int64_t decays = 0, betas = 0;
  if (rule.gates) {
    Index d = p.shape(kDecay);
    decays = d.size() == 3 ? d[2] : 0;
    if (d.size() != 3 || d[0] != batch || d[1] != length ||
        (decays != heads.pair && decays != heads.pair * key))
      p.bad("the decay must have one number a head, or one a key");
  }
  if (rule.corrects) {
    Index b = p.shape(kBeta);
    betas = b.size() == 3 ? b[2] : 0;
    if (betas == 0 || b[0] != batch || b[1] != length || (betas != heads.pair && betas != 1))
      p.bad("beta must have one number a head, or one in all");
  }
  const double given = p.attrs.number("scale", 0);
  const double scale = given != 0 ? given : key ? 1 / std::sqrt(static_cast<double>(key)) : 1;
  const bool past = p.has(kPast), wanted = p.wants(1);
  p.scratch_bytes = static_cast<uint64_t>(key * value + value) * sizeof(float);
  using Short = Types<float, Half, BFloat16>;
  const regie_elem state_elem = past ? p.in(kPast).elem : p.in(kQuery).elem;
  return p.dispatch(Short(), p.in(kQuery).elem, [&]<class T>() {
    return p.dispatch(Short(), state_elem, [&]<class S>() {
      return make_kernel([=](const Call& call) {
        auto* state = call.scratch<float>();
        float* written = state + key * value;
        auto at = [&](uint32_t operand, int64_t index) {
          return static_cast<float>(Compute<T>(call.in<T>(operand)[index]));
        };
        for (int64_t n = 0; n < batch; ++n)
          for (int64_t h = 0; h < heads.pair; ++h) {
            const int64_t states = (n * heads.pair + h) * key * value;
            for (int64_t i = 0; i < key * value; ++i)
              state[i] = past ? static_cast<float>(Compute<S>(call.in<S>(kPast)[states + i])) : 0.0f;
            for (int64_t t = 0; t < length; ++t) {
              const int64_t row = n * length + t;
              const int64_t keys = (row * heads.pair + h) * key, values = (row * heads.pair + h) * value;
              if (rule.gates)
                for (int64_t d = 0; d < key; ++d) {
                  const int64_t of = decays == heads.pair ? row * decays + h : row * decays + h * key + d;
                  const float fade = std::exp(at(kDecay, of));
                  for (int64_t m = 0; m < value; ++m) state[d * value + m] *= fade;
                }
              for (int64_t m = 0; m < value; ++m) written[m] = at(kValue, values + m);
              if (rule.corrects) {
                const float beta = at(kBeta, row * betas + (betas == 1 ? 0 : h));
                for (int64_t m = 0; m < value; ++m) {
                  float known = 0;
                  for (int64_t d = 0; d < key; ++d) known += state[d * value + m] * at(kKey, keys + d);
                  written[m] = beta * (written[m] - known);
                }
              }
              for (int64_t d = 0; d < key; ++d)
                for (int64_t m = 0; m < value; ++m) state[d * value + m] += at(kKey, keys + d) * written[m];
              // Several heads of queries read one state.
              const int64_t readers = heads.query / heads.pair;
              for (int64_t r = h * readers; r < (h + 1) * readers; ++r)
                for (int64_t m = 0; m < value; ++m) {
                  double sum = 0;
                  for (int64_t d = 0; d < key; ++d)
                    sum += static_cast<double>(at(kQuery, (row * heads.query + r) * key + d)) *
                           static_cast<double>(state[d * value + m]);
                  call.out<T>(0)[(row * heads.query + r) * value + m] =
                      T(static_cast<Compute<T>>(scale * sum));
                }
            }
            for (int64_t i = 0; wanted && i < key * value; ++i)
              call.out<S>(1)[states + i] = S(static_cast<Compute<S>>(state[i]));
          }
      });
    });
  });
}

constexpr Op table[] = {{"LinearAttention", 0, infer_linear_attention, prepare_linear_attention}};

}  // namespace

std::span<const Op> linear_attention_ops() { return table; }

}  // namespace regie::ops
