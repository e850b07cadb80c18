// From a model to what was asked about it.
#include "explain/explanation.h"
#include "base/json_text.h"
#include "model/check.h"
#include "text/text.h"

namespace regie {

using Json = nlohmann::ordered_json;

Result<Compilation> look_back(std::string path, std::shared_ptr<const Model> model,
                              std::string_view portable) {
  Compilation c;
  c.path = std::move(path);
  c.model = std::move(model);
  c.ledger = Json::parse(c.model->ledger_json, nullptr, false);
  if (c.ledger.is_discarded() || !c.ledger.is_object() || !c.ledger.contains("operators_before"))
    return Status::error(REGIE_CORRUPT, "its ledger cannot be read; compile the model again", c.path);
  ParseOptions options;
  options.max_depth = kMaxProgramDepth;
  REGIE_ASSIGN(c.imported, parse(portable, c.path + " (portable graph)", options));
  return c;
}

std::string plan_names(const PlanSet& set) {
  std::string names;
  for (size_t p = 0; p < set.plan_count(); ++p) names += (p ? "; " : "") + set.plan_text(p);
  return names;
}

Result<size_t> find_plan(const PlanSet& set, const std::optional<std::string>& name) {
  if (!name) return set.plans.size() - 1;
  for (size_t p = 0; p < set.plan_count(); ++p)
    if (*name == set.plan_text(p)) return p;
  return invalid_input("there is no plan for '" + *name + "'; there are: " + plan_names(set));
}

Result<std::string> answer(const Compilation& c, const Question& question) {
  Json json;
  std::string (*text)(const Json&, bool) = explain_all_text;
  try {
    if (question.node) {
      REGIE_ASSIGN(json, explain_node(c, *question.node));
      text = explain_node_text;
    } else if (question.rule) {
      REGIE_ASSIGN(json, explain_rule(c, *question.rule));
      text = explain_rule_text;
    } else {
      json = explain_all(c);
    }
    return question.json ? json_text(json) : text(json, question.all);
  } catch (const Json::exception& e) {  // a file may hold any ledger
    return Status::error(REGIE_CORRUPT,
                         std::string("its ledger is not as this version writes it: ") + e.what(), c.path);
  }
}

}  // namespace regie
