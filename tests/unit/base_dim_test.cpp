#include "base/dim.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>

namespace regie {
namespace {

// An expression as a plain tree, evaluated by the definition of each operation in 128 bits: what the table
// must agree with.
struct Tree {
  uint32_t op = 0;  // 0: symbol or number
  int symbol = -1;
  int64_t number = 0;
  std::unique_ptr<Tree> a, b;
};

__extension__ typedef __int128 Wide;

std::optional<Wide> value_of(const Tree& t, std::span<const int64_t> symbols) {
  if (t.op == 0) return t.symbol >= 0 ? symbols[static_cast<size_t>(t.symbol)] : t.number;
  const std::optional<Wide> x = value_of(*t.a, symbols), y = value_of(*t.b, symbols);
  if (!x || !y) return std::nullopt;
  const Wide a = *x, b = *y, limit = Wide{1} << 62;
  Wide r = 0;
  if (t.op >= REGIE_DIM_FLOORDIV && t.op <= REGIE_DIM_MOD && b == 0) return std::nullopt;
  auto floored = [](Wide p, Wide q) {
    Wide d = p / q;
    while (q > 0 ? d * q > p : d * q < p) --d;
    return d;
  };
  switch (t.op) {
    case REGIE_DIM_ADD:
      r = a + b;
      break;
    case REGIE_DIM_SUB:
      r = a - b;
      break;
    case REGIE_DIM_MUL:
      r = a * b;
      break;
    case REGIE_DIM_FLOORDIV:
      r = floored(a, b);
      break;
    case REGIE_DIM_CEILDIV:
      r = -floored(-a, b);
      break;
    case REGIE_DIM_MOD:
      r = a - b * floored(a, b);
      break;
    case REGIE_DIM_MIN:
      r = a < b ? a : b;
      break;
    default:
      r = a > b ? a : b;
      break;
  }
  if (r > limit || r < -limit) return std::nullopt;
  return r;
}

regie_dim build(DimTable& table, const Tree& t, std::span<const regie_dim> symbols) {
  if (t.op != 0) {
    const regie_dim a = build(table, *t.a, symbols);
    return table.op(t.op, a, build(table, *t.b, symbols));
  }
  if (t.symbol >= 0) return symbols[static_cast<size_t>(t.symbol)];
  return t.number >= 0 ? regie_dim{t.number} : table.sub(0, -t.number);
}

std::unique_ptr<Tree> random_tree(std::mt19937& random, int depth, int symbols) {
  auto t = std::make_unique<Tree>();
  auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0 || up_to(6) == 0) {
    if (up_to(3) != 0)
      t->symbol = up_to(symbols);
    else
      t->number = up_to(4) == 0 ? -up_to(20) : up_to(20);
    return t;
  }
  t->op = static_cast<uint32_t>(1 + up_to(8));
  t->a = random_tree(random, depth - 1, symbols);
  t->b = random_tree(random, depth - 1, symbols);
  if (t->op >= REGIE_DIM_FLOORDIV && t->op <= REGIE_DIM_MOD && up_to(3) != 0) {
    t->b = std::make_unique<Tree>();
    t->b->number = up_to(8) == 0 ? -1 - up_to(9) : 1 + up_to(16);
  }
  return t;
}

TEST(BaseDim, RandomExpressionsHaveTheValueOfTheirDefinition) {
  std::mt19937 random(7);
  int compared = 0, unknown = 0;
  for (int round = 0; round < 6000; ++round) {
    DimTable table;
    const std::vector<std::string> names = {"N", "H", "batch size", "w_1"};
    std::vector<regie_dim> symbols;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const std::string& name : names) {
      const int64_t low = static_cast<int64_t>(random() % 6) - 2,
                    high = low + static_cast<int64_t>(random() % 40);
      const bool open = random() % 3 == 0;
      ranges.emplace_back(low, open ? 1000 : high);
      symbols.push_back(table.symbol(name, low, open ? INT64_MAX : high));
    }
    const auto tree = random_tree(random, 1 + round % 5, static_cast<int>(names.size()));
    const regie_dim d = build(table, *tree, symbols);
    if (d == REGIE_DIM_UNKNOWN) {
      ++unknown;
      continue;
    }
    const std::string text = table.print(d);
    const auto again = table.parse(text);
    ASSERT_TRUE(again.ok()) << text << ": " << again.status().to_string();
    ASSERT_EQ(*again, d) << text << " became " << table.print(*again);

    const DimCode code = table.code(d);
    const auto [low, high] = table.range(d);
    for (int sample = 0; sample < 24; ++sample) {
      std::vector<int64_t> values;
      std::vector<std::optional<int64_t>> bound;
      for (auto [a, b] : ranges) {
        values.push_back(sample == 0 ? a
                         : sample == 1
                             ? b
                             : a + static_cast<int64_t>(random() % static_cast<uint64_t>(b - a + 1)));
        bound.emplace_back(values.back());
      }
      const std::optional<Wide> expected = value_of(*tree, values);
      if (!expected) continue;
      const Result<int64_t> got = evaluate(code, values);
      ASSERT_TRUE(got.ok()) << text << ": " << got.status().to_string();
      ASSERT_EQ(*got, static_cast<int64_t>(*expected)) << text;
      ASSERT_EQ(*table.evaluate(d, bound), *got);
      ASSERT_LE(low, *got) << text;
      ASSERT_GE(high, *got) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60000);
  EXPECT_LT(unknown, 1500);  // constant zero divisors
}

TEST(BaseDim, TextDoesNotDependOnTheTable) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    DimTable first, second;
    std::vector<regie_dim> symbols;
    for (const char* name : {"d", "c", "b", "a"}) symbols.push_back(first.symbol(name));
    for (const char* name : {"b", "a", "d"}) second.symbol(name);
    const auto tree = random_tree(random, 4, 4);
    const regie_dim d = build(first, *tree, symbols);
    if (d == REGIE_DIM_UNKNOWN) continue;
    const auto copy = second.parse(first.print(d));
    ASSERT_TRUE(copy.ok()) << first.print(d) << ": " << copy.status().to_string();
    EXPECT_EQ(second.print(*copy), first.print(d));
  }
}

TEST(BaseDim, EqualPolynomialsAreOneHandle) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    DimTable t;
    const std::vector<regie_dim> s = {t.symbol("x", -5, 5), t.symbol("y"), t.symbol("z", 1), t.symbol("w")};
    // A polynomial as products of small sums, multiplied out here and by the table.
    struct Term {
      int64_t coef;
      std::vector<int> factors;
    };
    std::vector<Term> expanded = {{1, {}}};
    regie_dim folded = 1;
    for (int factor = 0; factor < 3; ++factor) {
      std::vector<Term> sum;
      regie_dim total = 0;
      for (int i = 0; i < 3; ++i) {
        const int which = static_cast<int>(random() % 5);
        const int64_t c = static_cast<int64_t>(random() % 7) - 3;
        sum.push_back({c, which < 4 ? std::vector<int>{which} : std::vector<int>{}});
        const regie_dim atom = which < 4 ? s[static_cast<size_t>(which)] : 1;
        const regie_dim size = t.mul(atom, c < 0 ? -c : c);
        total = c < 0 ? t.sub(total, size) : t.add(total, size);
      }
      folded = t.mul(folded, total);
      std::vector<Term> product;
      for (const Term& a : expanded)
        for (const Term& b : sum) {
          Term p{a.coef * b.coef, a.factors};
          p.factors.insert(p.factors.end(), b.factors.begin(), b.factors.end());
          product.push_back(p);
        }
      expanded = product;
    }
    std::shuffle(expanded.begin(), expanded.end(), random);
    regie_dim summed = 0;
    for (Term& p : expanded) {
      std::shuffle(p.factors.begin(), p.factors.end(), random);
      regie_dim m = p.coef < 0 ? -p.coef : p.coef;
      for (int f : p.factors) m = t.mul(s[static_cast<size_t>(f)], m);
      summed = p.coef < 0 ? t.sub(summed, m) : t.add(summed, m);
    }
    ASSERT_EQ(folded, summed) << t.print(folded) << " and " << t.print(summed);
  }
}

TEST(BaseDim, Simplifies) {
  DimTable t;
  t.symbol("N", 1, 32);
  t.symbol("H", 1);
  t.symbol("W", 1);
  const std::pair<const char*, const char*> cases[] = {
      {"floordiv(4*N, 4)", "N"},
      {"floordiv(4*N+2, 4)", "N"},
      {"floordiv(3*N, 2)", "N+floordiv(N, 2)"},
      {"floordiv(4*N+6, 8)", "floordiv(2*N+3, 4)"},
      {"floordiv(H-1, 2)+1", "floordiv(H+1, 2)"},
      {"ceildiv(H, 2)", "floordiv(H+1, 2)"},
      {"floordiv(floordiv(H, 2)+1, 2)", "floordiv(H+2, 4)"},
      {"floordiv(N*H*W, H*W)", "N"},
      {"floordiv(64*N*H*W, 16*N)", "4*H*W"},
      {"floordiv(N*H+N, H+1)", "N"},
      {"floordiv(N*H+W, H)", "N+floordiv(W, H)"},
      {"floordiv(N*H, N*W)", "floordiv(H, W)"},
      {"ceildiv(N*H, N*W)", "ceildiv(H, W)"},
      {"floordiv(N, 64)", "0"},
      {"mod(N, 64)", "N"},
      {"mod(16*N, 4)", "0"},
      {"mod(5*N+6, 4)", "mod(N+2, 4)"},
      {"mod(4*H+3, 8)", "4*mod(H, 2)+3"},
      {"mod(mod(H, 12)+1, 4)", "mod(H+1, 4)"},
      {"mod(N*H, H)", "0"},
      {"min(N, 40)", "N"},
      {"max(N, 0)", "N"},
      {"max(H, H+1)", "H+1"},
      {"min(min(H, W), max(N, 1))", "min(N, min(H, W))"},
      {"max(0, N-3)", "max(N-3, 0)"},
      {"(N+1)*(N-1)", "N*N-1"},
      {"N-N", "0"},
      {"2-5", "-3"},
      {"-9223372036854775808+H", "H-9223372036854775808"},
      {"floordiv(-7, 2)", "-4"},
      {"ceildiv(-7, 2)", "-3"},
      {"mod(-7, 3)", "2"},
      {"mod(7, -3)", "-2"},
      {"floordiv(H, -2)", "floordiv(-H, 2)"},
  };
  for (auto [from, to] : cases) {
    const auto a = t.parse(from), b = t.parse(to);
    ASSERT_TRUE(a.ok()) << a.status().to_string();
    ASSERT_TRUE(b.ok()) << b.status().to_string();
    EXPECT_EQ(*a, *b) << from << " is " << t.print(*a) << ", " << to << " is " << t.print(*b);
  }
  EXPECT_EQ(t.print(*t.parse("1+N*2")), "2*N+1");
  EXPECT_EQ(t.print(*t.parse("min(W, H, N)")), "min(H, N, W)");
}

TEST(BaseDim, RangesNarrowAndSaturate) {
  DimTable t;
  const regie_dim n = t.symbol("N");
  EXPECT_EQ(t.range(n), std::make_pair(int64_t{0}, INT64_MAX));
  EXPECT_EQ(t.range(t.mul(n, n)), std::make_pair(int64_t{0}, INT64_MAX));
  EXPECT_EQ(t.range(t.sub(3, n)), std::make_pair(INT64_MIN, int64_t{3}));
  const regie_dim d = t.add(t.mul(n, 2), 1);
  EXPECT_EQ(t.symbol("N", 1, 32), n);
  EXPECT_EQ(t.range(d), std::make_pair(int64_t{3}, int64_t{65}));
  EXPECT_EQ(t.symbol("N", 0, 100), n);  // never wider again
  EXPECT_EQ(t.range(d), std::make_pair(int64_t{3}, int64_t{65}));
  EXPECT_EQ(t.symbol("N", 33, 40), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.range(n), std::make_pair(int64_t{1}, int64_t{32}));
  EXPECT_EQ(t.symbol("M", 5, 4), REGIE_DIM_UNKNOWN);
  const regie_dim big = t.symbol("B", 0, int64_t{1} << 62);
  EXPECT_EQ(t.range(t.mul(big, 4)).second, INT64_MAX);
  EXPECT_EQ(t.range(t.parse("mod(B, N)").value()), std::make_pair(int64_t{0}, int64_t{31}));
}

TEST(BaseDim, WhatCannotBeIsUnknown) {
  DimTable t;
  const regie_dim n = t.symbol("N");
  EXPECT_EQ(t.op(REGIE_DIM_FLOORDIV, n, 0), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.op(REGIE_DIM_MOD, 3, 0), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.op(REGIE_DIM_ADD, n, REGIE_DIM_UNKNOWN), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.op(REGIE_DIM_ADD, REGIE_DIM_UNKNOWN, 1), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.op(99, n, n), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.op(REGIE_DIM_ADD, -123456789, n), REGIE_DIM_UNKNOWN);  // no handle of this table
  EXPECT_EQ(t.op(REGIE_DIM_ADD, INT64_MAX, 1), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.mul(t.mul(n, INT64_MAX), 2), REGIE_DIM_UNKNOWN);
  EXPECT_EQ(t.print(REGIE_DIM_UNKNOWN), "?");
  EXPECT_EQ(*t.parse("?"), REGIE_DIM_UNKNOWN);
  EXPECT_FALSE(t.symbol_index(t.add(n, 1)).has_value());
  EXPECT_EQ(t.symbol_index(n), 0u);
}

TEST(BaseDim, EvaluationChecksEverything) {
  DimTable t;
  const regie_dim n = t.symbol("N"), h = t.symbol("H");
  const std::optional<int64_t> values[] = {int64_t{1} << 62, std::nullopt};
  EXPECT_EQ(t.evaluate(t.mul(n, 4), values).status().code(), REGIE_INVALID_INPUT);
  const Status missing = t.evaluate(t.add(n, h), values).status();
  EXPECT_NE(missing.message().find("'H'"), std::string::npos) << missing.message();
  EXPECT_TRUE(t.evaluate(n, values).ok());
  const int64_t zero[] = {0, 0};
  EXPECT_EQ(evaluate(t.code(t.op(REGIE_DIM_FLOORDIV, n, h)), zero).status().code(), REGIE_INVALID_INPUT);

  const std::vector<std::vector<int64_t>> malformed = {{},
                                                       {DimCode::kPush},
                                                       {DimCode::kLoad, 2},
                                                       {DimCode::kLoad, -1},
                                                       {REGIE_DIM_ADD, 0},
                                                       {DimCode::kPush, 1, REGIE_DIM_ADD, 0},
                                                       {DimCode::kPush, 1, DimCode::kPush, 1},
                                                       {77, 0},
                                                       {DimCode::kPush, 1, DimCode::kPush, 1, 9, 0}};
  for (const auto& words : malformed)
    EXPECT_EQ(evaluate(DimCode{words}, zero).status().code(), REGIE_CORRUPT);
  const DimCode least{{DimCode::kPush, INT64_MIN, DimCode::kPush, -1, REGIE_DIM_FLOORDIV, 0}};
  EXPECT_EQ(evaluate(least, zero).status().code(), REGIE_INVALID_INPUT);
  // Deeper than any operand stack that is kept inline.
  DimCode deep;
  for (int i = 0; i < 1000; ++i) deep.words.insert(deep.words.end(), {DimCode::kPush, 1});
  for (int i = 0; i < 999; ++i) deep.words.insert(deep.words.end(), {REGIE_DIM_ADD, 0});
  EXPECT_EQ(*evaluate(deep, zero), 1000);
}

TEST(BaseDim, ParserRefusesWithPlaceAndReason) {
  DimTable t;
  const std::pair<std::string, const char*> cases[] = {{"", "expected a number"},
                                                       {"N+", "expected a number"},
                                                       {"N N", "expected an operator"},
                                                       {"floordiv(N)", "two operands"},
                                                       {"floordiv(N, 2, 3)", "expected ')'"},
                                                       {"mod N", "expected '('"},
                                                       {"(N", "expected ')'"},
                                                       {"9223372036854775808", "64 bits"},
                                                       {"mod(N, 0)", "divides by zero"},
                                                       {"\"N", "no end"},
                                                       {"\"\\q\"", "unknown escape"},
                                                       {"\"\\xZ\"", "hexadecimal"},
                                                       {"N)", "expected an operator"},
                                                       {std::string(100000, '('), "nested too deeply"},
                                                       {"99999999999999999999999", "64 bits"}};
  for (const auto& [text, words] : cases) {
    const Status s = t.parse(text, "graph.rg:3").status();
    EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
    EXPECT_NE(s.message().find(words), std::string::npos) << text.substr(0, 40) << ": " << s.message();
    EXPECT_EQ(s.where(), "graph.rg:3");
  }
}

TEST(BaseDim, AnyNameRoundTrips) {
  DimTable t;
  for (std::string name : {std::string("past-length"), std::string("2N"), std::string("min"), std::string(""),
                           std::string("a \"b\" \\ \n\x01 ü"), std::string("where")}) {
    const regie_dim d = t.add(t.mul(t.symbol(name), 2), 1);
    const auto again = t.parse(t.print(d));
    ASSERT_TRUE(again.ok()) << t.print(d);
    EXPECT_EQ(*again, d) << t.print(d);
  }
  EXPECT_EQ(t.print(t.symbol("past-length")), "\"past-length\"");
}

TEST(BaseDim, LargeAndDeepExpressionsStayInBounds) {
  DimTable t;
  const auto start = std::chrono::steady_clock::now();
  // 20,000 distinct terms added one by one, then taken away again in another order.
  std::vector<regie_dim> symbols;
  for (int i = 0; i < 20000; ++i) symbols.push_back(t.symbol("s" + std::to_string(i), 1, 2));
  regie_dim sum = 0;
  for (regie_dim s : symbols) {
    sum = t.add(sum, s);
    ASSERT_GE(t.range(sum).first, 1);
  }
  EXPECT_EQ(t.range(sum), std::make_pair(int64_t{20000}, int64_t{40000}));
  EXPECT_EQ(*t.parse(t.print(sum)), sum);
  for (size_t i = symbols.size(); i-- > 0;) sum = t.sub(sum, symbols[(i * 7919) % symbols.size()]);
  EXPECT_EQ(sum, 0);
  // A product of two long sums is not multiplied out, but is the same whatever the order, and evaluates.
  regie_dim a = 0, b = 0;
  for (int i = 0; i < 1000; ++i) {
    a = t.add(a, symbols[static_cast<size_t>(i)]);
    b = t.add(b, symbols[static_cast<size_t>(i + 1000)]);
  }
  const regie_dim product = t.mul(a, b);
  EXPECT_EQ(product, t.mul(b, a));
  EXPECT_EQ(*t.parse(t.print(product)), product);
  const std::vector<int64_t> ones(symbols.size(), 1);
  EXPECT_EQ(*evaluate(t.code(product), ones), 1000000);
  // Doubling in every step: the text would be exponential; the table gives up instead.
  regie_dim deep = symbols[0];
  int steps = 0;
  while (deep != REGIE_DIM_UNKNOWN && steps < 1000) {
    deep = t.add(t.op(REGIE_DIM_FLOORDIV, deep, symbols[1]), t.op(REGIE_DIM_MOD, deep, symbols[2]));
    ++steps;
  }
  EXPECT_LT(steps, 130);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 30.0);
}

}  // namespace
}  // namespace regie
