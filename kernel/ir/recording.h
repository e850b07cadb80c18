// What Edit records, and the object that applies one recorded patch. Internal to kernel/ir.
#pragma once

#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "ir/edit.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace regie::recording {

struct MakeConstant {
  uint32_t kind, id;
  Tensor tensor;
  std::string name;
};
struct MakeNode {
  uint32_t id;
  NodeSpec spec;
  std::vector<uint32_t> results;
};
struct OpenRegion {
  uint32_t id;
  std::string name;
  std::vector<regie_type> types;  // dims in the graph's arena
  std::vector<std::string> names;
};
struct CloseRegion {
  std::vector<uint32_t> results;
};
struct Replace {
  uint32_t old_value, new_value;
};
struct Remove {
  uint32_t node;
};
struct SetOperand {
  uint32_t node, operand, value;
};
struct InlineRegion {
  uint32_t node, which;
  std::vector<uint32_t> args, results;
};
using Step =
    std::variant<MakeConstant, MakeNode, OpenRegion, CloseRegion, Replace, Remove, SetOperand, InlineRegion>;

struct Ids {  // the next ones
  uint32_t value = 0, node = 0, region = 0;
};

struct Patch {
  std::string title;
  uint32_t anchor = REGIE_NONE;
  Ids first;  // ids below are older than the patch
  Ids end;    // one past the last that it gave out
  bool abandoned = false;
  std::vector<Step> steps;
};

struct SetType {
  uint32_t value;
  regie_type type;  // dims in the graph's arena
};
struct SetAlias {
  uint32_t value, base;
  uint64_t offset;
  std::string reason;
};
struct SetEngine {
  uint32_t node, engine;
  std::string reason;
};
struct SetSpace {
  uint32_t value, space;
};
using Entry = std::variant<Patch, SetType, SetAlias, SetEngine, SetSpace>;

// Applies one patch: run() does everything that can fail and can be undone, finish() the rest.
class PatchApplier {
 public:
  PatchApplier(Graph& graph, const OpSet& ops, const Patch& patch)
      : graph_(graph), ops_(ops), patch_(patch) {}
  // Does the patch meet something that is not there any more?
  bool stale() const;
  Status run();
  void undo();
  void finish(AppliedPatch* applied);
  const std::vector<uint32_t>& new_nodes() const { return new_nodes_; }
  bool beside_anchor(uint32_t node) const { return graph_.node(node).region == home_; }

 private:
  struct MadeNode {
    uint32_t node;
  };
  struct MadeConstant {
    uint32_t value;
  };
  struct MadeRegion {
    uint32_t region;
  };
  struct ClosedRegion {
    uint32_t region;
  };
  struct ChangedUse {
    regie_use use;
    uint32_t old_value;
  };
  struct ChangedType {
    uint32_t value;
    regie_type type;
  };
  struct Moved {
    uint32_t node, region, before;
  };
  struct MovedConstant {
    uint32_t value, region;
  };
  struct ChangedControl {
    uint32_t node;
    std::vector<uint32_t> control;
  };
  using Undo = std::variant<MadeNode, MadeConstant, MadeRegion, ClosedRegion, ChangedUse, ChangedType, Moved,
                            MovedConstant, ChangedControl>;

  Status step(const MakeConstant& s);
  Status step(const MakeNode& s);
  Status step(const OpenRegion& s);
  Status step(const CloseRegion& s);
  Status step(const Replace& s);
  Status step(const Remove& s);
  Status step(const SetOperand& s);
  Status step(const InlineRegion& s);
  Status infer(uint32_t node);
  uint32_t region() const { return open_.empty() ? home_ : open_.back(); }
  Status check_visible(uint32_t value, uint32_t region, const std::string& reader) const;
  void rewire(regie_use use, uint32_t value);
  void note_edge(uint32_t value, uint32_t reader);
  void set_control(uint32_t node, std::vector<uint32_t> control);
  void move(uint32_t node, uint32_t region, uint32_t before);
  Status check_removals();
  void stand_in_for_control();
  Status repair_order();
  Status repair_edge(uint32_t from, uint32_t to);
  void infer_readers();

  Graph& graph_;
  const OpSet& ops_;
  const Patch& patch_;
  uint32_t home_ = 0;           // the region of the anchor
  std::vector<uint32_t> open_;  // regions being made
  std::vector<uint32_t> new_nodes_;
  std::vector<uint32_t> rewired_;  // nodes whose schema is to be checked again
  std::vector<uint32_t> removed_;
  std::unordered_set<uint32_t> removed_set_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;  // producer, reader: to be in this order
  std::vector<uint32_t> perhaps_unread_;              // constants that lost a reader
  std::vector<uint32_t> learned_;                     // readers that may know more of their operands now
  std::vector<Undo> log_;
};

}  // namespace regie::recording
