#include "passes/padding.h"

#include <algorithm>

#include "ir/structural.h"
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
    visit_region(0);
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

  void visit_region(uint32_t region) {
    for (uint32_t n = g_.region(region).first; n != REGIE_NONE; n = g_.node(n).next) visit(n);
  }

  // Both branches, with what they capture as it is outside; which one is taken must not depend on padding.
  // Empty: the results that `open` lists may be padded as their types say.
  std::string visit_branches(uint32_t node, const std::vector<uint32_t>& open) {
    const regie_node& n = g_.node(node);
    if (marks_[n.operands[0]].state != PaddingMark::kExact)
      return "decides by " + g_.describe_value(n.operands[0]) +
             ", which padding, or the padded sizes, may change";
    for (uint32_t r = 0; r < n.region_count; ++r) {
      const regie_region& branch = g_.region(n.regions[r]);
      for (uint32_t i = 0; i < branch.arg_count; ++i)
        if (const uint32_t outer = captured_operand(g_, branch.args[i]); outer != REGIE_NONE)
          marks_[branch.args[i]] = marks_[outer];
      visit_region(n.regions[r]);
      for (uint32_t i = 0; i < branch.result_count && i < n.result_count; ++i) {
        if (std::find(open.begin(), open.end(), n.results[i]) == open.end()) continue;
        const PaddingMark& m = marks_[branch.results[i]];
        if (m.state == PaddingMark::kBad) return "has a branch in which " + m.why;
        if (m.state == PaddingMark::kSized) return "has a branch that gives the padded sizes themselves";
        if (!same_dims(branch.results[i], n.results[i])) return "has branches that give other sizes";
      }
    }
    return {};
  }

  // One iteration, for all: what is carried comes in as its type says, and must go out like that.
  std::string visit_loop(uint32_t node, const std::vector<uint32_t>& open) {
    const regie_node& n = g_.node(node);
    const uint32_t carried = carried_values(n), own = own_operands(n);
    for (uint32_t i = 0; i < 2; ++i)
      if (n.operands[i] != REGIE_NONE && marks_[n.operands[i]].state != PaddingMark::kExact)
        return "goes on by " + g_.describe_value(n.operands[i]) +
               ", which padding, or the padded sizes, may change";
    const regie_region& body = g_.region(n.regions[0]);
    const std::string changes = "carries a value whose sizes, or whose dependence on padding, change";
    for (uint32_t i = 0; i < body.arg_count; ++i) {
      const uint32_t arg = body.args[i];
      PaddingMark& m = marks_[arg];
      m = {padded(arg) ? PaddingMark::kPadded : PaddingMark::kExact, false, {}};
      if (i < 2) continue;
      if (i >= own) {
        m = marks_[n.operands[i]];
        continue;
      }
      if (marks_[n.operands[i]].state != m.state || !same_dims(n.operands[i], arg)) return changes;
    }
    visit_region(n.regions[0]);
    for (uint32_t i = 0; i < body.result_count; ++i) {
      const PaddingMark& m = marks_[body.results[i]];
      if (m.state == PaddingMark::kBad) return "has a body in which " + m.why;
      if (i == 0 && m.state != PaddingMark::kExact) return "goes on by what padding may change";
      if (i == 0) continue;
      if (i <= carried) {
        const uint32_t arg = body.args[1 + i];
        if (m.state != marks_[arg].state || !same_dims(body.results[i], arg)) return changes;
      } else if (m.state == PaddingMark::kSized) {
        return "has a body that gives the padded sizes themselves";
      }
      // What is collected has the iterations in front.
      if (i - 1 >= n.result_count || std::find(open.begin(), open.end(), n.results[i - 1]) == open.end())
        continue;
      const regie_type &inner = g_.value(body.results[i]).type, &outer = g_.value(n.results[i - 1]).type;
      const int32_t shift = i <= carried ? 0 : 1;
      if ((padded(body.results[i]) || padded(n.results[i - 1])) &&
          (inner.rank + shift != outer.rank ||
           !std::equal(inner.dims, inner.dims + inner.rank, outer.dims + shift) ||
           (shift && depends_on(g_.dims(), outer.dims[0], symbols_))))
        return changes;
    }
    return {};
  }

  // Where either is padded.
  bool same_dims(uint32_t a, uint32_t b) const {
    const regie_type &x = g_.value(a).type, &y = g_.value(b).type;
    if (!padded(a) && !padded(b)) return true;
    return x.rank == y.rank && std::equal(x.dims, x.dims + x.rank, y.dims);
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
    if (is_if(n)) {
      why = visit_branches(node, open);
    } else if (is_loop(n)) {
      why = visit_loop(node, open);
    } else if (n.region_count || std::any_of(open.begin(), open.end(), [&](uint32_t v) {
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
