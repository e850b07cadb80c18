// The compiler: from a framework's file to a Model. Everything that is configurable comes in through
// CompileOptions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "passes/compile_state.h"

namespace regie {

struct Compiled {
  std::shared_ptr<const Model> model;
  std::string report;                       // JSON, times included
  std::vector<std::string> external_files;  // beside the model, as it names them; sorted
  uint64_t kernels_compiled = 0, kernels_known = 0;
};

// `bytes` empty: the file at `path`. Failures name the file, the node and what to do.
Result<Compiled> compile(const std::shared_ptr<PluginHost>& plugins, const std::string& path,
                         std::span<const std::byte> bytes, const CompileOptions& options);

// The tensor of a constant or of a default that the graph's text names by its digest alone; NULL: there is
// none.
const Tensor* beside_text(const Graph& graph, uint32_t value);

// The model as its import gives it: what a compile begins with.
struct ImportedGraph {
  std::unique_ptr<Graph> graph;
  std::shared_ptr<PluginOpSet> ops;
};
Result<ImportedGraph> import_graph(const std::shared_ptr<PluginHost>& plugins, const std::string& path,
                                   std::span<const std::byte> bytes, const CompileOptions& options);

// Runs passes over a graph in text form and gives it back: `regie opt`. Several graphs of one text are done
// one by one.
Result<std::string> optimise_text(const std::shared_ptr<PluginHost>& plugins, std::string_view text,
                                  const std::string& file_name, const Pipeline& pipeline,
                                  const CompileOptions& options);

}  // namespace regie
