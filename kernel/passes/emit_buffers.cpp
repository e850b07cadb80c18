// Memory of a model: its spaces, and its buffers with who lies beneath whom.
#include <algorithm>
#include <tuple>

#include "passes/emit.h"

namespace regie {

Status ModelEmitter::emit_spaces() {
  for (uint32_t space = 0; space < state_.target.devices.size(); ++space) {
    uint32_t device = state_.target.device_of(space);
    const MemoryRecord& r =
        state_.ledger.memory[state_.ledger.memory.size() - state_.target.devices.size() + space];
    model_->spaces.push_back({r.space, device, 0, r.peak, r.lower_bound});
  }
  return {};
}

Status ModelEmitter::emit_buffers() {
  Model& m = *model_;
  for (const PlannedBuffer& b : state_.buffers) {
    ModelBuffer out;
    if (b.value != REGIE_NONE) {
      out.name = g_.value(b.value).name.size ? std::string(view(g_.value(b.value).name))
                                             : g_.describe_value(b.value);
    } else {
      out.name = "scratch of " + g_.describe_node(b.scratch_of);
      out.kind = BufferKind::kScratch;
    }
    out.space = b.space;
    out.alignment = static_cast<uint32_t>(b.alignment);
    out.size = dim(b.size_dim);
    out.offset = b.offset;
    out.lower = b.lower;
    out.upper = b.upper;
    m.buffers.push_back(std::move(out));
  }
  if (m.symbols.empty()) return {};
  order_buffers();
  return {};
}

// Who lies beneath whom, for every shape as in the plan. A sweep over time keeps the live buffers of each
// space in the order of their offsets and links neighbours whenever two become such: any two that share a
// step are then linked through those between them, with two or three links a buffer however many live at
// once.
void ModelEmitter::order_buffers() {
  Model& m = *model_;
  std::vector<uint32_t>& order = m.placement_order;
  for (uint32_t i = 0; i < m.buffers.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(m.buffers[a].offset, state_.buffers[a].size) <
           std::pair(m.buffers[b].offset, state_.buffers[b].size);
  });
  struct Change {
    uint64_t step;
    bool starts;  // ends come first: lifetimes are half open
    uint32_t rank;
  };
  std::vector<Change> changes;
  for (uint32_t rank = 0; rank < order.size(); ++rank) {
    if (state_.buffers[order[rank]].late) continue;
    changes.push_back({m.buffers[order[rank]].lower, true, rank});
    changes.push_back({m.buffers[order[rank]].upper, false, rank});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.step, a.starts, a.rank) < std::tie(b.step, b.starts, b.rank);
  });
  std::vector<std::set<uint32_t>> live(m.spaces.size());
  auto link = [&](uint32_t below, uint32_t above) { m.buffers[order[above]].below.push_back(order[below]); };
  for (const Change& c : changes) {
    std::set<uint32_t>& ranks = live[m.buffers[order[c.rank]].space];
    auto it = c.starts ? ranks.insert(c.rank).first : ranks.find(c.rank);
    const bool has_below = it != ranks.begin(), has_above = std::next(it) != ranks.end();
    if (c.starts) {
      if (has_below) link(*std::prev(it), c.rank);
      if (has_above) link(c.rank, *std::next(it));
    } else {
      if (has_below && has_above) link(*std::prev(it), *std::next(it));
      ranks.erase(it);
    }
  }
  for (ModelBuffer& b : m.buffers) {
    std::sort(b.below.begin(), b.below.end());
    b.below.erase(std::unique(b.below.begin(), b.below.end()), b.below.end());
  }
}

}  // namespace regie
