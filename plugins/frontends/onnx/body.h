// The structure of a graph and its subgraphs before anything is built: who makes which value, in which order
// the nodes can run, and which values a subgraph takes from outside. Finds duplicate and undefined names and
// cycles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "context.h"
#include "functions.h"
#include "reader.h"

namespace regie::onnx {

struct Definition {
  enum Kind { kInput, kInitializer, kSparse, kNode };
  Kind kind;
  uint32_t index;     // into the graph's list, or into Body::nodes
  bool used = false;  // by a node, a subgraph or as an output
};

struct Body {
  const wire::Graph* proto;
  std::vector<NodeRef> nodes;   // functions expanded
  std::vector<uint32_t> order;  // topological; the order of the file where that is one
  std::unordered_map<std::string_view, Definition> definitions;
  // Of inputs that a run may leave out: their initializers, by name.
  std::unordered_map<std::string_view, Definition> defaults;
  std::vector<std::string_view> captures;  // names from outside, in the order of their first use
  // Subgraphs by node, in the order of its attributes; the name is the attribute's.
  std::map<uint32_t, std::vector<std::pair<std::string, std::unique_ptr<Body>>>> subgraphs;
};

// `overridable`: an initializer of an input's name is the input's default, not a constant in its place.
// `names` collects every name of a value. Undefined names are reported for the model's own graph.
std::unique_ptr<Body> analyse(Context& context, Functions& functions, const wire::Model& model,
                              bool overridable, std::unordered_set<std::string_view>* names);

}  // namespace regie::onnx
