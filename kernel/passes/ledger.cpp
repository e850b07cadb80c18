#include "passes/ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace regie {

using Json = nlohmann::ordered_json;

namespace {

Json to_json(const LedgerDetail& d) {
  Json j;
  if (!d.pass.empty()) j["pass"] = d.pass;
  if (!d.node.empty()) j["node"] = d.node;
  j["kind"] = d.kind;
  j["text"] = d.text;
  return j;
}

Json to_json(const StageRecord& s, bool times) {
  Json j;
  j["name"] = s.name;
  if (times) j["milliseconds"] = s.milliseconds;
  j["rounds"] = s.rounds;
  j["operators_before"] = s.operators_before;
  j["operators_after"] = s.operators_after;
  j["patches"] = s.patches;
  j["patches_by_title"] = s.patches_by_title;
  if (!s.notes.empty()) j["notes"] = s.notes;
  return j;
}

Json to_json(const PlacementRecord& p) {
  Json j{{"node", p.node}, {"operator", p.op}, {"engine", p.engine}, {"reason", p.reason}};
  if (p.reference) j["reference"] = true;
  if (!p.others.empty()) j["others"] = p.others;
  return j;
}

Json to_json(const MemoryRecord& m) {
  return Json{{"space", m.space},
              {"arena_bytes", m.peak},
              {"lower_bound_bytes", m.lower_bound},
              {"sum_of_tensors_bytes", m.sum_of_tensors},
              {"buffers", m.buffers},
              {"proven_optimal", m.proven_optimal},
              {"peak_step", m.peak_step},
              {"held_by", m.holders}};
}

Json to_json(const RuleRecord& r) {
  Json j{{"name", r.name}, {"matched", r.matched}, {"applied", r.applied}};
  if (!r.near_misses.empty()) j["near_misses"] = r.near_misses;
  for (const LedgerDetail& d : r.details) j["details"].push_back(to_json(d));
  return j;
}

}  // namespace

void Ledger::note(std::string_view pass, std::string_view node, std::string_view kind,
                  std::string_view text) {
  uint64_t& n = counts[std::string(pass) + "/" + std::string(kind)];
  if (++n <= kDetailsPerKind)
    details.push_back({std::string(pass), std::string(node), std::string(kind), std::string(text)});
}

RuleRecord& Ledger::rule(std::string_view name) {
  auto it = std::find_if(rules.begin(), rules.end(), [&](const RuleRecord& r) { return r.name == name; });
  if (it != rules.end()) return *it;
  rules.push_back({std::string(name), 0, 0, {}, {}});
  return rules.back();
}

std::string Ledger::to_json(bool times) const {
  Json j;
  j["operators_before"] = operators_imported;
  j["operators_after"] = operators_final;
  Json fusions = Json::object();
  for (const RuleRecord& r : rules)
    if (r.applied) fusions[r.name] = r.applied;
  j["fusions"] = fusions;
  for (const StageRecord& s : stages) j["stages"].push_back(regie::to_json(s, times));
  for (const RuleRecord& r : rules) j["rules"].push_back(regie::to_json(r));
  for (const PlacementRecord& p : placements) j["placements"].push_back(regie::to_json(p));
  for (const MemoryRecord& m : memory) j["memory"].push_back(regie::to_json(m));
  uint64_t arena = 0, bound = 0, sum = 0;
  for (const MemoryRecord& m : memory) {
    arena += m.peak;
    bound += m.lower_bound;
    sum += m.sum_of_tensors;
  }
  j["arena_bytes"] = arena;
  j["arena_lower_bound_bytes"] = bound;
  j["sum_of_tensors_bytes"] = sum;
  j["tasks"] = tasks;
  j["streams"] = streams;
  j["events"] = events.size();
  j["event_reasons"] = events;
  j["counts"] = counts;
  for (const LedgerDetail& d : details) j["notes"].push_back(regie::to_json(d));
  if (times) j["compile_ms"] = total_milliseconds;
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace regie
