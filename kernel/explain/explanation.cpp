#include "explain/explanation.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/toml.h"
#include "model/layout.h"
#include "passes/ledger.h"

namespace regie {

namespace {

using Json = nlohmann::ordered_json;
using Names = std::set<std::string>;

const Json& list(const Json& from, const char* key) {
  static const Json none = Json::array();
  const auto it = from.find(key);
  return it == from.end() ? none : *it;
}

// "conv1" of "conv1 (Op)" and of "node 'conv1' (Op)"; empty if it has no name.
std::string plain_name(const std::string& text) {
  const size_t end = text.rfind(" (");
  if (end == std::string::npos) return text;
  const bool node = text.starts_with("node '") && end > 6 && text[end - 1] == '\'';
  if (node) return text.substr(6, end - 7);
  return text.starts_with("node #") ? "" : text.substr(0, end);
}

// Whether a line of the ledger speaks of one of these nodes.
bool speaks_of(const std::string& text, const Names& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const std::string& n) { return text.find(n) != std::string::npos; });
}

bool any_of(const Json& texts, const Names& nodes) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const Json& t) { return nodes.count(t.get<std::string>()) != 0; });
}

// A few names that have the most in common with what was asked for.
std::string similar_names(const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kMost = 5;
  std::vector<std::pair<size_t, std::string>> scored;
  for (const std::string& k : known) {
    size_t common = 0;
    while (common < k.size() && common < name.size() && k[common] == name[common]) ++common;
    if (k.find(name) != std::string::npos || name.find(k) != std::string::npos) common += 100;
    scored.emplace_back(common, k);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (size_t i = 0; i < scored.size() && i < kMost; ++i) text += (i ? ", '" : "'") + scored[i].second + "'";
  return text.empty() ? "none" : text;
}

struct Found {
  Names nodes;        // "node 'conv1' (Op)", of the graph as it was imported, or of the compiled one
  Names origins;      // "conv1 (Op)"
  std::string value;  // if it was named by a tensor: what that is
};

class Finder {
 public:
  Finder(const Compilation& c, const std::string& name) : c_(c), g_(*c.imported), name_(name) {}

  Result<Found> find() {
    g_.for_each_node([&](uint32_t n) {
      const regie_node& node = g_.node(n);
      see(node.name, n);
      for (uint32_t i = 0; i < node.origin_count; ++i)
        see_text(plain_name(std::string(g_.origin(node.origins[i]))), n);
    });
    if (found_.nodes.empty()) find_value();
    if (found_.nodes.empty() && found_.value.empty()) find_made();
    if (!found_.nodes.empty() || !found_.value.empty()) return found_;
    std::vector<std::string> known(known_.begin(), known_.end());
    std::string hint;
    if (auto near = nearest_name(name_, known))
      hint = "did you mean '" + *near + "'?";
    else
      hint = "near names: " + similar_names(name_, known);
    return not_found("there is no node, output or tensor '" + name_ + "' in it; " + hint, c_.path);
  }

 private:
  void see(regie_str name, uint32_t node) { see_text(std::string(view(name)), node); }
  void see_text(const std::string& name, uint32_t node) {
    if (name.empty()) return;
    if (name == name_) add(node);
    known_.insert(name);
  }
  void add(uint32_t node) {
    found_.nodes.insert(g_.describe_node(node));
    for (uint32_t i = 0; i < g_.node(node).origin_count; ++i)
      found_.origins.insert(std::string(g_.origin(g_.node(node).origins[i])));
  }

  void find_value() {
    for (uint32_t v = 0; v < g_.value_count(); ++v) {
      if (!g_.live_value(v) || !g_.value(v).name.size) continue;
      const std::string name(view(g_.value(v).name));
      known_.insert(name);
      if (name == name_) add_value(v);
    }
    for (uint32_t i = 0; i < g_.region(0).result_count; ++i) {
      known_.insert(std::string(g_.output_name(i)));
      if (g_.output_name(i) == name_) add_value(g_.region(0).results[i]);
    }
  }

  void add_value(uint32_t v) {
    const regie_value& value = g_.value(v);
    if (value.kind == REGIE_VALUE_RESULT) {
      found_.value = "tensor '" + name_ + "' is made by " + g_.describe_node(value.owner);
      add(value.owner);
      return;
    }
    found_.value = (value.kind == REGIE_VALUE_ARGUMENT ? "'" + name_ + "' is an input"
                                                       : "'" + name_ + "' is a constant or weight");
    std::string readers;
    for (const regie_use& use : g_.uses(v)) {
      if (use.node & REGIE_USE_REGION) continue;
      readers += (readers.empty() ? ", read by " : ", ") + g_.describe_node(use.node);
      add(use.node);
    }
    found_.value += readers.empty() ? ", which nothing reads" : readers;
  }

  // Nodes that the compile made: copies, conversions, fused ones under names of their own.
  void find_made() {
    for (const Json& p : list(c_.ledger, "placements")) {
      const std::string text = p.at("node");
      const std::string name = plain_name(text);
      if (!name.empty()) known_.insert(name);
      if (name != name_) continue;
      found_.nodes.insert(text);
      for (const Json& o : list(p, "from")) found_.origins.insert(o.get<std::string>());
    }
  }

  const Compilation& c_;
  const Graph& g_;
  const std::string& name_;
  Found found_;
  Names known_;
};

// Follows the nodes through the patches, in the order in which they were applied.
Json follow(const Json& ledger, Names* nodes) {
  Json events = Json::array();
  Names now = *nodes;
  for (const Json& p : list(ledger, "patches")) {
    Names gone;
    for (const Json& r : p.at("removed"))
      if (now.count(r.get<std::string>())) gone.insert(r.get<std::string>());
    if (gone.empty()) continue;
    events.push_back(p);
    for (const std::string& g : gone) now.erase(g);
    for (const Json& a : p.at("added")) {
      now.insert(a.get<std::string>());
      nodes->insert(a.get<std::string>());
    }
  }
  return events;
}

struct Launch {
  std::string kernel, format;
  uint32_t stream = 0;
};

std::map<std::string, Launch> launches(const Model& m) {
  std::map<std::string, Launch> by_name;
  for (const ModelProgram& p : m.programs)
    for (const ModelTask& t : p.tasks)
      by_name[t.name] = t.kind == TaskKind::kLaunch
                            ? Launch{m.kernels[t.kernel].name, m.kernels[t.kernel].format, t.stream}
                            : Launch{task_kind_text(t.kind), "", t.stream};
  return by_name;
}

Json with_kernel(Json placement, const std::map<std::string, Launch>& tasks) {
  if (const auto it = tasks.find(placement.at("node")); it != tasks.end()) {
    placement["kernel"] = it->second.kernel;
    if (!it->second.format.empty()) placement["kernel_format"] = it->second.format;
    placement["stream"] = it->second.stream;
  }
  return placement;
}

// What the ledger of a model file has not kept.
Json left_out(const Compilation& c) {
  Json out = Json::object();
  if (const auto it = c.ledger.find("patches_left_out"); it != c.ledger.end()) out["patches"] = *it;
  uint64_t missing = 0;
  for (const Json& r : list(c.ledger, "rules")) {
    uint64_t all = 0;
    if (const auto it = r.find("near_misses"); it != r.end())
      for (const auto& [reason, n] : it->items()) all += n.get<uint64_t>();
    missing += all - std::min<uint64_t>(all, list(r, "details").size());
  }
  if (missing) out["near_misses"] = missing;
  return out;
}

}  // namespace

Result<Json> explain_node(const Compilation& c, const std::string& name) {
  Finder finder(c, name);
  REGIE_ASSIGN(const Found found, finder.find());
  Json answer{{"model", c.path}, {"asked", name}};
  if (!found.value.empty()) answer["tensor"] = found.value;
  answer["nodes"] = found.nodes;
  Names nodes = found.nodes;
  answer["patches"] = follow(c.ledger, &nodes);
  answer["runs_as"] = Json::array();
  const auto tasks = launches(*c.model);
  for (const Json& p : list(c.ledger, "placements")) {
    bool mine = nodes.count(p.at("node")) != 0;
    for (const Json& o : list(p, "from")) mine |= found.origins.count(o.get<std::string>()) != 0;
    if (!mine) continue;
    nodes.insert(p.at("node").get<std::string>());
    answer["runs_as"].push_back(with_kernel(p, tasks));
  }
  answer["rules"] = Json::array();
  for (const Json& r : list(c.ledger, "rules")) {
    Json stops = Json::array();
    for (const Json& d : list(r, "details"))
      if (speaks_of(d.at("node"), nodes) || speaks_of(d.at("text"), nodes) ||
          speaks_of(d.value("in_the_way", ""), nodes) || any_of(list(d, "reached"), nodes))
        stops.push_back({{"at", d.at("node")},
                         {"stopped", d.at("text")},
                         {"in_the_way", d.value("in_the_way", "")},
                         {"passed", d.value("passed", 0)}});
    uint64_t applied = 0;
    const std::string title = "rule " + r.at("name").get<std::string>();
    for (const Json& p : answer["patches"]) applied += p.at("title") == title;
    if (applied || !stops.empty())
      answer["rules"].push_back({{"name", r.at("name")}, {"applied", applied}, {"stopped", stops}});
  }
  answer["notes"] = Json::array();
  for (const Json& n : list(c.ledger, "notes"))
    if (speaks_of(n.value("node", ""), nodes) || speaks_of(n.at("text"), nodes)) answer["notes"].push_back(n);
  answer["events"] = Json::array();
  for (const Json& e : list(c.ledger, "event_reasons"))
    if (speaks_of(e, nodes)) answer["events"].push_back(e);
  if (Json missing = left_out(c); !missing.empty()) answer["not_kept"] = missing;
  return answer;
}

Result<Json> explain_rule(const Compilation& c, const std::string& name) {
  std::vector<std::string> known;
  for (const Json& r : list(c.ledger, "rules")) {
    known.push_back(r.at("name"));
    if (known.back() != name) continue;
    Json answer{
        {"model", c.path}, {"rule", name}, {"matched", r.at("matched")}, {"applied", r.at("applied")}};
    answer["fired"] = Json::array();
    for (const Json& p : list(c.ledger, "patches"))
      if (p.at("title") == "rule " + name) answer["fired"].push_back(p);
    answer["near_misses"] = r.contains("near_misses") ? r["near_misses"] : Json::object();
    answer["stopped"] = list(r, "details");
    answer["vetoes"] = Json::array();
    for (const Json& n : list(c.ledger, "notes"))
      if (n.at("kind") == "veto" &&
          n.at("text").get<std::string>().find("'rule " + name + "'") != std::string::npos)
        answer["vetoes"].push_back(n);
    if (Json missing = left_out(c); !missing.empty()) answer["not_kept"] = missing;
    return answer;
  }
  std::string hint;
  if (auto near = nearest_name(name, known)) {
    hint = "; did you mean '" + *near + "'?";
  } else {
    hint = known.empty() ? ", nor any other rule"
                         : "; of its " + std::to_string(known.size()) +
                               " rules the nearest are: " + similar_names(name, known);
  }
  return not_found("pipeline '" + c.model->pipeline + "' has no rule '" + name + "'" + hint, c.path);
}

Json engines_left_out(const Json& report) {
  Json out = Json::array();
  uint64_t all = 0;
  for (const Json& e : list(report, "engines")) all += e.at("operators").get<uint64_t>();
  for (const Json& e : list(report, "engines"))
    if (!e.value("host", false) && e.contains("not_taken") && e.at("operators").get<uint64_t>() * 10 < all)
      out.push_back(e);
  return out;
}

std::string not_taken_text(const Json& reason) {
  const bool could = reason.contains("example_text");
  std::string text = std::to_string(reason.at("nodes").get<uint64_t>()) + (could ? " " : " refused: ");
  text += reason.at("reason").get<std::string>() + " (such as " + reason.at("example").get<std::string>();
  return text + (could ? ": " + reason["example_text"].get<std::string>() + ")" : ")");
}

Json explain_all(const Compilation& c) {
  const Json& ledger = c.ledger;
  Json answer{{"model", c.path}, {"target", c.model->target}, {"pipeline", c.model->pipeline}};
  for (const char* key : {"operators_before", "operators_after", "fusions"}) answer[key] = ledger.at(key);
  answer["other_patches"] = Json::object();
  for (const Json& s : list(ledger, "stages"))
    for (const auto& [title, n] : s.at("patches_by_title").items())
      if (!title.starts_with("rule "))
        answer["other_patches"][title] = answer["other_patches"].value(title, 0) + n.get<uint64_t>();
  answer["not_fused"] = Json::array();
  for (const Json& r : list(ledger, "rules")) {
    if (!r.contains("near_misses")) continue;
    for (const auto& [reason, n] : r["near_misses"].items()) {
      Json miss{{"rule", r.at("name")}, {"reason", reason}, {"nodes", n}, {"passed", 0}};
      for (const Json& d : list(r, "details")) {
        if (d.value("reason", "") != reason ||
            (miss.contains("at") && d.value("passed", 0) <= miss["passed"]))
          continue;
        miss["passed"] = d.value("passed", 0);
        miss["at"] = d.at("node");
        miss["stopped"] = d.at("text");
        miss["in_the_way"] = d.value("in_the_way", "");
      }
      answer["not_fused"].push_back(std::move(miss));
    }
  }
  std::stable_sort(answer["not_fused"].begin(), answer["not_fused"].end(),
                   [](const Json& x, const Json& y) { return x["passed"] > y["passed"]; });
  answer["vetoes"] = Json::array();
  for (const Json& n : list(ledger, "notes"))
    if (n.at("kind") == "veto") answer["vetoes"].push_back(n);
  answer["not_folded"] = Json::array();
  for (const Json& n : list(ledger, "notes"))
    if (n.at("kind") == "not-folded") answer["not_folded"].push_back(n.at("text"));
  answer["engines"] = list(ledger, "engines");
  // By operator and reason.
  std::map<std::pair<std::string, std::string>, Json> groups;
  for (const Json& p : list(ledger, "placements")) {
    if (!p.value("reference", false)) continue;
    Json& group = groups[{p.at("operator"), p.at("reason")}];
    if (group.is_null())
      group = {{"operator", p.at("operator")},
               {"engine", p.at("engine")},
               {"reason", p.at("reason")},
               {"others", list(p, "others")},
               {"nodes", 0},
               {"example", p.at("node")}};
    group["nodes"] = group["nodes"].get<uint64_t>() + 1;
  }
  answer["reference_kernels"] = Json::array();
  for (auto& [key, group] : groups) answer["reference_kernels"].push_back(std::move(group));
  answer["memory"] = list(ledger, "memory");
  return answer;
}

}  // namespace regie
