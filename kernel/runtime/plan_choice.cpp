#include "runtime/plan_choice.h"

#include <algorithm>
#include <cmath>

#include "base/elem.h"

namespace regie {

namespace {

std::string port_text(const Model& m, const ModelPort& p) {
  const ModelType& t = m.types[p.type];
  return "input '" + p.name + "' must be " + std::string(elem_name(t.elem)) + dims_text(m, t.dims);
}

std::string sizes_list(const std::vector<int64_t>& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == sizes.size() ? " and " : ", ") + std::to_string(sizes[i]);
  return text;
}

bool loads(const DimCode& code, uint32_t symbol) {
  for (size_t w = 0; w + 1 < code.words.size(); w += 2)
    if (code.words[w] == DimCode::kLoad && code.words[w + 1] == static_cast<int64_t>(symbol)) return true;
  return false;
}

class Chooser {
 public:
  Chooser(const PlanSet& set, std::span<const regie_tensor> inputs)
      : set_(set), m_(*set.ports), inputs_(inputs), symbols_(reference_symbols(m_)) {}

  Result<PlanChoice> choose() {
    for (size_t s = 0; s < m_.symbols.size(); ++s)
      if (m_.symbols[s].input != REGIE_NONE)
        symbols_[s] = inputs_[m_.symbols[s].input].dims[m_.symbols[s].axis];
    REGIE_TRY(check_dims());
    // What was followed through the graph holds within the ranges.
    for (const PlanSet::Axis& a : set_.axes)
      if (const ModelSymbol& s = m_.symbols[a.symbol]; symbols_[a.symbol] < s.lower)
        return invalid_input(what(a) + "; the model takes " + s.name + " from " + std::to_string(s.lower));
    std::vector<int64_t> request;
    for (const PlanSet::Axis& a : set_.axes) request.push_back(symbols_[a.symbol]);
    choice_.request = sizes_text(set_, request);
    if (set_.spec.overflow == ShapeSpec::kResize) shrink();
    std::vector<int64_t> sizes;
    for (const PlanSet::Axis& a : set_.axes) {
      const auto at = std::lower_bound(a.sizes.begin(), a.sizes.end(), symbols_[a.symbol]);
      const bool above = at == a.sizes.end();
      if (above || (set_.spec.padding == ShapeSpec::kRefuse && *at != symbols_[a.symbol])) {
        if (set_.spec.overflow == ShapeSpec::kRunDynamic) {
          choice_.plan = set_.plans.size();
          choice_.padded = false;  // whatever the axes before this one wanted
          return std::move(choice_);
        }
        return above ? too_large(a) : no_such_size(a);
      }
      choice_.plan = choice_.plan * a.sizes.size() + static_cast<size_t>(at - a.sizes.begin());
      sizes.push_back(*at);
      choice_.padded = choice_.padded || *at != symbols_[a.symbol];
    }
    if (choice_.padded) REGIE_TRY(fill_dims(sizes));
    return std::move(choice_);
  }

 private:
  // The inputs agree with each other.
  Status check_dims() {
    REGIE_ASSIGN(const ShapeValues at, evaluate_shapes(m_, symbols_));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::vector<ModelDim>& dims = m_.types[m_.inputs[i].type].dims;
      for (size_t d = 0; d < dims.size(); ++d)
        if (at.at(dims[d]) != inputs_[i].dims[d])
          return invalid_input(port_text(m_, m_.inputs[i]) + ", but is " +
                               dims_text({inputs_[i].dims, dims.size()}) + ": dimension " +
                               std::to_string(d) + " must be " + std::to_string(at.at(dims[d])) + ", not " +
                               std::to_string(inputs_[i].dims[d]) +
                               (dims[d] < 0 ? " (" + symbols_text(m_, symbols_) + ")" : ""));
    }
    return {};
  }

  std::string what(const PlanSet::Axis& a) const {
    const ModelSymbol& s = m_.symbols[a.symbol];
    return "input '" + m_.inputs[s.input].name + "': dimension " + std::to_string(s.axis) + " (" + s.name +
           ") is " + std::to_string(symbols_[a.symbol]);
  }
  Status too_large(const PlanSet::Axis& a) const {
    return invalid_input(what(a) + ", and the largest that there is a plan for is " +
                         std::to_string(a.sizes.back()) +
                         "; compile with a larger one in --shapes, or with --overflow dynamic");
  }
  Status no_such_size(const PlanSet::Axis& a) const {
    return invalid_input(
        what(a) + ", and there are plans for " + sizes_list(a.sizes) +
        " only, as the model was compiled with --padding refuse; list it in --shapes, or take "
        "--overflow dynamic");
  }

  // Both axes of an image that is too large, by one factor.
  void shrink() {
    for (size_t i = 0; i < m_.inputs.size(); ++i) {
      const ModelType& t = m_.types[m_.inputs[i].type];
      if (t.elem != REGIE_F32 || t.dims.size() != 4) continue;
      const PlanSet::Axis *height = set_.axis_of(t.dims[2]), *width = set_.axis_of(t.dims[3]);
      if (!height || !width) continue;
      const int64_t h = symbols_[height->symbol], w = symbols_[width->symbol];
      const int64_t most_h = height->sizes.back(), most_w = width->sizes.back();
      if (h <= most_h && w <= most_w) return;
      if (h < 1 || w < 1) return;
      const double factor = std::min(static_cast<double>(most_h) / static_cast<double>(h),
                                     static_cast<double>(most_w) / static_cast<double>(w));
      auto scaled = [&](int64_t size, int64_t most) {
        return std::clamp<int64_t>(std::llround(static_cast<double>(size) * factor), 1, most);
      };
      symbols_[height->symbol] = scaled(h, most_h);
      symbols_[width->symbol] = scaled(w, most_w);
      choice_.resize = PlanChoice::Resize{i, symbols_[height->symbol], symbols_[width->symbol]};
      return;
    }
  }

  bool on_axes(ModelDim d) const {
    return d < 0 && std::any_of(set_.axes.begin(), set_.axes.end(), [&](const PlanSet::Axis& a) {
             return loads(m_.expressions[static_cast<size_t>(-(d + 1))], a.symbol);
           });
  }

  Status fill_dims(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> of_plan = symbols_;
    for (size_t a = 0; a < sizes.size(); ++a) of_plan[set_.axes[a].symbol] = sizes[a];
    REGIE_ASSIGN(const ShapeValues large, evaluate_shapes(m_, of_plan));
    REGIE_ASSIGN(const ShapeValues small, evaluate_shapes(m_, symbols_));
    for (const ModelPort& p : m_.inputs) {
      auto& dims = choice_.input_dims.emplace_back();
      for (ModelDim d : m_.types[p.type].dims) {
        dims.push_back(large.at(d));
        if (small.at(d) > large.at(d) || small.at(d) < 0)
          return invalid_input("input '" + p.name + "': its dimension " + dim_text(m_, d) +
                               " does not grow with the sizes that are padded");
      }
    }
    for (const ModelPort& p : m_.outputs) {
      auto& dims = choice_.output_dims.emplace_back();
      for (ModelDim d : m_.types[p.type].dims) dims.push_back(on_axes(d) ? small.at(d) : -1);
    }
    return {};
  }

  const PlanSet& set_;
  const Model& m_;
  std::span<const regie_tensor> inputs_;
  std::vector<int64_t> symbols_;
  PlanChoice choice_;
};

}  // namespace

Status check_kinds(const Model& m, std::span<const regie_tensor> inputs) {
  if (inputs.size() != m.inputs.size())
    return invalid_input("the model has " + std::to_string(m.inputs.size()) + " inputs, but " +
                         std::to_string(inputs.size()) + " were given");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModelType& type = m.types[m.inputs[i].type];
    const regie_tensor& t = inputs[i];
    if (t.rank < 0 || (t.rank && !t.dims) || static_cast<size_t>(t.rank) != type.dims.size())
      return invalid_input(port_text(m, m.inputs[i]) + ", but has " + std::to_string(std::max(t.rank, 0)) +
                           " dimensions");
    if (t.elem != type.elem)
      return invalid_input(port_text(m, m.inputs[i]) + ", but is " + std::string(elem_name(t.elem)));
    for (int32_t d = 0; d < t.rank; ++d)
      if (t.dims[d] < 0) return invalid_input("input '" + m.inputs[i].name + "' has a negative dimension");
  }
  return {};
}

Result<PlanChoice> choose_plan(const PlanSet& set, std::span<const regie_tensor> inputs) {
  return Chooser(set, inputs).choose();
}

}  // namespace regie
