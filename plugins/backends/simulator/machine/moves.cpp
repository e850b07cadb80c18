// Instructions that move bytes: copy, fill, fractal, im2col, drain, requant, transpose.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "chip.h"
#include "half.h"
#include "regie/half.hpp"

namespace regie::simulator {

namespace {

constexpr int64_t kFractal = REGIE_TILE_FRACTAL_BYTES, kBlock = REGIE_TILE_BLOCK_BYTES;

// A block turned over, of as many rows as there are elements in the 32 bytes of one; rows `to_row` and
// `from_row` bytes apart.
template <class T>
void transpose_block(uint8_t* to, int64_t to_row, const uint8_t* from, int64_t from_row) {
  constexpr int n = kBlock / sizeof(T);
  T block[n][n];
  for (int r = 0; r < n; ++r) {
    T row[n];
    std::memcpy(row, from + r * from_row, sizeof row);
    for (int c = 0; c < n; ++c) block[c][r] = row[c];
  }
  for (int r = 0; r < n; ++r) std::memcpy(to + r * to_row, block[r], sizeof block[r]);
}

}  // namespace

void Chip::copy(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  if (!a[2]) return;
  for (int64_t z = 0; z < a[9]; ++z)
    for (int64_t y = 0; y < a[6]; ++y)
      for (int64_t x = 0; x < a[3]; ++x)
        std::memcpy(at(i.mode[0], a[0] + x * a[4] + y * a[7] + z * a[10]),
                    at(i.mode[1], a[1] + x * a[5] + y * a[8] + z * a[11]), static_cast<size_t>(a[2]));
}

void Chip::fill(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  uint32_t bits = static_cast<uint32_t>(a[1]);
  if (i.mode[1] == REGIE_TILE_F16) bits = sdk::half_bits(std::bit_cast<float>(bits));
  size_t size = tile::bytes_of(i.mode[1]);
  for (int64_t x = 0; x < a[3]; ++x) {
    uint8_t* to = at(i.mode[0], a[0] + x * a[4]);
    for (int64_t k = 0; k < a[2]; ++k) std::memcpy(to + static_cast<size_t>(k) * size, &bits, size);
  }
}

void Chip::fractal(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  for (int64_t y = 0; y < a[5]; ++y)
    for (int64_t x = 0; x < a[2]; ++x) {
      uint8_t* to = at(i.mode[0], a[0] + x * a[3] + y * a[6]);
      const uint8_t* from = at(REGIE_TILE_L1, a[1] + x * a[4] + y * a[7]);
      if (i.mode[1])
        transpose_block<uint16_t>(to, kBlock, from, kBlock);
      else
        std::memcpy(to, from, kFractal);
    }
}

void Chip::im2col(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  int64_t height = a[2], width = a[3], kernels = a[10] * a[11], rows = a[14];
  if (!rows || !a[16]) return;
  uint8_t pad[kBlock];
  size_t size = tile::bytes_of(i.mode[1]);
  for (size_t k = 0; k < sizeof pad; k += size) std::memcpy(pad + k, &a[19], size);
  int64_t padded = (rows + 15) / 16 * 16;
  for (int64_t j = 0; j < a[16]; ++j) {
    int64_t block = a[15] + j;
    int64_t c1 = block / kernels, kh = block % kernels / a[11], kw = block % a[11];
    const uint8_t* plane = at(REGIE_TILE_L1, a[1] + c1 * a[17]);
    int64_t y = a[4] + a[13] / a[12] * a[6] + kh * a[8], left = a[5] + kw * a[9];
    int64_t column = a[13] % a[12];
    for (int64_t r = 0; r < padded; ++r) {
      uint8_t* to = at(i.mode[0], a[0] + r / 16 * a[18] + j * kFractal + r % 16 * kBlock);
      int64_t x = left + column * a[7];
      bool inside = r < rows && y >= 0 && y < height && x >= 0 && x < width;
      std::memcpy(to, inside ? plane + (y * width + x) * kBlock : pad, kBlock);
      if (++column == a[12]) {
        column = 0;
        y += a[6];
      }
    }
  }
}

void Chip::drain(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  size_t count = static_cast<size_t>(a[2]) * 16;
  for (int64_t x = 0; x < a[3]; ++x) {
    uint8_t* to = ub(a[0] + x * a[4]);
    const uint8_t* from = at(REGIE_TILE_L0C, a[1] + x * a[5]);
    if (i.mode[1] == REGIE_TILE_F16)
      floats_to_halves(reinterpret_cast<const float*>(from), to, count);
    else
      std::memcpy(to, from, count * 4);
  }
}

// As f32, times the factor; bytes are rounded, halves to the even number, then moved and held within. NaN is
// 0.
void Chip::requant(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  const bool whole_sums = i.mode[0] == REGIE_TILE_S32, words = i.mode[1] == REGIE_TILE_F32,
             is_signed = i.mode[1] == REGIE_TILE_S8;
  const float least = is_signed ? -128 : 0, most = least + 255, offset = static_cast<float>(a[6]);
  for (int64_t y = 0; y < a[14]; ++y)
    for (int64_t x = 0; x < a[9]; ++x) {
      float factors[16];
      uint32_t addends[16] = {};
      std::memcpy(factors, ub(a[2] + x * a[12] + y * a[17]), sizeof factors);
      if (a[4]) std::memcpy(addends, ub(a[3] + x * a[13] + y * a[18]), sizeof addends);
      for (int64_t r = 0; r < a[7]; ++r) {
        uint32_t sums[16];
        float values[16];
        std::memcpy(sums, at(REGIE_TILE_L0C, a[1] + x * a[11] + y * a[16] + r * 64), sizeof sums);
        for (int k = 0; k < 16; ++k) {
          const float sum = whole_sums ? static_cast<float>(static_cast<int32_t>(sums[k] + addends[k]))
                                       : std::bit_cast<float>(sums[k]);
          const float v = sum * factors[k];
          values[k] = a[5] && v < 0 ? 0 : v;
        }
        uint8_t* to = ub(a[0] + x * a[10] + y * a[15] + r * a[8]);
        if (words) {
          std::memcpy(to, values, sizeof values);
          continue;
        }
        for (int k = 0; k < 16; ++k) {
          const float whole = std::isnan(values[k]) ? 0 : std::nearbyint(values[k]);
          to[k] = static_cast<uint8_t>(static_cast<int32_t>(std::clamp(whole + offset, least, most)));
        }
      }
    }
}

void Chip::transpose(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  const auto block = i.mode[0] == REGIE_TILE_B8    ? transpose_block<uint8_t>
                     : i.mode[0] == REGIE_TILE_B32 ? transpose_block<uint32_t>
                                                   : transpose_block<uint16_t>;
  for (int64_t y = 0; y < a[7]; ++y)
    for (int64_t x = 0; x < a[4]; ++x)
      block(ub(a[0] + x * a[5] + y * a[8]), a[2], ub(a[1] + x * a[6] + y * a[9]), a[3]);
}

}  // namespace regie::simulator
