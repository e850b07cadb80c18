#include "tile_kernel.h"

#include <algorithm>
#include <map>

#include "target_machine.h"

namespace regie::simulator {

namespace {

using sdk::Failure;

// What one program does at one set of rates; equal rates are timed once. Outlives the executable, as tasks in
// the clock's queues do.
struct Timings {
  struct Timing {
    double ns = 0;
    std::vector<Part> parts;
    bool has_parts = false;
  };
  std::shared_ptr<const TileTask> task;
  std::vector<uint64_t> read_bytes, written_bytes;  // by global buffer, as moved; empty: not timed yet
  std::vector<double> in_common;                    // readers of a byte, by global buffer
  double flops = 0;
  std::map<std::vector<double>, Timing> by_rates;

  void learn(const TileResult& r, double cache_bytes) {
    if (!read_bytes.empty() || r.read_bytes.empty()) return;
    std::vector<bool> beyond;
    for (const tile::GlobalBuffer& b : task->program().gm)
      beyond.push_back(static_cast<double>(b.bytes) > cache_bytes);
    in_common = readers_in_common(task->program(), beyond);
    read_bytes = r.read_bytes;
    written_bytes = r.written_bytes;
    for (const TileCore& c : r.cores) flops += 2.0 * static_cast<double>(c.macs);
  }
};

// Of the slowest core, spans closer than a thousandth of the task joined: what a profile can show.
std::vector<Part> parts_of(const TileResult& r, double ghz) {
  std::vector<Part> parts;
  if (r.timeline.empty()) return parts;
  size_t slowest = 0;
  for (size_t c = 1; c < r.cores.size(); ++c)
    if (r.cores[c].cycles > r.cores[slowest].cycles) slowest = c;
  const double near = r.cycles / 1000;
  for (uint32_t pipe = 0; pipe < REGIE_TILE_PIPES; ++pipe)
    for (const TileSpan& s : r.timeline[slowest][pipe]) {
      if (!parts.empty() && parts.back().pipe == pipe && s.begin - parts.back().end * ghz <= near)
        parts.back().end = std::max(parts.back().end, s.end / ghz);
      else
        parts.push_back({pipe, s.begin / ghz, s.end / ghz});
    }
  return parts;
}

class TileExecutable final : public Executable {
 public:
  TileExecutable(std::shared_ptr<Timings> timings, const Settings& settings, const PrepareRequest& r)
      : task_(timings->task), settings_(settings), timings_(std::move(timings)) {
    const auto& gm = task_->program().gm;
    for (size_t i = 0; i < gm.size(); ++i) {
      const tile::GlobalBuffer& b = gm[i];
      if (b.kind == REGIE_TILE_SCRATCH) {
        scratch_bytes_ = std::max(scratch_bytes_, b.index + b.bytes);
        continue;
      }
      const bool operand = b.kind == REGIE_TILE_OPERAND;
      const regie_tensor* tensors = operand ? r.operands : r.results;
      const std::string what = std::string(operand ? "operand " : "result ") + std::to_string(b.index);
      if (b.index >= (operand ? r.operand_count : r.result_count))
        throw Failure(REGIE_CORRUPT, "the tile program uses " + what + ", which its task has not");
      if (tensors[b.index].bytes < b.bytes)
        throw Failure(REGIE_CORRUPT, what + " has " + std::to_string(tensors[b.index].bytes) +
                                         " bytes; the tile program was made for " + std::to_string(b.bytes));
    }
  }
  EngineKind engine() const override { return kCores; }
  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  void accesses(const LaunchArguments& a, std::vector<Bytes>* reads,
                std::vector<Bytes>* writes) const override {
    const auto& gm = task_->program().gm;
    if (!settings_.numerics) {  // to know them exactly takes longer than to time the program
      for (const tile::GlobalBuffer& b : gm) {
        if (b.kind == REGIE_TILE_SCRATCH) continue;
        const Bytes whole_of{buffer(a, b).at, b.bytes};
        if (b.access & REGIE_TILE_READ) reads->push_back(whole_of);
        if (b.access & REGIE_TILE_WRITE) writes->push_back(whole_of);
      }
      return;
    }
    const tile::VerifyResult& known = task_->accesses();
    for (size_t i = 0; i < gm.size(); ++i) {
      if (gm[i].kind == REGIE_TILE_SCRATCH) continue;
      const uintptr_t base = buffer(a, gm[i]).at;
      for (const tile::ByteRange& r : known.reads[i]) reads->push_back({base + r.begin, r.end - r.begin});
      for (const tile::ByteRange& r : known.writes[i]) writes->push_back({base + r.begin, r.end - r.begin});
    }
  }

  regie_status run(const LaunchArguments& a, std::string* words) override {
    std::vector<TileBuffer> buffers;
    for (const tile::GlobalBuffer& b : task_->program().gm) {
      const Bytes bytes = buffer(a, b);
      TileBuffer& to = buffers.emplace_back();
      to.data = reinterpret_cast<void*>(bytes.at);
      to.bytes = bytes.size;
    }
    try {
      task_->run(buffers, {true, false, false});
      return REGIE_OK;
    } catch (const Failure& f) {
      *words = f.message;
      return f.code == REGIE_OK ? REGIE_DEVICE : f.code;
    }
  }

  Cost cost() const override {
    return [timings = timings_, &settings = settings_](const LaunchArguments& a, Cache& cache,
                                                       Traffic* traffic) {
      return cost_now(*timings, settings.hardware, a, cache, traffic);
    };
  }

 private:
  static Bytes buffer(const LaunchArguments& a, const tile::GlobalBuffer& b) {
    if (b.kind == REGIE_TILE_OPERAND) return a.operands[b.index];
    if (b.kind == REGIE_TILE_RESULT) return a.results[b.index];
    return {reinterpret_cast<uintptr_t>(a.scratch) + b.index, b.bytes};
  }

  static TileResult timed(const Timings& t, const std::vector<TileBuffer>& buffers, bool timeline) {
    return t.task->run(buffers, {false, true, timeline});
  }

  // What is in the cache comes at its rate; what is not comes once from the memory, a core's share of its
  // rate, and lies in the cache when it is read again.
  static Need cost_now(Timings& t, const sdk::Accelerator& h, const LaunchArguments& a, Cache& cache,
                       Traffic* traffic) {
    const auto& program = t.task->program();
    const double ghz = h.core_mhz / 1000, share = h.memory_bytes_per_ns / ghz / program.cores;
    std::vector<TileBuffer> buffers;
    for (const tile::GlobalBuffer& b : program.gm) {
      TileBuffer& to = buffers.emplace_back();
      to.bytes = buffer(a, b).size;
      to.read_rate = h.l2_read;
      to.write_rate = h.l2_write;
      to.latency = h.l2_latency;
    }
    if (t.read_bytes.empty()) t.learn(timed(t, buffers, false), h.l2_bytes);
    std::vector<double> rates;
    for (size_t i = 0; i < program.gm.size(); ++i) {
      const Bytes bytes = buffer(a, program.gm[i]);
      const double size = static_cast<double>(std::min<uint64_t>(bytes.size, program.gm[i].bytes));
      const auto moved = static_cast<double>(t.read_bytes[i]),
                 written = static_cast<double>(t.written_bytes[i]);
      traffic->bytes += t.read_bytes[i] + t.written_bytes[i];
      const auto used = static_cast<uint64_t>(size);
      double missed = 0;
      if (moved > 0) {
        missed = std::min(moved, size - static_cast<double>(cache.hits(bytes.at, used)));
        if (size > h.l2_bytes) missed = std::min(moved, std::max(size, moved / t.in_common[i]));
        const double part = missed / moved, slow = std::min(h.l2_read, share);
        buffers[i].read_rate = 1 / ((1 - part) / h.l2_read + part / slow);
        buffers[i].latency = (1 - part) * h.l2_latency + part * h.memory_latency;
      }
      if (written > 0 && size > h.l2_bytes) {
        missed += written;
        buffers[i].write_rate = std::min(h.l2_write, share);
      }
      traffic->far_bytes += static_cast<uint64_t>(missed);
      rates.insert(rates.end(), {buffers[i].read_rate, buffers[i].write_rate, buffers[i].latency});
    }
    for (const tile::GlobalBuffer& b : program.gm) {
      const Bytes bytes = buffer(a, b);
      cache.touch(bytes.at, std::min<uint64_t>(bytes.size, b.bytes));
    }
    Timings::Timing& timing = t.by_rates[rates];
    if (timing.ns == 0 || (traffic->want_parts && !timing.has_parts)) {
      const TileResult r = timed(t, buffers, traffic->want_parts);
      timing.ns = std::max(r.nanoseconds, 1e-3);
      if (traffic->want_parts) {
        timing.parts = parts_of(r, ghz);
        timing.has_parts = true;
      }
    }
    if (traffic->want_parts) traffic->parts = timing.parts;
    traffic->flops = t.flops;
    traffic->flops_per_ns = h.core_count * 2 * 16 * 16 * 16 * ghz;
    Need need;
    need.before = whole(h.dispatch_ns + h.hardware_start_ns + h.software_start_ns);
    need.run_ns = timing.ns;
    need.far_bytes = static_cast<double>(traffic->far_bytes);
    need.after = whole(h.completion_ns);
    return need;
  }

  const std::shared_ptr<const TileTask> task_;
  const Settings& settings_;
  const std::shared_ptr<Timings> timings_;
  uint64_t scratch_bytes_ = 0;
};

class TileKernel final : public LoadedKernel {
 public:
  TileKernel(std::shared_ptr<const TileTask> task, const Settings& settings)
      : timings_(std::make_shared<Timings>()), settings_(settings) {
    timings_->task = std::move(task);
  }
  std::unique_ptr<Executable> prepare(const PrepareRequest& request) const override {
    return std::make_unique<TileExecutable>(timings_, settings_, request);
  }

 private:
  const std::shared_ptr<Timings> timings_;  // of all launches of this program
  const Settings& settings_;
};

}  // namespace

std::unique_ptr<LoadedKernel> load_tile_kernel(const Settings& settings, const regie_kernel_image& image) {
  const std::string_view blob(static_cast<const char*>(image.blob), image.blob_size);
  try {
    return std::make_unique<TileKernel>(
        TileTask::prepare(blob, machine_of(settings.hardware), "tile program",
                          settings.numerics ? TileTask::Verify::now : TileTask::Verify::when_needed),
        settings);
  } catch (const Failure& f) {
    // A program that breaks the rules of tile programs is no better than one whose bytes are damaged.
    throw Failure(f.code == REGIE_INVALID_INPUT ? static_cast<regie_status>(REGIE_CORRUPT) : f.code,
                  f.message);
  }
}

}  // namespace regie::simulator
