// What each instruction demands of its arguments, and which bytes it touches.

#include <algorithm>
#include <string>

#include "regie/tile/stream.h"

namespace regie::tile {

namespace {

constexpr int64_t kFractal = REGIE_TILE_FRACTAL_BYTES, kSums = 1024, kBlock = REGIE_TILE_BLOCK_BYTES;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Arguments that say "nothing to do" when 0.
bool idle(const Concrete& c) {
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
    default:
      return true;
  }
}

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
    default:
      return 0;
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
  if (idle(c)) return {};
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
      for (int k : {0, 1, 2, 3}) check.aligned(k, 2);
      for (int k : {5, 6}) check.aligned(k, 2, a[4] > 1);
      for (int k : {8, 9}) check.aligned(k, 2, a[7] > 1);
      break;
    default:
      break;
  }
  return check.fault;
}

namespace {

struct Out {
  std::vector<Region>& list;
  void add(uint8_t place, bool write, int64_t at, int64_t bytes, int64_t n1 = 1, int64_t s1 = 0,
           int64_t n2 = 1, int64_t s2 = 0, int64_t n3 = 1, int64_t s3 = 0) {
    if (!bytes) return;
    Region r{place, write, at, bytes, {n1, n2, n3}, {s1, s2, s3}};
    // Innermost first; a repeat of one, or of the same bytes read again, is none.
    int k = 0;
    for (int i = 0; i < 3; ++i) {
      if (r.n[i] == 1 || r.stride[i] == 0) continue;
      if (k == 0 && r.stride[i] == r.bytes) {
        r.bytes *= r.n[i];
        continue;
      }
      r.n[k] = r.n[i];
      r.stride[k++] = r.stride[i];
    }
    for (; k < 3; ++k) {
      r.n[k] = 1;
      r.stride[k] = 0;
    }
    list.push_back(r);
  }
};

void im2col_regions(const Concrete& c, Out& out) {
  const int64_t* a = c.arg;
  int64_t height = a[2], width = a[3], kernels = a[10] * a[11], rows = a[14];
  for (int64_t j = a[15]; j < a[15] + a[16]; ++j) {
    int64_t c1 = j / kernels, kh = j % kernels / a[11], kw = j % a[11];
    for (int64_t p = a[13]; p < a[13] + rows;) {
      int64_t row = p / a[12], column = p % a[12];
      int64_t last = std::min(a[13] + rows, (row + 1) * a[12]);  // of this output row
      int64_t count = last - p;
      p = last;
      int64_t y = a[4] + row * a[6] + kh * a[8], x = a[5] + column * a[7] + kw * a[9];
      if (y < 0 || y >= height) continue;
      if (x < 0) {
        int64_t skip = up(-x, a[7]);
        x += skip * a[7];
        count -= skip;
      }
      if (x >= width || count <= 0) continue;
      count = std::min(count, up(width - x, a[7]));
      out.add(REGIE_TILE_L1, false, a[1] + c1 * a[17] + (y * width + x) * kBlock, kBlock, count,
              a[7] * kBlock);
    }
  }
  out.add(c.mode[0], true, a[0], a[16] * kFractal, up(rows, 16), a[18]);
}

void mmad_regions(const Concrete& c, Out& out) {
  const int64_t* a = c.arg;
  int64_t k0 = c.mode[0] == REGIE_TILE_F16 ? 16 : 32;
  int64_t m1 = up(a[3], 16), k1 = up(a[5], k0), full = a[4] / 16, rest = a[4] % 16;
  out.add(REGIE_TILE_L0A, false, a[1], k1 * kFractal, m1, a[8]);
  out.add(REGIE_TILE_L0B, false, a[2], (full + (rest > 0)) * kFractal, k1, a[9]);
  for (bool write : {false, true}) {
    if (!write && !a[6]) continue;
    if (full) out.add(REGIE_TILE_L0C, write, a[0], a[3] * 64, full, a[7]);
    if (rest) out.add(REGIE_TILE_L0C, write, a[0] + full * a[7], rest * 4, a[3], 64);
  }
}

}  // namespace

void regions_of(const Concrete& c, std::vector<Region>& list) {
  list.clear();
  Out out{list};
  if (idle(c)) return;
  const int64_t* a = c.arg;
  constexpr uint8_t ub = REGIE_TILE_UB;
  switch (c.op) {
    case REGIE_TILE_OP_COPY:
      out.add(c.mode[1], false, a[1], a[2], a[3], a[5], a[6], a[8], a[9], a[11]);
      out.add(c.mode[0], true, a[0], a[2], a[3], a[4], a[6], a[7], a[9], a[10]);
      break;
    case REGIE_TILE_OP_FILL:
      out.add(c.mode[0], true, a[0], a[2] * bytes_of(c.mode[1]), a[3], a[4]);
      break;
    case REGIE_TILE_OP_FRACTAL:
      out.add(REGIE_TILE_L1, false, a[1], kFractal, a[2], a[4], a[5], a[7]);
      out.add(c.mode[0], true, a[0], kFractal, a[2], a[3], a[5], a[6]);
      break;
    case REGIE_TILE_OP_IM2COL:
      im2col_regions(c, out);
      break;
    case REGIE_TILE_OP_MMAD:
      mmad_regions(c, out);
      break;
    case REGIE_TILE_OP_DRAIN:
      out.add(REGIE_TILE_L0C, false, a[1], a[2] * 64, a[3], a[5]);
      out.add(ub, true, a[0], a[2] * 16 * bytes_of(c.mode[1]), a[3], a[4]);
      break;
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE: {
      int64_t e = bytes_of(c.mode[1]), n = a[3] * e;
      out.add(ub, false, a[1], n, a[4], a[6], a[8], a[10]);
      if (c.mode[2] != REGIE_TILE_BY_SCALAR)
        out.add(ub, false, a[2], c.mode[2] == REGIE_TILE_BY_ROW ? e : n, a[4], a[7], a[8], a[11]);
      int64_t to = c.op == REGIE_TILE_OP_COMPARE ? a[3] / 8 : n;
      if (c.op == REGIE_TILE_OP_BINARY && c.mode[0] == REGIE_TILE_MLA)
        out.add(ub, false, a[0], to, a[4], a[5], a[8], a[9]);
      out.add(ub, true, a[0], to, a[4], a[5], a[8], a[9]);
      break;
    }
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE: {
      int64_t from = bytes_of(c.op == REGIE_TILE_OP_CAST ? c.mode[0] : c.mode[1]), to = bytes_of(c.mode[1]);
      out.add(ub, false, a[1], a[2] * from, a[3], a[5], a[6], a[8]);
      out.add(ub, true, a[0], c.op == REGIE_TILE_OP_REDUCE ? to : a[2] * to, a[3], a[4], a[6], a[7]);
      break;
    }
    case REGIE_TILE_OP_SELECT: {
      int64_t n = a[4] * bytes_of(c.mode[0]);
      out.add(ub, false, a[1], a[4] / 8, a[5], a[7], a[10], a[12]);
      out.add(ub, false, a[2], n, a[5], a[8], a[10], a[13]);
      if (c.mode[1] != REGIE_TILE_BY_SCALAR) out.add(ub, false, a[3], n, a[5], a[9], a[10], a[14]);
      out.add(ub, true, a[0], n, a[5], a[6], a[10], a[11]);
      break;
    }
    case REGIE_TILE_OP_TRANSPOSE:
      out.add(ub, false, a[1], 32, 16, a[3], a[4], a[6], a[7], a[9]);
      out.add(ub, true, a[0], 32, 16, a[2], a[4], a[5], a[7], a[8]);
      break;
    default:
      break;
  }
}

}  // namespace regie::tile
