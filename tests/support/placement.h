// Placers through their C table, with engines whose answers the test makes up.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/provider.h"
#include "text/text.h"

namespace regie::test {

struct PlacementAnswer {
  bool can;
  bool reference;
  double cost;
  const char* reason;
};
inline constexpr PlacementAnswer kCannot{false, false, 0, "not in its list"};

// 1000 ns and one a byte from space to space; `sync` between engines of one space.
struct PlacementRun {
  explicit PlacementRun(const std::string& placer) : placer_(&PluginHost::placer, placer) {}

  // `answers`: a row a node in program order; `forced`: an engine a node, REGIE_NONE where free.
  Status place(std::string_view text, const std::vector<std::vector<PlacementAnswer>>& answers,
               std::vector<uint32_t> forced = {}) {
    auto parsed = parse(text, "test.rg");
    if (!parsed.ok()) return parsed.status();
    return place(**parsed, answers, std::move(forced));
  }

  Status place(const Graph& g, const std::vector<std::vector<PlacementAnswer>>& answers,
               std::vector<uint32_t> forced = {}) {
    std::vector<std::vector<regie_answer>> rows;
    std::vector<regie_placement_node> nodes;
    g.for_each_node([&](uint32_t n) { nodes.push_back({n, REGIE_NONE, nullptr}); });
    rows.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      rows.emplace_back();
      for (const PlacementAnswer& a : answers.at(i))
        rows.back().push_back({a.can, a.reference, str(std::string_view(a.reason)), a.cost});
      nodes[i].answers = rows.back().data();
      if (i < forced.size()) nodes[i].forced_engine = forced[i];
    }
    engine.assign(nodes.size(), REGIE_NONE);
    reason.assign(nodes.size(), "");
    graph_ = &g;
    regie_placement_problem p{};
    p.struct_size = sizeof(p);
    p.node_count = static_cast<uint32_t>(nodes.size());
    p.graph = &g.view();
    p.nodes = nodes.data();
    p.transfer_ns = [](const regie_placement_problem*, uint32_t, uint32_t, uint64_t bytes) {
      return 1000.0 + static_cast<double>(bytes);
    };
    p.assign = [](const regie_placement_problem* self, uint32_t index, uint32_t e,
                  regie_str why) -> regie_status {
      auto& t = *static_cast<PlacementRun*>(self->state);
      EXPECT_EQ(t.engine.at(index), REGIE_NONE) << "placed twice";
      t.engine[index] = e;
      t.reason[index] = view(why);
      return REGIE_OK;
    };
    p.state = this;
    p.sync_ns = [](const regie_placement_problem* self, uint32_t from, uint32_t to) {
      const auto& t = *static_cast<PlacementRun*>(self->state);
      const auto* engines = t.graph_->view().engines;
      return from == to || engines[from].space != engines[to].space ? 0.0 : t.sync;
    };
    return call_plugin("placer",
                       [&] { return placer_.table->place(placer_.index, host_table(), nullptr, &p); });
  }

  double sync = 0;
  std::vector<uint32_t> engine;
  std::vector<std::string> reason;

 private:
  Provided<regie_placer_table> placer_;
  const Graph* graph_ = nullptr;
};

}  // namespace regie::test
