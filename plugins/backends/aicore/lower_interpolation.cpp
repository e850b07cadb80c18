// Resize by interpolation of the last two axes, whatever the factors: a matrix of weights for each, which the
// cube multiplies by. Along the width it is a product with the rows of all maps, along the height a
// convolution by single positions whose channels are the rows of a map; what lies between them is scratch.
#include <algorithm>
#include <cmath>
#include <optional>

#include "interpolation.h"
#include "lower.h"
#include "regie/name_hash.hpp"

namespace aicore {

namespace {

using namespace regie::tile;

// One of the two, with its weights.
struct Pass {
  CubeProblem problem;
  CubePlan plan;
  std::vector<float> weights;  // (result, operand)
  std::string packed() const {
    const CubeProblem& p = problem;
    const int64_t dims[] = {p.convolution ? p.out_channels : p.n, p.convolution ? p.channels : p.k, 1, 1};
    regie_tensor t{};
    t.elem = REGIE_F32;
    t.rank = p.convolution ? 4 : 2;
    t.dims = dims;
    t.data = const_cast<float*>(weights.data());
    t.bytes = weights.size() * sizeof(float);
    return pack_weights(p, plan, t);
  }
  uint64_t left_bytes() const {
    const CubeProblem& p = problem;
    const int64_t count = p.convolution ? p.batch * p.lanes_in() * p.height * p.width : p.left_count();
    return static_cast<uint64_t>(count * p.bytes_of(p.left_elem));
  }
  uint64_t result_bytes() const {
    const CubeProblem& p = problem;
    const int64_t count =
        p.convolution ? p.batch * p.lanes_out() * p.out_height * p.out_width : p.batch * p.m * p.n;
    return static_cast<uint64_t>(count * p.element_bytes());
  }
};

// Axis `d`, as the operator has it.
Interpolation axis_at(const Request& r, int32_t d) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  Interpolation a{x.dims[d], y.dims[d], 1, static_cast<float>(y.dims[d])};
  a.scale = static_cast<float>(a.out) / static_cast<float>(a.in);
  const regie_tensor* scales = r.operand(2);
  if (!scales || !regie::sdk::count_of(*scales)) return a;
  if (!scales->data || scales->elem != REGIE_F32) refuse("its scales are not constant");
  int64_t at = d;
  if (const auto axes = r.attrs.integers("axes"); axes && !axes->empty()) {
    const auto found =
        std::find_if(axes->begin(), axes->end(), [&](int64_t i) { return i == d || i == d - x.rank; });
    if (found == axes->end()) return a;
    at = found - axes->begin();
  }
  if (at >= regie::sdk::count_of(*scales)) refuse("its scales are too few");
  a.scale = static_cast<const float*>(scales->data)[at];
  if (r.attrs.text("corners", "scaled") != "whole") a.length = a.scale * static_cast<float>(a.in);
  return a;
}

// The list that says how large the result is: its place is the weights'.
uint32_t list_of(const Request& r) {
  for (uint32_t i : {2u, 3u})
    if (const regie_tensor* t = r.operand(i); t && t->data && regie::sdk::count_of(*t)) return i;
  refuse("its scales or sizes are not constant");
}

// Weights differ by what they were made from, and lie as the plans say.
std::string layout_of(const std::string& bytes) {
  return "opaque:aicore:interpolation-" + std::to_string(regie::sdk::name_hash(bytes));
}

}  // namespace

Lowered lower_interpolation(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || !is_float(y.elem)) refuse("elements other than f32 and f16");
  if (r.attrs.text("keep_aspect_ratio_policy", "stretch") != "stretch") refuse("sizes that keep the aspect");
  if (x.rank < 2 || y.rank != x.rank) refuse("it has no map");
  const int32_t h = x.rank - 2, w = x.rank - 1;
  for (int32_t d = 0; d < h; ++d)
    if (x.dims[d] != y.dims[d]) refuse("it resizes other axes than the last two");
  if (is_blocked(r.operand_format(0)) || is_blocked(r.result_format(0)))
    refuse("interpolation of maps in blocks of channels");
  const uint32_t list = list_of(r);
  const int64_t height = x.dims[h], width = x.dims[w], out_height = y.dims[h], out_width = y.dims[w],
                planes = regie::sdk::count_of(x) / (height * width);
  const Interpolation rows = axis_at(r, h), columns = axis_at(r, w);
  const bool along_h = height != out_height || rows.scale != 1,
             along_w = width != out_width || columns.scale != 1;
  std::vector<Pass> passes;
  if (along_w || !along_h) {
    Pass p;
    p.problem.left_elem = x.elem;
    p.problem.elem = y.elem;  // or what the next one is rounded to by the cube
    if (along_h) p.problem.elem = r.chip.two_halves ? REGIE_F32 : REGIE_F16;
    p.problem.m = planes * height;
    p.problem.k = width;
    p.problem.n = out_width;
    p.problem.transposed_b = true;
    p.weights = interpolation_weights(r.attrs, columns);
    passes.push_back(std::move(p));
  }
  if (along_h) {
    Pass p;
    CubeProblem& c = p.problem;
    c.convolution = true;
    c.left_elem = passes.empty() ? x.elem : passes.back().problem.elem;
    c.elem = y.elem;
    c.batch = planes;
    c.channels = c.in_group = height;
    c.out_channels = c.out_group = out_height;
    c.height = c.out_height = 1;
    c.width = c.out_width = out_width;
    // Of one position whole blocks of channels lie as all channels do.
    c.left_blocked = out_width == 1 && height % kC0 == 0;
    c.result_blocked = out_width == 1 && out_height % kC0 == 0;
    p.weights = interpolation_weights(r.attrs, rows);
    passes.push_back(std::move(p));
  }
  Lowered out;
  out.name = "interpolation";
  for (Pass& p : passes) {
    take_two_halves(r.chip, p.problem);
    p.plan = plan_once(r, p.problem);
    if (out.cycles != 0) out.cycles += r.chip.hardware.barrier_cycles;
    out.cycles += p.plan.cycles;
  }
  if (passes.front().problem.left_parts == 2) out.name += ", in two halves";
  out.write = [passes = std::move(passes), list, chip = r.chip] {
    Written made;
    std::string weights;
    std::vector<uint64_t> offsets;
    int64_t cores = 1;
    for (const Pass& p : passes) {
      weights.resize((weights.size() + 511) / 512 * 512);
      offsets.push_back(weights.size());
      weights += p.packed();
      cores = std::max(cores, p.plan.cores());
    }
    Builder b(static_cast<uint32_t>(cores), chip.sizes);
    CubeBuffers g;
    g.left = b.operand(0, passes.front().left_bytes());
    g.right = b.operand(list, weights.size());
    const uint32_t result = b.result(0, passes.back().result_bytes());
    uint32_t between = 0;
    if (passes.size() > 1) {
      made.scratch_bytes = passes.front().result_bytes();
      between = b.scratch(0, made.scratch_bytes);
    }
    for (size_t i = 0; i < passes.size(); ++i) {
      const bool last = i + 1 == passes.size();
      g.right_offset = offsets[i];
      g.result = last ? result : between;
      const auto part = [&] { emit_cube(passes[i].problem, passes[i].plan, b, g); };
      if (passes[i].plan.cores() == cores)
        part();
      else
        b.loop(clamp(0, 1, Expr(passes[i].plan.cores()) - b.core()), [&](const Expr&) { part(); });
      if (last) break;
      b.barrier();
      g.left = between;
    }
    made.weights.push_back({list, weights, layout_of(weights)});
    made.program = b.finish();
    return made;
  };
  return out;
}

}  // namespace aicore
