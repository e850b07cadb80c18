#include "base/toml.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace regie {
namespace {

TomlTable table(std::string_view text) {
  auto t = TomlTable::parse(text, "a.toml");
  EXPECT_TRUE(t.ok()) << t.status().to_string();
  return *t;
}

TEST(BaseToml, GivesTypedValues) {
  const TomlTable t = table(
      "s = 'x'\ni = 3\nf = 0.5\nb = true\nlist = ['p', 'q']\nmixed = [1, 2.5, true, 'z']\n[sub]\nk = -1\n");
  EXPECT_EQ(*t.string_or("s", ""), "x");
  EXPECT_EQ(*t.integer_or("i", 0), 3);
  EXPECT_EQ(*t.require("f")->as_number(), 0.5);
  EXPECT_EQ(*t.require("i")->as_number(), 3.0);
  EXPECT_TRUE(*t.bool_or("b", false));
  EXPECT_EQ(*t.strings_or("list", {}), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(*t.string_or("absent", "fallback"), "fallback");
  EXPECT_EQ(t.find("mixed")->to_text(), "[1, 2.5, true, z]");
  EXPECT_EQ(t.find("f")->to_text(), "0.5");
  EXPECT_EQ(t.find("b")->to_text(), "true");
  const auto sub = t.require("sub")->as_table();
  ASSERT_TRUE(sub.ok());
  EXPECT_EQ(*sub->integer_or("k", 0), -1);
  EXPECT_TRUE(sub->finish().ok());
  EXPECT_TRUE(t.finish().ok()) << t.finish().to_string();
  EXPECT_EQ(table("x = 1e-5").find("x")->to_text(), "1e-05");
  EXPECT_EQ(table("x = 2.0").find("x")->to_text(), "2.0");
  EXPECT_EQ(table("x = 2020-01-02").find("x")->to_text(), "2020-01-02");
}

TEST(BaseToml, KeepsTheOrderOfTheFile) {
  EXPECT_EQ(table("zeta = 1\nalpha = 2\nmid = 3\n").keys(),
            (std::vector<std::string>{"zeta", "alpha", "mid"}));
}

TEST(BaseToml, WrongTypesNameKeyFileAndLine) {
  const TomlTable t = table("a = 1\nb = 'x'\nlist = ['p', 2]\n");
  EXPECT_EQ(t.string_or("a", "").status().to_string(), "a.toml:1: 'a' must be a string, not an integer");
  EXPECT_EQ(t.integer_or("b", 0).status().to_string(), "a.toml:2: 'b' must be an integer, not a string");
  EXPECT_EQ(t.strings_or("list", {}).status().to_string(),
            "a.toml:3: 'list[1]' must be a string, not an integer");
  EXPECT_EQ(t.strings_or("a", {}).status().to_string(),
            "a.toml:1: 'a' must be an array of strings, not an integer");
  EXPECT_EQ(t.require("a")->as_table().status().to_string(), "a.toml:1: 'a' must be a table, not an integer");
  EXPECT_EQ(t.require("c").status().code(), REGIE_INVALID_INPUT);
  EXPECT_NE(t.require("c").status().message().find("key 'c' is missing"), std::string::npos);
}

TEST(BaseToml, UnknownKeysHaveTheNearestKnownOne) {
  const TomlTable t = table("schema = 1\nname = 'x'\n\npases = []\n");
  for (const char* key : {"schema", "name", "passes", "repeat"}) (void)t.find(key);
  EXPECT_EQ(t.finish().to_string(), "a.toml:4: unknown key 'pases'; did you mean 'passes'?");
  const TomlTable far = table("[[stage]]\nname = 'x'\nfrobnicate = 1\n");
  const auto stages = far.require("stage")->as_array();
  const auto stage = stages->at(0).as_table();
  (void)stage->find("name");
  (void)stage->find("passes");
  EXPECT_EQ(stage->finish().to_string(),
            "a.toml:3: unknown key 'frobnicate' in 'stage[0]'; known here: name, passes");
}

TEST(BaseToml, SchemaIsChecked) {
  EXPECT_TRUE(table("schema = 1").check_schema(1).ok());
  EXPECT_FALSE(table("").check_schema(1).ok());
  EXPECT_FALSE(table("schema = 0").check_schema(1).ok());
  const Status newer = table("\nschema = 7").check_schema(2);
  EXPECT_EQ(newer.where(), "a.toml:2");
  EXPECT_NE(newer.message().find("1 to 2"), std::string::npos) << newer.message();
  EXPECT_NE(newer.message().find("newer"), std::string::npos);
}

TEST(BaseToml, BrokenFilesSayWhere) {
  const Status s = TomlTable::parse("a = 1\nb = = 2\n", "b.toml").status();
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(s.where(), "b.toml:2");
  for (const char* text : {"a = 1\na = 2", "[t", "x = \"\xff\"", "= 1", "a = [1, "})
    EXPECT_EQ(TomlTable::parse(text, "b.toml").status().code(), REGIE_INVALID_INPUT) << text;
  EXPECT_EQ(TomlTable::parse("a = " + std::string(100000, '['), "b.toml").status().code(),
            REGIE_INVALID_INPUT);
  EXPECT_EQ(TomlTable::parse_file("/no/such.toml").status().code(), REGIE_NOT_FOUND);
}

TEST(BaseToml, NearestName) {
  const std::vector<std::string> names = {"fold-constants", "remove-dead", "apply-rules", "Relu", "x"};
  EXPECT_EQ(nearest_name("fold-constant", names), "fold-constants");
  EXPECT_EQ(nearest_name("remvoe-dead", names), "remove-dead");
  EXPECT_EQ(nearest_name("relu", names), "Relu");
  EXPECT_EQ(nearest_name("ascend910-sim", {"ascend310-sim", "ascend910a-sim", "ascend910b3-sim"}),
            "ascend910a-sim");
  EXPECT_EQ(nearest_name("schedule", names), std::nullopt);
  EXPECT_EQ(nearest_name("y", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), names), std::nullopt);
}

}  // namespace
}  // namespace regie
