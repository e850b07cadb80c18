// The ledger: what a compile did and why. Counts for everything, details for the first few of each kind;
// everything that reports to the user (compile, explain, diff) reads it, from the compile or from the model
// file. JSON inside.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regie {

std::string microseconds(double ns);  // "12.0 us"

struct LedgerDetail {
  std::string pass, node, kind, text;
  std::string in_the_way, reason;    // near misses: a node, where there is one; a key of near_misses
  uint32_t passed = 0;               // near misses: checks that held before
  std::vector<std::string> reached;  // near misses: further nodes of the pattern
};

// A patch that was applied: what became of framework operators that are in the graph no more.
struct PatchRecord {
  std::string stage, pass, title;
  std::vector<std::string> removed, added;  // nodes, described
};

struct StageRecord {
  std::string name;
  double milliseconds = 0;
  uint32_t rounds = 0, operators_before = 0, operators_after = 0, patches = 0;
  std::map<std::string, uint32_t> patches_by_title;  // sorted: same input, same bytes
  std::vector<std::string> notes;                    // e.g. "max-rounds reached"
};

// What became of a node on an engine that did not get it.
struct OtherEngine {
  std::string engine, text;  // "npu", "could, 1.0 us, with transfers 6.0 us more"
  bool can = false;
  double cost_ns = 0;  // if it can
};

struct PlacementRecord {
  std::string node, op, engine, reason;
  uint32_t id = 0;                   // of the node
  std::vector<std::string> origins;  // framework operators that it came from, where it is not the only one
  bool reference = false;
  bool view = false;  // nothing runs: its results lie on the bytes of an operand
  std::vector<OtherEngine> others;
  double cost_ns = 0;  // predicted, on the engine that it has
};

struct EngineRecord {
  std::string name;
  bool host = false;  // of the host's device
};

struct MemoryRecord {
  std::string space;
  uint64_t peak = 0, lower_bound = 0, sum_of_tensors = 0;
  uint32_t buffers = 0, late_buffers = 0;  // late: of sizes that only the run tells, outside of the arena
  uint32_t unordered_pairs = 0;   // of buffers whose lives are apart, and whose tasks no event orders
  uint64_t one_stream_bound = 0;  // live bytes at most with one stream a device; 0: it is no other schedule
  bool proven_optimal = false;
  uint64_t peak_step = 0;
  std::vector<std::string> holders;  // who is live at the peak, greatest first
};

struct RuleRecord {
  std::string name;
  uint64_t matched = 0, applied = 0;
  std::map<std::string, uint64_t> near_misses;  // by the first predicate that failed
  std::vector<LedgerDetail> details;
};

// What an engine found out about the whole graph (regie/c/findings.h).
struct FindingRecord {
  std::string engine, topic, text;
  std::vector<std::pair<std::string, double>> figures;
};

class Ledger {
 public:
  static constexpr size_t kDetailsPerKind = 16;
  static constexpr size_t kPatches = 4096;

  bool everything = false;  // for `explain`: no detail is left out
  std::vector<StageRecord> stages;
  std::vector<PatchRecord> patches;
  uint64_t patches_left_out = 0;
  std::vector<RuleRecord> rules;
  std::vector<PlacementRecord> placements;
  std::vector<EngineRecord> engines;  // of the target, in its order
  std::vector<FindingRecord> findings;
  std::vector<MemoryRecord> memory;
  std::vector<std::string> events;  // "'conv1' -> 'copy': other device"
  // By the scheduler: of a run, and of one with one stream a device; 0: it said nothing. Events that there
  // are at once.
  double predicted_ns = 0, one_stream_ns = 0;
  uint32_t event_ids = 0;
  // Of the events, those that are there only so that buffers may share bytes; what they save and take.
  uint32_t reuse_events = 0;
  uint64_t reuse_bytes = 0;
  double reuse_ns = 0;
  std::map<std::string, uint64_t> counts;  // "<pass>/<kind>"
  std::vector<LedgerDetail> details;       // the first kDetailsPerKind of each "<pass>/<kind>"
  uint32_t operators_imported = 0, operators_final = 0, tasks = 0, streams = 0;
  double total_milliseconds = 0;
  // Asked of engines, and how long they took; known from another compile. Told with the times only, as it
  // differs between compiles that give the same model.
  uint64_t kernels_compiled = 0, kernels_known = 0;
  double kernels_milliseconds = 0;

  void patch(PatchRecord record);
  bool keeps_patches() const { return everything || patches.size() < kPatches; }
  void note(std::string_view pass, std::string_view node, std::string_view kind, std::string_view text);
  RuleRecord& rule(std::string_view name);  // made on first use; order of first use
  // `times` off: everything that differs between two equal compiles is left out, so that model files are
  // reproducible.
  std::string to_json(bool times) const;
};

}  // namespace regie
