// The run-time half: memory that the host must not touch, and streams that are one worker thread each.
// Everything that a real device does asynchronously is asynchronous here: launches, copies, fences, host
// calls, failures.

#include "regie/c/device.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "null.h"
#include "regie/op_blob.hpp"
#include "regie/reference_kernel.hpp"
#include "regie/timeline.hpp"
#include "regie_digests.h"

using namespace null_backend;
using regie::sdk::Failure;

struct regie_device {
  regie_device(const regie_host* h, const regie_config* params);
  bool holds(const void* address, uint64_t bytes);  // inside of one allocation?
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  Settings settings;
  regie_space_info space;
  regie_device_description description{};
  std::atomic<uint64_t> launches{0};
  std::atomic<uint32_t> streams{0};
  std::mutex mutex;                      // of what follows
  std::map<uintptr_t, uint64_t> blocks;  // address and bytes of what is allocated
  uint64_t used = 0;
};

struct regie_fence {
  regie_device* device;
  regie::sdk::Timeline timeline;
};

struct regie_loaded_kernel {
  regie_device* device;
  regie::sdk::OpBlob op;
};

// Belongs to one run at a time: the worker puts the addresses of the launch into its tensors.
struct regie_executable {
  regie_device* device;
  std::vector<regie_tensor> operands, results;
  std::vector<std::vector<int64_t>> dims;  // what the tensors' dims point to
  regie::sdk::ReferenceKernel kernel;
};

namespace {

struct Work {
  enum Kind { kLaunch, kCopy, kCall, kSignal, kWait } kind;
  regie_executable* executable;
  void* addresses[kMaxArguments];  // operands, then results
  void* scratch;
  uint64_t *begin_ns, *end_ns;
  uint32_t task;
  void* to;
  const void* from;
  uint64_t bytes;
  void (*function)(void*);
  void* context;
  regie_fence* fence;
  uint64_t value;
};

uint64_t clock_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

struct regie_stream {
  explicit regie_stream(regie_device* d)
      : device(d), ring(d->settings.queue_depth), worker([this] { work(); }) {}
  ~regie_stream() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    worker.join();
  }
  void enqueue(const Work& w);
  void work();
  void run(const Work& w);
  regie_status run_launch(const Work& w, std::string* why);
  void fail(regie_status c, std::string w);

  regie_device* device;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Work> ring;
  uint64_t put = 0, done = 0;  // counts; entry n lies in ring[n % size]
  bool stopping = false;
  regie_status code = REGIE_OK;  // the first failure; it stays
  std::string words;
  std::thread worker;  // last: it uses all of the above
};

// Waits while the queue is full.
void regie_stream::enqueue(const Work& w) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return put - done < ring.size(); });
  ring[put % ring.size()] = w;
  ++put;
  changed.notify_all();
}

void regie_stream::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return put > done || stopping; });
    if (put == done) return;
    const Work& w = ring[done % ring.size()];  // stays there until `done` counts it
    lock.unlock();
    run(w);
    lock.lock();
    ++done;
    changed.notify_all();
  }
}

void regie_stream::fail(regie_status c, std::string w) {
  std::lock_guard lock(mutex);
  if (code != REGIE_OK) return;
  code = c;
  words = std::move(w);
}

void regie_stream::run(const Work& w) {
  if (code != REGIE_OK) {  // only this thread writes it
    if (w.kind == Work::kSignal) w.fence->timeline.fail(words);
    return;
  }
  std::string why;
  switch (w.kind) {
    case Work::kLaunch:
      if (regie_status c = run_launch(w, &why); c != REGIE_OK)
        fail(c, "task " + std::to_string(w.task) + ": " + why);
      break;
    case Work::kCopy:
      std::memmove(w.to, w.from, w.bytes);
      break;
    case Work::kCall:
      w.function(w.context);
      break;
    case Work::kSignal:
      w.fence->timeline.signal(w.value);
      break;
    case Work::kWait:
      if (regie_status c = w.fence->timeline.wait(w.value, device->settings.wait_timeout_ns, &why);
          c != REGIE_OK)
        fail(c, why);
      break;
  }
}

regie_status regie_stream::run_launch(const Work& w, std::string* why) {
  regie_executable& e = *w.executable;
  if (device->settings.launch_delay_ns)
    std::this_thread::sleep_for(std::chrono::nanoseconds(device->settings.launch_delay_ns));
  if (w.begin_ns) *w.begin_ns = clock_ns();
  if (++device->launches == device->settings.fail_at_launch) {
    *why = "the target file asks for a failure here (fail_at_launch)";
    return REGIE_DEVICE;
  }
  void* const* next = w.addresses;
  for (regie_tensor& t : e.operands) t.data = *next++;
  for (regie_tensor& t : e.results) t.data = *next++;
  regie_status c = e.kernel.run(device->catcher, e.operands.data(), e.results.data(), w.scratch, why);
  if (w.end_ns) *w.end_ns = clock_ns();
  return c;
}

regie_device::regie_device(const regie_host* h, const regie_config* params)
    : host(h), catcher(h), settings(read_settings(params)) {
  static constexpr regie_str formats[] = {regie::sdk::lit(kFormat)};
  space = {regie::sdk::lit("null memory"), 0, 64, settings.capacity_bytes};
  description.struct_size = sizeof description;
  description.space_count = 1;
  description.spaces = &space;
  description.format_count = 1;
  description.formats = formats;
  description.limits = {settings.streams, 65536, settings.queue_depth, 0, settings.wait_timeout_ns};
}

bool regie_device::holds(const void* address, uint64_t bytes) {
  std::lock_guard lock(mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return false;
  --block;
  return at - block->first <= block->second && bytes <= block->second - (at - block->first);
}

namespace {

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_device** device) {
  return regie::sdk::guard(host, [&] { *device = new regie_device(host, params); });
}
void destroy(regie_device* device) {
  if (!device) return;
  for (auto [address, bytes] : device->blocks) std::free(reinterpret_cast<void*>(address));
  delete device;
}
const regie_device_description* describe(regie_device* device) { return &device->description; }

// Fresh and given-back memory is filled, so that reading what nobody wrote shows in the results.
constexpr int kPoison = 0xDB;

regie_status allocate(regie_device* device, uint32_t space, uint64_t bytes, void** address) {
  return regie::sdk::guard(device->host, [&] {
    if (space != 0)
      throw Failure(REGIE_INVALID_INPUT, "null has one memory space, not " + std::to_string(space));
    std::lock_guard lock(device->mutex);
    const uint64_t left = device->settings.capacity_bytes - device->used;
    const uint64_t rounded = bytes > left ? bytes : std::max<uint64_t>(64, (bytes + 63) / 64 * 64);
    void* p = rounded > left ? nullptr : std::aligned_alloc(64, rounded);
    if (!p)
      throw Failure(REGIE_OUT_OF_MEMORY, "null memory: " + std::to_string(bytes) + " bytes asked for, " +
                                             std::to_string(left) + " of " +
                                             std::to_string(device->settings.capacity_bytes) + " left");
    std::memset(p, kPoison, rounded);
    device->blocks.emplace(reinterpret_cast<uintptr_t>(p), rounded);
    device->used += rounded;
    *address = p;
  });
}
void release(regie_device* device, uint32_t, void* address) {
  std::lock_guard lock(device->mutex);
  auto block = device->blocks.find(reinterpret_cast<uintptr_t>(address));
  if (block == device->blocks.end()) return;
  std::memset(address, kPoison, block->second);
  device->used -= block->second;
  device->blocks.erase(block);
  std::free(address);
}

regie_status stream_create(regie_device* device, regie_stream** stream) {
  return regie::sdk::guard(device->host, [&] {
    if (++device->streams > device->settings.streams) {
      --device->streams;
      throw Failure(REGIE_LIMIT, "null has " + std::to_string(device->settings.streams) +
                                     " streams (parameter 'streams')");
    }
    *stream = new regie_stream(device);
  });
}
void stream_destroy(regie_stream* stream) {
  if (!stream) return;
  --stream->device->streams;
  delete stream;
}
regie_status stream_wait(regie_stream* s, uint64_t timeout_ns) {
  std::unique_lock lock(s->mutex);
  const uint64_t until = s->put;
  if (!regie::sdk::wait_for_ns(s->changed, lock, timeout_ns, [&] { return s->done >= until; }))
    return regie::sdk::fail(s->device->host, REGIE_TIMEOUT,
                            "null: " + std::to_string(until - s->done) +
                                " tasks of a stream had not ended after " +
                                std::to_string(timeout_ns / 1'000'000) + " ms");
  return s->code == REGIE_OK ? REGIE_OK : regie::sdk::fail(s->device->host, s->code, s->words);
}

regie_status kernel_load(regie_device* device, const regie_kernel_image* image,
                         regie_loaded_kernel** kernel) {
  return regie::sdk::guard(device->host, [&] {
    if (regie::sdk::sv(image->format) != kFormat)
      throw Failure(REGIE_UNSUPPORTED, "null runs kernels of the format " + std::string(kFormat) + ", not '" +
                                           std::string(regie::sdk::sv(image->format)) + "'");
    regie::sdk::BlobReader in(image->blob, image->blob_size, "kernel of format " + std::string(kFormat));
    regie::sdk::OpBlob op = regie::sdk::read_op(in);
    in.finish();
    *kernel = new regie_loaded_kernel{device, std::move(op)};
  });
}
void kernel_release(regie_loaded_kernel* kernel) { delete kernel; }

regie_status prepare(regie_loaded_kernel* k, const regie_tensor* operands, uint32_t operand_count,
                     const regie_tensor* results, uint32_t result_count, uint32_t,
                     regie_executable** executable, uint64_t* scratch_bytes) {
  return regie::sdk::guard(k->device->host, [&] {
    if (operand_count + result_count > kMaxArguments)
      throw Failure(REGIE_UNSUPPORTED,
                    "null: a launch has at most " + std::to_string(kMaxArguments) + " addresses");
    auto reference = regie::sdk::find_reference(k->device->catcher, k->op.op());
    if (!reference) throw Failure(REGIE_NOT_FOUND, "no plug-in has a reference kernel for " + k->op.op());
    regie::sdk::ReferenceKernel kernel(k->device->catcher, *reference, k->op.op(), k->op.attrs(), operands,
                                       operand_count, results, result_count);
    std::unique_ptr<regie_executable> e(new regie_executable{k->device,
                                                             {operands, operands + operand_count},
                                                             {results, results + result_count},
                                                             {},
                                                             std::move(kernel)});
    for (auto* tensors : {&e->operands, &e->results})
      for (regie_tensor& t : *tensors) {
        e->dims.emplace_back(t.dims, t.dims + (t.elem == REGIE_ELEM_UNKNOWN ? 0 : t.rank));
        t.dims = e->dims.back().data();
      }
    *scratch_bytes = e->kernel.scratch_bytes();
    *executable = e.release();
  });
}
void executable_release(regie_executable* executable) { delete executable; }

regie_status launch(regie_stream* s, const regie_executable* executable, const regie_launch* l) {
  auto* e = const_cast<regie_executable*>(executable);
  Work w{};
  w.kind = Work::kLaunch;
  w.executable = e;
  w.scratch = l->scratch;
  w.begin_ns = l->begin_ns;
  w.end_ns = l->end_ns;
  w.task = l->task;
  void** next = w.addresses;
  auto add = [&](const regie_tensor* tensors, size_t count, const char* what) {
    for (size_t i = 0; i < count; ++i) {
      const regie_tensor& t = tensors[i];
      if (t.elem != REGIE_ELEM_UNKNOWN && t.bytes && !s->device->holds(t.data, t.bytes))
        throw Failure(REGIE_INVALID_INPUT, "null: " + std::string(what) + " " + std::to_string(i) +
                                               " of task " + std::to_string(l->task) +
                                               " does not lie in its memory");
      *next++ = t.data;
    }
  };
  return regie::sdk::guard(s->device->host, [&] {
    if (l->operand_count != e->operands.size() || l->result_count != e->results.size())
      throw Failure(REGIE_INVALID_INPUT,
                    "null: a launch has another number of operands or results than its executable");
    add(l->operands, l->operand_count, "operand");
    add(l->results, l->result_count, "result");
    s->enqueue(w);
  });
}

regie_status copy(regie_stream* s, uint32_t direction, void* to, const void* from, uint64_t bytes) {
  return regie::sdk::guard(s->device->host, [&] {
    if (bytes == 0) return;
    if (direction != REGIE_COPY_FROM_DEVICE && !s->device->holds(to, bytes))
      throw Failure(REGIE_INVALID_INPUT, "null: the target of a copy does not lie in its memory");
    if (direction != REGIE_COPY_TO_DEVICE && !s->device->holds(from, bytes))
      throw Failure(REGIE_INVALID_INPUT, "null: the source of a copy does not lie in its memory");
    Work w{};
    w.kind = Work::kCopy;
    w.to = to;
    w.from = from;
    w.bytes = bytes;
    s->enqueue(w);
  });
}

regie_status call_host(regie_stream* s, void (*function)(void*), void* context) {
  return regie::sdk::guard(s->device->host, [&] {
    Work w{};
    w.kind = Work::kCall;
    w.function = function;
    w.context = context;
    s->enqueue(w);
  });
}

regie_status fence_create(regie_device* device, regie_fence** fence) {
  return regie::sdk::guard(device->host, [&] { *fence = new regie_fence{device, {}}; });
}
void fence_destroy(regie_fence* fence) { delete fence; }

regie_status enqueue_fence(regie_stream* s, Work::Kind kind, regie_fence* fence, uint64_t value) {
  return regie::sdk::guard(s->device->host, [&] {
    Work w{};
    w.kind = kind;
    w.fence = fence;
    w.value = value;
    s->enqueue(w);
  });
}
regie_status fence_signal(regie_stream* s, regie_fence* f, uint64_t v) {
  return enqueue_fence(s, Work::kSignal, f, v);
}
regie_status fence_wait(regie_stream* s, regie_fence* f, uint64_t v) {
  return enqueue_fence(s, Work::kWait, f, v);
}

regie_status host_wait(regie_fence* fence, uint64_t value, uint64_t timeout_ns) {
  std::string words;
  regie_status code = fence->timeline.wait(value, timeout_ns, &words);
  return code == REGIE_OK ? REGIE_OK : regie::sdk::fail(fence->device->host, code, words);
}

uint64_t now(regie_device*) { return clock_ns(); }

constexpr regie_device_info kDevices[] = {
    {regie::sdk::lit("null"),
     regie::sdk::lit("memory and worker threads that behave like an accelerator's")}};

}  // namespace

namespace null_backend {
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
}  // namespace null_backend
