#include <algorithm>
#include <cstdio>
#include <map>

#include "base/toml.h"
#include "cli/command.h"
#include "passes/rule_pass.h"
#include "plugins/host.h"

namespace regie::cli {

namespace {

std::string provides_text(const Manifest& m) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const auto& [kind, name] : m.provides) kinds[kind].push_back(name);
  std::string text;
  for (const auto& [kind, names] : kinds)
    text += (text.empty() ? "" : ", ") +
            (names.size() > 3 ? std::to_string(names.size()) + " " + kind : kind + ":" + names[0]) +
            (names.size() == 2 ? ", " + kind + ":" + names[1] : "") +
            (names.size() == 3 ? ", " + kind + ":" + names[1] + ", " + kind + ":" + names[2] : "");
  return text;
}

int list(PluginHost& host) {
  for (const Manifest& m : host.manifests())
    std::printf("%-24s %-8s %s\n", m.name.c_str(), m.version.c_str(), provides_text(m).c_str());
  return host.problems().empty() ? 0 : 2;  // the host has said what they are
}

void describe_info(const regie_pass_info& info) {
  auto text = [](regie_str s) { return std::string(s.data ? s.data : "", s.size); };
  auto names = [&](const char* title, uint32_t count, const regie_str* items) {
    for (uint32_t i = 0; i < count; ++i) std::printf("    %s %s\n", title, text(items[i]).c_str());
  };
  std::printf("    %s\n", text(info.doc).c_str());
  names("requires", info.require_count, info.requires_);
  names("establishes", info.establish_count, info.establishes);
  names("breaks", info.break_count, info.breaks);
  for (uint32_t i = 0; i < info.option_count; ++i)
    std::printf("    option %s = %s: %s\n", text(info.options[i].key).c_str(),
                text(info.options[i].default_value).c_str(), text(info.options[i].doc).c_str());
}

void describe_pass(PluginHost& host, const std::string& kind, const std::string& name) {
  const regie_pass_info* info = nullptr;
  if (kind == "pass") {
    if (auto p = host.pass(name); p.ok()) info = &p->table->passes[p->index];
  } else if (kind == "rewrite") {
    if (auto p = host.rewrite(name); p.ok()) info = &p->table->rewrites[p->index].pass;
  } else if (kind == "placer") {
    if (auto p = host.placer(name); p.ok()) info = &p->table->placers[p->index];
  } else if (kind == "scheduler") {
    if (auto p = host.scheduler(name); p.ok()) info = &p->table->schedulers[p->index];
  } else if (kind == "memory") {
    if (auto p = host.memory(name); p.ok()) info = &p->table->planners[p->index];
  }
  if (info) describe_info(*info);
}

// `name`: of a plug-in, or of something that one provides ("fold-constants", "pass:fold-constants").
int describe(PluginHost& host, const std::string& name) {
  if (name == RulePass::kName) {
    std::printf("the kernel's own\n  pass %s\n", name.c_str());
    describe_info(*RulePass::info());
    return 0;
  }
  std::vector<std::string> known;
  bool found = false;
  for (const Manifest& m : host.manifests()) {
    bool whole = m.name == name;
    known.push_back(m.name);
    bool hit = whole;
    for (const auto& [kind, provided] : m.provides) {
      known.push_back(provided);
      hit |= provided == name || kind + ":" + provided == name;
    }
    if (!hit) continue;
    found = true;
    std::printf("%s %s\n  library %s\n", m.name.c_str(), m.version.c_str(),
                m.library.empty() ? "(linked in)" : m.library.c_str());
    if (Status s = host.verify_library(m); !s.ok()) return report(s);
    for (const auto& [kind, provided] : m.provides) {
      if (!whole && provided != name && kind + ":" + provided != name) continue;
      std::printf("  %s %s\n", kind.c_str(), provided.c_str());
      describe_pass(host, kind, provided);
    }
  }
  if (found) return 0;
  auto near = nearest_name(name, known);
  return report(not_found("no plug-in has or is called '" + name + "'" +
                          (near ? "; did you mean '" + *near + "'?" : "; `regie plugins list` shows all")));
}

}  // namespace

int command_plugins(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("plugin-path", po::value<std::string>(),
                        "folders with further plug-ins (colon separated)");
  po::variables_map values;
  if (auto code = parse(
          arguments, options,
          {{"ACTION", "list, or describe"}, {"[NAME]", "of a plug-in or of what one provides (describe)"}},
          "plugins list | describe NAME", "  regie plugins list\n  regie plugins describe fold-constants",
          &values))
    return *code;
  const std::string action = values["ACTION"].as<std::string>();
  const bool named = values.count("NAME") != 0;
  if (!(action == "list" && !named) && !(action == "describe" && named))
    return report(invalid_input("plugins takes list, or describe and a name, not '" + action +
                                (named ? " " + values["NAME"].as<std::string>() : "") + "'"));
  auto host = plugin_host(values);
  if (!host.ok()) return report(host.status());
  return named ? describe(**host, values["NAME"].as<std::string>()) : list(**host);
}

}  // namespace regie::cli
