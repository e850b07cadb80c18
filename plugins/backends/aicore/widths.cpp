#include "widths.h"

#include <algorithm>
#include <numeric>

#include "regie/graph_view.hpp"

namespace aicore {

using regie::sdk::operands_of;
using regie::sdk::results_of;
using regie::sdk::sv;

bool is_product(std::string_view op) {
  return op == "MatMul" || op == "Gemm" || op == "regie.FusedMatMul" || op == "Conv" ||
         op == "regie.FusedConv" || op == "ConvTranspose";
}
bool is_window(std::string_view op) { return op == "MaxPool" || op == "AveragePool"; }
bool is_move(std::string_view op) {
  return op == "Concat" || op == "Split" || op == "Slice" || op == "Transpose" || op == "Expand" ||
         op == "Resize" || op == "Reshape" || op == "Gather";
}

std::vector<std::string> listed_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

bool is_listed(const regie_graph* graph, const regie_node& n, const std::vector<std::string>& names) {
  // An origin is "name (operator)".
  auto has = [&](std::string_view name) {
    if (sv(n.name) == name || sv(n.op) == name) return true;
    for (uint32_t i = 0; i < n.origin_count; ++i) {
      const std::string_view origin = sv(graph->origins[n.origins[i]]);
      if (origin == name) return true;
      if (origin.starts_with(name) && origin.substr(name.size()).starts_with(" (")) return true;
      if (origin.ends_with(" (" + std::string(name) + ")")) return true;
    }
    return false;
  };
  return std::any_of(names.begin(), names.end(), has);
}

Widths::Widths(const regie_graph* graph, uint32_t engine)
    : class_(graph->value_count), wide_(graph->value_count) {
  std::iota(class_.begin(), class_.end(), 0u);
  auto computed = [&](uint32_t v) {
    return v != REGIE_NONE && !graph->values[v].data && graph->values[v].type.elem == REGIE_F32;
  };
  for (uint32_t r = 0; r < graph->region_count; ++r)
    for (uint32_t id = graph->regions[r].first; id != REGIE_NONE; id = graph->nodes[id].next) {
      const regie_node& n = graph->nodes[id];
      if (n.engine != engine) continue;
      const std::string_view op = sv(n.op);
      if (is_product(op) && n.operand_count > 1 && computed(n.operands[0]) && n.operands[1] != REGIE_NONE &&
          graph->values[n.operands[1]].data && !regie::sdk::Attrs(n).integer("transA", 0))
        readers_.push_back({id, n.operands[0], true});
      if (is_window(op) && n.operand_count && computed(n.operands[0]))
        readers_.push_back({id, n.operands[0], false});
      if (!is_move(op) || !n.operand_count || !computed(n.operands[0])) continue;
      const uint32_t count = op == "Concat" ? n.operand_count : 1, first = find(n.operands[0]);
      for (uint32_t i = 1; i < count; ++i)
        if (computed(n.operands[i])) class_[find(n.operands[i])] = first;
      for (uint32_t v : results_of(n))
        if (computed(v)) class_[find(v)] = first;
    }
  for (uint32_t v = 0; v < class_.size(); ++v) class_[v] = find(v);
}

uint32_t Widths::find(uint32_t value) {
  while (class_[value] != value) value = class_[value] = class_[class_[value]];
  return value;
}

}  // namespace aicore
