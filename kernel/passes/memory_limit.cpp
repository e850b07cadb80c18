#include "passes/memory_limit.h"

#include <algorithm>
#include <map>

#include "ir/structural.h"
#include "regie/c/recompute.h"

namespace regie {

namespace {

constexpr int kWishes = 4;      // that schedulers are asked for
constexpr int kRounds = 8;      // plans
constexpr size_t kMost = 4096;  // values that are computed again, in all

// A node made once more before `reader`, which reads `value` late, as do `readers`.
struct Recompute {
  uint32_t node = REGIE_NONE, value = REGIE_NONE;
  std::vector<std::pair<uint32_t, uint32_t>> readers;  // node, operand
  uint32_t first_reader = REGIE_NONE;
  uint64_t saved = 0;
  double cost_ns = 0;
};

// The plan as it is, with what would be computed again, step by step.
class Profile {
 public:
  explicit Profile(CompileState& state) : state_(state), g_(*state.graph) {
    for (uint32_t r : task_regions(g_)) {
      for (const ScheduledTask& t : state.schedule[r].tasks) {
        step_of_[t.node] = t.step;
        cost_of_[t.node] = t.cost_ns;
      }
      steps_ = std::max(steps_, state.schedule[r].end_step + 2);
    }
    live_.assign(state.target.devices.size(), std::vector<uint64_t>(steps_, 0));
    for (const PlannedBuffer& b : state.buffers) {
      for (uint64_t s = b.lower; s < b.upper && s < steps_; ++s) live_[b.space][s] += rounded(b.size, b);
      lives_.push_back({b.lower, std::min(b.upper, steps_)});
    }
    for (uint32_t v = 0; v < g_.value_count(); ++v)
      if (g_.live_value(v) && g_.value(v).kind == REGIE_VALUE_RESULT && step_of_.count(g_.value(v).owner))
        members_[state_.storage_of(v)].push_back(v);
  }

  // Bytes that the fullest steps of all spaces have together.
  uint64_t peak() const {
    uint64_t bytes = 0;
    for (const auto& space : live_)
      bytes += space.empty() ? 0 : *std::max_element(space.begin(), space.end());
    return bytes;
  }

  // The cheapest that brings down what is above the limit, at the fullest step of a space; false: nothing
  // does.
  bool next(uint64_t limit, Recompute* best) {
    bool found = false;
    for (uint32_t space = 0; space < live_.size(); ++space) {
      if (live_[space].empty()) continue;
      const auto at = static_cast<uint64_t>(std::max_element(live_[space].begin(), live_[space].end()) -
                                            live_[space].begin());
      for (uint32_t b = 0; b < lives_.size(); ++b) {
        const PlannedBuffer& buffer = state_.buffers[b];
        if (buffer.space != space || lives_[b].from >= at || lives_[b].to <= at + 1) continue;
        Recompute r;
        if (!candidate(b, at, limit, &r)) continue;
        const double price = r.cost_ns / static_cast<double>(r.saved);
        const double best_price = found ? best->cost_ns / static_cast<double>(best->saved) : 0;
        if (!found || price < best_price) *best = r;
        found = true;
      }
    }
    return found;
  }

  void take(const Recompute& r) {
    const uint32_t b = state_.buffer_of_value[state_.storage_of(r.value)];
    change(b, r, &live_[state_.buffers[b].space], true);
    taken_.push_back(r.value);
  }

 private:
  struct Life {
    uint64_t from, to;
  };

  // To what its memory space gives at least.
  static uint64_t rounded(uint64_t size, const PlannedBuffer& b) {
    return (size + b.alignment - 1) / b.alignment * b.alignment;
  }

  bool candidate(uint32_t b, uint64_t at, uint64_t limit, Recompute* r) {
    const PlannedBuffer& buffer = state_.buffers[b];
    if (buffer.value == REGIE_NONE || buffer.late || buffer.size == 0) return false;
    // Who reads it late must read one value, which is made from other bytes.
    uint64_t first_late = UINT64_MAX;
    for (uint32_t v : members_[buffer.value]) {
      if (step_of_[g_.value(v).owner] >= at) return false;
      for (const regie_use& u : g_.uses(v)) {
        if (u.node & REGIE_USE_REGION) return false;
        const auto step = step_of_.find(u.node);
        if (step == step_of_.end() || step->second == at) return false;
        if (step->second < at) continue;
        if (r->value != REGIE_NONE && r->value != v) return false;
        r->value = v;
        r->readers.push_back({u.node, u.operand});
        if (step->second < first_late) {
          first_late = step->second;
          r->first_reader = u.node;
        }
      }
    }
    if (r->value == REGIE_NONE || std::count(taken_.begin(), taken_.end(), r->value)) return false;
    r->node = g_.value(r->value).owner;
    if (!may_repeat(r->node, buffer.value)) return false;
    for (const auto& [reader, operand] : r->readers)
      if (g_.node(reader).region != g_.node(r->node).region) return false;
    std::vector<uint64_t> after = live_[buffer.space];
    change(b, *r, &after, false);
    const uint64_t budget = limit - std::min(limit, peak() - highest(live_[buffer.space]));
    if (over(after, budget) >= over(live_[buffer.space], budget)) return false;
    r->saved = live_[buffer.space][at] - std::min(live_[buffer.space][at], after[at]);
    if (r->saved == 0) return false;
    r->cost_ns = std::max(cost_of_[r->node], 1.0);
    return true;
  }

  bool may_repeat(uint32_t node, uint32_t storage) const {
    if (!may_run_again(state_, node)) return false;
    for (uint32_t v : g_.operands(node)) {
      if (v == REGIE_NONE) continue;
      if (state_.storage_of(v) == storage) return false;
      if (g_.value(v).kind == REGIE_VALUE_RESULT && !step_of_.count(g_.value(v).owner)) return false;
    }
    return true;
  }

  // Without the value between its last early reader and its first late one, but with its operands until then.
  void change(uint32_t b, const Recompute& r, std::vector<uint64_t>* live, bool keep) {
    const uint64_t late = step_of_[r.first_reader];
    uint64_t early = 0;
    for (uint32_t v : members_[state_.buffers[b].value]) {
      early = std::max(early, step_of_[g_.value(v).owner] + 1);
      for (const regie_use& u : g_.uses(v))
        if (!(u.node & REGIE_USE_REGION) && step_of_[u.node] < late)
          early = std::max(early, step_of_[u.node] + 1);
    }
    const uint64_t size = rounded(state_.buffers[b].size, state_.buffers[b]);
    for (uint64_t s = early; s < late; ++s) (*live)[s] -= std::min((*live)[s], size);
    for (uint32_t v : g_.operands(r.node)) {
      if (v == REGIE_NONE || g_.value(v).kind != REGIE_VALUE_RESULT) continue;
      const uint32_t o = state_.buffer_of_value[state_.storage_of(v)];
      if (o == REGIE_NONE || o == b) continue;
      if (state_.buffers[o].space == state_.buffers[b].space)
        for (uint64_t s = lives_[o].to; s <= late && s < steps_; ++s)
          (*live)[s] += rounded(state_.buffers[o].size, state_.buffers[o]);
      if (keep) lives_[o].to = std::max(lives_[o].to, std::min(late + 1, steps_));
    }
    if (r.node < state_.kernels.size() && state_.kernels[r.node])
      (*live)[late] += rounded(state_.kernels[r.node]->scratch_bytes, state_.buffers[b]);
    if (keep) lives_[b].to = early;  // what is alive afterwards is another
  }

  static uint64_t highest(const std::vector<uint64_t>& live) {
    return *std::max_element(live.begin(), live.end());
  }
  static double over(const std::vector<uint64_t>& live, uint64_t budget) {
    double sum = 0;
    for (uint64_t bytes : live) sum += bytes > budget ? static_cast<double>(bytes - budget) : 0;
    return sum;
  }

  CompileState& state_;
  const Graph& g_;
  std::map<uint32_t, uint64_t> step_of_;               // by node
  std::map<uint32_t, double> cost_of_;                 // by node, as the scheduler was told
  std::map<uint32_t, std::vector<uint32_t>> members_;  // by value that owns bytes: who lies on them
  std::vector<Life> lives_;                            // by buffer
  std::vector<std::vector<uint64_t>> live_;            // space x step: bytes
  std::vector<uint32_t> taken_;
  uint64_t steps_ = 0;
};

Status record(CompileState& state, const Recompute& r, Edit& edit, uint32_t* next_node) {
  REGIE_TRY(record_copy(state, r.value, r.first_reader, r.readers, edit, next_node).status());
  const Graph& g = *state.graph;
  edit.note(r.node, "recomputed",
            g.describe_node(r.node) + " is computed again before " + g.describe_node(r.first_reader) + ": " +
                std::to_string(r.saved) + " bytes fewer at the peak, for " + microseconds(r.cost_ns));
  return {};
}

struct Attempt {
  std::vector<MemoryRecord> spaces;
  size_t recomputed = 0;
};

Status refusal(const CompileState& state, const Attempt& best) {
  std::string text = "the memory limit is " + std::to_string(state.options.memory_limit) +
                     " bytes; the best plan that was found takes " +
                     std::to_string(arena_bytes(best.spaces)) + " bytes";
  if (best.recomputed)
    text += " with " + std::to_string(best.recomputed) + (best.recomputed == 1 ? " value" : " values") +
            " computed again";
  for (const MemoryRecord& m : best.spaces) {
    if (m.holders.empty()) continue;
    text += "; at its peak of " + std::to_string(m.peak) + " bytes, " + m.space + " holds ";
    for (size_t i = 0; i < m.holders.size(); ++i) text += (i ? ", " : "") + m.holders[i];
  }
  return Status::error(REGIE_LIMIT, text + "; give a greater limit, or smaller dimensions with --shape");
}

}  // namespace

Status fit_memory_limit(CompileState& state, const PlanActions& actions) {
  const uint64_t limit = state.options.memory_limit;
  const uint64_t arenas = arena_bytes(state.ledger.memory);
  if (limit == 0 || arenas <= limit) return {};
  const uint32_t nodes = state.graph->live_node_count();
  // Aliases that the graph came with are its own: nothing is planned anew beside them.
  if (state.aliases_given) return refusal(state, {state.ledger.memory, 0});
  // What runs side by side is alive side by side.
  if (state.several_streams()) {
    state.one_stream = true;
    take_aliases_away(state);
    REGIE_TRY(actions.plan_again(REGIE_RECOMPUTE_NOT));
    state.ledger.note("schedule", "", "stream",
                      "one stream a device: with several the plan takes " + std::to_string(arenas) +
                          " bytes, above the memory limit");
  }
  // Schedulers count bytes, plans have gaps.
  state.repeats_limit = limit;
  for (int round = 0; round < kWishes && arena_bytes(state.ledger.memory) > limit; ++round) {
    take_aliases_away(state);
    REGIE_TRY(actions.plan_again(REGIE_RECOMPUTE_LIMIT));
    if (state.repeats.empty()) break;
    REGIE_TRY(compute_again(state, actions));
    const uint64_t now = arena_bytes(state.ledger.memory);
    if (now > limit) state.repeats_limit -= std::min(state.repeats_limit, now - limit);
  }
  if (arena_bytes(state.ledger.memory) <= limit) return {};
  const auto recomputed = [&] { return size_t{state.graph->live_node_count() - nodes}; };
  Attempt best{state.ledger.memory, recomputed()};
  for (int round = 0; round < kRounds; ++round) {
    Profile profile(state);
    Edit edit(*state.graph);
    uint32_t next_node = state.graph->next_node_id();
    size_t taken = 0;
    Recompute r;
    while (profile.peak() > limit && recomputed() + taken < kMost && profile.next(limit, &r)) {
      profile.take(r);
      REGIE_TRY(record(state, r, edit, &next_node));
      ++taken;
      r = {};
    }
    if (taken == 0) break;
    REGIE_TRY(actions.apply(edit));
    take_aliases_away(state);
    REGIE_TRY(actions.plan_again(REGIE_RECOMPUTE_NOT));
    const uint64_t bytes = arena_bytes(state.ledger.memory);
    if (bytes <= limit) return {};
    if (bytes < arena_bytes(best.spaces)) best = {state.ledger.memory, recomputed()};
  }
  return refusal(state, best);
}

}  // namespace regie
