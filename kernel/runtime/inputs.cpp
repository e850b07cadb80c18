// Checks of what a run is called with. The first is on every run's path; the others find words once something
// is wrong or new.
#include <algorithm>
#include <cstring>

#include "base/elem.h"
#include "runtime/run_state.h"

namespace regie {

bool is_dense(const regie_tensor& t) {
  if (!t.strides) return true;
  int64_t stride = 1;
  for (int32_t i = t.rank; i-- > 0;) {
    if (t.dims[i] != 1 && t.strides[i] != stride) return false;
    stride *= std::max<int64_t>(t.dims[i], 1);
  }
  return true;
}

namespace {

std::span<const int64_t> dims_of(const regie_tensor& t) {
  return {t.dims, t.dims ? static_cast<size_t>(std::max(t.rank, 0)) : 0};
}

std::string tensor_text(const regie_tensor& t) {
  return std::string(elem_name(t.elem)) + dims_text(dims_of(t));
}

}  // namespace

bool RunState::matches(const ShapePlan& plan, std::span<const regie_tensor> inputs) const {
  const Model& m = *core_->model;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const regie_tensor& t = inputs[i];
    const uint32_t type = m.inputs[i].type;
    const std::vector<int64_t>& dims = plan.dims[type];
    if (t.elem != m.types[type].elem || t.rank < 0 || static_cast<size_t>(t.rank) != dims.size())
      return false;
    if (t.rank && (!t.dims || std::memcmp(t.dims, dims.data(), dims.size() * sizeof(int64_t)) != 0))
      return false;
    if (t.bytes < plan.bytes[type] || (!t.data && plan.bytes[type]) || !is_dense(t)) return false;
  }
  return true;
}

Status RunState::check_dims(std::span<const regie_tensor> inputs, size_t index,
                            const std::vector<int64_t>& symbols) const {
  const Model& m = *core_->model;
  const ModelPort& port = m.inputs[index];
  const std::vector<ModelDim>& dims = m.types[port.type].dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t given = inputs[index].dims[axis];
    int64_t expected = dims[axis];
    std::string why;
    if (expected < 0) {
      const DimCode& code = m.expressions[static_cast<size_t>(-(expected + 1))];
      Result<int64_t> value = evaluate(code, symbols);
      if (!value) return invalid_input("input '" + port.name + "': " + value.status().message());
      expected = *value;
      // Where the value of the (first) symbol in it comes from.
      for (size_t w = 0; w < code.words.size() && why.empty(); w += 2)
        if (code.words[w] == DimCode::kLoad) {
          const ModelSymbol& s = m.symbols[static_cast<size_t>(code.words[w + 1])];
          why = ", as " + s.name + " is " + std::to_string(symbols[static_cast<size_t>(code.words[w + 1])]) +
                " in dimension " + std::to_string(s.axis) + " of input '" + m.inputs[s.input].name + "'";
        }
    }
    if (given != expected)
      return invalid_input("input '" + port.name + "' must be " +
                           std::string(elem_name(m.types[port.type].elem)) + dims_text(m, dims) +
                           ", but is " + tensor_text(inputs[index]) + ": dimension " + std::to_string(axis) +
                           " must be " + std::to_string(expected) + why + ", not " + std::to_string(given));
  }
  return {};
}

Status RunState::check_inputs(std::span<const regie_tensor> inputs, std::vector<int64_t>* symbols) const {
  const Model& m = *core_->model;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ModelType& type = m.types[m.inputs[i].type];
    const regie_tensor& t = inputs[i];
    const std::string expected = std::string(elem_name(type.elem)) + dims_text(m, type.dims);
    const std::string name = "input '" + m.inputs[i].name + "'";
    if (t.rank < 0 || (t.rank && !t.dims))
      return invalid_input(name + ": the given tensor has no dimensions");
    // Of a wrong rank nobody knows how many dimensions can be read.
    if (static_cast<size_t>(t.rank) != type.dims.size())
      return invalid_input(name + " must be " + expected + ", but is " + std::string(elem_name(t.elem)) +
                           " of rank " + std::to_string(t.rank) + ": it must have " +
                           std::to_string(type.dims.size()) + " dimensions");
    if (t.elem != type.elem)
      return invalid_input(name + " must be " + expected + ", but is " + tensor_text(t) +
                           ": the element type differs");
    for (int64_t d : dims_of(t))
      if (d < 0) return invalid_input(name + " has a negative dimension: " + dims_text(dims_of(t)));
  }
  for (const ModelSymbol& s : m.symbols) {
    if (s.input == REGIE_NONE) {  // nothing depends on it
      symbols->push_back(s.reference);
      continue;
    }
    const int64_t value = inputs[s.input].dims[s.axis];
    if (value < s.lower || value > s.upper)
      return invalid_input("input '" + m.inputs[s.input].name + "': dimension " + std::to_string(s.axis) +
                           " (" + s.name + ") is " + std::to_string(value) + "; the model was compiled for " +
                           s.name + " from " + std::to_string(s.lower) +
                           (s.upper == INT64_MAX ? std::string(" up") : " to " + std::to_string(s.upper)));
    symbols->push_back(value);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    REGIE_TRY(check_dims(inputs, i, *symbols));
    const regie_tensor& t = inputs[i];
    const std::string name = "input '" + m.inputs[i].name + "'";
    if (!is_dense(t))
      return invalid_input(name + " has strides; copy it into a dense row-major tensor first");
    const int64_t count = element_count(dims_of(t));
    const uint64_t bytes = elem_bytes(t.elem, static_cast<uint64_t>(count));
    if (count == INT64_MAX || t.bytes < bytes)
      return invalid_input(name + " is " + tensor_text(t) + ", which takes " + std::to_string(bytes) +
                           " bytes, but only " + std::to_string(t.bytes) + " were given");
    if (!t.data && bytes) return invalid_input(name + " has no data");
  }
  return {};
}

Status RunState::check_outputs(const ShapePlan& plan, std::span<const regie_tensor> outputs) {
  const Model& m = *core_->model;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint64_t bytes = plan.bytes[m.outputs[o].type];
    OutputMemory& own = output_memory_[o];
    if (core_->late.outputs[o]) {  // its size is not known yet
      wanted_outputs_[o] = outputs[o];
      if (outputs[o].data == own.data.get()) wanted_outputs_[o].data = nullptr;
      continue;
    }
    // A caller who passes back what a former run gave means the context's memory.
    if (outputs[o].data && outputs[o].data != own.data.get()) {
      if (outputs[o].bytes < bytes)
        return invalid_input("output '" + m.outputs[o].name + "' takes " + std::to_string(bytes) +
                             " bytes (" + std::string(elem_name(m.types[m.outputs[o].type].elem)) +
                             dims_text(plan.dims[m.outputs[o].type]) + "), but there is room for " +
                             std::to_string(outputs[o].bytes));
      output_addresses_[o] = outputs[o].data;
      continue;
    }
    REGIE_TRY(grow_output(o, bytes));
    output_addresses_[o] = own.data.get();
  }
  return {};
}

Status OutputMemory::fit(uint64_t need, const char* kind, const std::string& name) {
  if (data && bytes >= need) return {};
  data.reset();
  bytes = 0;
  const size_t size = std::max<uint64_t>(need, 64);
  // An overcommitting system grants any size, and ends the process that uses it.
  if (need <= physical_bytes())
    data.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{64}, std::nothrow)));
  if (!data)
    return Status::error(REGIE_OUT_OF_MEMORY, std::string(kind) + " '" + name + "' takes " +
                                                  std::to_string(need) + " bytes; this computer has " +
                                                  std::to_string(physical_bytes()));
  bytes = size;
  return {};
}

Status RunState::grow_output(size_t output, uint64_t bytes) {
  return output_memory_[output].fit(bytes, "output", core_->model->outputs[output].name);
}

Status RunState::run_unranked(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
  const Model& m = *core_->model;
  if (outputs.size() != seen_outputs_)
    return invalid_input("the model has " + std::to_string(seen_outputs_) + " outputs, but room for " +
                         std::to_string(outputs.size()) + " was given");
  all_outputs_.assign(m.outputs.size(), regie_tensor{});
  std::copy(outputs.begin(), outputs.end(), all_outputs_.begin());
  REGIE_TRY(run_trusting(inputs, all_outputs_));
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (m.outputs[o].shape != REGIE_NONE) {
      const regie_tensor& told = all_outputs_[m.outputs[o].shape];
      const std::span dims(static_cast<const int64_t*>(told.data), static_cast<size_t>(told.dims[0]));
      // A caller reads as much as they say.
      const bool sound =
          dims.size() <= INT32_MAX && std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
      if (!sound || element_count(dims) != all_outputs_[o].dims[0])
        return invalid_model("output '" + m.outputs[o].name + "' has " +
                             std::to_string(all_outputs_[o].dims[0]) +
                             " elements, which are not those of its dimensions");
      all_outputs_[o].rank = static_cast<int32_t>(dims.size());
      all_outputs_[o].dims = dims.data();
    }
    outputs[o] = all_outputs_[o];
  }
  return {};
}

std::string RunState::shape_change(std::span<const regie_tensor> inputs) const {
  if (last_dims_.empty()) return "first run";
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t axis = 0; axis < last_dims_[i].size(); ++axis)
      if (last_dims_[i][axis] != inputs[i].dims[axis])
        text += (text.empty() ? "" : ", ") + core_->model->inputs[i].name + "." + std::to_string(axis) +
                ": " + std::to_string(last_dims_[i][axis]) + " -> " + std::to_string(inputs[i].dims[axis]);
  return text.empty() ? "no longer kept" : text;
}

}  // namespace regie
