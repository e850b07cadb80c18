#include "model/plan_set.h"

#include <algorithm>

#include "model/layout.h"

namespace regie {

std::vector<int64_t> PlanSet::sizes_of(size_t plan) const {
  std::vector<int64_t> sizes(axes.size());
  for (size_t a = axes.size(); a-- > 0;) {
    sizes[a] = axes[a].sizes[plan % axes[a].sizes.size()];
    plan /= axes[a].sizes.size();
  }
  return sizes;
}

std::string sizes_text(const PlanSet& set, std::span<const int64_t> sizes) {
  std::string text;
  for (size_t a = 0; a < set.axes.size(); ++a)
    text += (a ? ", " : "") + set.axes[a].label + "=" + std::to_string(sizes[a]);
  return text;
}

std::string PlanSet::plan_text(size_t plan) const {
  return plan < plans.size() ? sizes_text(*this, sizes_of(plan)) : "dynamic";
}

const PlanSet::Axis* PlanSet::axis_of(ModelDim dim) const {
  if (dim >= 0) return nullptr;
  const std::vector<int64_t>& words = ports->expressions[static_cast<size_t>(-(dim + 1))].words;
  for (const Axis& a : axes)
    if (words == std::vector<int64_t>{DimCode::kLoad, static_cast<int64_t>(a.symbol)}) return &a;
  return nullptr;
}

namespace {

// As much of a model's check as there is of one in the ports.
Status check_ports(const Model& m, regie_status code) {
  auto bad = [&](const std::string& why) { return Status::error(code, "the ports: " + why); };
  for (const std::vector<ModelPort>* list : {&m.inputs, &m.outputs})
    for (const ModelPort& p : *list)
      if (p.type >= m.types.size()) return bad("'" + p.name + "' has a type that does not exist");
  for (const ModelType& t : m.types)
    for (ModelDim d : t.dims)
      if (d < 0 && static_cast<uint64_t>(-(d + 1)) >= m.expressions.size())
        return bad("a dimension does not exist");
  for (const ModelSymbol& s : m.symbols) {
    if (s.lower < 0 || s.upper < s.lower || s.reference < s.lower || s.reference > s.upper)
      return bad("the range of '" + s.name + "' is empty");
    if (s.input == REGIE_NONE) continue;
    if (s.input >= m.inputs.size() || s.axis >= m.types[m.inputs[s.input].type].dims.size())
      return bad("'" + s.name + "' is read from an input that does not exist");
  }
  for (const ModelWeight& w : m.weights)
    if (w.offset % 64 || w.offset > m.weight_bytes.size() || w.size > m.weight_bytes.size() - w.offset)
      return bad("a constant lies outside of the weights");
  for (const auto& [digest, weight] : m.portable_constants)
    if (weight >= m.weights.size()) return bad("a constant does not exist");
  return {};
}

}  // namespace

// At the sizes of each plan its ports must be those of the set: who pads and crops trusts both.
Status check_plan_set(const PlanSet& set, regie_status code) {
  auto bad = [&](const std::string& why) {
    return Status::error(code, "the plans for several sizes: " + why);
  };
  REGIE_TRY(check_ports(*set.ports, code));
  size_t count = 1;
  const Model& ports = *set.ports;
  for (const PlanSet::Axis& a : set.axes) {
    if (a.symbol >= ports.symbols.size() || ports.symbols[a.symbol].input >= ports.inputs.size())
      return bad("axis '" + a.label + "' has no symbol");
    if (a.sizes.empty() || a.sizes.front() < 1 ||
        std::adjacent_find(a.sizes.begin(), a.sizes.end(), std::greater_equal<>()) != a.sizes.end())
      return bad("the sizes of '" + a.label + "' do not ascend");
    if (a.sizes.size() > 4096 || (count *= a.sizes.size()) > 4096) return bad("there are too many");
  }
  if (set.axes.empty() || count != set.plans.size()) return bad("there are not as many as sizes");
  auto same_ports = [&](const Model& m, const ShapeValues& at, const std::vector<ModelPort>& own,
                        const std::vector<ModelPort>& theirs) -> Status {
    if (own.size() != theirs.size()) return bad("one has other inputs or outputs");
    for (size_t i = 0; i < own.size(); ++i) {
      const ModelType &a = ports.types[own[i].type], &b = m.types[theirs[i].type];
      if (own[i].name != theirs[i].name || a.elem != b.elem || a.dims.size() != b.dims.size())
        return bad("'" + own[i].name + "' is something else in one of them");
      for (size_t d = 0; d < a.dims.size(); ++d)
        if (b.dims[d] >= 0 && at.at(a.dims[d]) != b.dims[d])
          return bad("'" + own[i].name + "' has another size in one of them");
    }
    return {};
  };
  for (size_t p = 0; p < set.plan_count(); ++p) {
    const Model& m = *set.plan(p);
    std::vector<int64_t> symbols = reference_symbols(ports);
    if (p < set.plans.size()) {
      const std::vector<int64_t> sizes = set.sizes_of(p);
      for (size_t a = 0; a < sizes.size(); ++a) symbols[set.axes[a].symbol] = sizes[a];
    }
    REGIE_ASSIGN(const ShapeValues at, evaluate_shapes(ports, std::move(symbols)));
    REGIE_TRY(same_ports(m, at, ports.inputs, m.inputs));
    REGIE_TRY(same_ports(m, at, ports.outputs, m.outputs));
  }
  return {};
}

}  // namespace regie
