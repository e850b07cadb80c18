// Operators that enlarge a map by whole factors: Resize to the nearest position, and ConvTranspose whose
// windows neither overlap nor leave gaps, which is a product with one channel for each place in the window,
// woven.
#include <algorithm>
#include <cmath>

#include "cube_factors.h"
#include "half.h"
#include "lower.h"
#include "upscale.h"

namespace aicore {

namespace {

// Where output position i of an axis of `out` comes from in one of `in` positions, as ONNX defines it.
int64_t nearest(const regie::sdk::Attrs& attrs, int64_t i, int64_t in, int64_t out) {
  const std::string_view mode = attrs.text("coordinate_transformation_mode", "half_pixel"),
                         rounding = attrs.text("nearest_mode", "round_prefer_floor");
  const double scale = static_cast<double>(out) / static_cast<double>(in), o = static_cast<double>(i);
  double x = 0;
  if (mode == "asymmetric")
    x = o / scale;
  else if (mode == "half_pixel" || mode == "half_pixel_symmetric" ||
           (mode == "pytorch_half_pixel" && out > 1))
    x = (o + 0.5) / scale - 0.5;
  else if (mode == "align_corners" && out > 1)
    x = o * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  else if (mode != "pytorch_half_pixel" && mode != "align_corners")
    refuse("coordinates of mode " + std::string(mode));
  double nearest = rounding == "floor"               ? std::floor(x)
                   : rounding == "ceil"              ? std::ceil(x)
                   : rounding == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                     : std::ceil(x - 0.5);
  return std::clamp<int64_t>(static_cast<int64_t>(nearest), 0, in - 1);
}

// Whole factors only: position i comes from i / factor.
int64_t factor_of(const regie::sdk::Attrs& attrs, int64_t in, int64_t out) {
  if (out % in) refuse("it does not become larger by a whole factor");
  const int64_t factor = out / in;
  if (factor > 64) refuse("it becomes more than 64 times larger");
  for (int64_t i = 0; i < out; ++i)
    if (nearest(attrs, i, in, out) != i / factor) refuse("positions that do not repeat evenly");
  return factor;
}

uint64_t bytes_of(const regie_tensor& t) {
  return static_cast<uint64_t>(regie::sdk::count_of(t) * size_of(t.elem));
}

// Weights of a transposed convolution, channels of the result first, as those of a convolution are.
struct TurnedWeights {
  std::vector<float> values;
  int64_t dims[4];
  TurnedWeights(const CubeProblem& p, const regie_tensor& w) : dims{p.out_channels, p.channels, 1, 1} {
    values.reserve(static_cast<size_t>(p.out_channels * p.channels));
    for (int64_t o = 0; o < p.out_channels; ++o)
      for (int64_t c = 0; c < p.channels; ++c) values.push_back(float_at(w, c * p.out_channels + o));
  }
  regie_tensor tensor() const {
    regie_tensor t{};
    t.elem = REGIE_F32;
    t.rank = 4;
    t.dims = dims;
    t.data = const_cast<float*>(values.data());
    t.bytes = values.size() * sizeof(float);
    return t;
  }
};

}  // namespace

Lowered lower_resize(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (r.attrs.text("mode", "nearest") != "nearest") return lower_interpolation(r);
  if (!is_float(x.elem) || x.elem != y.elem) refuse("elements other than f32 and f16");
  if (r.attrs.text("keep_aspect_ratio_policy", "stretch") != "stretch") refuse("sizes that keep the aspect");
  if (x.rank < 3 || x.rank > 5 || y.rank != x.rank) refuse("it has no map, or one of several axes more");
  for (int32_t d = 0; d + 2 < x.rank; ++d)
    if (x.dims[d] != y.dims[d]) refuse("it resizes other axes than the last two");
  const bool blocked = is_blocked(r.operand_format(0));
  if (is_blocked(r.result_format(0)) != blocked) refuse("operand and result in different formats");
  // Scales are what sizes say, if they are whole; else they say more than the sizes.
  if (const regie_tensor* scales = r.operand(2); scales && regie::sdk::count_of(*scales)) {
    if (!scales->data || scales->elem != REGIE_F32) refuse("its scales are not constant");
    for (int64_t i = 0; i < regie::sdk::count_of(*scales); ++i)
      if (const float s = static_cast<const float*>(scales->data)[i]; s != std::floor(s))
        refuse("scales that are not whole");
  }
  Upscale u;
  u.elem = x.elem;
  const int32_t h = x.rank - 2, w = x.rank - 1;
  u.height = x.dims[h];
  u.width = x.dims[w];
  u.factor_h = factor_of(r.attrs, x.dims[h], y.dims[h]);
  u.factor_w = factor_of(r.attrs, x.dims[w], y.dims[w]);
  u.planes = regie::sdk::count_of(x) / (u.height * u.width);
  if (blocked) {
    if (x.rank != 4) refuse("blocks of channels with other than two axes");
    u.lanes = kC0;
    u.planes = x.dims[0] * up(x.dims[1], kC0);
  }
  plan_upscale(u, r.chip);
  Lowered out;
  out.name = "vector Resize " + std::to_string(u.factor_h) + "x" + std::to_string(u.factor_w);
  out.cycles = u.cycles;
  out.write = [u, chip = r.chip] {
    regie::tile::Builder b(static_cast<uint32_t>(u.cores()), chip.sizes);
    const int64_t s = size_of(u.elem);
    const uint32_t in = b.operand(0, static_cast<uint64_t>(u.in_count() * s)),
                   to = b.result(0, static_cast<uint64_t>(u.out_count() * s));
    emit_upscale(u, b, in, to);
    Written w;
    w.program = b.finish();
    return w;
  };
  return out;
}

Lowered lower_conv_transpose(const Request& r) {
  const regie_tensor &x = r.need(0), &w = r.need(1), &y = r.results[0];
  const regie_tensor* bias = r.operand(2);
  for (const regie_tensor* t : {&x, &w, &y, bias})
    if (t && !is_float(t->elem)) refuse("elements other than f32 and f16");
  if (x.rank != 4 || w.rank != 4 || y.rank != 4) refuse("transposed convolutions of two spatial axes only");
  if (!w.data || (bias && !bias->data)) refuse("its weights or bias are not constant");
  if (r.attrs.integer("group", 1) != 1) refuse("a transposed convolution of several groups");
  const int64_t maps = w.dims[1], kh = w.dims[2], kw = w.dims[3], channels = x.dims[1];
  for (size_t i : {size_t{0}, size_t{1}}) {
    const auto d = static_cast<int32_t>(i) + 2;
    if (integer_at(r.attrs, "strides", i, 1) != w.dims[d] || y.dims[d] != x.dims[d] * w.dims[d])
      refuse("a transposed convolution whose windows overlap, leave gaps or are cut");
    if (integer_at(r.attrs, "dilations", i, 1) != 1 && w.dims[d] > 1)
      refuse("a dilated transposed convolution");
    if (integer_at(r.attrs, "output_padding", i, 0) != 0) refuse("padding of the result");
  }
  if (const auto pads = r.attrs.integers("pads"))
    for (int64_t p : *pads)
      if (p != 0) refuse("a transposed convolution whose result is cut");
  if (w.dims[0] != channels || y.dims[1] != maps || y.dims[0] != x.dims[0]) refuse("channels do not fit");
  // The product: one output channel a map and place in the window.
  CubeProblem p;
  p.convolution = true;
  p.elem = y.elem;
  p.left_elem = x.elem;
  p.batch = x.dims[0];
  p.channels = p.in_group = channels;
  p.height = p.out_height = x.dims[2];
  p.width = p.out_width = x.dims[3];
  p.out_channels = p.out_group = maps * kh * kw;
  p.left_blocked = is_blocked(r.operand_format(0));
  const bool point = p.height * p.width == 1;
  p.left_blocked |= point && channels % kC0 == 0;
  p.result_blocked = point && p.out_channels % kC0 == 0;
  if (is_blocked(r.result_format(0))) refuse("its result is row-major");
  if (bias) {
    if (bias->rank != 1 || bias->dims[0] != maps) refuse("its bias has another shape");
    p.bias_elem = REGIE_F32;
    p.epilogue.bias_operand = 2;
    p.epilogue.bias_count = static_cast<uint64_t>(p.out_channels);
  }
  TurnedWeights weights(p, w);
  p.epilogue.scaled = w.elem == REGIE_F32 && has_factors(p, weights.tensor());
  take_two_halves(r.chip, p);
  const CubePlan plan = plan_once(r, p);
  Upscale u;
  u.elem = y.elem;
  u.woven = true;
  u.planes = p.batch * maps;
  u.height = p.height;
  u.width = p.width;
  u.factor_h = kh;
  u.factor_w = kw;
  plan_upscale(u, r.chip);
  Lowered out;
  out.name = "transposed convolution " + std::to_string(kh) + "x" + std::to_string(kw);
  if (p.left_parts == 2) out.name += ", in two halves";
  out.cycles = plan.cycles + u.cycles + r.chip.hardware.barrier_cycles;
  out.write = [p, plan, u, chip = r.chip, weights = std::move(weights), &x, &y, bias, maps] {
    Written out_of;
    PackedWeight packed{1, pack_weights(p, plan, weights.tensor()), layout_of(p)};
    regie::tile::Builder b(static_cast<uint32_t>(std::max(plan.cores(), u.cores())), chip.sizes);
    const uint64_t left =
        static_cast<uint64_t>(p.batch * p.lanes_in() * p.height * p.width * size_of(x.elem));
    CubeBuffers g;
    g.left = b.operand(0, left);
    g.right = b.operand(1, packed.bytes.size());
    g.factors = g.right;
    g.factors_offset = packed.bytes.size() - static_cast<uint64_t>(p.out_channels) * sizeof(float);
    out_of.weights.push_back(std::move(packed));
    if (bias) {
      std::vector<float> repeated;
      for (int64_t o = 0; o < p.out_channels; ++o)
        repeated.push_back(float_at(*bias, o / (p.out_channels / maps)));
      PackedWeight all{2,
                       {reinterpret_cast<const char*>(repeated.data()), repeated.size() * sizeof(float)},
                       "opaque:aicore:repeated-bias"};
      g.bias = b.operand(2, all.bytes.size());
      out_of.weights.push_back(std::move(all));
    }
    const uint32_t result = b.result(0, bytes_of(y));
    g.result = b.scratch(0, bytes_of(y));
    auto part = [&](int64_t cores, auto&& body) {
      if (cores == std::max(plan.cores(), u.cores())) return body();
      b.loop(regie::tile::clamp(0, 1, regie::tile::Expr(cores) - b.core()),
             [&](const regie::tile::Expr&) { body(); });
    };
    part(plan.cores(), [&] { emit_cube(p, plan, b, g); });
    b.barrier();
    part(u.cores(), [&] { emit_upscale(u, b, g.result, result); });
    out_of.scratch_bytes = bytes_of(y);
    out_of.program = b.finish();
    return out_of;
  };
  return out;
}

}  // namespace aicore
