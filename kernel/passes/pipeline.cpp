#include "passes/pipeline.h"

#include <algorithm>

#include "base/toml_lists.h"

namespace regie {

namespace {

std::string option_text(const TomlValue& v) {
  if (v.is_array())
    if (auto items = v.as_strings(); items.ok()) {
      std::string text;
      for (const std::string& s : *items) text += (text.empty() ? "" : ",") + s;
      return text;
    }
  return v.to_text();
}

// { choose = "placement", default = "cost", cost = "place-by-cost", greedy = "place-by-priority" }
Result<PassUse> read_choice(const TomlTable& t, PassUse use) {
  REGIE_ASSIGN(use.choice, require_string(t, "choose"));
  if (use.choice.empty() || use.choice.find('.') != std::string::npos)
    return invalid_input("the name of a choice is a word without a dot", use.where);
  REGIE_ASSIGN(std::string taken, require_string(t, "default"));
  for (const std::string& key : t.keys()) {
    if (key == "choose" || key == "default") continue;
    REGIE_ASSIGN(std::string pass, t.find(key)->as_string());
    if (key == taken) use.name = pass;
    use.alternatives.emplace_back(key, std::move(pass));
  }
  if (use.name.empty())
    return invalid_input("the default '" + taken + "' is none of the values of the choice", use.where);
  return use;
}

Result<PassUse> read_pass(const TomlValue& v) {
  PassUse use;
  use.where = v.where();
  if (v.is_string()) {
    REGIE_ASSIGN(use.name, v.as_string());
    return use;
  }
  REGIE_ASSIGN(TomlTable t, v.as_table());
  if (t.find("choose")) return read_choice(t, std::move(use));
  REGIE_ASSIGN(use.name, require_string(t, "pass"));
  for (const std::string& key : t.keys())
    if (key != "pass") use.options.emplace_back(key, option_text(*t.find(key)));
  return use;
}

Result<std::vector<PassUse>> read_passes(const TomlTable& table) {
  std::vector<PassUse> uses;
  REGIE_ASSIGN(TomlValue list, table.require("passes"));
  REGIE_ASSIGN(auto items, list.as_array());
  for (const TomlValue& item : items) {
    REGIE_ASSIGN(PassUse use, read_pass(item));
    uses.push_back(std::move(use));
  }
  return uses;
}

Stage* find_stage(Pipeline& p, const std::string& name) {
  auto it = std::find_if(p.stages.begin(), p.stages.end(), [&](const Stage& s) { return s.name == name; });
  return it == p.stages.end() ? nullptr : &*it;
}

Status no_stage(const Pipeline& p, const std::string& name, const std::string& where) {
  std::string known;
  for (const Stage& s : p.stages) known += (known.empty() ? "" : ", ") + s.name;
  return invalid_input("there is no stage '" + name + "'; the pipeline has " + known, where);
}

// Position of pass `name` in `stage`, or an error.
Result<size_t> find_pass(const Stage& stage, const std::string& name, const std::string& where) {
  auto it = std::find_if(stage.passes.begin(), stage.passes.end(), [&](const PassUse& u) {
    return u.name == name || std::any_of(u.alternatives.begin(), u.alternatives.end(),
                                         [&](const auto& a) { return a.second == name; });
  });
  if (it == stage.passes.end())
    return invalid_input("stage '" + stage.name + "' has no pass '" + name + "'", where);
  return static_cast<size_t>(it - stage.passes.begin());
}

Status read_stage(const TomlTable& t, Pipeline* p) {
  Stage stage;
  REGIE_ASSIGN(stage.name, require_string(t, "name"));
  if (find_stage(*p, stage.name))
    return invalid_input("stage '" + stage.name + "' is there twice", t.where());
  REGIE_ASSIGN(std::string repeat, t.string_or("repeat", "once"));
  if (repeat != "once" && repeat != "until-stable")
    return invalid_input("repeat must be \"once\" or \"until-stable\", not \"" + repeat + "\"", t.where());
  stage.until_stable = repeat == "until-stable";
  REGIE_ASSIGN(stage.max_rounds, t.integer_or("max-rounds", 8));
  if (stage.max_rounds < 1) return invalid_input("max-rounds must be at least 1", t.where());
  REGIE_ASSIGN(stage.passes, read_passes(t));
  REGIE_ASSIGN(std::string after, t.string_or("after", ""));
  REGIE_ASSIGN(std::string before, t.string_or("before", ""));
  auto at = p->stages.end();
  if (!after.empty() || !before.empty()) {
    const std::string& anchor = after.empty() ? before : after;
    Stage* s = find_stage(*p, anchor);
    if (!s) return no_stage(*p, anchor, t.where());
    at = p->stages.begin() + (s - p->stages.data()) + (after.empty() ? 0 : 1);
  }
  p->stages.insert(at, std::move(stage));
  return {};
}

Status read_insert(const TomlTable& t, Pipeline* p) {
  REGIE_ASSIGN(std::string name, require_string(t, "into"));
  REGIE_ASSIGN(auto passes, read_passes(t));
  REGIE_ASSIGN(std::string after, t.string_or("after", ""));
  REGIE_ASSIGN(std::string before, t.string_or("before", ""));
  Stage* stage = find_stage(*p, name);
  if (!stage) return no_stage(*p, name, t.where());
  if (!after.empty() && !before.empty())
    return invalid_input("an insert names `after` or `before`, not both", t.where());
  size_t at = stage->passes.size();
  if (!after.empty()) {
    REGIE_ASSIGN(at, find_pass(*stage, after, t.where()));
    ++at;
  } else if (!before.empty()) {
    REGIE_ASSIGN(at, find_pass(*stage, before, t.where()));
  }
  stage->passes.insert(stage->passes.begin() + static_cast<long>(at), passes.begin(), passes.end());
  return {};
}

Status read_remove(const TomlTable& t, Pipeline* p) {
  REGIE_ASSIGN(std::string name, require_string(t, "from"));
  REGIE_ASSIGN(TomlValue list, t.require("passes"));
  REGIE_ASSIGN(auto names, list.as_strings());
  Stage* stage = find_stage(*p, name);
  if (!stage) return no_stage(*p, name, t.where());
  for (const std::string& pass : names) {
    REGIE_ASSIGN(size_t at, find_pass(*stage, pass, t.where()));
    stage->passes.erase(stage->passes.begin() + static_cast<long>(at));
  }
  return {};
}

Status read_force(const TomlTable& t, Pipeline* p) {
  ForcedEngine f;
  f.where = t.where();
  REGIE_ASSIGN(f.engine, require_string(t, "engine"));
  REGIE_ASSIGN(f.node, t.string_or("node", ""));
  REGIE_ASSIGN(f.op, t.string_or("operator", ""));
  if (f.node.empty() == f.op.empty())
    return invalid_input("a [[force]] names a `node` or an `operator`, one of them", t.where());
  p->forced.push_back(std::move(f));
  return {};
}

// [short-names] streams = "schedule-on-streams.streams"
Status read_short_names(TomlTable& doc, Pipeline* p) {
  auto value = doc.find("short-names");
  if (!value) return {};
  REGIE_ASSIGN(TomlTable t, value->as_table());
  for (const std::string& key : t.keys()) {
    REGIE_ASSIGN(std::string option, t.find(key)->as_string());
    if (key.find('.') != std::string::npos || option.find('.') == std::string::npos)
      return invalid_input("[short-names] gives a word without a dot to an option, name = \"pass.option\"",
                           t.find(key)->where());
    std::erase_if(p->short_names, [&](const auto& n) { return n.first == key; });
    p->short_names.emplace_back(key, std::move(option));
  }
  return {};
}

Status choose(const std::vector<std::pair<std::string, std::string>>& settings, Pipeline* p) {
  for (Stage& stage : p->stages)
    for (PassUse& use : stage.passes) {
      if (use.choice.empty()) continue;
      p->choices.push_back(use.choice);
      for (const auto& [name, value] : settings) {
        if (name != use.choice) continue;
        auto at = std::find_if(use.alternatives.begin(), use.alternatives.end(),
                               [&](const auto& a) { return a.first == value; });
        if (at == use.alternatives.end()) {
          std::string known;
          for (const auto& a : use.alternatives) known += (known.empty() ? "" : ", ") + a.first;
          return invalid_input("'" + name + "' may be " + known + ", not '" + value + "'", "--set " + name);
        }
        use.name = at->second;
      }
    }
  return {};
}

Result<Pipeline> load(const PluginHost& host, std::string_view name, std::vector<std::string>* chain) {
  REGIE_ASSIGN(std::string path, host.find_config("pipelines", name));
  if (std::find(chain->begin(), chain->end(), path) != chain->end())
    return invalid_input("`extends` leads back to this file", path);
  chain->push_back(path);
  REGIE_ASSIGN(TomlTable doc, TomlTable::parse_file(path));
  REGIE_TRY(doc.check_schema(1));
  Pipeline p;
  REGIE_ASSIGN(std::string base, doc.string_or("extends", ""));
  if (!base.empty()) {
    REGIE_ASSIGN(p, load(host, base, chain));
  }
  REGIE_ASSIGN(p.name, require_string(doc, "name"));
  (void)doc.find("doc");
  REGIE_TRY(for_each_table(doc, "remove", [&](const TomlTable& t) { return read_remove(t, &p); }));
  REGIE_TRY(for_each_table(doc, "stage", [&](const TomlTable& t) { return read_stage(t, &p); }));
  REGIE_TRY(for_each_table(doc, "insert", [&](const TomlTable& t) { return read_insert(t, &p); }));
  REGIE_TRY(for_each_table(doc, "force", [&](const TomlTable& t) { return read_force(t, &p); }));
  REGIE_TRY(read_short_names(doc, &p));
  REGIE_TRY(doc.finish());
  if (p.stages.empty()) return invalid_input("the pipeline has no stage", path);
  return p;
}

std::string canonical_text(const Pipeline& p) {
  std::string text;
  for (const Stage& s : p.stages) {
    text +=
        "stage " + s.name + (s.until_stable ? " until-stable " + std::to_string(s.max_rounds) : "") + "\n";
    for (const PassUse& u : s.passes) {
      text += "  " + u.name;
      for (const auto& [k, v] : u.options) text += " " + k + "=" + v;
      text += "\n";
    }
  }
  for (const auto& [name, option] : p.short_names) text += "short " + name + "=" + option + "\n";
  for (const ForcedEngine& f : p.forced)
    text += "force " + f.engine + " node=" + f.node + " operator=" + f.op + "\n";
  return text;
}

}  // namespace

Result<Pipeline> load_pipeline(const PluginHost& host, std::string_view name_or_path,
                               const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string> chain;
  REGIE_ASSIGN(Pipeline p, load(host, name_or_path, &chain));
  REGIE_TRY(choose(settings, &p));
  p.digest_text = canonical_text(p);
  return p;
}

Result<Pipeline> pipeline_from_list(std::string_view passes) {
  Pipeline p;
  p.name = "opt";
  Stage stage;
  stage.name = "opt";
  while (!passes.empty()) {
    size_t comma = passes.find(',');
    std::string_view name = passes.substr(0, comma);
    if (name.empty()) return invalid_input("--passes has an empty name; write a,b,c");
    stage.passes.emplace_back();
    stage.passes.back().name = name;
    stage.passes.back().where = "--passes";
    passes = comma == std::string_view::npos ? std::string_view() : passes.substr(comma + 1);
  }
  if (stage.passes.empty()) return invalid_input("--passes names no pass; `regie plugins list` shows them");
  p.stages.push_back(std::move(stage));
  p.digest_text = canonical_text(p);
  return p;
}

}  // namespace regie
