#include "programs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace regie::tile_test {

namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

void close(double got, double want, double magnitude, const std::string& where) {
  // A half has 11 bits; sums in float of values of this magnitude add little to that.
  double allowed = std::abs(want) * 0x1p-11 + magnitude * 0x1p-16 + 0x1p-24;
  ASSERT_NEAR(got, want, allowed) << where;
}

}  // namespace

double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double v = exponent == 31 ? (mantissa ? NAN : INFINITY)
             : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                            : std::ldexp(mantissa, -24);
  return bits & 0x8000 ? -v : v;
}

uint16_t nearest_half(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double v = std::abs(value);
  if (std::isnan(v)) return sign | 0x7e00;
  if (v >= 65520) return sign | 0x7c00;
  if (v < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(v, 24)));
  int exponent = std::ilogb(v);
  double mantissa = std::nearbyint(std::ldexp(v, 10 - exponent));  // 1024 .. 2048
  return sign | static_cast<uint16_t>((exponent + 14) * 1024 + static_cast<int>(mantissa));
}

Tensor random_halves(size_t count, uint32_t seed, double scale) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Tensor t(2 * count);
  for (size_t i = 0; i < count; ++i) t.put(i, uniform(random));
  return t;
}

std::vector<simulator::TileBuffer> bind(Case& c) {
  std::vector<simulator::TileBuffer> buffers;
  for (Tensor& t : c.buffers) {
    simulator::TileBuffer b;
    b.data = t.bytes.data();
    b.bytes = t.bytes.size();
    buffers.push_back(b);
  }
  return buffers;
}

simulator::TileResult run(Case& c, const simulator::TileMachine& m, bool timeline) {
  auto task = simulator::TileTask::prepare(tile::encode(c.program), m, c.name);
  for (size_t i = 0; i < c.program.gm.size(); ++i)
    if (c.program.gm[i].kind != REGIE_TILE_OPERAND)
      std::fill(c.buffers[i].bytes.begin(), c.buffers[i].bytes.end(), 0xa5);
  return task->run(bind(c), {true, true, timeline});
}

Case vector_add(int64_t count, int64_t tile, uint32_t cores) {
  Case c{"add",
         {},
         {random_halves(size_t(count), 1), random_halves(size_t(count), 2), Tensor(size_t(count) * 2)}};
  int64_t tiles = up(count, tile), a_core = up(tiles, cores), bytes = tile * 2;
  Builder b(cores, chip());
  uint32_t x = b.operand(0, count * 2), y = b.operand(1, count * 2), z = b.result(0, count * 2);
  b.loop(2, [&](const Expr& half) {
    b.set(VECTOR, LOAD, half);
    b.set(STORE, VECTOR, half);
  });
  b.loop(clamp(0, a_core, tiles - a_core * b.core()), [&](const Expr& i) {
    Expr at = b.core() * (a_core * bytes) + i * bytes, size = min(count * 2 - at, bytes);
    Expr n = min(count - b.core() * (a_core * tile) - i * tile, tile);
    b.wait(VECTOR, LOAD, i % 2);
    b.copy(ub((i % 2) * bytes), gm(x, at), size);
    b.copy(ub((i % 2) * bytes + 2 * bytes), gm(y, at), size);
    b.set(LOAD, VECTOR, i % 2);
    b.wait(LOAD, VECTOR, i % 2);
    b.wait(STORE, VECTOR, i % 2);
    b.binary(REGIE_TILE_ADD, F16, ub((i % 2) * bytes + 4 * bytes), ub((i % 2) * bytes),
             ub((i % 2) * bytes + 2 * bytes), n);
    b.set(VECTOR, LOAD, i % 2);
    b.set(VECTOR, STORE, i % 2);
    b.wait(VECTOR, STORE, i % 2);
    b.copy(gm(z, at), ub((i % 2) * bytes + 4 * bytes), size);
    b.set(STORE, VECTOR, i % 2);
  });
  b.loop(2, [&](const Expr& half) {
    b.wait(VECTOR, LOAD, half);
    b.wait(STORE, VECTOR, half);
  });
  c.program = b.finish();
  return c;
}

void check_add(const Case& c, int64_t count) {
  for (size_t i = 0; i < size_t(count); ++i)
    ASSERT_EQ(c.buffers[2].half(i), nearest_half(c.buffers[0].value(i) + c.buffers[1].value(i))) << i;
}

Case matmul(int64_t m, int64_t n, int64_t k, int64_t tile_m, int64_t tile_k, uint32_t cores) {
  int64_t k1 = up(k, 16), n1 = n / 16, blocks = up(m, tile_m), a_core = up(blocks, cores), kt = tile_k / 16,
          chunks = up(k1, kt);
  Case c{"matmul",
         {},
         {random_halves(size_t(k1 * m * 16), 3), random_halves(size_t(k1 * n * 16), 4),
          Tensor(size_t(n * m) * 2)}};
  Builder b(cores, chip());
  uint32_t x = b.operand(0, k1 * m * 32), w = b.operand(1, k1 * n * 32), y = b.result(0, n * m * 2);
  int64_t left = k1 * tile_m * 32;  // bytes of a tile of A in L1; B behind it
  b.copy(l1(left), gm(w, 0), k1 * n * 32);
  b.set(MOVE, LOAD, 0);
  b.loop(2, [&](const Expr& half) { b.set(CUBE, MOVE, half); });
  b.set(VECTOR, CUBE, 0);
  b.set(STORE, VECTOR, 0);
  b.loop(clamp(0, a_core, blocks - a_core * b.core()), [&](const Expr& i) {
    Expr row = b.core() * (a_core * tile_m) + i * tile_m;
    Expr rows = min(m - row, tile_m);
    b.wait(MOVE, LOAD, 0);
    b.copy(l1(0), gm(x, row * 32), rows * 32, {k1, tile_m * 32, m * 32});
    if (m % tile_m)
      b.fill(l1(rows * 32), F16, 0, clamp(0, tile_m * 16, (row + (tile_m - m)) * 16), {k1, tile_m * 32});
    b.set(LOAD, MOVE, 0);
    b.wait(LOAD, MOVE, 0);
    b.wait(VECTOR, CUBE, 0);
    b.loop(chunks, [&](const Expr& q) {
      Expr steps = min(k1 - q * kt, kt);
      b.wait(CUBE, MOVE, q % 2);
      b.fractal(l0a((q % 2) * 32768), l1(q * (kt * tile_m * 32)), {tile_m / 16, kt * 512, 512},
                {steps, 512, tile_m * 32});
      b.fractal(l0b((q % 2) * 32768), l1(q * (kt * n * 32) + left), {steps * n1, 512, 512});
      b.set(MOVE, CUBE, q % 2);
      b.wait(MOVE, CUBE, q % 2);
      b.mmad(F16, l0c(0), l0a((q % 2) * 32768), l0b((q % 2) * 32768), rows, n, min(k - q * tile_k, tile_k),
             min(q, 1), tile_m * 64, kt * 512, n1 * 512);
      b.set(CUBE, MOVE, q % 2);
    });
    b.set(MOVE, LOAD, 0);
    b.set(CUBE, VECTOR, 0);
    b.wait(CUBE, VECTOR, 0);
    b.wait(STORE, VECTOR, 0);
    b.drain(F32, F16, ub(0), l0c(0), rows, n1, tile_m * 32, tile_m * 64);
    b.set(VECTOR, CUBE, 0);
    b.set(VECTOR, STORE, 0);
    b.wait(VECTOR, STORE, 0);
    b.copy(gm(y, row * 32), ub(0), rows * 32, {n1, m * 32, tile_m * 32});
    b.set(STORE, VECTOR, 0);
  });
  b.wait(MOVE, LOAD, 0);
  b.loop(2, [&](const Expr& half) { b.wait(CUBE, MOVE, half); });
  b.wait(VECTOR, CUBE, 0);
  b.wait(STORE, VECTOR, 0);
  c.program = b.finish();
  return c;
}

void check_matmul(const Case& c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t q = 0; q < k; ++q) {
        double p = c.buffers[0].value(size_t((q / 16 * m + i) * 16 + q % 16)) *
                   c.buffers[1].value(size_t((q / 16 * n + j) * 16 + q % 16));
        sum += p;
        magnitude += std::abs(p);
      }
      close(c.buffers[2].value(size_t((j / 16 * m + i) * 16 + j % 16)), sum, magnitude,
            "row " + std::to_string(i) + ", column " + std::to_string(j));
      if (testing::Test::HasFatalFailure()) return;
    }
}

Case softmax(int64_t rows, int64_t n, int64_t tile_rows, uint32_t cores) {
  Case c{"softmax", {}, {random_halves(size_t(rows * n), 5, 4.0), Tensor(size_t(rows * n) * 2)}};
  int64_t blocks = up(rows, tile_rows), a_core = up(blocks, cores);
  int64_t in = 0, wide = up(tile_rows * n * 2, 32) * 32, scalars = wide + up(tile_rows * n * 4, 32) * 32,
          out = scalars + up(tile_rows * 4, 32) * 32;
  Builder b(cores, chip());
  uint32_t x = b.operand(0, rows * n * 2), y = b.result(0, rows * n * 2);
  b.set(VECTOR, LOAD, 0);
  b.set(STORE, VECTOR, 0);
  b.loop(clamp(0, a_core, blocks - a_core * b.core()), [&](const Expr& i) {
    Expr row = b.core() * (a_core * tile_rows) + i * tile_rows, count = min(rows - row, tile_rows);
    tile::Repeat each{count, n * 4, n * 4, 4};
    b.wait(VECTOR, LOAD, 0);
    b.copy(ub(in), gm(x, row * (n * 2)), count * (n * 2));
    b.set(LOAD, VECTOR, 0);
    b.wait(LOAD, VECTOR, 0);
    b.cast(F16, F32, REGIE_TILE_RINT, ub(wide), ub(in), count * n);
    b.set(VECTOR, LOAD, 0);
    b.reduce(REGIE_TILE_ROW_MAX, F32, ub(scalars), ub(wide), n, {count, 4, n * 4});
    b.binary_row(REGIE_TILE_SUB, F32, ub(wide), ub(wide), ub(scalars), n, each);
    b.unary(REGIE_TILE_EXP, F32, ub(wide), ub(wide), count * n);
    b.reduce(REGIE_TILE_SUM, F32, ub(scalars), ub(wide), n, {count, 4, n * 4});
    b.binary_row(REGIE_TILE_DIV, F32, ub(wide), ub(wide), ub(scalars), n, each);
    b.wait(STORE, VECTOR, 0);
    b.cast(F32, F16, REGIE_TILE_RINT, ub(out), ub(wide), count * n);
    b.set(VECTOR, STORE, 0);
    b.wait(VECTOR, STORE, 0);
    b.copy(gm(y, row * (n * 2)), ub(out), count * (n * 2));
    b.set(STORE, VECTOR, 0);
  });
  b.wait(VECTOR, LOAD, 0);
  b.wait(STORE, VECTOR, 0);
  c.program = b.finish();
  return c;
}

void check_softmax(const Case& c, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max(most, c.buffers[0].value(size_t(r * n + i)));
    for (int64_t i = 0; i < n; ++i) sum += std::exp(c.buffers[0].value(size_t(r * n + i)) - most);
    for (int64_t i = 0; i < n; ++i) {
      double want = std::exp(c.buffers[0].value(size_t(r * n + i)) - most) / sum;
      close(c.buffers[1].value(size_t(r * n + i)), want, want,
            "row " + std::to_string(r) + ", " + std::to_string(i));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

Case conv(const Conv& v, int64_t tile_m, int64_t tile_k, uint32_t cores) {
  int64_t c1 = up(v.channels, 16), n1 = up(v.filters, 16), k1 = c1 * v.kernel_h * v.kernel_w,
          places = v.out_h() * v.out_w();
  int64_t map = c1 * v.height * v.width * 32, weights = k1 * n1 * 512, kt = tile_k, chunks = up(k1, kt);
  int64_t blocks = up(places, tile_m), a_core = up(blocks, cores);
  Case c{"conv",
         {},
         {random_halves(size_t(map / 2), 6), random_halves(size_t(weights / 2), 7),
          Tensor(size_t(n1 * places * 32))}};
  for (int64_t q = 0; q < c1 * v.height * v.width;
       ++q)  // channels that are not there are zero in both operands
    for (int64_t x = 0; x < 16; ++x)
      if (q / (v.height * v.width) * 16 + x >= v.channels) c.buffers[0].put(size_t(q * 16 + x), 0);
  for (int64_t q = 0; q < k1 * n1 * 16; ++q)
    for (int64_t x = 0; x < 16; ++x)
      if (q / 16 / n1 / (v.kernel_h * v.kernel_w) * 16 + x >= v.channels ||
          q / 16 % n1 * 16 + q % 16 >= v.filters)
        c.buffers[1].put(size_t(q * 16 + x), 0);
  Builder b(cores, chip());
  uint32_t x = b.operand(0, uint64_t(map)), w = b.operand(1, uint64_t(weights)),
           y = b.result(0, uint64_t(n1 * places * 32));
  b.copy(l1(0), gm(x, 0), map);
  b.copy(l1(map), gm(w, 0), weights);
  b.set(LOAD, MOVE, 0);
  b.wait(LOAD, MOVE, 0);
  b.loop(2, [&](const Expr& half) { b.set(CUBE, MOVE, half); });
  b.set(VECTOR, CUBE, 0);
  b.set(STORE, VECTOR, 0);
  b.loop(clamp(0, a_core, blocks - a_core * b.core()), [&](const Expr& i) {
    Expr first = b.core() * (a_core * tile_m) + i * tile_m, rows = min(places - first, tile_m);
    b.wait(VECTOR, CUBE, 0);
    b.loop(chunks, [&](const Expr& q) {
      Expr steps = min(k1 - q * kt, kt);
      tile::Im2col window;
      window.height = v.height;
      window.width = v.width;
      window.top = -v.top;
      window.left = -v.left;
      window.stride_h = v.stride_h;
      window.stride_w = v.stride_w;
      window.dilation_h = v.dilation_h;
      window.dilation_w = v.dilation_w;
      window.kernel_h = v.kernel_h;
      window.kernel_w = v.kernel_w;
      window.out_width = v.out_w();
      window.first_row = first;
      window.rows = rows;
      window.first_k = q * kt;
      window.k_blocks = steps;
      window.plane = v.height * v.width * 32;
      window.row_stride = kt * 512;
      b.wait(CUBE, MOVE, q % 2);
      b.im2col(l0a((q % 2) * 32768), l1(0), F16, window);
      b.fractal(l0b((q % 2) * 32768), l1(q * (kt * n1 * 512) + map), {steps * n1, 512, 512});
      b.set(MOVE, CUBE, q % 2);
      b.wait(MOVE, CUBE, q % 2);
      b.mmad(F16, l0c(0), l0a((q % 2) * 32768), l0b((q % 2) * 32768), rows, n1 * 16, steps * 16, min(q, 1),
             tile_m * 64, kt * 512, n1 * 512);
      b.set(CUBE, MOVE, q % 2);
    });
    b.set(CUBE, VECTOR, 0);
    b.wait(CUBE, VECTOR, 0);
    b.wait(STORE, VECTOR, 0);
    b.drain(F32, F16, ub(0), l0c(0), rows, n1, tile_m * 32, tile_m * 64);
    b.set(VECTOR, CUBE, 0);
    b.set(VECTOR, STORE, 0);
    b.wait(VECTOR, STORE, 0);
    b.copy(gm(y, first * 32), ub(0), rows * 32, {n1, places * 32, tile_m * 32});
    b.set(STORE, VECTOR, 0);
  });
  b.loop(2, [&](const Expr& half) { b.wait(CUBE, MOVE, half); });
  b.wait(VECTOR, CUBE, 0);
  b.wait(STORE, VECTOR, 0);
  c.program = b.finish();
  return c;
}

void check_conv(const Case& c, const Conv& v) {
  int64_t n1 = up(v.filters, 16), places = v.out_h() * v.out_w();
  for (int64_t f = 0; f < n1 * 16; ++f)
    for (int64_t oy = 0; oy < v.out_h(); ++oy)
      for (int64_t ox = 0; ox < v.out_w(); ++ox) {
        double sum = 0, magnitude = 0;
        for (int64_t ch = 0; ch < v.channels; ++ch)
          for (int64_t ky = 0; ky < v.kernel_h; ++ky)
            for (int64_t kx = 0; kx < v.kernel_w; ++kx) {
              int64_t iy = oy * v.stride_h + ky * v.dilation_h - v.top,
                      ix = ox * v.stride_w + kx * v.dilation_w - v.left;
              if (iy < 0 || iy >= v.height || ix < 0 || ix >= v.width) continue;
              int64_t fractal = ((ch / 16 * v.kernel_h + ky) * v.kernel_w + kx) * n1 + f / 16;
              double p =
                  c.buffers[0].value(size_t(((ch / 16 * v.height + iy) * v.width + ix) * 16 + ch % 16)) *
                  c.buffers[1].value(size_t(fractal * 256 + f % 16 * 16 + ch % 16));
              sum += p;
              magnitude += std::abs(p);
            }
        close(
            c.buffers[2].value(size_t((f / 16 * places + oy * v.out_w() + ox) * 16 + f % 16)), sum, magnitude,
            "filter " + std::to_string(f) + ", row " + std::to_string(oy) + ", column " + std::to_string(ox));
        if (testing::Test::HasFatalFailure()) return;
      }
}

Case bytes_product(int64_t m, int64_t n, int64_t k, uint32_t cores, bool requants) {
  const int64_t k1 = (k + 31) / 32, rows = m / cores, z = -3;
  Case c{requants ? "requant" : "bytes",
         {},
         {Tensor(static_cast<size_t>(k * m)), Tensor(static_cast<size_t>(k1 * n * 32)),
          Tensor(static_cast<size_t>(8 * n)), Tensor(static_cast<size_t>(m * n))}};
  std::mt19937 random(9);
  for (size_t g = 0; g < 2; ++g)
    for (uint8_t& v : c.buffers[g].bytes) v = static_cast<uint8_t>(random());
  for (int64_t i = 0; i < n; ++i) {
    const int32_t add = static_cast<int32_t>(random() % 20000) - 10000;
    const float scale = i % 2 ? 0x1p-10F : 0x1.8p-11F;
    std::memcpy(c.buffers[2].bytes.data() + 4 * i, &add, 4);
    std::memcpy(c.buffers[2].bytes.data() + 4 * (n + i), &scale, 4);
  }
  // A is k rows of m bytes: turned over on its way in, 32 x 32 at a time. Rows of a core are whole such
  // blocks.
  Builder b(cores, chip());
  const uint32_t x = b.operand(0, static_cast<uint64_t>(k * m)),
                 w = b.operand(1, static_cast<uint64_t>(k1 * n * 32)),
                 t = b.operand(2, static_cast<uint64_t>(8 * n)),
                 y = b.result(0, static_cast<uint64_t>(m * n));
  const int64_t panel = 32768, tables = 65536, sums = 66560, halves = 98304, bytes = 131072;
  if (k % 32) {
    b.fill(ub((k1 - 1) * 32 * rows), S8, 0, 32 * rows);
    b.set(VECTOR, LOAD, 0);
    b.wait(VECTOR, LOAD, 0);
  }
  b.copy(ub(0), gm(x, b.core() * rows), rows, {k, rows, m});
  b.copy(ub(tables), gm(t, 0), 8 * n);
  b.copy(l1(65536), gm(w, 0), k1 * n * 32);
  b.set(LOAD, VECTOR, 0);
  b.wait(LOAD, VECTOR, 0);
  b.set(LOAD, MOVE, 0);
  b.wait(LOAD, MOVE, 0);
  b.transpose(ub(panel), ub(0), 32, rows, {rows / 32, 1024, 32}, {k1, rows * 32, rows * 32}, REGIE_TILE_B8);
  b.set(VECTOR, STORE, 0);
  b.wait(VECTOR, STORE, 0);
  b.copy(l1(0), ub(panel), k1 * rows * 32);
  b.set(STORE, MOVE, 0);
  b.wait(STORE, MOVE, 0);
  b.fractal(l0a(0), l1(0), {rows / 16, k1 * 512, 512}, {k1, 512, rows * 32});
  b.fractal(l0b(0), l1(65536), {k1 * n / 16, 512, 512});
  b.set(MOVE, CUBE, 0);
  b.wait(MOVE, CUBE, 0);
  b.mmad(U8, l0c(0), l0a(0), l0b(0), rows, n, k, 0, rows * 64, k1 * 512, n * 32);
  b.set(CUBE, VECTOR, 0);
  b.wait(CUBE, VECTOR, 0);
  const int64_t count = rows * n;
  const tile::Repeat by_row{rows, 64, 64, 0}, by_block{n / 16, rows * 64, rows * 64, 64};
  if (requants) {
    tile::Requant q{ub(tables + 4 * n), ub(tables), false, z, n};
    b.requant(S32, S8, ub(bytes), l0c(0), q, rows, {n / 16, 16, rows * 64, 64});
  } else {
    b.drain(S32, S32, ub(sums), l0c(0), rows, n / 16, rows * 64, rows * 64);
    b.binary(REGIE_TILE_ADD, S32, ub(sums), ub(sums), ub(tables), 16, by_row, by_block);
    b.cast(S32, F32, REGIE_TILE_RINT, ub(sums), ub(sums), count);
    b.binary(REGIE_TILE_MUL, F32, ub(sums), ub(sums), ub(tables + 4 * n), 16, by_row, by_block);
    b.cast(F32, F16, REGIE_TILE_RINT, ub(halves), ub(sums), 16, {rows, n * 2, 64}, {n / 16, 32, rows * 64});
    b.binary_scalar(REGIE_TILE_ADD, F16, ub(halves), ub(halves), tile::scalar(static_cast<float>(z)), count);
    b.cast(F16, S8, REGIE_TILE_RINT, ub(bytes), ub(halves), count);
  }
  b.set(VECTOR, STORE, 0);
  b.wait(VECTOR, STORE, 0);
  b.copy(gm(y, b.core() * count), ub(bytes), count);
  c.program = b.finish();
  return c;
}

void check_bytes_product(const Case& c, int64_t m, int64_t n, int64_t k, bool requants) {
  const int64_t z = -3;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      float scale = 0;
      std::memcpy(&sum, c.buffers[2].bytes.data() + 4 * j, 4);
      std::memcpy(&scale, c.buffers[2].bytes.data() + 4 * (n + j), 4);
      for (int64_t l = 0; l < k; ++l)
        sum += int32_t{c.buffers[0].bytes[static_cast<size_t>(l * m + i)]} *
               static_cast<int8_t>(c.buffers[1].bytes[static_cast<size_t>((l / 32 * n + j) * 32 + l % 32)]);
      auto half = [](double v) { return half_value(nearest_half(v)); };
      const double real = static_cast<double>(static_cast<float>(sum) * scale);
      const double value = requants ? std::nearbyint(real) + z : half(half(real) + z);
      ASSERT_EQ(static_cast<int8_t>(c.buffers[3].bytes[static_cast<size_t>(i * n + j)]),
                std::clamp(std::nearbyint(value), -128.0, 127.0))
          << i << ' ' << j;
    }
}

}  // namespace regie::tile_test
