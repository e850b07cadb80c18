#include "vector_math.h"

#include <algorithm>
#include <cmath>

namespace aicore {

namespace {

using regie::sdk::Failure;
using regie::tile::Builder;
using regie::tile::Expr;
using regie::tile::scalar;
using regie::tile::ub;

[[noreturn]] void refuse(std::string why) { throw Failure(REGIE_UNSUPPORTED, std::move(why)); }

// Instructions over one register.
struct Lanes {
  Builder& b;
  Expr n;
  void two(uint8_t op, const Expr& to, const Expr& x, const Expr& y) const {
    b.binary(op, REGIE_TILE_F32, ub(to), ub(x), ub(y), n);
  }
  void by(uint8_t op, const Expr& to, const Expr& x, float c) const {
    b.binary_scalar(op, REGIE_TILE_F32, ub(to), ub(x), scalar(c), n);
  }
  void one(uint8_t op, const Expr& to, const Expr& x) const { b.unary(op, REGIE_TILE_F32, ub(to), ub(x), n); }
  void add(const Expr& to, const Expr& x, float c) const { by(REGIE_TILE_ADD, to, x, c); }
  void mul(const Expr& to, const Expr& x, float c) const { by(REGIE_TILE_MUL, to, x, c); }
  void clamp(const Expr& to, const Expr& x, float low, float high) const {
    by(REGIE_TILE_MAX, to, x, low);
    by(REGIE_TILE_MIN, to, to, high);
  }

  // 1 / (1 + exp(-x)): exp overflows to infinity, whose reciprocal is 0.
  void sigmoid(const Expr& to, const Expr& x) const {
    mul(to, x, -1);
    one(REGIE_TILE_EXP, to, to);
    add(to, to, 1);
    one(REGIE_TILE_REC, to, to);
  }
  // 1 - 2 / (exp(2x) + 1)
  void tanh(const Expr& to, const Expr& x) const {
    mul(to, x, 2);
    one(REGIE_TILE_EXP, to, to);
    add(to, to, 1);
    one(REGIE_TILE_REC, to, to);
    mul(to, to, -2);
    add(to, to, 1);
  }
  // Abramowitz and Stegun 7.1.26, error below 1.5e-7: sign(x) (1 - poly(t) exp(-x^2)), t = 1 / (1 + p |x|).
  void erf(const Expr& to, const Expr& x, const Expr& t, const Expr& u) const {
    one(REGIE_TILE_ABS, t, x);
    mul(t, t, 0.3275911f);
    add(t, t, 1);
    one(REGIE_TILE_REC, t, t);
    mul(to, t, 1.061405429f);
    for (float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) {
      add(to, to, c);
      two(REGIE_TILE_MUL, to, to, t);
    }
    two(REGIE_TILE_MUL, u, x, x);
    mul(u, u, -1);
    one(REGIE_TILE_EXP, u, u);
    two(REGIE_TILE_MUL, to, to, u);
    mul(to, to, -1);
    add(to, to, 1);
    mul(t, x, 1e30f);  // the sign, and 0 for 0; not x / |x|, of which infinity has none
    by(REGIE_TILE_MAX, t, t, -1);
    by(REGIE_TILE_MIN, t, t, 1);
    two(REGIE_TILE_MUL, to, to, t);
  }
  // max(x, 0) + ln(1 + exp(-|x|))
  void softplus(const Expr& to, const Expr& x, const Expr& t) const {
    one(REGIE_TILE_ABS, t, x);
    mul(t, t, -1);
    one(REGIE_TILE_EXP, t, t);
    add(t, t, 1);
    one(REGIE_TILE_LN, t, t);
    by(REGIE_TILE_MAX, to, x, 0);
    two(REGIE_TILE_ADD, to, to, t);
  }
};

enum Kind {
  kBinary,
  kUnary,
  kSigmoid,
  kTanh,
  kErf,
  kGelu,
  kGeluTanh,
  kSoftplus,
  kMish,
  kSwish,
  kElu,
  kLeakyRelu,
  kHardSigmoid,
  kHardSwish,
  kClip,
  kPow,
  kQuantize,
  kDequantize
};
struct Row {
  VectorOp op;
  Kind kind;
  uint8_t instruction;
};
constexpr Row kRows[] = {
    {{"Abs", 0, 1, 0}, kUnary, REGIE_TILE_ABS},
    {{"Add", 0, 1, 0}, kBinary, REGIE_TILE_ADD},
    {{"Clip", 0, 2, 0}, kClip, 0},
    {{"Dequantize", 0, 2, 0}, kDequantize, 0},
    {{"Div", 0, 0, 1}, kBinary, REGIE_TILE_DIV},
    {{"Elu", 1, 5, 1}, kElu, 0},
    {{"Erf", 2, 20, 2}, kErf, 0},
    {{"Exp", 0, 0, 1}, kUnary, REGIE_TILE_EXP},
    {{"Gelu", 2, 23, 3}, kGelu, 0},
    {{"GeluTanh", 1, 10, 2}, kGeluTanh, 0},
    {{"HardSigmoid", 0, 4, 0}, kHardSigmoid, 0},
    {{"HardSwish", 0, 5, 0}, kHardSwish, 0},
    {{"Identity", 0, 1, 0}, kUnary, REGIE_TILE_COPY},
    {{"LeakyRelu", 1, 4, 0}, kLeakyRelu, 0},
    {{"Log", 0, 0, 1}, kUnary, REGIE_TILE_LN},
    {{"Max", 0, 1, 0}, kBinary, REGIE_TILE_MAX},
    {{"Min", 0, 1, 0}, kBinary, REGIE_TILE_MIN},
    {{"Mish", 1, 12, 4}, kMish, 0},
    {{"Mul", 0, 1, 0}, kBinary, REGIE_TILE_MUL},
    {{"Neg", 0, 1, 0}, kUnary, REGIE_TILE_NEG},
    {{"Pow", 0, 2, 0}, kPow, 0},
    {{"Quantize", 0, 5, 1}, kQuantize, 0},
    {{"Reciprocal", 0, 0, 1}, kUnary, REGIE_TILE_REC},
    {{"Relu", 0, 1, 0}, kUnary, REGIE_TILE_RELU},
    {{"Sigmoid", 0, 2, 2}, kSigmoid, 0},
    {{"Softplus", 1, 5, 2}, kSoftplus, 0},
    {{"Sqrt", 0, 0, 1}, kUnary, REGIE_TILE_SQRT},
    {{"Sub", 0, 1, 0}, kBinary, REGIE_TILE_SUB},
    {{"Swish", 0, 3, 2}, kSwish, 0},
    {{"Tanh", 0, 4, 2}, kTanh, 0},
};
const Row* find_row(std::string_view name) {
  auto at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op.name == name; });
  return at == std::end(kRows) ? nullptr : at;
}
const Row& row_of(const VectorOp* op) { return *find_row(op->name); }

void emit_binary(const Lanes& v, uint8_t op, const Expr& to, const Source& x, const Source& y) {
  if (!x.constant && !y.constant) return v.two(op, to, x.at, y.at);
  if (!x.constant) {
    if (op == REGIE_TILE_SUB) return v.add(to, x.at, -*y.constant);
    return v.by(op, to, x.at, *y.constant);
  }
  if (y.constant) {
    v.b.fill(ub(to), REGIE_TILE_F32, scalar(*x.constant), v.n);
    return emit_binary(v, op, to, {to, std::nullopt}, y);
  }
  switch (op) {
    case REGIE_TILE_SUB:  // c - y
      v.mul(to, y.at, -1);
      return v.add(to, to, *x.constant);
    case REGIE_TILE_DIV:  // c / y
      v.one(REGIE_TILE_REC, to, y.at);
      return v.mul(to, to, *x.constant);
    default:
      return v.by(op, to, y.at, *x.constant);
  }
}

}  // namespace

const VectorOp* find_vector_op(std::string_view name) {
  const Row* r = find_row(name);
  return r ? &r->op : nullptr;
}

std::optional<uint8_t> binary_instruction(const VectorOp& op) {
  const Row& r = row_of(&op);
  return r.kind == kBinary ? std::optional<uint8_t>(r.instruction) : std::nullopt;
}

VectorStep activation_step(std::string_view name, float alpha, float beta, Source in) {
  const VectorOp* op = find_vector_op(name);
  if (!op || row_of(op).kind == kBinary || row_of(op).kind == kPow)
    refuse("there is no vector code for the activation '" + std::string(name) + "'");
  if (name == "Swish") alpha = 1;
  return {op, alpha, beta, {std::move(in)}};
}

VectorStep vector_step(std::string_view name, const regie::sdk::Attrs& attrs, std::vector<Source> in) {
  if (name == "regie.Swish") name = "Swish";
  std::string_view known = name;
  if (name == "Gelu" && attrs.text("approximate", "none") == "tanh") known = "GeluTanh";
  if (name == "Sum") known = "Add";
  if (name == "Cast") known = "Identity";
  if (name == "regie.Quantize") known = "Quantize";
  if (name == "regie.Dequantize") known = "Dequantize";
  const VectorOp* op = find_vector_op(known);
  if (!op) refuse("there is no vector code for " + std::string(name));
  VectorStep step{op, 0, 0, std::move(in)};
  const Row& r = row_of(op);
  auto number = [&](const char* key, double fallback) {
    return static_cast<float>(attrs.number(key, fallback));
  };
  switch (r.kind) {
    case kBinary:
      if (step.in.size() == 1) step.op = find_vector_op("Identity");
      if (step.in.size() > 2) refuse(std::string(name) + " of more than two operands");
      return step;
    case kQuantize:  // who knows the result's type sets its bounds
    case kDequantize:
      if (step.in.size() != 3) refuse(std::string(name) + " of another number of operands");
      if (step.in[0].constant) refuse(std::string(name) + " of a constant");
      return step;
    case kLeakyRelu:
      step.alpha = number("alpha", 0.01);
      break;
    case kElu:
      step.alpha = number("alpha", 1);
      break;
    case kHardSigmoid:
      step.alpha = number("alpha", 0.2);
      step.beta = number("beta", 0.5);
      break;
    case kSwish:
      step.alpha = number("alpha", 1);
      break;
    case kClip: {
      float bounds[2] = {-INFINITY, INFINITY};
      for (size_t i = 1; i < step.in.size(); ++i) {
        if (!step.in[i].constant) refuse("Clip with bounds that are not constant");
        bounds[i - 1] = *step.in[i].constant;
      }
      step.alpha = bounds[0];
      step.beta = bounds[1];
      step.in.resize(1);
      break;
    }
    case kPow: {
      if (step.in.size() != 2 || !step.in[1].constant) refuse("Pow with an exponent that is not constant");
      const float e = *step.in[1].constant;
      if (e != 2 && e != 3 && e != 0.5f && e != 1 && e != -1 && e != -0.5f)
        refuse("Pow with an exponent other than 1, 2, 3, 0.5, -0.5 and -1");
      step.alpha = e;
      step.in.resize(1);
      break;
    }
    default:
      break;
  }
  if (step.in.size() != 1) refuse(std::string(name) + " of another number of operands");
  if (step.in[0].constant) refuse(std::string(name) + " of a constant");
  return step;
}

void emit_vector(Builder& b, const VectorStep& step, const Expr& to, const std::vector<Expr>& t,
                 const Expr& count) {
  const Lanes v{b, count};
  const Row& r = row_of(step.op);
  const Expr& x = step.in[0].at;
  switch (r.kind) {
    case kBinary:
      return emit_binary(v, r.instruction, to, step.in[0], step.in[1]);
    case kUnary:
      if (step.in[0].constant) return b.fill(ub(to), REGIE_TILE_F32, scalar(*step.in[0].constant), count);
      return v.one(r.instruction, to, x);
    case kSigmoid:
      return v.sigmoid(to, x);
    case kTanh:
      return v.tanh(to, x);
    case kErf:
      return v.erf(to, x, t[0], t[1]);
    case kGelu: {  // erf's argument x / sqrt(2) is made in place of a third register: x * 0.5 (1 + erf)
      v.mul(to, x, 0.70710678f);
      // erf reads its argument last when it takes the sign; `to` is overwritten before, so it works on t[0],
      // t[1] and x.
      v.one(REGIE_TILE_ABS, t[0], to);
      v.two(REGIE_TILE_MUL, t[1], to, to);
      v.mul(t[1], t[1], -1);
      v.one(REGIE_TILE_EXP, t[1], t[1]);
      v.mul(t[0], t[0], 0.3275911f);
      v.add(t[0], t[0], 1);
      v.one(REGIE_TILE_REC, t[0], t[0]);
      v.mul(to, t[0], 1.061405429f);
      for (float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) {
        v.add(to, to, c);
        v.two(REGIE_TILE_MUL, to, to, t[0]);
      }
      v.two(REGIE_TILE_MUL, to, to, t[1]);  // 1 - |erf|
      // x/2 (1 + sign(x) (1 - to)) = x/2 + |x|/2 (1 - to)
      v.mul(to, to, -0.5f);
      v.add(to, to, 0.5f);
      v.one(REGIE_TILE_ABS, t[0], x);
      v.two(REGIE_TILE_MUL, to, to, t[0]);
      v.mul(t[0], x, 0.5f);
      return v.two(REGIE_TILE_ADD, to, to, t[0]);
    }
    case kGeluTanh:
      v.two(REGIE_TILE_MUL, t[0], x, x);
      v.mul(t[0], t[0], 0.044715f);
      v.add(t[0], t[0], 1);
      v.two(REGIE_TILE_MUL, t[0], t[0], x);
      v.mul(t[0], t[0], 2 * 0.7978845608f);
      v.sigmoid(to, t[0]);  // 0.5 (1 + tanh(y)) = sigmoid(2 y)
      return v.two(REGIE_TILE_MUL, to, to, x);
    case kSoftplus:
      return v.softplus(to, x, t[0]);
    case kMish:
      v.softplus(to, x, t[0]);
      v.tanh(t[0], to);
      return v.two(REGIE_TILE_MUL, to, t[0], x);
    case kSwish:
      v.mul(to, x, -step.alpha);
      v.one(REGIE_TILE_EXP, to, to);
      v.add(to, to, 1);
      v.one(REGIE_TILE_REC, to, to);
      return v.two(REGIE_TILE_MUL, to, to, x);
    case kElu:
      v.by(REGIE_TILE_MIN, t[0], x, 0);
      v.one(REGIE_TILE_EXP, t[0], t[0]);
      v.add(t[0], t[0], -1);
      v.mul(t[0], t[0], step.alpha);
      v.by(REGIE_TILE_MAX, to, x, 0);
      return v.two(REGIE_TILE_ADD, to, to, t[0]);
    case kLeakyRelu:
      v.by(REGIE_TILE_MIN, t[0], x, 0);
      v.mul(t[0], t[0], step.alpha);
      v.by(REGIE_TILE_MAX, to, x, 0);
      return v.two(REGIE_TILE_ADD, to, to, t[0]);
    case kHardSigmoid:
      v.mul(to, x, step.alpha);
      v.add(to, to, step.beta);
      return v.clamp(to, to, 0, 1);
    case kHardSwish:
      v.mul(to, x, 1.0f / 6);
      v.add(to, to, 0.5f);
      v.clamp(to, to, 0, 1);
      return v.two(REGIE_TILE_MUL, to, to, x);
    case kClip:
      return v.clamp(to, x, step.alpha, step.beta);
    case kQuantize: {  // whole numbers, as f32
      const Source here{to, std::nullopt};
      emit_binary(v, REGIE_TILE_DIV, to, step.in[0], step.in[1]);
      b.cast(REGIE_TILE_F32, REGIE_TILE_S32, REGIE_TILE_RINT, ub(to), ub(to), count);
      b.cast(REGIE_TILE_S32, REGIE_TILE_F32, REGIE_TILE_RINT, ub(to), ub(to), count);
      if (step.in[2].constant != 0.0F) emit_binary(v, REGIE_TILE_ADD, to, here, step.in[2]);
      return v.clamp(to, to, step.alpha, step.beta);
    }
    case kDequantize:
      if (step.in[2].constant == 0.0F) return emit_binary(v, REGIE_TILE_MUL, to, step.in[0], step.in[1]);
      emit_binary(v, REGIE_TILE_SUB, to, step.in[0], step.in[2]);
      return emit_binary(v, REGIE_TILE_MUL, to, {to, std::nullopt}, step.in[1]);
    case kPow:
      if (step.alpha == 1) return v.one(REGIE_TILE_COPY, to, x);
      if (step.alpha == 0.5f) return v.one(REGIE_TILE_SQRT, to, x);
      if (step.alpha == -0.5f) return v.one(REGIE_TILE_RSQRT, to, x);
      if (step.alpha == -1) return v.one(REGIE_TILE_REC, to, x);
      v.two(REGIE_TILE_MUL, to, x, x);
      if (step.alpha == 3) v.two(REGIE_TILE_MUL, to, to, x);
      return;
  }
}

}  // namespace aicore
