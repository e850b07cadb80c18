// Loop and Scan of the model as the canonical Loop (docs/graph.md): its region with arguments and captures,
// and its operands. nodes.cpp makes the node itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builder.h"
#include "stacks.h"

namespace regie::onnx {

// The region of a Loop while it is built: first what goes in is told, then it is opened, built and closed.
class LoopRegion {
 public:
  static constexpr size_t kDirect = CapturedSequence::kDirect;
  LoopRegion(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t node,
             const Body& body);
  static const Body& body_of(Context& context, const Body& outer, uint32_t node);

  // Carried values first. Both give the place among all that goes in; argument() counts two before them.
  void carry(uint32_t value, const std::string& name);
  size_t capture(uint32_t value, std::string_view name);
  void loosen(size_t axis);  // of what was carried last: it is the run's
  void open(const wire::ValueInfo* number, const wire::ValueInfo* condition);
  // After build(): do all carried values end an iteration with the type that they began it with? Where
  // dimensions differ the region is thrown away and a new one opened, in which they are open; build it again.
  bool settled(const std::vector<uint32_t>& carried_results);
  uint32_t argument(size_t i) const { return args_[i]; }
  void bind(const std::string& name, uint32_t value);
  std::vector<uint32_t> build();  // the values of the body's outputs
  uint32_t unwrapped(std::string_view name) const;
  void close(const std::vector<uint32_t>& results) { builder_.close_region(results); }

  uint32_t id() const { return region_; }
  std::vector<uint32_t> operands(uint32_t trips, uint32_t condition) const;

 private:
  struct Argument {
    uint32_t value;
    std::string_view name;
    std::vector<regie_dim> dims = {};  // of the argument; of a carried value those that vary are symbols
  };
  void open_now();
  void add(uint32_t value, std::string_view name);

  Builder& builder_;
  Translation& t_;
  Context& context_;
  const NodeRef& ref_;
  const Body& body_;
  Scope inner_;
  std::vector<Argument> arguments_;
  size_t carried_ = 0;
  const wire::ValueInfo *number_ = nullptr, *condition_ = nullptr;
  std::vector<std::pair<std::string_view, size_t>> by_name_;
  std::vector<CapturedSequence> sequences_;
  std::vector<uint32_t> args_;
  uint32_t region_ = REGIE_NONE;
};

struct LoopNode {
  std::vector<uint32_t> operands;
  uint32_t region;
  int64_t carried;
  size_t results;
  // Of a Loop, how its outputs come of the results: one of them, or a sequence of what was carried or
  // collected.
  struct Output {
    size_t result = SIZE_MAX;
    bool sequence = false;
    uint32_t before = REGIE_NONE;  // the sequence that the Loop began with, where it was added to
    std::vector<size_t> front, back;
  };
  std::vector<Output> outputs = {};
  bool sequences = false;  // there are some among them
};

struct ScanNode {
  LoopNode loop;
  std::vector<int64_t> axes, directions;  // of what is collected
  struct Arrangement {
    std::string_view op;
    std::vector<uint32_t> in;
    std::vector<Attribute> attributes;
  };
  // The node that brings collected value `which` into its order and onto its axis, where one is needed.
  std::optional<Arrangement> arrangement(Translation& t, size_t which, uint32_t value) const;
};

LoopNode loop_node(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t index);
// `operands`: states and what is scanned, which are the node's last inputs.
ScanNode scan_node(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t index,
                   const std::vector<uint32_t>& operands);

// The body for each element of sequences: of lists one after another, of stacks as a Loop. Gives the node's
// outputs, which are sequences; makes the Loop, if it is one.
std::vector<uint32_t> map_sequences(Builder& builder, Translation& t, const Scope& scope, const Body& outer,
                                    uint32_t index);

}  // namespace regie::onnx
