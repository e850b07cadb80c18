// What programs compute, against references in double precision.

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/half.h"
#include "programs.h"
#include "regie/half.hpp"
#include "regie/plugin.hpp"

namespace regie::tile_test {
namespace {

TEST(TileNumerics, HalvesAreIeee) {
  for (uint32_t h = 0; h < 65536; ++h) {
    float f = sdk::half_value(static_cast<uint16_t>(h));
    double want = half_value(static_cast<uint16_t>(h));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(f));
      continue;
    }
    ASSERT_EQ(f, want) << h;
    ASSERT_EQ(sdk::half_bits(f), h);
  }
  std::mt19937 random(9);
  for (int i = 0; i < 300000; ++i) {
    uint32_t bits = random();
    float f = std::bit_cast<float>(i % 2 ? bits : (bits & 0x8fffffffu) | 0x30000000u);
    if (std::isnan(f)) continue;
    ASSERT_EQ(sdk::half_bits(f), nearest_half(f)) << f;
    uint16_t many[9];
    float floats[9];
    std::fill_n(floats, 9, f);
    simulator::floats_to_halves(floats, many, 9);
    ASSERT_EQ(many[0], nearest_half(f)) << f;
    ASSERT_EQ(many[8], nearest_half(f)) << f;
  }
}

TEST(TileNumerics, VectorAdd) {
  for (auto [count, tile, cores] :
       {std::tuple{1, 64, 1}, {64, 64, 1}, {1000, 128, 3}, {4097, 256, 4}, {130, 64, 32}}) {
    Case c = vector_add(count, tile, static_cast<uint32_t>(cores));
    run(c, machine());
    check_add(c, count);
  }
}

TEST(TileNumerics, MatmulWithPingPongAndRaggedEdges) {
  for (auto [m, n, k, tm, tk, cores] : {std::tuple{16, 16, 16, 16, 16, 1},
                                        {64, 64, 128, 32, 32, 1},
                                        {50, 48, 100, 32, 48, 2},
                                        {1, 16, 1, 16, 16, 1},
                                        {129, 80, 77, 64, 32, 5},
                                        {33, 32, 256, 16, 64, 32}}) {
    Case c = matmul(m, n, k, tm, tk, static_cast<uint32_t>(cores));
    run(c, machine());
    check_matmul(c, m, n, k);
    if (HasFatalFailure()) FAIL() << m << " x " << n << " x " << k;
  }
}

TEST(TileNumerics, SoftmaxByRows) {
  for (auto [rows, n, tile, cores] :
       {std::tuple{1, 1, 1, 1}, {8, 16, 4, 1}, {37, 100, 8, 3}, {64, 333, 5, 8}}) {
    Case c = softmax(rows, n, tile, static_cast<uint32_t>(cores));
    run(c, machine());
    check_softmax(c, rows, n);
  }
}

TEST(TileNumerics, ConvolutionByIm2col) {
  std::mt19937 random(17);
  auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 60;) {
    Conv v;
    v.channels = pick(1, 40);
    v.filters = pick(1, 40);
    v.height = pick(1, 14);
    v.width = pick(1, 14);
    v.kernel_h = pick(1, 4);
    v.kernel_w = pick(1, 4);
    v.stride_h = pick(1, 3);
    v.stride_w = pick(1, 3);
    v.dilation_h = pick(1, 2);
    v.dilation_w = pick(1, 2);
    v.top = pick(0, 3);
    v.left = pick(0, 3);
    v.bottom = pick(0, 3);
    v.right = pick(0, 3);
    if (v.height + v.top + v.bottom < v.dilation_h * (v.kernel_h - 1) + 1) continue;
    if (v.width + v.left + v.right < v.dilation_w * (v.kernel_w - 1) + 1) continue;
    Case c = conv(v, 16 * pick(1, 4), pick(1, 6), static_cast<uint32_t>(pick(1, 4)));
    run(c, machine());
    check_conv(c, v);
    if (HasFatalFailure()) FAIL() << "case " << i;
    ++i;
  }
}

// Operand by row, broadcasts, masks, casts, transposition: one UB program over one array of 256 halves.
TEST(TileNumerics, VectorUnit) {
  Case c{"vectors", {}, {random_halves(256, 11, 40.0), Tensor(8192)}};
  Builder b(1, chip());
  uint32_t x = b.operand(0, 512), y = b.result(0, 8192);
  b.copy(ub(0), gm(x, 0), 512);
  b.set(LOAD, VECTOR, 0);
  b.wait(LOAD, VECTOR, 0);
  b.transpose(ub(512), ub(0), 32, 32);
  b.binary(REGIE_TILE_MUL, F16, ub(1024), ub(0), ub(0), 16, {16, 32, 32, 0});  // row times the first row
  b.binary_scalar(REGIE_TILE_MAX, F16, ub(1536), ub(0), tile::scalar(3.0f), 256);
  b.compare_scalar(REGIE_TILE_LT, F16, ub(7000), ub(0), tile::scalar(-1.5f), 256);
  b.select_scalar(F16, ub(2048), ub(7000), ub(0), tile::scalar(7.0f), 256);
  b.cast(F16, S32, REGIE_TILE_FLOOR, ub(2560), ub(0), 256);  // 1024 bytes
  b.cast(F16, S8, REGIE_TILE_RINT, ub(3584), ub(0), 256);
  b.cast(F16, U8, REGIE_TILE_AWAY, ub(3840), ub(0), 256);
  b.cast(S8, F16, REGIE_TILE_RINT, ub(4096), ub(3584), 256);
  b.reduce(REGIE_TILE_SUM, F16, ub(4608), ub(0), 16, {16, 2, 32});
  b.fill(ub(4640), F16, tile::scalar(0.5f), 256);
  b.binary(REGIE_TILE_MLA, F16, ub(4640), ub(0), ub(1536), 256);
  b.unary(REGIE_TILE_ABS, F16, ub(5152), ub(0), 256);
  b.unary(REGIE_TILE_RSQRT, F16, ub(5664), ub(5152), 256);
  b.set(VECTOR, STORE, 0);
  b.wait(VECTOR, STORE, 0);
  b.copy(gm(y, 0), ub(512), 5664);
  c.program = b.finish();
  run(c, machine());
  const Tensor &in = c.buffers[0], &out = c.buffers[1];
  auto at = [&](size_t offset) { return offset - 512; };
  for (size_t i = 0; i < 256; ++i) {
    double v = in.value(i);
    SCOPED_TRACE("element " + std::to_string(i) + ", " + std::to_string(v));
    EXPECT_EQ(out.half(at(512) / 2 + i % 16 * 16 + i / 16), in.half(i));
    EXPECT_EQ(out.half(at(1024) / 2 + i), nearest_half(v * in.value(i % 16)));
    EXPECT_EQ(out.value(at(1536) / 2 + i), std::max(v, 3.0));
    EXPECT_EQ(out.value(at(2048) / 2 + i), v < -1.5 ? v : 7.0);
    int32_t whole;
    std::memcpy(&whole, out.bytes.data() + at(2560) + 4 * i, 4);
    EXPECT_EQ(whole, static_cast<int32_t>(std::floor(v)));
    EXPECT_EQ(static_cast<int8_t>(out.bytes[at(3584) + i]), static_cast<int>(std::nearbyint(v)));
    EXPECT_EQ(out.bytes[at(3840) + i], std::max(0, static_cast<int>(std::round(v))));
    EXPECT_EQ(out.value(at(4096) / 2 + i), std::nearbyint(v));
    EXPECT_NEAR(out.value(at(4640) / 2 + i), 0.5 + v * std::max(v, 3.0),
                std::abs(v * std::max(v, 3.0)) * 0x1p-11 + 0x1p-12);
    EXPECT_EQ(out.value(at(5152) / 2 + i), std::abs(v));
    EXPECT_NEAR(out.value(at(5664) / 2 + i), 1 / std::sqrt(std::abs(v)), 0x1p-10 / std::sqrt(std::abs(v)));
  }
  for (size_t r = 0; r < 16; ++r) {
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < 16; ++i) {
      sum += in.value(r * 16 + i);
      magnitude += std::abs(in.value(r * 16 + i));
    }
    EXPECT_NEAR(out.value(at(4608) / 2 + r), sum, std::abs(sum) * 0x1p-11 + magnitude * 0x1p-20);
  }
}

// Transpositions of bytes and of words, several blocks at once.
TEST(TileNumerics, TranspositionsOfAllWidths) {
  Case c{"transpositions", {}, {Tensor(4096), Tensor(8192)}};
  std::mt19937 random(5);
  for (uint8_t& v : c.buffers[0].bytes) v = static_cast<uint8_t>(random());
  Builder b(1, chip());
  uint32_t x = b.operand(0, 4096), y = b.result(0, 8192);
  b.copy(ub(0), gm(x, 0), 4096);
  b.set(LOAD, VECTOR, 0);
  b.wait(LOAD, VECTOR, 0);
  b.transpose(ub(4096), ub(0), 64, 64, {2, 32, 2048}, {2, 2048, 32}, REGIE_TILE_B8);     // 64 x 64 bytes
  b.transpose(ub(8192), ub(0), 128, 128, {4, 32, 1024}, {4, 1024, 32}, REGIE_TILE_B32);  // 32 x 32 words
  b.set(VECTOR, STORE, 0);
  b.wait(VECTOR, STORE, 0);
  b.copy(gm(y, 0), ub(4096), 8192);
  c.program = b.finish();
  EXPECT_EQ(disassemble(c.program), disassemble(tile::assemble(disassemble(c.program), "again")));
  EXPECT_NE(disassemble(c.program).find("transpose b8 to="), std::string::npos);
  run(c, machine());
  const std::vector<uint8_t>&in = c.buffers[0].bytes, &out = c.buffers[1].bytes;
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 64; ++j) ASSERT_EQ(out[j * 64 + i], in[i * 64 + j]) << i << ' ' << j;
  for (size_t i = 0; i < 32; ++i)
    for (size_t j = 0; j < 32; ++j)
      ASSERT_TRUE(std::equal(&in[(i * 32 + j) * 4], &in[(i * 32 + j) * 4] + 4, &out[4096 + (j * 32 + i) * 4]))
          << i << ' ' << j;
}

// u8 by s8, corrected, scaled and rounded to s8.
TEST(TileNumerics, ProductsOfBytes) {
  for (auto [m, n, k, cores] : {std::array<int64_t, 4>{64, 32, 70, 2}, {96, 16, 64, 3}, {128, 48, 9, 1}}) {
    Case c = bytes_product(m, n, k, static_cast<uint32_t>(cores));
    run(c, machine());
    check_bytes_product(c, m, n, k);
    Case requant = bytes_product(m, n, k, static_cast<uint32_t>(cores), true);
    run(requant, machine());
    check_bytes_product(requant, m, n, k, true);
  }
}

// s8 by s8 in s32, a fractal turned over, and what a core wrote before a barrier read by the other.
TEST(TileNumerics, BytesAndBarriers) {
  Case c{"bytes", {}, {Tensor(1024), Tensor(1024), Tensor(2 * 256), Tensor(1024)}};
  std::mt19937 random(3);
  for (int t = 0; t < 2; ++t)
    for (uint8_t& v : c.buffers[static_cast<size_t>(t)].bytes) v = static_cast<uint8_t>(random());
  Builder b(2, chip());
  uint32_t x = b.operand(0, 1024), w = b.operand(1, 1024), s = b.scratch(0, 512), y = b.result(0, 1024);
  b.copy(l1(0), gm(x, 0), 1024);
  b.copy(l1(1024), gm(w, 0), 1024);
  b.set(LOAD, MOVE, 0);
  b.wait(LOAD, MOVE, 0);
  b.fractal(l0a(0), l1(0), {2, 512, 512});  // [16, 64] by [64, 16]
  b.fractal(l0b(0), l1(1024), {2, 512, 512});
  b.set(MOVE, CUBE, 0);
  b.wait(MOVE, CUBE, 0);
  b.mmad(S8, l0c(0), l0a(0), l0b(0), 16, 16, 50, 0, 0, 0, 512);
  b.set(CUBE, VECTOR, 0);
  b.wait(CUBE, VECTOR, 0);
  b.drain(S32, S32, ub(0), l0c(0), 16, 1, 0, 0);
  b.set(VECTOR, STORE, 0);
  b.wait(VECTOR, STORE, 0);
  b.copy(gm(s, b.core() * 256), ub(b.core() * 256), 256);  // a quarter of the sums each, 4 rows
  b.barrier();
  b.copy(ub(2048), gm(s, b.core() * -256 + 256), 256);  // the other's
  b.set(LOAD, STORE, 0);
  b.wait(LOAD, STORE, 0);
  b.copy(gm(y, b.core() * 512), ub(2048), 256);
  b.copy(gm(y, b.core() * 512 + 256), ub(512 + b.core() * 256), 256);
  c.program = b.finish();
  run(c, machine());
  auto sum = [&](int64_t r, int64_t n) {
    int32_t total = 0;
    for (int64_t k = 0; k < 50; ++k)
      total += static_cast<int8_t>(c.buffers[0].bytes[static_cast<size_t>(k / 32 * 512 + r * 32 + k % 32)]) *
               static_cast<int8_t>(c.buffers[1].bytes[static_cast<size_t>(k / 32 * 512 + n * 32 + k % 32)]);
    return total;
  };
  for (int64_t i = 0; i < 256; ++i) {
    int32_t got;
    std::memcpy(&got, c.buffers[3].bytes.data() + 4 * i, 4);
    int64_t quarter = i / 64, core = quarter / 2;
    int64_t row = (quarter % 2 == 0 ? 1 - core : 2 + core) * 4 + i % 64 / 16;
    EXPECT_EQ(got, sum(row, i % 16)) << i;
  }
}

// Sums of bytes out of L0C: with a number added, times a factor, to f32 and to bytes, two blocks of columns
// side by side.
TEST(TileNumerics, SumsBecomeBytesOnTheirWay) {
  for (uint8_t type : {F32, S8, U8})
    for (int relu : {0, 1})
      for (int added : {0, 1}) {
        Case c{"requant", {}, {Tensor(512), Tensor(1024), Tensor(256), Tensor(16 * 32 * 4)}};
        std::mt19937 random(5);
        for (size_t t = 0; t < 2; ++t)
          for (uint8_t& v : c.buffers[t].bytes) v = static_cast<uint8_t>(random());
        int32_t addends[32];
        float factors[32];
        for (int n = 0; n < 32; ++n) {
          addends[n] = static_cast<int32_t>(random() % 100000) - 50000;
          // Powers of two among them, so that some are just between two whole numbers.
          factors[n] = n == 7 ? NAN : n % 2 ? 0x1p-9F : 0.0031F * static_cast<float>(n + 1);
        }
        std::memcpy(c.buffers[2].bytes.data(), addends, 128);
        std::memcpy(c.buffers[2].bytes.data() + 128, factors, 128);
        const int64_t element = tile::bytes_of(type), offset = type == F32 ? 0 : type == S8 ? -7 : 100;
        Builder b(1, chip());
        const uint32_t x = b.operand(0, 512), w = b.operand(1, 1024), t = b.operand(2, 256),
                       y = b.result(0, static_cast<uint64_t>(16 * 32 * element));
        b.copy(l1(0), gm(x, 0), 512);
        b.copy(l1(512), gm(w, 0), 1024);
        b.copy(ub(0), gm(t, 0), 256);
        b.set(LOAD, MOVE, 0);
        b.set(LOAD, VECTOR, 0);
        b.wait(LOAD, MOVE, 0);
        b.fractal(l0a(0), l1(0), {1, 512, 512});
        b.fractal(l0b(0), l1(512), {2, 512, 512});
        b.set(MOVE, CUBE, 0);
        b.wait(MOVE, CUBE, 0);
        b.mmad(S8, l0c(0), l0a(0), l0b(0), 16, 32, 32, 0, 1024, 0, 0);
        b.set(CUBE, VECTOR, 0);
        b.wait(CUBE, VECTOR, 0);
        b.wait(LOAD, VECTOR, 0);
        tile::Requant q{ub(128), std::nullopt, relu == 1, offset, 32 * element};
        if (added) q.addend = ub(0);
        b.requant(S32, type, ub(1024), l0c(0), q, 16, {2, 16 * element, 1024, 64});
        b.set(VECTOR, STORE, 0);
        b.wait(VECTOR, STORE, 0);
        b.copy(gm(y, 0), ub(1024), 16 * 32 * element);
        c.program = b.finish();
        run(c, machine());
        const std::string blob = tile::encode(c.program);
        EXPECT_EQ(blob[4], 2);  // a version that older readers refuse
        EXPECT_EQ(tile::decode(blob), c.program);
        for (int64_t r = 0; r < 16; ++r)
          for (int64_t n = 0; n < 32; ++n) {
            int32_t sum = added ? addends[n] : 0;
            for (int64_t k = 0; k < 32; ++k)
              sum += static_cast<int8_t>(c.buffers[0].bytes[static_cast<size_t>(r * 32 + k)]) *
                     static_cast<int8_t>(c.buffers[1].bytes[static_cast<size_t>(n * 32 + k)]);
            float value = static_cast<float>(sum) * factors[n];
            if (relu && value < 0) value = 0;
            const uint8_t* got = c.buffers[3].bytes.data() + (r * 32 + n) * element;
            if (type == F32) {
              float f;
              std::memcpy(&f, got, 4);
              if (std::isnan(value))
                EXPECT_TRUE(std::isnan(f));
              else
                EXPECT_EQ(f, value);
              continue;
            }
            const double low = type == S8 ? -128 : 0;
            const double whole = std::isnan(value) ? 0 : std::nearbyint(static_cast<double>(value));
            const double want = std::clamp(whole + static_cast<double>(offset), low, low + 255);
            EXPECT_EQ(type == S8 ? static_cast<int8_t>(*got) : *got, static_cast<int>(want)) << r << ' ' << n;
          }
      }
}

TEST(TileNumerics, LaunchesThatDoNotFitAreRefused) {
  Case c = vector_add(1000, 128, 3);
  auto task = simulator::TileTask::prepare(tile::encode(c.program), machine(), "add");
  auto words = [&](auto&& f) -> std::string {
    try {
      f();
    } catch (const sdk::Failure& e) {
      return e.message;
    }
    return "";
  };
  c.buffers[1].bytes.resize(1998);
  EXPECT_EQ(words([&] { task->run(bind(c)); }),
            "tile program of 'add': gm1 has 1998 bytes at this launch; the program touches 2000");
  EXPECT_EQ(words([&] { simulator::TileTask::prepare(tile::encode(c.program), machine(2), "add"); }),
            "tile program of 'add': it was compiled for 3 cores; the device has 2");
  simulator::TileMachine small = machine();
  small.chip.ub = 1024;
  EXPECT_EQ(words([&] { simulator::TileTask::prepare(tile::encode(c.program), small, "add"); }),
            "tile program of 'add': it was compiled for 253952 bytes of ub; the device has 1024");
}

}  // namespace
}  // namespace regie::tile_test
