#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace regie {
namespace {

TEST(BaseJsonWriter, WhatAnotherReaderReads) {
  JsonWriter j;
  j.open_object(true).member("n", 1u).member("minus", -7).member("yes", true).member("x", 0.5);
  j.member("none", std::nan("")).strings("list", std::vector<std::string>{"a", "b\"c\\\n\t\x01"});
  j.key("empty").open_array(true).close();
  j.key("lines").open_array(true);
  for (int i = 0; i < 3; ++i) j.open_object().member("i", i).close();
  const std::string text = j.close().close().take();
  EXPECT_EQ(nlohmann::json::parse(text),
            nlohmann::json::parse(
                "{\"n\":1,\"minus\":-7,\"yes\":true,\"x\":0.5,\"none\":null,\"list\":[\"a\","
                "\"b\\\"c\\\\\\n\\t\\u0001\"],\"empty\":[],\"lines\":[{\"i\":0},{\"i\":1},{\"i\":2}]}"))
      << text;
}

// A name may hold any bytes; the text is UTF-8 whatever they are.
TEST(BaseJsonWriter, BytesThatAreNoText) {
  const std::string texts[] = {
      "\xff",     "\xc3",         "\xc3\xa4",         "\xe2\x82", "\xe2\x82\xac",         "\xf0\x9f\x98\x80",
      "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "a\x80z",   std::string("a\0b", 3), "\xe0\x80\x80"};
  const std::string expected[] = {"\xef\xbf\xbd",
                                  "\xef\xbf\xbd",
                                  "\xc3\xa4",
                                  "\xef\xbf\xbd\xef\xbf\xbd",
                                  "\xe2\x82\xac",
                                  "\xf0\x9f\x98\x80",
                                  "\xef\xbf\xbd\xef\xbf\xbd",
                                  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                                  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                                  "a\xef\xbf\xbdz",
                                  std::string("a\0b", 3),
                                  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"};
  for (size_t i = 0; i < std::size(texts); ++i) {
    JsonWriter j;
    j.open_array().value(texts[i]);
    EXPECT_EQ(nlohmann::json::parse(j.close().take())[0].get<std::string>(), expected[i]) << i;
  }
}

}  // namespace
}  // namespace regie
