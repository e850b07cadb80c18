#include "ir/types.h"

#include <algorithm>

namespace regie {

bool types_agree(const regie_type& a, const regie_type& b) {
  bool any = a.elem == REGIE_ELEM_UNKNOWN || b.elem == REGIE_ELEM_UNKNOWN;
  if (!any && (a.elem != b.elem || a.container != b.container)) return false;
  if (a.rank < 0 || b.rank < 0) return true;
  if (a.rank != b.rank || a.format != b.format) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  return true;
}

regie_type merge_types(Graph& graph, const regie_type& first, const regie_type& second) {
  regie_type t = first;
  if (t.elem == REGIE_ELEM_UNKNOWN) {
    t.elem = second.elem;
    t.container = second.container;
  }
  if (first.rank < 0 && second.rank >= 0) {
    t = second;
    t.elem = first.elem != REGIE_ELEM_UNKNOWN ? first.elem : second.elem;
    return graph.copy_type(t);
  }
  if (t.origin_format == REGIE_FORMAT_ND) t.origin_format = second.origin_format;
  if (first.rank <= 0 || second.rank < 0) return graph.copy_type(t);
  std::vector<regie_dim> dims(first.dims, first.dims + first.rank);
  for (int32_t i = 0; i < first.rank; ++i)
    if (dims[i] < 0 && (dims[i] == REGIE_DIM_UNKNOWN || second.dims[i] >= 0)) dims[i] = second.dims[i];
  t.dims = dims.data();
  return graph.copy_type(t);
}

bool same_type(const regie_type& a, const regie_type& b) {
  return same_shape(a, b) && a.format == b.format && a.origin_format == b.origin_format;
}

bool same_shape(const regie_type& a, const regie_type& b) {
  return a.elem == b.elem && a.container == b.container && a.rank == b.rank &&
         (a.rank <= 0 || std::equal(a.dims, a.dims + a.rank, b.dims));
}

regie_type with_layout_of(regie_type type, const regie_type& old) {
  if (old.rank != type.rank) return type;
  type.format = old.format;
  type.origin_format = old.origin_format;
  return type;
}

bool type_known(const regie_type& type) {
  if (type.elem == REGIE_ELEM_UNKNOWN || type.rank < 0) return false;
  return std::none_of(type.dims, type.dims + type.rank, [](regie_dim d) { return d == REGIE_DIM_UNKNOWN; });
}

bool lacks_types(const Graph& graph, uint32_t node) {
  for (uint32_t v : graph.results(node))
    if (v != REGIE_NONE && graph.value(v).type.rank < 0 && graph.value(v).type.container == REGIE_TENSOR)
      return true;
  return false;
}

}  // namespace regie
