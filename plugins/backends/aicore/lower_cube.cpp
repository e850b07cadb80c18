// Convolutions and matrix products: from attributes and shapes to CubeProblem.
#include <algorithm>
#include <numeric>

#include "cube_factors.h"
#include "cube_variants.h"
#include "lower.h"
#include "matrices.h"

namespace aicore {

namespace {

using regie::sdk::Attrs;

std::vector<int64_t> key_of(const CubeProblem& p) {
  const Epilogue& e = p.epilogue;
  // The last two depend on bounds and zero points: ways out, with buffers of their own.
  std::vector<int64_t> key{p.convolution,
                           p.elem,
                           p.bytes_of(p.left_elem),
                           p.bytes_of(p.right_elem),
                           p.bytes_of(p.bias_elem),
                           p.bytes_of(p.residual_elem),
                           p.left_blocked,
                           p.result_blocked,
                           p.left_matrix,
                           p.right_matrix,
                           p.residual_matrix,
                           p.result_matrix,
                           p.batch,
                           p.m,
                           p.n,
                           p.k,
                           p.a_batched,
                           p.transposed_a,
                           p.b_batched,
                           p.transposed_b,
                           p.constant_b,
                           p.channels,
                           p.height,
                           p.width,
                           p.out_channels,
                           p.out_height,
                           p.out_width,
                           p.kernel_h,
                           p.kernel_w,
                           p.stride_h,
                           p.stride_w,
                           p.dilation_h,
                           p.dilation_w,
                           p.pad_top,
                           p.pad_left,
                           p.model_groups,
                           p.left_parts,
                           p.split_sums,
                           p.fold,
                           p.cube_bias,
                           p.cube_residual,
                           e.scaled,
                           e.bias_operand,
                           static_cast<int64_t>(e.bias_count),
                           e.residual_operand,
                           p.of_bytes(),
                           p.bytes.parts,
                           p.bytes.corrected,
                           p.bytes.scaled,
                           p.bytes.biased,
                           p.bytes.divisor != 0,
                           p.bytes.zero != 0,
                           p.bytes.low,
                           p.bytes.high,
                           p.bytes.inner_zero != 0,
                           p.bytes.residual_zero != 0,
                           p.bytes.sum_zero != 0,
                           p.bytes.sum_low,
                           p.bytes.on_cube,
                           p.leaves_as_it_is(),
                           p.requants()};
  for (char c : e.activation) key.push_back(c);
  return key;
}

void read_activation(const Attrs& attrs, Epilogue& e) {
  e.activation = std::string(attrs.text("activation", ""));
  e.activation_alpha = static_cast<float>(attrs.number("activation_alpha", 0));
  e.activation_beta = static_cast<float>(attrs.number("activation_beta", 0));
  if (!e.activation.empty()) activation_step(e.activation, e.activation_alpha, e.activation_beta, {});
}

void check_elements(const Request& r, std::initializer_list<const regie_tensor*> tensors) {
  if (!is_float(r.results[0].elem)) refuse("elements other than f32 and f16");
  for (const regie_tensor* t : tensors)
    if (t && !is_float(t->elem)) refuse("elements other than f32 and f16");
}

// Of weights that lie along k in another order.
std::string folded_name(const CubeProblem& p) {
  if (p.fold == 1) return "";
  return "-folded-" + std::to_string(p.fold) + "-" + std::to_string(p.fold_shift());
}

// Takes the other way of doing it where that is quicker. Its buffers may overflow where those of this way do
// not.
void take_if_quicker(const Request& r, const CubeProblem& other, CubeProblem& p, CubePlan& plan) {
  try {
    const CubePlan found = plan_once(r, other);
    if (!(found < plan)) return;
    plan = found;
    p = other;
  } catch (const Overflow&) {
  }
}

Lowered finish(const Request& r, CubeProblem p, std::string name, const regie_tensor& right) {
  p.epilogue.scaled = p.constant_b && has_factors(p, right);
  take_two_halves(r.chip, p);
  CubePlan plan = plan_once(r, p);
  if (CubeProblem folded = p; fold_rows(folded, r.chip)) take_if_quicker(r, folded, p, plan);
  const regie_tensor* bias = p.convolution ? r.operand(2) : nullptr;
  if (CubeProblem added = p; let_cube_add(added, bias)) {
    // What binds decides: the cube, which they keep longer, or the vector unit.
    for (bool residual : {false, true}) {
      if (residual && !added.cube_residual) continue;
      CubeProblem one = added;
      one.cube_residual = residual;
      take_if_quicker(r, one, p, plan);
    }
  }
  Lowered out;
  out.name = std::move(name) + " " + std::to_string(plan.rows) + "x" + std::to_string(plan.columns * 16) +
             " on " + std::to_string(plan.cores()) + (plan.cores() == 1 ? " core" : " cores");
  if (p.left_parts == 2) out.name += ", in two halves";
  if (p.fold > 1) out.name += ", " + std::to_string(p.fold) + " rows folded";
  if (p.cube_bias) out.name += p.cube_residual ? ", bias and residual on the cube" : ", bias on the cube";
  if (plan.streamed) out.name += ", " + std::to_string(plan.chunks) + " chunks";
  out.cycles = plan.cycles;
  out.write = [p, plan, chip = r.chip, &right, bias] {
    Written w;
    uint64_t right_bytes = right.bytes;
    if (p.constant_b) {
      PackedWeight packed{1, pack_weights(p, plan, right), std::string(layout_of(p)) + folded_name(p)};
      right_bytes = packed.bytes.size();
      w.weights.push_back(std::move(packed));
    } else {
      right_bytes = static_cast<uint64_t>(p.right_count() * p.bytes_of(p.right_elem));
    }
    if (p.cube_bias)
      w.weights.push_back({p.epilogue.bias_operand, pack_addends(p, plan, *bias),
                           "opaque:aicore:addends-" + std::to_string(plan.n_tiles * plan.columns) +
                               (p.cube_residual ? "-unit" : "")});
    w.program = cube_program(p, plan, chip, right_bytes);
    return w;
  };
  return out;
}

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Which tensors of a product lie in FRACTAL_NZ, and the format of those with the result's rows; row-major if
// there is none.
regie_format take_matrices(const Request& r, CubeProblem& p) {
  p.left_matrix = is_matrix(r.operand_format(0));
  p.right_matrix = is_matrix(r.operand_format(1));
  p.result_matrix = is_matrix(r.result_format(0));
  regie_format rows = kPlainFormat;
  for (regie_format f : {r.operand_format(0), r.result_format(0), r.operand_format(2), r.operand_format(3)}) {
    if (!is_matrix(f)) continue;
    if (rows != kPlainFormat && rows != f) refuse("operands and results in different formats");
    rows = f;
  }
  if (p.right_matrix && (r.need(1).data || r.operand_format(1) != matrix_format(2)))
    refuse("a right matrix with rows along another axis");
  if (rows != kPlainFormat && p.transposed_a) refuse("a left matrix that is transposed, in columns of 16");
  return rows;
}
// One right matrix for all: the rows may be along any axis of the left one, whose others are batches then.
void take_batches(const Request& r, regie_format rows, CubeProblem& p) {
  if (rows == kPlainFormat) {
    p.m *= p.batch;
    p.batch = 1;
    return;
  }
  const Matrices m(regie::sdk::dims_of(r.results[0]), rows);
  const bool plain = !p.left_matrix || !p.result_matrix || r.operand(2) || r.operand(3);
  if (plain && m.inner != 1) refuse("rows along an axis with others within it, and some that lie row-major");
  p.batch = m.count();
  p.m = m.rows;
  p.a_batched = p.batch > 1;
}

}  // namespace

void take_two_halves(const Chip& chip, CubeProblem& p) {
  if (!chip.two_halves) return;
  if (p.constant_b && !p.transposed_a && p.bytes_of(p.left_elem) == 4) p.left_parts = 2;
  p.split_sums = p.turned() && p.bytes_of(p.elem) == 4;
}

CubePlan plan_once(const Request& r, const CubeProblem& p) {
  std::vector<int64_t> key = key_of(p);
  auto at = r.plans.find(key);
  if (at == r.plans.end()) at = r.plans.emplace(std::move(key), plan_cube(p, r.chip)).first;
  return at->second;
}

void read_convolution(const Request& r, const regie_tensor& x, const regie_tensor& w, const regie_tensor& y,
                      CubeProblem& p) {
  if (x.rank != 4 && x.rank != 3) refuse("convolutions of one or two spatial axes only");
  if (w.rank != x.rank || y.rank != x.rank) refuse("input, weight and result have different ranks");
  if (!w.data) refuse("its weights are not constant");
  p.convolution = true;
  p.elem = y.elem;
  p.left_elem = x.elem;
  p.batch = x.dims[0];
  p.channels = x.dims[1];
  p.out_channels = y.dims[1];
  // One spatial axis is a row.
  const bool flat = x.rank == 3;
  const size_t h = 0, v = flat ? 0 : 1, axes = flat ? 1 : 2;
  p.height = flat ? 1 : x.dims[2];
  p.width = x.dims[x.rank - 1];
  p.out_height = flat ? 1 : y.dims[2];
  p.out_width = y.dims[y.rank - 1];
  p.kernel_h = flat ? 1 : w.dims[2];
  p.kernel_w = w.dims[w.rank - 1];
  p.stride_h = flat ? 1 : integer_at(r.attrs, "strides", h, 1);
  p.stride_w = integer_at(r.attrs, "strides", v, 1);
  p.dilation_h = flat ? 1 : integer_at(r.attrs, "dilations", h, 1);
  p.dilation_w = integer_at(r.attrs, "dilations", v, 1);
  p.pad_top =
      flat ? 0 : padding_before(r.attrs, h, p.height, p.out_height, p.kernel_h, p.stride_h, p.dilation_h);
  p.pad_left = padding_before(r.attrs, v, p.width, p.out_width, p.kernel_w, p.stride_w, p.dilation_w);
  if (auto list = r.attrs.integers("pads");
      r.attrs.text("auto_pad", "NOTSET") == "NOTSET" && list && !list->empty() && list->size() != 2 * axes)
    refuse("attribute 'pads' has another length");
  const int64_t group = r.attrs.integer("group", 1);
  if (group < 1 || p.channels % group || p.out_channels % group || w.dims[1] != p.channels / group ||
      w.dims[0] != p.out_channels)
    refuse("channels and groups do not fit");
  for (int64_t n : {p.stride_h, p.stride_w, p.dilation_h, p.dilation_w})
    if (n < 1 || n > 4096) refuse("a stride or dilation out of range");
  if (p.pad_top < 0 || p.pad_left < 0) refuse("negative padding");
  p.model_groups = group;
  // Groups are joined until their channels are whole blocks on both sides.
  const int64_t in = p.channels / group, outer = p.out_channels / group;
  const int64_t joined = std::lcm(p.k0() / std::gcd(p.k0(), in), 16 / std::gcd(int64_t{16}, outer));
  if (group == 1 || joined >= group) {
    p.in_group = p.channels;
    p.out_group = p.out_channels;
  } else {
    p.groups = up(group, joined);
    p.in_group = in * joined;
    p.out_group = outer * joined;
  }
}

Lowered lower_convolution(const Request& r) {
  const regie_tensor &x = r.need(0), &w = r.need(1), &y = r.results[0];
  const regie_tensor *bias = r.operand(2), *residual = r.operand(3);
  check_elements(r, {&x, &w, bias, residual});
  CubeProblem p;
  read_convolution(r, x, w, y, p);
  const int64_t group = p.model_groups;
  if (bias) p.bias_elem = bias->elem;
  if (residual) p.residual_elem = residual->elem;
  if (bias) {
    if (bias->rank != 1 || bias->dims[0] != p.out_channels) refuse("its bias has another shape");
    p.epilogue.bias_operand = 2;
    p.epilogue.bias_count = static_cast<uint64_t>(p.out_channels);
  }
  if (residual) {
    if (residual->rank != y.rank || !std::equal(y.dims, y.dims + y.rank, residual->dims))
      refuse("its residual has another shape");
    p.epilogue.residual_operand = 3;
  }
  // Joined groups fill blocks but for the last one, whose lanes beyond the channels are zeros. A map of one
  // position lies in whole blocks of channels as it is.
  auto whole = [&](int64_t channels, int64_t group) {
    return p.groups == 1 || (group % kC0 == 0 && lanes_of(channels) == p.groups * group);
  };
  const bool point = p.out_height * p.out_width == 1;
  p.left_blocked = is_blocked(r.operand_format(0));
  p.result_blocked = is_blocked(r.result_format(0));
  if ((p.left_blocked && !whole(p.channels, p.in_group)) ||
      (p.result_blocked && !whole(p.out_channels, p.out_group)))
    refuse("groups that do not fill blocks of 16");
  p.left_blocked |= p.height * p.width == 1 && p.channels % kC0 == 0 && whole(p.channels, p.in_group);
  p.result_blocked |= point && p.out_channels % kC0 == 0 && whole(p.out_channels, p.out_group);
  if (residual && !point && is_blocked(r.operand_format(3)) != p.result_blocked)
    refuse("residual and result in different formats");
  read_activation(r.attrs, p.epilogue);
  return finish(r, p, group == p.channels && group > 1 ? "depth-wise convolution" : "convolution", w);
}

Lowered lower_product(const Request& r) {
  const regie_tensor &a = r.need(0), &b = r.need(1), &y = r.results[0];
  const regie_tensor *c = r.operand(2), *residual = r.operand(3);
  check_elements(r, {&a, &b, c, residual});
  if (a.rank < 2 || b.rank < 2) refuse("a vector as operand");
  CubeProblem p;
  p.elem = y.elem;
  p.left_elem = a.elem;
  p.right_elem = b.elem;
  p.transposed_b = r.attrs.integer("transB", 0) != 0;
  p.transposed_a = r.attrs.integer("transA", 0) != 0;
  p.k = a.dims[a.rank - (p.transposed_a ? 2 : 1)];
  p.m = a.dims[a.rank - (p.transposed_a ? 1 : 2)];
  p.n = b.dims[p.transposed_b ? b.rank - 2 : b.rank - 1];
  if (b.dims[p.transposed_b ? b.rank - 1 : b.rank - 2] != p.k) refuse("the inner dimensions differ");
  const int64_t batch_a = product({a.dims, static_cast<size_t>(a.rank - 2)}),
                batch_b = product({b.dims, static_cast<size_t>(b.rank - 2)});
  p.batch = product(regie::sdk::dims_of(y)) / (p.m * p.n);
  const regie_format rows = take_matrices(r, p);
  if (batch_b == 1) {
    if (p.batch != batch_a) refuse("the batch dimensions do not fit");
    if (p.transposed_a) {
      p.a_batched = p.batch > 1;
    } else {
      take_batches(r, rows, p);
    }
  } else {
    if (rows != kPlainFormat && rows != matrix_format(2)) refuse("rows along an axis of batches");
    const bool same =
        batch_a == batch_b && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank - 2, b.dims);
    if (p.batch != batch_b || (batch_a != 1 && !same))
      refuse("batch dimensions that broadcast on both sides");
    p.a_batched = batch_a > 1;
    p.b_batched = true;
  }
  p.constant_b = b.data != nullptr && batch_b == 1;
  Epilogue& e = p.epilogue;
  e.alpha = static_cast<float>(r.attrs.number("alpha", 1));
  const double beta = r.op == "Gemm" ? r.attrs.number("beta", 1) : 1;
  auto addend = [&](const regie_tensor& t, uint32_t operand) {
    const int64_t count = product(regie::sdk::dims_of(t));
    if (beta != 1) refuse("beta other than 1");
    if (count == p.n && t.rank >= 1 && t.dims[t.rank - 1] == p.n && e.bias_operand == REGIE_NONE &&
        (p.batch * p.m > 1 || t.rank < y.rank)) {
      e.bias_operand = operand;
      p.bias_elem = t.elem;
      e.bias_count = static_cast<uint64_t>(count);
    } else if (t.rank <= y.rank && count == product(regie::sdk::dims_of(y)) &&
               e.residual_operand == REGIE_NONE) {
      e.residual_operand = operand;
      p.residual_elem = t.elem;
    } else {
      refuse("an addend that is neither one element a column nor of the result's shape");
    }
  };
  if (c && !(r.op == "Gemm" && beta == 0)) addend(*c, 2);
  if (residual) addend(*residual, 3);
  read_activation(r.attrs, e);
  if (e.residual_operand != REGIE_NONE) {
    p.residual_matrix = is_matrix(r.operand_format(e.residual_operand));
    if (p.result_matrix && !p.residual_matrix && p.n % 16)
      refuse("an addend whose rows are no whole blocks, of columns of 16");
  } else {
    p.residual_matrix = false;
  }
  if (e.bias_operand != REGIE_NONE && is_matrix(r.operand_format(e.bias_operand)))
    refuse("a bias in columns of 16");
  return finish(r, p, "matmul", b);
}

}  // namespace aicore
