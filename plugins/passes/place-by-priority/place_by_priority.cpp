// place-by-priority: the first engine of the target that can computes the node, unless it has nothing better
// than the reference kernel and a later one has.
#include <cstdio>
#include <string>
#include <vector>

#include "regie/c/placer.h"
#include "regie/graph_view.hpp"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kEstablishes[] = {lit("placed")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "place-by-priority",
    .doc = "Takes the first engine in the target's order that can; its reference kernel only if nobody has a "
           "faster one",
    .requires_ = kRequires,
    .establishes = kEstablishes,
});

std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
  return text;
}

class Placer {
 public:
  Placer(const regie_host* host, const regie_placement_problem* p)
      : host_(host), problem_(p), graph_(p->graph), engine_of_(p->graph->node_count, REGIE_NONE) {}

  void run() {
    for (uint32_t i = 0; i < problem_->node_count; ++i) {
      const regie_placement_node& p = problem_->nodes[i];
      const regie_node& n = graph_.node(p.node);
      if (p.forced_engine != REGIE_NONE)
        forced(i, p, n);
      else
        free(i, p, n);
    }
    if (unplaced_) throw Failure(REGIE_UNSUPPORTED, message(), where_);
  }

 private:
  void assign(uint32_t index, uint32_t node, uint32_t engine, std::string_view reason) {
    engine_of_[node] = engine;
    check(problem_->assign(problem_, index, engine, str(reason)));
  }

  void forced(uint32_t index, const regie_placement_node& p, const regie_node& n) {
    // Control flow has no kernel: the host itself runs it, so there is no answer to ask for.
    if (!is_control_flow(n) && p.answers && !p.answers[p.forced_engine].can)
      return refuse(n, "it was asked for on engine '" + name(p.forced_engine) +
                           "', which says: " + why(p.answers[p.forced_engine]));
    assign(index, n.id, p.forced_engine,
           is_control_flow(n) ? "control flow runs on the host" : "asked for by the user");
  }

  void free(uint32_t index, const regie_placement_node& p, const regie_node& n) {
    uint32_t first = REGIE_NONE;
    for (uint32_t e = 0; e < graph_.engines().size() && first == REGIE_NONE; ++e)
      if (p.answers[e].can) first = e;
    if (first == REGIE_NONE) return refuse(n, everyone(p, REGIE_NONE));
    uint32_t best = first;
    double best_cost = total(n, first, p.answers[first]);
    std::string reason = p.answers[first].reference ? "reference kernel" : "own kernel";
    if (p.answers[first].reason.size) reason += ": " + std::string(sv(p.answers[first].reason));
    for (uint32_t e = first + 1; p.answers[first].reference && e < graph_.engines().size(); ++e) {
      if (!p.answers[e].can || p.answers[e].reference) continue;
      const double cost = total(n, e, p.answers[e]);
      if (cost >= best_cost) continue;
      best = e;
      best_cost = cost;
      reason = "own kernel, " + microseconds(cost) + " with transfers";
    }
    const std::string others = everyone(p, best);
    assign(index, n.id, best, others.empty() ? reason : reason + "; " + others);
  }

  // Predicted time of the node on an engine, with its operands brought to where that engine reads.
  double total(const regie_node& n, uint32_t engine, const regie_answer& answer) const {
    double ns = answer.cost_ns;
    const Dims dims(host_, graph_.raw().dims);
    const uint32_t to = graph_.engine(engine).space;
    for (uint32_t v : operands_of(n)) {
      if (v == REGIE_NONE || is_constant(graph_.value(v))) continue;
      const uint32_t from = space_of(v);
      if (from != to)
        ns += problem_->transfer_ns(problem_, from, to, least_bytes(graph_.value(v).type, dims));
    }
    return ns;
  }

  // Where a value lies: at its producer's; inputs on the host; what a region captures, where the owner's
  // operand lies.
  uint32_t space_of(uint32_t value) const {
    while (value != REGIE_NONE) {
      const regie_value& v = graph_.value(value);
      if (v.kind == REGIE_VALUE_RESULT) {
        const uint32_t e = engine_of_[v.owner];
        return e == REGIE_NONE || is_control_flow(graph_.node(v.owner)) ? 0 : graph_.engine(e).space;
      }
      if (v.kind != REGIE_VALUE_ARGUMENT) return 0;
      value = graph_.operand_behind(v);
    }
    return 0;
  }

  std::string name(uint32_t engine) const { return std::string(sv(graph_.engine(engine).name)); }
  static std::string why(const regie_answer& a) {
    return a.reason.size ? std::string(sv(a.reason)) : "no reason given";
  }

  // What the engines said, apart from `except`.
  std::string everyone(const regie_placement_node& p, uint32_t except) const {
    std::string text;
    for (uint32_t e = 0; e < graph_.engines().size(); ++e) {
      if (e == except) continue;
      if (!text.empty()) text += "; ";
      text += name(e);
      const regie_answer& a = p.answers[e];
      if (!a.can)
        text += " says: " + why(a);
      else
        text += (a.reference ? ": reference kernel only, " : ": could, ") + microseconds(a.cost_ns);
    }
    return text;
  }

  void refuse(const regie_node& n, const std::string& reasons) {
    if (unplaced_++) return;
    where_ = graph_.describe(n);
    first_ = "no engine of the target can compute " + std::string(sv(n.op)) + ": " +
             (reasons.empty() ? "the target has no engine" : reasons);
  }
  std::string message() const {
    if (unplaced_ == 1) return first_;
    return first_ + " (and " + std::to_string(unplaced_ - 1) + " more nodes without an engine)";
  }

  const regie_host* host_;
  const regie_placement_problem* problem_;
  GraphView graph_;
  std::vector<uint32_t> engine_of_;  // by node: what was assigned so far
  uint32_t unplaced_ = 0;
  std::string first_, where_;
};

regie_status place(uint32_t, const regie_host* host, const regie_config*,
                   const regie_placement_problem* problem) {
  return guard(host, [&] { Placer(host, problem).run(); });
}

constexpr regie_placer_table kTable = {head(sizeof(regie_placer_table), REGIE_DIGEST_PLACER), 1, 0, &kInfo,
                                       place};

const void* find(const char* id) { return find_one(id, REGIE_PLACER_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
