// Which bytes each instruction touches.

#include <algorithm>

#include "operands.h"
#include "regie/tile/stream.h"

namespace regie::tile {

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
  if (is_idle(c)) return;
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
      // As many rows as there are elements in the 32 bytes of one.
      out.add(ub, false, a[1], kBlock, kBlock / width_bytes(c.mode[0]), a[3], a[4], a[6], a[7], a[9]);
      out.add(ub, true, a[0], kBlock, kBlock / width_bytes(c.mode[0]), a[2], a[4], a[5], a[7], a[8]);
      break;
    case REGIE_TILE_OP_REQUANT: {
      const int64_t e = 16 * bytes_of(c.mode[1]);
      out.add(REGIE_TILE_L0C, false, a[1], a[7] * 64, a[9], a[11], a[14], a[16]);
      out.add(ub, false, a[2], 64, a[9], a[12], a[14], a[17]);
      if (a[4]) out.add(ub, false, a[3], 64, a[9], a[13], a[14], a[18]);
      out.add(ub, true, a[0], e, a[7], a[8], a[9], a[10], a[14], a[15]);
      break;
    }
    default:
      break;
  }
}

}  // namespace regie::tile
