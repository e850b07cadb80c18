#include "runtime/core.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "base/log.h"
#include "model/file.h"

namespace regie {

namespace {

Status check_device_indices(const Model& model, const std::vector<std::unique_ptr<Device>>& devices) {
  for (const ModelSpace& s : model.spaces) {
    const Device& d = *devices[s.device];
    if (s.device_space >= d.about().space_count)
      return unsupported("memory space '" + s.name + "' is number " + std::to_string(s.device_space) +
                         " of " + d.title() + ", which has " + std::to_string(d.about().space_count) +
                         "; compile the model again for this target");
  }
  for (const ModelBuffer& b : model.buffers) {
    const ModelSpace& s = model.spaces[b.space];
    const uint32_t need = devices[s.device]->about().spaces[s.device_space].alignment;
    if (need > 1 && (b.alignment % need || b.offset % need))
      return unsupported("buffer '" + b.name + "' is aligned to " + std::to_string(b.alignment) +
                         " bytes, but " + devices[s.device]->title() + " needs " + std::to_string(need) +
                         "; compile the model again for this target");
  }
  return {};
}

Status check_kernel(const ModelKernel& kernel, const Device& device) {
  if (!device.accepts(kernel.format)) {
    std::string known;
    for (uint32_t i = 0; i < device.about().format_count; ++i)
      known += (i ? ", " : "") + std::string(device.about().formats[i].data, device.about().formats[i].size);
    return unsupported(
        "kernel '" + kernel.name + "' has the format " + kernel.format + "; " + device.title() + " accepts " +
        (known.empty() ? "none" : known) +
        "; compile the model again with this version, or install the plug-in that it was made for");
  }
  for (const std::string& r : kernel.requires_)
    if (!device.has(r))
      return unsupported("kernel '" + kernel.name + "' needs '" + r + "', which " + device.title() +
                         " does not have; compile the model again on this machine or for this target");
  return {};
}

Status load_kernels(SessionCore* core) {
  std::map<std::tuple<uint32_t, std::string_view, uint32_t, std::string_view>, uint32_t> known;
  for (const ModelKernel& k : core->model->kernels) {
    const Device& device = *core->devices[k.device];
    REGIE_TRY(check_kernel(k, device));
    auto [it, is_new] =
        known.try_emplace({k.device, k.format, k.flags, k.blob}, static_cast<uint32_t>(core->loaded.size()));
    if (is_new) {
      Result<LoadedKernel> loaded = LoadedKernel::load(device, k);
      if (!loaded) return std::move(loaded).status().while_doing("loading kernel '" + k.name + "'");
      core->loaded.push_back(std::move(loaded).value());
    }
    core->loaded_of.push_back(it->second);
  }
  return {};
}

// The device's own weights, one after the other in its memory, copied there once.
Status upload_weights(SessionCore* core, uint32_t device_index, uint32_t space,
                      const std::set<uint32_t>& used) {
  const Model& model = *core->model;
  const Device& device = *core->devices[device_index];
  const uint64_t alignment =
      std::max<uint64_t>(64, device.about().spaces[model.spaces[space].device_space].alignment);
  uint64_t total = 0;
  std::vector<std::pair<uint32_t, uint64_t>> places;
  for (uint32_t w : used) {
    total = (total + alignment - 1) / alignment * alignment;
    places.emplace_back(w, total);
    total += std::max<uint64_t>(model.weights[w].size, 1);
  }
  SessionCore::DeviceWeights& weights = core->weights[device_index];
  REGIE_ASSIGN(weights.memory, DeviceMemory::allocate(device, model.spaces[space].device_space, total));
  REGIE_ASSIGN(const Stream stream, Stream::create(device));
  for (auto [w, offset] : places) {
    weights.addresses[w] = weights.memory.data() + offset;
    if (model.weights[w].size == 0) continue;
    REGIE_TRY(device.call([&] {
      return device.table().copy(stream.get(), REGIE_COPY_TO_DEVICE, weights.memory.data() + offset,
                                 core->host_weight(w), model.weights[w].size);
    }));
  }
  return device.call([&] { return device.table().stream_wait(stream.get(), core->timeout_ns(device)); });
}

Status place_weights(SessionCore* core) {
  const Model& model = *core->model;
  std::vector<std::set<uint32_t>> used(model.devices.size());
  for (const ModelProgram& p : model.programs)
    for (const ModelTask& t : p.tasks) {
      if (t.kind != TaskKind::kLaunch) continue;
      for (size_t i = 0; i < t.operands.size(); ++i)
        if (const uint32_t w = weight_read(t, i); w != REGIE_NONE) used[t.device].insert(w);
    }
  core->weights.resize(model.devices.size());
  for (uint32_t d = 0; d < model.devices.size(); ++d) {
    core->weights[d].addresses.resize(model.weights.size());
    if (used[d].empty()) continue;
    uint32_t space = REGIE_NONE;
    for (uint32_t s = 0; s < model.spaces.size() && space == REGIE_NONE; ++s)
      if (model.spaces[s].device == d) space = s;
    if (space == REGIE_NONE)
      return Status::error(REGIE_CORRUPT,
                           core->devices[d]->title() + " reads weights, but the model gives it no memory");
    if (core->host_visible(space)) {
      for (uint32_t w : used[d]) core->weights[d].addresses[w] = core->host_weight(w);
    } else {
      Status s = upload_weights(core, d, space, used[d]);
      if (!s.ok()) return std::move(s).while_doing("copying the weights to " + core->devices[d]->title());
    }
  }
  return {};
}

Status find_streams(SessionCore* core) {
  std::vector<std::set<uint32_t>> used(core->devices.size());
  for (const ModelProgram& p : core->model->programs)
    for (const ModelTask& t : p.tasks) used[t.device].insert(t.stream);
  for (size_t d = 0; d < used.size(); ++d) {
    if (used[d].empty()) used[d].insert(0);
    const uint32_t limit = core->devices[d]->about().limits.streams;
    if (limit && used[d].size() > limit)
      return unsupported("the model uses " + std::to_string(used[d].size()) + " streams of " +
                         core->devices[d]->title() + ", which has " + std::to_string(limit) +
                         "; compile the model again for this target");
    core->streams.emplace_back(used[d].begin(), used[d].end());
  }
  return {};
}

Status find_shape_functions(SessionCore* core) {
  for (uint32_t p = 0; p < core->model->programs.size(); ++p)
    for (uint32_t t = 0; t < core->model->programs[p].tasks.size(); ++t) {
      const ModelTask& task = core->model->programs[p].tasks[t];
      if (task.shape_op.empty()) continue;
      REGIE_ASSIGN(ShapeOp op, ShapeOp::read(task.shape_op));
      auto shape = core->plugins->op_shape(op.op());
      if (!shape.ok())
        return std::move(shape).status().while_doing("finding the shape function of " + std::string(op.op()) +
                                                     " for " + task_name(*core->model, p, t));
      core->late_ops.emplace(std::pair(p, t), LateOp{std::move(op), *shape});
    }
  return {};
}

Result<std::vector<ModelDevice>> set_devices(std::vector<ModelDevice> devices,
                                             const std::vector<DeviceSetting>& settings) {
  for (const DeviceSetting& s : settings) {
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const ModelDevice& d) { return d.name == s.device; });
    if (found == devices.end()) {
      std::string known;
      for (const ModelDevice& d : devices) known += (known.empty() ? "" : ", ") + d.name;
      return invalid_input("the model has no device '" + s.device + "' whose '" + s.key +
                           "' could be set; it has: " + known);
    }
    const auto at = std::find_if(found->params.begin(), found->params.end(),
                                 [&](const auto& p) { return p.first == s.key; });
    if (at == found->params.end())
      found->params.emplace_back(s.key, s.value);
    else
      at->second = s.value;
  }
  return devices;
}

// The schedule, the kernels and what is predicted were made for the target's parameters. A device lists those
// that no compile goes by as capabilities, "run-parameter:NAME".
void note_changes(const Model& model, const Device& device, const ModelDevice& now,
                  const std::vector<DeviceSetting>& settings) {
  const auto was = std::find_if(model.devices.begin(), model.devices.end(),
                                [&](const ModelDevice& d) { return d.name == now.name; });
  if (was == model.devices.end()) return;
  for (const DeviceSetting& s : settings) {
    if (s.device != now.name || device.has("run-parameter:" + s.key)) continue;
    const auto before =
        std::find_if(was->params.begin(), was->params.end(), [&](const auto& p) { return p.first == s.key; });
    if (before != was->params.end() && before->second == s.value) continue;
    log(REGIE_LOG_WARNING, "session",
        "device '" + now.name + "' runs with " + s.key + " = " + s.value +
            ", but the model was compiled for " +
            (before == was->params.end() ? "a target without it" : s.key + " = " + before->second) +
            ": its schedule, kernels and predictions stay as they were; compile for a target file of your "
            "own, a "
            "copy of '" +
            model.target + "' with this value, to have them made for it");
  }
}

// What fails here fails again, with its words, when a run needs it.
void make_arenas_ahead(SessionCore* core) {
  const Model& model = *core->model;
  if (!model.symbols.empty()) return;
  std::vector<std::span<std::byte>> to_touch;
  core->first_arenas.resize(model.spaces.size());
  for (uint32_t s = 0; s < model.spaces.size(); ++s) {
    if (!core->is_host_space(s)) continue;
    const ModelSpace& space = model.spaces[s];
    auto made = DeviceMemory::allocate(*core->devices[space.device], space.device_space, space.arena_bytes);
    if (!made.ok() || made->bytes() == 0) continue;
    to_touch.emplace_back(made->data(), made->bytes());
    core->first_arenas[s] = std::move(made).value();
  }
  if (!to_touch.empty()) core->first_touch = std::make_unique<FirstTouch>(std::move(to_touch));
}

}  // namespace

uint64_t SessionCore::timeout_ns(const Device& device) const {
  if (options.timeout_ns) return options.timeout_ns;
  return device.about().limits.wait_timeout_ns ? device.about().limits.wait_timeout_ns : UINT64_MAX;
}

uint32_t SessionCore::threads_of(const ModelTask& task) const {
  if (options.threads == 0) return task.threads;
  // One stream: its tasks run one after the other, each at the whole width. Several share it as the plan
  // says.
  return streams[task.device].size() == 1 ? options.threads : std::min(task.threads, options.threads);
}

Result<std::shared_ptr<SessionCore>> make_core(std::shared_ptr<const Model> model,
                                               std::shared_ptr<PluginHost> plugins,
                                               const SessionOptions& options) {
  if (!model || !plugins) return internal_error("a session needs a model and a plug-in host");
  if (!model->checked) REGIE_TRY(check_model(*model));
  auto core = std::make_shared<SessionCore>(std::move(model));
  core->plugins = std::move(plugins);
  core->options = options;
  core->options.shapes_kept = std::max<size_t>(1, options.shapes_kept);
  REGIE_ASSIGN(const std::vector<ModelDevice> devices,
               set_devices(core->model->devices, options.device_settings));
  for (const ModelDevice& d : devices) {
    REGIE_ASSIGN(std::unique_ptr<Device> device, Device::open(d, *core->plugins));
    note_changes(*core->model, *device, d, options.device_settings);
    core->devices.push_back(std::move(device));
  }
  REGIE_TRY(check_device_indices(*core->model, core->devices));
  if (options.arenas_ahead) make_arenas_ahead(core.get());
  REGIE_TRY(find_streams(core.get()));
  REGIE_TRY(find_shape_functions(core.get()));
  REGIE_TRY(load_kernels(core.get()));
  REGIE_TRY(place_weights(core.get()));
  return core;
}

std::string task_name(const Model& model, uint32_t program, uint32_t task) {
  const ModelTask& t = model.programs[program].tasks[task];
  if (!t.name.empty()) return t.name;
  return "task " + std::to_string(task) + " of program " + std::to_string(program);
}

std::string task_story(const Model& model, uint32_t program, uint32_t task, const Device& device) {
  const ModelTask& t = model.programs[program].tasks[task];
  std::string text = "running task " + std::to_string(task);
  if (program) text += " of program " + std::to_string(program);
  text += " on " + device.title();
  for (size_t i = 0; i < t.origins.size(); ++i) text += (i ? ", " : ", made from ") + t.origins[i];
  return text;
}

}  // namespace regie
