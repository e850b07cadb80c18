// The .rg text form: canonical, diffable, parseable; parse(print(g)) equals g. One grammar for dumps, tests,
// rules and the portable graph of the model file. See docs/graph.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace regie {

struct PrintOptions {
  uint64_t inline_elements =
      16;                   // constants up to this many elements print as [1, 2]; larger as digest("...")
  bool assignments = true;  // engine, stream, space, alias where assigned
  bool provenance = true;   // @from("conv1 (Op)")
};
std::string print(const Graph& graph, const PrintOptions& options = {});
std::string print_node(const Graph& graph, uint32_t node);  // one line
std::string print_type(const Graph& graph, const regie_type& type);

struct ParseOptions {
  // Finds the bytes of a constant printed as digest("..."); without it, or where it gives an empty Tensor,
  // the constant is abstract (its type alone).
  std::function<Result<Tensor>(std::string_view digest, regie_elem elem, std::span<const int64_t> dims)>
      constants;
  // Symbols that are numbers here; one outside of its symbol's range is an error at the range.
  SymbolSizes sizes;
  // Regions in each other, the graph's own included; deeper ones are refused where they begin.
  size_t max_depth = SIZE_MAX;
};
// A sound graph (ir/verify.h), or INVALID_INPUT "file:line:column: ..." with what was expected. Size and
// numbers are limited by memory only: nested regions cost no stack.
Result<std::unique_ptr<Graph>> parse(std::string_view text, const std::string& file_name,
                                     const ParseOptions& options = {});
// All graphs of a file, in order.
Result<std::vector<std::unique_ptr<Graph>>> parse_all(std::string_view text, const std::string& file_name,
                                                      const ParseOptions& options = {});

// INTERNAL if the graph does not come back from its text as it was: parse(print(g)) == g.
Status check_round_trip(const Graph& graph);

// Structural equality up to ids: names, order, types, attributes, constants' bytes, provenance. Says the
// first difference.
Status same_graph(const Graph& a, const Graph& b);

}  // namespace regie
