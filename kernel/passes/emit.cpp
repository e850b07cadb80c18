// Emit: turns the graph with all its decisions into a Model. Nothing is decided here.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "base/log.h"
#include "model/model.h"
#include "passes/compile_state.h"
#include "passes/structural.h"
#include "regie/c/engine.h"
#include "regie/c/pass.h"

namespace regie {

namespace {

class Emitter {
 public:
  Emitter(CompileState& state, const Pipeline& pipeline)
      : state_(state), g_(*state.graph), pipeline_(pipeline), model_(std::make_shared<Model>()) {}

  Result<std::shared_ptr<Model>> emit();

 private:
  struct Pending {  // what a stream still has to wait for, and where a skipped task left off
    std::vector<uint32_t> waits;
    uint32_t last = REGIE_NONE;
  };
  ModelDim dim(regie_dim d);
  uint32_t type_of(const regie_type& type);
  void reserve_weights();
  uint32_t add_weight(const void* data, uint64_t size, const std::string& layout);
  Result<Arg> locate(uint32_t value);
  void find_views();
  uint32_t same_bytes(uint32_t value);
  Status emit_identity();
  Status collect_plugins();
  Status emit_symbols();
  Status emit_spaces();
  Status emit_buffers();
  void order_buffers();
  Status emit_region(uint32_t region, ModelProgram* program);
  Result<ModelTask> make_task(const ScheduledTask& t);
  Status emit_outputs();
  Status check_symbols_readable();
  uint32_t add_kernel(const CompiledKernel& k, uint32_t device);
  // A view's task does nothing: its result lies on its operand's bytes.
  bool skipped(uint32_t node);
  bool lies_in(uint32_t value, uint32_t whole) const;

  CompileState& state_;
  const Graph& g_;
  const Pipeline& pipeline_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<std::vector<std::byte>> weights_ = std::make_shared<std::vector<std::byte>>();
  std::map<std::pair<std::string, std::string>, uint32_t> weight_ids_;  // {digest of bytes, layout}
  std::map<regie_dim, ModelDim> dims_;
  std::map<std::pair<regie_elem, std::vector<ModelDim>>, uint32_t> types_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> kernels_;  // {device, content digest}
  std::map<uint32_t, uint32_t> weight_of_value_;
  std::map<uint32_t, uint32_t> output_of_value_;  // storage written in place
  std::set<uint32_t> views_;                      // nodes that no task runs
  std::vector<uint32_t> seen_as_;                 // by value: another one that has the same bytes, or itself
};

ModelDim Emitter::dim(regie_dim d) {
  if (d >= 0) return d;
  auto [it, fresh] = dims_.emplace(d, 0);
  if (fresh) {
    model_->expressions.push_back(g_.dims().code(d));
    it->second = -static_cast<ModelDim>(model_->expressions.size());
  }
  return it->second;
}

uint32_t Emitter::type_of(const regie_type& type) {
  std::vector<ModelDim> dims;
  for (int32_t i = 0; i < type.rank; ++i) dims.push_back(dim(type.dims[i]));
  auto [it, fresh] = types_.emplace(std::pair{type.elem, dims}, static_cast<uint32_t>(model_->types.size()));
  if (fresh) model_->types.push_back({type.elem, std::move(dims)});
  return it->second;
}

// Room for all of them at once: what grows by doubling is copied and touched twice.
void Emitter::reserve_weights() {
  uint64_t bytes = 0;
  auto count = [&](uint64_t size) { bytes += (size + 63) / 64 * 64; };
  for (uint32_t v = 0; v < g_.value_count(); ++v)
    if (g_.live_value(v) && g_.is_constant(v) && g_.tensor(v)) count(g_.tensor(v).bytes());
  for (const auto& kernel : state_.kernels)
    if (kernel)
      for (const PackedWeight& w : kernel->weights) count(w.bytes.bytes());
  for (const Tensor& t : state_.portable_constants) count(t.bytes());
  weights_->reserve(bytes);
}

uint32_t Emitter::add_weight(const void* data, uint64_t size, const std::string& layout) {
  std::string digest = Hasher().number(size).bytes(data, size).hex();
  auto [it, fresh] =
      weight_ids_.emplace(std::pair{digest, layout}, static_cast<uint32_t>(model_->weights.size()));
  if (fresh) {
    uint64_t offset = (weights_->size() + 63) / 64 * 64;
    weights_->resize(offset + size);
    if (size) std::memcpy(weights_->data() + offset, data, size);
    model_->weights.push_back({offset, size, layout, digest});
  }
  return it->second;
}

Result<Arg> Emitter::locate(uint32_t value) {
  Arg arg;
  if (value == REGIE_NONE) return arg;
  arg.type = type_of(g_.value(value).type);
  arg.value = same_bytes(value);
  uint64_t offset = 0;
  uint32_t root = value;
  for (;;) {
    const regie_value& v = g_.value(root);
    if (v.alias_of != REGIE_NONE) {
      offset += v.alias_offset;
      root = v.alias_of;
    } else if (v.kind == REGIE_VALUE_ARGUMENT && v.owner != 0) {
      root = captured_operand(g_, root);
    } else {
      break;
    }
  }
  arg.offset = offset;
  const regie_value& v = g_.value(root);
  if (g_.is_constant(root)) {
    if (!g_.tensor(root))
      return invalid_input("constant has no data: a graph with abstract constants cannot be compiled",
                           g_.describe_value(root));
    auto [it, fresh] = weight_of_value_.emplace(root, 0);
    if (fresh) {
      const Tensor& t = g_.tensor(root);
      if (t.elem() == REGIE_STRING)
        return unsupported("constants of type string cannot be stored", g_.describe_value(root));
      it->second = add_weight(t.data(), t.bytes(), "portable");
    }
    arg.kind = Arg::kWeight;
    arg.index = it->second;
    arg.constant = true;
  } else if (v.kind == REGIE_VALUE_ARGUMENT) {
    arg.kind = Arg::kInput;
    arg.index = v.index;
  } else if (auto it = output_of_value_.find(root); it != output_of_value_.end()) {
    arg.kind = Arg::kOutput;
    arg.index = it->second;
  } else {
    uint32_t buffer = state_.buffer_of_value[root];
    if (buffer == REGIE_NONE) return internal_error("value has no buffer", g_.describe_value(root));
    arg.kind = Arg::kBuffer;
    arg.index = buffer;
  }
  return arg;
}

// One value for all that are views of each other, inner arguments and what they capture.
uint32_t Emitter::same_bytes(uint32_t value) {
  while (seen_as_[value] != value) value = seen_as_[value] = seen_as_[seen_as_[value]];
  return value;
}

// A view has its operand's bytes, by its engine's word, or because no task makes it. Whatever else lies in
// the same storage has bytes of its own, and is lost when another value is written there.
void Emitter::find_views() {
  seen_as_.resize(g_.value_count());
  for (uint32_t v = 0; v < seen_as_.size(); ++v) seen_as_[v] = v;
  for (uint32_t region : task_regions(g_))
    for (uint32_t i = 0; region != 0 && i < g_.region(region).arg_count; ++i)
      seen_as_[g_.region(region).args[i]] = captured_operand(g_, g_.region(region).args[i]);
  for_each_task_node(g_, [&](uint32_t id) {
    const regie_node& n = g_.node(id);
    if (is_control_flow(n) || is_copy(n)) return;
    const bool never_run = skipped(id);
    const EngineInstance& e = state_.engines[n.engine];
    for (uint32_t r = 0; r < n.result_count; ++r) {
      const uint32_t result = n.results[r];
      if (result == REGIE_NONE) continue;
      for (uint32_t o = 0; o < n.operand_count; ++o) {
        const uint32_t operand = n.operands[o];
        if (operand == REGIE_NONE || state_.storage_of(operand) != state_.storage_of(result)) continue;
        if (never_run || e.table->alias(e.engine, &g_.view(), id, r, o) == REGIE_ALIAS_VIEW)
          seen_as_[same_bytes(result)] = same_bytes(operand);
      }
    }
  });
}

Status Emitter::emit_identity() {
  Model& m = *model_;
  m.name = g_.name();
  m.producer = std::string("regie ") + REGIE_VERSION;
  m.target = state_.target.name;
  m.pipeline = pipeline_.name;
  REGIE_TRY(collect_plugins());
  m.options = {{"threads", std::to_string(state_.options.threads)}};
  for (const auto& o : state_.options.import_options) m.options.push_back(o);
  for (const auto& o : state_.options.settings) m.options.push_back(o);
  m.source_digest = Hasher().text(state_.portable_graph).hex();
  for (const TargetDevice& d : state_.target.devices) m.devices.push_back({d.name, d.plugin, d.params});
  for (uint32_t i = 0; i < g_.region(0).arg_count; ++i) {
    const regie_value& v = g_.value(g_.region(0).args[i]);
    if (v.type.container != REGIE_TENSOR)
      return unsupported("inputs that are no tensors", g_.describe_value(v.id));
    m.inputs.push_back({std::string(view(v.name)), type_of(v.type)});
  }
  for (uint32_t i = 0; i < g_.region(0).result_count; ++i) {
    const regie_value& v = g_.value(g_.region(0).results[i]);
    if (v.type.container != REGIE_TENSOR)
      return unsupported("outputs that are no tensors", g_.describe_value(v.id));
    m.outputs.push_back({std::string(g_.output_name(i)), type_of(v.type)});
    if (value_is_output_storage(g_, v.id)) output_of_value_.emplace(v.id, i);
  }
  return {};
}

// Who took part in this compile; what else the process has opened before does not matter.
Status Emitter::collect_plugins() {
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

Status Emitter::emit_symbols() {
  for (size_t i = 0; i < g_.dims().symbol_count(); ++i) {
    const DimSymbol& s = g_.dims().symbol_at(i);
    ModelSymbol out;
    out.name = s.name;
    out.lower = s.lower;
    out.upper = s.upper;
    out.reference = state_.symbol_values[i].value_or(1);
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

// Every symbol that an expression loads must be readable from an input.
Status Emitter::check_symbols_readable() {
  for (const DimCode& code : model_->expressions)
    for (size_t w = 0; w + 1 < code.words.size(); w += 2)
      if (code.words[w] == DimCode::kLoad) {
        const ModelSymbol& s = model_->symbols[static_cast<size_t>(code.words[w + 1])];
        if (s.input == REGIE_NONE)
          return unsupported("dimension '" + s.name +
                                 "' is known only while the model runs (its size depends on data); models of "
                                 "that kind are not supported yet",
                             state_.source);
      }
  return {};
}

Status Emitter::emit_spaces() {
  for (uint32_t space = 0; space < state_.target.devices.size(); ++space) {
    uint32_t device = state_.target.device_of(space);
    const MemoryRecord& r =
        state_.ledger.memory[state_.ledger.memory.size() - state_.target.devices.size() + space];
    model_->spaces.push_back({r.space, device, 0, r.peak, r.lower_bound});
  }
  return {};
}

Status Emitter::emit_buffers() {
  Model& m = *model_;
  for (const PlannedBuffer& b : state_.buffers) {
    ModelBuffer out;
    if (b.value != REGIE_NONE) {
      out.name = g_.value(b.value).name.size ? std::string(view(g_.value(b.value).name))
                                             : g_.describe_value(b.value);
    } else {
      out.name = "scratch of " + g_.describe_node(b.scratch_of);
      out.kind = BufferKind::kScratch;
    }
    out.space = b.space;
    out.alignment = static_cast<uint32_t>(b.alignment);
    out.size = dim(b.size_dim);
    out.offset = b.offset;
    out.lower = b.lower;
    out.upper = b.upper;
    m.buffers.push_back(std::move(out));
  }
  if (m.symbols.empty()) return {};
  order_buffers();
  return {};
}

// Who lies beneath whom, for every shape as in the plan. A sweep over time keeps the live buffers of each
// space in the order of their offsets and links neighbours whenever two become such: any two that share a
// step are then linked through those between them, with two or three links a buffer however many live at
// once.
void Emitter::order_buffers() {
  Model& m = *model_;
  std::vector<uint32_t>& order = m.placement_order;
  for (uint32_t i = 0; i < m.buffers.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(m.buffers[a].offset, state_.buffers[a].size) <
           std::pair(m.buffers[b].offset, state_.buffers[b].size);
  });
  struct Change {
    uint64_t step;
    bool starts;  // ends come first: lifetimes are half open
    uint32_t rank;
  };
  std::vector<Change> changes;
  for (uint32_t rank = 0; rank < order.size(); ++rank) {
    changes.push_back({m.buffers[order[rank]].lower, true, rank});
    changes.push_back({m.buffers[order[rank]].upper, false, rank});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.step, a.starts, a.rank) < std::tie(b.step, b.starts, b.rank);
  });
  std::vector<std::set<uint32_t>> live(m.spaces.size());
  auto link = [&](uint32_t below, uint32_t above) { m.buffers[order[above]].below.push_back(order[below]); };
  for (const Change& c : changes) {
    std::set<uint32_t>& ranks = live[m.buffers[order[c.rank]].space];
    auto it = c.starts ? ranks.insert(c.rank).first : ranks.find(c.rank);
    const bool has_below = it != ranks.begin(), has_above = std::next(it) != ranks.end();
    if (c.starts) {
      if (has_below) link(*std::prev(it), c.rank);
      if (has_above) link(c.rank, *std::next(it));
    } else {
      if (has_below && has_above) link(*std::prev(it), *std::next(it));
      ranks.erase(it);
    }
  }
  for (ModelBuffer& b : m.buffers) {
    std::sort(b.below.begin(), b.below.end());
    b.below.erase(std::unique(b.below.begin(), b.below.end()), b.below.end());
  }
}

// Does the value lie in the bytes of `whole`, by whatever way?
bool Emitter::lies_in(uint32_t value, uint32_t whole) const {
  while (value != whole && g_.value(value).alias_of != REGIE_NONE) value = g_.value(value).alias_of;
  return value == whole;
}

bool Emitter::skipped(uint32_t node) {
  const regie_node& n = g_.node(node);
  if (is_control_flow(n) || is_copy(n) || n.result_count == 0) return false;
  EngineInstance& e = state_.engines[n.engine];
  auto may_view = [&](uint32_t r, uint32_t o) {
    return e.table->alias(e.engine, &g_.view(), node, r, o) == REGIE_ALIAS_VIEW;
  };
  for (uint32_t r = 0; r < n.result_count; ++r) {
    if (n.results[r] == REGIE_NONE) continue;
    const regie_value& v = g_.value(n.results[r]);
    bool viewed = false, joined = n.operand_count > 0;
    for (uint32_t o = 0; o < n.operand_count && !viewed; ++o)
      viewed = v.alias_of != REGIE_NONE && n.operands[o] == v.alias_of && may_view(r, o);
    // All operands were made in the result's bytes.
    for (uint32_t o = 0; o < n.operand_count && joined && !viewed; ++o)
      joined = n.operands[o] != REGIE_NONE && lies_in(n.operands[o], v.id) && may_view(r, o);
    if (!viewed && !joined) return false;
  }
  return true;
}

uint32_t Emitter::add_kernel(const CompiledKernel& k, uint32_t device) {
  Hasher h;
  h.text(k.format).text(k.name).text(k.blob).number(k.flags);
  for (const std::string& r : k.requires_) h.text(r);
  auto [it, fresh] =
      kernels_.emplace(std::pair{device, h.hex()}, static_cast<uint32_t>(model_->kernels.size()));
  if (fresh) model_->kernels.push_back({k.format, k.name, k.blob, device, k.flags, k.requires_});
  return it->second;
}

Result<ModelTask> Emitter::make_task(const ScheduledTask& t) {
  const regie_node& n = g_.node(t.node);
  ModelTask task;
  task.device = state_.target.engines[n.engine].device;
  task.stream = t.stream;
  task.threads = state_.options.threads;
  task.step = t.step;
  task.name = g_.describe_node(t.node);
  task.op = view(n.op);
  for (uint32_t i = 0; i < n.origin_count; ++i) task.origins.emplace_back(g_.origin(n.origins[i]));
  for (uint32_t v : g_.operands(t.node)) {
    REGIE_ASSIGN(Arg a, locate(v));
    task.operands.push_back(a);
  }
  for (uint32_t v : g_.results(t.node)) {
    REGIE_ASSIGN(Arg a, locate(v));
    task.results.push_back(a);
  }
  if (is_copy(n)) {
    task.kind = TaskKind::kCopy;
  } else if (is_if(n)) {
    task.kind = TaskKind::kIf;
    task.operands.resize(1);  // the captures are read where they lie
  } else if (is_control_flow(n)) {
    return unsupported("operator " + std::string(view(n.op)) + " is not supported yet",
                       g_.describe_node(t.node));
  } else {
    const CompiledKernel& k = *state_.kernels[t.node];
    task.kernel = add_kernel(k, task.device);
    task.kernel_weights.assign(task.operands.size(), REGIE_NONE);
    for (const PackedWeight& w : k.weights) {
      uint32_t id = add_weight(w.bytes.data(), w.bytes.bytes(), w.layout);
      task.kernel_weights[w.operand] = id;
      task.operands[w.operand].index = id;
    }
  }
  return task;
}

Status Emitter::emit_region(uint32_t region, ModelProgram* program) {
  const RegionSchedule& schedule = state_.schedule[region];
  std::map<std::pair<uint32_t, uint32_t>, Pending> streams;
  std::vector<std::vector<uint32_t>> ends(schedule.tasks.size());  // tasks whose end means that task's end
  std::map<uint32_t, uint32_t> scratch_of;
  for (uint32_t i = 0; i < state_.buffers.size(); ++i)
    if (state_.buffers[i].scratch_of != REGIE_NONE) scratch_of.emplace(state_.buffers[i].scratch_of, i);
  for (size_t i = 0; i < schedule.tasks.size(); ++i) {
    const ScheduledTask& t = schedule.tasks[i];
    const regie_node& n = g_.node(t.node);
    Pending& stream = streams[{state_.target.engines[n.engine].device, t.stream}];
    std::vector<uint32_t> waits = std::move(stream.waits);
    stream.waits.clear();
    for (uint32_t w : t.waits) waits.insert(waits.end(), ends[w].begin(), ends[w].end());
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    if (skipped(t.node)) {
      views_.insert(t.node);
      ends[i] = waits;
      if (stream.last != REGIE_NONE) ends[i].push_back(stream.last);
      stream.waits = std::move(waits);  // its stream goes on only after them
      continue;
    }
    REGIE_ASSIGN(ModelTask task, make_task(t));
    std::erase(waits, stream.last);  // its own stream's order says so already
    task.waits = std::move(waits);
    if (auto it = scratch_of.find(t.node); it != scratch_of.end()) task.scratch = it->second;
    if (is_if(n)) {
      for (uint32_t r = 0; r < n.region_count; ++r) {
        uint32_t id = static_cast<uint32_t>(model_->programs.size());
        model_->programs.emplace_back();
        ModelProgram inner;
        REGIE_TRY(emit_region(n.regions[r], &inner));
        model_->programs[id] = std::move(inner);
        task.programs.push_back(id);
        const regie_region& inner_region = g_.region(n.regions[r]);
        std::vector<Arg> results;
        for (uint32_t k = 0; k < inner_region.result_count; ++k) {
          REGIE_ASSIGN(Arg a, locate(inner_region.results[k]));
          results.push_back(a);
        }
        task.program_results.push_back(std::move(results));
      }
    }
    stream.last = static_cast<uint32_t>(program->tasks.size());
    ends[i] = {stream.last};
    program->tasks.push_back(std::move(task));
    ++state_.ledger.tasks;
  }
  return {};
}

Status Emitter::emit_outputs() {
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

Result<std::shared_ptr<Model>> Emitter::emit() {
  Model& m = *model_;
  find_views();
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
    m.portable_constants.emplace(t.digest(), add_weight(t.data(), t.bytes(), "portable"));
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

}  // namespace

Result<std::shared_ptr<Model>> emit_model(CompileState& state, const Pipeline& pipeline) {
  return Emitter(state, pipeline).emit();
}

}  // namespace regie
