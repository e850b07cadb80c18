// The embedding API's answers to why a model became what it is. They need the graph's parser, so they are in
// libregie-compiler.
#include "api/objects.h"
#include "explain/explanation.h"

namespace {

using regie::invalid_input;

regie::Result<std::string> explain(const regie_model& model, const regie_option* options, size_t count) {
  REGIE_ASSIGN(const regie::ApiOptions given,
               regie::ApiOptions::read(options, count, {"node", "rule", "plan", "all", "json"}));
  regie::Question question{given.find("node"), given.find("rule")};
  if (question.node && question.rule)
    return invalid_input("give the option 'node' or 'rule', one of them: each is a question of its own");
  REGIE_ASSIGN(question.all, given.flag("all", false));
  REGIE_ASSIGN(question.json, given.flag("json", false));
  const std::optional<std::string> plan = given.find("plan");
  if (plan && !model.set) return invalid_input("the model has one plan; leave out the option 'plan'");
  std::shared_ptr<const regie::Model> of = model.model;
  if (model.set) {
    REGIE_ASSIGN(const size_t wanted, regie::find_plan(*model.set, plan));
    of = model.set->plan(wanted);
  }
  const regie::Model& graph = model.set ? *model.set->ports : *model.model;
  REGIE_ASSIGN(const regie::Compilation compilation,
               regie::look_back(model.source, std::move(of), graph.portable_graph));
  return regie::answer(compilation, question);
}

}  // namespace

regie_status regie_model_explain(const regie_model* model, const regie_option* options, size_t option_count,
                                 const char** text) {
  thread_local std::string kept;
  return regie::api_guard([&]() -> regie::Status {
    if (!model || !text)
      return invalid_input("regie_model_explain: a model and a place for the text are needed");
    *text = nullptr;
    REGIE_ASSIGN(kept, explain(*model, options, option_count));
    *text = kept.c_str();
    return {};
  });
}
