#include <unordered_map>

#include "text/text.h"

namespace regie {

Status check_round_trip(const Graph& graph) {
  std::unordered_map<std::string_view, const Tensor*> by_digest;
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Tensor* t = graph.is_constant(v) ? &graph.tensor(v) : graph.default_of(v);
    if (t && *t) by_digest.emplace(t->digest(), t);
  }
  ParseOptions options;
  options.constants = [&](std::string_view digest, regie_elem, std::span<const int64_t>) -> Result<Tensor> {
    auto it = by_digest.find(digest);
    return it == by_digest.end() ? Tensor() : *it->second;
  };
  const std::string text = print(graph);
  auto back = parse(text, "its own text", options);
  if (!back.ok())
    return internal_error("the graph's text cannot be read again: " + back.status().to_string());
  REGIE_TRY(same_graph(graph, **back).while_doing("comparing the graph with what its text gives"));
  return print(**back) == text ? Status()
                               : internal_error("the graph's text changes when it is read and printed again");
}

}  // namespace regie
