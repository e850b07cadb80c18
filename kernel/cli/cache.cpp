// regie cache: what is kept of earlier compiles, and why something is not known.
#include "cache/folder.h"

#include <cstdio>
#include <ctime>
#include <memory>

#include "api/compile_options.h"
#include "base/size_text.h"
#include "cache/cached_compile.h"
#include "cache/plans_compile.h"
#include "cache/kernel_store.h"
#include "cli/command.h"
#include "base/json_text.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string time_text(int64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1000000000);
  std::tm parts{};
  char text[32];
  if (!::localtime_r(&seconds, &parts) || !std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts))
    return "?";
  return text;
}

// What tells entries apart at a glance: options that are not the default ones, and the target.
std::string summary_of(const EntryInfo& e) {
  std::string text;
  for (const KeyPart& p : e.key.parts()) {
    if (p.kind == "target") text += (text.empty() ? "" : " ") + p.name;
    if (p.kind != "option" || ((p.name == "optimise" || p.name == "verify") && p.value == "1")) continue;
    text += (text.empty() ? "" : " ") + p.name + "=" + p.value;
  }
  return text;
}

struct Kernels {
  uint64_t count = 0, bytes = 0;
};

Kernels kernels_in(const CacheFolder& folder) {
  Kernels k;
  for (const std::string& engine : folder.folders("kernels"))
    for (const CacheFile& f : folder.list("kernels/" + engine)) {
      k.count += f.name.ends_with(".kernel");
      k.bytes += f.bytes;
    }
  return k;
}

int list(const std::shared_ptr<CacheFolder>& folder, bool json) {
  std::vector<EntryInfo> entries;
  Kernels kernels;
  uint64_t bytes = 0;
  if (folder->readable()) {
    entries = ModelStore(folder).list();
    kernels = kernels_in(*folder);
    bytes = folder->bytes();
  }
  if (json) {
    Json out{{"folder", folder->path()}, {"bytes", bytes}};
    out["models"] = Json::array();
    for (const EntryInfo& e : entries) {
      Json parts = Json::array();
      for (const KeyPart& p : e.key.parts())
        parts.push_back({{"kind", p.kind}, {"name", p.name}, {"value", p.value}});
      out["models"].push_back({{"key", e.digest},
                               {"source", e.source},
                               {"bytes", e.bytes},
                               {"used", time_text(e.used_ns)},
                               {"parts", std::move(parts)}});
    }
    out["kernels"] = {{"count", kernels.count}, {"bytes", kernels.bytes}};
    std::fputs(json_text(out).c_str(), stdout);
    return 0;
  }
  for (const EntryInfo& e : entries)
    std::printf("%s  %12llu bytes  used %s  %s  (%s)\n", e.digest.c_str(),
                static_cast<unsigned long long>(e.bytes), time_text(e.used_ns).c_str(), e.source.c_str(),
                summary_of(e).c_str());
  std::printf("%zu models and %llu kernels in %s, %llu bytes in all\n", entries.size(),
              static_cast<unsigned long long>(kernels.count), folder->path().c_str(),
              static_cast<unsigned long long>(bytes));
  return 0;
}

Json why_json(const CacheAnswer& answer) {
  Json out{{"key", answer.digest},
           {"hit", answer.in_folder},
           {"why", answer.in_folder ? std::vector<std::string>() : answer.why}};
  if (!answer.damaged.empty()) out["damaged"] = answer.damaged;
  if (answer.nearest) out["nearest"] = {{"key", answer.nearest->digest}, {"source", answer.nearest->source}};
  return out;
}

void print_why(const CacheAnswer& answer) {
  if (answer.in_folder) {
    std::printf("hit: %s, made from %s\n", answer.digest.c_str(),
                answer.nearest ? answer.nearest->source.c_str() : "?");
    return;
  }
  std::printf("miss: %s\n", answer.digest.c_str());
  if (!answer.damaged.empty()) {
    std::printf("  the entry is damaged and will be made again: %s\n", answer.damaged.c_str());
    return;
  }
  if (answer.nearest)
    std::printf("the nearest entry is %s, made from %s; what differs:\n", answer.nearest->digest.c_str(),
                answer.nearest->source.c_str());
  for (const std::string& w : answer.why) std::printf("  %s\n", w.c_str());
}

// Of a model with several plans, each.
int why(const std::string& model, const po::variables_map& values, bool json) {
  const auto pairs = compile_options(values);
  const auto options = api_options(pairs);
  auto given = read_api_compile(options.data(), options.size());
  if (!given.ok()) return report(given.status());
  const CompileRequest request{given->plugins, model, {}, given->options};
  const bool several = given->shapes.mode == ShapeSpec::kBuckets;
  std::vector<std::pair<std::string, CompileRequest>> requests{{"", request}};
  if (several) {
    auto all = plan_requests(request, given->shapes);
    if (!all.ok()) return report(all.status());
    requests = std::move(all).value();
  }
  Json out = Json::array();
  for (const auto& [sizes, one] : requests) {
    const auto answer = ask_cache(one, given->cache);
    if (!answer.ok()) return report(answer.status());
    if (json) {
      out.push_back(why_json(*answer));
      if (several) out.back()["sizes"] = sizes;
      continue;
    }
    if (several) std::printf("%s: ", sizes.c_str());
    print_why(*answer);
  }
  if (json) std::fputs(json_text(several ? out : out[0]).c_str(), stdout);
  return 0;
}

bool can_read(CacheFolder& folder) {
  if (folder.readable()) return true;
  std::printf("there is no cache folder that can be read: %s\n", folder.path().c_str());
  return false;
}

int verify(const std::shared_ptr<CacheFolder>& folder) {
  if (!can_read(*folder)) return 0;
  const ModelStore models(folder);
  const size_t count = models.list().size();
  const Kernels kernels = kernels_in(*folder);
  std::vector<std::string> wrong = models.verify();
  for (const std::string& path : KernelStore::verify(*folder))
    wrong.push_back(path + ": the kernel is not as it was written");
  for (const std::string& path : FileDigests::verify(*folder))
    wrong.push_back(path + ": the file has other bytes than were remembered of it");
  for (const std::string& w : wrong) std::printf("removed: %s\n", w.c_str());
  std::printf("%zu models and %llu kernels read, %zu removed\n", count,
              static_cast<unsigned long long>(kernels.count), wrong.size());
  return wrong.empty() ? 0 : 1;
}

int collect(CacheFolder& folder, uint64_t limit) {
  if (!can_read(folder)) return 0;
  const uint64_t before = folder.bytes();
  const size_t removed = folder.shrink(limit);
  const auto n = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes); };
  if (removed)
    std::printf("removed the %zu least recently used entr%s of %s: %llu bytes before, %llu now, limit %llu\n",
                removed, removed == 1 ? "y" : "ies", folder.path().c_str(), n(before), n(folder.bytes()),
                n(limit));
  else if (before <= limit)
    std::printf("nothing to remove: %s has %llu bytes, limit %llu\n", folder.path().c_str(), n(before),
                n(limit));
  else
    std::printf("nothing was removed, as another process is removing entries of %s: %llu bytes, limit %llu\n",
                folder.path().c_str(), n(before), n(limit));
  return 0;
}

}  // namespace

int command_cache(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("json", "print one JSON object instead of text (list, why)")(
      "max-size", po::value<std::string>(),
      "gc: most bytes that may stay, such as 500M, 500MB or 2GiB (default: --cache-size)");
  add_compile_options(&options);
  po::variables_map values;
  if (auto code = parse(
          arguments, options,
          {{"ACTION",
            "list; why: what a compile of MODEL would find; verify: read everything, remove "
            "what is damaged; gc: remove what was used least recently until no more than the limit stays"},
           {"[MODEL]", "why: the model; options are those of `regie compile`"}},
          "cache list | why MODEL [options] | verify | gc [--max-size SIZE]",
          "  regie cache list\n"
          "  regie cache verify\n  regie cache gc --max-size 1G",
          &values))
    return *code;
  const std::string action = values["ACTION"].as<std::string>();
  const bool model = values.count("MODEL");
  if (model != (action == "why"))
    return report(invalid_input(model ? "only `regie cache why` takes a model"
                                      : "name the model: regie cache why MODEL"));
  if (action != "why")
    for (const auto& [name, value] : values)
      if (!value.defaulted() && name != "ACTION" && name != "json" && name != "max-size" &&
          !name.starts_with("cache"))
        return report(invalid_input(
            "this is an option of a compile, which `regie cache why` asks about; leave it out", "--" + name));
  if (values.count("json") && action != "list" && action != "why")
    return report(invalid_input("only list and why print JSON", "--json"));
  if (values.count("max-size") && action != "gc")
    return report(invalid_input("--max-size is for `regie cache gc`"));
  auto text = [&](const char* key) {
    return values.count(key) ? std::optional(values[key].as<std::string>()) : std::nullopt;
  };
  if (action == "why") return why(values["MODEL"].as<std::string>(), values, values.count("json"));
  auto cache = cache_options(text("cache"), text("cache-dir"), text("cache-size"));
  if (!cache.ok()) return report(cache.status());
  const auto folder = CacheFolder::open(cache->folder);
  if (action == "list") return list(folder, values.count("json"));
  if (action == "verify") return verify(folder);
  if (action != "gc")
    return report(invalid_input("there is no `regie cache " + action + "`; known are list, why, verify, gc"));
  if (values.count("max-size")) {
    auto limit = parse_size(values["max-size"].as<std::string>());
    if (!limit.ok()) return report(std::move(limit).status().set_where("--max-size"));
    cache->limit = *limit;
  }
  return collect(*folder, cache->limit);
}

}  // namespace regie::cli
