// Answers of `regie explain`, found in a compile's ledger and, for what became of the framework's nodes, in
// the graph as it was imported. As JSON, which text is then made of: so both say the same.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "ir/graph.h"
#include "model/model.h"

namespace regie::cli {

struct Compilation {
  std::string path;
  std::shared_ptr<const Model> model;
  nlohmann::ordered_json ledger;
  std::unique_ptr<Graph> imported;  // bytes of constants left out
  bool complete = true;             // the ledger has every detail, not only the first ones
};

// NOT_FOUND with names that are near.
Result<nlohmann::ordered_json> explain_node(const Compilation& compilation, const std::string& name);
Result<nlohmann::ordered_json> explain_rule(const Compilation& compilation, const std::string& name);
nlohmann::ordered_json explain_all(const Compilation& compilation);

// Of a report's engines, those beside the host's that take nothing or less than a tenth, and why not.
nlohmann::ordered_json engines_left_out(const nlohmann::ordered_json& report);
// "12 could, ... (such as node 'conv1' (Op): could, ...)", of one of `not_taken`.
std::string not_taken_text(const nlohmann::ordered_json& reason);

// `all`: nothing is left out for brevity.
std::string explain_node_text(const nlohmann::ordered_json& answer, bool all);
std::string explain_rule_text(const nlohmann::ordered_json& answer, bool all);
std::string explain_all_text(const nlohmann::ordered_json& answer, bool all);

}  // namespace regie::cli
