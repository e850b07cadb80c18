#include "pointwise_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "kernel_blob.h"

namespace host_cpu {

using regie::sdk::Attrs;

Lane lane_of(regie_elem elem) {
  switch (elem) {
    case REGIE_F32:
    case REGIE_F16:
    case REGIE_BF16:
      return Lane::kF32;
    case REGIE_F64:
      return Lane::kF64;
    case REGIE_I32:
      return Lane::kI32;
    case REGIE_I64:
      return Lane::kI64;
    case REGIE_BOOL:
      return Lane::kBool;
    case REGIE_U8:
      return Lane::kU8;
    case REGIE_I8:
      return Lane::kI8;
    default:
      return Lane::kOther;
  }
}
bool is_half(regie_elem elem) { return elem == REGIE_F16 || elem == REGIE_BF16; }
uint32_t elem_bytes(regie_elem elem) { return regie::sdk::elem_bits(elem) / 8; }
uint32_t lane_bytes(regie_elem elem) { return is_half(elem) ? 4 : elem_bytes(elem); }

namespace {

constexpr double kFunctionCost = 6, kPowerCost = 20, kReferenceCost = 60;

struct Lowering {
  std::string_view op;
  Code code;
  uint32_t operands;
  double cost = 1;
  double p = 0, q = 0;  // defaults of alpha and beta
};
// Every operand is of one type, and the loop is chosen by it.
constexpr Lowering kLowerings[] = {
    {"Abs", Code::kAbs, 1},
    {"Add", Code::kAdd, 2},
    {"And", Code::kAnd, 2},
    {"Ceil", Code::kCeil, 1},
    {"Cos", Code::kCos, 1, kFunctionCost},
    {"Div", Code::kDiv, 2, 2},
    {"Elu", Code::kElu, 1, kFunctionCost, 1.0},
    {"Equal", Code::kEqual, 2},
    {"Erf", Code::kErf, 1, kFunctionCost},
    {"Exp", Code::kExp, 1, kFunctionCost},
    {"Floor", Code::kFloor, 1},
    {"Greater", Code::kGreater, 2},
    {"GreaterOrEqual", Code::kGreaterOrEqual, 2},
    {"HardSigmoid", Code::kHardSigmoid, 1, 1, 0.2f, 0.5f},
    {"HardSwish", Code::kHardSwish, 1},
    {"IsNaN", Code::kIsNaN, 1},
    {"LeakyRelu", Code::kLeakyRelu, 1, 1, 0.01f},
    {"Less", Code::kLess, 2},
    {"LessOrEqual", Code::kLessOrEqual, 2},
    {"Log", Code::kLog, 1, kFunctionCost},
    {"Mish", Code::kMish, 1, 3 * kFunctionCost},
    {"Mul", Code::kMul, 2},
    {"Neg", Code::kNeg, 1},
    {"Not", Code::kNot, 1},
    {"Or", Code::kOr, 2},
    {"PRelu", Code::kPRelu, 2},
    {"Reciprocal", Code::kReciprocal, 1, 2},
    {"Relu", Code::kRelu, 1},
    {"Round", Code::kRound, 1},
    {"Selu", Code::kSelu, 1, kFunctionCost, 1.67326319217681884765625, 1.05070102214813232421875},
    {"Sigmoid", Code::kSigmoid, 1, kFunctionCost},
    {"Sign", Code::kSign, 1},
    {"Sin", Code::kSin, 1, kFunctionCost},
    {"Softplus", Code::kSoftplus, 1, 2 * kFunctionCost},
    {"Softsign", Code::kSoftsign, 1, 2},
    {"Sqrt", Code::kSqrt, 1, 2},
    {"Sub", Code::kSub, 2},
    {"Swish", Code::kSwish, 1, kFunctionCost, 1.0},
    {"Tanh", Code::kTanh, 1, kFunctionCost},
    {"Xor", Code::kXor, 2},
};

// Is the result a bool, whatever the operands are?
bool tells(Code code) { return (code >= Code::kEqual && code <= Code::kXor) || code == Code::kIsNaN; }

class Planner {
 public:
  explicit Planner(const PointwiseProgram& program) : program_(program) {
    plan_.same_as.resize(program.value_count());
    for (uint32_t v = 0; v < program.value_count(); ++v) plan_.same_as[v] = v;
  }
  PointwisePlan plan() {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      step_ = s;
      const PointwiseProgram::Step& step = program_.steps[s];
      if (!by_loops(step)) {
        PointwiseInstruction i;
        i.step = s;
        i.result = result();
        plan_.cost += kReferenceCost;
        plan_.instructions.push_back(i);
      }
    }
    plan_.value_count = program_.value_count() + static_cast<uint32_t>(plan_.more_constants.size());
    for (size_t i = 0; i < plan_.more_constants.size(); ++i)
      plan_.same_as.push_back(program_.value_count() + static_cast<uint32_t>(i));
    return std::move(plan_);
  }

 private:
  uint32_t result() const { return program_.first_step() + step_; }
  regie_elem elem(uint32_t value) const { return program_.elem(value); }
  uint32_t place(uint32_t value) const { return plan_.same_as[value]; }

  // 16-bit floats are rounded after each operator, as they are when they go through memory.
  void emit(Loop loop, std::initializer_list<uint32_t> operands, double cost, double p = 0, double q = 0) {
    PointwiseInstruction i;
    i.loop = loop;
    i.step = step_;
    std::transform(operands.begin(), operands.end(), i.operands,
                   [&](uint32_t v) { return v < program_.value_count() ? place(v) : v; });
    i.result = result();
    i.p = p;
    i.q = q;
    plan_.cost += cost;
    plan_.instructions.push_back(i);
  }
  void round() {
    const regie_elem e = program_.steps[step_].result;
    if (!is_half(e)) return;
    const Code code = e == REGIE_F16 ? Code::kRoundF16 : Code::kRoundBf16;
    emit(find_loop(code, Lane::kF32, Lane::kF32), {result()}, 2);
  }

  bool by_loops(const PointwiseProgram::Step& step) {
    const std::string& op = step.op.op();
    if (op == "Where") return where(step);
    for (uint32_t v : step.operands)
      if (v != REGIE_NONE && lane_of(elem(v)) == Lane::kOther) return false;
    if (lane_of(step.result) == Lane::kOther) return false;
    if (op == "regie.Quantize" || op == "regie.Dequantize") return quantisation(step, op == "regie.Quantize");
    if (op == "Cast") return cast(step);
    if (op == "Clip") return clip(step);
    if (op == "Pow") return power(step);
    if (op == "Gelu") return gelu(step);
    if (op == "Min" || op == "Max") return extremum(step, op == "Min" ? Code::kMin : Code::kMax);
    const Lowering* l = std::find_if(std::begin(kLowerings), std::end(kLowerings),
                                     [&](const Lowering& row) { return row.op == op; });
    if (l == std::end(kLowerings) || step.operands.size() != l->operands || !one_type(step)) return false;
    const Loop loop = find_loop(l->code, lane_of(elem(step.operands[0])), Lane::kOther);
    if (!loop || step.result != (tells(l->code) ? regie_elem{REGIE_BOOL} : elem(step.operands[0])))
      return false;
    const Attrs attrs = attributes_of(step.op);
    const double p = attrs.number("alpha", l->p);
    const double q = attrs.number(op == "Selu" ? "gamma" : "beta", l->q);
    if (l->operands == 1)
      emit(loop, {step.operands[0]}, l->cost, p, q);
    else
      emit(loop, {step.operands[0], step.operands[1]}, l->cost, p, q);
    round();
    return true;
  }

  bool one_type(const PointwiseProgram::Step& step) const {
    for (uint32_t v : step.operands)
      if (v == REGIE_NONE || elem(v) != elem(step.operands[0])) return false;
    return !step.operands.empty();
  }

  bool gelu(const PointwiseProgram::Step& step) {
    if (step.operands.size() != 1 || !one_type(step) || step.result != elem(step.operands[0])) return false;
    const Attrs attrs = attributes_of(step.op);
    const bool by_tanh = attrs.text("approximate", "none") == "tanh";
    const Loop loop = find_loop(by_tanh ? Code::kGeluTanh : Code::kGelu, lane_of(step.result), Lane::kOther);
    if (!loop) return false;
    emit(loop, {step.operands[0]}, kFunctionCost);
    round();
    return true;
  }

  bool cast(const PointwiseProgram::Step& step) {
    if (step.operands.size() != 1 || step.operands[0] == REGIE_NONE) return false;
    const uint32_t from = step.operands[0];
    const Lane x = lane_of(elem(from)), y = lane_of(step.result);
    const bool exact = step.result == elem(from) || (step.result == REGIE_F32 && is_half(elem(from)));
    if (exact && x != Lane::kBool) {
      plan_.same_as[result()] = place(from);
      return true;
    }
    if (x == Lane::kF32 && y == Lane::kF32) {  // to a 16-bit float
      const Code code = step.result == REGIE_F16 ? Code::kRoundF16 : Code::kRoundBf16;
      emit(find_loop(code, x, y), {from}, 2);
      return true;
    }
    const Loop loop = find_loop(Code::kCast, x, y);
    if (!loop) return false;
    emit(loop, {from}, 1);
    round();
    return true;
  }

  bool quantisation(const PointwiseProgram::Step& step, bool to_bytes) {
    if (step.operands.size() != 3) return false;
    for (uint32_t v : step.operands)
      if (v == REGIE_NONE) return false;
    const regie_elem x = elem(step.operands[0]), bytes = to_bytes ? step.result : x;
    if ((to_bytes ? x : step.result) != REGIE_F32 || elem(step.operands[1]) != REGIE_F32 ||
        elem(step.operands[2]) != bytes)
      return false;
    const Loop loop =
        find_loop(to_bytes ? Code::kQuantize : Code::kDequantize, lane_of(x), lane_of(step.result));
    if (!loop) return false;
    emit(loop, {step.operands[0], step.operands[1], step.operands[2]}, to_bytes ? 4 : 2);
    return true;
  }

  bool where(const PointwiseProgram::Step& step) {
    if (step.operands.size() != 3 || step.operands[0] == REGIE_NONE || step.operands[1] == REGIE_NONE ||
        step.operands[2] == REGIE_NONE || elem(step.operands[0]) != REGIE_BOOL ||
        elem(step.operands[1]) != elem(step.operands[2]) || elem(step.operands[1]) != step.result)
      return false;
    const uint32_t bytes = lane_bytes(step.result);
    const Code code = bytes == 1   ? Code::kWhere1
                      : bytes == 2 ? Code::kWhere2
                      : bytes == 4 ? Code::kWhere4
                                   : Code::kWhere8;
    emit(find_loop(code, Lane::kOther, Lane::kOther), {step.operands[0], step.operands[1], step.operands[2]},
         1);
    return true;
  }

  bool extremum(const PointwiseProgram::Step& step, Code code) {
    if (!one_type(step) || step.result != elem(step.operands[0])) return false;
    if (step.operands.size() == 1) {
      plan_.same_as[result()] = place(step.operands[0]);
      return true;
    }
    const Loop loop = find_loop(code, lane_of(elem(step.operands[0])), Lane::kOther);
    if (!loop) return false;
    emit(loop, {step.operands[0], step.operands[1]}, 1);
    for (size_t i = 2; i < step.operands.size(); ++i) emit(loop, {result(), step.operands[i]}, 1);
    return true;
  }

  // Without a bound the type's own.
  bool clip(const PointwiseProgram::Step& step) {
    if (step.operands.empty() || step.operands[0] == REGIE_NONE) return false;
    const regie_elem e = elem(step.operands[0]);
    const Loop loop = find_loop(Code::kClip, lane_of(e), Lane::kOther);
    if (!loop || step.result != e) return false;
    uint32_t bounds[2];
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t v = i + 1 < step.operands.size() ? step.operands[i + 1] : REGIE_NONE;
      if (v != REGIE_NONE && elem(v) != e) return false;
      bounds[i] = v != REGIE_NONE ? v : own_bound(e, i == 1);
    }
    emit(loop, {step.operands[0], bounds[0], bounds[1]}, 2);
    return true;
  }
  uint32_t own_bound(regie_elem e, bool upper) {
    auto bits = [&](auto least, auto most) {
      const auto value = upper ? most : least;
      uint64_t b = 0;
      std::memcpy(&b, &value, sizeof value);
      return b;
    };
    uint64_t b = 0;
    switch (lane_of(e)) {
      case Lane::kF32: {  // in which 16-bit floats are computed
        const float most = e == REGIE_F16    ? 65504.0f
                           : e == REGIE_BF16 ? std::bit_cast<float>(0x7f7f0000u)
                                             : std::numeric_limits<float>::max();
        e = REGIE_F32;
        b = bits(-most, most);
        break;
      }
      case Lane::kF64:
        b = bits(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
        break;
      case Lane::kI32:
        b = bits(std::numeric_limits<int32_t>::lowest(), std::numeric_limits<int32_t>::max());
        break;
      default:
        b = bits(std::numeric_limits<int64_t>::lowest(), std::numeric_limits<int64_t>::max());
    }
    plan_.more_constants.push_back({e, b});
    return program_.value_count() + static_cast<uint32_t>(plan_.more_constants.size()) - 1;
  }

  // A constant number of any type.
  std::optional<double> number(uint32_t value) const {
    if (value == REGIE_NONE || value < program_.first_constant() || value >= program_.first_step())
      return std::nullopt;
    const auto& c = program_.constants[value - program_.first_constant()];
    switch (c.elem) {
      case REGIE_F32:
        return std::bit_cast<float>(static_cast<uint32_t>(c.bytes));
      case REGIE_F64:
        return std::bit_cast<double>(c.bytes);
      case REGIE_I32:
        return static_cast<double>(static_cast<int32_t>(c.bytes));
      case REGIE_I64:
        return static_cast<double>(static_cast<int64_t>(c.bytes));
      default:
        return std::nullopt;
    }
  }

  bool power(const PointwiseProgram::Step& step) {
    if (step.operands.size() != 2 || step.operands[0] == REGIE_NONE || step.operands[1] == REGIE_NONE)
      return false;
    const uint32_t base = step.operands[0], exponent = step.operands[1];
    const Lane lane = lane_of(elem(base));
    if ((lane != Lane::kF32 && lane != Lane::kF64) || step.result != elem(base)) return false;
    if (auto e = number(exponent)) {
      if (*e == 2 || *e == 3 || *e == 0.5) {
        const Code code = *e == 2 ? Code::kSquare : *e == 3 ? Code::kCube : Code::kSquareRootOf;
        emit(find_loop(code, lane, lane), {base}, 2);
        round();
        return true;
      }
      // Another type's number, as the operator converts it.
      if (elem(exponent) != elem(base) && !is_half(elem(base))) {
        uint64_t bits = std::bit_cast<uint64_t>(*e);
        if (lane == Lane::kF32) bits = std::bit_cast<uint32_t>(static_cast<float>(*e));
        plan_.more_constants.push_back({elem(base), bits});
        emit(find_loop(Code::kPow, lane, lane),
             {base, program_.value_count() + static_cast<uint32_t>(plan_.more_constants.size()) - 1},
             kPowerCost);
        return true;
      }
    }
    if (elem(exponent) != elem(base)) return false;
    emit(find_loop(Code::kPow, lane, lane), {base, exponent}, kPowerCost);
    round();
    return true;
  }

  const PointwiseProgram& program_;
  PointwisePlan plan_;
  uint32_t step_ = 0;
};

}  // namespace

PointwisePlan plan_pointwise(const PointwiseProgram& program) { return Planner(program).plan(); }

}  // namespace host_cpu
