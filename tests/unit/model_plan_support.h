// Plans made by hand for the tests of the plan check.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/file.h"
#include "model/plan_check.h"
#include "support/model_builder.h"

namespace regie::plan_test {

using test::ModelBuilder;

// One device of two streams with four floats a buffer; buffers may be put on each other by hand.
struct Plan : ModelBuilder {
  uint32_t d, t;
  Arg x;
  Plan() {
    d = device("d", "fake_async");
    space("host", d);
    t = f32({4});
    x = input("x", t);
  }
  Arg buffer(const std::string& name) { return ModelBuilder::buffer(name, 0, t); }
  void same_place(const Arg& a, const Arg& b) { m.buffers[a.index].offset = m.buffers[b.index].offset; }
  // "" if it is right.
  std::string check(bool place = true) {
    const std::shared_ptr<Model> model = finish(place);
    const Status structure = check_model(*model);
    EXPECT_TRUE(structure.ok()) << structure.to_string();
    const Status s = check_plan(*model);
    if (!s.ok()) {
      EXPECT_EQ(s.code(), REGIE_INTERNAL);
    }
    return s.ok() ? "" : s.message();
  }
  std::string check_on_one_place(const std::vector<Arg>& buffers) {
    uint64_t at = 0;
    for (ModelBuffer& b : m.buffers) b.offset = at, at += 64;
    for (const Arg& a : buffers) same_place(a, buffers[0]);
    return check(false);
  }
};

}  // namespace regie::plan_test
