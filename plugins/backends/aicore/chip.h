// The AI Cores of a target, as this engine plans for them: sizes, rates in bytes a cycle and core, start-ups.
// One model of time for all kernels: what the pipes of one core are busy for, the longest of them overlapped,
// plus a first fill and a last drain (docs/aicore.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "regie/accelerator.hpp"
#include "regie/c/view.h"
#include "regie/tile/builder.h"

namespace aicore {

constexpr int64_t kBlock = REGIE_TILE_BLOCK_BYTES, kFractal = REGIE_TILE_FRACTAL_BYTES, kSums = 1024;

struct Chip {
  regie::sdk::Accelerator hardware;
  uint32_t cores = 1;
  regie::tile::OnChip sizes;
  // Operands of f32 go into the cube as the sum of two halves, where their partner is constant
  // (docs/aicore.md).
  bool two_halves = false;

  explicit Chip(const regie::sdk::Accelerator& a);
  double ns(double cycles) const { return cycles * 1000.0 / hardware.core_mhz + task_ns(); }
  // Of a task that does nothing.
  double task_ns() const {
    return hardware.dispatch_ns + hardware.hardware_start_ns + hardware.software_start_ns +
           hardware.completion_ns;
  }
  // A core's share when `running` of them read or write: what the L2 gives, or a part of the memory's rate.
  double read_rate(int64_t running) const;
  double write_rate(int64_t running) const;
  // The same of tensors of `bytes` in all, which the L2 holds if they fit.
  double read_rate(int64_t running, double bytes) const {
    return bytes <= hardware.l2_bytes ? hardware.l2_read : read_rate(running);
  }
  double write_rate(int64_t running, double bytes) const {
    return bytes <= hardware.l2_bytes ? hardware.l2_write : write_rate(running);
  }
};

// Cycles that the pipes of one core are busy with one turn of a loop.
struct PipeCycles {
  std::array<double, REGIE_TILE_PIPES> busy{};
  double& operator[](uint32_t pipe) { return busy[pipe]; }
  double operator[](uint32_t pipe) const { return busy[pipe]; }
  double longest() const;
  double sum() const;
};

// `turns` turns of which neighbours overlap.
double overlapped(const PipeCycles& turn, double turns);

// Loops shared out between cores: `parts` of a loop, of `turns` each; the last may have fewer.
struct Share {
  int64_t parts = 1, turns = 1;
};
// At most `cores` parts in all, such that the turns of one core are as few as they can be.
std::vector<Share> spread(const std::vector<int64_t>& sizes, int64_t cores);
// Cores that have a share, and turns of one of them.
int64_t cores_of(const std::vector<Share>& shares);
double turns_of(const std::vector<Share>& shares);

// A working set that does not fit a buffer, with the figures.
struct Overflow : regie::sdk::Failure {
  explicit Overflow(std::string words) : Failure(REGIE_UNSUPPORTED, std::move(words)) {}
  // "its tiles need": of UB.
  Overflow(const std::string& what_needs, int64_t bytes, const Chip& chip)
      : Overflow(what_needs + " " + std::to_string(bytes) + " bytes of UB, which has " +
                 std::to_string(chip.sizes.ub)) {}
};

inline bool is_byte(regie_elem e) { return e == REGIE_I8 || e == REGIE_U8; }
inline uint8_t byte_type(regie_elem e) { return e == REGIE_U8 ? REGIE_TILE_U8 : REGIE_TILE_S8; }
// The least and the greatest of a type of bytes.
inline int32_t least_byte(regie_elem e) { return e == REGIE_I8 ? -128 : 0; }
inline int32_t most_byte(regie_elem e) { return least_byte(e) + 255; }
// Of the types that kernels compute with: f32, i32, f16, bytes.
inline int64_t size_of(regie_elem e) { return e == REGIE_F16 ? 2 : is_byte(e) ? 1 : 4; }

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return up(a, b) * b; }

// Bytes of runs as memory moves them: in blocks, of which a run off the grid has one more.
inline double in_blocks(int64_t runs, int64_t bytes, int64_t pitch = 0) {
  return static_cast<double>(runs *
                             (round_up(bytes, kBlock) + (bytes % kBlock || pitch % kBlock ? kBlock : 0)));
}

}  // namespace aicore
