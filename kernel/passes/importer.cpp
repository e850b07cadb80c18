#include "passes/importer.h"

#include <algorithm>

#include "base/file.h"
#include "ir/types.h"
#include "ir/verify.h"
#include "model/check.h"
#include "passes/import_build.h"
#include "text/text.h"

namespace regie {

namespace {

constexpr uint64_t kProbeBytes = 4096;

bool is_text(const std::string& path) {
  return path.size() >= 3 && path.compare(path.size() - 3, 3, ".rg") == 0;
}

// Types that the text leaves out. Regions before the node that owns them, whose results depend on theirs.
Status infer_missing(Graph& graph, const OpSet& ops, const std::string& path) {
  struct Step {
    uint32_t node;
    bool regions_done;
  };
  std::vector<Step> stack{{graph.region(0).first, false}};
  while (!stack.empty()) {
    Step& top = stack.back();
    if (top.node == REGIE_NONE) {
      stack.pop_back();
      continue;
    }
    const regie_node& n = graph.node(top.node);
    if (!top.regions_done && n.region_count) {
      top.regions_done = true;
      for (uint32_t r = n.region_count; r-- > 0;)
        stack.push_back({graph.region(graph.node(n.id).regions[r]).first, false});
      continue;
    }
    const uint32_t id = top.node;
    top = {n.next, false};
    Status s = ops.check(graph, id);
    if (s.ok() && lacks_types(graph, id)) s = ops.infer(graph, id);
    if (!s.ok()) return Status::error(s.code(), s.message(), path + ": " + graph.describe_node(id));
  }
  return {};
}

Result<std::unique_ptr<Graph>> import_text(const OpSet& ops, std::string_view text, const std::string& path,
                                           const ImportSettings& settings) {
  if (const ImportOptions& options = settings.options; !options.empty())
    return invalid_input(
        "option '" + options.front().first + "' is for models of frameworks; a .rg graph says it itself",
        path);
  ParseOptions parse_options;
  parse_options.max_depth = kMaxProgramDepth;
  parse_options.sizes = settings.sizes;
  REGIE_ASSIGN(std::unique_ptr<Graph> graph, parse(text, path, parse_options));
  REGIE_TRY(infer_missing(*graph, ops, path));
  Status s = verify_given(*graph, ops);
  if (!s.ok()) return std::move(s.set_where(path)).while_doing("verifying the imported graph");
  return graph;
}

Result<std::unique_ptr<Graph>> import_with_frontend(PluginHost& host, const OpSet& ops,
                                                    std::span<const std::byte> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    const std::string& path, const ImportSettings& settings,
                                                    std::vector<std::string>* external_files) {
  if (bytes.empty()) return invalid_model("the file is empty; expected a model", path);
  std::string tried;
  std::string best_name;
  Provider<regie_frontend_table> best;
  uint32_t best_score = 0;
  Status refused;
  for (const std::string& name : host.names("frontend")) {
    auto provider = host.frontend(name);
    if (!provider.ok()) {
      // A broken one must not keep the others from trying; it is said if none knows the file.
      refused = provider.status();
      continue;
    }
    tried += (tried.empty() ? "" : ", ") + name;
    uint32_t score = 0;
    Status s = call_plugin("probe of frontend '" + name + "'", [&] {
      score = provider->table->probe(provider->index, str(path), bytes.data(),
                                     std::min<uint64_t>(bytes.size(), kProbeBytes), bytes.size());
      return REGIE_OK;
    });
    if (!s.ok()) {
      refused = s;
      continue;
    }
    if (score <= best_score) continue;
    best_score = score;
    best_name = name;
    best = *provider;
  }
  if (best_score == 0) {
    if (tried.empty() && !refused.ok())
      return std::move(refused).while_doing("looking for a frontend for " + path);
    std::string message = "not a model that any frontend knows: tried " + (tried.empty() ? "none" : tried);
    if (!refused.ok()) message += "; one could not be used: " + refused.to_string();
    return invalid_model(std::move(message), path);
  }
  Importer importer(ops, path, bytes, std::move(owner), settings);
  Status s = call_plugin("frontend '" + best_name + "' of plug-in " + best.manifest->name,
                         [&] { return best.table->import_model(best.index, &importer); });
  if (!s.ok()) {
    const std::string_view input = importer.input_with_default();
    if (s.code() == REGIE_UNSUPPORTED && !input.empty())
      s = Status::error(s.code(),
                        s.message() + "; the model has values for inputs such as '" + std::string(input) +
                            "', which --fold-defaults makes constants",
                        s.where());
    return said_of(s, s.where().empty() ? path : s.where());
  }
  if (external_files) *external_files = importer.external_files();
  return importer.finish(best_name);
}

}  // namespace

Result<std::unique_ptr<Graph>> import_model(PluginHost& host, const OpSet& ops, const std::string& path,
                                            const ImportSettings& settings,
                                            std::vector<std::string>* external_files) {
  if (is_text(path)) {
    REGIE_ASSIGN(std::string text, read_text_file(path));
    return import_text(ops, text, path, settings);
  }
  REGIE_ASSIGN(MappedFile file, MappedFile::open(path));
  return import_with_frontend(host, ops, file.bytes(), file.owner(), path, settings, external_files);
}

Result<std::unique_ptr<Graph>> import_bytes(PluginHost& host, const OpSet& ops,
                                            std::span<const std::byte> bytes, const std::string& name,
                                            const ImportSettings& settings,
                                            std::vector<std::string>* external_files) {
  if (is_text(name))
    return import_text(ops, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name, settings);
  return import_with_frontend(host, ops, bytes, nullptr, name, settings, external_files);
}

}  // namespace regie
