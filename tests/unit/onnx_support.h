// What the tests of the ONNX frontend share: the host with the built-in plug-ins, imports from bytes, and a
// description of a graph that is made here, from the graph's own functions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ir/verify.h"
#include "passes/importer.h"
#include "passes/plugin_op_set.h"
#include "plugins/host.h"
#include "text/text.h"

namespace onnx_test {

class OnnxTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto host = regie::PluginHost::create({REGIE_TEST_PLUGIN_DIR});
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    host_ = *host;
    auto ops = regie::PluginOpSet::create(host_);
    ASSERT_TRUE(ops.ok()) << ops.status().to_string();
    ops_ = *ops;
  }
  static void TearDownTestSuite() {
    ops_.reset();
    host_.reset();
  }

  using Options = regie::ImportOptions;
  regie::Result<std::unique_ptr<regie::Graph>> import(const std::string& bytes, const Options& options = {}) {
    return checked(
        regie::import_bytes(*host_, *ops_, std::as_bytes(std::span(bytes)), "model.onnx", {options, {}}));
  }
  regie::Result<std::unique_ptr<regie::Graph>> import_file(const std::string& path,
                                                           const Options& options = {}) {
    return checked(regie::import_model(*host_, *ops_, path, {options, {}}));
  }
  // Imports what must be right; a failure of the test and an empty graph otherwise.
  std::unique_ptr<regie::Graph> good(const std::string& bytes, const Options& options = {}) {
    auto g = import(bytes, options);
    EXPECT_TRUE(g.ok()) << g.status().to_string();
    return g.ok() ? std::move(*g) : std::make_unique<regie::Graph>();
  }
  // Imports what must be wrong; the whole text of the failure.
  std::string bad(const std::string& bytes, regie_status code, const Options& options = {}) {
    auto g = import(bytes, options);
    EXPECT_FALSE(g.ok());
    if (g.ok()) return "imported";
    EXPECT_EQ(regie::status_code_name(g.status().code()), regie::status_code_name(code))
        << g.status().to_string();
    EXPECT_THAT(g.status().to_string(), testing::StartsWith("model.onnx"));
    return g.status().to_string();
  }

  static std::shared_ptr<regie::PluginHost> host_;
  static std::shared_ptr<regie::PluginOpSet> ops_;

 private:
  // Every graph that a test makes is verified, and goes through the text form and back.
  static regie::Result<std::unique_ptr<regie::Graph>> checked(
      regie::Result<std::unique_ptr<regie::Graph>> graph) {
    if (!graph.ok()) return graph;
    regie::VerifyOptions options;
    options.ops = ops_.get();
    options.shapes_known = true;
    auto status = regie::verify(**graph, options);
    EXPECT_TRUE(status.ok()) << status.to_string();
    regie::PrintOptions all;
    all.inline_elements = 1 << 20;
    auto again = regie::parse(regie::print(**graph, all), "printed.rg");
    EXPECT_TRUE(again.ok()) << again.status().to_string() << "\n" << regie::print(**graph);
    if (again.ok()) {
      auto same = regie::same_graph(**graph, **again);
      EXPECT_TRUE(same.ok()) << same.to_string();
    }
    return graph;
  }
};

inline std::shared_ptr<regie::PluginHost> OnnxTest::host_;
inline std::shared_ptr<regie::PluginOpSet> OnnxTest::ops_;

inline std::string type_text(const regie::Graph& g, uint32_t value) {
  const regie_type& t = g.value(value).type;
  std::string text(regie::elem_name(t.elem));
  text += '[';
  for (int32_t i = 0; i < t.rank; ++i)
    text += (i ? "," : "") + (t.dims[i] >= 0 ? std::to_string(t.dims[i]) : g.dims().print(t.dims[i]));
  return text + ']';
}

// Elements of a constant as text: "[1 2]".
inline std::string elements(const regie::Graph& g, uint32_t value) {
  const regie::Tensor& t = g.tensor(value);
  if (!t) return "[abstract]";
  std::string text = "[";
  auto all = [&](auto span) {
    for (auto v : span) {
      char number[32];
      snprintf(number, sizeof(number), "%s%.9g", text.size() > 1 ? " " : "", static_cast<double>(v));
      text += number;
    }
  };
  switch (t.elem()) {
    case REGIE_F32:
      all(t.as<float>());
      break;
    case REGIE_F64:
      all(t.as<double>());
      break;
    case REGIE_I64:
      all(t.as<int64_t>());
      break;
    case REGIE_U64:
      all(t.as<uint64_t>());
      break;
    case REGIE_I32:
      all(t.as<int32_t>());
      break;
    case REGIE_U32:
      all(t.as<uint32_t>());
      break;
    case REGIE_I16:
      all(t.as<int16_t>());
      break;
    case REGIE_U16:
    case REGIE_BF16:
    case REGIE_F16:
      all(t.as<uint16_t>());
      break;
    case REGIE_I8:
      all(t.as<int8_t>());
      break;
    default:
      all(std::span(static_cast<const uint8_t*>(t.data()), t.bytes()));
      break;
  }
  return text + "]";
}

// An operand as text: its name, or a constant's elements if it has a few.
inline std::string operand_text(const regie::Graph& g, uint32_t value) {
  if (value == REGIE_NONE) return "_";
  if (g.is_constant(value) && g.tensor(value).count() <= 8 && g.tensor(value).elem() != REGIE_STRING)
    return elements(g, value);
  return std::string(regie::view(g.value(value).name));
}

inline std::string attr_text(const regie_attr& a) {
  std::string text = std::string(regie::view(a.name)) + "=";
  char number[32];
  switch (a.kind) {
    case REGIE_ATTR_INT:
      return text + std::to_string(a.v.i);
    case REGIE_ATTR_FLOAT:
      snprintf(number, sizeof(number), "%.17g", a.v.f);
      return text + number;
    case REGIE_ATTR_STRING:
      return text + std::string(regie::view(a.v.s));
    case REGIE_ATTR_INTS:
      for (uint32_t i = 0; i < a.count; ++i) text += (i ? "," : "") + std::to_string(a.v.ints[i]);
      return text;
    default:
      return text + "?";
  }
}

// "y:f32[N,8] = Relu(x) {a=1}" for each node of a region, those of inner regions after "then_branch(args):"
// and before
// "-> results".
inline void describe(const regie::Graph& g, uint32_t region, std::vector<std::string>* lines) {
  for (uint32_t n = g.region(region).first; n != REGIE_NONE; n = g.node(n).next) {
    std::string line;
    for (uint32_t r : g.results(n)) {
      if (!line.empty()) line += ", ";
      line += r == REGIE_NONE ? "_" : std::string(regie::view(g.value(r).name)) + ":" + type_text(g, r);
    }
    line += " = " + std::string(regie::view(g.node(n).op)) + "(";
    for (uint32_t i = 0; i < g.node(n).operand_count; ++i)
      line += (i ? ", " : "") + operand_text(g, g.node(n).operands[i]);
    line += ")";
    std::string attrs;
    for (uint32_t i = 0; i < g.node(n).attr_count; ++i)
      attrs += (i ? " " : "") + attr_text(g.node(n).attrs[i]);
    lines->push_back(line + (attrs.empty() ? "" : " {" + attrs + "}"));
    for (uint32_t k = 0; k < g.node(n).region_count; ++k) {
      const regie_region& r = g.region(g.node(n).regions[k]);
      std::string head = std::string(regie::view(r.name)) + "(";
      for (uint32_t i = 0; i < r.arg_count; ++i) head += (i ? ", " : "") + operand_text(g, r.args[i]);
      lines->push_back(head + "):");
      describe(g, r.id, lines);
      std::string tail = "->";
      for (uint32_t i = 0; i < r.result_count; ++i) tail += " " + operand_text(g, r.results[i]);
      lines->push_back(tail);
    }
  }
}
inline std::vector<std::string> lines_of(const regie::Graph& g) {
  std::vector<std::string> lines;
  describe(g, 0, &lines);
  return lines;
}

}  // namespace onnx_test
