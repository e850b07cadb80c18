// Hand-written tile programs of the tests, and what the tests compare them with: references in double
// precision, written without a look at the machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "regie/tile/builder.h"
#include "regie/tile/codec.h"
#include "regie/tile/verify.h"
#include "tile_machine.h"

namespace regie::tile_test {

using tile::Builder;
using tile::Expr;
using tile::gm;
using tile::l0a;
using tile::l0b;
using tile::l0c;
using tile::l1;
using tile::Program;
using tile::ub;
constexpr uint8_t F16 = REGIE_TILE_F16, F32 = REGIE_TILE_F32, S32 = REGIE_TILE_S32, S8 = REGIE_TILE_S8,
                  U8 = REGIE_TILE_U8;
constexpr uint8_t LOAD = REGIE_TILE_LOAD, MOVE = REGIE_TILE_MOVE, CUBE = REGIE_TILE_CUBE,
                  VECTOR = REGIE_TILE_VECTOR, STORE = REGIE_TILE_STORE;

inline tile::OnChip chip() { return {1048576, 65536, 65536, 262144, 253952}; }
inline simulator::TileMachine machine(uint32_t cores = 32) {
  simulator::TileMachine m;
  m.cores = cores;
  m.chip = chip();
  return m;
}

// Of IEEE 754, by its definition.
double half_value(uint16_t bits);
uint16_t nearest_half(double value);

struct Tensor {
  std::vector<uint8_t> bytes;
  explicit Tensor(size_t size = 0) : bytes(size) {}
  uint16_t half(size_t i) const {
    uint16_t h;
    std::memcpy(&h, bytes.data() + 2 * i, 2);
    return h;
  }
  double value(size_t i) const { return half_value(half(i)); }
  void put(size_t i, double v) {
    uint16_t h = nearest_half(v);
    std::memcpy(bytes.data() + 2 * i, &h, 2);
  }
};
Tensor random_halves(size_t count, uint32_t seed, double scale = 1.0);

// A program with its buffers; results hold 0xa5 before a run.
struct Case {
  std::string name;
  Program program;
  std::vector<Tensor> buffers;
};
// Verified, encoded, run. Throws what the machine throws.
simulator::TileResult run(Case& c, const simulator::TileMachine& m, bool timeline = false);
std::vector<simulator::TileBuffer> bind(Case& c);

// y = a + b, `count` halves in tiles, double-buffered, over cores.
Case vector_add(int64_t count, int64_t tile, uint32_t cores);
// C[M,N] = A[M,K] * B[K,N]; A and C in FRACTAL_NZ without row padding, B as FRACTAL_Z, N a multiple of 16;
// rows over cores.
Case matmul(int64_t m, int64_t n, int64_t k, int64_t tile_m, int64_t tile_k, uint32_t cores);
// Rows of `n` halves; in f32 inside.
Case softmax(int64_t rows, int64_t n, int64_t tile_rows, uint32_t cores);
struct Conv {
  int64_t channels = 16, height = 8, width = 8, filters = 16, kernel_h = 3, kernel_w = 3, stride_h = 1,
          stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1, top = 1, left = 1, bottom = 1, right = 1;
  int64_t out_h() const { return (height + top + bottom - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
  int64_t out_w() const { return (width + left + right - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
};
// NC1HWC0 by FRACTAL_Z, channels and filters padded to 16 with zeros; output positions over cores.
Case conv(const Conv& c, int64_t tile_m, int64_t tile_k, uint32_t cores);

// Y[m, n] of s8 = A[k, m]' of u8 * B[k, n] of s8 (FRACTAL_Z), plus one s32, times one f32 a column, minus 3;
// rows over cores, 32 each at least.
// `requants`: on their way out of L0C, by one instruction.
Case bytes_product(int64_t m, int64_t n, int64_t k, uint32_t cores, bool requants = false);
void check_bytes_product(const Case& c, int64_t m, int64_t n, int64_t k, bool requants = false);

void check_add(const Case& c, int64_t count);
void check_matmul(const Case& c, int64_t m, int64_t n, int64_t k);
void check_softmax(const Case& c, int64_t rows, int64_t n);
void check_conv(const Case& c, const Conv& v);

}  // namespace regie::tile_test
