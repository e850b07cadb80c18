// Emit: turns the graph with all its decisions into a Model. Nothing is decided here.
#include "passes/emit.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "ir/structural.h"
#include "passes/schedule_problem.h"
#include "regie/formats.hpp"

namespace regie {

ModelDim ModelEmitter::dim(regie_dim d) {
  if (d >= 0) return d;
  auto [it, fresh] = dims_.emplace(d, 0);
  if (fresh) {
    // A data-dependent symbol whose value is known is as good as a number.
    if (const auto [least, most] = g_.dims().range(d); least == most && least >= 0 && depends_on_data(d))
      return it->second = least;
    model_->expressions.push_back(code_of(d));
    it->second = -static_cast<ModelDim>(model_->expressions.size());
  }
  return it->second;
}

bool ModelEmitter::depends_on_data(regie_dim d) const {
  bool all = true;
  g_.dims().visit_symbols(d, [&](size_t s) { all = all && g_.dims().symbol_at(s).data_dependent; });
  return all;
}

DimCode ModelEmitter::code_of(regie_dim d) const {
  DimCode code = g_.dims().code(d);
  for (size_t w = 0; w + 1 < code.words.size(); w += 2) {
    if (code.words[w] != DimCode::kLoad) continue;
    const DimSymbol& s = g_.dims().symbol_at(static_cast<size_t>(code.words[w + 1]));
    if (!s.data_dependent || s.lower != s.upper) continue;
    code.words[w] = DimCode::kPush;
    code.words[w + 1] = s.lower;
  }
  return code;
}

uint32_t ModelEmitter::type_of(const regie_type& type) {
  std::vector<ModelDim> dims;
  for (int32_t i = 0; i < type.rank; ++i) dims.push_back(dim(sdk::laid_dim(type, i)));
  // The model's buffers hold bytes, and nobody asks for the value by its type any more.
  const regie_elem elem = sdk::laid_elem(type);
  auto [it, fresh] = types_.emplace(std::pair{elem, dims}, static_cast<uint32_t>(model_->types.size()));
  if (fresh) model_->types.push_back({elem, std::move(dims)});
  return it->second;
}

// Room for all of them at once: what grows by doubling is copied and touched twice. Constants of which every
// reader has packed its own are not stored, but room that nobody touches costs nothing.
void ModelEmitter::reserve_weights() {
  uint64_t bytes = 0;
  auto count = [&](uint64_t size) { bytes += (size + 63) / 64 * 64; };
  for (uint32_t v = 0; v < g_.value_count(); ++v)
    if (g_.is_constant(v)) {
      if (g_.tensor(v)) count(g_.tensor(v).bytes());
    } else if (const Tensor* t = g_.default_of(v)) {
      count(t->bytes());
    }
  for (const auto& kernel : state_.kernels)
    if (kernel)
      for (const PackedWeight& w : kernel->weights) count(w.bytes.bytes());
  for (const Tensor& t : state_.portable_constants) count(t.bytes());
  weights_->reserve(bytes);
}

uint32_t ModelEmitter::add_weight(const void* data, uint64_t size, const std::string& layout) {
  std::string digest = Hasher().number(size).bytes(data, size).hex();
  auto [it, fresh] = weight_ids_.emplace(digest + layout, static_cast<uint32_t>(model_->weights.size()));
  if (fresh) {
    uint64_t offset = (weights_->size() + 63) / 64 * 64;
    weights_->resize(offset + size);
    if (size) std::memcpy(weights_->data() + offset, data, size);
    model_->weights.push_back({offset, size, layout, digest});
  }
  return it->second;
}

Status ModelEmitter::emit_identity() {
  Model& m = *model_;
  m.name = g_.name();
  m.producer = std::string("regie ") + REGIE_VERSION;
  m.target = state_.target.name;
  m.pipeline = pipeline_.name;
  REGIE_TRY(collect_plugins());
  m.options = {{"threads", std::to_string(state_.options.threads)}};
  for (const auto& o : state_.options.import_options) m.options.push_back(o);
  for (const std::string& t : state_.options.typical) m.options.emplace_back("typical", t);
  for (const auto& [name, value] : state_.options.sizes)
    m.options.emplace_back("size " + name, std::to_string(value));
  for (const auto& o : state_.options.settings) m.options.push_back(o);
  m.source_digest = Hasher().text(state_.portable_graph).hex();
  for (const TargetDevice& d : state_.target.devices) {
    ModelDevice device{d.name, d.plugin, d.params};
    // A device that nobody has told how many streams there may be is told now.
    const size_t streams = device_streams_[m.devices.size()].size();
    if (streams > 1 && device_limit(d, "streams") == 0)
      device.params.emplace_back("streams", std::to_string(streams));
    m.devices.push_back(std::move(device));
  }
  for (uint32_t i = 0; i < g_.region(0).arg_count; ++i) {
    const regie_value& v = g_.value(g_.region(0).args[i]);
    if (v.type.container != REGIE_TENSOR)
      return unsupported("inputs that are no tensors", g_.describe_value(v.id));
    ModelPort port{std::string(view(v.name)), type_of(v.type)};
    if (const Tensor* t = g_.default_of(v.id)) {
      if (t->elem() == REGIE_STRING)
        return unsupported("defaults of type string cannot be stored", g_.describe_value(v.id));
      regie_type type = v.type;
      type.dims = t->dims().data();
      port.default_type = type_of(type);
      port.default_weight = add_weight(t->data(), t->bytes(), std::string(kPortable));
    }
    m.inputs.push_back(std::move(port));
  }
  for (uint32_t i = 0; i < g_.region(0).result_count; ++i) {
    const regie_value& v = g_.value(g_.region(0).results[i]);
    if (v.type.container != REGIE_TENSOR)
      return unsupported("outputs that are no tensors", g_.describe_value(v.id));
    m.outputs.push_back({std::string(g_.output_name(i)), type_of(v.type)});
    m.outputs.back().shape = g_.output_shape(i);
    if (value_is_output_storage(g_, v.id)) output_of_value_.emplace(v.id, i);
  }
  return {};
}

// Who took part in this compile; what else the process has opened before does not matter.
Status ModelEmitter::collect_plugins() {
  for (const Manifest& manifest : state_.plugins->manifests())
    for (const auto& [kind, name] : manifest.provides)
      if (kind == "frontend") state_.uses(&manifest);  // each was asked whether the file is one of its own
  for (const Manifest* manifest : state_.ops->used()) state_.uses(manifest);
  for (const TargetDevice& d : state_.target.devices) {
    REGIE_ASSIGN(auto device, state_.plugins->device(d.plugin));
    state_.uses(device.manifest);
  }
  Status status;
  for_each_task_node(g_, [&](uint32_t n) {
    if (!status.ok() || n >= state_.kernels.size() || !state_.kernels[n]) return;
    // What an engine compiles to may call the kernels of the operators inside.
    if (!is_control_flow(g_.node(n)))
      for_each_inner_node(g_, n, [&](uint32_t inner) {
        if (auto kernel = state_.plugins->op_kernel(view(g_.node(inner).op)); kernel.ok())
          state_.uses(kernel->manifest);
      });
    if (!(state_.kernels[n]->flags & REGIE_KERNEL_REFERENCE)) return;
    auto kernel = state_.plugins->op_kernel(view(g_.node(n).op));
    if (kernel.ok())
      state_.uses(kernel->manifest);
    else
      status = kernel.status();
  });
  model_->plugins.assign(state_.used_plugins.begin(), state_.used_plugins.end());
  return status;
}

Status ModelEmitter::emit_symbols() {
  for (size_t i = 0; i < g_.dims().symbol_count(); ++i) {
    const DimSymbol& s = g_.dims().symbol_at(i);
    ModelSymbol out;
    out.name = s.name;
    out.lower = s.lower;
    out.upper = s.upper;
    const auto value = i < state_.symbol_values.size() ? state_.symbol_values[i] : std::nullopt;
    out.reference = std::clamp<int64_t>(value.value_or(1), s.lower, s.upper);
    model_->symbols.push_back(std::move(out));
  }
  for (uint32_t i = 0; i < g_.region(0).arg_count; ++i) {
    const regie_type& t = g_.value(g_.region(0).args[i]).type;
    for (int32_t axis = 0; axis < t.rank; ++axis)
      if (auto symbol = g_.dims().symbol_index(t.dims[axis]))
        if (ModelSymbol& s = model_->symbols[*symbol]; s.input == REGIE_NONE) {
          s.input = i;
          s.axis = static_cast<uint32_t>(axis);
        }
  }
  return {};
}

// Every symbol that an expression loads must be readable from an input, or be made known by a task.
Status ModelEmitter::check_symbols_readable() {
  for (const DimCode& code : model_->expressions)
    for (size_t w = 0; w + 1 < code.words.size(); w += 2)
      if (code.words[w] == DimCode::kLoad) {
        const ModelSymbol& s = model_->symbols[static_cast<size_t>(code.words[w + 1])];
        if (s.input == REGIE_NONE && !defined_.count(static_cast<uint32_t>(code.words[w + 1])))
          return unsupported("dimension '" + s.name +
                                 "' depends on data, and the operator that would tell it is gone; compile "
                                 "without optimisation (--no-optimise)",
                             state_.source);
      }
  return {};
}

Status ModelEmitter::emit_outputs() {
  for (uint32_t i = 0; i < g_.region(0).result_count; ++i) {
    uint32_t v = g_.region(0).results[i];
    REGIE_ASSIGN(Arg a, locate(v));
    if (a.kind == Arg::kBuffer && state_.buffers[a.index].space != 0)
      return invalid_input(
          "output '" + std::string(g_.output_name(i)) +
              "' lies in another device's memory: the pipeline needs insert-copies after placement",
          state_.source);
    model_->output_sources.push_back(a);
  }
  return {};
}

void ModelEmitter::find_streams() {
  device_streams_.resize(state_.target.devices.size());
  for (const RegionSchedule& s : state_.schedule)
    for (const ScheduledTask& t : s.tasks)
      device_streams_[state_.target.engines[g_.node(t.node).engine].device].insert(t.stream);
}

Result<std::shared_ptr<Model>> ModelEmitter::emit() {
  Model& m = *model_;
  find_views();
  find_streams();
  reserve_weights();
  REGIE_TRY(emit_identity());
  REGIE_TRY(emit_symbols());
  REGIE_TRY(emit_spaces());
  REGIE_TRY(emit_buffers());
  m.programs.emplace_back();
  ModelProgram main;
  REGIE_TRY(emit_region(0, &main));
  m.programs[0] = std::move(main);
  REGIE_TRY(emit_outputs());
  REGIE_TRY(check_symbols_readable());
  m.portable_graph = state_.portable_graph;
  for (const Tensor& t : state_.portable_constants)
    m.portable_constants.emplace(t.digest(), add_weight(t.data(), t.bytes(), std::string(kPortable)));
  m.weight_bytes = {weights_->data(), weights_->size()};
  m.weight_owner = weights_;
  for (PlacementRecord& p : state_.ledger.placements)
    if (views_.count(p.id)) {
      p.view = true;
      p.reference = false;
    }
  state_.ledger.operators_final = g_.live_node_count();
  m.ledger_json = state_.ledger.to_json(false);
  return model_;
}

Result<std::shared_ptr<Model>> emit_model(CompileState& state, const Pipeline& pipeline) {
  return ModelEmitter(state, pipeline).emit();
}

}  // namespace regie
