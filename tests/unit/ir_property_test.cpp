// Random graphs under random patches: structure holds, meaning is kept, text comes back, refusals leave no
// trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/edit.h"
#include "ir/verify.h"
#include "support/fake_op_set.h"
#include "support/random_graph.h"
#include "text/text.h"

namespace regie {
namespace {

using test::FakeOpSet;
using test::RandomGraph;

void expect_sound(const Graph& g, const std::string& context) {
  Status s = verify(g);
  ASSERT_TRUE(s.ok()) << s.to_string() << "\n" << context << "\n" << print(g);
}

// The first line in which two texts differ.
std::string first_difference(const std::string& a, const std::string& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  if (i == a.size() && i == b.size()) return {};
  auto line = [i](const std::string& s) {
    size_t from = i == 0 ? 0 : s.rfind('\n', i - 1) + 1;
    return s.substr(from, s.find('\n', i) - from);
  };
  return line(a) + "\n" + line(b);
}

// parse(print(g)) is g, and prints the same.
void expect_round_trip(const Graph& g, const std::string& context,
                       std::vector<uint64_t> inline_limits = {16, 0, UINT64_MAX}) {
  for (uint64_t inline_elements : inline_limits) {
    PrintOptions options;
    options.inline_elements = inline_elements;
    std::string text = print(g, options);
    ParseOptions parse_options;
    parse_options.constants = [&](std::string_view digest, regie_elem,
                                  std::span<const int64_t>) -> Result<Tensor> {
      for (uint32_t v = 0; v < g.value_count(); ++v)
        if (g.is_constant(v) && g.tensor(v) && g.tensor(v).digest() == digest) return g.tensor(v);
      return Tensor();
    };
    auto back = parse(text, "again.rg", parse_options);
    ASSERT_TRUE(back.ok()) << back.status().to_string() << "\n" << context << "\n" << text;
    Status s = verify(**back);
    ASSERT_TRUE(s.ok()) << s.to_string() << "\n" << text;
    s = same_graph(g, **back);
    ASSERT_TRUE(s.ok()) << s.to_string() << "\n" << context << "\n" << text;
    ASSERT_EQ(first_difference(print(**back, options), text), "") << context;
  }
}

TEST(IrProperty, RandomGraphsComeBackFromText) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    auto g = RandomGraph(seed).make();
    std::string context = "seed " + std::to_string(seed);
    ASSERT_NO_FATAL_FAILURE(expect_sound(*g, context));
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(*g, context));
  }
}

// One random patch recorded into `edit`; gives what it was, or nothing if the choice did not fit the graph.
class RandomPatches {
 public:
  RandomPatches(Graph& g, RandomGraph& random) : g_(g), random_(random) {}

  std::string record(Edit& edit) {
    std::vector<uint32_t> nodes;
    for (uint32_t n = 0; n < g_.node_count(); ++n)
      if (g_.live(n)) nodes.push_back(n);
    if (nodes.empty()) return {};
    uint32_t n = nodes[below(nodes.size())];
    switch (below(7)) {
      case 0:
        return rebuild(edit, n);
      case 1:
        return drop_identity(edit, n);
      case 2:
        return put_behind(edit, n);
      case 3:
        return inline_call(edit, n);
      case 4:
        return outline(edit, n);
      case 5:
        return remove_unread(edit, n);
      default:
        return shuffle_operand(edit, n);
    }
  }

 private:
  uint32_t below(size_t n) { return random_.below(static_cast<uint32_t>(n)); }
  std::string_view op(uint32_t n) { return view(g_.node(n).op); }
  // Some node of the same region, so that new nodes land in the wrong place and order must be repaired.
  uint32_t anchor_near(uint32_t n) {
    for (uint32_t i = below(6); i > 0; --i) {
      uint32_t to = below(2) ? g_.node(n).next : g_.node(n).prev;
      if (to != REGIE_NONE) n = to;
    }
    return n;
  }
  NodeSpec copy_of(uint32_t n) {
    NodeSpec spec;
    spec.op = op(n);
    spec.operands.assign(g_.operands(n).begin(), g_.operands(n).end());
    spec.result_count = g_.node(n).result_count;
    for (uint32_t r : g_.results(n)) spec.omitted.push_back(r == REGIE_NONE);
    for (uint32_t i = 0; i < g_.node(n).attr_count; ++i)
      spec.attrs.push_back(AttrValue::of(g_.node(n).attrs[i]));
    return spec;
  }

  std::string rebuild(Edit& edit, uint32_t n) {
    if (g_.node(n).region_count) return {};
    EXPECT_TRUE(edit.begin("rebuild", anchor_near(n)).ok());
    auto made = edit.node(copy_of(n));
    EXPECT_TRUE(made.ok());
    for (uint32_t i = 0; i < g_.node(n).result_count; ++i)
      if (g_.results(n)[i] != REGIE_NONE) {
        EXPECT_TRUE(edit.replace(g_.results(n)[i], (*made)[i]).ok());
      }
    EXPECT_TRUE(edit.remove(n).ok());
    return done(edit, "rebuild", n);
  }
  std::string drop_identity(Edit& edit, uint32_t n) {
    if (op(n) != "Identity") return {};
    EXPECT_TRUE(edit.begin("drop identity", n).ok());
    EXPECT_TRUE(edit.replace(g_.results(n)[0], g_.operands(n)[0]).ok());
    EXPECT_TRUE(edit.remove(n).ok());
    return done(edit, "drop identity", n);
  }
  std::string put_behind(Edit& edit, uint32_t n) {
    if (g_.node(n).result_count == 0 || g_.results(n)[0] == REGIE_NONE) return {};
    uint32_t v = g_.results(n)[0];
    EXPECT_TRUE(edit.begin("put behind", anchor_near(n)).ok());
    NodeSpec spec;
    spec.op = "Identity";
    spec.operands = {v};
    auto made = edit.node(spec);
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE(edit.replace(v, (*made)[0]).ok());
    return done(edit, "put behind", n);
  }
  std::string inline_call(Edit& edit, uint32_t n) {
    if (op(n) != "Call") return {};
    const regie_region& r = g_.region(g_.node(n).regions[0]);
    EXPECT_TRUE(edit.begin("inline", n).ok());
    std::vector<uint32_t> args(g_.operands(n).begin(), g_.operands(n).begin() + r.arg_count);
    auto results = edit.inline_region(n, 0, args);
    EXPECT_TRUE(results.ok());
    for (uint32_t i = 0; i < g_.node(n).result_count; ++i)
      if (g_.results(n)[i] != REGIE_NONE) {
        EXPECT_TRUE(edit.replace(g_.results(n)[i], (*results)[i]).ok());
      }
    EXPECT_TRUE(edit.remove(n).ok());
    return done(edit, "inline", n);
  }
  std::string outline(Edit& edit, uint32_t n) {
    bool fits = g_.node(n).region_count == 0 && g_.node(n).operand_count > 0;
    for (uint32_t v : g_.operands(n)) fits = fits && v != REGIE_NONE && !g_.is_constant(v);
    for (uint32_t v : g_.results(n)) fits = fits && v != REGIE_NONE;
    if (!fits || g_.node(n).result_count == 0) return {};
    EXPECT_TRUE(edit.begin("outline", n).ok());
    std::vector<regie_type> types;
    for (uint32_t v : g_.operands(n)) types.push_back(g_.value(v).type);
    std::vector<uint32_t> args;
    auto region = edit.open_region("body", types, {}, &args);
    EXPECT_TRUE(region.ok());
    NodeSpec inner = copy_of(n);
    inner.operands = args;
    auto results = edit.node(inner);
    EXPECT_TRUE(results.ok() && edit.close_region(*results).ok());
    NodeSpec call;
    call.op = "Call";
    call.operands.assign(g_.operands(n).begin(), g_.operands(n).end());
    call.result_count = g_.node(n).result_count;
    call.regions = {*region};
    auto made = edit.node(call);
    EXPECT_TRUE(made.ok());
    for (uint32_t i = 0; i < call.result_count; ++i)
      EXPECT_TRUE(edit.replace(g_.results(n)[i], (*made)[i]).ok());
    EXPECT_TRUE(edit.remove(n).ok());
    return done(edit, "outline", n);
  }
  // Often still read: then it must be refused.
  std::string remove_unread(Edit& edit, uint32_t n) {
    if (op(n) == "Sink" || g_.node(n).region_count) return {};
    EXPECT_TRUE(edit.begin("remove", n).ok());
    EXPECT_TRUE(edit.remove(n).ok());
    return done(edit, "remove", n);
  }
  // To an Identity of what it was, or to a later value, which may make a cycle: then it must be refused.
  std::string shuffle_operand(Edit& edit, uint32_t n) {
    if (g_.node(n).operand_count == 0 || g_.operands(n)[0] == REGIE_NONE) return {};
    uint32_t other = anchor_near(n);
    EXPECT_TRUE(edit.begin("shuffle", other).ok());
    NodeSpec spec;
    spec.op = "Mix";
    spec.operands = {g_.operands(n)[0]};
    if (g_.node(other).result_count && g_.results(other)[0] != REGIE_NONE)
      spec.operands.push_back(g_.results(other)[0]);
    spec.op = spec.operands.size() == 1 ? "Identity" : "Mix";
    auto made = edit.node(spec);
    EXPECT_TRUE(made.ok());
    EXPECT_TRUE(edit.set_operand(n, 0, (*made)[0]).ok());
    return done(edit, spec.op == "Mix" ? "shuffle and change" : "shuffle", n);
  }
  std::string done(Edit& edit, const std::string& what, uint32_t n) {
    Status s = edit.commit();
    EXPECT_TRUE(s.ok()) << s.to_string();
    return what + " at " + g_.describe_node(n);
  }

  Graph& g_;
  RandomGraph& random_;
};

TEST(IrProperty, RandomPatchesKeepStructureAndMeaning) {
  FakeOpSet ops;
  uint32_t applied = 0, refused = 0, dropped = 0, cycles = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomGraph random(seed);
    auto graph = random.make();
    Graph& g = *graph;
    // Aliases are made after the last patch, so none may hold on to what patches remove.
    for (uint32_t v = 0; v < g.value_count(); ++v)
      if (g.live_value(v)) g.set_alias(v, REGIE_NONE, 0);
    RandomPatches patches(g, random);
    for (int round = 0; round < 20; ++round) {
      Edit edit(g);
      std::string context = "seed " + std::to_string(seed) + " round " + std::to_string(round);
      uint32_t batch = 1 + random.below(3), recorded = 0;
      bool keeps_meaning = true;
      for (uint32_t i = 0; i < batch; ++i) {
        std::string what = patches.record(edit);
        if (what.empty()) continue;
        ++recorded;
        keeps_meaning = keeps_meaning && what.find("change") == std::string::npos;
        context += "\n  " + what;
      }
      std::string before = print(g);
      uint64_t meant = test::meaning(g);
      auto outcome = edit.apply(ops);
      ASSERT_NO_FATAL_FAILURE(expect_sound(g, context + "\n" + before));
      if (!outcome.ok()) {
        ++refused;
        EXPECT_THAT(outcome.status().to_string(), testing::HasSubstr("applying patch '"));
        cycles += outcome.status().message().find("cycle") != std::string::npos;
        if (recorded == 1) {
          ASSERT_EQ(first_difference(print(g), before), "") << context << outcome.status().to_string();
        }
      } else {
        ASSERT_EQ(outcome->applied.size() + outcome->dropped, recorded) << context;
        applied += static_cast<uint32_t>(outcome->applied.size());
        dropped += outcome->dropped;
      }
      if (keeps_meaning) {
        ASSERT_EQ(test::meaning(g), meant) << context << "\n" << before << print(g);
      }
      if (round % 4 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_round_trip(g, context, {16}));
      }
    }
  }
  // The mix must go on exercising every way that a patch can end.
  EXPECT_GT(applied, 500u);
  EXPECT_GT(refused, 50u);
  EXPECT_GT(cycles, 5u);
  EXPECT_GT(dropped, 5u);
}

}  // namespace
}  // namespace regie
