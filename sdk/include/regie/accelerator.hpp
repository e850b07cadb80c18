// The hardware parameters of an accelerator in a target file, as one struct: the device that simulates it and
// the engines that compile for it must read the same numbers by the same names. Units are in the names: `ns`,
// `bytes`, `mhz`, `per_ns` (1 a nanosecond is 1 G a second). Defaults are those of configs/targets/ascend910a-sim.toml.
//
// A key that nobody knows is an error: a device knows those of this table; an engine names its own besides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regie/plugin.hpp"

namespace regie::sdk {

struct Accelerator {
  // AI Cores. A core of a chip whose cube and vector cores are apart is one cube core with its vector cores.
  double core_count = 32, core_mhz = 1000;
  // Sustained by a stream of instructions, of what 16x16x16 a cycle and the vector lanes give.
  double cube_efficiency = 0.82, vector_efficiency = 0.83;
  double vector_units = 1;  // of a core
  double l1_bytes = 1 << 20, l0a_bytes = 64 << 10, l0b_bytes = 64 << 10, l0c_bytes = 256 << 10, ub_bytes = 256 << 10;
  // Bytes a cycle and core: of the pipes between the buffers, and to and from the caches and the memory.
  double l1_to_l0a = 512, l1_to_l0b = 256, l1_to_ub = 256, l0c_to_ub = 256, ub_to_l1 = 256;
  double vector_bytes = 256;  // of one unit
  double l2_read = 110, l2_write = 86;
  // Cycles: to start an instruction of a pipe, to set or wait for a flag, for all cores to meet, from a request to
  // the cache or the memory to the first bytes.
  double load_start = 32, move_start = 16, cube_start = 16, vector_start = 16, store_start = 32;
  double flag_cycles = 4, barrier_cycles = 200, l2_latency = 100, memory_latency = 300;
  double slow_passes = 1.5;  // of the lanes, that an exponential, a root or a division takes
  // Memory.
  double memory_bytes = 32.0 * (uint64_t{1} << 30), memory_bytes_per_ns = 1024, l2_bytes = 32 << 20;
  // CPUs of the device, and one of them.
  double aicpu_count = 4, aicpu_flops_per_ns = 4, aicpu_bytes_per_ns = 8, aicpu_start_ns = 5000;
  // Queues.
  double streams = 1024, events = 65536, queue_depth = 1024;
  // Costs of the host: to hand over a task, an event or the whole queue at once; to notice that a wait is over.
  double issue_ns = 5000, event_issue_ns = 1000, sink_launch_ns = 5000, wait_ns = 19000, callback_ns = 10000;
  // Costs of the device: of a task, between two of a stream, and from an event to who waits for it.
  double dispatch_ns = 150, hardware_start_ns = 50, software_start_ns = 2200, completion_ns = 500, gap_ns = 100,
         event_ns = 500;
  // Copies, each way one engine, and inside the device.
  double copy_start_ns = 2000, copy_in_bytes_per_ns = 24, copy_out_bytes_per_ns = 24, copy_inside_bytes_per_ns = 409.6;

  // What a CPU of the device takes for that much work, once it has begun.
  double aicpu_ns(double flops, double bytes) const {
    return std::max(flops / aicpu_flops_per_ns, bytes / aicpu_bytes_per_ns);
  }
};

struct AcceleratorKey {
  const char* name;
  double Accelerator::*field;
  double least, most;
  bool whole;  // a number of things
};
inline constexpr double kNoLimit = 9007199254740992.0;  // up to here a double counts exactly
inline constexpr AcceleratorKey kAcceleratorKeys[] = {
    {"core_count", &Accelerator::core_count, 1, 1024, true},
    {"core_mhz", &Accelerator::core_mhz, 1, 100000, false},
    {"cube_efficiency", &Accelerator::cube_efficiency, 0.01, 1, false},
    {"vector_efficiency", &Accelerator::vector_efficiency, 0.01, 1, false},
    {"vector_units", &Accelerator::vector_units, 1, 16, true},
    {"l1_bytes", &Accelerator::l1_bytes, 1024, kNoLimit, true},
    {"l0a_bytes", &Accelerator::l0a_bytes, 1024, kNoLimit, true},
    {"l0b_bytes", &Accelerator::l0b_bytes, 1024, kNoLimit, true},
    {"l0c_bytes", &Accelerator::l0c_bytes, 1024, kNoLimit, true},
    {"ub_bytes", &Accelerator::ub_bytes, 1024, kNoLimit, true},
    {"l1_to_l0a_bytes_per_cycle", &Accelerator::l1_to_l0a, 1, 1e6, false},
    {"l1_to_l0b_bytes_per_cycle", &Accelerator::l1_to_l0b, 1, 1e6, false},
    {"l1_to_ub_bytes_per_cycle", &Accelerator::l1_to_ub, 1, 1e6, false},
    {"l0c_to_ub_bytes_per_cycle", &Accelerator::l0c_to_ub, 1, 1e6, false},
    {"ub_to_l1_bytes_per_cycle", &Accelerator::ub_to_l1, 1, 1e6, false},
    {"vector_bytes_per_cycle", &Accelerator::vector_bytes, 1, 1e6, false},
    {"l2_read_bytes_per_cycle", &Accelerator::l2_read, 1, 1e6, false},
    {"l2_write_bytes_per_cycle", &Accelerator::l2_write, 1, 1e6, false},
    {"load_start_cycles", &Accelerator::load_start, 0, 1e6, false},
    {"move_start_cycles", &Accelerator::move_start, 0, 1e6, false},
    {"cube_start_cycles", &Accelerator::cube_start, 0, 1e6, false},
    {"vector_start_cycles", &Accelerator::vector_start, 0, 1e6, false},
    {"store_start_cycles", &Accelerator::store_start, 0, 1e6, false},
    {"flag_cycles", &Accelerator::flag_cycles, 0, 1e6, false},
    {"barrier_cycles", &Accelerator::barrier_cycles, 0, 1e6, false},
    {"l2_latency_cycles", &Accelerator::l2_latency, 0, 1e6, false},
    {"memory_latency_cycles", &Accelerator::memory_latency, 0, 1e6, false},
    {"slow_passes", &Accelerator::slow_passes, 1, 1e3, false},
    {"memory_bytes", &Accelerator::memory_bytes, 512, kNoLimit, true},
    {"memory_bytes_per_ns", &Accelerator::memory_bytes_per_ns, 0.001, 1e6, false},
    {"l2_bytes", &Accelerator::l2_bytes, 0, kNoLimit, true},
    {"aicpu_count", &Accelerator::aicpu_count, 1, 1024, true},
    {"aicpu_flops_per_ns", &Accelerator::aicpu_flops_per_ns, 0.001, 1e6, false},
    {"aicpu_bytes_per_ns", &Accelerator::aicpu_bytes_per_ns, 0.001, 1e6, false},
    {"aicpu_start_ns", &Accelerator::aicpu_start_ns, 0, 1e12, false},
    {"streams", &Accelerator::streams, 1, 65536, true},
    {"events", &Accelerator::events, 1, 1 << 24, true},
    {"queue_depth", &Accelerator::queue_depth, 1, 1 << 24, true},
    {"issue_ns", &Accelerator::issue_ns, 0, 1e12, false},
    {"event_issue_ns", &Accelerator::event_issue_ns, 0, 1e12, false},
    {"sink_launch_ns", &Accelerator::sink_launch_ns, 0, 1e12, false},
    {"wait_ns", &Accelerator::wait_ns, 0, 1e12, false},
    {"callback_ns", &Accelerator::callback_ns, 0, 1e12, false},
    {"dispatch_ns", &Accelerator::dispatch_ns, 0, 1e12, false},
    {"hardware_start_ns", &Accelerator::hardware_start_ns, 0, 1e12, false},
    {"software_start_ns", &Accelerator::software_start_ns, 0, 1e12, false},
    {"completion_ns", &Accelerator::completion_ns, 0, 1e12, false},
    {"gap_ns", &Accelerator::gap_ns, 0, 1e12, false},
    {"event_ns", &Accelerator::event_ns, 0, 1e12, false},
    {"copy_start_ns", &Accelerator::copy_start_ns, 0, 1e12, false},
    {"copy_in_bytes_per_ns", &Accelerator::copy_in_bytes_per_ns, 0.001, 1e6, false},
    {"copy_out_bytes_per_ns", &Accelerator::copy_out_bytes_per_ns, 0.001, 1e6, false},
    {"copy_inside_bytes_per_ns", &Accelerator::copy_inside_bytes_per_ns, 0.001, 1e6, false},
};

// What a device of such a target may be told that is not its hardware: `mode`, `numerics`, `wait_timeout_ms`
// (docs/simulator.md). Engines are told it as well, and pass over it.
inline constexpr std::string_view kAcceleratorOptions[] = {"mode", "numerics", "wait_timeout_ms"};

// One key; false if it is none of the hardware's. Throws Failure(INVALID_INPUT) for a value out of range; `who`
// begins its words.
inline bool read_accelerator_key(std::string_view who, std::string_view key, std::string_view text, Accelerator* to) {
  for (const AcceleratorKey& k : kAcceleratorKeys) {
    if (key != k.name) continue;
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (copy.empty() || *end || !(value >= k.least && value <= k.most) || (k.whole && value != std::floor(value))) {
      char range[64];
      std::snprintf(range, sizeof range, "%.15g to %.15g", k.least, k.most);
      throw Failure(REGIE_INVALID_INPUT, std::string(who) + ": parameter '" + std::string(key) + "' must be a " +
                                             (k.whole ? "whole " : "") + "number from " + range + ", not '" + copy + "'");
    }
    to->*k.field = value;
    return true;
  }
  return false;
}

// Letters to change, add or take away to make one of the other.
inline size_t letters_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({corner + 1, row[j] + 1, change});
    }
  }
  return row[b.size()];
}

[[noreturn]] inline void refuse_accelerator_key(std::string_view who, std::string_view key,
                                                std::span<const std::string_view> own = {}) {
  std::vector<std::string_view> keys(own.begin(), own.end());
  keys.insert(keys.end(), std::begin(kAcceleratorOptions), std::end(kAcceleratorOptions));
  std::string known;
  for (std::string_view k : keys) known += std::string(k) + ", ";
  for (const AcceleratorKey& k : kAcceleratorKeys) keys.emplace_back(k.name);
  std::string_view near;
  size_t least = 2 + key.size() / 4;
  for (std::string_view k : keys)
    if (const size_t n = letters_between(key, k); n < least && n < k.size()) {
      near = k;
      least = n;
    }
  throw Failure(REGIE_INVALID_INPUT,
                std::string(who) + ": unknown parameter '" + std::string(key) + "'" +
                    (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?") +
                    (near.empty() ? "; known are " : " Known are ") + known +
                    "and the figures of the hardware that the target's file lists");
}

// For an engine: all of the hardware, what is the device's own passed over. `own(key, text)` reads a key of the
// engine's and says whether it was one; `own_keys` are for the message.
template <class Own>
Accelerator read_accelerator(std::string_view who, const regie_config* params, std::span<const std::string_view> own_keys,
                             Own own) {
  Accelerator a;
  for (uint32_t i = 0; params && i < params->count; ++i) {
    const std::string_view key = sv(params->settings[i].key), text = sv(params->settings[i].value);
    if (read_accelerator_key(who, key, text, &a) || own(key, text)) continue;
    bool option = false;
    for (std::string_view k : kAcceleratorOptions) option |= k == key;
    if (!option) refuse_accelerator_key(who, key, own_keys);
  }
  return a;
}

}  // namespace regie::sdk
