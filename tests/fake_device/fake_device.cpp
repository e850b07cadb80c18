// A device for tests of the runtime. "fake_async": each stream a thread that takes its time, so that a
// missing wait shows. "fake_inline": computes before it returns. Memory that is not host_visible is handed
// out at addresses that only the device can use. Parameters: delay-us (longest random wait before each item),
// seed, visible (1: host-visible memory), fast (1: the capability "fast"), capacity, streams, timeout-ms.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "fake_kernels.h"
#include "regie/c/device.h"
#include "regie_digests.h"

namespace {

namespace sdk = regie::sdk;
using Clock = std::chrono::steady_clock;

constexpr uintptr_t kVeil = uintptr_t{1} << 62;  // added to addresses that the host must not touch

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

}  // namespace

struct regie_device {
  const regie_host* host;
  bool is_inline = false, visible = false;
  int64_t delay_us = 0;
  std::atomic<uint32_t> seed{1};
  regie_space_info space{};
  regie_str formats[1], capabilities[1];
  regie_device_description about{};

  void* veil(void* p) const {
    return visible || !p ? p : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) + kVeil);
  }
  void* unveil(void* p) const {
    if (visible || !p) return p;
    if (reinterpret_cast<uintptr_t>(p) < kVeil)
      throw sdk::Failure(REGIE_DEVICE, "a host address was given where a device address is needed");
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) - kVeil);
  }
};

struct regie_fence {
  regie_device* device;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t value = 0;
  bool failed = false;

  void signal(uint64_t v, bool bad) {
    std::lock_guard lock(mutex);
    if (bad)
      failed = true;
    else if (v > value)
      value = v;
    changed.notify_all();
  }
  // 0 reached, else a status.
  regie_status wait(uint64_t v, uint64_t timeout_ns) {
    std::unique_lock lock(mutex);
    auto done = [&] { return value >= v || failed; };
    if (timeout_ns >= uint64_t{1} << 60)
      changed.wait(lock, done);
    else if (!changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done))
      return REGIE_TIMEOUT;
    return value >= v ? REGIE_OK : REGIE_DEVICE;
  }
};

struct regie_stream {
  regie_device* device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false, stop = false;
  regie_status error = REGIE_OK;
  std::string words;
  std::minstd_rand random;
  std::thread worker;

  explicit regie_stream(regie_device* d) : device(d), random(d->seed.fetch_add(7919)) {
    if (!d->is_inline) worker = std::thread([this] { loop(); });
  }
  ~regie_stream() {
    {
      std::lock_guard lock(mutex);
      stop = true;
      changed.notify_all();
    }
    if (worker.joinable()) worker.join();
  }
  bool failed() {
    std::lock_guard lock(mutex);
    return error != REGIE_OK;
  }
  void fail(regie_status code, std::string text) {
    std::lock_guard lock(mutex);
    if (error == REGIE_OK) {
      error = code;
      words = std::move(text);
    }
  }
  void run(const std::function<void()>& work) {
    try {
      work();
    } catch (const sdk::Failure& f) {
      fail(f.code, f.message);
    }
  }
  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stop || !queue.empty(); });
      if (queue.empty()) return;
      std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      if (device->delay_us)
        std::this_thread::sleep_for(
            std::chrono::microseconds(static_cast<int64_t>(random()) % (device->delay_us + 1)));
      run(work);
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void enqueue(std::function<void()> work) {
    if (device->is_inline) {
      run(work);
      return;
    }
    std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
  }
};

struct regie_loaded_kernel {
  regie_device* device;
  fake::Program program;
};

struct regie_executable {
  regie_device* device;
  fake::Program program;
  std::vector<int64_t> operand_counts, result_counts;
  std::vector<const void*> prepared;  // host addresses of the constants
  // As on a real device, an executable serves one run at a time: the host must not share one between
  // contexts.
  mutable std::atomic<bool> busy{false};
};

namespace {

const regie_device_info kDevices[] = {{sdk::lit("fake_async"), sdk::lit("threads that take their time")},
                                      {sdk::lit("fake_inline"), sdk::lit("computes before it returns")}};

regie_status create(uint32_t index, const regie_host* host, const regie_config* params, regie_device** out) {
  return sdk::guard(host, [&] {
    const sdk::Config config(params);
    auto d = std::make_unique<regie_device>();
    d->host = host;
    d->is_inline = index == 1;
    d->visible = config.integer("visible", index == 1) != 0;
    d->delay_us = config.integer("delay-us", 0);
    d->seed = static_cast<uint32_t>(config.integer("seed", 1));
    d->space = {sdk::lit("fake"), d->visible, 64, static_cast<uint64_t>(config.integer("capacity", 0))};
    d->formats[0] = sdk::lit("fake/1");
    d->capabilities[0] = sdk::lit("fast");
    d->about.struct_size = sizeof d->about;
    d->about.space_count = 1;
    d->about.spaces = &d->space;
    d->about.format_count = 1;
    d->about.formats = d->formats;
    d->about.capability_count = static_cast<uint32_t>(config.integer("fast", 0));
    d->about.capabilities = d->capabilities;
    d->about.limits = {static_cast<uint32_t>(config.integer("streams", 8)), 1024, 1024, d->is_inline,
                       static_cast<uint64_t>(config.integer("timeout-ms", 20000)) * 1000000};
    *out = d.release();
  });
}
void destroy(regie_device* d) { delete d; }
const regie_device_description* describe(regie_device* d) { return &d->about; }

regie_status allocate(regie_device* d, uint32_t, uint64_t bytes, void** address) {
  return sdk::guard(d->host, [&] {
    if (d->space.capacity && bytes > d->space.capacity)
      throw sdk::Failure(REGIE_OUT_OF_MEMORY, "asked for " + std::to_string(bytes) + " bytes of " +
                                                  std::to_string(d->space.capacity));
    void* p = ::operator new (bytes, std::align_val_t{64});
    std::memset(p, 0xff, bytes);  // NaN: what was never written shows
    *address = d->veil(p);
  });
}
void release(regie_device* d, uint32_t, void* address) {
  ::operator delete (d->unveil(address), std::align_val_t{64});
}

regie_status stream_create(regie_device* d, regie_stream** s) {
  return sdk::guard(d->host, [&] { *s = new regie_stream(d); });
}
void stream_destroy(regie_stream* s) { delete s; }

regie_status stream_wait(regie_stream* s, uint64_t timeout_ns) {
  std::unique_lock lock(s->mutex);
  auto done = [&] { return s->queue.empty() && !s->busy; };
  if (timeout_ns >= uint64_t{1} << 60)
    s->changed.wait(lock, done);
  else if (!s->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done))
    return sdk::fail(s->device->host, REGIE_TIMEOUT, "the stream did not come to an end in time");
  return s->error == REGIE_OK ? REGIE_OK : sdk::fail(s->device->host, s->error, s->words);
}

regie_status kernel_load(regie_device* d, const regie_kernel_image* image, regie_loaded_kernel** kernel) {
  return sdk::guard(d->host, [&] {
    if (sdk::sv(image->format) != "fake/1") throw sdk::Failure(REGIE_UNSUPPORTED, "not a fake kernel");
    *kernel = new regie_loaded_kernel{
        d, fake::parse({static_cast<const char*>(image->blob), static_cast<size_t>(image->blob_size)})};
  });
}
void kernel_release(regie_loaded_kernel* k) { delete k; }

regie_status prepare(regie_loaded_kernel* k, const regie_tensor* operands, uint32_t operand_count,
                     const regie_tensor* results, uint32_t result_count, uint32_t, regie_executable** out,
                     uint64_t* scratch) {
  return sdk::guard(k->device->host, [&] {
    if (k->program.word == "refuse")
      throw sdk::Failure(REGIE_UNSUPPORTED, "the fake kernel cannot be made ready");
    auto e = std::make_unique<regie_executable>();
    e->device = k->device;
    e->program = k->program;
    for (uint32_t i = 0; i < operand_count; ++i) {
      e->operand_counts.push_back(sdk::count_of(operands[i]));
      e->prepared.push_back(k->device->unveil(operands[i].data));
    }
    for (uint32_t i = 0; i < result_count; ++i) e->result_counts.push_back(sdk::count_of(results[i]));
    *scratch = fake::scratch_bytes(k->program);
    *out = e.release();
  });
}
void executable_release(regie_executable* e) { delete e; }

regie_status launch(regie_stream* s, const regie_executable* e, const regie_launch* l) {
  if (e->program.word == "throw") throw 42;  // out of bounds on purpose: the host must catch it
  return sdk::guard(s->device->host, [&] {
    std::vector<regie_tensor> in(l->operands, l->operands + l->operand_count);
    std::vector<regie_tensor> out(l->results, l->results + l->result_count);
    for (size_t i = 0; i < in.size(); ++i)
      if (sdk::count_of(in[i]) != e->operand_counts[i])
        throw sdk::Failure(REGIE_INTERNAL, "launched with another shape than prepared");
    for (regie_tensor& t : in) t.data = s->device->unveil(t.data);
    for (regie_tensor& t : out) t.data = s->device->unveil(t.data);
    void* scratch = s->device->unveil(l->scratch);
    uint64_t *begin = l->begin_ns, *end = l->end_ns;
    s->enqueue([s, e, in, out, scratch, begin, end] {
      if (s->failed()) return;
      if (e->busy.exchange(true)) throw sdk::Failure(REGIE_DEVICE, "an executable runs twice at once");
      const std::shared_ptr<void> leave(nullptr, [e](void*) { e->busy = false; });
      if (begin) *begin = now_ns();
      fake::run(e->program, in, out, scratch, e->prepared);
      if (end) *end = now_ns();
    });
  });
}

regie_status copy(regie_stream* s, uint32_t direction, void* to, const void* from, uint64_t bytes) {
  return sdk::guard(s->device->host, [&] {
    if (direction != REGIE_COPY_FROM_DEVICE) to = s->device->unveil(to);
    void* source = const_cast<void*>(from);
    if (direction != REGIE_COPY_TO_DEVICE) source = s->device->unveil(source);
    s->enqueue([s, to, source, bytes] {
      if (!s->failed()) std::memmove(to, source, bytes);
    });
  });
}

regie_status call_host(regie_stream* s, void (*function)(void*), void* context) {
  return sdk::guard(s->device->host, [&] { s->enqueue([=] { function(context); }); });
}

regie_status fence_create(regie_device* d, regie_fence** f) {
  return sdk::guard(d->host, [&] {
    *f = new regie_fence;
    (*f)->device = d;
  });
}
void fence_destroy(regie_fence* f) { delete f; }
regie_status fence_signal(regie_stream* s, regie_fence* f, uint64_t value) {
  return sdk::guard(s->device->host, [&] { s->enqueue([=] { f->signal(value, s->failed()); }); });
}
regie_status fence_wait(regie_stream* s, regie_fence* f, uint64_t value) {
  return sdk::guard(s->device->host, [&] {
    s->enqueue([=] {
      if (!s->failed() && f->wait(value, UINT64_MAX) != REGIE_OK)
        throw sdk::Failure(REGIE_DEVICE, "the stream that it waits for has failed");
    });
  });
}
regie_status host_wait(regie_fence* f, uint64_t value, uint64_t timeout_ns) {
  const regie_status code = f->wait(value, timeout_ns);
  if (code == REGIE_TIMEOUT) return sdk::fail(f->device->host, code, "the fence was not signalled in time");
  if (code != REGIE_OK)
    return sdk::fail(f->device->host, code, "the stream that was to signal the fence has failed");
  return code;
}
uint64_t now(regie_device*) { return now_ns(); }

const regie_device_table kTable = {sdk::head(sizeof(regie_device_table), REGIE_DIGEST_DEVICE),
                                   2,
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

const void* find(const char* id) { return std::string_view(id) == REGIE_DEVICE_ID ? &kTable : nullptr; }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
