// What a model may not say of strings, whose bytes are addresses.
#include "model/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/check.h"
#include "support/model_builder.h"

namespace regie {
namespace {

using testing::HasSubstr;

// x of two strings -> b -> y; each test breaks something.
struct Sample : test::ModelBuilder {
  Sample() {
    device("cpu", "fake");
    space("host", 0);
    texts = type(REGIE_STRING, {2});
    numbers = type(REGIE_I64, {4});
    x = input("x", texts);
    y = output("y", texts);
    b = buffer("b", 0, texts, 32);
  }
  void chain() {
    launch(0, 0, "first", {x}, {b});
    launch(0, 0, "second", {b}, {y});
  }
  Status check() {
    const std::shared_ptr<Model> model = finish();
    return check_model_as(*model, REGIE_CORRUPT);
  }
  static Arg as(Arg a, uint32_t type) {
    a.type = type;
    return a;
  }
  uint32_t texts = 0, numbers = 0;
  Arg x, y, b;
};

void expect(Sample& s, regie_status code, const char* words) {
  const Status status = s.check();
  EXPECT_EQ(status_code_name(status.code()), status_code_name(code)) << status.to_string();
  EXPECT_THAT(status.to_string(), HasSubstr(words));
}

TEST(ModelStrings, APlainChainIsRight) {
  Sample s;
  s.chain();
  const Status status = s.check();
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(ModelStrings, OtherBytesAreNoStrings) {
  constexpr const char* kWords = "taken for each other";
  Sample as_numbers;  // a buffer is written as numbers and read as strings
  as_numbers.launch(0, 0, "first", {as_numbers.x}, {Sample::as(as_numbers.b, as_numbers.numbers)});
  as_numbers.launch(0, 0, "second", {as_numbers.b}, {as_numbers.y});
  expect(as_numbers, REGIE_CORRUPT, kWords);

  Sample from_input;  // an input of numbers is read as strings
  const Arg n = from_input.input("n", from_input.numbers);
  from_input.launch(0, 0, "first", {Sample::as(n, from_input.texts)}, {from_input.b});
  from_input.launch(0, 0, "second", {from_input.b}, {from_input.y});
  expect(from_input, REGIE_CORRUPT, kWords);

  Sample to_output;  // an output of strings is written as numbers
  to_output.launch(0, 0, "first", {to_output.x}, {Sample::as(to_output.y, to_output.numbers)});
  expect(to_output, REGIE_CORRUPT, kWords);

  Sample source;  // an output of strings comes from an input of numbers
  const Arg m = source.input("m", source.numbers);
  source.m.output_sources[0] = m;
  expect(source, REGIE_CORRUPT, kWords);

  Sample part;  // a string that begins amid another
  const uint32_t one = part.type(REGIE_STRING, {1});
  part.chain();
  Arg inner = Sample::as(part.b, one);
  inner.offset = 8;
  part.launch(0, 0, "third", {inner}, {part.buffer("c", 0, one, 16)});
  expect(part, REGIE_CORRUPT, kWords);
}

TEST(ModelStrings, AreWrittenBeforeTheyAreRead) {
  Sample s;
  s.launch(0, 0, "second", {s.b}, {s.y});
  s.launch(0, 0, "first", {s.x}, {s.b});
  expect(s, REGIE_CORRUPT, "reads strings that nothing has written");

  Sample nothing;  // no task writes the output
  expect(nothing, REGIE_CORRUPT, "reads strings that nothing has written");

  Sample branches;  // what one branch writes is not there after it
  const uint32_t flag = branches.type(REGIE_BOOL, {});
  const Arg condition = branches.input("c", flag);
  branches.program();
  const uint32_t yes = branches.program(), no = branches.program();
  branches.launch(0, 0, "inner", {branches.x}, {branches.b}, {}, yes);
  branches.branch(0, 0, condition, {}, yes, {}, no, {});
  branches.launch(0, 0, "second", {branches.b}, {branches.y});
  expect(branches, REGIE_CORRUPT, "reads strings that nothing has written");
}

TEST(ModelStrings, AreNoConstants) {
  Sample s;
  const Arg w = s.weight({1, 2, 3, 4, 5, 6, 7, 8}, s.texts);
  s.launch(0, 0, "first", {w}, {s.b});
  s.launch(0, 0, "second", {s.b}, {s.y});
  expect(s, REGIE_UNSUPPORTED, "constants of type string cannot be stored");
}

}  // namespace
}  // namespace regie
