// choose-formats: how the bytes of each value lie, for the whole graph at least predicted cost.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "labelling.h"
#include "regie/formats.hpp"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;
using choose_formats::kImpossible;
using choose_formats::Labelling;

constexpr std::string_view kReformat = "regie.Reformat";
constexpr regie_format kPlain = REGIE_FORMAT_ND;

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_str kEstablishes[] = {lit("laid-out")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "choose-formats",
    .doc = "Chooses the format of every value from what engines wish, and inserts the conversions",
    .requires_ = kRequires,
    .establishes = kEstablishes,
});

struct Option {
  std::vector<regie_format> operands, results;
  double saved_ns = 0;
};

// A conversion: of a value, into a format, for these readers.
struct Conversion {
  uint32_t value;
  regie_format to;
  uint32_t anchor;                                     // the first reader, or what computes it
  bool hands_over = false;                             // read by the region's results
  std::vector<std::pair<uint32_t, uint32_t>> readers;  // node, operand
};

class ChooseFormats {
 public:
  explicit ChooseFormats(const Config&) {}

  void run(PassContext& c) {
    if (done_) return;  // what it made is not up for choice again
    done_ = true;
    const GraphView& g = c.graph();
    collect(c);
    if (free_.empty()) return;
    choose(c);
    for (uint32_t region : g.task_regions()) convert(c, region);
    assign(c);
  }

 private:
  // ---- what there is to choose from ----

  void collect(PassContext& c) {
    const GraphView& g = c.graph();
    options_.resize(g.node_count());
    vertex_.assign(g.node_count(), REGIE_NONE);
    for (uint32_t region : g.task_regions())
      for (const regie_node& n : g.nodes(region)) {
        if (is_control_flow(n)) continue;
        const std::vector<regie_format_wish> wishes = c.format_wishes(n.id);
        if (wishes.empty()) continue;
        options_[n.id] = read(g, n, wishes);
        free_.push_back(n.id);
      }
  }

  static std::vector<Option> read(const GraphView& g, const regie_node& n,
                                  const std::vector<regie_format_wish>& wishes) {
    auto plain = [&] {
      return Option{std::vector<regie_format>(n.operand_count, kPlain),
                    std::vector<regie_format>(n.result_count, kPlain), 0};
    };
    std::vector<Option> options{plain()};
    for (const regie_format_wish& w : wishes) {
      if (w.option == options.size()) options.push_back(plain());
      const uint32_t* ids = w.is_result ? n.results : n.operands;
      const uint32_t count = w.is_result ? n.result_count : n.operand_count;
      if (w.option == 0 || w.option + 1 != options.size() || w.index >= count || ids[w.index] == REGIE_NONE)
        throw Failure(REGIE_INTERNAL, "its engine wishes a format for an operand or result that is not there",
                      g.describe(n));
      Option& option = options.back();
      (w.is_result ? option.results : option.operands)[w.index] = w.format;
      option.saved_ns += w.saved_ns;
    }
    return options;
  }

  // ---- the choice ----

  void choose(PassContext& c) {
    const GraphView& g = c.graph();
    Labelling problem;
    for (uint32_t n : free_) {
      std::vector<double> costs;
      for (const Option& o : options_[n]) costs.push_back(-o.saved_ns);
      vertex_[n] = problem.add_vertex(std::move(costs));
    }
    for (uint32_t id : free_) {
      const regie_node& n = g.node(id);
      for (uint32_t i = 0; i < n.operand_count; ++i) add_operand(c, problem, n, i);
      for (uint32_t i = 0; i < n.result_count; ++i)
        if (n.results[i] != REGIE_NONE && read_plainly(g, n.results[i]))
          for (uint32_t o = 0; o < options_[id].size(); ++o)
            problem.add_cost(vertex_[id], o,
                             price(c, n.engine, n.results[i], options_[id][o].results[i], kPlain));
    }
    const std::vector<uint32_t> chosen = problem.solve();
    chosen_.assign(g.node_count(), nullptr);
    for (uint32_t n : free_) chosen_[n] = &options_[n][chosen[vertex_[n]]];
  }

  void add_operand(PassContext& c, Labelling& problem, const regie_node& n, uint32_t i) {
    const GraphView& g = c.graph();
    if (n.operands[i] == REGIE_NONE) return;
    const std::vector<Option>& mine = options_[n.id];
    const regie_value& v = g.value(n.operands[i]);
    const uint32_t maker = v.kind == REGIE_VALUE_RESULT ? vertex_[v.owner] : REGIE_NONE;
    if (maker == REGIE_NONE) {
      for (uint32_t o = 0; o < mine.size(); ++o)
        problem.add_cost(vertex_[n.id], o, price(c, n.engine, v.id, kPlain, mine[o].operands[i]));
      return;
    }
    const std::vector<Option>& theirs = options_[v.owner];
    std::vector<double> costs;
    for (const Option& from : theirs)
      for (const Option& to : mine)
        costs.push_back(price(c, n.engine, v.id, from.results[v.index], to.operands[i]));
    problem.add_edge(maker, vertex_[n.id], costs);
  }

  double price(PassContext& c, uint32_t engine, uint32_t value, regie_format from, regie_format to) {
    if (from == to) return 0;
    const auto [at, fresh] = prices_.try_emplace({value, engine, from, to}, 0.0);
    if (fresh) {
      const double ns = c.reformat_ns(engine, value, from, to);
      at->second = ns < 0 ? kImpossible : ns;
    }
    return at->second;
  }

  // Has it a reader that knows row-major only? (One conversion serves them all.)
  bool read_plainly(const GraphView& g, uint32_t value) const {
    for (const regie_use& u : uses_of(g.value(value)))
      if (is_region_use(u) || vertex_[u.node] == REGIE_NONE) return true;
    return false;
  }

  // ---- what follows from it ----

  regie_format made_as(const GraphView& g, uint32_t value) const {
    const regie_value& v = g.value(value);
    if (v.kind != REGIE_VALUE_RESULT || !chosen_[v.owner]) return kPlain;
    return chosen_[v.owner]->results[v.index];
  }
  regie_format read_as(const regie_node& n, uint32_t i) const {
    return chosen_[n.id] ? chosen_[n.id]->operands[i] : kPlain;
  }

  void convert(PassContext& c, uint32_t region) {
    const GraphView& g = c.graph();
    std::vector<Conversion> all;
    std::map<std::pair<uint32_t, regie_format>, size_t> known;
    auto need = [&](uint32_t value, regie_format to, uint32_t anchor) -> Conversion* {
      if (value == REGIE_NONE || made_as(g, value) == to) return nullptr;
      const auto [at, fresh] = known.emplace(std::pair{value, to}, all.size());
      if (fresh) all.push_back({value, to, anchor, false, {}});
      return &all[at->second];
    };
    for (const regie_node& n : g.nodes(region))
      for (uint32_t i = 0; i < n.operand_count; ++i)
        if (Conversion* k = need(n.operands[i], read_as(n, i), n.id)) k->readers.emplace_back(n.id, i);
    for (uint32_t v : results_of(g.region(region)))
      if (Conversion* k = need(v, kPlain, g.value(v).owner)) {
        k->hands_over = true;
        k->anchor = g.value(v).owner;
      }
    std::stable_partition(all.begin(), all.end(), [](const Conversion& k) { return k.hands_over; });
    for (const Conversion& k : all) insert(c, k);
  }

  void insert(PassContext& c, const Conversion& k) {
    const GraphView& g = c.graph();
    const regie_value& v = g.value(k.value);
    uint32_t engine = g.node(k.readers.empty() ? v.owner : k.readers[0].first).engine;
    // A reader of another device, such as a copy, cannot convert what lies here: who made it does.
    if (v.kind == REGIE_VALUE_RESULT && c.reformat_ns(engine, k.value, made_as(g, k.value), k.to) < 0)
      engine = g.node(v.owner).engine;
    const std::string to = spell(k.to), from = spell(made_as(g, k.value));
    Patch patch(c, "bring into another format", k.anchor);
    const std::string base = v.name.size ? std::string(sv(v.name)) : std::string("value");
    const std::string result = v.name.size ? base + "." + to : std::string();
    const Patch::Made made = patch.node(
        {.op = kReformat, .operands = {k.value}, .name = base + " to " + to, .result_names = {result}});
    std::string who;
    if (k.hands_over) {
      patch.replace(k.value, made.results[0]);
      for (const regie_use& u : uses_of(v))
        if (!is_region_use(u) &&
            std::find(k.readers.begin(), k.readers.end(), std::pair{u.node, u.operand}) == k.readers.end())
          patch.set_operand(u.node, u.operand, k.value);
      who = "what its region hands out";
    } else {
      for (const auto& [node, operand] : k.readers) patch.set_operand(node, operand, made.results[0]);
    }
    patch.commit();
    for (const auto& [node, operand] : k.readers) {
      who += (who.empty() ? "" : ", ") + g.describe(g.node(node));
      if (chosen_[node] && chosen_[node]->saved_ns > 0) {
        char saved[64];
        std::snprintf(saved, sizeof saved, " (saves %.1f us)", chosen_[node]->saved_ns / 1000);
        who += saved;
      }
    }
    const double ns = c.reformat_ns(engine, k.value, made_as(g, k.value), k.to);
    char cost[64];
    std::snprintf(cost, sizeof cost, " for %.1f us", ns / 1000);
    c.note(k.readers.empty() ? v.owner : k.readers[0].first, "reformat",
           g.describe(v) + " from " + from + " to " + to + cost + ", asked for by " + who);
    const uint32_t placed = engine == REGIE_NONE ? g.node(v.owner).engine : engine;
    c.set_engine(made.node, placed, "brings " + g.describe(v) + " from " + from + " to " + to);
    if (v.space != REGIE_NONE) c.set_space(made.results[0], v.space);
    formats_.push_back({made.results[0], k.value, k.to});
  }

  void assign(PassContext& c) {
    const GraphView& g = c.graph();
    for (const Made& m : formats_)
      if (m.format != kPlain) set_format(c, m.value, g.value(m.like), m.format);
    for (uint32_t n : free_)
      for (uint32_t i = 0; i < g.node(n).result_count; ++i)
        if (const uint32_t v = g.node(n).results[i]; v != REGIE_NONE && chosen_[n]->results[i] != kPlain)
          set_format(c, v, g.value(v), chosen_[n]->results[i]);
  }
  static void set_format(PassContext& c, uint32_t value, const regie_value& like, regie_format format) {
    regie_type type = like.type;
    type.format = format;
    c.set_type(value, type);
  }

  static std::string spell(regie_format f) { return spell_layout(f); }

  struct Price {
    uint32_t value, engine;
    regie_format from, to;
    auto operator<=>(const Price&) const = default;
  };
  struct Made {
    uint32_t value, like;
    regie_format format;
  };
  bool done_ = false;
  std::vector<uint32_t> free_;                // nodes with more than one option, in program order
  std::vector<std::vector<Option>> options_;  // by node
  std::vector<uint32_t> vertex_;              // by node
  std::vector<const Option*> chosen_;         // by node
  std::map<Price, double> prices_;
  std::vector<Made> formats_;
};

constexpr regie_pass_table kTable = pass_table<ChooseFormats>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
