// Numbers, names and tokens of the text form.
#include "text/lexer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "text/elements.h"

namespace regie {
namespace {

TEST(TextNumbers, FloatsReadBackExactly) {
  auto back = [](const std::string& text) {
    Lexer lexer(text, "t");
    auto v = read_float(lexer, lexer.next());
    EXPECT_TRUE(v.ok()) << text;
    return v.ok() ? *v : 0;
  };
  EXPECT_EQ(spell_float(1), "1.0");
  EXPECT_EQ(spell_float(static_cast<double>(1e-5f)), "1e-05");  // as a framework keeps epsilon = 1e-5
  EXPECT_EQ(spell_float(1e-5), "1e-05d");
  EXPECT_EQ(spell_float(0.1), "0.1d");
  EXPECT_EQ(back("0.1"), static_cast<double>(0.1f));
  EXPECT_EQ(back("0.1d"), 0.1);
  EXPECT_EQ(back("1e-50"), 0.0);  // underflows to zero
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    double v = std::bit_cast<double>(random());
    if (std::isnan(v)) continue;
    EXPECT_EQ(back(spell_float(v)), v);
    float f = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(f)) {
      EXPECT_EQ(back(spell_float(static_cast<double>(f))), static_cast<double>(f));
    }
  }
  EXPECT_TRUE(std::signbit(back("-0.0")));
}

TEST(TextNumbers, Integers) {
  auto read = [](const std::string& text) {
    Lexer lexer(text, "t");
    return read_int64(lexer, lexer.next());
  };
  EXPECT_EQ(*read("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(*read("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(*read("0xff"), 255);
  EXPECT_FALSE(read("9223372036854775808").ok());
  EXPECT_FALSE(read("-9223372036854775809").ok());
  EXPECT_FALSE(read("1.0").ok());
}

TEST(TextLexer, TokensAndPlaces) {
  Lexer lexer("a.b %x#3 %\"p q\" $v 1..32 N-3 -> ... // c\n  \"s\\x41\" 2.5e-3d", "f.rg");
  struct Want {
    TokenKind kind;
    const char* text;
    uint32_t line, column;
  };
  const Want wants[] = {{TokenKind::kIdentifier, "a.b", 1, 1}, {TokenKind::kValue, "x", 1, 5},
                        {TokenKind::kValue, "p q", 1, 10},     {TokenKind::kVariable, "v", 1, 17},
                        {TokenKind::kInteger, "1", 1, 20},     {TokenKind::kPunct, "..", 1, 21},
                        {TokenKind::kInteger, "32", 1, 23},    {TokenKind::kIdentifier, "N", 1, 26},
                        {TokenKind::kInteger, "-3", 1, 27},    {TokenKind::kPunct, "->", 1, 30},
                        {TokenKind::kPunct, "...", 1, 33},     {TokenKind::kString, "sA", 2, 3},
                        {TokenKind::kFloat, "2.5e-3d", 2, 11}, {TokenKind::kEnd, "", 2, 18}};
  for (const Want& w : wants) {
    Token t = lexer.next();
    EXPECT_EQ(t.kind, w.kind) << w.text;
    EXPECT_EQ(t.text, w.text);
    EXPECT_EQ(t.line, w.line) << w.text;
    EXPECT_EQ(t.column, w.column) << w.text;
  }
}

TEST(TextLexer, SpelledNamesReadBack) {
  for (std::string name : {"x", "a.b", "a.0", "0", "12a", "_", "a/b:0", "a b", "\"", "\\", "\n\t\r\x01", "é",
                           "\xc3", "a.", ".a", "a..b", "in", "a#1"}) {
    std::string text = spell_value(name, 2);
    Lexer lexer(text, "t");
    Token t = lexer.next();
    EXPECT_EQ(t.kind, TokenKind::kValue) << text;
    EXPECT_EQ(t.text, name);
    EXPECT_EQ(t.occurrence, 2u);
    EXPECT_FALSE(t.is_unnamed_value());
    EXPECT_TRUE(lexer.at_end()) << text;
    std::string bare = spell_name(name);
    Lexer again(bare, "t");
    Token n = again.next();
    EXPECT_TRUE(n.kind == TokenKind::kIdentifier || n.kind == TokenKind::kString) << bare;
    EXPECT_EQ(n.text, name);
    EXPECT_TRUE(again.at_end()) << bare;
  }
}

}  // namespace
}  // namespace regie
