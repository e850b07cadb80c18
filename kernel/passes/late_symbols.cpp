#include "passes/late_symbols.h"

#include <algorithm>
#include <string>

namespace regie {

namespace {

// A data-dependent symbol that stands alone.
const DimSymbol* late_symbol(const DimTable& dims, regie_dim dim) {
  const auto index = dims.symbol_index(dim);
  if (!index) return nullptr;
  const DimSymbol& s = dims.symbol_at(*index);
  return s.data_dependent ? &s : nullptr;
}

regie_dim make_symbol(Graph& graph, uint32_t value, int32_t axis, regie_dim known) {
  const regie_value& v = graph.value(value);
  std::string name(view(v.name));
  if (name.empty()) name.append("%").append(std::to_string(value));
  name.append(".").append(std::to_string(axis));
  std::string free = name;
  for (int k = 2; graph.dims().find_symbol(free); ++k) (free = name).append("#").append(std::to_string(k));
  if (known >= 0) return graph.dims().symbol(free, known, known, true);
  return graph.dims().symbol(free, 0, INT64_MAX, true);
}

bool any_late(const DimTable& dims, regie_dim dim, bool count_known) {
  bool late = false;
  dims.visit_symbols(dim, [&](size_t s) {
    const DimSymbol& symbol = dims.symbol_at(s);
    late = late || (symbol.data_dependent && (count_known || symbol.lower != symbol.upper));
  });
  return late;
}

bool any_late(const DimTable& dims, const regie_type& type, bool count_known) {
  return type.rank > 0 && std::any_of(type.dims, type.dims + type.rank,
                                      [&](regie_dim d) { return d < 0 && any_late(dims, d, count_known); });
}

}  // namespace

bool settle_late_dims(Graph& graph, uint32_t value, int32_t rank, regie_dim* dims) {
  const regie_type& old = graph.value(value).type;
  for (int32_t d = 0; d < rank; ++d) {
    const regie_dim before = old.rank == rank ? old.dims[d] : REGIE_DIM_UNKNOWN;
    const DimSymbol* symbol = before < 0 ? late_symbol(graph.dims(), before) : nullptr;
    if (dims[d] == REGIE_DIM_UNKNOWN) {
      dims[d] = symbol ? before : make_symbol(graph, value, d, before);
      if (dims[d] == REGIE_DIM_UNKNOWN) return false;
      continue;
    }
    // A number on one side and a symbol on the other.
    const regie_dim number = std::max(dims[d], before);
    if (!symbol && dims[d] < 0) symbol = late_symbol(graph.dims(), dims[d]);
    if (!symbol || number < 0 || std::min(dims[d], before) >= 0) continue;
    const std::string name = symbol->name;
    if (graph.dims().symbol(name, number, number, true) == REGIE_DIM_UNKNOWN) return false;
  }
  return true;
}

bool has_late_symbol(const DimTable& dims, const regie_type& type) { return any_late(dims, type, true); }
bool is_late(const DimTable& dims, regie_dim dim) { return dim < 0 && any_late(dims, dim, false); }
bool is_late(const DimTable& dims, const regie_type& type) { return any_late(dims, type, false); }

}  // namespace regie
