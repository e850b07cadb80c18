// One AI Core task: runs a tile program, numerics and time from the same list of instructions. The device
// around it owns memory, streams, the clock between tasks and who shares the HBM; it gives this machine
// pointers and rates, and gets a timeline. Deterministic: no threads, no clocks, no random choice; equal
// inputs give equal bytes and equal times.
//
// Use: `prepare` once a loaded kernel (decodes, verifies, precomputes; the expensive part), `run` once a
// launch. A `TileTask` is immutable after `prepare` and may be run from several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regie/tile/verify.h"

namespace regie::simulator {

// Of one core; from the target. Rates in bytes a cycle, start-ups in cycles an instruction (assumed, all of
// them).
struct TileMachine {
  uint32_t cores = 1;
  tile::OnChip chip;
  double clock_ghz = 1.0;
  double l1_to_l0a = 512, l1_to_l0b = 256, l1_to_ub = 256, l0c_to_ub = 256, ub_to_l1 = 256;
  double vector_bytes = 256;                              // a cycle: 128 f16 or 64 f32 lanes
  double vector_units = 1;                                // 2 on the 910B
  double cube_efficiency = 1.0, vector_efficiency = 1.0;  // eta
  double slow_passes =
      4;  // of exp, ln, sqrt, rsqrt, rec, div; the others take 1 (reductions and transpositions 2)
  std::array<double, REGIE_TILE_PIPES> startup{32, 16, 16, 16, 32};
  double flag_cycles = 4;  // a set or a wait
  double barrier_cycles = 200;
};

// A global buffer in a launch. Rates are a core's share at the time of the launch, in bytes a cycle; the
// caller knows who else runs and what the L2 holds. Latency in cycles a copy, beside the start-up.
struct TileBuffer {
  void* data = nullptr;  // may be null without numerics
  uint64_t bytes = 0;
  double read_rate = 64, write_rate = 64;
  double latency = 0;
};

// How many cores read each byte of a global buffer, on average, of the buffers that are asked for (else 1).
std::vector<double> readers_in_common(const tile::Program& program, const std::vector<bool>& asked);

struct TileSpan {  // on one pipe of one core, cycles from the start of the task
  double begin, end;
  uint32_t instruction;  // number in the program
};

struct TileCore {
  double cycles = 0;                            // until its last pipe has ended
  std::array<double, REGIE_TILE_PIPES> busy{};  // cycles
  std::array<double, REGIE_TILE_PIPES> first{},
      last{};  // begin of the first and end of the last work; 0, 0: none
  uint64_t instructions = 0, macs = 0;
};

struct TileResult {
  double cycles = 0, nanoseconds = 0;  // of the slowest core
  std::vector<TileCore> cores;
  std::vector<uint64_t> read_bytes, written_bytes;  // by global buffer, all cores, as moved (32-byte blocks)
  // Only if asked for: by core, then pipe, in order of time; adjacent spans are not merged.
  std::vector<std::array<std::vector<TileSpan>, REGIE_TILE_PIPES>> timeline;
};

struct TileRun {
  bool numerics = true;
  bool time = true;  // else cycles stay 0
  bool timeline = false;
};

class TileTask {
 public:
  // Throws sdk::Failure: CORRUPT for damaged bytes, UNSUPPORTED if the machine has less than the program was
  // compiled for, INVALID_INPUT if the verifier finds a fault, with its text. `name` is of the node or task,
  // for messages. With Verify::when_needed the verifier runs at the first `accesses` or run with numerics,
  // and these throw; time alone then checks only what it depends on: for callers that want nothing but time.
  enum class Verify : uint8_t { now, when_needed };
  static std::shared_ptr<const TileTask> prepare(std::string_view blob, const TileMachine& machine,
                                                 std::string_view name, Verify verify = Verify::now);

  const tile::Program& program() const;
  // What the program reads before it writes it itself, and writes, by global buffer: for the device's checks
  // of memory.
  const tile::VerifyResult& accesses() const;

  // `buffers`: one for each of program().gm. Throws INVALID_INPUT if one is smaller than the program says.
  TileResult run(const std::vector<TileBuffer>& buffers, const TileRun& what = {}) const;

 private:
  struct Impl;
  explicit TileTask(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace regie::simulator
