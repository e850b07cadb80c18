// Everything that one compile holds: the graph, the engines of the target, and what the stages decided that
// is not in the graph itself: kernels, the schedule, the memory plan. Passed by reference to the drivers; no
// globals.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "passes/ledger.h"
#include "passes/pipeline.h"
#include "passes/planner_answers.h"
#include "passes/plugin_op_set.h"
#include "passes/target.h"
#include "plugins/host.h"

namespace regie {

class KernelCache;

struct CompileOptions {
  std::string target = "host_cpu";
  std::string pipeline;  // empty: "default", or "unoptimised" if !optimise
  bool optimise = true;
  bool verify = true;  // graph after each stage, plan at the end
  uint32_t threads = 1;
  uint64_t memory_limit = 0;  // bytes that the arenas of all spaces may take together; 0: any
  std::string dump;           // folder for the graph after each stage; empty: none
  std::vector<std::pair<std::string, std::string>> import_options;  // {"shape", "x=16,1,8,8"}
  std::vector<std::string> typical;                                 // "x=16,3,224,224": what is planned for
  SymbolSizes sizes;                                          // symbols of the model that are these numbers
  std::vector<std::pair<std::string, std::string>> settings;  // {"fold-constants.budget-bytes", "1024"}
  std::set<uint32_t> held_back_patches;                       // bisection: patches left out
  uint32_t stop_after_patches = UINT32_MAX;
  bool explain = false;            // the ledger leaves no detail out
  KernelCache* kernels = nullptr;  // where engines' kernels may be known from before; outlives the compile

  std::string_view pipeline_name() const {
    return !pipeline.empty() ? std::string_view(pipeline) : optimise ? "default" : "unoptimised";
  }
};

struct EngineInstance {
  EngineInstance() = default;
  EngineInstance(EngineInstance&& o) noexcept
      : table(o.table), engine(std::exchange(o.engine, nullptr)), name(std::move(o.name)) {}
  EngineInstance& operator=(EngineInstance&&) = delete;
  ~EngineInstance() {
    if (engine) table->destroy(engine);
  }
  const regie_engine_table* table = nullptr;
  regie_engine* engine = nullptr;
  std::string name;
};

struct PackedWeight {
  uint32_t operand;
  Tensor bytes;  // u8
  std::string layout;
};

struct CompiledKernel {
  std::string format, name, blob;
  uint32_t flags = 0;
  std::vector<std::string> requires_;
  std::vector<PackedWeight> weights;
  uint64_t scratch_bytes = 0;
};

struct ScheduledTask {
  uint32_t node, stream;
  std::vector<uint32_t> waits;  // positions in the same region's list
  uint64_t step = 0;            // in the linearised program
  double cost_ns = 0;           // what a run is predicted to take
};

struct RegionSchedule {
  std::vector<ScheduledTask> tasks;  // in issue order
  uint64_t end_step = 0;             // where the region's results are handed over
};

struct PlannedBuffer {
  uint32_t value = REGIE_NONE;       // root of the alias class, or
  uint32_t scratch_of = REGIE_NONE;  // the node whose scratch it is
  uint32_t space = 0;
  uint64_t lower = 0, upper = 0;
  uint64_t size = 0;       // at the reference shapes
  regie_dim size_dim = 0;  // bytes; constant or expression
  bool late = false;       // the run tells the size and finds the place; `size` is 0
  uint64_t alignment = 64;
  uint64_t offset = 0;
};

// What a scheduler wants to be computed again (regie/c/recompute.h): nodes of a region in the order in which
// they run, those that run once more several times.
struct RepeatWish {
  uint32_t region = 0;
  std::vector<uint32_t> steps;
};

struct CompileState {
  CompileOptions options;
  std::shared_ptr<PluginHost> plugins;
  std::shared_ptr<PluginOpSet> ops;
  std::string source;                       // the user's file, for messages
  std::vector<std::string> external_files;  // beside the model, as it names them; sorted
  std::unique_ptr<Graph> graph;
  bool aliases_given = false;  // the graph as it was read says where values lie
  std::string portable_graph;  // .rg text right after import
  std::vector<Tensor> portable_constants;
  Target target;
  std::vector<EngineInstance> engines;
  std::vector<ForcedEngine> forced;                   // by the pipeline
  std::vector<std::optional<int64_t>> symbol_values;  // reference binding, by symbol index
  std::vector<bool>
      symbol_said;  // by symbol index: the size was said (`typical`), or an input's default has it
  Ledger ledger;
  uint32_t next_patch = 0;
  std::set<std::string> used_plugins;  // "name version": the identity of what took part

  void uses(const Manifest* manifest) {
    if (manifest) used_plugins.insert(manifest->name + " " + manifest->version);
  }

  // Nodes whose sizes at the reference values of data-dependent symbols do not go together, as those values
  // are guesses: engines answer for them without trying.
  std::set<uint32_t> untried;
  std::vector<std::optional<CompiledKernel>> kernels;  // by node
  bool one_stream = false;                             // a device, whatever the target has
  std::vector<RegionSchedule> schedule;                // by region
  std::vector<RegionSchedule> schedule_before;  // with one stream a device, if it has several; else empty
  uint32_t repeats_wanted = 0;                  // REGIE_RECOMPUTE_*: what schedulers are told
  uint64_t repeats_limit = 0;                   // with REGIE_RECOMPUTE_LIMIT
  std::vector<RepeatWish> repeats;              // what they then want
  // Who will plan what the schedulers decide; null: nobody, or not yet known.
  const Provider<regie_memory_table>* planner = nullptr;
  const regie_config* planner_options = nullptr;
  PlannerAnswers planner_answers;
  std::vector<PlannedBuffer> buffers;
  std::vector<uint32_t> buffer_of_value;  // by value: index into buffers, REGIE_NONE

  bool several_streams() const;  // of one device are in use

  // Engines of the target as views for the graph; opens the plug-ins.
  // Placements that the graph came with are looked up by name.
  Status open_engines();
  // INVALID_MODEL with the node if the value is larger than an address at the reference shapes.
  Status check_size(uint32_t value) const;
  // Reference values of all symbols: the least power of two in the symbol's range at which every dimension
  // known so far is positive, 1 where nothing asks for more.
  Status bind_symbols();
  Result<int64_t> reference_value(regie_dim dim) const;
  // `symbol_values` at sizes as runs have them: at the least ones, where symbols are 1, what will be a small
  // part of all bytes is as large as the rest. Symbols whose size was said, those that stand for something
  // else already, and what data decide, are as in the reference.
  std::vector<std::optional<int64_t>> typical_values() const;
  // Do its operands or results have sizes, or lie in memory, that only the run tells? Such a node's scratch
  // and what it makes are not in the plan.
  bool is_late_node(uint32_t node) const;
  bool has_late_types(uint32_t node) const;
  bool has_open_types(uint32_t node) const;  // late, or symbolic: the reference is one of many sizes
  // The base of the chain of aliases, and through region arguments to the operand that the owner hands in.
  uint32_t storage_of(uint32_t value) const;

 private:
  Status keep_placements(const std::vector<std::pair<std::string, regie_engine_ref>>& to);
};

// Concrete shapes of a node at the reference binding, with constants' data: what engines are asked and
// compile with. Dimensions of results that the node itself makes known when it runs are -1; of an untried
// node, all that only the run tells are.
class NodeShapes {
 public:
  static Result<NodeShapes> make(const CompileState& state, uint32_t node);
  regie_engine_shapes get() const { return {operands_.data(), results_.data()}; }
  const std::vector<regie_tensor>& operands() const { return operands_; }
  const std::vector<regie_tensor>& results() const { return results_; }

 private:
  std::vector<regie_tensor> operands_, results_;
  std::vector<std::vector<int64_t>> dims_;
};

// Drivers: each runs one kind of plug-in over the whole graph and keeps its decisions in the state.
Status run_placer(CompileState& state, const Provider<regie_placer_table>& placer,
                  const regie_config* options);
Status run_scheduler(CompileState& state, const Provider<regie_scheduler_table>& scheduler,
                     const regie_config* options);
Status run_memory_planner(CompileState& state, const Provider<regie_memory_table>& planner,
                          const regie_config* options);
// Kernels of all placed nodes; once.
Status compile_kernels(CompileState& state);
// Whether this value is written straight into a graph output (the caller's memory) rather than into an arena.
bool value_is_output_storage(const Graph& g, uint32_t value);
Result<std::shared_ptr<struct Model>> emit_model(CompileState& state, const Pipeline& pipeline);

}  // namespace regie
