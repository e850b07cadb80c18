#include "find_widths.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::lit;
using regie::sdk::str;
using regie::sdk::sv;

// Inputs that nobody has tried come out worse than those of the trial, by as much as docs/aicore.md has
// measured.
constexpr double kShareOfAccuracy = 0.6;

std::string number(const char* format, double v) {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

void widen_listed(const regie_host* host, const regie_graph* graph, const std::vector<std::string>& listed,
                  Widths& widths) {
  for (const std::string& name : listed) {
    bool found = false;
    for (const Widths::Reader& r : widths.readers()) {
      if (!is_listed(graph, graph->nodes[r.node], {name})) continue;
      widths.widen(r.value);
      found = true;
    }
    // A target serves many models, of which not all have the node.
    if (!found)
      host->log(
          REGIE_LOG_WARNING, lit("aicore"),
          str("'two_halves' names '" + name + "', and no product of the graph with constants comes from it"));
  }
}

// A model whose floats are given as halves is asked for in halves, however it is computed in between.
bool is_of_halves(const regie_graph* graph) {
  bool halves = false;
  const regie_region& top = graph->regions[0];
  for (uint32_t i = 0; i < top.arg_count; ++i) {
    const regie_elem elem = graph->values[top.args[i]].type.elem;
    if (elem == REGIE_F32) return false;
    halves |= elem == REGIE_F16;
  }
  return halves;
}

std::string summary(const WidthChoice& c, const WidthSettings& s) {
  if (!c.why_not.empty())
    return "all " + std::to_string(c.products) +
           " products as two halves: the graph cannot be tried on this computer (" + c.why_not + ")";
  std::string text = std::to_string(c.two_halves) + " of " + std::to_string(c.products) +
                     " products as two halves for " + number("%.2g", s.accuracy) +
                     " (estimated: " + number("%.1e", c.chosen) + " with " + c.chosen_inputs;
  if (c.two_halves) text += "; all as halves: " + number("%.1e", c.all_halves) + " with " + c.inputs;
  return text + ")";
}

void tell(const regie_host* host, const regie_host_findings* findings, const regie_graph* graph,
          uint32_t engine, const WidthChoice& c, const WidthSettings& s, const Widths& widths) {
  const std::string said = summary(c, s), name(sv(graph->engines[engine].name));
  const bool held = c.why_not.empty() && c.chosen <= s.accuracy;
  host->log(held ? REGIE_LOG_INFO : REGIE_LOG_WARNING, lit("aicore"), str("operands: " + said));
  if (!findings) return;
  std::vector<std::pair<std::string, std::string>> figures{{"products", std::to_string(c.products)},
                                                           {"two_halves", std::to_string(c.two_halves)},
                                                           {"accuracy", number("%.6g", s.accuracy)}};
  if (c.why_not.empty()) {
    figures.emplace_back("estimated", number("%.4g", c.chosen));
    figures.emplace_back("estimated_all_halves", number("%.4g", c.all_halves));
  }
  std::vector<regie_setting> settings;
  for (const auto& [key, value] : figures) settings.push_back({str(key), str(value)});
  const regie_config config{static_cast<uint32_t>(settings.size()), 0, settings.data()};
  const std::string how = c.two_halves ? "; --set " + name + ".operands=f16 takes halves everywhere" : "";
  findings->tell(graph, engine, lit("operands"), str(said + how), &config);
  for (size_t i = 0; i < widths.readers().size(); ++i) {
    const Widths::Reader& r = widths.readers()[i];
    if (!r.product) continue;
    const std::string share = number("%.1e", c.share[i]);
    std::string why;
    if (!widths.wide(r.value))
      why = c.share[i] > 0 ? "halves: what is rounded here puts no result off by more than " + share
                           : "halves: results are near enough with all as halves";
    else if (!c.why_not.empty())
      why = "two halves: the graph cannot be tried on this computer";
    else if (c.share[i] > 0)
      why = "two halves: as halves, this and what was decided with it put a result off by " + share +
            ", of " + number("%.2g", s.accuracy) + " for all";
    else
      why = "two halves: it is asked for";
    findings->note(graph, engine, r.node, lit("operands"), str(why));
  }
}

}  // namespace

std::string to_text(const WidthChoice& c, const Widths& widths) {
  std::ostringstream out;
  out.precision(17);
  out << "widths 1 " << widths.readers().size() << ' ' << c.products << ' ' << c.two_halves << ' '
      << c.all_halves << ' ' << c.chosen << '\n'
      << c.inputs << '\n'
      << c.chosen_inputs << '\n';
  for (size_t i = 0; i < widths.readers().size(); ++i)
    out << (widths.wide(widths.readers()[i].value) ? 'w' : 'n') << ' ' << c.share[i] << '\n';
  return out.str();
}

bool from_text(std::string_view text, WidthChoice* choice, Widths* widths) {
  std::istringstream in{std::string(text)};
  std::string word, version;
  size_t count = 0;
  WidthChoice c;
  in >> word >> version >> count >> c.products >> c.two_halves >> c.all_halves >> c.chosen;
  if (!in || word != "widths" || version != "1" || count != widths->readers().size()) return false;
  in.ignore();
  std::getline(in, c.inputs);
  std::getline(in, c.chosen_inputs);
  std::vector<bool> wide;
  for (size_t i = 0; i < count; ++i) {
    double share = 0;
    in >> word >> share;
    if (!in || (word != "w" && word != "n")) return false;
    wide.push_back(word == "w");
    c.share.push_back(share);
  }
  for (size_t i = 0; i < count; ++i)
    wide[i] ? widths->widen(widths->readers()[i].value) : widths->narrow(widths->readers()[i].value);
  *choice = std::move(c);
  return true;
}

const Widths& WidthFinder::of(const regie_host* host, const regie_graph* graph, uint32_t engine,
                              const WidthSettings& settings,
                              const std::function<double(const Widths::Reader&)>& price) {
  const auto* findings = static_cast<const regie_host_findings*>(host->find(REGIE_HOST_FINDINGS_ID));
  const uint64_t revision = findings ? findings->revision(graph) : 0;
  if (widths_ && revision && revision == revision_) return *widths_;
  widths_.emplace(graph, engine);
  revision_ = revision;
  widen_listed(host, graph, settings.listed, *widths_);
  if (is_of_halves(graph)) return *widths_;
  WidthChoice choice;
  if (!findings || !revision) {
    choose_widths(host, graph, engine, settings.accuracy * kShareOfAccuracy, settings.all_rounded, price,
                  *widths_);
    return *widths_;
  }
  // All else that the answer depends on is parameters of the engine, or in the graph.
  std::string question = "widths 1";
  for (const Widths::Reader& r : widths_->readers()) question += widths_->wide(r.value) ? 'w' : 'n';
  struct Known {
    WidthChoice* choice;
    Widths* widths;
    bool found;
  } known{&choice, &*widths_, false};
  if (!widths_->readers().empty())
    findings->recall(
        graph, engine, str(question),
        [](void* to, const void* bytes, uint64_t size) {
          auto& k = *static_cast<Known*>(to);
          k.found = from_text({static_cast<const char*>(bytes), size}, k.choice, k.widths);
        },
        &known);
  if (!known.found) {
    const auto start = std::chrono::steady_clock::now();
    choice = choose_widths(host, graph, engine, settings.accuracy * kShareOfAccuracy, settings.all_rounded,
                           price, *widths_);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    if (choice.products && choice.why_not.empty()) {
      const std::string text = to_text(choice, *widths_);
      findings->keep(graph, engine, str(question), text.data(), text.size(),
                     static_cast<uint64_t>(took.count()));
    }
  }
  if (choice.products) tell(host, findings, graph, engine, choice, settings, *widths_);
  return *widths_;
}

}  // namespace aicore
