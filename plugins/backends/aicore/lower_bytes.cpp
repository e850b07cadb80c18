// Products and convolutions of bytes: regie.QConv and regie.QMatMul, which rules make of DequantizeLinear
// around an operator, and ONNX's own QLinear and Integer operators. What is constant is folded here: zero
// points and whole biases into one number a column that is added to the exact sums, scales into one factor.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "byte_sum.h"
#include "quantised.h"

namespace aicore {

namespace {

constexpr uint32_t kNowhere = REGIE_NONE;
struct Operator {
  std::string_view name;
  BytePlaces places;
};
constexpr BytePlaces kInteger{0, kNowhere, 2, 1, kNowhere, 3, kNowhere, kNowhere, kNowhere};
constexpr BytePlaces kLinear{0, 1, 2, 3, 4, 5, 8, 6, 7};
constexpr BytePlaces kFused{0, 1, 2, 3, 4, 5, 6, 7, 8};
constexpr Operator kOperators[] = {{"ConvInteger", kInteger}, {"MatMulInteger", kInteger},
                                   {"QLinearConv", kLinear},  {"QLinearMatMul", kLinear},
                                   {"regie.QConv", kFused},   {"regie.QConvAdd", kFused},
                                   {"regie.QMatMul", kFused}};
// What regie.QConvAdd has beside.
constexpr uint32_t kResidual = 9, kResidualScale = 10, kResidualZero = 11, kSumScale = 12, kSumZero = 13;

struct Reader {
  const Request& r;

  // One, or one a column; nothing where the operand is absent. Refuses what is not constant.
  std::vector<int32_t> zeros(uint32_t i, int64_t columns, const char* what) const {
    const regie_tensor* t = r.operand(i);
    if (!t) return {0};
    if (!is_byte(t->elem)) refuse(std::string(what) + " is no byte");
    if (!t->data) refuse(std::string(what) + " is not constant");
    const int64_t count = regie::sdk::count_of(*t);
    if (count != 1 && count != columns) refuse(std::string(what) + " is neither one nor one a channel");
    std::vector<int32_t> all;
    for (int64_t k = 0; k < count; ++k) all.push_back(byte_at(*t, k));
    return all;
  }
  std::vector<float> floats(uint32_t i, int64_t columns, const char* what) const {
    const regie_tensor* t = r.operand(i);
    if (!t) refuse(std::string(what) + " is absent");
    if (t->elem != REGIE_F32) refuse(std::string(what) + " is no f32");
    if (!t->data) refuse(std::string(what) + " is not constant");
    const int64_t count = regie::sdk::count_of(*t);
    if (count != 1 && count != columns) refuse(std::string(what) + " is neither one nor one a channel");
    const auto* from = static_cast<const float*>(t->data);
    return {from, from + count};
  }
};

void check_byte_formats(const Request& r) {
  const auto plain = [](regie_format f) { return f == kPlainFormat || f == REGIE_FORMAT_NCHW; };
  const bool sums = r.op == "regie.QConvAdd", blocks = sums || r.op == "regie.QConv" || r.op == "QLinearConv";
  const char* wrong = "its programs are for row-major tensors";
  for (size_t i = 0; i < r.operands.size(); ++i)
    if (!plain(r.operand_format(i)) &&
        !(blocks && (i == 0 || (sums && i == kResidual)) && r.operand_format(i) == kByteBlockedFormat))
      refuse(wrong);
  if (!plain(r.result_format(0)) && !(blocks && r.result_format(0) == kByteBlockedFormat)) refuse(wrong);
}

// The sum with a residual that regie.QConvAdd ends with; its scales are those of `kernel`'s program.
ByteSum read_sum(const Request& r, const Reader& read, CubeProblem& p, float inner_scale) {
  const regie_tensor &y = r.results[0], &added = r.need(kResidual);
  const auto dims = regie::sdk::dims_of(added), shape = regie::sdk::dims_of(y);
  if (!std::equal(dims.begin(), dims.end(), shape.begin(), shape.end()))
    refuse("its residual has another shape");
  if (!is_byte(added.elem) || added.data) refuse("its residual is no computed tensor of bytes");
  if (p.out_height * p.out_width > 1 && r.operand_format(kResidual) != r.result_format(0))
    refuse("residual and result in different formats");
  ByteEpilogue& e = p.bytes;
  p.epilogue.residual_operand = kResidual;
  p.residual_elem = added.elem;
  ByteSum sum;
  sum.elem = y.elem;
  sum.residual_elem = added.elem;
  sum.inner_scale = inner_scale;
  sum.residual_scale = read.floats(kResidualScale, 1, "the residual's scale").front();
  sum.scale = read.floats(kSumScale, 1, "the sum's scale").front();
  sum.inner_zero = e.inner_zero = e.zero;
  sum.residual_zero = e.residual_zero = read.zeros(kResidualZero, 1, "the residual's zero point").front();
  sum.zero = e.sum_zero = read.zeros(kSumZero, 1, "the sum's zero point").front();
  const regie_tensor* zero = r.operand(kSumZero);
  if ((zero ? zero->elem : regie_elem{REGIE_U8}) != y.elem)
    refuse("its result has another type than its zero point");
  const std::string_view activation = r.attrs.text("activation", "");
  if (!activation.empty() && activation != "Relu") refuse("an activation of a sum of bytes other than Relu");
  e.sum_low = activation.empty() ? least_byte(y.elem) : std::max(least_byte(y.elem), sum.zero);
  sum.low = e.sum_low;
  if (!std::isfinite(sum.residual_scale) || !std::isfinite(sum.scale) || !std::isfinite(inner_scale))
    refuse("a scale is no finite number");
  return sum;
}

// What lies in blocks of channels: what is said to, and a map of one position as it is.
void read_blocks(const Request& r, CubeProblem& p) {
  p.left_blocked = r.operand_format(0) == kByteBlockedFormat;
  p.result_blocked = r.result_format(0) == kByteBlockedFormat;
  const bool left = p.groups == 1 || p.in_group % kByteC0 == 0,
             result = p.groups == 1 || p.out_group % p.result_lane() == 0;
  if ((p.left_blocked && !left) || (p.result_blocked && !result))
    refuse("groups that do not fill blocks of 32");
  p.left_blocked |= left && p.height * p.width == 1 && p.channels % kByteC0 == 0;
  p.result_blocked |= result && p.out_height * p.out_width == 1 && p.out_channels % p.result_lane() == 0;
}

void read_matrices(const Request& r, const regie_tensor& a, const regie_tensor& b, const regie_tensor& y,
                   CubeProblem& p) {
  if (a.rank < 2 || b.rank < 2) refuse("a vector as operand");
  if (!b.data) refuse("its right matrix is computed: products of bytes have constant weights");
  for (int32_t i = 0; i + 2 < b.rank; ++i)
    if (b.dims[i] != 1) refuse("its weights have a batch");
  p.elem = y.elem;
  p.left_elem = a.elem;
  p.transposed_b = r.attrs.integer("transB", 0) != 0;
  p.k = a.dims[a.rank - 1];
  p.n = b.dims[p.transposed_b ? b.rank - 2 : b.rank - 1];
  if (b.dims[p.transposed_b ? b.rank - 1 : b.rank - 2] != p.k) refuse("the inner dimensions differ");
  p.m = std::accumulate(a.dims, a.dims + a.rank - 1, int64_t{1}, std::multiplies<>());
}

// A bias of f32 in units of the sums, where all of it is whole, as tools write it: whole again but for the
// rounding of two operations.
std::vector<int32_t> whole_biases(const std::vector<float>& biases, const std::vector<float>& units) {
  std::vector<int32_t> whole;
  for (size_t i = 0; i < biases.size(); ++i) {
    const float value = biases[i] / units[units.size() == 1 ? 0 : i], near = std::nearbyint(value);
    if (!(std::fabs(value - near) <= 4 * std::numeric_limits<float>::epsilon() * std::fabs(near)) ||
        std::fabs(near) >= 0x1p31F)
      return {};
    whole.push_back(static_cast<int32_t>(near));
  }
  return whole;
}

// Quantised, as a bound of the result.
int32_t bound_of(float value, const ByteEpilogue& e, int32_t least, int32_t most, float scale) {
  const double v = std::nearbyint(static_cast<double>(value / scale)) + e.zero;
  return static_cast<int32_t>(std::clamp<double>(v, least, most));
}

void read_activation(const Request& r, CubeProblem& p, float y_scale) {
  Epilogue& to = p.epilogue;
  ByteEpilogue& e = p.bytes;
  const std::string name(r.attrs.text("activation", ""));
  const auto alpha = static_cast<float>(r.attrs.number("activation_alpha", 0)),
             beta = static_cast<float>(r.attrs.number("activation_beta", 0));
  const bool to_bytes = is_byte(p.elem);
  const int32_t least = e.low, most = e.high;
  if (name.empty()) return;
  // Rounding keeps the order, so bounds may as well be rounded and applied afterwards.
  if (to_bytes && name == "Relu") {
    e.low = std::clamp(e.zero, least, most);
  } else if (to_bytes && name == "Clip") {
    e.low = bound_of(alpha, e, least, most, y_scale);
    e.high = bound_of(beta, e, least, most, y_scale);
  } else {
    to.activation = name;
    to.activation_alpha = alpha;
    to.activation_beta = beta;
    activation_step(name, alpha, beta, {});
    if (to_bytes) e.divisor = y_scale;
  }
}

}  // namespace

const BytePlaces* byte_places(std::string_view op) {
  for (const Operator& o : kOperators)
    if (o.name == op) return &o.places;
  return nullptr;
}

Lowered lower_bytes(const Request& r) {
  const BytePlaces& at = *byte_places(r.op);
  const Reader read{r};
  check_byte_formats(r);
  const regie_tensor &x = r.need(at.x), &w = r.need(at.w), &y = r.results[0];
  if (!is_byte(x.elem) || !is_byte(w.elem)) refuse("operands that are no bytes");
  CubeProblem p;
  p.right_operand = at.w;
  if (r.op.find("Conv") != std::string_view::npos) {
    read_convolution(r, x, w, y, p);
    read_blocks(r, p);
  } else {
    read_matrices(r, x, w, y, p);
  }
  const int64_t columns = p.result_columns();
  ByteEpilogue& e = p.bytes;
  ByteColumns c;
  std::optional<ByteSum> sum;
  c.weight_zeros = read.zeros(at.w_zero, columns, "the weights' zero point");
  e.parts = parts_of(p, w, c);
  // The left matrix's zero point.
  const regie_tensor* x_zero = r.operand(at.x_zero);
  if (x_zero && !x_zero->data) {
    if (p.convolution && p.kernel_h * p.kernel_w > 1)
      refuse("the input's zero point, which is also its padding, is known at run time only");
    if (x_zero->elem != x.elem || regie::sdk::count_of(*x_zero) != 1)
      refuse("the input has more than one zero point");
    e.zero_operand = at.x_zero;
    e.corrected = true;
  } else {
    e.pad = read.zeros(at.x_zero, 1, "the input's zero point").front();
    e.corrected = e.pad != 0;
  }
  if (at.x_scale == kNowhere) {
    if (y.elem != REGIE_I32) refuse("the result must be i32");
  } else {
    e.scaled = true;
    const std::vector<float> w_scale = read.floats(at.w_scale, columns, "the weights' scale");
    c.factors.assign(static_cast<size_t>(columns), w_scale.front());
    if (w_scale.size() > 1) c.factors = w_scale;
    const regie_tensor& x_scale = r.need(at.x_scale);
    if (!x_scale.data) {
      if (y.elem != REGIE_F32 || x_scale.elem != REGIE_F32 || regie::sdk::count_of(x_scale) != 1)
        refuse("the input's scale is known at run time only");
      e.scale_operand = at.x_scale;
    } else {
      const float s = read.floats(at.x_scale, 1, "the input's scale").front();
      for (float& f : c.factors) f *= s;
    }
    float y_scale = 0;
    if (r.operand(at.y_scale)) {
      y_scale = read.floats(at.y_scale, 1, "the result's scale").front();
      if (!is_byte(y.elem) || e.scale_operand != REGIE_NONE)
        refuse("the result must be of bytes, at constant scales");
      e.zero = read.zeros(at.y_zero, 1, "the result's zero point").front();
      e.low = least_byte(y.elem);
      e.high = most_byte(y.elem);
    } else if (y.elem != REGIE_F32) {
      refuse("the result must be f32");
    }
    if (const regie_tensor* bias = r.operand(at.bias)) {
      if (regie::sdk::count_of(*bias) != columns || !bias->data ||
          (bias->elem != REGIE_F32 && bias->elem != REGIE_I32))
        refuse("its bias is not constant, or not one number a channel");
      if (bias->elem == REGIE_I32) {
        const auto* from = static_cast<const int32_t*>(bias->data);
        c.biases.assign(from, from + columns);
      } else {
        c.float_biases = read.floats(at.bias, columns, "its bias");
        if (e.scale_operand == REGIE_NONE && e.zero_operand == REGIE_NONE)
          c.biases = whole_biases(c.float_biases, c.factors);
      }
      if (!c.biases.empty()) {
        if (e.zero_operand != REGIE_NONE)
          refuse("a whole bias beside a zero point that is known at run time");
        e.corrected = true;
      } else {
        e.biased = true;
      }
    }
    if (r.op == "regie.QConvAdd") {
      const regie_tensor* inner_zero = r.operand(at.y_zero);
      if ((inner_zero ? inner_zero->elem : regie_elem{REGIE_U8}) != y.elem)
        refuse("what is added is of another type than the sum");
      sum = read_sum(r, read, p, y_scale);
    } else {
      read_activation(r, p, y_scale);
    }
    if (y_scale != 0 && e.divisor == 0) {
      for (float& f : c.factors) f /= y_scale;
      for (float& f : c.float_biases) f /= y_scale;
    }
    if (!std::all_of(c.factors.begin(), c.factors.end(), [](float f) { return std::isfinite(f); }))
      refuse("a scale is no finite number");
  }
  CubePlan plan;
  std::optional<CubeSum> on_cube;
  try {
    plan = plan_once(r, p);
  } catch (const Overflow&) {
    if (!sum) throw;
  }
  if (sum && p.result_blocked && p.requants()) {  // the residual lies in blocks then, too
    CubeProblem other = p;
    other.bytes.on_cube = true;
    try {
      const CubePlan found = plan_once(r, other);
      if (plan.cycles == 0 || found.cycles < plan.cycles) on_cube = cube_sum_of(*sum);
      if (on_cube) {
        plan = found;
        p = other;
        p.bytes.sum_factor = on_cube->factor;
      }
    } catch (const Overflow&) {
    }
  }
  if (plan.cycles == 0) plan = plan_once(r, p);  // says why there is none
  Lowered out;
  out.name = std::string(p.convolution ? "convolution" : "matmul") + " of bytes " +
             std::to_string(plan.rows) + "x" + std::to_string(plan.columns * 16) + " on " +
             std::to_string(plan.cores()) + (plan.cores() == 1 ? " core" : " cores");
  if (sum) out.name += on_cube ? ", sum on the cube" : ", sum";
  out.cycles = plan.cycles;
  out.write = [p, plan, sum, on_cube, c = std::move(c), chip = r.chip, &w]() mutable {
    Written written;
    if (sum && !on_cube)
      std::tie(p.bytes.inner_scale, p.bytes.residual_scale, p.bytes.sum_divisor) = scales_of(*sum);
    PackedWeight packed{p.right_operand, pack_bytes(p, plan, w, c), "opaque:aicore:fractal_z-s8"};
    if (on_cube) packed.bytes += pack_cube_sum(*on_cube);
    const uint64_t right_bytes = packed.bytes.size();
    written.weights.push_back(std::move(packed));
    written.program = cube_program(p, plan, chip, right_bytes);
    return written;
  };
  return out;
}

}  // namespace aicore
