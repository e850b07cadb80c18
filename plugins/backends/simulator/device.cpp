// The device's table: memory, streams, kernels, fences, as regie/c/device.h and device_trace.h promise.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "regie/tile/program.h"
#include "regie/timeline.hpp"
#include "regie_digests.h"
#include "state.h"
#include "tables.h"

using namespace regie::simulator;
using regie::sdk::Failure;

regie_device::regie_device(const regie_host* h, const regie_config* params)
    : host(h),
      catcher(h),
      settings(read_settings(params)),
      clock(settings.hardware, settings.sink),
      cache(static_cast<uint64_t>(settings.hardware.l2_bytes)) {
  static constexpr regie_str formats[] = {regie::sdk::lit(kAicpuFormat), regie::sdk::lit(REGIE_TILE_FORMAT)};
  // What no engine and no scheduler goes by.
  static constexpr regie_str capabilities[] = {
      regie::sdk::lit("run-parameter:numerics"), regie::sdk::lit("run-parameter:wait_timeout_ms"),
      regie::sdk::lit("run-parameter:queue_depth"), regie::sdk::lit("run-parameter:callback_ns")};
  const regie::sdk::Accelerator& hw = settings.hardware;
  space = {regie::sdk::lit("device memory"), 0, 512, static_cast<uint64_t>(hw.memory_bytes)};
  description.struct_size = sizeof description;
  description.space_count = 1;
  description.spaces = &space;
  description.format_count = static_cast<uint32_t>(std::size(formats));
  description.formats = formats;
  description.capability_count = static_cast<uint32_t>(std::size(capabilities));
  description.capabilities = capabilities;
  description.limits = {static_cast<uint32_t>(hw.streams), static_cast<uint32_t>(hw.events),
                        static_cast<uint32_t>(hw.queue_depth), 0, settings.wait_timeout_ns};
  lane_names.push_back("AI Core");
  for (uint32_t i = 0; i < static_cast<uint32_t>(hw.aicpu_count); ++i)
    lane_names.push_back("AICPU " + std::to_string(i));
  for (const char* name : {"copy to the device", "copy from the device", "copy inside"})
    lane_names.push_back(name);
  const size_t engines = lane_names.size();
  for (std::string_view pipe : regie::tile::mode_words(regie::tile::ModeKind::pipe))
    lane_names.push_back("AI Core, pipe " + std::string(pipe));
  for (size_t i = 0; i < lane_names.size(); ++i)
    lanes.push_back({regie::sdk::str(lane_names[i]), i < engines ? REGIE_NONE : 0, i < engines});
}

uint32_t regie_device::lane(uint32_t engine, uint32_t unit) const {
  const auto aicpus = static_cast<uint32_t>(settings.hardware.aicpu_count);
  if (engine == kCores) return 0;
  if (engine == kAicpus) return 1 + unit;
  return engine < kEngineKinds ? 1 + aicpus + (engine - kCopyIn) : REGIE_NONE;
}

namespace {

// Fresh and given-back memory is filled: what reads it nevertheless shows.
constexpr int kPoison = 0xDB;
constexpr uint64_t kAlignment = 512;

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_device** device) {
  return regie::sdk::guard(host, [&] { *device = new regie_device(host, params); });
}
void destroy(regie_device* device) {
  if (!device) return;
  for (auto [address, bytes] : device->accesses.blocks()) std::free(reinterpret_cast<void*>(address));
  delete device;
}
const regie_device_description* describe(regie_device* device) { return &device->description; }

regie_status allocate(regie_device* device, uint32_t space, uint64_t bytes, void** address) {
  return regie::sdk::guard(device->host, [&] {
    if (space != 0)
      throw Failure(REGIE_INVALID_INPUT,
                    "simulator: there is one memory space, not " + std::to_string(space));
    std::lock_guard lock(device->mutex);
    const auto capacity = static_cast<uint64_t>(device->settings.hardware.memory_bytes);
    const uint64_t left = capacity - device->used;
    const uint64_t rounded =
        bytes > left ? bytes : std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    void* p = rounded > left ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (!p)
      throw Failure(REGIE_OUT_OF_MEMORY, "device memory: " + std::to_string(bytes) + " bytes asked for, " +
                                             std::to_string(left) + " of " + std::to_string(capacity) +
                                             " left" + (rounded > left ? "" : "; this computer has no more"));
    std::memset(p, kPoison, rounded);
    device->accesses.allocate(reinterpret_cast<uintptr_t>(p), rounded);
    device->used += rounded;
    *address = p;
  });
}

// A stream whose work may still use the memory fails: so whoever waits for it hears of it.
void release(regie_device* device, uint32_t, void* address) {
  std::lock_guard lock(device->mutex);
  const auto block = device->accesses.blocks().find(reinterpret_cast<uintptr_t>(address));
  if (block == device->accesses.blocks().end()) return;
  const auto [at, bytes] = *block;
  uint32_t user = REGIE_NONE;
  const std::string problem = device->accesses.release(at, device->host_knows, &user);
  if (!problem.empty()) {
    device->host->log(REGIE_LOG_ERROR, regie::sdk::lit("simulator"), regie::sdk::str(problem));
    if (const auto s = device->streams.find(user); s != device->streams.end())
      s->second->fail(REGIE_DEVICE, problem);
  }
  device->cache.drop(at, bytes);
  std::memset(address, kPoison, bytes);
  device->used -= bytes;
  std::free(address);
}

regie_status stream_create(regie_device* device, regie_stream** stream) {
  return regie::sdk::guard(device->host, [&] {
    std::lock_guard lock(device->mutex);
    const auto limit = static_cast<size_t>(device->settings.hardware.streams);
    if (device->streams.size() >= limit)
      throw Failure(REGIE_LIMIT,
                    "simulator: there are " + std::to_string(limit) + " streams (parameter 'streams')");
    auto made = std::make_unique<regie_stream>(device);
    device->streams[made->index] = made.get();
    *stream = made.release();
  });
}

// Until all of it is done, or has failed.
bool wait_for(regie_stream* s, std::unique_lock<std::mutex>& lock, uint64_t timeout_ns) {
  return regie::sdk::wait_for_ns(s->device->changed, lock, timeout_ns, [&] { return s->pending.empty(); });
}

void stream_destroy(regie_stream* stream) {
  if (!stream) return;
  regie_device* device = stream->device;
  {
    std::unique_lock lock(device->mutex);
    wait_for(stream, lock, device->settings.wait_timeout_ns);
    stream->pending.clear();
    device->clock.remove_stream(stream->index);
    device->host_knows.join(stream->knows);  // destroying it has waited for it
    device->counts[stream->index] = stream->count;
    device->streams.erase(stream->index);
    for (regie_fence* f : device->fences)
      if (f->signaller == stream) f->signaller = nullptr;
  }
  delete stream;
}

regie_status stream_wait(regie_stream* s, uint64_t timeout_ns) {
  regie_device* device = s->device;
  std::unique_lock lock(device->mutex);
  if (!wait_for(s, lock, timeout_ns))
    return regie::sdk::fail(device->host, REGIE_TIMEOUT,
                            "simulator: " + std::to_string(s->pending.size()) +
                                " pieces of work of a stream had not ended after " +
                                std::to_string(timeout_ns / 1'000'000) +
                                " ms: the first waits for an event that nobody has signalled");
  const Issue waited = device->clock.wait_stream(s->index);
  if (s->record.on && waited.end > waited.begin) s->record.waits.push_back({waited.begin, waited.end});
  device->host_knows.join(s->knows);
  return s->code == REGIE_OK ? REGIE_OK : regie::sdk::fail(device->host, s->code, s->words);
}

regie_status kernel_load(regie_device* device, const regie_kernel_image* image,
                         regie_loaded_kernel** kernel) {
  return regie::sdk::guard(device->host, [&] {
    *kernel = new regie_loaded_kernel{device, load_kernel(device->catcher, device->settings, *image)};
  });
}
void kernel_release(regie_loaded_kernel* kernel) { delete kernel; }

regie_status prepare(regie_loaded_kernel* k, const regie_tensor* operands, uint32_t operand_count,
                     const regie_tensor* results, uint32_t result_count, uint32_t,
                     regie_executable** executable, uint64_t* scratch_bytes) {
  return regie::sdk::guard(k->device->host, [&] {
    auto run = k->kernel->prepare({operands, operand_count, results, result_count});
    *scratch_bytes = run->scratch_bytes();
    *executable = new regie_executable{k->device, std::move(run), operand_count, result_count};
  });
}
void executable_release(regie_executable* executable) { delete executable; }

std::vector<Bytes> bytes_of(const regie_tensor* tensors, uint32_t count) {
  std::vector<Bytes> list;
  for (uint32_t i = 0; i < count; ++i) {
    const regie_tensor& t = tensors[i];
    const bool there = t.elem != REGIE_ELEM_UNKNOWN && t.bytes;
    list.push_back({reinterpret_cast<uintptr_t>(t.data), there ? t.bytes : 0});
  }
  return list;
}

// An address that is not the device's is the caller's mistake, said at once.
void check_held(regie_device* device, const std::vector<Bytes>& list, const char* what, uint32_t task) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].size && !device->accesses.holds(list[i].at, list[i].size))
      throw Failure(REGIE_INVALID_INPUT, "simulator: " + std::string(what) + " " + std::to_string(i) +
                                             " of task " + std::to_string(task) +
                                             " does not lie in its memory");
}

regie_status launch(regie_stream* s, const regie_executable* e, const regie_launch* l) {
  return regie::sdk::guard(s->device->host, [&] {
    if (l->operand_count != e->operand_count || l->result_count != e->result_count)
      throw Failure(REGIE_INVALID_INPUT,
                    "simulator: a launch has another number of operands or results than its executable");
    Work w;
    w.kind = Work::kLaunch;
    w.executable = const_cast<regie_executable*>(e);
    w.arguments = {bytes_of(l->operands, l->operand_count), bytes_of(l->results, l->result_count),
                   l->scratch};
    w.scratch_bytes = e->run->scratch_bytes();
    w.begin_ns = l->begin_ns;
    w.end_ns = l->end_ns;
    w.task = l->task;
    std::unique_lock lock(s->device->mutex);
    check_held(s->device, w.arguments.operands, "operand", l->task);
    check_held(s->device, w.arguments.results, "result", l->task);
    check_held(s->device, {{reinterpret_cast<uintptr_t>(l->scratch), w.scratch_bytes}}, "scratch", l->task);
    s->enqueue(lock, std::move(w));
  });
}

regie_status copy(regie_stream* s, uint32_t direction, void* to, const void* from, uint64_t bytes) {
  return regie::sdk::guard(s->device->host, [&] {
    if (bytes == 0) return;
    std::unique_lock lock(s->device->mutex);
    const auto held = [&](const void* at) {
      return s->device->accesses.holds(reinterpret_cast<uintptr_t>(at), bytes);
    };
    if (direction != REGIE_COPY_FROM_DEVICE && !held(to))
      throw Failure(REGIE_INVALID_INPUT, "simulator: the target of a copy does not lie in its memory");
    if (direction != REGIE_COPY_TO_DEVICE && !held(from))
      throw Failure(REGIE_INVALID_INPUT, "simulator: the source of a copy does not lie in its memory");
    Work w;
    w.kind = Work::kCopy;
    w.direction = direction;
    w.to = to;
    w.from = from;
    w.bytes = bytes;
    s->enqueue(lock, std::move(w));
  });
}

regie_status call_host(regie_stream* s, void (*function)(void*), void* context) {
  return regie::sdk::guard(s->device->host, [&] {
    Work w;
    w.kind = Work::kCall;
    w.function = function;
    w.context = context;
    std::unique_lock lock(s->device->mutex);
    s->enqueue(lock, std::move(w));
  });
}

regie_status fence_create(regie_device* device, regie_fence** fence) {
  return regie::sdk::guard(device->host, [&] {
    std::lock_guard lock(device->mutex);
    const auto limit = static_cast<uint64_t>(device->settings.hardware.events);
    if (device->fences.size() >= limit)
      throw Failure(REGIE_LIMIT,
                    "simulator: there are " + std::to_string(limit) + " events (parameter 'events')");
    *fence = new regie_fence{device, device->clock.add_fence(), 0, {}, {}, nullptr};
    device->fences.insert(*fence);
  });
}
void fence_destroy(regie_fence* fence) {
  if (!fence) return;
  {
    std::lock_guard lock(fence->device->mutex);
    fence->device->clock.remove_fence(fence->index);
    fence->device->fences.erase(fence);
  }
  delete fence;
}

regie_status enqueue_fence(regie_stream* s, Work::Kind kind, regie_fence* fence, uint64_t value) {
  return regie::sdk::guard(s->device->host, [&] {
    Work w;
    w.kind = kind;
    w.fence = fence;
    w.value = value;
    std::unique_lock lock(s->device->mutex);
    s->enqueue(lock, std::move(w));
  });
}
regie_status fence_signal(regie_stream* s, regie_fence* f, uint64_t v) {
  return enqueue_fence(s, Work::kSignal, f, v);
}
regie_status fence_wait(regie_stream* s, regie_fence* f, uint64_t v) {
  return enqueue_fence(s, Work::kWait, f, v);
}

regie_status host_wait(regie_fence* fence, uint64_t value, uint64_t timeout_ns) {
  regie_device* device = fence->device;
  std::unique_lock lock(device->mutex);
  const bool done = regie::sdk::wait_for_ns(device->changed, lock, timeout_ns,
                                            [&] { return fence->value >= value || !fence->failure.empty(); });
  if (fence->value >= value) {
    if (value == 0) return REGIE_OK;
    const auto at = fence->signals.lower_bound(value);
    if (at != fence->signals.end()) device->host_knows.join(at->second);
    const Issue waited = device->clock.wait_fence(fence->index, value);
    if (waited.end > waited.begin && fence->signaller && fence->signaller->record.on)
      fence->signaller->record.waits.push_back({waited.begin, waited.end});
    return REGIE_OK;
  }
  if (done) return regie::sdk::fail(device->host, REGIE_DEVICE, fence->failure);
  return regie::sdk::fail(device->host, REGIE_TIMEOUT,
                          "simulator: a fence did not reach " + std::to_string(value) + " in " +
                              std::to_string(timeout_ns / 1'000'000) + " ms; it stands at " +
                              std::to_string(fence->value));
}

uint64_t now(regie_device* device) {
  std::lock_guard lock(device->mutex);
  return device->clock.now();
}

void record(regie_stream* s, uint32_t on) {
  std::lock_guard lock(s->device->mutex);
  // A record begins anew with the first of its streams, be it the second record of them all.
  const auto& all = s->device->streams;
  const bool alone = std::none_of(all.begin(), all.end(), [&](const auto& other) {
    return other.second != s && other.second->record.on;
  });
  if (alone || (on && s->record.on)) s->device->host_work.clear();
  s->record = {};
  s->record.on = on != 0;
}
void tag(regie_stream* s, uint64_t tag) {
  std::lock_guard lock(s->device->mutex);
  s->record.next_tag = tag;
}
regie_status collect(regie_stream* s, regie_trace* trace) {
  std::lock_guard lock(s->device->mutex);
  const Record& r = s->record;
  *trace = {};
  trace->struct_size = sizeof *trace;
  trace->lane_count = static_cast<uint32_t>(s->device->lanes.size());
  trace->lanes = s->device->lanes.data();
  trace->task_count = r.tasks.size();
  trace->slice_count = r.slices.size();
  trace->wait_count = r.waits.size();
  trace->tasks = r.tasks.data();
  trace->slices = r.slices.data();
  trace->waits = r.waits.data();
  trace->host_count = s->device->host_work.size();
  trace->host = s->device->host_work.data();
  return REGIE_OK;
}
void host_spent(regie_device* device, uint64_t ns, uint64_t tag) {
  std::lock_guard lock(device->mutex);
  const Issue spent = device->clock.spend(ns);
  const auto& all = device->streams;
  if (std::any_of(all.begin(), all.end(), [](const auto& s) { return s.second->record.on; }))
    device->host_work.push_back({tag, spent.begin, spent.end});
}

constexpr regie_device_info kDevices[] = {
    {regie::sdk::lit("simulator"),
     regie::sdk::lit("an accelerator with a clock of its own: computes, and tells the "
                     "time that the hardware of the target would take")}};

}  // namespace

namespace regie::simulator {
extern const regie_device_table device_table = {
    regie::sdk::head(sizeof(regie_device_table), REGIE_DIGEST_DEVICE),
    1,
    0,
    kDevices,
    create,
    destroy,
    describe,
    allocate,
    release,
    stream_create,
    stream_destroy,
    stream_wait,
    kernel_load,
    kernel_release,
    prepare,
    executable_release,
    launch,
    copy,
    call_host,
    fence_create,
    fence_destroy,
    fence_signal,
    fence_wait,
    host_wait,
    now};
extern const regie_device_trace_table trace_table = {
    regie::sdk::head(sizeof(regie_device_trace_table), REGIE_DIGEST_DEVICE_TRACE),
    1,
    0,
    kDevices,
    record,
    tag,
    collect,
    host_spent};
}  // namespace regie::simulator
