// Doing the work of a stream: checks of its accesses, the computation itself, and what the clock is told.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "regie/tile/program.h"
#include "state.h"

using namespace regie::simulator;
using regie::sdk::Failure;

namespace {

constexpr size_t kKeptSignals = 1 << 16;  // of a fence: who waits for an older one learns more than it may

// A launch, a copy or a call of the host, as the clock sees it. It outlives the executable, not the stream.
class Simulated final : public Task {
 public:
  Simulated(regie_stream& stream, const Work& w, EngineKind kind)
      : stream_(stream), arguments_(w.arguments), begin_ns_(w.begin_ns), end_ns_(w.end_ns), tag_(w.tag) {
    engine = kind;
  }
  Executable::Cost cost;  // of a launch; else
  Need fixed;
  Bytes overwritten;  // by a copy: no longer in the cache
  Traffic traffic;

  Need begin() override {
    if (cost) {
      traffic.want_parts = stream_.record.on && tag_ != 0;
      Need need = cost(arguments_, stream_.device->cache, &traffic);
      alone_ns_ = need.run_ns;
      return need;
    }
    if (overwritten.size) stream_.device->cache.drop(overwritten.at, overwritten.size);
    return fixed;
  }

  void ended(const TaskTimes& t) override {
    if (begin_ns_) *begin_ns_ = t.begin;
    if (end_ns_) *end_ns_ = t.end;
    if (!stream_.record.on || tag_ == 0) return;
    regie_trace_task r{};
    r.tag = tag_;
    r.issue_ns = t.issue;
    r.issued_ns = t.issued;
    r.free_ns = t.free;
    r.ready_ns = t.ready;
    r.event_ns = t.event;
    r.begin_ns = t.begin;
    r.end_ns = t.end;
    r.run_ns = t.run;
    r.ran_ns = t.ran;
    r.lane = stream_.device->lane(engine, t.unit);
    r.bytes = traffic.bytes;
    r.far_bytes = traffic.far_bytes;
    r.flops = traffic.flops;
    const double memory = stream_.device->settings.hardware.memory_bytes_per_ns;
    r.least_ns = std::max(traffic.flops_per_ns > 0 ? traffic.flops / traffic.flops_per_ns : 0,
                          static_cast<double>(traffic.far_bytes) / memory);
    stream_.record.tasks.push_back(r);
    // Who shares the memory with others takes longer: its parts alike.
    const double stretch = alone_ns_ > 0 ? static_cast<double>(t.ran - t.run) / alone_ns_ : 1;
    const auto pipes = regie::tile::mode_words(regie::tile::ModeKind::pipe);
    for (const Part& p : traffic.parts)
      stream_.record.slices.push_back({tag_, stream_.device->pipe_lane(p.pipe), 0,
                                       t.run + whole(p.begin * stretch), t.run + whole(p.end * stretch),
                                       regie::sdk::str(pipes[p.pipe])});
  }

 private:
  regie_stream& stream_;
  const LaunchArguments arguments_;
  uint64_t *begin_ns_, *end_ns_;
  const uint64_t tag_;
  double alone_ns_ = 0;
};

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

std::string name_of(const Work& w) {
  if (w.kind == Work::kLaunch) return "task " + std::to_string(w.task);
  const char* where = w.direction == REGIE_COPY_TO_DEVICE     ? "to the device"
                      : w.direction == REGIE_COPY_FROM_DEVICE ? "from the device"
                                                              : "inside the device";
  return "a copy of " + std::to_string(w.bytes) + " bytes " + where;
}

}  // namespace

void regie_stream::fail(regie_status c, std::string w) {
  if (code != REGIE_OK) return;
  code = c;
  words = std::move(w);
}

void regie_stream::enqueue(std::unique_lock<std::mutex>& lock, Work work) {
  const auto depth = static_cast<size_t>(device->settings.hardware.queue_depth);
  const auto limit = std::chrono::nanoseconds(device->settings.wait_timeout_ns);
  if (!device->changed.wait_for(lock, limit, [&] { return pending.size() < depth || code != REGIE_OK; }))
    throw Failure(REGIE_TIMEOUT, "simulator: the queue of a stream has been full for " +
                                     std::to_string(device->settings.wait_timeout_ns / 1'000'000) +
                                     " ms: it waits for an event that nobody signals");
  const bool event = work.kind == Work::kSignal || work.kind == Work::kWait;
  work.issue = event ? device->clock.issue_event(index) : device->clock.issue_task(index);
  work.host = device->host_knows;
  if (!event) work.tag = std::exchange(record.next_tag, 0);
  pending.push_back(std::move(work));
  device->pump();
}

void regie_device::pump() {
  bool done = false;
  for (bool again = true; again;) {
    again = false;
    for (const auto& [number, s] : streams)
      while (s->do_next()) again = done = true;
  }
  if (done) changed.notify_all();
}

bool regie_stream::do_next() {
  if (pending.empty()) return false;
  Work& w = pending.front();
  if (code != REGIE_OK) {  // dropped
    if (w.kind == Work::kSignal && w.fence->failure.empty()) w.fence->failure = words;
    pending.pop_front();
    return true;
  }
  std::string why;
  regie_status result = REGIE_OK;
  knows.join(w.host);
  switch (w.kind) {
    case Work::kLaunch:
      result = launch(w, &why);
      break;
    case Work::kCopy:
      result = copy(w, &why);
      break;
    case Work::kCall: {
      w.function(w.context);
      auto task = std::make_shared<Simulated>(*this, w, static_cast<EngineKind>(kNoEngine));
      task->fixed.before = whole(device->settings.hardware.callback_ns);
      device->clock.push(index, std::move(task), w.issue);
      break;
    }
    case Work::kSignal: {
      device->clock.push_signal(index, w.fence->index, w.value, w.issue);
      w.fence->signaller = this;
      if (w.value > w.fence->value) {
        w.fence->value = w.value;
        w.fence->signals[w.value] = knows;
        if (w.fence->signals.size() > kKeptSignals) w.fence->signals.erase(w.fence->signals.begin());
      }
      break;
    }
    case Work::kWait:
      if (w.fence->value >= w.value) {
        const auto at = w.fence->signals.lower_bound(w.value);
        if (at != w.fence->signals.end()) knows.join(at->second);
        if (w.value > 0) device->clock.push_wait(index, w.fence->index, w.value, w.issue);
      } else if (!w.fence->failure.empty()) {
        why = w.fence->failure;
        result = REGIE_DEVICE;
      } else {
        return false;
      }
      break;
  }
  if (result != REGIE_OK) {
    // It has begun and never ends: so the host knows which one it was.
    if (w.begin_ns) *w.begin_ns = device->clock.now();
    const std::string name = w.kind == Work::kWait ? std::string() : name_of(w);
    fail(result, why.starts_with(name) ? why : name + ": " + why);
  }
  pending.pop_front();
  return true;
}

// Everything that it reads, then everything that it writes.
bool regie_stream::check(const std::vector<Bytes>& reads, const Bytes& scratch,
                         const std::vector<Bytes>& writes, const Access& by, std::string* why) {
  Accesses& accesses = device->accesses;
  const auto fine = [&](std::string problem) {
    *why = std::move(problem);
    return why->empty();
  };
  for (const Bytes& b : reads)
    if (!fine(accesses.read(b.at, b.size, by, knows))) return false;
  if (!fine(accesses.spoil(scratch.at, scratch.size, by, knows))) return false;
  for (const Bytes& b : writes)
    if (!fine(accesses.write(b.at, b.size, by, knows))) return false;
  return true;
}

regie_status regie_stream::launch(Work& w, std::string* why) {
  const Access by{index, ++count, "task " + std::to_string(w.task)};
  knows.know(index, count);
  Executable& run = *w.executable->run;
  std::vector<Bytes> reads, writes;
  run.accesses(w.arguments, &reads, &writes);
  if (!check(reads, {address(w.arguments.scratch), w.scratch_bytes}, writes, by, why)) return REGIE_DEVICE;
  if (device->settings.numerics)
    if (const regie_status failed = run.run(w.arguments, why)) return failed;
  auto task = std::make_shared<Simulated>(*this, w, run.engine());
  task->cost = run.cost();
  device->clock.push(index, std::move(task), w.issue);
  return REGIE_OK;
}

regie_status regie_stream::copy(Work& w, std::string* why) {
  const Access by{index, ++count, name_of(w)};
  knows.know(index, count);
  const bool reads = w.direction != REGIE_COPY_TO_DEVICE, writes = w.direction != REGIE_COPY_FROM_DEVICE;
  const Bytes from{address(w.from), reads ? w.bytes : 0}, to{address(w.to), writes ? w.bytes : 0};
  if (!check({from}, {}, {to}, by, why)) return REGIE_DEVICE;
  std::memmove(w.to, w.from, w.bytes);
  const regie::sdk::Accelerator& h = device->settings.hardware;
  const EngineKind engine = reads && writes ? kCopyInside : writes ? kCopyIn : kCopyOut;
  const double rate = engine == kCopyIn    ? h.copy_in_bytes_per_ns
                      : engine == kCopyOut ? h.copy_out_bytes_per_ns
                                           : h.copy_inside_bytes_per_ns;
  auto task = std::make_shared<Simulated>(*this, w, engine);
  task->traffic.bytes = w.bytes;
  task->traffic.far_bytes = engine == kCopyInside ? 2 * w.bytes : w.bytes;
  task->fixed.before = whole(h.copy_start_ns);
  task->fixed.run_ns = static_cast<double>(w.bytes) / rate;
  task->fixed.far_bytes = static_cast<double>(task->traffic.far_bytes);
  task->overwritten = to;
  device->clock.push(index, std::move(task), w.issue);
  return REGIE_OK;
}
