// From a model file to a graph: finds the frontend that knows the file, maps the file and what lies beside
// it, and builds what the frontend describes. The frontend sees types as it goes, so edits take effect at
// once here (unlike patches), and each node is checked and inferred as it is made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/op_set.h"
#include "plugins/host.h"

namespace regie {

// Options of frontends, such as {"shape", "x=16,1,8,8"}; a key may come several times.
using ImportOptions = std::vector<std::pair<std::string, std::string>>;

struct ImportSettings {
  ImportOptions options;  // of the frontend
  SymbolSizes sizes;      // symbols that are to be numbers, whatever reads the model
};

// A file of any frontend, or a text graph (.rg). Weights stay in the mapped files where their alignment
// allows; the graph keeps the mappings. `external_files` gets the names, sorted, of the files beside it that
// were read. The graph has been verified. Every failure names the file.
Result<std::unique_ptr<Graph>> import_model(PluginHost& host, const OpSet& ops, const std::string& path,
                                            const ImportSettings& settings = {},
                                            std::vector<std::string>* external_files = nullptr);

// The same from bytes, which need to stay only during the call. `name` stands in messages; external files are
// looked for beside it.
Result<std::unique_ptr<Graph>> import_bytes(PluginHost& host, const OpSet& ops,
                                            std::span<const std::byte> bytes, const std::string& name,
                                            const ImportSettings& settings = {},
                                            std::vector<std::string>* external_files = nullptr);

}  // namespace regie
