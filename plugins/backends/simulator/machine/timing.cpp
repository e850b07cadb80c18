#include "timing.h"

#include <algorithm>

namespace regie::simulator {

namespace {

constexpr double kBlock = REGIE_TILE_BLOCK_BYTES, kFractal = REGIE_TILE_FRACTAL_BYTES;

double up(int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); }

// Blocks that a run of `bytes` takes: one more where an address or a stride is off the grid (`bits`: all that
// are used, or-ed).
double blocks(int64_t bytes, int64_t bits) {
  return bytes ? up(bytes, REGIE_TILE_BLOCK_BYTES) + (bits % REGIE_TILE_BLOCK_BYTES ? 1 : 0) : 0;
}

int64_t used(int64_t count, int64_t strides) { return count > 1 ? strides : 0; }

}  // namespace

Cost::Cost(const TileMachine& machine, const std::vector<TileBuffer>& buffers)
    : m_(machine),
      buffers_(buffers),
      vector_rate_(machine.vector_bytes * machine.vector_units * machine.vector_efficiency) {}

double Cost::cycles(const tile::Concrete& i, uint32_t pipe) const {
  if (i.op == REGIE_TILE_OP_SET || i.op == REGIE_TILE_OP_WAIT) return m_.flag_cycles;
  return m_.startup[pipe] + work(i);
}

uint64_t Cost::moved(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  int64_t bits = a[0] | a[1] | used(a[3], a[4] | a[5]) | used(a[6], a[7] | a[8]) | used(a[9], a[10] | a[11]);
  return static_cast<uint64_t>(blocks(a[2], bits) * kBlock) * static_cast<uint64_t>(a[3] * a[6] * a[9]);
}

double Cost::work(const tile::Concrete& i) const {
  const int64_t* a = i.arg;
  auto vector = [&](double runs, double per_run, double passes) {
    return runs * per_run * kBlock * passes / vector_rate_;
  };
  switch (i.op) {
    case REGIE_TILE_OP_COPY: {
      double bytes = static_cast<double>(moved(i));
      if (bytes == 0) return 0;
      if (i.mode[1] >= REGIE_TILE_GM) {
        const TileBuffer& b = buffers_[i.mode[1] - REGIE_TILE_GM];
        return b.latency + bytes / b.read_rate;
      }
      if (i.mode[0] >= REGIE_TILE_GM) {
        const TileBuffer& b = buffers_[i.mode[0] - REGIE_TILE_GM];
        return b.latency + bytes / b.write_rate;
      }
      return bytes / (i.mode[1] == REGIE_TILE_L1 ? m_.l1_to_ub : m_.ub_to_l1);
    }
    case REGIE_TILE_OP_FILL: {
      double bytes = static_cast<double>(a[3]) * kBlock *
                     blocks(a[2] * tile::bytes_of(i.mode[1]), a[0] | used(a[3], a[4]));
      switch (i.mode[0]) {
        case REGIE_TILE_L1:
          return bytes / m_.ub_to_l1;
        case REGIE_TILE_L0A:
          return bytes / m_.l1_to_l0a;
        case REGIE_TILE_L0B:
          return bytes / m_.l1_to_l0b;
        default:
          return bytes / vector_rate_;
      }
    }
    case REGIE_TILE_OP_FRACTAL:
      return static_cast<double>(a[2] * a[5]) * kFractal /
             (i.mode[0] == REGIE_TILE_L0A ? m_.l1_to_l0a : m_.l1_to_l0b);
    case REGIE_TILE_OP_IM2COL:
      return up(a[14], 16) * static_cast<double>(a[16]) * kFractal /
             (i.mode[0] == REGIE_TILE_L0A ? m_.l1_to_l0a : m_.l1_to_ub);
    case REGIE_TILE_OP_MMAD:
      return up(a[3], 16) * up(a[4], 16) * up(a[5], i.mode[0] == REGIE_TILE_F16 ? 16 : 32) /
             m_.cube_efficiency;
    case REGIE_TILE_OP_DRAIN:
      return static_cast<double>(a[2] * a[3]) * 64 / m_.l0c_to_ub;
    case REGIE_TILE_OP_REQUANT:
      // What is added lies in L0C before the product on the hardware: as much to write as to read.
      return static_cast<double>(a[7] * a[9] * a[14]) * 64 * (a[4] ? 2 : 1) / m_.l0c_to_ub;
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE: {
      int64_t bits = a[0] | a[1] | used(a[4], a[5] | a[6]) | used(a[8], a[9] | a[10]);
      if (i.mode[2] == REGIE_TILE_BY_VECTOR) bits |= a[2] | used(a[4], a[7]) | used(a[8], a[11]);
      bool slow = i.op == REGIE_TILE_OP_BINARY && i.mode[0] == REGIE_TILE_DIV;
      return vector(static_cast<double>(a[4] * a[8]), blocks(a[3] * tile::bytes_of(i.mode[1]), bits),
                    slow ? m_.slow_passes : 1);
    }
    case REGIE_TILE_OP_UNARY: {
      int64_t bits = a[0] | a[1] | used(a[3], a[4] | a[5]) | used(a[6], a[7] | a[8]);
      bool slow = i.mode[0] >= REGIE_TILE_EXP && i.mode[0] <= REGIE_TILE_REC;
      return vector(static_cast<double>(a[3] * a[6]), blocks(a[2] * tile::bytes_of(i.mode[1]), bits),
                    slow ? m_.slow_passes : 1);
    }
    case REGIE_TILE_OP_CAST: {
      int64_t bits = a[0] | a[1] | used(a[3], a[4] | a[5]) | used(a[6], a[7] | a[8]);
      int64_t widest = std::max(tile::bytes_of(i.mode[0]), tile::bytes_of(i.mode[1]));
      return vector(static_cast<double>(a[3] * a[6]), blocks(a[2] * widest, bits), 1);
    }
    case REGIE_TILE_OP_REDUCE: {
      int64_t bits = a[1] | used(a[3], a[5]) | used(a[6], a[8]);
      return vector(static_cast<double>(a[3] * a[6]), blocks(a[2] * tile::bytes_of(i.mode[1]), bits), 2);
    }
    case REGIE_TILE_OP_SELECT: {
      int64_t bits = a[0] | a[2] | used(a[5], a[6] | a[8]) | used(a[10], a[11] | a[13]);
      if (i.mode[1] == REGIE_TILE_BY_VECTOR) bits |= a[3] | used(a[5], a[9]) | used(a[10], a[14]);
      return vector(static_cast<double>(a[5] * a[10]), blocks(a[4] * tile::bytes_of(i.mode[0]), bits), 1);
    }
    case REGIE_TILE_OP_TRANSPOSE: {
      int64_t bits = a[0] | a[1] | a[2] | a[3] | used(a[4], a[5] | a[6]) | used(a[7], a[8] | a[9]);
      const int64_t rows = REGIE_TILE_BLOCK_BYTES / tile::width_bytes(i.mode[0]);
      return vector(static_cast<double>(rows * a[4] * a[7]), blocks(32, bits), 2);
    }
    default:
      return 0;
  }
}

double Cost::latency(const tile::Concrete& i) const {
  if (i.op != REGIE_TILE_OP_COPY || moved(i) == 0) return 0;
  const uint8_t global = std::max(i.mode[0], i.mode[1]);
  return global >= REGIE_TILE_GM ? buffers_[global - REGIE_TILE_GM].latency : 0;
}

void Timeline::begin_segment() {
  pipe_.fill(0);
  done_.fill(0);
  flag_.fill(0);  // what was set before the barrier is set at its end
  first.fill(0);
  last.fill(0);
  for (auto& s : spans) s.clear();
}

void Timeline::step(const tile::Concrete& i) {
  ++core.instructions;
  uint32_t pipe = tile::pipe_of(i.op, i.mode);
  double begin = pipe_[pipe];
  size_t flag = (size_t{i.mode[0]} * REGIE_TILE_PIPES + i.mode[1]) * REGIE_TILE_FLAGS;
  if (i.op == REGIE_TILE_OP_WAIT) begin = std::max(begin, flag_[flag + static_cast<size_t>(i.arg[0])]);
  double end = begin + cost_.cycles(i, pipe);
  if (i.op == REGIE_TILE_OP_SET || i.op == REGIE_TILE_OP_WAIT) {
    pipe_[pipe] = end;
    // Raised when all before it is done; the pipe does not stand still for it.
    if (i.op == REGIE_TILE_OP_SET)
      flag_[flag + static_cast<size_t>(i.arg[0])] = std::max(end, done_[pipe] + end - begin);
    return;
  }
  done_[pipe] = std::max(done_[pipe], end);
  // What is under way to or from the memory does not keep the next request waiting.
  pipe_[pipe] = end - cost_.latency(i);
  begin = std::max(begin, last[pipe]);
  core.busy[pipe] += end - begin;
  if (last[pipe] == 0) first[pipe] = begin;
  last[pipe] = end;
  if (keep_) spans[pipe].push_back({begin, end, i.index});
  if (i.op == REGIE_TILE_OP_MMAD)
    core.macs += static_cast<uint64_t>(i.arg[3]) * static_cast<uint64_t>(i.arg[4] * i.arg[5]);
  if (i.op == REGIE_TILE_OP_COPY) {
    if (i.mode[1] >= REGIE_TILE_GM) read[i.mode[1] - REGIE_TILE_GM] += Cost::moved(i);
    if (i.mode[0] >= REGIE_TILE_GM) written[i.mode[0] - REGIE_TILE_GM] += Cost::moved(i);
  }
}

double Timeline::end_segment() {
  return std::max(*std::max_element(pipe_.begin(), pipe_.end()),
                  *std::max_element(done_.begin(), done_.end()));
}

}  // namespace regie::simulator
