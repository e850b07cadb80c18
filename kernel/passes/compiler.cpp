#include "passes/compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/file.h"
#include "base/progress.h"
#include "ir/verify.h"
#include "model/check.h"
#include "model/file.h"
#include "model/plan_set.h"
#include "model/plan_check.h"
#include "passes/findings.h"
#include "passes/importer.h"
#include "passes/pass_manager.h"
#include "passes/portable_shapes.h"
#include "text/text.h"

namespace regie {

namespace {

// "model.onnx: node 'conv1' (Op)": messages name the user's file first.
Status in_file(Status status, const std::string& file) {
  if (status.ok() || status.where().find(file) != std::string::npos) return status;
  Status named = Status::error(status.code(), status.message(),
                               status.where().empty() ? file : file + ": " + status.where());
  for (const std::string& c : status.context()) named = std::move(named).while_doing(c);
  return named;
}

void keep_portable(CompileState& state) {
  state.portable_graph = print(*state.graph);
  const Graph& g = *state.graph;
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (const Tensor* t = beside_text(g, v)) state.portable_constants.push_back(*t);
}

// The graph and the weights come from the same file, but nothing makes them agree except this.
Result<Tensor> portable_constant(const Model& model, std::string_view digest, regie_elem elem,
                                 std::span<const int64_t> dims) {
  auto wrong = [&](const std::string& why) {
    return corrupt("the portable graph's constant " + std::string(digest) + " " + why +
                   "; compile the framework's file again");
  };
  auto it = model.portable_constants.find(std::string(digest));
  if (it == model.portable_constants.end()) return wrong("is not in the file");
  const ModelWeight& w = model.weights[it->second];
  const int64_t count = element_count(dims);
  const uint64_t need = elem_bytes(elem, static_cast<uint64_t>(count));
  if (w.layout != kPortable || elem == REGIE_STRING || count == INT64_MAX || need != w.size)
    return wrong("is " + std::string(elem_name(elem)) + " of " + std::to_string(count) +
                 " elements, but has " + std::to_string(w.size) + " bytes there");
  Tensor t = Tensor::borrow(elem, dims, model.weight_bytes.data() + w.offset, model.weight_owner);
  if (t.digest() != digest) return wrong("has other bytes there");
  return t;
}

// What a run may give cannot be computed with now.
void note_defaults(CompileState& state) {
  constexpr size_t kMostReaders = 4;
  const Graph& g = *state.graph;
  for (uint32_t i = 0; i < g.region(0).arg_count; ++i) {
    const uint32_t v = g.region(0).args[i];
    if (!g.default_of(v)) continue;
    std::string readers;
    size_t count = 0;
    for (const regie_use& use : g.uses(v))
      if (!(use.node & REGIE_USE_REGION) && count++ < kMostReaders)
        readers += (readers.empty() ? "" : ", ") + g.describe_node(use.node);
    if (count > kMostReaders) readers += " and " + std::to_string(count - kMostReaders) + " more";
    if (readers.empty()) continue;
    state.ledger.note(
        "import", "", "not-folded",
        "input '" + std::string(view(g.value(v).name)) +
            "' has a value in the model, but a run may give another one, so that nothing is folded "
            "into " +
            readers + "; --fold-defaults makes it a constant");
  }
}

// A framework's file, a text graph, or an offline model, whose portable graph is compiled again.
Result<std::unique_ptr<Graph>> read_graph(CompileState& state, const std::string& path,
                                          std::span<const std::byte> bytes) {
  const ImportSettings settings{state.options.import_options, state.options.sizes};
  if (!bytes.empty())
    return import_bytes(*state.plugins, *state.ops, bytes, path, settings, &state.external_files);
  auto file = MappedFile::open(path);
  if (!file.ok()) return std::move(file).status();
  if (!looks_like_model_file(file->bytes()))
    return import_model(*state.plugins, *state.ops, path, settings, &state.external_files);
  REGIE_ASSIGN(std::shared_ptr<const Model> model, load_portable(path));
  ParseOptions parse_options;
  parse_options.max_depth = kMaxProgramDepth;
  std::vector<std::string> shapes;
  for (const auto& [key, value] : settings.options) {
    if (key != "shape")
      return unsupported("the option '" + key +
                             "' needs the framework's file: an offline model's inputs are "
                             "made",
                         path);
    shapes.push_back(value);
  }
  if (!shapes.empty()) {
    REGIE_ASSIGN(const auto open, parse(model->portable_graph, path + " (portable graph)", parse_options));
    REGIE_ASSIGN(parse_options.sizes, sizes_of_shapes(*open, shapes));
  }
  parse_options.sizes.insert(parse_options.sizes.end(), settings.sizes.begin(), settings.sizes.end());
  parse_options.constants = [&](std::string_view digest, regie_elem elem,
                                std::span<const int64_t> dims) -> Result<Tensor> {
    return portable_constant(*model, digest, elem, dims);
  };
  REGIE_ASSIGN(auto graph, parse(model->portable_graph, path + " (portable graph)", parse_options));
  REGIE_TRY(verify_given(*graph, *state.ops).while_doing("verifying the portable graph"));
  return graph;
}

// A text graph may say where values lie. Whether they may lie there shows when the schedule and the engines
// are known; what is wrong then is the graph's fault, not that of a pass.
bool has_aliases(const Graph& g) {
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (g.live_value(v) && g.value(v).alias_of != REGIE_NONE) return true;
  return false;
}

Status of_user(Status status, const CompileState& state) {
  if (status.ok() || status.code() != REGIE_INTERNAL || !state.aliases_given) return status;
  Status out =
      invalid_model(status.message() + "; the graph itself says with @alias where values lie: take that out",
                    status.where());
  for (const std::string& c : status.context()) out = std::move(out).while_doing(c);
  return out;
}

Result<Compiled> compile_in(CompileState& state, const Pipeline& pipeline, const std::string& path,
                            std::span<const std::byte> bytes) {
  const CompileOptions& options = state.options;
  auto start = std::chrono::steady_clock::now();
  report_progress("reading the model");
  REGIE_ASSIGN(state.graph, read_graph(state, path, bytes));
  state.ledger.operators_imported = state.graph->live_node_count();
  note_defaults(state);
  state.aliases_given = has_aliases(*state.graph);
  if (options.verify && std::getenv("REGIE_VERIFY_TEXT")) REGIE_TRY(check_round_trip(*state.graph));
  keep_portable(state);
  REGIE_TRY(state.open_engines());
  REGIE_TRY(state.bind_symbols());
  for (uint32_t i = 0; i < state.graph->region(0).arg_count; ++i)
    REGIE_TRY(state.check_size(state.graph->region(0).args[i]));
  const FindingsCall findings(state);
  REGIE_TRY(run_pipeline(state, pipeline, {}, {"placed", "scheduled", "planned"}));
  report_progress("making the model");
  REGIE_ASSIGN(std::shared_ptr<Model> model, emit_model(state, pipeline));
  if (options.verify) {
    REGIE_TRY(of_user(check_model(*model), state).while_doing("checking the model that was made"));
    model->checked = true;
    REGIE_TRY(of_user(check_plan(*model), state).while_doing("checking the plan that was made"));
  }
  state.ledger.total_milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return Compiled{model, state.ledger.to_json(true), state.external_files, state.ledger.kernels_compiled,
                  state.ledger.kernels_known};
}

// Names the user's file, unless the failure is about another one.
Status named(Status s, const std::string& path) {
  const bool other_file = s.code() == REGIE_INVALID_INPUT && s.where().find(".toml") != std::string::npos;
  return other_file || s.where().starts_with("--") ? s : in_file(std::move(s), path);
}

// Texts do not say what lists of sizes hold. A frontend's graph has it.
Status learn_contents(Graph& g, const PluginOpSet& ops) {
  for (uint32_t n = g.region(0).first; n != REGIE_NONE; n = g.node(n).next) {
    if (g.node(n).region_count) continue;
    const auto results = g.results(n);
    const bool lacks = std::any_of(results.begin(), results.end(), [&](uint32_t v) {
      if (v == REGIE_NONE) return false;
      const regie_value& of = g.value(v);
      return !of.content && of.type.rank >= 0 && of.type.rank <= 1 &&
             (of.type.elem == REGIE_I64 || of.type.elem == REGIE_I32);
    });
    if (lacks) REGIE_TRY(ops.infer(g, n));
  }
  return {};
}

}  // namespace

const Tensor* beside_text(const Graph& g, uint32_t value) {
  const Tensor* t = g.is_constant(value) ? &g.tensor(value) : g.default_of(value);
  const bool beside = t && *t && t->elem() != REGIE_STRING &&
                      static_cast<uint64_t>(t->count()) > PrintOptions().inline_elements;
  return beside ? t : nullptr;
}

Result<ImportedGraph> import_graph(const std::shared_ptr<PluginHost>& plugins, const std::string& path,
                                   std::span<const std::byte> bytes, const CompileOptions& options) {
  CompileState state;
  state.options = options;
  state.plugins = plugins;
  state.source = path;
  REGIE_ASSIGN(state.ops, PluginOpSet::create(plugins));
  auto graph = read_graph(state, path, bytes);
  if (!graph.ok()) return named(std::move(graph).status(), path);
  if (Status s = learn_contents(**graph, *state.ops); !s.ok()) return named(std::move(s), path);
  return ImportedGraph{std::move(graph).value(), state.ops};
}

Result<Compiled> compile(const std::shared_ptr<PluginHost>& plugins, const std::string& path,
                         std::span<const std::byte> bytes, const CompileOptions& options) {
  CompileState state;
  state.options = options;
  state.ledger.everything = options.explain;
  state.plugins = plugins;
  state.source = path;
  REGIE_ASSIGN(state.ops, PluginOpSet::create(plugins));
  REGIE_ASSIGN(Pipeline pipeline, load_pipeline(*plugins, options.pipeline_name(), options.settings));
  REGIE_ASSIGN(state.target, load_target(*plugins, options.target, options.settings));
  auto compiled = compile_in(state, pipeline, path, bytes);
  if (!compiled.ok()) return named(std::move(compiled).status(), path);
  return compiled;
}

Result<std::string> optimise_text(const std::shared_ptr<PluginHost>& plugins, std::string_view text,
                                  const std::string& file_name, const Pipeline& pipeline,
                                  const CompileOptions& options) {
  REGIE_ASSIGN(auto ops, PluginOpSet::create(plugins));
  ParseOptions parse_options;
  parse_options.max_depth = kMaxProgramDepth;
  REGIE_ASSIGN(auto graphs, parse_all(text, file_name, parse_options));
  std::string out;
  for (auto& graph : graphs) {
    CompileState state;
    state.options = options;
    state.plugins = plugins;
    state.ops = ops;
    state.source = file_name;
    state.graph = std::move(graph);
    note_defaults(state);
    state.aliases_given = has_aliases(*state.graph);
    REGIE_TRY(in_file(verify_given(*state.graph, *ops), file_name));
    VerifyOptions with_shapes;
    with_shapes.shapes_known = true;
    GraphProperties initial;
    if (verify(*state.graph, with_shapes).ok()) initial.names.push_back("shapes-known");
    REGIE_ASSIGN(state.target, load_target(*plugins, options.target, options.settings));
    REGIE_TRY(state.open_engines());
    REGIE_TRY(state.bind_symbols());
    const FindingsCall findings(state);
    Status s = run_pipeline(state, pipeline, initial, {});
    if (!s.ok())
      return s.where().find(".toml") != std::string::npos || s.where().starts_with("--")
                 ? s
                 : in_file(std::move(s), file_name);
    if (!out.empty()) out += "\n";
    out += print(*state.graph);
  }
  return out;
}

}  // namespace regie
