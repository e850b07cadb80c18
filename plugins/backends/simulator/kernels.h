// The kernels that the simulated device runs: what is loaded, what is made ready for shapes, and what a
// launch of it computes and costs. "regie.aicpu/1" names an operator, which one of the device's CPUs computes
// by its reference kernel.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache.h"
#include "clock.h"
#include "regie/c/device.h"
#include "regie/reference_kernel.hpp"
#include "settings.h"

namespace regie::simulator {

constexpr char kAicpuFormat[] = "regie.aicpu/1";

struct Bytes {
  uintptr_t at = 0;
  uint64_t size = 0;
};

// A launch with its addresses; what they point to is the device's memory.
struct LaunchArguments {
  std::vector<Bytes> operands, results;  // size 0: absent or empty
  void* scratch = nullptr;
};

// What one pipe of a core did, ns from when the engine began to work, the device to itself.
struct Part {
  uint32_t pipe;
  double begin, end;
};

// What a launch did, for its record.
struct Traffic {
  bool want_parts = false;
  uint64_t bytes = 0, far_bytes = 0;
  double flops = 0, flops_per_ns = 0;  // what the engine could do at most
  std::vector<Part> parts;
};

class Executable {
 public:
  virtual ~Executable() = default;
  virtual EngineKind engine() const = 0;
  virtual uint64_t scratch_bytes() const = 0;
  // What a launch reads that it has not written itself, and what it writes, scratch left out.
  virtual void accesses(const LaunchArguments& arguments, std::vector<Bytes>* reads,
                        std::vector<Bytes>* writes) const {
    *reads = arguments.operands;
    *writes = arguments.results;
  }
  // Computes the results. OK, or the failure with its words.
  virtual regie_status run(const LaunchArguments& arguments, std::string* words) = 0;
  // What it costs to run it now, with the cache as it is; leaves there what the launch leaves. May be asked
  // after the executable was released: all of it is in what is returned.
  using Cost = std::function<Need(const LaunchArguments& arguments, Cache& cache, Traffic* traffic)>;
  virtual Cost cost() const = 0;
};

struct PrepareRequest {
  const regie_tensor* operands;
  uint32_t operand_count;
  const regie_tensor* results;
  uint32_t result_count;
};

class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual std::unique_ptr<Executable> prepare(const PrepareRequest& request) const = 0;
};

// Throws Failure: UNSUPPORTED for a format that is not known, CORRUPT for bytes that are not of it.
std::unique_ptr<LoadedKernel> load_kernel(const sdk::WordCatcher& catcher, const Settings& settings,
                                          const regie_kernel_image& image);

}  // namespace regie::simulator
