// A graph from text with the operators of this build, and the types of its values by name.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ir/graph.h"
#include "passes/plugin_op_set.h"
#include "plugins/host.h"
#include "regie_test_paths.h"
#include "text/text.h"

namespace regie::test {

class TypedGraph : public testing::Test {
 protected:
  void SetUp() override {
    auto host = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    host_ = *host;
    set_current_plugin_host(host_);
    auto ops = PluginOpSet::create(host_);
    ASSERT_TRUE(ops.ok()) << ops.status().to_string();
    ops_ = *ops;
  }
  void read(std::string_view text) {
    auto graph = parse(text, "test.rg");
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    graph_ = std::move(*graph);
  }
  uint32_t value(std::string_view name) const {
    for (uint32_t v = 0; v < graph_->value_count(); ++v)
      if (graph_->live_value(v) && view(graph_->value(v).name) == name) return v;
    return REGIE_NONE;
  }
  std::string type(std::string_view name) const {
    return print_type(*graph_, graph_->value(value(name)).type);
  }

  std::shared_ptr<PluginHost> host_;
  std::shared_ptr<PluginOpSet> ops_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace regie::test
