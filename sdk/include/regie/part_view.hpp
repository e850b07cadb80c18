// Header-only: where the parts of a tensor lie in it, for Concat, Split and Slice along its outermost axis.
//
// A part along an axis before which all axes are 1 is one piece of the whole's bytes, so that it need not be
// copied: a part that is joined may be computed where it goes, and one that is cut out be read where it lies.
// Whoever says so must agree on the places: engines, which permit it, and passes, which decide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "regie/formats.hpp"
#include "regie/graph_view.hpp"
#include "regie/type_view.hpp"

namespace regie::sdk {

// Value `part` lies `offset` bytes into value `whole`.
struct PartView {
  uint32_t whole, part;
  uint64_t offset;
};

namespace detail {

// Bytes of a value of known size as it lies.
inline uint64_t laid_bytes(const regie_type& t) {
  uint64_t bytes = laid_bits(t) / 8;
  for (int32_t i = 0; i < t.rank; ++i) bytes *= static_cast<uint64_t>(laid_dim(t, i));
  return bytes;
}

// A tensor of known size without padding, of which the parts along `axis` are pieces: all axes before it are 1.
// In other formats than row-major that is known of the batch, and of the channels of one image that lie in whole
// blocks; and of whole columns of one matrix in FRACTAL_NZ, whatever fills up its rows.
inline bool has_pieces(const regie_type& t, int64_t axis) {
  if (t.container != REGIE_TENSOR || t.rank <= 0 || elem_bits(t.elem) < 8 || !bytes_of(t)) return false;
  if (axis < 0) axis += t.rank;
  if (axis < 0 || axis >= t.rank) return false;
  if (is_matrix_format(t.format)) {
    if (axis != t.rank - 1 || laid_dim(t, t.rank - 1) != t.dims[axis]) return false;
    for (int32_t i = 0; i + 1 < t.rank; ++i)
      if (i != rows_axis_of(t.format, t.rank) && t.dims[i] != 1) return false;
    return true;
  }
  if (t.format != REGIE_FORMAT_ND && axis != 0 && (axis != 1 || block_of(t.format) == 0)) return false;
  for (int32_t i = 0; i < t.rank; ++i)
    if (laid_dim(t, i) != t.dims[i]) return false;
  for (int64_t i = 0; i < axis; ++i)
    if (t.dims[i] != 1) return false;
  return true;
}

// The only axis along which the slice is less than the whole, and where it begins on it.
inline std::optional<std::pair<int64_t, int64_t>> slice_begin(const GraphView& g, const regie_node& n) {
  const regie_type &whole = g.operand(n, 0)->type, &part = g.result(n, 0)->type;
  const auto starts = constant_integers(g.operand(n, 1));
  if (!starts || whole.rank != part.rank || !bytes_of(whole) || !bytes_of(part)) return std::nullopt;
  std::vector<int64_t> axes, steps(starts->size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (g.operand(n, 3)) {
    const auto given = constant_integers(g.operand(n, 3));
    if (!given || given->size() != starts->size()) return std::nullopt;
    axes = *given;
  }
  if (g.operand(n, 4)) {
    const auto given = constant_integers(g.operand(n, 4));
    if (!given || given->size() != starts->size()) return std::nullopt;
    steps = *given;
  }
  std::optional<std::pair<int64_t, int64_t>> found;
  for (size_t i = 0; i < starts->size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + whole.rank : axes[i];
    if (axis < 0 || axis >= whole.rank) return std::nullopt;
    if (steps[i] != 1) return std::nullopt;
    if (part.dims[axis] == whole.dims[axis]) continue;
    if (found) return std::nullopt;
    int64_t start = (*starts)[i];
    if (start < 0) start += whole.dims[axis];
    if (start < 0) start = 0;
    if (start + part.dims[axis] > whole.dims[axis]) return std::nullopt;
    found.emplace(axis, start);
  }
  return found;
}

}  // namespace detail

// Is it one of the operators that join or cut?
inline bool joins_or_cuts(const regie_node& n) {
  const std::string_view op = sv(n.op);
  return op == "Concat" || op == "Split" || op == "Slice";
}

// The parts of a Concat (its operands), Split or Slice (its results) in the whole; empty if they are no pieces of
// its bytes, or not at places that are the same for all sizes.
inline std::vector<PartView> part_views(const GraphView& g, const regie_node& n) {
  const std::string_view op = sv(n.op);
  const bool joins = op == "Concat";
  if (!joins_or_cuts(n) || n.operand_count == 0 || n.result_count == 0) return {};
  const regie_value* whole = joins ? g.result(n, 0) : g.operand(n, 0);
  if (!whole || whole->type.rank <= 0) return {};
  std::vector<PartView> parts;
  if (op == "Slice") {
    const regie_value* part = g.result(n, 0);
    if (!part || part->type.elem != whole->type.elem || part->type.format != whole->type.format) return {};
    const auto begin = detail::slice_begin(g, n);
    if (!begin || !detail::has_pieces(whole->type, begin->first) || !detail::has_pieces(part->type, begin->first))
      return {};
    const int64_t extent = part->type.dims[begin->first];
    const int64_t block = std::max(block_of(whole->type.format), columns_of(whole->type.format));
    const bool blocked = is_matrix_format(whole->type.format) || begin->first == 1;
    if (extent <= 0 || (block && blocked && begin->second % block != 0)) return {};
    parts.push_back({whole->id, part->id,
                     detail::laid_bytes(part->type) / static_cast<uint64_t>(extent) * static_cast<uint64_t>(begin->second)});
    return parts;
  }
  const int64_t axis = Attrs(n).integer("axis", 0);
  if (!detail::has_pieces(whole->type, axis)) return {};
  uint64_t offset = 0;
  for (uint32_t i = 0; i < (joins ? n.operand_count : n.result_count); ++i) {
    // A part of Split that nobody reads has no type to count with.
    const regie_value* part = joins ? g.operand(n, i) : g.result(n, i);
    const bool fits = part && part->type.elem == whole->type.elem && part->type.format == whole->type.format &&
                      detail::has_pieces(part->type, axis);
    if (!fits) return {};
    parts.push_back({whole->id, part->id, offset});
    offset += detail::laid_bytes(part->type);
  }
  return offset == detail::laid_bytes(whole->type) ? parts : std::vector<PartView>{};
}

}  // namespace regie::sdk
