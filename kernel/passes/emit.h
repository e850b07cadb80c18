// The object that turns a compiled graph into a Model: what emit.cpp begins, with the tasks and the places
// of their arguments in emit_tasks.cpp, memory in emit_buffers.cpp.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.h"
#include "passes/compile_state.h"

namespace regie {

class ModelEmitter {
 public:
  ModelEmitter(CompileState& state, const Pipeline& pipeline)
      : state_(state), g_(*state.graph), pipeline_(pipeline), model_(std::make_shared<Model>()) {}

  Result<std::shared_ptr<Model>> emit();

 private:
  struct Pending {  // what a stream still has to wait for, and where a skipped task left off
    std::vector<uint32_t> waits;
    uint32_t last = REGIE_NONE;
  };
  ModelDim dim(regie_dim d);
  bool depends_on_data(regie_dim d) const;  // and on nothing else
  DimCode code_of(regie_dim d) const;
  uint32_t type_of(const regie_type& type);
  void reserve_weights();
  uint32_t add_weight(const void* data, uint64_t size, const std::string& layout);
  // `packed`: what its kernel reads instead of the constant.
  Result<Arg> locate(uint32_t value, const PackedWeight* packed = nullptr);
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
  Status loop_state(const regie_node& n, ModelTask* task);
  void define(regie_dim dim, uint32_t result, uint32_t axis, ModelTask* task);
  Status emit_late_dims(const regie_node& n, ModelTask* task);
  Status emit_outputs();
  Status check_symbols_readable();
  uint64_t predict_on_host(const ScheduledTask& t) const;
  uint32_t add_kernel(const CompiledKernel& k, uint32_t device);
  void find_streams();

  CompileState& state_;
  const Graph& g_;
  const Pipeline& pipeline_;
  std::shared_ptr<Model> model_;
  std::shared_ptr<std::vector<std::byte>> weights_ = std::make_shared<std::vector<std::byte>>();
  std::unordered_map<std::string, uint32_t> weight_ids_;  // by digest of bytes and layout
  std::map<regie_dim, ModelDim> dims_;
  std::map<std::pair<regie_elem, std::vector<ModelDim>>, uint32_t> types_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> kernels_;  // {device, content digest}
  std::map<uint32_t, uint32_t> weight_of_value_;
  std::map<uint32_t, uint32_t> output_of_value_;    // storage written in place
  std::set<uint32_t> defined_;                      // symbols that tasks make known
  std::set<uint32_t> views_;                        // nodes that no task runs
  std::vector<std::set<uint32_t>> device_streams_;  // by device: those in use
  std::vector<uint32_t> seen_as_;  // by value: another one that has the same bytes, or itself
};

}  // namespace regie
