// Builds the graph through the host: model in, calls of regie_import and regie_edit_api out. The checks are
// in builder.cpp, nodes in nodes.cpp, an If in branches.cpp and, where its branches give values of other
// ranks, ranks.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "body.h"
#include "context.h"
#include "functions.h"
#include "operators.h"
#include "reader.h"
#include "stacks.h"
#include "tensors.h"

namespace regie::onnx {

// The whole import. Never throws.
regie_status import_model(const regie_import* import);

// Values by name in one region, and in the regions around it.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, uint32_t> values;

  uint32_t find(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (auto it = s->values.find(name); it != s->values.end()) return it->second;
    return REGIE_NONE;
  }
};

// The attributes of an If.
inline constexpr const char* kBranches[2] = {"then_branch", "else_branch"};

// The model's name of an operator: "Conv", "com.foo.Bar".
std::string full_name(const wire::Node& node);

class Builder {
 public:
  Builder(Context& context, const wire::Model& model)
      : context_(context), model_(model), functions_(context, model) {}
  void run();

  // ---- For the translation of a node ----
  Context& context() { return context_; }
  uint32_t constant(uint32_t kind, const TensorData& tensor, std::string_view name);
  void node(std::string_view op, const NodeRef& ref, const std::vector<uint32_t>& operands,
            const std::vector<Attribute>& attributes, const std::vector<uint32_t>& regions,
            const std::vector<regie_str>& result_names, const std::vector<uint8_t>& omitted,
            uint32_t* results);
  const regie_value& value(uint32_t id) const {
    if (is_sequence(id)) context_.unsupported("a sequence goes where only tensors can");
    return *context_.import->value(context_.import, id);
  }
  bool is_constant(uint32_t id) const;
  Sequence& sequence(uint32_t id) { return sequences_[id & ~kSequenceBit]; }
  uint32_t add_sequence(Sequence s) {
    sequences_.push_back(std::move(s));
    return kSequenceBit | static_cast<uint32_t>(sequences_.size() - 1);
  }
  // A sequence as a region may take it, with all that it is made of: GrowthSeen, where a Loop grows it.
  Sequence captured_sequence(Translation& t, uint32_t id);
  uint32_t new_growth() { return growths_++; }
  // Reads something in regions of its own. What it has seen of a sequence that grows, where that has ended
  // it: its regions are thrown away then.
  template <class F>
  std::optional<GrowthSeen> watched(F&& read);
  // A name for a value that the model does not have.
  std::string_view fresh_name(const std::string& wanted);
  void bind(Scope* scope, const NodeRef& ref, const std::vector<uint32_t>& results);
  void check_new(const Scope& scope, std::string_view name) const;  // INVALID_MODEL if an outer graph has it
  void bind(Scope* scope, std::string_view name, uint32_t value);
  uint32_t open_region(std::string_view name, const std::vector<regie_type>& types,
                       const std::vector<regie_str>& names, uint32_t* args);
  void close_region(const std::vector<uint32_t>& results);
  // Throws away the region that is open, and those closed beside it that no node has taken.
  void abandon_region() {
    --open_regions_;
    Context::check(api().abandon(edit()));
  }
  // A dimension that only the run tells.
  regie_dim late_dim(const std::string& wanted);
  // Initializers and nodes of a graph; inputs are bound in the scope already. `any_rank`: an output may be
  // one whose rank the run tells (unranked).
  void build(const Body& body, Scope* scope, bool any_rank = true);
  // What the condition of an If is at these shapes, where it is known.
  std::optional<bool> known_condition(uint32_t id) const;
  // `condition`: of which the run has to see that it chooses this branch, for the reason `why`; REGIE_NONE:
  // it does.
  void take_branch(Scope* scope, uint32_t node_index, const Body& body, size_t which,
                   uint32_t condition = REGIE_NONE, const std::string& why = {});
  // The regions of an If; `operands` gets the captured values. None if only one branch can be had, which is
  // built in the place of the If then. `sequences`: by output, whether it is the stack of a sequence.
  std::vector<uint32_t> branches(Translation& t, Scope* scope, uint32_t node_index, const Body& body,
                                 std::vector<uint32_t>* operands, std::vector<bool>* sequences);

 private:
  const regie_edit_api& api() const { return *context_.import->edit_api; }
  regie_edit* edit() const { return context_.import->edit; }
  void check_versions();
  void check_operators();
  bool known_extension(const wire::Node& node) const;
  // Whether what this builds can be; if not, all regions that it has opened are thrown away. What the host
  // says is of types and shapes; what the file itself has wrong is said at once, but where a rank is only
  // tried (`own_words`).
  template <class F>
  bool possible(F&& build, bool own_words = false);
  std::array<const Body*, 2> bodies(const NodeRef& ref, uint32_t node_index, const Body& body);
  void translate(Scope* scope, uint32_t index, const Body& body);
  void initializers(const Body& body, Scope* scope);

  // What branches read of the graphs around them, constants aside.
  struct Captures {
    std::vector<std::string_view> names;
    std::vector<uint32_t> values;
    std::vector<regie_type> types;
    std::vector<std::vector<regie_dim>> dims;  // of the types: the host's belong to it
    std::vector<regie_str> labels;
    std::vector<CapturedSequence> sequences;
  };
  void capture_sequence(Translation& t, uint32_t id, std::string_view name, Captures* to);
  void bind_captures(const Captures& captures, const std::vector<uint32_t>& args, Scope* inner);
  bool capture(const Scope& scope, std::string_view name, Captures* to) const;  // false: a sequence

  // ranks.cpp
  struct Rest;
  struct Place;
  struct Split {
    size_t lower;  // the branch that is read if only one can be
    uint32_t condition;
    std::string why;              // the other one is not
    std::optional<size_t> taken;  // known to be
  };
  void read_all(const Body& body, Scope* scope);
  // Gives what `place` wants.
  std::vector<uint32_t> read_nodes(const Body& body, Scope* scope, std::span<const uint32_t> nodes,
                                   const Place& place);
  std::vector<uint32_t> split(const Body& body, Scope* scope, uint32_t node_index,
                              std::span<const uint32_t> after, const Place& place);
  std::vector<uint32_t> read_lower(const Body& body, Scope* scope, uint32_t node_index,
                                   std::span<const uint32_t> after, const Split& split, const Place& place);
  std::pair<uint32_t, uint32_t> without_rank(const NodeRef& ref, std::string_view name, uint32_t value);
  void outputs(const Scope& scope);

  Context& context_;
  const wire::Model& model_;
  Functions functions_;
  std::unordered_set<std::string_view> value_names_;
  std::deque<std::string> made_names_;
  std::unordered_map<std::string, int> next_numbers_;  // of names that were wanted again
  std::deque<Sequence> sequences_;
  std::unique_ptr<Body> body_;
  size_t open_regions_ = 0;
  uint32_t growths_ = 0;
  // Values whose rank the run tells, as a list of their elements: their dimensions. Only outputs of the model
  // and of branches are such.
  std::unordered_map<uint32_t, uint32_t> unranked_;
  std::optional<Split> split_;  // the If that was read last gives other ranks
  bool any_rank_ = true;
  uint64_t again_ = 0;  // nodes that were read in branches of others
};

template <class F>
std::optional<GrowthSeen> Builder::watched(F&& read) {
  const size_t open = open_regions_;
  try {
    read();
    return std::nullopt;
  } catch (const GrowthSeen& seen) {
    while (open_regions_ > open) abandon_region();
    split_.reset();
    return seen;
  }
}

template <class F>
bool Builder::possible(F&& build, bool own_words) {
  const size_t open = open_regions_;
  const auto cannot = [](regie_status code) {
    return code == REGIE_INVALID_MODEL || code == REGIE_UNSUPPORTED;
  };
  try {
    build();
    return true;
  } catch (const HostFailure& f) {
    if (!cannot(f.code)) throw;
  } catch (const sdk::Failure& f) {
    if (!own_words || !cannot(f.code)) throw;
  }
  while (open_regions_ > open) abandon_region();
  split_.reset();
  return false;
}

}  // namespace regie::onnx
