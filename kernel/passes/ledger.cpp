#include "passes/ledger.h"

#include <algorithm>
#include <cstdio>

#include "base/json_writer.h"

namespace regie {

std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
  return text;
}

namespace {

void write(JsonWriter& j, const LedgerDetail& d) {
  j.open_object();
  if (!d.pass.empty()) j.member("pass", d.pass);
  if (!d.node.empty()) j.member("node", d.node);
  j.member("kind", d.kind).member("text", d.text);
  if (!d.in_the_way.empty()) j.member("in_the_way", d.in_the_way);
  if (!d.reason.empty()) j.member("reason", d.reason).member("passed", d.passed);
  if (!d.reached.empty()) j.strings("reached", d.reached);
  j.close();
}

template <class Map>
void write_counts(JsonWriter& j, std::string_view name, const Map& counts) {
  j.key(name).open_object();
  for (const auto& [key, n] : counts) j.member(key, n);
  j.close();
}

void write(JsonWriter& j, const StageRecord& s, bool times) {
  j.open_object().member("name", s.name);
  if (times) j.member("milliseconds", s.milliseconds);
  j.member("rounds", s.rounds)
      .member("operators_before", s.operators_before)
      .member("operators_after", s.operators_after)
      .member("patches", s.patches);
  write_counts(j, "patches_by_title", s.patches_by_title);
  if (!s.notes.empty()) j.strings("notes", s.notes);
  j.close();
}

void write(JsonWriter& j, const PatchRecord& p) {
  j.open_object().member("stage", p.stage).member("pass", p.pass).member("title", p.title);
  j.strings("removed", p.removed).strings("added", p.added).close();
}

void write(JsonWriter& j, const PlacementRecord& p) {
  j.open_object()
      .member("node", p.node)
      .member("operator", p.op)
      .member("engine", p.engine)
      .member("reason", p.reason);
  if (p.reference) j.member("reference", true);
  if (p.view) j.member("view", true);
  if (!p.origins.empty()) j.strings("from", p.origins);
  std::vector<std::string> others;
  for (const OtherEngine& o : p.others) others.push_back(o.engine + ": " + o.text);
  if (!others.empty()) j.strings("others", others);
  j.close();
}

void write(JsonWriter& j, const FindingRecord& f) {
  j.open_object().member("engine", f.engine).member("topic", f.topic).member("text", f.text);
  j.key("figures").open_object();
  for (const auto& [name, figure] : f.figures) j.member(name, figure);
  j.close().close();
}

void write(JsonWriter& j, const MemoryRecord& m) {
  j.open_object();
  if (m.one_stream_bound) j.member("one_stream_lower_bound_bytes", m.one_stream_bound);
  j.member("space", m.space)
      .member("arena_bytes", m.peak)
      .member("late_buffers", m.late_buffers)
      .member("lower_bound_bytes", m.lower_bound)
      .member("sum_of_tensors_bytes", m.sum_of_tensors)
      .member("buffers", m.buffers)
      .member("unordered_pairs", m.unordered_pairs)
      .member("proven_optimal", m.proven_optimal)
      .member("peak_step", m.peak_step)
      .strings("held_by", m.holders)
      .close();
}

void write(JsonWriter& j, const RuleRecord& r) {
  j.open_object().member("name", r.name).member("matched", r.matched).member("applied", r.applied);
  if (!r.near_misses.empty()) write_counts(j, "near_misses", r.near_misses);
  if (!r.details.empty()) {
    j.key("details").open_array();
    for (const LedgerDetail& d : r.details) write(j, d);
    j.close();
  }
  j.close();
}

// Why nodes are not on an engine, by reason. Refusals that differ in numbers only are one.
struct NotTaken {
  std::string reason, example, text;
  uint64_t nodes = 0;
  bool can = false;
  double there_ns = 0, here_ns = 0;
};

std::string without_numbers(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  return out;
}

std::vector<NotTaken> not_taken(const std::vector<PlacementRecord>& placements, std::string_view engine) {
  std::map<std::string, NotTaken> groups;
  for (const PlacementRecord& p : placements)
    for (const OtherEngine& o : p.others) {
      if (o.engine != engine) continue;
      NotTaken& group = groups[o.can ? std::string() : without_numbers(o.text)];
      if (group.nodes++ == 0) {
        group.can = o.can;
        group.reason = group.text = o.text;
        group.example = p.node;
      }
      group.there_ns += o.cost_ns;
      group.here_ns += p.cost_ns;
    }
  std::vector<NotTaken> list;
  for (auto& [key, group] : groups) {
    if (group.can)
      group.reason = "could, " + microseconds(group.there_ns) + " in all, against " +
                     microseconds(group.here_ns) + " where they are, transfers not counted";
    list.push_back(std::move(group));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const NotTaken& a, const NotTaken& b) { return a.nodes > b.nodes; });
  return list;
}

void write_engines(JsonWriter& j, const std::vector<EngineRecord>& known,
                   const std::vector<PlacementRecord>& placements) {
  constexpr size_t kReasons = 16;
  struct Counts {
    uint64_t operators = 0, reference = 0, views = 0;
    bool host = false;
  };
  std::map<std::string, Counts> engines;
  for (const EngineRecord& e : known) engines[e.name].host = e.host;
  for (const PlacementRecord& p : placements) {
    Counts& c = engines[p.engine];
    ++c.operators;
    c.reference += p.reference;
    c.views += p.view;
  }
  j.key("engines").open_array(true);
  for (const auto& [name, c] : engines) {
    j.open_object()
        .member("name", name)
        .member("operators", c.operators)
        .member("reference_operators", c.reference)
        .member("views", c.views);
    if (c.host) j.member("host", true);
    const std::vector<NotTaken> reasons = not_taken(placements, name);
    if (!reasons.empty()) j.key("not_taken").open_array();
    for (size_t i = 0; i < reasons.size() && i < kReasons; ++i) {
      const NotTaken& r = reasons[i];
      j.open_object().member("reason", r.reason).member("nodes", r.nodes).member("example", r.example);
      if (r.can) j.member("example_text", r.text);
      j.close();
    }
    if (!reasons.empty()) j.close();
    if (reasons.size() > kReasons) j.member("further_reasons", reasons.size() - kReasons);
    j.close();
  }
  j.close();
}

template <class List, class... More>
void write_list(JsonWriter& j, std::string_view name, const List& list, More... more) {
  j.key(name).open_array(true);
  for (const auto& item : list) write(j, item, more...);
  j.close();
}

}  // namespace

void Ledger::patch(PatchRecord record) {
  if (keeps_patches())
    patches.push_back(std::move(record));
  else
    ++patches_left_out;
}

void Ledger::note(std::string_view pass, std::string_view node, std::string_view kind,
                  std::string_view text) {
  uint64_t& n = counts[std::string(pass) + "/" + std::string(kind)];
  if (++n <= kDetailsPerKind || everything)
    details.push_back(
        {std::string(pass), std::string(node), std::string(kind), std::string(text), {}, {}, 0, {}});
}

RuleRecord& Ledger::rule(std::string_view name) {
  auto it = std::find_if(rules.begin(), rules.end(), [&](const RuleRecord& r) { return r.name == name; });
  if (it != rules.end()) return *it;
  rules.push_back({std::string(name), 0, 0, {}, {}});
  return rules.back();
}

std::string Ledger::to_json(bool times) const {
  JsonWriter j;
  j.open_object(true);
  j.member("operators_before", operators_imported).member("operators_after", operators_final);
  j.key("fusions").open_object();
  for (const RuleRecord& r : rules)
    if (r.applied) j.member(r.name, r.applied);
  j.close();
  write_list(j, "stages", stages, times);
  write_list(j, "rules", rules);
  write_list(j, "patches", patches);
  if (patches_left_out) j.member("patches_left_out", patches_left_out);
  write_engines(j, engines, placements);
  write_list(j, "placements", placements);
  if (!findings.empty()) write_list(j, "findings", findings);
  write_list(j, "memory", memory);
  uint64_t arena = 0, bound = 0, sum = 0;
  for (const MemoryRecord& m : memory) {
    arena += m.peak;
    bound += m.lower_bound;
    sum += m.sum_of_tensors;
  }
  j.member("arena_bytes", arena)
      .member("arena_lower_bound_bytes", bound)
      .member("sum_of_tensors_bytes", sum)
      .member("tasks", tasks)
      .member("streams", streams)
      .member("events", events.size())
      .strings("event_reasons", events);
  if (predicted_ns > 0)
    j.member("event_ids", event_ids)
        .member("predicted_ns", predicted_ns)
        .member("predicted_one_stream_ns", one_stream_ns);
  if (reuse_events)
    j.member("reuse_events", reuse_events)
        .member("reuse_saved_bytes", reuse_bytes)
        .member("reuse_ns", reuse_ns);
  write_counts(j, "counts", counts);
  write_list(j, "notes", details);
  if (times)
    j.member("kernels_compiled", kernels_compiled)
        .member("kernels_known", kernels_known)
        .member("kernels_ms", kernels_milliseconds)
        .member("compile_ms", total_milliseconds);
  return j.close().take();
}

}  // namespace regie
