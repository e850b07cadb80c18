// Bytes and text: round trips, the examples of the reference, and hostile input.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "programs.h"
#include "regie/plugin.hpp"
#include "regie_test_paths.h"

namespace regie::tile_test {
namespace {

std::vector<Program> programs() {
  std::vector<Program> list;
  for (Case c :
       {vector_add(1000, 128, 3), matmul(50, 48, 100, 32, 48, 2), softmax(37, 100, 8, 3), conv({}, 32, 4, 2)})
    list.push_back(c.program);
  return list;
}

// Any form that check_form accepts, sense or not.
Program random_program(std::mt19937& random) {
  auto upto = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  Program p;
  p.cores = static_cast<uint32_t>(1 + upto(8));
  p.chip = chip();
  for (int g = 0; g < 3; ++g)
    p.gm.push_back({static_cast<uint16_t>(g), static_cast<uint16_t>(g ? 3 : 1),
                    static_cast<uint64_t>(upto(9) * 32), 4096});
  std::vector<uint32_t> open;
  auto expr = [&] {
    Expr e = upto(3) ? upto(100000) - 500 : 0;
    for (int64_t t = upto(4); t > 0; --t) {
      uint32_t v = open.empty() || !upto(3) ? 0 : open[static_cast<size_t>(upto(open.size()))];
      Expr x = tile::variable(v);
      if (!upto(3)) x = x / (2 + upto(9));
      if (!upto(3)) x = x % (2 + upto(9));
      e = e + x * (upto(2000) - 1000);
    }
    if (!upto(4)) e = max(e, upto(50));
    if (!upto(4)) e = min(e, 50 + upto(5000));
    return e;
  };
  while (p.code.size() < 40 || !open.empty()) {
    if (p.code.size() >= 40 || (!open.empty() && !upto(5))) {
      open.pop_back();
      p.code.push_back({REGIE_TILE_OP_END, {}, {}});
      continue;
    }
    tile::Instruction i;
    auto table = tile::instruction_table();
    const auto& info = table[static_cast<size_t>(upto(table.size()))];
    i.op = info.op;
    if (i.op == REGIE_TILE_OP_END) continue;
    for (size_t k = 0; k < 4; ++k) {
      auto words = tile::mode_words(info.modes[k].kind);
      if (!words.empty()) i.mode[k] = static_cast<uint8_t>(upto(words.size()));
      if (info.modes[k].kind == tile::ModeKind::place)
        i.mode[k] = static_cast<uint8_t>(upto(2) ? upto(5) : REGIE_TILE_GM + upto(3));
    }
    bool loop = i.op == REGIE_TILE_OP_LOOP;
    uint32_t v = 0;
    if (loop) {
      if (open.size() > 4) continue;
      do v = static_cast<uint32_t>(1 + upto(31));
      while (std::find(open.begin(), open.end(), v) != open.end());
      i.mode[0] = static_cast<uint8_t>(v);
    }
    for (size_t k = 0; k < info.args.size(); ++k)
      i.args.push_back(upto(3) ? expr() : Expr(info.args[k].fallback));
    if (!upto(2))  // scalars, where the modes ask for them
      for (size_t k : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{9}, size_t{11}, size_t{14}})
        if (k < i.args.size()) i.args[k] = k < 4 ? Expr(static_cast<int64_t>(random())) : Expr(0);
    p.code.push_back(i);
    Program alone = p;
    for (size_t o = 0; o < open.size() + loop; ++o) alone.code.push_back({REGIE_TILE_OP_END, {}, {}});
    if (!tile::check_form(alone).empty())
      p.code.pop_back();
    else if (loop)
      open.push_back(v);
  }
  return p;
}

TEST(TileCodec, RoundTrips) {
  std::mt19937 random(5);
  std::vector<Program> list = programs();
  for (int i = 0; i < 300; ++i) list.push_back(random_program(random));
  std::vector<bool> seen(32);
  for (const Program& p : list) {
    std::string bytes = tile::encode(p);
    Program back = tile::decode(bytes);
    ASSERT_EQ(back, p);
    std::string text = tile::disassemble(back);
    Program again = tile::assemble(text);
    ASSERT_EQ(tile::encode(again), bytes) << text;
    ASSERT_EQ(tile::disassemble(again), text);
    for (const auto& i : p.code) seen[i.op] = true;
  }
  for (const auto& info : tile::instruction_table()) EXPECT_TRUE(seen[info.op]) << info.name;
}

TEST(TileCodec, TheExamplesOfTheReferenceAreFreeOfFaults) {
  std::ifstream file(REGIE_TEST_SOURCE_DIR "/docs/tile.md");
  std::stringstream all;
  all << file.rdbuf();
  std::string text = all.str();
  int found = 0;
  for (size_t at = text.find("```\ntile 1"); at != std::string::npos; at = text.find("```\ntile 1", at + 4)) {
    std::string code = text.substr(at + 4, text.find("```", at + 4) - at - 4);
    tile::VerifyOptions options;
    options.report_unused = true;
    tile::VerifyResult r = tile::verify(tile::assemble(code, "docs/tile.md"), options);
    EXPECT_TRUE(r.ok()) << r.message;
    ++found;
  }
  EXPECT_EQ(found, 2);
}

uint32_t crc(std::string_view bytes) {
  uint32_t c = ~0u;
  for (char b : bytes) {
    c ^= static_cast<uint8_t>(b);
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

// What is accepted is canonical, whatever was done to it; with a checksum that matches, so that the checks
// behind it are met.
TEST(TileCodec, DamagedBytesAreRefused) {
  std::mt19937 random(6);
  size_t refused = 0, accepted = 0;
  for (const Program& p : programs()) {
    const std::string good = tile::encode(p);
    for (size_t n = 0; n < good.size(); ++n) EXPECT_THROW(tile::decode(good.substr(0, n)), sdk::Failure);
    for (size_t n = 0; n < good.size(); ++n) {
      std::string bad = good;
      bad[n] = static_cast<char>(bad[n] ^ (1 << n % 8));
      EXPECT_THROW(tile::decode(bad), sdk::Failure) << "byte " << n;
    }
    for (int i = 0; i < 5000; ++i) {
      std::string bad = good;
      for (uint32_t k = 1 + random() % 3; k > 0; --k) {
        size_t n = random() % bad.size();
        bad[n] = static_cast<char>(random() % 2 ? random() : bad[n] + (random() % 2 ? 1 : -1));
      }
      if (random() % 8 == 0) bad.resize(random() % (bad.size() + 64));
      if (bad.size() < sizeof(regie_tile_header)) bad.resize(sizeof(regie_tile_header));
      std::memset(bad.data() + 8, 0, 4);
      uint32_t sum = crc(bad);
      std::memcpy(bad.data() + 8, &sum, 4);
      try {
        Program q = tile::decode(bad);
        EXPECT_EQ(tile::encode(q), bad);
        EXPECT_EQ(tile::encode(tile::assemble(tile::disassemble(q))), bad);
        tile::VerifyOptions few;
        few.instruction_budget = 20000;
        tile::verify(q, few);
        ++accepted;
      } catch (const sdk::Failure& f) {
        EXPECT_TRUE(f.code == REGIE_CORRUPT || f.code == REGIE_UNSUPPORTED) << f.message;
        EXPECT_FALSE(f.message.empty());
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(accepted, 1000u);
}

TEST(TileCodec, DamagedTextIsRefusedWithItsLine) {
  std::mt19937 random(8);
  for (const Program& p : programs()) {
    const std::string good = tile::disassemble(p);
    for (int i = 0; i < 2000; ++i) {
      std::string bad = good;
      for (uint32_t k = 1 + random() % 3; k > 0; --k) {
        size_t n = random() % bad.size();
        if (random() % 2)
          bad.erase(n, 1 + random() % 3);
        else
          bad.insert(n, 1, "0123456789+-*/%()=,. \nvx#"[random() % 25]);
      }
      try {
        tile::assemble(bad, "bad.tile");
      } catch (const sdk::Failure& f) {
        EXPECT_EQ(f.code, REGIE_INVALID_INPUT) << f.message;
        EXPECT_EQ(f.where.rfind("bad.tile", 0), 0u) << f.where;
      }
    }
  }
  auto error = [](const char* text) -> std::string {
    try {
      tile::assemble(text, "t.tile");
    } catch (const sdk::Failure& f) {
      return f.where + ": " + f.message;
    }
    return "";
  };
  EXPECT_EQ(error("tile 1\nfoo\n"), "t.tile:2: unknown instruction 'foo'");
  EXPECT_EQ(error("tile 1\nloop i = 4\nset load vector id=i*i\nend\n"),
            "t.tile:3: a product of two variables, or a division by one");
  EXPECT_EQ(error("tile 1\nset load vector\n"), "t.tile:2: argument 'id' is missing");
  EXPECT_EQ(error("tile 1\nset load vector id=i\n"), "t.tile:2: 'i' is not a loop around here");
  EXPECT_EQ(error("tile 1\nset load load id=1\n"),
            "t.tile: instruction 0 (set): a flag from a pipe to itself");
  EXPECT_EQ(error("tile 1\nloop i = 4\n"), "t.tile: the loop of v1 is not closed");
  EXPECT_EQ(error("tile 1\nset load vector id=99999999999999999999\n"),
            "t.tile:2: expected a number or a variable, found '99999999999999999999'");
}

TEST(TileCodec, ExpressionsKeepTheirValue) {
  std::mt19937 random(12);
  for (int i = 0; i < 2000; ++i) {
    int64_t v[2] = {static_cast<int64_t>(random() % 50), static_cast<int64_t>(random() % 50)};
    int64_t d = 1 + random() % 7, m = 1 + random() % 7, f = static_cast<int64_t>(random() % 20) - 10,
            low = -30 + int64_t(random() % 60);
    Expr a = tile::variable(0), b = tile::variable(1);
    Expr e = max(min(a / d % m * f + b * 3 - 7, low + 40), low) * f;
    int64_t want = std::clamp<int64_t>(v[0] / d % m * f + v[1] * 3 - 7, low, low + 40) * f;
    ASSERT_EQ(e.evaluate(v), want);
    ASSERT_EQ((e + 5).evaluate(v), want + 5);
    ASSERT_EQ((12 - e).evaluate(v), 12 - want);
  }
  EXPECT_THROW((tile::variable(0) + 1) / 2, sdk::Failure);
  EXPECT_THROW(min(tile::variable(0), 3) + tile::variable(1), sdk::Failure);
}

}  // namespace
}  // namespace regie::tile_test
