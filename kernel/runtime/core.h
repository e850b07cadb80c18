// What a session's contexts share: open devices, loaded kernels, weights on their devices. Plans of shapes
// are a context's own: an executable carries the addresses of the launch it is at, so two runs that share one
// would meet in it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/late.h"
#include "model/layout.h"
#include "model/shape_op.h"
#include "runtime/device.h"
#include "runtime/first_touch.h"
#include "runtime/preparation.h"
#include "runtime/session.h"

namespace regie {

struct TaskPlan {
  Executable executable;  // none: nothing to compute (results without bytes), or no launch
  Status failure;         // of preparing it: said if the run comes to a task of a branch that cannot be
  // Of the plan's preparation: until that has made it, nobody else reads `executable`, `failure` and
  // `scratch_bytes`. REGIE_NONE: it is ready.
  uint32_t pending = REGIE_NONE;
  uint64_t scratch_bytes = 0;
  bool has_scratch = false;    // in the arena; known of what is ready
  uint64_t scratch_room = 0;   // of what is pending: what the plan has for it; 0: nothing
  uint32_t scratch_space = 0;  // of the model
  uint64_t scratch_offset = 0;
};

// The operator of a task whose results' shapes depend on data, and its shape function.
struct LateOp {
  ShapeOp op;
  Provider<regie_op_shape_table> shape;
};

// Of what is late (model/late.h) only the rank is known here: dims and bytes are 0.
struct ShapePlan {
  ShapeValues shapes;
  std::vector<std::vector<int64_t>> dims;    // by type
  std::vector<uint64_t> bytes;               // by type
  std::vector<uint64_t> offsets;             // by buffer
  std::vector<uint64_t> space_bytes;         // by space, scratch outside of the model's plan included
  std::vector<std::vector<TaskPlan>> tasks;  // by program
  std::unique_ptr<Preparation> preparation;  // NULL: every kernel is ready; goes before all that it writes
};

// A branch whose kernels cannot be at these shapes need not be taken: so this failure of making one ready is
// said only if it is.
inline bool may_be_left(uint32_t program, const Status& failure) {
  const regie_status code = failure.code();
  return program != 0 &&
         (code == REGIE_INVALID_INPUT || code == REGIE_INVALID_MODEL || code == REGIE_UNSUPPORTED);
}

struct SessionCore {
  explicit SessionCore(std::shared_ptr<const Model> m) : model(std::move(m)), late(*model) {}
  const std::shared_ptr<const Model> model;
  const LateFacts late;
  std::map<std::pair<uint32_t, uint32_t>, LateOp> late_ops;  // by program and task
  std::shared_ptr<PluginHost> plugins;
  SessionOptions options;

  // In this order: what is destroyed first stands last.
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<LoadedKernel> loaded;  // equal kernels of a device once
  std::vector<uint32_t> loaded_of;   // by kernel of the model
  struct DeviceWeights {
    DeviceMemory memory;                 // of a device that cannot read the host's memory
    std::vector<const void*> addresses;  // by weight; NULL: no task of this device reads it
  };
  std::vector<DeviceWeights> weights;          // by device
  std::vector<std::vector<uint32_t>> streams;  // by device: the stream numbers in use, ascending; never empty
  std::mutex prepare_mutex;                    // one preparation at a time
  // SessionOptions::arenas_ahead: of the context that comes first; under `pool_mutex`.
  std::vector<DeviceMemory> first_arenas;  // by space, or empty
  std::unique_ptr<FirstTouch> first_touch;
  std::mutex pool_mutex;
  std::vector<std::unique_ptr<Context>> pool;
  std::atomic<uint64_t> shapes_prepared{0}, late_prepared{0};  // by all contexts

  const void* host_weight(uint32_t weight) const {
    return model->weight_bytes.data() + model->weights[weight].offset;
  }
  // The host's own: its pages are there when they are touched.
  bool is_host_space(uint32_t space) const {
    return model->spaces[space].device == host_device() && host_visible(space);
  }
  uint32_t host_device() const { return model->spaces[0].device; }
  bool host_visible(uint32_t space) const {
    const ModelSpace& s = model->spaces[space];
    return space == 0 || devices[s.device]->about().spaces[s.device_space].host_visible != 0;
  }
  uint64_t timeout_ns(const Device& device) const;
  uint32_t threads_of(const ModelTask& task) const;

  Result<std::unique_ptr<const ShapePlan>> make_plan(std::vector<int64_t> symbols);
};

Result<std::shared_ptr<SessionCore>> make_core(std::shared_ptr<const Model> model,
                                               std::shared_ptr<PluginHost> plugins,
                                               const SessionOptions& options);

// "node 'conv1' (Op)", or the task's number where it has no name; and the framework operators it came from.
std::string task_name(const Model& model, uint32_t program, uint32_t task);
std::string task_story(const Model& model, uint32_t program, uint32_t task, const Device& device);

}  // namespace regie
