// Every way to spoil a program by one step is reported, or changes the result, or is proven to change
// nothing: instructions left out, arguments off by a little or a lot, other modes. Thousands of mutants of
// the hand-written programs.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "programs.h"
#include "regie/plugin.hpp"
#include "regie/tile/stream.h"

namespace regie::tile_test {
namespace {

struct Mutant {
  Program program;
  std::string what;
  size_t instruction = 0;
};

void expr_mutants(const Expr& e, std::vector<Expr>& out) {
  for (int64_t by : {1, -1, 2, -2, 16, -16, 32, -32, 512, -512, 1024, -1024}) {
    Expr m = e;
    m.constant += by;
    out.push_back(m);
  }
  out.push_back(0);
  for (size_t t = 0; t < e.terms.size(); ++t) {
    for (int64_t by : {1, -1, 32, -32}) {
      Expr m = e;
      m.terms[t].factor += by;
      out.push_back(m);
    }
    Expr m = e;
    m.terms.erase(m.terms.begin() + static_cast<long>(t));
    out.push_back(m.terms.empty() ? Expr(std::clamp(m.constant, m.low, m.high)) : m);
    m = e;
    ++m.terms[t].divisor;
    out.push_back(m);
    m = e;
    m.terms[t].modulus = m.terms[t].modulus ? m.terms[t].modulus + 1 : 2;
    out.push_back(m);
  }
  for (int64_t by : {1, -1, 16, -16, 32, -32}) {
    Expr m = e;
    if (m.low != tile::kNoLow) {
      m.low += by;
      out.push_back(m);
    }
    m = e;
    if (m.high != tile::kNoHigh) {
      m.high += by;
      out.push_back(m);
    }
  }
}

std::vector<Mutant> mutants(const Program& p) {
  std::vector<Mutant> list;
  for (size_t n = 0; n < p.code.size(); ++n) {
    size_t first = list.size();
    const tile::Instruction& i = p.code[n];
    const auto& info = *tile::instruction_info(i.op);
    std::string where = std::to_string(n) + " `" + tile::instruction_text(i) + "`";
    if (i.op != REGIE_TILE_OP_LOOP && i.op != REGIE_TILE_OP_END) {
      list.push_back({p, where + " left out"});
      list.back().program.code.erase(list.back().program.code.begin() + static_cast<long>(n));
    }
    for (size_t k = 0; k < i.args.size(); ++k) {
      std::vector<Expr> values;
      bool bits = info.args[k].kind == tile::ArgKind::scalar || std::string(info.args[k].name) == "pad";
      if (bits) {  // of a float: 1, 2, infinity; what is off by the last bit is lost in rounding
        for (int64_t v : {int64_t{0x3c00}, int64_t{0x4000}, int64_t{0x7c00}})
          values.push_back(info.args[k].kind == tile::ArgKind::scalar
                               ? tile::scalar(static_cast<float>(half_value(static_cast<uint16_t>(v))))
                               : Expr(v));
      } else {
        expr_mutants(i.args[k], values);
      }
      for (const Expr& v : values) {
        if (v == i.args[k]) continue;
        list.push_back({p, where + " with " + info.args[k].name + " = " + tile::expr_text(v)});
        list.back().program.code[n].args[k] = v;
      }
    }
    for (size_t k = 0; k < 4 && info.modes[k].kind != tile::ModeKind::none; ++k) {
      size_t count =
          info.modes[k].kind == tile::ModeKind::place ? 5 : tile::mode_words(info.modes[k].kind).size();
      for (size_t v = 0; v < count; ++v) {
        if (v == i.mode[k]) continue;
        list.push_back({p, where + " with mode " + info.modes[k].name + " = " + std::to_string(v)});
        list.back().program.code[n].mode[k] = static_cast<uint8_t>(v);
      }
    }
    for (; first < list.size(); ++first) list[first].instruction = n;
  }
  return list;
}

// All that an instruction does depends on these numbers: a stride of a repeat of one, and anything of an
// instruction that does nothing, is left out.
std::vector<int64_t> essence(const tile::Concrete& c) {
  const auto& args = tile::instruction_info(c.op)->args;
  std::vector<int64_t> v{c.op, c.mode[0], c.mode[1], c.mode[2]};
  std::vector<tile::Region> regions;
  // A flag orders and does nothing else: in a program that the verifier accepts, all that must be ordered is.
  tile::regions_of(c, regions);
  if (regions.empty()) return {c.op};
  v.insert(v.end(), c.arg, c.arg + args.size());
  int64_t* a = v.data() + 4;
  auto unless = [&](bool used, std::initializer_list<int> strides) {
    for (int k : strides)
      if (!used) a[k] = 0;
  };
  switch (c.op) {
    case REGIE_TILE_OP_COPY: {
      unless(a[3] > 1, {4, 5});
      unless(a[6] > 1, {7, 8});
      unless(a[9] > 1, {10, 11});
      break;
    }
    case REGIE_TILE_OP_FRACTAL:
      unless(a[2] > 1, {3, 4});
      unless(a[5] > 1, {6, 7});
      break;
    case REGIE_TILE_OP_FILL:
      unless(a[3] > 1, {4});
      break;
    case REGIE_TILE_OP_IM2COL: {
      unless(a[14] > 16, {18});
      int64_t kernels = a[10] * a[11], first = a[15] / kernels, last = (a[15] + a[16] - 1) / kernels;
      if (last == 0) a[17] = 0;
      bool one_row = a[13] / a[12] == (a[13] + a[14] - 1) / a[12];
      if (one_row && a[13] / a[12] == 0) a[6] = 0;  // the first output row: no stride
      if (a[10] == 1 ||
          (first == last && a[15] % kernels / a[11] == 0 && (a[15] + a[16] - 1) % kernels / a[11] == 0))
        a[8] = 0;
      if (a[11] == 1) a[9] = 0;
      // Which cells of the map are taken is all that matters of the rest.
      if (kernels > 0) {
        std::vector<int64_t> cells;
        for (int64_t j = a[15]; j < a[15] + a[16]; ++j)
          for (int64_t p = a[13]; p < a[13] + (a[14] + 15) / 16 * 16; ++p) {
            int64_t y = a[4] + p / a[12] * c.arg[6] + j % kernels / a[11] * c.arg[8];
            int64_t x = a[5] + p % a[12] * c.arg[7] + j % a[11] * c.arg[9];
            bool in = p < a[13] + a[14] && y >= 0 && y < a[2] && x >= 0 && x < a[3];
            cells.push_back(in ? a[1] + j / kernels * c.arg[17] + (y * a[3] + x) * 32 : -1);
          }
        // Two bytes of the padding, whatever its type.
        const int64_t pad = c.mode[1] == REGIE_TILE_F16 ? a[19] & 0xffff : (a[19] & 0xff) * 0x101;
        std::vector<int64_t> rest{c.op, c.mode[0], a[0], (a[14] + 15) / 16, a[16], a[18], pad};
        if (std::find(cells.begin(), cells.end(), -1) == cells.end()) rest.back() = 0;
        rest.insert(rest.end(), cells.begin(), cells.end());
        return rest;
      }
      break;
    }
    case REGIE_TILE_OP_MMAD:
      unless(a[4] > 16, {7});
      unless(a[3] > 16, {8});
      unless(a[5] > (c.mode[0] == REGIE_TILE_F16 ? 16 : 32), {9});
      break;
    case REGIE_TILE_OP_DRAIN:
      unless(a[3] > 1, {4, 5});
      break;
    case REGIE_TILE_OP_REQUANT:
      unless(a[4], {3, 13, 18});
      unless(a[7] > 1, {8});
      unless(a[9] > 1, {10, 11, 12, 13});
      unless(a[14] > 1, {15, 16, 17, 18});
      if (c.mode[1] == F32) a[6] = 0;
      break;
    case REGIE_TILE_OP_TRANSPOSE:
      unless(a[4] > 1, {5, 6});
      unless(a[7] > 1, {8, 9});
      break;
    case REGIE_TILE_OP_BINARY:
      if (c.mode[1] == F16 && c.mode[2] == REGIE_TILE_BY_SCALAR)  // rounded to a half
        a[2] = nearest_half(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(a[2]))));
      unless(a[4] > 1, {5, 6, 7});
      unless(a[8] > 1, {9, 10, 11});
      break;
    case REGIE_TILE_OP_UNARY:
    case REGIE_TILE_OP_CAST:
    case REGIE_TILE_OP_REDUCE:
      unless(a[3] > 1, {4, 5});
      unless(a[6] > 1, {7, 8});
      break;
    default:
      break;
  }
  return v;
}

std::vector<std::vector<int64_t>> essences(const Program& p) {
  std::vector<std::vector<int64_t>> all;
  tile::Plan plan(p);
  for (uint32_t core = 0; core < p.cores; ++core) {
    tile::Stream s(plan, core);
    tile::Concrete c;
    while (s.next(c) == tile::Stream::Result::instruction) {
      auto e = essence(c);
      if (e.size() > 1) all.push_back(e);  // what does nothing is no step
    }
    all.push_back({});
  }
  return all;
}

struct Count {
  size_t mutants = 0, reported = 0, changed = 0, equivalent = 0, wasteful = 0, padding = 0;
  std::vector<std::string> silent;
};

// The contents of rows that fill a fractal up, which no product takes in: a fill or an im2col that writes the
// same bytes as before, and other inputs do not bring it to light either. Not a proof; such mutants are
// counted apart.
bool only_padding(Case c, const Mutant& m) {
  uint16_t op = c.program.code[m.instruction].op;
  if (op != REGIE_TILE_OP_FILL && op != REGIE_TILE_OP_IM2COL) return false;
  for (uint32_t seed = 100; seed < 104; ++seed) {
    for (size_t g = 0; g + 1 < c.buffers.size(); ++g)
      c.buffers[g] = random_halves(c.buffers[g].bytes.size() / 2, seed + 10 * uint32_t(g), 8);
    Case spoiled{c.name, m.program, c.buffers};
    run(c, machine());
    run(spoiled, machine());
    if (spoiled.buffers.back().bytes != c.buffers.back().bytes) return false;
  }
  return true;
}

Count judge(Case c) {
  Count count;
  run(c, machine());
  const std::vector<Tensor> want = c.buffers;
  tile::VerifyOptions unused;
  unused.report_unused = true;
  uint64_t waste = tile::verify(c.program, unused).unused_bytes;
  auto original = essences(c.program);
  for (Mutant& m : mutants(c.program)) {
    ++count.mutants;
    if (!tile::check_form(m.program).empty()) {
      ++count.reported;
      continue;
    }
    // What verify finds, the machine refuses with; it is asked once here.
    Case spoiled{c.name, m.program, c.buffers};
    try {
      run(spoiled, machine());
    } catch (const sdk::Failure& f) {
      EXPECT_EQ(f.code, REGIE_INVALID_INPUT) << m.what;
      ++count.reported;
      continue;
    }
    bool same = true;
    for (size_t g = 0; g < want.size(); ++g) same = same && spoiled.buffers[g].bytes == want[g].bytes;
    if (!same) {
      ++count.changed;
    } else if (essences(m.program) == original) {
      ++count.equivalent;
    } else if (tile::verify(m.program, unused).unused_bytes > waste) {
      ++count.wasteful;  // more than was needed is computed or moved, and `--unused` says so
    } else if (only_padding(c, m)) {
      ++count.padding;
    } else {
      count.silent.push_back(m.what);
    }
  }
  return count;
}

// Rows whose first or last element rules, so that a maximum over too few is an overflow.
Case sharp_softmax(int64_t rows, int64_t n, int64_t tile_rows, uint32_t cores) {
  Case c = softmax(rows, n, tile_rows, cores);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t kind = (r + r / tile_rows + 1) % 4;  // another one than a tile before in the same place
    if (kind == 0) c.buffers[0].put(static_cast<size_t>(r * n), 300);
    if (kind == 1) c.buffers[0].put(static_cast<size_t>(r * n + n - 1), 500);
    if (kind == 2)
      for (int64_t i = 0; i < n; ++i)
        c.buffers[0].put(static_cast<size_t>(r * n + i), -300 - 20 * static_cast<double>(i % 7));
  }
  return c;
}

void expect_caught(const Case& c) {
  Count n = judge(c);
  std::printf(
      "%-8s %6zu mutants: %zu reported, %zu change the result, %zu proven equivalent, %zu only waste, %zu "
      "only in padding, "
      "%zu silent\n",
      c.name.c_str(), n.mutants, n.reported, n.changed, n.equivalent, n.wasteful, n.padding, n.silent.size());
  EXPECT_GT(n.mutants, 500u);
  EXPECT_TRUE(n.silent.empty());
  EXPECT_LE(n.padding, n.mutants / 100);
  for (const std::string& s : n.silent) std::printf("  silent: %s\n", s.c_str());
}

TEST(TileMutation, VectorAdd) { expect_caught(vector_add(1000, 128, 3)); }
TEST(TileMutation, Matmul) { expect_caught(matmul(64, 48, 96, 32, 32, 2)); }
TEST(TileMutation, RaggedMatmul) { expect_caught(matmul(50, 48, 90, 32, 32, 2)); }
TEST(TileMutation, Softmax) { expect_caught(sharp_softmax(24, 40, 4, 2)); }
TEST(TileMutation, ProductOfBytes) { expect_caught(bytes_product(128, 32, 64, 2)); }
TEST(TileMutation, RequantisedProductOfBytes) { expect_caught(bytes_product(128, 32, 64, 2, true)); }
TEST(TileMutation, Convolution) {
  Conv v;
  v.channels = 32;
  v.height = 7;
  v.width = 6;
  v.filters = 32;
  v.stride_w = 2;
  expect_caught(conv(v, 16, 4, 2));
}

}  // namespace
}  // namespace regie::tile_test
