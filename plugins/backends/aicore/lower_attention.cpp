// regie.Attention as one task of three parts with barriers between them: scores (product, scale, mask),
// soft-max along rows, product with the values. Scores and probabilities lie in the launch's scratch.
#include <algorithm>

#include "lower.h"
#include "rows.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Attention {
  CubeProblem scores, values;
  CubePlan scores_plan, values_plan;
  Rows rows;
  RowsCut rows_cut;
  uint32_t mask = REGIE_NONE;
  uint64_t query_bytes = 0, key_bytes = 0, value_bytes = 0, mask_bytes = 0, score_bytes = 0, share_bytes = 0,
           result_bytes = 0;
};

Written write(const Attention& a, const Chip& chip) {
  const int64_t cores = std::max({a.scores_plan.cores(), a.rows_cut.parts, a.values_plan.cores()});
  Builder b(static_cast<uint32_t>(cores), chip.sizes);
  const uint32_t query = b.operand(0, a.query_bytes), key = b.operand(1, a.key_bytes),
                 value = b.operand(2, a.value_bytes);
  const uint32_t mask = a.mask == REGIE_NONE ? REGIE_NONE : b.operand(a.mask, a.mask_bytes);
  const uint32_t result = b.result(0, a.result_bytes);
  const uint64_t second = (a.score_bytes + 511) / 512 * 512;
  const uint32_t scores = b.scratch(0, a.score_bytes), shares = b.scratch(second, a.share_bytes);
  auto part = [&](int64_t parts, auto&& body) {
    if (parts == cores) return body();
    b.loop(clamp(0, 1, Expr(parts) - b.core()), [&](const Expr&) { body(); });
  };
  part(a.scores_plan.cores(), [&] {
    CubeBuffers g;
    g.left = query;
    g.right = key;
    (a.scores.epilogue.bias_operand != REGIE_NONE ? g.bias : g.residual) = mask;
    g.result = scores;
    emit_cube(a.scores, a.scores_plan, b, g);
  });
  b.barrier();
  part(a.rows_cut.parts, [&] {
    RowsBuffers g;
    g.in = scores;
    g.out = shares;
    emit_rows(a.rows, a.rows_cut, b, g);
  });
  b.barrier();
  part(a.values_plan.cores(), [&] {
    CubeBuffers g;
    g.left = shares;
    g.right = value;
    g.result = result;
    emit_cube(a.values, a.values_plan, b, g);
  });
  Written w;
  w.scratch_bytes = second + a.share_bytes;
  w.program = b.finish();
  return w;
}

}  // namespace

Lowered lower_attention(const Request& r) {
  const regie_tensor &q = r.need(0), &k = r.need(1), &v = r.need(2), &y = r.results[0];
  const regie_tensor* m = r.operand(3);
  for (const regie_tensor* t : {&q, &k, &v, m, &y})
    if (t && !is_float(t->elem)) refuse("elements other than f32 and f16");
  if (q.rank < 2 || k.rank != q.rank || v.rank != q.rank || y.rank != q.rank)
    refuse("operands of different ranks");
  Attention a;
  int64_t batch = 1;
  for (int32_t i = 0; i + 2 < q.rank; ++i) {
    if (k.dims[i] != q.dims[i] || v.dims[i] != q.dims[i]) refuse("batch dimensions that broadcast");
    batch *= q.dims[i];
  }
  const bool turned = r.attrs.integer("transpose_k", 0) != 0;
  const int64_t rows = q.dims[q.rank - 2], depth = q.dims[q.rank - 1],
                keys = k.dims[k.rank - (turned ? 1 : 2)];
  if (k.dims[k.rank - (turned ? 2 : 1)] != depth || v.dims[v.rank - 2] != keys)
    refuse("its matrices do not fit");
  // Rows are those of the last axis but one, of all that is in FRACTAL_NZ.
  auto matrix = [&](regie_format f) {
    if (is_matrix(f) && f != matrix_format(2)) refuse("rows along another axis");
    return is_matrix(f);
  };
  if (matrix(r.operand_format(3))) refuse("a mask in columns of 16");
  // Scores are f32, shares are halves in the order of the cube, which rounds them anyway.
  auto product = [&](regie_elem elem, int64_t pm, int64_t pk, int64_t pn) {
    CubeProblem p;
    p.elem = elem;
    p.batch = batch;
    p.m = pm;
    p.k = pk;
    p.n = pn;
    p.a_batched = p.b_batched = batch > 1;
    p.constant_b = false;
    return p;
  };
  a.scores = product(REGIE_F32, rows, depth, keys);
  a.scores.left_elem = q.elem;
  a.scores.right_elem = k.elem;
  a.scores.left_matrix = matrix(r.operand_format(0));
  a.scores.right_matrix = matrix(r.operand_format(1));
  a.scores.transposed_b = !turned;
  a.scores.epilogue.alpha = static_cast<float>(r.attrs.number("scale", 1));
  if (m) {
    int64_t count = 1;
    for (int32_t i = 0; i < m->rank; ++i) count *= m->dims[i];
    a.mask = 3;
    a.mask_bytes = static_cast<uint64_t>(count * size_of(m->elem));
    a.scores.bias_elem = a.scores.residual_elem = m->elem;
    if (m->rank && count == keys && m->dims[m->rank - 1] == keys) {
      a.scores.epilogue.bias_operand = 3;
      a.scores.epilogue.bias_count = static_cast<uint64_t>(keys);
    } else if (count == batch * rows * keys) {
      a.scores.epilogue.residual_operand = 3;
    } else {
      refuse("a mask that broadcasts along some of the axes before the last only");
    }
  }
  a.values = product(y.elem, rows, keys, v.dims[v.rank - 1]);
  a.values.left_elem = REGIE_F16;
  a.values.left_matrix = true;
  a.values.right_elem = v.elem;
  a.values.right_matrix = matrix(r.operand_format(2));
  a.values.result_matrix = matrix(r.result_format(0));
  a.rows.kind = RowsKind::kSoftmax;
  a.rows.rows = batch * rows;
  a.rows.width = keys;
  a.rows.elem = REGIE_F32;
  a.rows.out_elem = REGIE_F16;
  a.rows.out_matrix = true;
  a.rows.plane = rows;
  a.scores_plan = plan_once(r, a.scores);
  a.values_plan = plan_once(r, a.values);
  a.rows_cut = cut_rows(a.rows, r.chip);
  auto bytes = [](int64_t count, regie_elem elem) { return static_cast<uint64_t>(count * size_of(elem)); };
  a.query_bytes = bytes(a.scores.left_count(), q.elem);
  a.key_bytes = bytes(a.scores.right_count(), k.elem);
  a.value_bytes = bytes(a.values.right_count(), v.elem);
  a.score_bytes = bytes(batch * rows * keys, REGIE_F32);
  a.share_bytes = bytes(a.values.left_count(), REGIE_F16);
  a.result_bytes = bytes(batch * a.values.laid_matrix(rows, a.values.n, a.values.result_matrix), y.elem);
  Lowered out;
  out.name = "attention " + std::to_string(batch) + " x " + std::to_string(rows) + "x" + std::to_string(keys);
  out.cycles = a.scores_plan.cycles + rows_cycles(a.rows, a.rows_cut, r.chip) + a.values_plan.cycles +
               2 * r.chip.hardware.barrier_cycles;
  out.write = [a, chip = r.chip] { return write(a, chip); };
  return out;
}

}  // namespace aicore
