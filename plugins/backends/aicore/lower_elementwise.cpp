// Element-wise operators, alone or as the region of a regie.Pointwise: one walk over the result. Dimensions
// that all tensors walk through alike are merged; what is left are rows of contiguous elements, and loops
// around them. A tile of rows is computed in f32 in UB: registers of the tile's size, given out by last use.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "elementwise.h"
#include "half.h"
#include "matrices.h"
#include "transpose.h"

namespace aicore {

namespace {

// A dimension around what there is, `strides` one an operand.
void put_apart(Shape& s, int64_t size, const std::vector<int64_t>& strides) {
  s.dims.insert(s.dims.begin(), size);
  for (size_t i = 0; i < strides.size(); ++i) s.strides[i].insert(s.strides[i].begin(), strides[i]);
}
// Merged into it where all walk through both alike.
void put_outside(Shape& s, int64_t size, const std::vector<int64_t>& strides) {
  bool joins = !s.dims.empty();
  for (size_t i = 0; i < strides.size() && joins; ++i)
    joins = strides[i] == s.strides[i].front() * s.dims.front();
  if (joins) {
    s.dims.front() *= size;
    return;
  }
  put_apart(s, size, strides);
}
void finish(Shape& s) {
  if (!s.dims.empty()) return;
  s.dims = {1};
  for (auto& l : s.strides) l = {0};
}

// Sizes along the axes of the result, one of which is absent where it broadcasts.
std::vector<int64_t> sizes_of(const regie_tensor& t, int32_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  for (int32_t d = 0; d < t.rank && t.elem != REGIE_ELEM_UNKNOWN; ++d)
    sizes[static_cast<size_t>(d + rank - t.rank)] = t.dims[d];
  return sizes;
}
// Channels as blocks, outside of the positions, and channels of a block, inside of them.
void split_channels(std::vector<int64_t>& sizes, bool spread) {
  sizes.push_back(spread ? 1 : kC0);
  sizes[1] = spread ? 1 : lanes_of(sizes[1]) / kC0;
}

// Bytes in blocks: the walk is that over row-major tensors, where all that has more than one element lies so.
void check_byte_blocks(const Request& r) {
  const regie_tensor& y = r.results[0];
  const bool blocks = r.result_format(0) == kByteBlockedFormat;
  const char* wrong = "operands and results in different formats";
  for (size_t i = 0; i < r.results.size(); ++i)
    if ((r.result_format(i) == kByteBlockedFormat) != blocks) refuse(wrong);
  for (size_t i = 0; i < r.operands.size(); ++i) {
    const regie_tensor& t = r.operands[i];
    const bool own = r.operand_format(i) == kByteBlockedFormat;
    if (own && (!blocks || t.rank != y.rank || !std::equal(y.dims, y.dims + y.rank, t.dims))) refuse(wrong);
    if (blocks && !own && t.elem != REGIE_ELEM_UNKNOWN && regie::sdk::count_of(t) != 1) refuse(wrong);
  }
}

Shape merge(const Request& r) {
  const regie_tensor& y = r.results[0];
  check_byte_blocks(r);
  const bool blocked = is_blocked(r.result_format(0));
  for (size_t i = 0; i < r.results.size(); ++i) {
    const regie_tensor& t = r.results[i];
    if (t.rank != y.rank || !std::equal(y.dims, y.dims + y.rank, t.dims))
      refuse("results of different shapes");
    if (is_blocked(r.result_format(i)) != blocked) refuse("results in different formats");
  }
  std::vector<int64_t> whole(y.dims, y.dims + y.rank);
  std::vector<std::vector<int64_t>> all;
  for (size_t i = 0; i < r.operands.size(); ++i) {
    const regie_tensor& t = r.operands[i];
    if (t.elem != REGIE_ELEM_UNKNOWN && t.rank > y.rank)
      refuse("an operand does not broadcast to the result");
    std::vector<int64_t> sizes = sizes_of(t, y.rank);
    const bool own = is_blocked(r.operand_format(i));
    // Of one position both orders are the same.
    bool point = true;
    for (size_t d = 2; d < sizes.size(); ++d) point = point && sizes[d] == 1;
    if ((own && (!blocked || t.rank != y.rank)) || (blocked && !own && !point))
      refuse("operands and results in different formats");
    all.push_back(std::move(sizes));
  }
  const bool padded = has_padding(r.result_format(0), y.rank > 1 ? y.dims[1] : 0);
  Shape s;
  s.strides.resize(r.operands.size());
  s.ends.resize(r.operands.size(), false);
  if (blocked) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i][1] != 1 && all[i][1] != whole[1]) refuse("an operand does not broadcast to the result");
      const bool spread = all[i][1] == 1 && whole[1] != 1;
      s.ends[i] = padded && !spread && !is_blocked(r.operand_format(i));
      split_channels(all[i], spread);
    }
    split_channels(whole, false);
  }
  std::vector<int64_t> step(r.operands.size(), 1);
  size_t inside = 0;  // dimensions from the one that counts blocks on
  for (size_t d = whole.size(); d-- > 0;) {
    if (whole[d] == 1 && !(padded && d == 1)) continue;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < r.operands.size(); ++i) {
      const int64_t size = all[i][d];
      if (size != 1 && size != whole[d]) refuse("an operand does not broadcast to the result");
      strides.push_back(size == 1 ? 0 : step[i]);
      step[i] *= size;
      if (d == 1 && s.ends[i]) step[i] = y.dims[1];
    }
    if (padded && d == 1) {     // loops around a block: rows and columns are within it
      if (s.dims.size() < 2) {  // one row
        std::vector<int64_t> row;
        for (const auto& l : s.strides)
          row.push_back(l.back() == 1 && !s.ends[row.size()] ? s.dims.back() : 0);
        put_apart(s, 1, row);
      }
      put_apart(s, whole[d], strides);
      s.channels = y.dims[1];
      inside = s.dims.size();
      continue;
    }
    if (s.channels)
      put_apart(s, whole[d], strides);
    else
      put_outside(s, whole[d], strides);
  }
  finish(s);
  if (s.channels) s.blocks_at = s.dims.size() - inside;
  return s;
}
}  // namespace

namespace {
// A constant in blocks of channels, filled up with zeros.
std::string in_blocks(const regie_tensor& t) {
  const auto size = static_cast<size_t>(size_of(t.elem));
  std::string out(static_cast<size_t>(laid_count(regie::sdk::dims_of(t), kBlockedFormat)) * size, '\0');
  int64_t map = 1;
  for (int32_t d = 2; d < t.rank; ++d) map *= t.dims[d];
  for (int64_t i = 0; i < regie::sdk::count_of(t); ++i) {
    const int64_t position = i % map, c = i / map % t.dims[1], n = i / map / t.dims[1];
    const int64_t to = ((n * (lanes_of(t.dims[1]) / kC0) + c / kC0) * map + position) * kC0 + c % kC0;
    std::memcpy(out.data() + static_cast<size_t>(to) * size,
                static_cast<const char*>(t.data) + static_cast<size_t>(i) * size, size);
  }
  return out;
}
}  // namespace

Lowered lower_elementwise(const Request& r) {
  if (any_matrix(r)) {
    const std::shared_ptr<Seen> seen = seen_as_blocks(r, false);
    Lowered out = lower_elementwise(*seen->request);
    out.write = [seen, write = std::move(out.write)] { return write(); };
    return out;
  }
  if (r.results.size() > 8 || r.operands.size() > 24) refuse("it has too many operands and results");
  Code code = compile_elementwise(r);
  // Constants of the result's shape are stored as the program walks.
  Request laid = r;
  laid.operand_formats.resize(r.operands.size(), kPlainFormat);
  const regie_tensor& y = r.results[0];
  std::vector<uint32_t> packed;
  for (uint32_t i = 0; i < r.operands.size() && is_blocked(r.result_format(0)); ++i) {
    const regie_tensor& t = r.operands[i];
    if (!t.data || !is_float(t.elem) || t.rank != y.rank || !std::equal(y.dims, y.dims + y.rank, t.dims))
      continue;
    laid.operand_formats[i] = kBlockedFormat;
    if (std::find(code.operands.begin(), code.operands.end(), i) != code.operands.end()) packed.push_back(i);
  }
  Lowered out = lowered(laid, std::move(code), merge(laid));
  if (packed.empty()) return out;
  out.write = [write = std::move(out.write), packed, operands = r.operands] {
    Written w = write();
    for (uint32_t i : packed)
      w.weights.push_back(
          {i, in_blocks(operands[i]),
           std::string("opaque:aicore:nc1hwc0-") + (operands[i].elem == REGIE_F16 ? "f16" : "f32")});
    return w;
  };
  return out;
}

// With constant statistics: x * s + b, both folded at compile time into the places of scale and bias.
Lowered lower_batch_normalization(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || !is_float(y.elem)) refuse("elements other than f32 and f16");
  if (r.attrs.integer("training_mode", 0)) refuse("it is in training mode");
  if (x.rank < 2) refuse("it has no axis of channels");
  std::vector<std::vector<double>> given;
  for (size_t i = 1; i <= 4; ++i) {
    const regie_tensor& t = r.need(i);
    if (!t.data || !is_float(t.elem)) refuse("its scale, bias, mean or variance is not constant");
    if (regie::sdk::count_of(t) != x.dims[1]) refuse("its scale, bias, mean or variance has another length");
    given.emplace_back();
    for (int64_t c = 0; c < x.dims[1]; ++c) given.back().push_back(float_at(t, c));
  }
  const double epsilon = r.attrs.number("epsilon", 1e-5);
  std::vector<float> scale, bias;
  for (size_t c = 0; c < given[0].size(); ++c) {
    const double s = given[0][c] / std::sqrt(given[3][c] + epsilon);
    scale.push_back(static_cast<float>(s));
    bias.push_back(static_cast<float>(given[1][c] - given[2][c] * s));
  }
  std::vector<PackedWeight> weights;
  for (uint32_t i : {1u, 2u}) {
    const std::vector<float>& all = i == 1 ? scale : bias;
    weights.push_back({i,
                       {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float)},
                       "opaque:aicore:folded-normalisation"});
  }
  // One element a channel, which broadcasts.
  std::vector<int64_t> channel_dims(static_cast<size_t>(x.rank), 1);
  channel_dims[1] = x.dims[1];
  regie_tensor one = r.need(1);
  one.elem = REGIE_F32;
  one.rank = x.rank;
  one.dims = channel_dims.data();
  one.bytes = scale.size() * sizeof(float);
  const regie_tensor operands[] = {x, one, one};
  Request three = r;
  three.operands = operands;
  three.operand_formats.resize(std::min<size_t>(three.operand_formats.size(), 3));
  Shape s = merge(three);
  Code code;
  code.registers = 1;
  code.quick = 2;
  code.operands = {0, 1, 2};
  const Location product{Location::kRegister, 0, 0};
  auto push = [&](const char* op, Location a, Location b, Location to) {
    Step step_of;
    step_of.vector.op = find_vector_op(op);
    step_of.vector.in.resize(2);
    step_of.in = {a, b};
    step_of.out = to;
    code.steps.push_back(std::move(step_of));
  };
  push("Mul", {Location::kOperand, 0, 0}, {Location::kOperand, 0, 1}, product);
  push("Add", product, {Location::kOperand, 0, 2}, {Location::kResult, 0, 0});
  Lowered out = lowered(three, std::move(code), std::move(s));
  out.write = [write = std::move(out.write), weights = std::move(weights)] {
    Written w = write();
    w.weights = weights;
    return w;
  };
  return out;
}

namespace {
Lowered turned_over(const Request& r, Transposition plan) {
  Lowered out;
  out.name = "vector " + std::string(r.op) + " of elements";
  out.cycles = plan.cycles;
  out.write = [plan = std::move(plan), chip = r.chip] {
    regie::tile::Builder b(static_cast<uint32_t>(plan.cores()), chip.sizes);
    const auto bytes = static_cast<uint64_t>(plan.count() * size_of(plan.elem));
    const uint32_t in = b.operand(0, bytes), to = b.result(0, bytes);
    emit_transposition(plan, b, in, to);
    Written w;
    w.program = b.finish();
    return w;
  };
  return out;
}
}  // namespace

namespace {
Lowered copied(const Request& r, Shape s) {
  Code code;
  Step step;
  step.vector.op = find_vector_op("Identity");
  step.vector.in.resize(1);
  step.in = {{Location::kOperand, 0, 0}};
  step.out = {Location::kResult, 0, 0};
  code.steps.push_back(std::move(step));
  code.operands = {0};
  code.quick = 1;
  return lowered(r, std::move(code), std::move(s));
}
}  // namespace

Lowered lower_copy(const Request& r) { return copied(r, merge(r)); }

Lowered lower_steps(const Request& r, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  Shape s;
  s.strides.resize(1);
  s.first = {0};
  int64_t stride = 1;
  for (int32_t d = x.rank; d-- > 0; stride *= x.dims[d]) {
    const auto i = static_cast<size_t>(d);
    s.first[0] += starts[i] * stride;
    if (y.dims[d] == 1) continue;
    if (s.dims.empty() && stride * steps[i] != 1) put_apart(s, 1, {1});  // runs of one element
    put_outside(s, y.dims[d], {stride * steps[i]});
  }
  finish(s);
  Request one = r;  // its lists are parameters
  one.operands = r.operands.first(1);
  return copied(one, std::move(s));
}

Lowered lower_move(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if ((!is_float(x.elem) && !is_byte(x.elem)) || x.elem != y.elem)
    refuse("elements other than f32, f16 and bytes");
  if (any_matrix(r)) return lower_reshape(r);
  Shape s;
  if (r.op == "Transpose") {
    std::vector<int64_t> order;
    if (const auto given = r.attrs.integers("perm"); given && !given->empty())
      order.assign(given->begin(), given->end());
    else
      for (int32_t d = x.rank; d-- > 0;) order.push_back(d);
    if (order.size() != static_cast<size_t>(x.rank)) refuse("attribute 'perm' has another length");
    const std::span<const int64_t> dims{x.dims, order.size()};
    std::vector<bool> taken(order.size(), false);
    for (int64_t d : order) {
      if (d < 0 || d >= x.rank || taken[static_cast<size_t>(d)]) refuse("attribute 'perm' is no permutation");
      taken[static_cast<size_t>(d)] = true;
    }
    if (turns_over(dims, order)) return turned_over(r, plan_transposition(x.elem, dims, order, r.chip));
    std::vector<int64_t> strides(order.size(), 1);
    for (size_t d = order.size(); d-- > 1;) strides[d - 1] = strides[d] * x.dims[d];
    s.strides.resize(1);
    for (size_t d = order.size(); d-- > 0;) {
      const auto from = static_cast<size_t>(order[d]);
      if (x.dims[from] != 1) put_outside(s, x.dims[from], {strides[from]});
    }
    finish(s);
  } else {  // Expand
    Request one = r;
    one.operands = r.operands.first(1);
    s = merge(one);
  }
  return copied(r, std::move(s));
}

}  // namespace aicore
