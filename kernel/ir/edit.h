// Edit: records patches and assignments, and applies them to a graph. The same object serves C++ code of the
// kernel (rules) by its methods and plug-ins through `edit_api()`, the C table of regie/c/patch.h whose
// contract holds for both.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_set.h"
#include "regie/c/patch.h"

namespace regie {

// A line for the ledger.
struct EditNote {
  uint32_t node;
  std::string kind, text;
};

struct AppliedPatch {
  std::string title;
  std::vector<std::string> removed;  // "conv1 (Op)": described before the removal
  std::vector<uint32_t> added;       // node ids
  uint32_t serial = 0;               // number within the compile, for bisection
};

struct ApplyOutcome {
  std::vector<AppliedPatch> applied;
  uint32_t dropped = 0;      // met something that an earlier patch of the batch had removed
  uint32_t held_back = 0;    // left out by the patch filter (bisection)
  uint32_t vetoed = 0;       // refused by EditOptions::veto; a note "veto" says why
  uint32_t assignments = 0;  // that changed something
  std::vector<EditNote> notes;
};

struct EditOptions {
  // Patch numbers `serial` count through the compile; a patch for which this says no is recorded as held
  // back.
  std::function<bool(uint32_t serial)> accept;
  uint32_t* next_serial = nullptr;
  // Asked for each new node that stands beside the anchor, with the graph as it would be but for the
  // removals; an error vetoes the patch, its message is the reason. See engines' accept_fusion. May be empty.
  std::function<Status(const Graph& graph, uint32_t new_node)> veto;
};

class Edit {
 public:
  explicit Edit(Graph& graph);
  ~Edit();

  Status begin(std::string_view title, uint32_t anchor);
  Status commit();
  Status abandon();
  bool recording() const;
  // Every open region was closed and no patch is half recorded.
  Status complete() const;

  Result<uint32_t> constant(uint32_t kind, Tensor tensor, std::string_view name);
  Result<uint32_t> constant(uint32_t kind, const regie_tensor& tensor, std::string_view name);
  Result<std::vector<uint32_t>> node(NodeSpec spec);
  Result<uint32_t> open_region(std::string_view name, std::span<const regie_type> types,
                               std::span<const std::string> names, std::vector<uint32_t>* args);
  Status close_region(std::span<const uint32_t> results);
  // The readers that the patch itself has made keep what they were given, so that a node can be put behind a
  // value. A result whose type is less known than the replaced value's takes over what that knew.
  Status replace(uint32_t old_value, uint32_t new_value);
  Status remove(uint32_t node);
  Status set_operand(uint32_t node, uint32_t operand, uint32_t value);
  Result<std::vector<uint32_t>> inline_region(uint32_t node, uint32_t which, std::span<const uint32_t> args);

  Result<uint32_t> region_arg_count(uint32_t node, uint32_t which) const;  // what inline_region needs

  Status set_type(uint32_t value, const regie_type& type);
  Status set_alias(uint32_t value, uint32_t base, uint64_t offset, std::string_view reason);
  Status set_engine(uint32_t node, uint32_t engine, std::string_view reason);
  Status set_space(uint32_t value, uint32_t space);
  void note(uint32_t node, std::string_view kind, std::string_view text);

  // Applies all that was recorded since the last call: each patch is checked (ids, schema, types by
  // inference, order, region nesting, unread removals) and applied or refused as a whole; a refusal is an
  // error that names the patch, and leaves the graph as before that patch; what was recorded after it is
  // forgotten. O(size of the patch) plus the readers of what it replaces. An open recording is an error. New
  // nodes get the origins of the removed ones (of the anchor, if none are removed) and stand for them in
  // control edges; a result that takes the place of a value that goes takes its name. Constants that nothing
  // reads any more because of the patch go with it. Reasons of assignments become notes.
  Result<ApplyOutcome> apply(const OpSet& ops, const EditOptions& options = {});

  regie_edit* handle() { return reinterpret_cast<regie_edit*>(this); }
  static Edit& from(regie_edit* e) { return *reinterpret_cast<Edit*>(e); }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The C functions over an Edit; failures go to fail_on_this_thread (plugins/host.h) by way of the setter
// below.
const regie_edit_api* edit_api();
// How the C functions report a failure: set once by the plug-in host. Gives the code back.
void set_edit_failure_sink(regie_status (*sink)(const Status& status));

}  // namespace regie
