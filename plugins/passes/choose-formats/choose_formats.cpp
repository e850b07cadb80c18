// choose-formats: how the bytes of each value lie, for the whole graph at least predicted cost.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
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
constexpr size_t kMostFormats = 6;  // of one value whose readers' choices are told apart by sets

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_str kEstablishes[] = {lit("laid-out")};
constexpr regie_option_info kOptions[] = {
    {lit("formats"), lit("chosen"),
     lit("chosen: at least predicted cost; row-major: all as the model has it")},
    {lit("without"), lit(""),
     lit("kinds of formats that are not chosen, with commas between them, such as NC1HWC0,FRACTAL_NZ")}};
constexpr regie_pass_info kInfo = pass_info({
    .name = "choose-formats",
    .doc = "Chooses the format of every value from what engines wish, and inserts the conversions",
    .requires_ = kRequires,
    .establishes = kEstablishes,
    .options = kOptions,
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
  explicit ChooseFormats(const Config& config) {
    const std::string_view formats = config.find("formats").value_or("chosen");
    if (formats != "chosen" && formats != "row-major")
      throw Failure(REGIE_INVALID_INPUT,
                    "option 'formats' is chosen or row-major, not '" + std::string(formats) + "'");
    done_ = formats == "row-major";
    std::string_view names = config.find("without").value_or("");
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      names.remove_prefix(std::min(name.size() + 1, names.size()));
      const auto known = std::find(std::begin(kFormatKinds), std::end(kFormatKinds), name);
      if (known == std::end(kFormatKinds) || known == std::begin(kFormatKinds)) {
        std::string list;
        for (std::string_view kind : kFormatKinds)
          if (kind != *kFormatKinds) list += (list.empty() ? "" : ", ") + std::string(kind);
        throw Failure(REGIE_INVALID_INPUT, "option 'without' names kinds of formats (" + list + "), not '" +
                                               std::string(name) + "'");
      }
      without_.push_back(static_cast<uint32_t>(known - std::begin(kFormatKinds)));
    }
  }

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
        std::erase_if(options_[n.id], [&](const Option& o) { return is_left_out(o); });
        free_.push_back(n.id);
      }
  }

  bool is_left_out(const Option& o) const {
    auto left_out = [&](regie_format f) {
      return !(f & REGIE_FORMAT_OPAQUE_BIT) &&
             std::find(without_.begin(), without_.end(), f & 0xffff) != without_.end();
    };
    return std::any_of(o.operands.begin(), o.operands.end(), left_out) ||
           std::any_of(o.results.begin(), o.results.end(), left_out);
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
    for (const auto& [at, readers] : readers_of_values(g)) add_value(c, problem, at.first, readers);
    const std::vector<uint32_t> chosen = problem.solve();
    chosen_.assign(g.node_count(), nullptr);
    for (uint32_t n : free_) chosen_[n] = &options_[n][chosen[vertex_[n]]];
  }

  // Who reads a value within one region: there one conversion a format serves them all.
  struct Readers {
    std::vector<std::pair<uint32_t, uint32_t>> free;  // node, operand: of nodes with a choice
    bool plain = false;                               // somebody knows row-major only
  };
  std::map<std::pair<uint32_t, uint32_t>, Readers> readers_of_values(const GraphView& g) const {
    std::map<std::pair<uint32_t, uint32_t>, Readers> all;  // by value and region
    for (uint32_t region : g.task_regions()) {
      for (const regie_node& n : g.nodes(region))
        for (uint32_t i = 0; i < n.operand_count; ++i) {
          if (n.operands[i] == REGIE_NONE) continue;
          Readers& r = all[{n.operands[i], region}];
          if (vertex_[n.id] == REGIE_NONE)
            r.plain = true;
          else
            r.free.emplace_back(n.id, i);
        }
      for (uint32_t v : results_of(g.region(region)))
        if (v != REGIE_NONE) all[{v, region}].plain = true;
    }
    return all;
  }

  // The costs of a value's conversions. Several readers meet in a vertex that stands for the set of formats
  // in which the value is there: who made it pays for what is in the set, readers find their format there.
  void add_value(PassContext& c, Labelling& problem, uint32_t value, const Readers& readers) {
    const GraphView& g = c.graph();
    const regie_value& v = g.value(value);
    const uint32_t maker = v.kind == REGIE_VALUE_RESULT ? vertex_[v.owner] : REGIE_NONE;
    if (maker == REGIE_NONE && readers.free.empty()) return;
    auto made = [&](uint32_t option) {
      return maker == REGIE_NONE ? kPlain : options_[v.owner][option].results[v.index];
    };
    const uint32_t makes = maker == REGIE_NONE ? 1 : static_cast<uint32_t>(options_[v.owner].size());
    // Between the maker, or a value that is row-major, and `other` with as many options.
    auto connect = [&](uint32_t other, size_t count, auto&& cost) {
      std::vector<double> costs;
      for (uint32_t o = 0; o < makes; ++o)
        for (size_t i = 0; i < count; ++i) costs.push_back(cost(o, i));
      if (maker != REGIE_NONE) return problem.add_edge(maker, other, costs);
      for (size_t i = 0; i < count; ++i) problem.add_cost(other, static_cast<uint32_t>(i), costs[i]);
    };
    auto wished = [&](const std::pair<uint32_t, uint32_t>& reader, size_t option) {
      return options_[reader.first][option].operands[reader.second];
    };
    std::set<regie_format> formats;
    if (readers.plain) formats.insert(kPlain);
    for (const auto& r : readers.free)
      for (size_t o = 0; o < options_[r.first].size(); ++o) formats.insert(wished(r, o));
    const bool meet = readers.free.size() + readers.plain > 1 && formats.size() <= kMostFormats;
    if (!meet) {
      for (const auto& r : readers.free)
        connect(vertex_[r.first], options_[r.first].size(),
                [&](uint32_t o, size_t i) { return price(c, value, made(o), wished(r, i)); });
      if (readers.plain && maker != REGIE_NONE)
        for (uint32_t o = 0; o < makes; ++o) problem.add_cost(maker, o, price(c, value, made(o), kPlain));
      return;
    }
    const std::vector<regie_format> list(formats.begin(), formats.end());
    std::vector<uint32_t> sets;
    for (uint32_t set = 1; set < 1u << list.size(); ++set)
      if (!readers.plain || set & 1u) sets.push_back(set);  // row-major is the least of formats
    const uint32_t there = problem.add_vertex(std::vector<double>(sets.size(), 0));
    connect(there, sets.size(), [&](uint32_t o, size_t i) {
      double sum = 0;
      for (size_t f = 0; f < list.size(); ++f)
        if (sets[i] >> f & 1) sum += price(c, value, made(o), list[f]);
      return sum;
    });
    for (const auto& r : readers.free) {
      std::vector<double> costs;
      for (uint32_t set : sets)
        for (size_t o = 0; o < options_[r.first].size(); ++o) {
          const auto f = std::lower_bound(list.begin(), list.end(), wished(r, o)) - list.begin();
          costs.push_back(set >> f & 1 ? 0 : kImpossible);
        }
      problem.add_edge(there, vertex_[r.first], costs);
    }
  }

  double price(PassContext& c, uint32_t value, regie_format from, regie_format to) {
    return from == to ? 0 : converter(c, value, from, to).ns;
  }

  // The engine that converts a value at least cost, of those that make or read it where it lies.
  struct Converter {
    uint32_t engine = REGIE_NONE;
    double ns = kImpossible;
  };
  const Converter& converter(PassContext& c, uint32_t value, regie_format from, regie_format to) {
    const auto [at, fresh] = converters_.try_emplace({value, from, to});
    Converter& best = at->second;
    if (!fresh) return best;
    const GraphView& g = c.graph();
    const regie_value& v = g.value(value);
    std::set<uint32_t> tried;
    auto consider = [&](uint32_t engine) {
      if (engine == REGIE_NONE || !tried.insert(engine).second) return;
      if (v.space != REGIE_NONE && g.engine(engine).space != v.space) return;
      const double ns = c.reformat_ns(engine, value, from, to);
      if (ns >= 0 && ns < best.ns) best = {engine, ns};
    };
    if (v.kind == REGIE_VALUE_RESULT) consider(g.node(v.owner).engine);
    for (const regie_use& u : uses_of(v))
      if (!is_region_use(u)) consider(g.node(u.node).engine);
    return best;
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
    const regie_format made_in = made_as(g, k.value);
    const std::string to = spell_layout(k.to), from = spell_layout(made_in);
    const auto [engine, ns] = converter(c, k.value, made_in, k.to);
    if (engine == REGIE_NONE)
      throw Failure(REGIE_INTERNAL,
                    "a conversion from " + from + " to " + to + " was chosen that no engine makes",
                    g.describe(v));
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
    char cost[64];
    std::snprintf(cost, sizeof cost, " for %.1f us", ns / 1000);
    c.note(k.readers.empty() ? v.owner : k.readers[0].first, "reformat",
           g.describe(v) + " from " + from + " to " + to + cost + ", asked for by " + who);
    c.set_engine(made.node, engine, "brings " + g.describe(v) + " from " + from + " to " + to);
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
    for (uint32_t n : free_) explain(c, n);
  }
  // What a node reads and writes, where that is not row-major.
  void explain(PassContext& c, uint32_t id) {
    const Option& o = *chosen_[id];
    std::string text;
    auto list = [&](const char* what, const std::vector<regie_format>& formats) {
      for (size_t i = 0; i < formats.size(); ++i)
        if (formats[i] != kPlain)
          text += std::string(text.empty() ? "" : ", ") + what + " " + std::to_string(i) + " in " +
                  spell_layout(formats[i]);
    };
    list("operand", o.operands);
    list("result", o.results);
    if (text.empty()) return;
    char saved[64];
    std::snprintf(saved, sizeof saved, "; saves %.1f us against row-major", o.saved_ns / 1000);
    c.note(id, "format", text + saved);
  }
  static void set_format(PassContext& c, uint32_t value, const regie_value& like, regie_format format) {
    regie_type type = like.type;
    type.format = format;
    c.set_type(value, type);
  }

  struct Change {
    uint32_t value;
    regie_format from, to;
    auto operator<=>(const Change&) const = default;
  };
  struct Made {
    uint32_t value, like;
    regie_format format;
  };
  bool done_ = false;
  std::vector<uint32_t> without_;             // kinds
  std::vector<uint32_t> free_;                // nodes with more than one option, in program order
  std::vector<std::vector<Option>> options_;  // by node
  std::vector<uint32_t> vertex_;              // by node
  std::vector<const Option*> chosen_;         // by node
  std::map<Change, Converter> converters_;
  std::vector<Made> formats_;
};

constexpr regie_pass_table kTable = pass_table<ChooseFormats>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
