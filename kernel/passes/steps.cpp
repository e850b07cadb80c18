#include "passes/steps.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/toml.h"

namespace regie {

namespace {

template <class Table>
const regie_pass_info* info_of(const Provider<Table>& p) {
  if constexpr (std::is_same_v<Table, regie_pass_table>) return &p.table->passes[p.index];
  if constexpr (std::is_same_v<Table, regie_placer_table>) return &p.table->placers[p.index];
  if constexpr (std::is_same_v<Table, regie_scheduler_table>) return &p.table->schedulers[p.index];
  if constexpr (std::is_same_v<Table, regie_memory_table>) return &p.table->planners[p.index];
  if constexpr (std::is_same_v<Table, regie_rewrite_table>) return &p.table->rewrites[p.index].pass;
}

std::vector<std::string> texts(uint32_t count, const regie_str* list) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < count; ++i) out.emplace_back(view(list[i]));
  return out;
}

// Tries one kind; NOT_FOUND leaves the step as it was.
template <class Table>
Status try_kind(Result<Provider<Table>> found, PassStep* step, bool* done) {
  if (!found.ok()) return found.status().code() == REGIE_NOT_FOUND ? Status() : std::move(found).status();
  step->info = info_of(*found);
  if constexpr (std::is_same_v<Table, regie_rewrite_table>)
    step->rewrite = &found->table->rewrites[found->index];
  step->manifest = found->manifest;
  step->provided = *found;
  *done = true;
  return {};
}

std::vector<std::string> known_passes(const PluginHost& host) {
  std::vector<std::string> names{"apply-rules"};
  for (const char* kind : {"pass", "rewrite", "placer", "scheduler", "memory"})
    for (std::string& n : host.names(kind)) names.push_back(std::move(n));
  std::sort(names.begin(), names.end());
  return names;
}

// What the pipeline has a short name for, written out.
std::string full_name(const Pipeline& pipeline, const std::string& key) {
  for (const auto& [name, option] : pipeline.short_names)
    if (name == key) return option;
  return key;
}

Status set_options(const CompileState& state, const Pipeline& pipeline, PassStep* step) {
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < step->info->option_count; ++i) keys.emplace_back(view(step->info->options[i].key));
  std::vector<std::pair<std::string, std::string>> values;
  auto set = [&](const std::string& key, const std::string& value, const std::string& where) -> Status {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      std::string hint;
      if (auto near = nearest_name(key, keys)) hint = "; did you mean '" + *near + "'?";
      return invalid_input("pass '" + step->use->name + "' has no option '" + key + "'" + hint, where);
    }
    for (auto& [k, v] : values)
      if (k == key) {
        v = value;
        return {};
      }
    values.emplace_back(key, value);
    return {};
  };
  for (const auto& [k, v] : step->use->options) REGIE_TRY(set(k, v, step->use->where));
  for (const auto& [given, v] : state.options.settings) {
    const std::string k = full_name(pipeline, given);
    size_t dot = k.find('.');
    if (dot != std::string::npos && k.substr(0, dot) == step->use->name)
      REGIE_TRY(set(k.substr(dot + 1), v, "--set " + given));
  }
  step->config = ConfigText(std::move(values));
  return {};
}

Status find(const CompileState& state, const Pipeline& pipeline, const PassUse& use, PassStep* step) {
  step->use = &use;
  PluginHost& host = *state.plugins;
  if (use.name == RulePass::kName) {
    REGIE_ASSIGN(step->provided, RulePass::create(state, use));
    step->info = RulePass::info();
  } else {
    bool done = false;
    REGIE_TRY(try_kind(host.pass(use.name), step, &done));
    if (!done) REGIE_TRY(try_kind(host.rewrite(use.name), step, &done));
    if (!done) REGIE_TRY(try_kind(host.placer(use.name), step, &done));
    if (!done) REGIE_TRY(try_kind(host.scheduler(use.name), step, &done));
    if (!done) REGIE_TRY(try_kind(host.memory(use.name), step, &done));
    if (!done) {
      std::string hint;
      if (auto near = nearest_name(use.name, known_passes(host))) hint = "; did you mean '" + *near + "'?";
      return invalid_input("there is no pass '" + use.name + "'" + hint + " (`regie plugins list` shows all)",
                           use.where);
    }
  }
  return set_options(state, pipeline, step);
}

}  // namespace

Status resolve_steps(CompileState& state, const Pipeline& pipeline, Steps* steps) {
  std::vector<std::string> used;
  for (const Stage& stage : pipeline.stages) {
    steps->emplace_back(stage.passes.size());
    for (size_t i = 0; i < stage.passes.size(); ++i) {
      REGIE_TRY(find(state, pipeline, stage.passes[i], &steps->back()[i]));
      state.uses(steps->back()[i].manifest);
      used.push_back(stage.passes[i].name);
    }
  }
  for (const auto& [given, value] : state.options.settings) {
    const std::string key = full_name(pipeline, given);
    std::string pass = key.substr(0, key.find('.'));
    if (std::find(pipeline.choices.begin(), pipeline.choices.end(), key) != pipeline.choices.end()) continue;
    if (key.find('.') == std::string::npos) {
      std::string choices;
      for (const std::string& c : pipeline.choices) choices += (choices.empty() ? " or one of: " : ", ") + c;
      for (const auto& [name, option] : pipeline.short_names)
        choices += (choices.empty() ? " or one of: " : ", ") + name;
      return invalid_input("--set wants pass.option=value" + choices + "; not '" + key + "=" + value + "'");
    }
    const bool of_engine = std::any_of(state.target.engines.begin(), state.target.engines.end(),
                                       [&](const TargetEngine& e) { return e.name == pass; });
    if (!of_engine && std::find(used.begin(), used.end(), pass) == used.end()) {
      std::string hint;
      std::vector<std::string> known = used;
      for (const TargetEngine& e : state.target.engines) known.push_back(e.name);
      if (auto near = nearest_name(pass, known)) hint = "; did you mean '" + *near + "'?";
      return invalid_input("pipeline '" + pipeline.name + "' has no pass '" + pass + "', and target '" +
                               state.target.name + "' no engine of that name" + hint,
                           "--set " + key);
    }
  }
  return {};
}

Status check_step_properties(const Steps& steps, const Pipeline& pipeline, const GraphProperties& initial,
                             const std::vector<std::string>& needed) {
  std::set<std::string> held(initial.names.begin(), initial.names.end());
  std::map<std::string, std::string> broken_by;
  auto missing = [&](const std::string& who, const std::string& property, const std::string& where) {
    auto it = broken_by.find(property);
    return invalid_input(
        who + " needs '" + property + "', which " +
            (it == broken_by.end() ? "no pass before it establishes" : "pass '" + it->second + "' broke") +
            "; the pipeline was not run",
        where);
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const PassStep& step : steps[s]) {
      for (const std::string& p : texts(step.info->require_count, step.info->requires_))
        if (!held.count(p))
          return missing("pass '" + step.use->name + "' in stage '" + pipeline.stages[s].name + "'", p,
                         step.use->where);
      std::vector<std::string> breaks = texts(step.info->break_count, step.info->breaks);
      // What changes the graph makes its schedule and plan stale, and its placement too unless the pass knows
      // of it.
      if (step.changes_graph()) {
        breaks.insert(breaks.end(), {"scheduled", "planned"});
        const auto needs = texts(step.info->require_count, step.info->requires_);
        if (std::find(needs.begin(), needs.end(), "placed") == needs.end()) breaks.push_back("placed");
      }
      for (const std::string& p : breaks)
        if (held.erase(p)) broken_by[p] = step.use->name;
      for (const std::string& p : texts(step.info->establish_count, step.info->establishes)) held.insert(p);
    }
  }
  for (const std::string& p : needed)
    if (!held.count(p)) return missing("pipeline '" + pipeline.name + "': making the model", p, "");
  return {};
}

}  // namespace regie
