// Memory driver: has the planner lay out the buffers that the schedule needs, and keeps what it answers.
#include <algorithm>
#include <numeric>

#include "model/packing_check.h"
#include "passes/memory_buffers.h"

namespace regie {

namespace {

std::string buffer_name(const CompileState& state, const PlannedBuffer& b) {
  return b.value != REGIE_NONE ? state.graph->describe_value(b.value)
                               : "scratch of " + state.graph->describe_node(b.scratch_of);
}

// Who is live at the step where most bytes are, and how many, in whole units of the alignment.
void describe_peak(const CompileState& state, const std::vector<uint32_t>& members, uint64_t alignment,
                   MemoryRecord* record) {
  std::vector<PackedBuffer> packed;
  for (uint32_t i : members) {
    const PlannedBuffer& b = state.buffers[i];
    packed.push_back({b.lower, b.upper, (b.size + alignment - 1) / alignment * alignment, 1, b.offset});
  }
  const PackingFacts facts = packing_facts(packed);
  record->peak_step = facts.most_at;
  record->lower_bound = facts.most_live;
  std::vector<uint32_t> holders;
  for (uint32_t i : members)
    if (state.buffers[i].lower <= record->peak_step && record->peak_step < state.buffers[i].upper)
      holders.push_back(i);
  std::stable_sort(holders.begin(), holders.end(),
                   [&](uint32_t a, uint32_t b) { return state.buffers[a].size > state.buffers[b].size; });
  for (size_t i = 0; i < std::min<size_t>(holders.size(), 8); ++i)
    record->holders.push_back(buffer_name(state, state.buffers[holders[i]]) + ": " +
                              std::to_string(state.buffers[holders[i]].size) + " bytes");
}

// By space: what is alive at most with one stream a device, if the schedule has more.
Result<std::vector<uint64_t>> one_stream_bounds(CompileState& state) {
  std::vector<uint64_t> bounds(state.target.devices.size(), 0);
  if (state.schedule_before.empty()) return bounds;
  std::swap(state.schedule, state.schedule_before);
  const auto lives = find_buffers(state);
  if (lives.ok()) tighten_lives(state, lives->touched, lives->clocks);
  std::swap(state.schedule, state.schedule_before);
  REGIE_TRY(lives.status());
  for (uint32_t space = 0; space < bounds.size(); ++space) {
    const uint64_t alignment = state.target.devices[state.target.device_of(space)].alignment;
    std::vector<uint32_t> members;
    for (uint32_t b = 0; b < state.buffers.size(); ++b)
      if (state.buffers[b].space == space && state.buffers[b].size) members.push_back(b);
    MemoryRecord record;
    if (!members.empty()) describe_peak(state, members, alignment, &record);
    bounds[space] = record.lower_bound;
  }
  return bounds;
}

// Sizes of buffers as the planner sees them: with symbols, typical ones, if all that lie in the space have
// them; else those of the reference.
std::vector<uint64_t> planned_sizes(const CompileState& state, const std::vector<uint32_t>& members) {
  constexpr size_t kMost = 4096;                    // that are settled anew, pair by pair
  constexpr uint64_t kAddress = uint64_t{1} << 62;  // with many symbols typical sizes go beyond any
  std::vector<uint64_t> reference, typical;
  for (uint32_t i : members) reference.push_back(state.buffers[i].size);
  // A limit is on what the plan takes at the reference.
  if (members.size() > kMost || state.options.memory_limit) return reference;
  const std::vector<std::optional<int64_t>> values = state.typical_values();
  uint64_t all = 0;
  for (uint32_t i : members) {
    const PlannedBuffer& b = state.buffers[i];
    const auto size = b.size_dim < 0 ? state.graph->dims().evaluate(b.size_dim, values)
                                     : Result<int64_t>(static_cast<int64_t>(b.size));
    if (!size.ok() || *size <= 0) return reference;
    typical.push_back(static_cast<uint64_t>(*size));
    all += std::min(kAddress, typical.back() + b.alignment);
    if (all >= kAddress) return reference;
  }
  return typical;
}

// Offsets at the reference sizes, where who lies beneath whom is as in `offsets`: as the runtime lays buffers
// out for a shape. Gives the end of the highest.
uint64_t settle(CompileState& state, const std::vector<uint32_t>& members,
                const std::vector<uint64_t>& offsets) {
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
  uint64_t peak = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    PlannedBuffer& b = state.buffers[members[order[k]]];
    b.offset = 0;
    for (size_t j = 0; j < k; ++j) {
      const PlannedBuffer& beneath = state.buffers[members[order[j]]];
      if (beneath.lower < b.upper && b.lower < beneath.upper)
        b.offset = std::max(b.offset, beneath.offset + beneath.size);
    }
    b.offset = (b.offset + b.alignment - 1) / b.alignment * b.alignment;
    peak = std::max(peak, b.offset + b.size);
  }
  return peak;
}

}  // namespace

Result<std::vector<MemoryRecord>> plan_spaces(CompileState& state,
                                              const Provider<regie_memory_table>& planner,
                                              const regie_config* options,
                                              const std::vector<std::pair<uint32_t, uint32_t>>& apart,
                                              uint64_t node_budget) {
  std::vector<MemoryRecord> records;
  for (uint32_t space = 0; space < state.target.devices.size(); ++space) {
    MemoryRecord record;
    const TargetDevice& device = state.target.devices[state.target.device_of(space)];
    record.space = device.name;
    std::vector<uint32_t> members;
    std::vector<regie_memory_buffer> problem_buffers;
    std::vector<uint32_t> index(state.buffers.size(), REGIE_NONE);
    for (uint32_t i = 0; i < state.buffers.size(); ++i) {
      PlannedBuffer& b = state.buffers[i];
      if (b.space != space) continue;
      b.alignment = std::max(b.alignment, device.alignment);
      record.late_buffers += b.late;
      record.sum_of_tensors += b.size;
      if (b.size == 0) continue;  // takes no room wherever it is
      index[i] = static_cast<uint32_t>(members.size());
      members.push_back(i);
      problem_buffers.push_back({b.lower, b.upper, b.size, REGIE_OFFSET_FREE, b.alignment, 0, 0});
    }
    const std::vector<uint64_t> sizes = planned_sizes(state, members);
    bool open = false;  // other sizes than those of the reference are planned for
    for (size_t i = 0; i < members.size(); ++i) {
      open |= sizes[i] != problem_buffers[i].size;
      problem_buffers[i].size = sizes[i];
    }
    record.buffers = static_cast<uint32_t>(members.size());
    regie_memory_answer answer{};
    if (!members.empty()) {
      regie_memory_problem problem{};
      problem.struct_size = sizeof(problem);
      problem.buffer_count = members.size();
      problem.buffers = problem_buffers.data();
      problem.capacity = UINT64_MAX;
      problem.node_budget = node_budget;
      std::vector<regie_memory_conflict> conflicts;
      for (const auto& [a, b] : apart)
        if (index[a] != REGIE_NONE && index[b] != REGIE_NONE) conflicts.push_back({index[a], index[b]});
      problem.conflict_count = conflicts.size();
      problem.conflicts = conflicts.data();
      record.unordered_pairs = static_cast<uint32_t>(conflicts.size());
      std::vector<uint64_t> offsets;
      REGIE_TRY(state.planner_answers.plan(planner, options, problem, &offsets, &answer));
      for (size_t i = 0; i < members.size(); ++i) {
        PlannedBuffer& b = state.buffers[members[i]];
        b.offset = offsets[i];
        if (b.offset % b.alignment || b.offset + sizes[i] < b.offset || b.offset + sizes[i] > answer.peak)
          return bad_plugin("the memory planner of plug-in " + planner.manifest->name + " gave " +
                            buffer_name(state, b) + " offset " + std::to_string(b.offset) +
                            ", which is not aligned or above its own peak");
      }
      if (open) answer.peak = settle(state, members, offsets);
      describe_peak(state, members, device.alignment, &record);
    }
    record.peak = (answer.peak + device.alignment - 1) / device.alignment *
                  device.alignment;  // as the bound counts sizes
    record.proven_optimal =
        members.empty() || (open ? record.peak == record.lower_bound : answer.proven_optimal != 0);
    records.push_back(std::move(record));
  }
  return records;
}

Status run_memory_planner(CompileState& state, const Provider<regie_memory_table>& planner,
                          const regie_config* options) {
  REGIE_TRY(compile_kernels(state));
  REGIE_ASSIGN(const std::vector<uint64_t> one_stream, one_stream_bounds(state));
  REGIE_ASSIGN(const BufferLives lives, find_buffers(state));
  const auto apart = tighten_lives(state, lives.touched, lives.clocks);
  REGIE_ASSIGN(std::vector<MemoryRecord> records, plan_spaces(state, planner, options, apart, 0));
  for (size_t space = 0; space < records.size(); ++space) {
    records[space].one_stream_bound = one_stream[space];
    state.ledger.memory.push_back(std::move(records[space]));
  }
  return {};
}

}  // namespace regie
