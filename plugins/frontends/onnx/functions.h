// Operator-set imports, and model-local functions: a call is replaced by the function's nodes, with values
// and attributes of the call put in. Everything after this sees operators only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "context.h"
#include "reader.h"

namespace regie::onnx {

// "" for ONNX's own domain, however it is written.
std::string_view domain_of(std::string_view written);

struct Opsets {
  std::string owner;  // "the model", "function 'loc.scale'"
  std::map<std::string, int64_t, std::less<>> versions;
  // 0: not imported.
  int64_t find(std::string_view domain) const;
};

// A node to translate: its message, the operator sets that hold for it, and its name (the framework's, or
// made up).
struct NodeRef {
  const wire::Node* node;
  const Opsets* opsets;
  std::string name;
};

using WireNodes = google::protobuf::RepeatedPtrField<wire::Node>;

class Functions {
 public:
  Functions(Context& context, const wire::Model& model);

  const Opsets& model_opsets() const { return model_opsets_; }
  // The nodes of a graph or subgraph with all calls of functions replaced. Unnamed nodes get
  // "<prefix><op>_<index>". LIMIT when the calls multiply beyond reason; INVALID_MODEL when a function calls
  // itself.
  std::vector<NodeRef> expand(const WireNodes& nodes, const Opsets& opsets, const std::string& prefix);

 private:
  struct Function {
    const wire::Function* proto;
    std::string name;
    Opsets opsets;
    bool counting = false;
    uint64_t size = 0;  // nodes that a call becomes; 0: not counted yet
  };
  Function* find(const wire::Node& node);
  uint64_t count(const WireNodes& nodes, int depth);
  uint64_t size_of(Function* function, int depth);
  void inline_call(const NodeRef& call, const Function& function, std::vector<NodeRef>* out);
  std::string fresh(const std::string& wanted);

  Context& context_;
  Opsets model_opsets_, canonical_;
  std::map<std::string, Function, std::less<>> functions_;
  std::deque<wire::Node> made_;
  std::unordered_set<std::string> names_;  // of all values, where there are functions at all
  uint64_t expanded_ = 0;
};

}  // namespace regie::onnx
