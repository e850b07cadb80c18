#include "matrices.h"

#include <algorithm>

#include "elementwise.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::dims_of;

// An axis, or a part of one: elements from one index to the next in memory.
struct Digit {
  int64_t size, stride;
  bool operator==(const Digit&) const = default;
};
using Digits = std::vector<Digit>;

// By axis, outermost first. Columns that do not fill their blocks are counted as one that has a length of its
// own: no other axis can be like it.
std::vector<Digits> digits_of(std::span<const int64_t> dims, regie_format f) {
  std::vector<Digits> axes(dims.size());
  int64_t stride = 1;
  if (!is_matrix(f)) {
    for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) axes[d] = {{dims[d], stride}};
    return axes;
  }
  const auto rows = static_cast<size_t>(regie::sdk::rows_axis_of(f, static_cast<int32_t>(dims.size())));
  const int64_t plane = lanes_of(dims[rows]) * kC0, columns = dims.back();
  if (columns % kC0)
    axes.back() = {{columns, -plane}};
  else
    axes.back() = {{columns / kC0, plane}, {kC0, 1}};
  axes[rows] = {{dims[rows], kC0}};
  stride = lanes_of(columns) / kC0 * plane;
  for (size_t d = dims.size() - 1; d-- > 0;) {
    if (d == rows) continue;
    axes[d] = {{dims[d], stride}};
    stride *= dims[d];
  }
  return axes;
}

// As long as can be: where neighbours follow each other in memory they are one.
Digits merged(const std::vector<Digits>& axes) {
  Digits all;
  for (const Digits& axis : axes)
    for (const Digit& d : axis) {
      if (d.size == 1) continue;
      if (!all.empty() && d.stride > 0 && all.back().stride == d.stride * d.size)
        all.back() = {all.back().size * d.size, d.stride};
      else
        all.push_back(d);
    }
  return all;
}

std::optional<std::vector<int64_t>> order_of(std::string_view op, const regie::sdk::Attrs& attrs,
                                             size_t rank) {
  std::vector<int64_t> order;
  if (op == "Reshape") {
    for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
    return order;
  }
  if (op != "Transpose") return std::nullopt;
  if (const auto given = attrs.integers("perm"); given && !given->empty())
    order.assign(given->begin(), given->end());
  else
    for (size_t d = rank; d-- > 0;) order.push_back(static_cast<int64_t>(d));
  if (order.size() != rank) return std::nullopt;
  for (int64_t d : order)
    if (d < 0 || d >= static_cast<int64_t>(rank)) return std::nullopt;
  return order;
}

bool fits(std::span<const int64_t> dims, regie_format f) {
  return !is_matrix(f) ||
         (dims.size() >= 2 && regie::sdk::rows_axis_of(f, static_cast<int32_t>(dims.size())) >= 0);
}

bool leaves(std::string_view op, const regie::sdk::Attrs& attrs, std::span<const int64_t> from_dims,
            regie_format from, std::span<const int64_t> to_dims, regie_format to) {
  const auto known = [](regie_format f) { return is_matrix(f) || is_row_major(f); };
  if (is_half(from) != is_half(to) || !known(from) || !known(to)) return false;
  if (!fits(from_dims, from) || !fits(to_dims, to)) return false;
  const auto order = order_of(op, attrs, from_dims.size());
  if (!order || laid_count(from_dims, from) != laid_count(to_dims, to)) return false;
  const std::vector<Digits> given = digits_of(from_dims, from);
  std::vector<Digits> moved;
  for (int64_t d : *order) moved.push_back(given[static_cast<size_t>(d)]);
  return merged(moved) == merged(digits_of(to_dims, to));
}

}  // namespace

Matrices::Matrices(std::span<const int64_t> dims, regie_format f) {
  const auto rank = static_cast<int32_t>(dims.size()), at = regie::sdk::rows_axis_of(f, rank);
  columns = dims.back();
  rows = dims[static_cast<size_t>(at)];
  for (int32_t d = 0; d + 1 < rank; ++d)
    if (d != at) (d < at ? outer : inner) *= dims[static_cast<size_t>(d)];
}

int32_t rows_from_end(std::span<const int64_t> dims) {
  for (size_t d = 2; d <= dims.size(); ++d)
    if (dims[dims.size() - d] > 1) return static_cast<int32_t>(d);
  return 0;
}

bool takes_matrices(std::string_view op) {
  constexpr std::string_view kNone[] = {"AveragePool", "BatchNormalization", "Conv",    "ConvTranspose",
                                        "Expand",      "GlobalAveragePool",  "MaxPool", "GlobalMaxPool",
                                        "Resize",      "regie.FusedConv",    "Cast"};
  return std::find(std::begin(kNone), std::end(kNone), op) == std::end(kNone) && op.substr(0, 6) != "Reduce";
}

bool any_matrix(const Request& r) {
  return std::any_of(r.operand_formats.begin(), r.operand_formats.end(), is_matrix) ||
         std::any_of(r.result_formats.begin(), r.result_formats.end(), is_matrix);
}

bool leaves_bytes(const Request& r, regie_format from, regie_format to) {
  return leaves(r.op, r.attrs, dims_of(r.need(0)), from, dims_of(r.results[0]), to);
}

bool leaves_bytes(const regie_graph* graph, const regie_node& n) {
  if (n.operand_count == 0 || n.result_count == 0) return false;
  const regie_type &from = graph->values[n.operands[0]].type, &to = graph->values[n.results[0]].type;
  if (from.rank < 1 || to.rank < 1 || from.elem != to.elem) return false;
  for (const regie_type* t : {&from, &to})
    for (regie_dim d : dims_of(*t))
      if (d < 0) return false;
  const std::vector<int64_t> from_dims(from.dims, from.dims + from.rank), to_dims(to.dims, to.dims + to.rank);
  return leaves(regie::sdk::sv(n.op), regie::sdk::Attrs(n), from_dims, from.format, to_dims, to.format);
}

Lowered lower_reshape(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || x.elem != y.elem) refuse("elements other than f32 and f16");
  if (!leaves_bytes(r, r.operand_format(0), r.result_format(0)))
    refuse("operand and result lie in another order");
  // All that lies there, as one row.
  auto seen = std::make_shared<Seen>();
  seen->dims = {{laid_count(dims_of(x), r.operand_format(0))}};
  for (const regie_tensor* t : {&x, &y}) {
    regie_tensor flat = *t;
    flat.rank = 1;
    flat.dims = seen->dims[0].data();
    (t == &x ? seen->operands : seen->results).push_back(flat);
  }
  Request flat{r.chip, r.plans, r.graph, r.node, r.op, r.attrs, seen->operands, seen->results};
  Lowered out = lower_copy(flat);
  out.write = [seen, write = std::move(out.write)] { return write(); };
  return out;
}

std::shared_ptr<Seen> seen_as_blocks(const Request& r, bool moves) {
  auto seen = std::make_shared<Seen>();
  std::optional<Matrices> whole;
  std::vector<int64_t> model;
  regie_format format = kPlainFormat;
  auto look = [&](const regie_tensor& t, regie_format f) {
    if (!is_matrix(f)) return;
    const Matrices m(dims_of(t), f);
    if (m.rows % kC0 && !moves) refuse("rows that are filled up");
    if (format != kPlainFormat && f != format) refuse("operands and results in different formats");
    format = f;
    if (whole && (whole->outer != m.outer || whole->rows != m.rows || whole->inner != m.inner))
      refuse("operands and results of different shapes");
    if (whole && whole->columns >= m.columns) return;
    whole = m;
    model.assign(t.dims, t.dims + t.rank);
  };
  for (size_t i = 0; i < r.operands.size(); ++i) look(r.operands[i], r.operand_format(i));
  for (size_t i = 0; i < r.results.size(); ++i) look(r.results[i], r.result_format(i));
  std::vector<regie_format> operand_formats, result_formats;
  seen->dims.reserve(r.operands.size() + r.results.size());
  auto add = [&](const regie_tensor& t, regie_format f, bool is_result) {
    regie_tensor x = t;
    (is_result ? result_formats : operand_formats).push_back(is_matrix(f) ? kBlockedFormat | kHalfFormat : f);
    if (t.elem != REGIE_ELEM_UNKNOWN && is_matrix(f)) {
      const Matrices m(dims_of(t), f);
      seen->dims.push_back({m.count(), m.columns, m.laid_rows()});
    } else if (t.elem != REGIE_ELEM_UNKNOWN && is_float(t.elem)) {
      // What broadcasts: one element, or one a column.
      const int64_t n = regie::sdk::count_of(t);
      if (is_result || (n != 1 && (n != model.back() || t.rank < 1 || t.dims[t.rank - 1] != n)))
        refuse("operands and results in different formats");
      seen->dims.push_back({1, n, 1});
    } else {
      (is_result ? seen->results : seen->operands).push_back(x);
      return;
    }
    x.rank = 3;
    x.dims = seen->dims.back().data();
    (is_result ? seen->results : seen->operands).push_back(x);
  };
  for (size_t i = 0; i < r.operands.size(); ++i) add(r.operands[i], r.operand_format(i), false);
  for (size_t i = 0; i < r.results.size(); ++i) add(r.results[i], r.result_format(i), true);
  seen->request.emplace(Request{r.chip, r.plans, r.graph, r.node, r.op, r.attrs, seen->operands,
                                seen->results, std::move(operand_formats), std::move(result_formats)});
  return seen;
}

}  // namespace aicore
