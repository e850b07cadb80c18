#include "model/layout.h"

#include <algorithm>
#include <optional>

#include "model/late.h"

namespace regie {

namespace {

// Which dimensions are late. A model whose sizes are all constants is not looked through for it.
class LateDims {
 public:
  explicit LateDims(const Model& model) : model_(model) {}
  bool has(ModelDim d) {
    if (d >= 0) return false;
    if (!facts_) facts_.emplace(model_);
    return facts_->dim(d);
  }

 private:
  const Model& model_;
  std::optional<LateFacts> facts_;
};

}  // namespace

std::vector<int64_t> reference_symbols(const Model& model) {
  std::vector<int64_t> values;
  for (const ModelSymbol& s : model.symbols) values.push_back(s.reference);
  return values;
}

Result<ShapeValues> evaluate_shapes(const Model& model, std::vector<int64_t> symbols) {
  ShapeValues shapes;
  shapes.symbols = symbols.empty() ? reference_symbols(model) : std::move(symbols);
  if (shapes.symbols.size() != model.symbols.size())
    return invalid_input("the model has " + std::to_string(model.symbols.size()) + " symbols, but " +
                         std::to_string(shapes.symbols.size()) + " values were given");
  shapes.expressions.reserve(model.expressions.size());
  LateDims late(model);
  for (size_t i = 0; i < model.expressions.size(); ++i) {
    Result<int64_t> value = evaluate(model.expressions[i], shapes.symbols);
    if (!value && late.has(-static_cast<ModelDim>(i) - 1)) value = 0;
    if (!value)
      return invalid_input("the dimension " + dim_text(model, -static_cast<ModelDim>(i) - 1) +
                           " has no value at " + symbols_text(model, shapes.symbols) + ": " +
                           value.status().message());
    shapes.expressions.push_back(*value);
  }
  return shapes;
}

Result<std::vector<int64_t>> dims_at(const Model& model, uint32_t type, const ShapeValues& shapes) {
  std::vector<int64_t> dims;
  dims.reserve(model.types[type].dims.size());
  for (ModelDim d : model.types[type].dims) {
    dims.push_back(shapes.at(d));
    if (dims.back() < 0)
      return invalid_input("the dimension " + dim_text(model, d) + " of " +
                           dims_text(model, model.types[type].dims) + " would be " +
                           std::to_string(dims.back()) + " at " + symbols_text(model, shapes.symbols) +
                           "; give a larger input");
  }
  return dims;
}

regie_tensor default_tensor(const Model& model, const ModelPort& port) {
  const ModelType& type = model.types[port.default_type];
  regie_tensor t{};
  t.elem = type.elem;
  t.rank = static_cast<int32_t>(type.dims.size());
  t.dims = type.dims.data();
  // Only ever read, as any input.
  t.data = const_cast<std::byte*>(model.weight_bytes.data() + model.weights[port.default_weight].offset);
  t.bytes = elem_bytes(type.elem, static_cast<uint64_t>(element_count(type.dims)));
  return t;
}

Result<uint64_t> bytes_at(const Model& model, uint32_t type, const ShapeValues& shapes) {
  REGIE_ASSIGN(std::vector<int64_t> dims, dims_at(model, type, shapes));
  int64_t count = element_count(dims);
  uint64_t bytes = elem_bytes(model.types[type].elem, static_cast<uint64_t>(count));
  if (count == INT64_MAX || bytes > static_cast<uint64_t>(INT64_MAX))
    return invalid_input("a tensor " + std::string(elem_name(model.types[type].elem)) + dims_text(dims) +
                         " is larger than an address");
  return bytes;
}

namespace {

bool align_up(uint64_t* value, uint64_t alignment) {
  if (__builtin_add_overflow(*value, alignment - 1, value)) return false;
  *value &= ~(alignment - 1);
  return true;
}

}  // namespace

Result<Placement> place_buffers(const Model& model, const ShapeValues& shapes,
                                std::span<const uint64_t> least_sizes) {
  const size_t count = model.buffers.size();
  Placement placement;
  placement.sizes.resize(count);
  placement.offsets.resize(count);
  placement.space_bytes.resize(model.spaces.size());
  LateDims late(model);
  for (size_t i = 0; i < count; ++i) {
    if (late.has(model.buffers[i].size)) continue;  // not in the plan
    int64_t size = shapes.at(model.buffers[i].size);
    if (size < 0)
      return invalid_input("buffer '" + model.buffers[i].name + "' would have " + std::to_string(size) +
                           " bytes at " + symbols_text(model, shapes.symbols));
    placement.sizes[i] = static_cast<uint64_t>(size);
    if (i < least_sizes.size() && !model.placement_order.empty())
      placement.sizes[i] = std::max(placement.sizes[i], least_sizes[i]);
  }
  auto place = [&](size_t i, uint64_t offset) {
    uint64_t end;
    if (__builtin_add_overflow(offset, placement.sizes[i], &end) || end > static_cast<uint64_t>(INT64_MAX))
      return false;
    placement.offsets[i] = offset;
    uint64_t& total = placement.space_bytes[model.buffers[i].space];
    total = std::max(total, end);
    return true;
  };
  auto too_large = [&](size_t i) {
    return Status::error(REGIE_OUT_OF_MEMORY, "buffer '" + model.buffers[i].name +
                                                  "' ends beyond the address space at " +
                                                  symbols_text(model, shapes.symbols));
  };
  if (model.placement_order.empty()) {
    for (size_t i = 0; i < count; ++i)
      if (!place(i, model.buffers[i].offset)) return too_large(i);
    return placement;
  }
  for (uint32_t i : model.placement_order) {
    uint64_t offset = 0;
    for (uint32_t b : model.buffers[i].below)
      offset = std::max(offset, placement.offsets[b] + placement.sizes[b]);
    if (!align_up(&offset, model.buffers[i].alignment) || !place(i, offset)) return too_large(i);
  }
  return placement;
}

namespace {

struct Term {
  std::string text;
  int strength;  // 1 sum, 2 product, 3 name, number or function
};

std::string within(const Term& t, int least) { return t.strength >= least ? t.text : "(" + t.text + ")"; }

}  // namespace

std::string dim_text(const Model& model, ModelDim dim) {
  if (dim >= 0) return std::to_string(dim);
  const size_t index = static_cast<size_t>(-(dim + 1));
  if (index >= model.expressions.size()) return "?";
  const std::vector<int64_t>& words = model.expressions[index].words;
  if (words.size() > 512) return "<long expression>";  // text of hostile programs may grow quadratically
  std::vector<Term> stack;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == DimCode::kPush) {
      stack.push_back({std::to_string(words[i + 1]), words[i + 1] < 0 ? 1 : 3});
      continue;
    }
    if (words[i] == DimCode::kLoad) {
      const size_t symbol = static_cast<size_t>(words[i + 1]);
      stack.push_back({symbol < model.symbols.size() ? model.symbols[symbol].name : "?", 3});
      continue;
    }
    if (stack.size() < 2) return "?";
    Term b = std::move(stack.back());
    stack.pop_back();
    Term& a = stack.back();
    auto call = [&](const char* name) { a = {std::string(name) + "(" + a.text + ", " + b.text + ")", 3}; };
    switch (words[i]) {
      case REGIE_DIM_ADD:
        a = {within(a, 1) + "+" + within(b, 2), 1};
        break;
      case REGIE_DIM_SUB:
        a = {within(a, 1) + "-" + within(b, 2), 1};
        break;
      case REGIE_DIM_MUL:
        a = {within(a, 2) + "*" + within(b, 3), 2};
        break;
      case REGIE_DIM_FLOORDIV:
        call("floordiv");
        break;
      case REGIE_DIM_CEILDIV:
        call("ceildiv");
        break;
      case REGIE_DIM_MOD:
        call("mod");
        break;
      case REGIE_DIM_MIN:
        call("min");
        break;
      case REGIE_DIM_MAX:
        call("max");
        break;
      default:
        return "?";
    }
  }
  return stack.size() == 1 ? stack[0].text : "?";
}

namespace {

template <class F>
std::string list_text(size_t count, F&& item) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) text += (i ? "," : "") + item(i);
  return text + "]";
}

}  // namespace

std::string dims_text(const Model& model, std::span<const ModelDim> dims) {
  return list_text(dims.size(), [&](size_t i) { return dim_text(model, dims[i]); });
}

std::string dims_text(std::span<const int64_t> dims) {
  return list_text(dims.size(), [&](size_t i) { return std::to_string(dims[i]); });
}

std::string symbols_text(const Model& model, std::span<const int64_t> symbols) {
  std::string text;
  for (size_t i = 0; i < symbols.size() && i < model.symbols.size(); ++i)
    text += (i ? ", " : "") + model.symbols[i].name + "=" + std::to_string(symbols[i]);
  return text.empty() ? "these shapes" : text;
}

const char* task_kind_text(TaskKind kind) {
  switch (kind) {
    case TaskKind::kLaunch:
      return "launch";
    case TaskKind::kCopy:
      return "copy";
    case TaskKind::kIf:
      return "if";
    case TaskKind::kLoop:
      return "loop";
    case TaskKind::kDefine:
      return "define";
  }
  return "?";
}

}  // namespace regie
