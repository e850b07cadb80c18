#include "passes/ports.h"

#include <algorithm>
#include <map>

namespace regie {

Result<Model> ports_of(const Graph& g) {
  Model m;
  m.name = g.name();
  const DimTable& dims = g.dims();
  for (size_t i = 0; i < dims.symbol_count(); ++i) {
    const DimSymbol& s = dims.symbol_at(i);
    ModelSymbol out;
    out.name = s.name;
    out.lower = s.lower;
    out.upper = s.upper;
    out.reference = std::clamp<int64_t>(1, s.lower, s.upper);
    m.symbols.push_back(std::move(out));
  }
  std::map<regie_dim, ModelDim> known;
  auto dim = [&](regie_dim d) -> ModelDim {
    if (d >= 0) return d;
    auto [it, fresh] = known.emplace(d, 0);
    if (fresh) {
      m.expressions.push_back(dims.code(d));
      it->second = -static_cast<ModelDim>(m.expressions.size());
    }
    return it->second;
  };
  auto port = [&](uint32_t value, std::string_view name, std::vector<ModelPort>* to) -> Status {
    const regie_type& t = g.value(value).type;
    if (t.container != REGIE_TENSOR || t.rank < 0)
      return unsupported("inputs and outputs that are no tensors", g.describe_value(value));
    ModelType type{t.elem, {}};
    for (int32_t i = 0; i < t.rank; ++i) type.dims.push_back(dim(t.dims[i]));
    to->push_back({std::string(name), static_cast<uint32_t>(m.types.size())});
    m.types.push_back(std::move(type));
    return {};
  };
  const regie_region& main = g.region(0);
  for (uint32_t i = 0; i < main.arg_count; ++i) {
    const regie_value& v = g.value(main.args[i]);
    REGIE_TRY(port(v.id, view(v.name), &m.inputs));
    for (int32_t axis = 0; axis < v.type.rank; ++axis)
      if (auto symbol = dims.symbol_index(v.type.dims[axis]))
        if (ModelSymbol& s = m.symbols[*symbol]; s.input == REGIE_NONE) {
          s.input = i;
          s.axis = static_cast<uint32_t>(axis);
        }
  }
  for (uint32_t i = 0; i < main.result_count; ++i)
    REGIE_TRY(port(main.results[i], g.output_name(i), &m.outputs));
  return m;
}

}  // namespace regie
