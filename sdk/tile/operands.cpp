// What each instruction demands of the values of its arguments.

#include <string>

#include "operands.h"
#include "regie/tile/stream.h"

namespace regie::tile {

// Arguments that say "nothing to do" when 0.
bool is_idle(const Concrete& c) {
  const int64_t* a = c.arg;
  switch (c.op) {
    case REGIE_TILE_OP_COPY:
      return !(a[2] && a[3] && a[6] && a[9]);
    case REGIE_TILE_OP_FILL:
      return !(a[2] && a[3]);
    case REGIE_TILE_OP_FRACTAL:
      return !(a[2] && a[5]);
    case REGIE_TILE_OP_IM2COL:
      return !(a[14] && a[16]);
    case REGIE_TILE_OP_MMAD:
      return !(a[3] && a[4] && a[5]);
    case REGIE_TILE_OP_DRAIN:
      return !(a[2] && a[3]);
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE:
      return !(a[3] && a[4] && a[8]);
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE:
      return !(a[2] && a[3] && a[6]);
    case REGIE_TILE_OP_SELECT:
      return !(a[4] && a[5] && a[10]);
    case REGIE_TILE_OP_TRANSPOSE:
      return !(a[4] && a[7]);
    case REGIE_TILE_OP_REQUANT:
      return !(a[7] && a[9] && a[14]);
    default:
      return true;
  }
}

namespace {

constexpr int64_t kSums = 1024;  // bytes of a block of L0C

// Repeats of the whole, 0 where the instruction has none.
int64_t repeats(const Concrete& c) {
  const int64_t* a = c.arg;
  switch (c.op) {
    case REGIE_TILE_OP_COPY:
      return a[3] * a[6] > REGIE_TILE_COUNT_LIMIT ? a[3] * a[6] : a[3] * a[6] * a[9];
    case REGIE_TILE_OP_FILL:
      return a[3];
    case REGIE_TILE_OP_FRACTAL:
      return a[2] * a[5];
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE:
      return a[4] * a[8];
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE:
      return a[3] * a[6];
    case REGIE_TILE_OP_SELECT:
      return a[5] * a[10];
    case REGIE_TILE_OP_TRANSPOSE:
      return a[4] * a[7];
    case REGIE_TILE_OP_REQUANT:
      return a[7] * a[9] > REGIE_TILE_COUNT_LIMIT ? a[7] * a[9] : a[7] * a[9] * a[14];
    default:
      return 0;
  }
}

// A destination that stands still while repeats go on, other than as a sum of them.
bool writes_over_itself(const Concrete& c) {
  const int64_t* a = c.arg;
  auto still = [&](int count, int stride) { return a[count] > 1 && a[stride] == 0; };
  switch (c.op) {
    case REGIE_TILE_OP_COPY:
      return still(3, 4) || still(6, 7) || still(9, 10);
    case REGIE_TILE_OP_FILL:
      return still(3, 4);
    case REGIE_TILE_OP_FRACTAL:
      return still(2, 3) || still(5, 6);
    case REGIE_TILE_OP_BINARY: {
      if (c.mode[0] == REGIE_TILE_MLA) return false;
      bool by_a = a[1] == a[0], by_b = c.mode[2] == REGIE_TILE_BY_VECTOR && a[2] == a[0];
      auto sums = [&](int first, int second) { return (by_a && a[first] == 0) || (by_b && a[second] == 0); };
      return (still(4, 5) && !sums(6, 7)) || (still(8, 9) && !sums(10, 11));
    }
    case REGIE_TILE_OP_COMPARE:
      return still(4, 5) || still(8, 9);
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE:
      return still(3, 4) || still(6, 7);
    case REGIE_TILE_OP_SELECT:
      return still(5, 6) || still(10, 11);
    case REGIE_TILE_OP_TRANSPOSE:
      return a[2] == 0 || still(4, 5) || still(7, 8);
    case REGIE_TILE_OP_REQUANT:
      return still(7, 8) || still(9, 10) || still(14, 15);
    default:
      return false;
  }
}

struct Checker {
  const Concrete& c;
  bool& alignment;
  std::string fault;

  void aligned(int arg, int64_t to, bool used = true) {
    if (fault.empty() && used && c.arg[arg] % to) {
      alignment = true;
      fault = std::string(instruction_info(c.op)->args[arg].name) + " = " + std::to_string(c.arg[arg]) +
              " is no multiple of " + std::to_string(to);
    }
  }
  void least(int arg, int64_t low, const char* why = "") {
    if (fault.empty() && c.arg[arg] < low)
      fault = std::string(instruction_info(c.op)->args[arg].name) + " = " + std::to_string(c.arg[arg]) +
              " is below " + std::to_string(low) + why;
  }
};

}  // namespace

std::string operand_fault(const Concrete& c, bool& alignment) {
  alignment = false;
  const InstructionInfo& info = *instruction_info(c.op);
  const int64_t* a = c.arg;
  auto bad = [&](size_t k, const char* why) {
    return std::string(info.args[k].name) + " = " + std::to_string(a[k]) + " " + why;
  };
  if (c.op == REGIE_TILE_OP_SET || c.op == REGIE_TILE_OP_WAIT)
    return a[0] < 0 || a[0] >= REGIE_TILE_FLAGS ? bad(0, "is no flag (0..15)") : "";
  for (size_t k = 0; k < info.args.size(); ++k)
    if (info.args[k].kind == ArgKind::count && (a[k] < 0 || a[k] >= REGIE_TILE_COUNT_LIMIT))
      return bad(k, a[k] < 0 ? "is negative" : "is too large");
  if (is_idle(c)) return {};
  for (size_t k = 0; k < info.args.size(); ++k) {
    switch (info.args[k].kind) {
      case ArgKind::address:
      case ArgKind::stride:
        if (a[k] < 0 || a[k] >= REGIE_TILE_NUMBER_LIMIT)
          return bad(k, a[k] < 0 ? "is negative" : "is too large");
        break;
      case ArgKind::number:
        if (a[k] <= -REGIE_TILE_COUNT_LIMIT || a[k] >= REGIE_TILE_COUNT_LIMIT) return bad(k, "is too large");
        break;
      case ArgKind::flag:
        if (a[k] != 0 && a[k] != 1) return bad(k, "is neither 0 nor 1");
        break;
      default:
        break;
    }
  }
  if (repeats(c) > REGIE_TILE_COUNT_LIMIT) return "its repeats are too many";
  const char* overlap = ": what it addresses would overlap";
  Checker check{c, alignment, {}};
  if (writes_over_itself(c)) return "its repeats write the same bytes: a stride of its destination is 0";
  switch (c.op) {
    case REGIE_TILE_OP_FILL: {
      int64_t e = bytes_of(c.mode[1]);
      check.aligned(0, e);
      check.aligned(4, e, a[3] > 1);
      break;
    }
    case REGIE_TILE_OP_FRACTAL:
      check.aligned(0, kFractal);
      check.aligned(1, kBlock);
      check.aligned(3, kFractal, a[2] > 1);
      check.aligned(4, kBlock, a[2] > 1);
      check.aligned(6, kFractal, a[5] > 1);
      check.aligned(7, kBlock, a[5] > 1);
      break;
    case REGIE_TILE_OP_IM2COL:
      check.aligned(0, c.mode[0] == REGIE_TILE_UB ? kBlock : kFractal);
      check.aligned(1, kBlock);
      check.aligned(17, kBlock);
      check.aligned(18, c.mode[0] == REGIE_TILE_UB ? kBlock : kFractal, a[14] > 16);
      for (int k : {6, 7, 8, 9, 10, 11, 12}) check.least(k, 1);
      if (a[14] > 16) check.least(18, a[16] * kFractal, overlap);
      break;
    case REGIE_TILE_OP_MMAD: {
      int64_t k0 = c.mode[0] == REGIE_TILE_F16 ? 16 : 32;
      check.aligned(0, kSums);
      check.aligned(1, kFractal);
      check.aligned(2, kFractal);
      check.aligned(7, kSums, a[4] > 16);
      check.aligned(8, kFractal, a[3] > 16);
      check.aligned(9, kFractal, a[5] > k0);
      if (a[4] > 16) check.least(7, up(a[3], 16) * kSums, overlap);
      if (a[3] > 16) check.least(8, up(a[5], k0) * kFractal, overlap);
      if (a[5] > k0) check.least(9, up(a[4], 16) * kFractal, overlap);
      break;
    }
    case REGIE_TILE_OP_DRAIN:
      check.aligned(0, kBlock);
      check.aligned(1, 64);
      check.aligned(4, kBlock, a[3] > 1);
      check.aligned(5, 64, a[3] > 1);
      if (a[3] > 1) check.least(4, a[2] * 16 * bytes_of(c.mode[1]), overlap);
      if (a[3] > 1) check.least(5, a[2] * 64, overlap);
      break;
    case REGIE_TILE_OP_REQUANT: {
      // Half a block of bytes: two blocks of columns make one of 32 channels.
      if (a[4] && c.mode[0] != REGIE_TILE_S32) return "numbers are added to sums of s32";
      const int64_t to = 16 * bytes_of(c.mode[1]) % kBlock ? kBlock / 2 : kBlock;
      check.aligned(0, to);
      check.aligned(1, 64);
      check.aligned(2, 4);
      check.aligned(8, to, a[7] > 1);
      check.aligned(10, to, a[9] > 1);
      check.aligned(11, 64, a[9] > 1);
      check.aligned(12, 4, a[9] > 1);
      check.aligned(15, to, a[14] > 1);
      check.aligned(16, 64, a[14] > 1);
      check.aligned(17, 4, a[14] > 1);
      if (a[4]) {
        check.aligned(3, 4);
        check.aligned(13, 4, a[9] > 1);
        check.aligned(18, 4, a[14] > 1);
      }
      if (a[7] > 1) check.least(8, 16 * bytes_of(c.mode[1]), overlap);
      break;
    }
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE: {
      int64_t e = bytes_of(c.mode[1]), to = c.op == REGIE_TILE_OP_COMPARE ? 1 : e;
      bool vector = c.mode[2] != REGIE_TILE_BY_SCALAR;
      check.aligned(0, to);
      check.aligned(1, e);
      check.aligned(2, e, vector);
      check.aligned(5, to, a[4] > 1);
      check.aligned(6, e, a[4] > 1);
      check.aligned(7, e, a[4] > 1);
      check.aligned(9, to, a[8] > 1);
      check.aligned(10, e, a[8] > 1);
      check.aligned(11, e, a[8] > 1);
      if (c.op == REGIE_TILE_OP_COMPARE) check.aligned(3, 8);
      break;
    }
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE: {
      bool cast = c.op == REGIE_TILE_OP_CAST;
      int64_t from = bytes_of(cast ? c.mode[0] : c.mode[1]), to = bytes_of(c.mode[1]);
      check.aligned(0, to);
      check.aligned(1, from);
      check.aligned(4, to, a[3] > 1);
      check.aligned(5, from, a[3] > 1);
      check.aligned(7, to, a[6] > 1);
      check.aligned(8, from, a[6] > 1);
      break;
    }
    case REGIE_TILE_OP_SELECT: {
      int64_t e = bytes_of(c.mode[0]);
      check.aligned(0, e);
      check.aligned(2, e);
      check.aligned(3, e, c.mode[1] != REGIE_TILE_BY_SCALAR);
      check.aligned(4, 8);
      for (int k : {6, 8, 9}) check.aligned(k, e, a[5] > 1);
      for (int k : {11, 13, 14}) check.aligned(k, e, a[10] > 1);
      break;
    }
    case REGIE_TILE_OP_TRANSPOSE:
      for (int k : {0, 1, 2, 3}) check.aligned(k, width_bytes(c.mode[0]));
      for (int k : {5, 6}) check.aligned(k, width_bytes(c.mode[0]), a[4] > 1);
      for (int k : {8, 9}) check.aligned(k, width_bytes(c.mode[0]), a[7] > 1);
      break;
    default:
      break;
  }
  return check.fault;
}

}  // namespace regie::tile
