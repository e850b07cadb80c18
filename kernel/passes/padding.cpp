#include "passes/padding.h"

#include <algorithm>

#include "passes/padding_node.h"

namespace regie {

namespace {

class Check {
 public:
  Check(const Graph& graph, const PluginOpSet& ops, const PaddedSymbols& symbols)
      : g_(graph), ops_(ops), symbols_(symbols), marks_(graph.value_count()) {}

  Status run() {
    const regie_region& main = g_.region(0);
    for (uint32_t i = 0; i < main.arg_count; ++i)
      if (padded(main.args[i])) marks_[main.args[i]] = {PaddingMark::kPadded, true, {}};
    for (uint32_t n = main.first; n != REGIE_NONE; n = g_.node(n).next) visit(n);
    for (uint32_t i = 0; i < main.result_count; ++i) {
      const PaddingMark& m = marks_[main.results[i]];
      const std::string output = "output '" + std::string(g_.output_name(i)) + "'";
      if (m.state == PaddingMark::kBad)
        return unsupported("requests cannot be padded for " + output + ": " + m.why + advice());
      if (m.state == PaddingMark::kSized)
        return unsupported("requests cannot be padded for " + output +
                           ": it is made of the padded sizes themselves" + advice());
    }
    return {};
  }

 private:
  static std::string advice() {
    return "; take --shapes dynamic, or list the very sizes of the requests with --padding refuse";
  }

  bool padded(uint32_t value) const {
    const regie_type& t = g_.value(value).type;
    return t.rank > 0 && std::any_of(t.dims, t.dims + t.rank,
                                     [&](regie_dim d) { return depends_on(g_.dims(), d, symbols_); });
  }

  // Made of sizes, or not at all of what was padded: then the shape functions know it. Not of sizes that the
  // data decide: those may be padded.
  bool known_by_content(uint32_t value, bool exact) {
    const regie_value& v = g_.value(value);
    if (!v.content ||
        std::find(v.content, v.content + v.content_count, REGIE_DIM_UNKNOWN) != v.content + v.content_count)
      return false;
    bool by_data = false;
    for (uint32_t i = 0; i < v.content_count && !exact; ++i)
      g_.dims().visit_symbols(v.content[i],
                              [&](size_t s) { by_data = by_data || g_.dims().symbol_at(s).data_dependent; });
    if (by_data) return false;
    const bool sized = std::any_of(v.content, v.content + v.content_count,
                                   [&](regie_dim d) { return depends_on(g_.dims(), d, symbols_); });
    marks_[value] = {sized ? PaddingMark::kSized : PaddingMark::kExact, false, {}};
    return true;
  }

  void visit(uint32_t node) {
    const regie_node& n = g_.node(node);
    bool exact = true;
    const PaddingMark* bad = nullptr;
    for (uint32_t v : g_.operands(node)) {
      if (v == REGIE_NONE) continue;
      exact = exact && marks_[v].state == PaddingMark::kExact;
      if (!bad && marks_[v].state == PaddingMark::kBad) bad = &marks_[v];
    }
    std::vector<uint32_t> open;
    for (uint32_t v : g_.results(node))
      if (v != REGIE_NONE && !known_by_content(v, exact)) open.push_back(v);
    if (open.empty()) return;
    if (bad) {
      const PaddingMark copy = *bad;
      for (uint32_t v : open) marks_[v] = copy;
      return;
    }
    if (exact) return;  // and so are the results, whatever it computes
    std::string why;
    bool zeros = false;
    if (n.region_count || std::any_of(open.begin(), open.end(), [&](uint32_t v) {
          return g_.value(v).type.container != REGIE_TENSOR || g_.value(v).type.rank < 0;
        })) {
      why = "declares nothing about padding";
    } else {
      const PaddingNode one(g_, ops_, symbols_, marks_, node);
      why = one.refused();
      zeros = one.keeps_zeros();
    }
    for (uint32_t v : open) {
      if (!why.empty())
        marks_[v] = {PaddingMark::kBad, false, g_.describe_node(node) + " " + why};
      else if (padded(v))
        marks_[v] = {PaddingMark::kPadded, zeros, {}};
    }
  }

  const Graph& g_;
  const PluginOpSet& ops_;
  const PaddedSymbols& symbols_;
  std::vector<PaddingMark> marks_;
};

}  // namespace

bool depends_on(const DimTable& dims, regie_dim dim, const PaddedSymbols& symbols) {
  if (dim >= 0 || dim == REGIE_DIM_UNKNOWN) return false;
  bool found = false;
  dims.visit_symbols(dim, [&](size_t s) { found = found || symbols.count(s) != 0; });
  return found;
}

Status check_padding(const Graph& graph, const PluginOpSet& ops, const PaddedSymbols& symbols) {
  return Check(graph, ops, symbols).run();
}

}  // namespace regie
