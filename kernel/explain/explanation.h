// Answers of `regie explain` and regie_model_explain, found in a compile's ledger and, for what became of the
// framework's nodes, in the graph as it was imported. As JSON, which text is then made of: so both say the
// same.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "ir/graph.h"
#include "model/model.h"
#include "model/plan_set.h"

namespace regie {

struct Compilation {
  std::string path;
  std::shared_ptr<const Model> model;
  nlohmann::ordered_json ledger;    // the model's; one of a compile with `explain` leaves nothing out
  std::unique_ptr<Graph> imported;  // bytes of constants left out
};

// `path`: what messages and answers call the model; `portable`: its graph as it was imported, which of a
// model with several plans is that of the set. CORRUPT if the ledger is no such thing.
Result<Compilation> look_back(std::string path, std::shared_ptr<const Model> model,
                              std::string_view portable);

// The plan that is called so ("x.0=4"), the one of the greatest sizes if none is named; INVALID_INPUT with
// all names.
Result<size_t> find_plan(const PlanSet& set, const std::optional<std::string>& name);
std::string plan_names(const PlanSet& set);  // "x.0=1; x.0=4"

struct Question {
  std::optional<std::string> node, rule;  // one of them, or none: an overview
  bool all = false;                       // nothing is left out for brevity
  bool json = false;                      // in place of text
};
Result<std::string> answer(const Compilation& compilation, const Question& question);

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

}  // namespace regie
