// choose-formats on whole graphs against exhaustive search: the least sum of what options save and of what
// conversions cost, one conversion for all who read a value in a format. What the pass chose is read from the
// graph that it left; the search shares nothing with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "regie/formats.hpp"
#include "support/pass_harness.h"

namespace regie {
namespace {

// Of FRACTAL_NZ two: with rows along one axis and along another they are as different as any.
constexpr std::array<regie_format, 5> kFormats{REGIE_FORMAT_ND, REGIE_FORMAT_NHWC,
                                               REGIE_FORMAT_NC1HWC0 | 16u << 16, sdk::matrix_format(16),
                                               sdk::matrix_format(16, 3) | sdk::kHalfElements};
constexpr uint32_t kEngines = 3;

struct Option {
  std::vector<regie_format> operands;
  regie_format result = REGIE_FORMAT_ND;
  double saved = 0;
};
struct Node {
  std::vector<int> operands;  // -1: the input; else a node
  uint32_t engine = 0;
  std::vector<Option> options;  // the first is row-major
};

// A graph of up to ten element-wise nodes on three engines, each with formats of its own.
struct Problem {
  std::vector<Node> nodes;
  std::set<int> outputs;
  std::map<std::array<uint32_t, 4>, double> prices;  // engine, value (0: input, else node + 1), from, to

  explicit Problem(uint64_t seed) {
    std::mt19937_64 random(seed);
    auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
    const int count = 2 + below(9);
    for (int n = 0; n < count; ++n) {
      Node node;
      node.engine = static_cast<uint32_t>(below(kEngines));
      const int operands = 1 + below(3);
      for (int i = 0; i < operands; ++i) node.operands.push_back(below(static_cast<uint64_t>(n) + 1) - 1);
      node.options.push_back({std::vector<regie_format>(node.operands.size(), REGIE_FORMAT_ND)});
      const int more = below(3);
      for (int o = 0; o < more; ++o) {
        Option option;
        for (size_t i = 0; i < node.operands.size(); ++i)
          option.operands.push_back(kFormats[static_cast<size_t>(below(kFormats.size()))]);
        option.result = kFormats[static_cast<size_t>(below(kFormats.size()))];
        option.saved = below(1000) - 200;
        const bool known = std::any_of(node.options.begin(), node.options.end(), [&](const Option& other) {
          return other.operands == option.operands && other.result == option.result;
        });
        if (!known) node.options.push_back(std::move(option));
      }
      nodes.push_back(std::move(node));
      if (below(4) == 0) outputs.insert(n);
    }
    outputs.insert(count - 1);
    for (uint32_t e = 0; e < kEngines; ++e)
      for (uint32_t v = 0; v <= nodes.size(); ++v)
        for (uint32_t from = 0; from < kFormats.size(); ++from)
          for (uint32_t to = 0; to < kFormats.size(); ++to)
            prices[{e, v, from, to}] = below(6) == 0 ? -1 : 1 + below(400);
  }

  static uint32_t number(regie_format f) {
    return static_cast<uint32_t>(std::find(kFormats.begin(), kFormats.end(), f) - kFormats.begin());
  }
  double price(uint32_t engine, int value, regie_format from, regie_format to) const {
    return prices.at({engine, static_cast<uint32_t>(value + 1), number(from), number(to)});
  }

  std::string text() const {
    std::ostringstream out;
    auto name = [](int v) { return v < 0 ? std::string("%x") : "%n" + std::to_string(v); };
    out << "graph @g(%x: f32[1,16,4,4] @space(0)) -> (";
    for (int o : outputs) out << (o == *outputs.begin() ? "" : ", ") << name(o);
    out << ") on ";
    for (uint32_t e = 0; e < kEngines; ++e) out << (e ? ", " : "") << "\"e" << e << "\" = \"d\" 0 space 0";
    out << " {\n";
    for (size_t n = 0; n < nodes.size(); ++n) {
      out << "  " << name(static_cast<int>(n)) << ": f32[1,16,4,4] @space(0) = Max(";
      for (size_t i = 0; i < nodes[n].operands.size(); ++i)
        out << (i ? ", " : "") << name(nodes[n].operands[i]);
      out << ") @engine(\"e" << nodes[n].engine << "\")\n";
    }
    out << "}\n";
    return out.str();
  }

  // The least over all combinations of options.
  double best() const {
    std::vector<size_t> chosen(nodes.size(), 0);
    double least = 1e300;
    for (;;) {
      double sum = 0;
      std::map<std::pair<int, regie_format>, std::pair<regie_format, double>> conversions;
      auto wants = [&](int value, regie_format to) {
        const regie_format from =
            value < 0 ? kFormats[0]
                      : nodes[static_cast<size_t>(value)].options[chosen[static_cast<size_t>(value)]].result;
        if (from == to || conversions.count({value, to})) return;
        double cheapest = 1e30;  // none can
        for (uint32_t e = 0; e < kEngines; ++e) {
          bool near = value >= 0 && nodes[static_cast<size_t>(value)].engine == e;
          for (const Node& n : nodes)
            near |= n.engine == e && std::count(n.operands.begin(), n.operands.end(), value) > 0;
          if (near && price(e, value, from, to) >= 0)
            cheapest = std::min(cheapest, price(e, value, from, to));
        }
        conversions[{value, to}] = {from, cheapest};
        sum += cheapest;
      };
      for (size_t n = 0; n < nodes.size(); ++n) {
        const Option& o = nodes[n].options[chosen[n]];
        sum -= o.saved;
        for (size_t i = 0; i < nodes[n].operands.size(); ++i) wants(nodes[n].operands[i], o.operands[i]);
      }
      for (int o : outputs) wants(o, REGIE_FORMAT_ND);
      least = std::min(least, sum);
      size_t n = 0;
      while (n < nodes.size() && ++chosen[n] == nodes[n].options.size()) chosen[n++] = 0;
      if (n == nodes.size()) return least;
    }
  }
};

// What the graph costs that the pass left.
double cost_of(const Problem& p, const Graph& g) {
  double sum = 0;
  std::map<uint32_t, int> origin;  // of a value of the graph, the value of the problem
  auto of = [&](uint32_t v) {
    const auto known = origin.find(v);
    if (known != origin.end()) return known->second;
    const std::string name(view(g.value(v).name));
    return name == "x" ? -1 : std::stoi(name.substr(1));
  };
  std::set<std::pair<int, regie_format>> conversions;
  g.for_each_node([&](uint32_t id) {
    const regie_node& n = g.node(id);
    const uint32_t result = n.results[0];
    const regie_format to = g.value(result).type.format;
    if (view(n.op) == "regie.Reformat") {
      const int value = of(n.operands[0]);
      origin[result] = value;
      const double price = p.price(n.engine, value, g.value(n.operands[0]).type.format, to);
      EXPECT_GE(price, 0) << "an engine that cannot was given a conversion";
      EXPECT_TRUE(conversions.emplace(value, to).second) << "a value is brought twice into one format";
      sum += price;
      return;
    }
    const Node& node = p.nodes[static_cast<size_t>(of(result))];
    Option now;
    for (uint32_t v : g.operands(id)) now.operands.push_back(g.value(v).type.format);
    const auto found = std::find_if(node.options.begin(), node.options.end(), [&](const Option& o) {
      return o.operands == now.operands && o.result == to;
    });
    ASSERT_NE(found, node.options.end()) << "a node was left in formats that its engine did not offer";
    sum -= found->saved;
  });
  return sum;
}

TEST(ChooseFormats, EqualsExhaustiveSearchOnAThousandGraphs) {
  PassHarness h;
  ASSERT_TRUE(h.open().ok());
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Problem p(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + p.text());
    const Status parsed = h.parse_graph(p.text());
    ASSERT_TRUE(parsed.ok()) << parsed.to_string();
    // Values by their ids before the pass: it asks about these only.
    std::map<uint32_t, int> values;
    for (uint32_t v = 0; v < h.graph().value_count(); ++v) {
      const std::string name(view(h.graph().value(v).name));
      values[v] = name == "x" ? -1 : std::stoi(name.substr(1));
    }
    h.wishes = [&](const Graph& g, uint32_t id) {
      std::vector<regie_format_wish> wishes;
      const Node& n = p.nodes[static_cast<size_t>(values.at(g.node(id).results[0]))];
      for (uint32_t o = 1; o < n.options.size(); ++o) {
        // All are named, row-major ones as well: an option of nothing else has to be told.
        for (uint32_t i = 0; i < n.options[o].operands.size(); ++i)
          wishes.push_back({0, i, n.options[o].operands[i], o, 0});
        wishes.push_back({1, 0, n.options[o].result, o, n.options[o].saved});
      }
      return wishes;
    };
    h.reformat_ns = [&](uint32_t engine, uint32_t value, regie_format from, regie_format to) {
      return p.price(engine, values.at(value), from, to);
    };
    const Status ran = h.run_pass("choose-formats");
    ASSERT_TRUE(ran.ok()) << ran.to_string();
    EXPECT_NEAR(cost_of(p, h.graph()), p.best(), 1e-6) << h.text();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace regie
