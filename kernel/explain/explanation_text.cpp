#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "explain/explanation.h"

namespace regie {

namespace {

using Json = nlohmann::ordered_json;

std::string joined(const Json& texts, const char* between) {
  std::string all;
  for (const Json& t : texts) all += (all.empty() ? "" : between) + t.get<std::string>();
  return all;
}

std::string count(uint64_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// Nodes by name; those that the compile made on the way and that have none are only counted.
std::string nodes_text(const Json& nodes) {
  std::string text;
  size_t nameless = 0;
  for (const Json& n : nodes) {
    if (n.get<std::string>().starts_with("node #"))
      ++nameless;
    else
      text += (text.empty() ? "" : ", ") + n.get<std::string>();
  }
  if (nodes.size() == 1 && nameless) return nodes.front();
  if (nameless) text += (text.empty() ? "" : " and ") + count(nameless, "node") + " without a name";
  return text;
}

std::string patch_line(const Json& p) {
  std::string text =
      "  " + p.at("title").get<std::string>() + " (stage " + p.at("stage").get<std::string>() + "): ";
  text += p.at("removed").empty() ? "beside what was there" : nodes_text(p.at("removed"));
  text += p.at("added").empty() ? " went" : " became " + nodes_text(p.at("added"));
  return text + "\n";
}

// What happened to nodes without a name is summed up by title: mostly arithmetic on constants.
std::string patch_lines(const Json& patches) {
  std::string text;
  std::map<std::string, uint64_t> nameless;
  for (const Json& p : patches) {
    const Json& removed = p.at("removed");
    const bool minor = !removed.empty() && std::all_of(removed.begin(), removed.end(), [](const Json& r) {
      return r.get<std::string>().starts_with("node #");
    });
    if (minor && p.at("added").empty())
      ++nameless[p.at("title")];
    else
      text += patch_line(p);
  }
  std::string rest;
  for (const auto& [title, n] : nameless)
    rest += (rest.empty() ? "" : ", ") + title + " x" + std::to_string(n);
  return rest.empty() ? text : text + "  of what was made on the way: " + rest + "\n";
}

std::string placement_lines(const Json& p) {
  std::string text = "  " + p.at("node").get<std::string>() + " on " + p.at("engine").get<std::string>();
  if (p.value("view", false)) {
    text += ": nothing runs, its result lies on the bytes of its operand\n";
  } else {
    if (p.contains("kernel")) text += ", kernel " + p["kernel"].get<std::string>();
    if (p.contains("kernel_format")) text += " (" + p["kernel_format"].get<std::string>() + ")";
    text += "\n    why: " + p.at("reason").get<std::string>() + "\n";
    if (p.value("reference", false)) text += "    a reference kernel, which is slow\n";
  }
  if (p.contains("from")) text += "    made from: " + joined(p["from"], ", ") + "\n";
  if (p.contains("others"))
    for (const Json& o : p["others"]) text += "    not " + o.get<std::string>() + "\n";
  return text;
}

std::string stop_lines(const std::string& indent, const Json& at, const Json& stopped,
                       const std::string& way) {
  std::string text = indent + at.get<std::string>() + ": " + stopped.get<std::string>() + "\n";
  if (!way.empty()) text += indent + "  in the way: " + way + "\n";
  return text;
}

uint64_t furthest(const Json& rule) {
  uint64_t most = 0;
  for (const Json& s : rule.at("stopped")) most = std::max(most, s.value("passed", uint64_t{0}));
  return most;
}

// Those that were applied, then those that got furthest before they stopped; of each the places where it got
// furthest.
std::string rule_lines(const Json& rules, bool all) {
  const size_t most_rules = all ? SIZE_MAX : 5, most_places = all ? SIZE_MAX : 2;
  std::vector<const Json*> order;
  for (const Json& r : rules) order.push_back(&r);
  std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
    return std::pair(a->at("applied") != 0, furthest(*a)) > std::pair(b->at("applied") != 0, furthest(*b));
  });
  std::string text;
  size_t shown = 0, left = 0;
  for (const Json* r : order) {
    const uint64_t applied = r->at("applied");
    if (!applied && shown++ >= most_rules) {
      ++left;
      continue;
    }
    std::vector<const Json*> stops;
    for (const Json& s : r->at("stopped")) stops.push_back(&s);
    std::stable_sort(stops.begin(), stops.end(), [](const Json* a, const Json* b) {
      return a->value("passed", uint64_t{0}) > b->value("passed", uint64_t{0});
    });
    text += "  " + r->at("name").get<std::string>();
    if (applied) text += " was applied" + (applied > 1 ? " " + count(applied, "time") : std::string());
    if (!stops.empty()) text += std::string(applied ? ", and" : "") + " stopped at";
    text += "\n";
    for (size_t i = 0; i < stops.size() && i < most_places; ++i)
      text += stop_lines("    ", stops[i]->at("at"), stops[i]->at("stopped"), stops[i]->at("in_the_way"));
    if (stops.size() > most_places)
      text += "    and at " + count(stops.size() - most_places, "further place") + "\n";
  }
  if (left) text += "  and " + count(left, "rule") + " that got no further; --all shows them\n";
  return text;
}

std::string not_kept(const Json& answer) {
  const auto it = answer.find("not_kept");
  if (it == answer.end()) return {};
  std::string what;
  if (it->contains("near_misses"))
    what = std::to_string((*it)["near_misses"].get<uint64_t>()) + " near misses";
  if (it->contains("patches"))
    what += (what.empty() ? "" : " and ") + std::to_string((*it)["patches"].get<uint64_t>()) + " patches";
  return "\nThe model does not keep " + what + "; explain the framework's file to see them all.\n";
}

}  // namespace

std::string explain_node_text(const Json& answer, bool all) {
  std::string text = answer.at("model").get<std::string>() + ": ";
  text += answer.contains("tensor") ? answer["tensor"].get<std::string>() : joined(answer.at("nodes"), ", ");
  text += "\n\nwhat became of it\n";
  text += patch_lines(answer.at("patches"));
  if (answer.at("patches").empty()) text += "  no pass changed it\n";
  text += "\nwhat runs\n";
  for (const Json& p : answer.at("runs_as")) text += placement_lines(p);
  if (answer.at("runs_as").empty()) text += "  nothing: it was computed or removed by the compile\n";
  text += "\nrules that were tried\n";
  text += rule_lines(answer.at("rules"), all);
  if (answer.at("rules").empty()) text += "  none: no rule begins or ends at such a node\n";
  if (!answer.at("notes").empty()) text += "\nnotes\n";
  for (const Json& n : answer.at("notes"))
    text += "  " + n.value("pass", "") + ", " + n.at("kind").get<std::string>() + ": " +
            n.at("text").get<std::string>() + "\n";
  if (!answer.at("events").empty()) text += "\nevents\n";
  for (const Json& e : answer.at("events")) text += "  " + e.get<std::string>() + "\n";
  return text + not_kept(answer);
}

std::string explain_rule_text(const Json& answer, bool) {
  std::string text =
      answer.at("model").get<std::string>() + ": rule " + answer.at("rule").get<std::string>() + " matched " +
      count(answer.at("matched"), "time") + ", was applied " + count(answer.at("applied"), "time") + "\n";
  if (!answer.at("fired").empty()) text += "\nwhere it was applied\n";
  for (const Json& p : answer.at("fired")) text += patch_line(p);
  for (const Json& v : answer.at("vetoes")) text += "  vetoed: " + v.at("text").get<std::string>() + "\n";
  if (!answer.at("near_misses").empty()) text += "\nwhere it stopped, on the graph as it was at the end\n";
  for (const auto& [reason, n] : answer.at("near_misses").items()) {
    text += "  " + reason + ": " + count(n, "node") + "\n";
    for (const Json& d : answer.at("stopped"))
      if (d.value("reason", "") == reason)
        text += stop_lines("    ", d.at("node"), d.at("text"), d.value("in_the_way", ""));
  }
  return text + not_kept(answer);
}

std::string explain_all_text(const Json& answer, bool all) {
  const size_t kMost = all ? SIZE_MAX : 12;
  std::string text = answer.at("model").get<std::string>() + ": " +
                     count(answer.at("operators_before"), "operator") + " became " +
                     std::to_string(answer.at("operators_after").get<uint64_t>()) + " (pipeline " +
                     answer.at("pipeline").get<std::string>() + ", target " +
                     answer.at("target").get<std::string>() + ")\n\nfused, by rule\n";
  for (const auto& [rule, n] : answer.at("fusions").items())
    text += "  " + rule + " x" + std::to_string(n.get<uint64_t>()) + "\n";
  if (answer.at("fusions").empty()) text += "  nothing\n";
  if (!answer.at("other_patches").empty()) text += "\nother patches\n";
  for (const auto& [title, n] : answer.at("other_patches").items())
    text += "  " + title + " x" + std::to_string(n.get<uint64_t>()) + "\n";
  for (const Json& v : answer.at("vetoes"))
    text += "  vetoed at " + v.value("node", "") + ": " + v.at("text").get<std::string>() + "\n";
  if (!answer.at("not_folded").empty()) text += "\nnot folded\n";
  for (const Json& n : answer.at("not_folded")) text += "  " + n.get<std::string>() + "\n";
  const Json& misses = answer.at("not_fused");
  if (!misses.empty()) text += "\nnot fused, nearest first (explain --rule NAME shows all of a rule)\n";
  for (size_t i = 0; i < misses.size() && i < kMost; ++i) {
    const Json& m = misses[i];
    text += "  " + m.at("rule").get<std::string>() + ", " + count(m.at("nodes"), "node") + ": " +
            m.at("reason").get<std::string>() + "\n";
    if (m.contains("at")) text += stop_lines("    ", m["at"], m["stopped"], m["in_the_way"]);
  }
  if (misses.size() > kMost)
    text += "  and " + std::to_string(misses.size() - kMost) + " more reasons; --all shows them\n";
  text += "\nengines\n";
  for (const Json& e : answer.at("engines"))
    text += "  " + e.at("name").get<std::string>() + ": " + count(e.at("operators"), "operator") + ", " +
            std::to_string(e.at("reference_operators").get<uint64_t>()) + " by reference kernels, " +
            std::to_string(e.at("views").get<uint64_t>()) + " as views that nothing runs for\n";
  const Json left_out = engines_left_out(answer);
  for (const Json& e : left_out) {
    text += "\nnot on " + e.at("name").get<std::string>() + ", by reason\n";
    const Json& reasons = e.at("not_taken");
    const size_t most = all ? SIZE_MAX : 5;
    for (size_t i = 0; i < reasons.size() && i < most; ++i) text += "  " + not_taken_text(reasons[i]) + "\n";
    const size_t more =
        reasons.size() - std::min(reasons.size(), most) + e.value("further_reasons", size_t{0});
    if (more) text += "  and " + count(more, "further reason") + "\n";
  }
  if (!answer.at("reference_kernels").empty()) text += "\nreference kernels, which are slow\n";
  for (const Json& r : answer.at("reference_kernels")) {
    text += "  " + r.at("operator").get<std::string>() + ", " + count(r.at("nodes"), "node") + " such as " +
            r.at("example").get<std::string>() + ": " + r.at("reason").get<std::string>() + "\n";
    for (const Json& o : r.at("others")) text += "    not " + o.get<std::string>() + "\n";
  }
  for (const Json& m : answer.at("memory")) {
    if (m.at("buffers").get<uint64_t>() == 0) continue;
    text += "\nmemory of " + m.at("space").get<std::string>() + ": " +
            std::to_string(m.at("arena_bytes").get<uint64_t>()) + " bytes, at least " +
            std::to_string(m.at("lower_bound_bytes").get<uint64_t>()) + "; most are live at step " +
            std::to_string(m.at("peak_step").get<uint64_t>()) + ", held by\n";
    for (const Json& h : m.at("held_by")) text += "  " + h.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace regie
