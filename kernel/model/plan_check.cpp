#include "model/plan_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/late.h"
#include "model/layout.h"
#include "model/plan_order.h"

namespace regie {

namespace {

std::string number(uint64_t n) { return std::to_string(n); }

// Bytes of one address space: an arena, or the memory of one output.
struct Range {
  uint32_t memory = 0;  // space, or spaces + output
  uint64_t begin = 0, end = 0;
  uint32_t owner = 0;           // buffer, or buffers + output: whose bytes they are meant to be
  uint32_t value = REGIE_NONE;  // of the graph, where it is known: values may share a buffer
};

// A stretch of bytes since it was written last.
struct Segment {
  uint64_t end = 0;
  uint32_t owner = 0;
  uint32_t value = REGIE_NONE;
  EventId writer = 0;
  // The latest reader of each stream and program: earlier ones are ordered before it.
  std::vector<EventId> readers;
};

class PlanCheck {
 public:
  PlanCheck(const Model& model, const Placement& placement, const std::vector<uint64_t>& bytes,
            regie_status code)
      : m_(model), placement_(placement), bytes_(bytes), code_(code), late_(model), order_(model) {}

  Status run(bool at_reference) {
    if (at_reference) REGIE_TRY(figures());
    memories_.resize(m_.spaces.size() + m_.outputs.size() + (late_.any() ? m_.buffers.size() : 0));
    REGIE_TRY(programs());
    return outputs();
  }

 private:
  // ---- What the buffers say
  // -------------------------------------------------------------------------------------
  Status figures() const {
    // With symbols, places follow from the buffers beneath, which may lie lower than the plan had them.
    for (size_t b = 0; b < m_.buffers.size(); ++b)
      if (placement_.sizes[b] && placement_.offsets[b] > m_.buffers[b].offset)
        return internal_error("buffer '" + m_.buffers[b].name + "' is planned at " +
                              number(m_.buffers[b].offset) + ", but the buffers beneath it push it to " +
                              number(placement_.offsets[b]));
    for (uint32_t s = 0; s < m_.spaces.size(); ++s) {
      const ModelSpace& space = m_.spaces[s];
      // Deltas of live bytes by step: as they are, and rounded up to the alignment as planners count.
      std::map<uint64_t, std::pair<int64_t, int64_t>> deltas;
      uint64_t peak = 0, alignment = 1;
      for (size_t b = 0; b < m_.buffers.size(); ++b) {
        const ModelBuffer& buffer = m_.buffers[b];
        if (buffer.space != s) continue;
        const uint64_t size = placement_.sizes[b];
        const int64_t plain = static_cast<int64_t>(size);
        const int64_t rounded =
            static_cast<int64_t>((size + buffer.alignment - 1) / buffer.alignment * buffer.alignment);
        if (size) peak = std::max(peak, buffer.offset + size);
        alignment = std::max<uint64_t>(alignment, buffer.alignment);
        deltas[buffer.lower].first += plain;
        deltas[buffer.lower].second += rounded;
        deltas[buffer.upper].first -= plain;
        deltas[buffer.upper].second -= rounded;
      }
      int64_t live = 0, live_rounded = 0, most = 0, most_rounded = 0;
      for (const auto& [step, delta] : deltas) {
        most = std::max(most, live += delta.first);
        most_rounded = std::max(most_rounded, live_rounded += delta.second);
      }
      if (space.arena_bytes < peak || space.arena_bytes - peak >= alignment)
        return internal_error("memory space '" + space.name + "' says that its arena takes " +
                              number(space.arena_bytes) + " bytes, but its buffers end at " + number(peak));
      if (space.lower_bound < static_cast<uint64_t>(most) ||
          space.lower_bound > static_cast<uint64_t>(most_rounded))
        return internal_error("memory space '" + space.name + "' says that its lower bound is " +
                              number(space.lower_bound) + " bytes, but its buffers say " +
                              std::to_string(most_rounded));
    }
    return {};
  }

  // ---- Accesses
  // ------------------------------------------------------------------------------------------------- False
  // for what is never written: inputs, weights, nothing.
  bool range_of(const Arg& a, Range* r) const {
    if (a.kind != Arg::kBuffer && a.kind != Arg::kOutput) return false;
    uint64_t bytes = bytes_[a.type];
    if (late_.place(a)) return late_range(a, r);
    // A view whose shape is told later is taken for all that is behind it.
    if (late_.type(a.type)) {
      const uint64_t room =
          a.kind == Arg::kBuffer ? placement_.sizes[a.index] : bytes_[m_.outputs[a.index].type];
      bytes = room - std::min(room, a.offset);
    }
    if (bytes == 0) return false;
    if (a.kind == Arg::kBuffer) {
      r->memory = m_.buffers[a.index].space;
      r->begin = placement_.offsets[a.index] + a.offset;
      r->owner = a.index;
    } else {
      r->memory = static_cast<uint32_t>(m_.spaces.size()) + a.index;
      r->begin = a.offset;
      r->owner = static_cast<uint32_t>(m_.buffers.size()) + a.index;
    }
    r->end = r->begin + bytes;
    r->value = a.value;
    return true;
  }

  // Memory of its own, of which nothing but the order of those who touch it can be checked.
  bool late_range(const Arg& a, Range* r) const {
    const size_t first = a.kind == Arg::kBuffer ? m_.spaces.size() + m_.outputs.size() : m_.spaces.size();
    r->memory = static_cast<uint32_t>(first + a.index);
    r->owner = static_cast<uint32_t>((a.kind == Arg::kBuffer ? 0 : m_.buffers.size()) + a.index);
    r->begin = 0;
    r->end = 1;
    r->value = a.value;
    return true;
  }

  std::string owner_name(uint32_t owner) const {
    return owner < m_.buffers.size() ? "buffer '" + m_.buffers[owner].name + "'"
                                     : "output '" + m_.outputs[owner - m_.buffers.size()].name + "'";
  }
  std::string memory_name(uint32_t memory) const {
    return memory < m_.spaces.size() ? "memory space '" + m_.spaces[memory].name + "'"
                                     : "the memory that is found for it when the model runs";
  }
  std::string place(const Range& r) const {
    return "bytes " + number(r.begin) + " to " + number(r.end) + " of " + memory_name(r.memory) + " (" +
           owner_name(r.owner) + ")";
  }
  Status wrong(EventId who, const Range& r, const std::string& what) const {
    return Status::error(code_, order_.name(who) + " " + what + "; " + place(r));
  }

  using Map = std::map<uint64_t, Segment>;

  // Cuts the segments at `at`, so that one begins there.
  static void cut(Map* map, uint64_t at) {
    auto it = map->upper_bound(at);
    if (it == map->begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment right = it->second;
    it->second.end = at;
    map->emplace(at, std::move(right));
  }

  Status read(EventId who, const Range& r) {
    Map& map = memories_[r.memory];
    cut(&map, r.begin);
    cut(&map, r.end);
    uint64_t at = r.begin;
    for (auto it = map.lower_bound(r.begin); it != map.end() && it->first < r.end; ++it) {
      if (it->first != at) break;
      at = it->second.end;
      Segment& s = it->second;
      if (s.owner != r.owner)
        return wrong(who, r,
                     "reads what " + order_.name(s.writer) + " has overwritten with " + owner_name(s.owner));
      if (r.value != REGIE_NONE && s.value != REGIE_NONE && s.value != r.value)
        return wrong(who, r, "reads what " + order_.name(s.writer) + " has overwritten with another value");
      if (!order_.visible(s.writer, who))
        return wrong(who, r,
                     (!order_.in_loop(s.writer, who)   ? "reads what only a branch writes: "
                      : order_.in_turns(s.writer, who) ? "reads what an earlier iteration writes: "
                                                       : "reads what only an iteration writes: ") +
                         order_.name(s.writer));
      if (!order_.before(s.writer, who))
        return wrong(who, r, "reads what " + order_.name(s.writer) + " writes, and does not wait for it");
      // Sooner or later a write looks at the readers: the latest of each stream and program is enough.
      auto same = std::find_if(s.readers.begin(), s.readers.end(),
                               [&](EventId e) { return order_.same_line(e, who); });
      if (same == s.readers.end())
        s.readers.push_back(who);
      else
        *same = who;
    }
    return at >= r.end ? Status() : wrong(who, r, "reads bytes that no task has written");
  }

  // `over`: what the same event reads, where its result may lie (in place).
  Status write(EventId who, const Range& r, const std::vector<Range>& over) {
    Map& map = memories_[r.memory];
    cut(&map, r.begin);
    cut(&map, r.end);
    auto it = map.lower_bound(r.begin);
    while (it != map.end() && it->first < r.end) {
      const Segment& s = it->second;
      // The host itself hands over what a loop carries, again and again, and in order.
      if (s.writer != who && !order_.before(s.writer, who))
        return wrong(who, r,
                     "writes over what " + order_.name(s.writer) + " writes, and does not wait for it");
      for (EventId reader : s.readers)
        if (reader != who && !order_.before(reader, who))
          return wrong(who, r,
                       "writes over what " + order_.name(reader) + " reads, and does not wait for it");
      if (s.owner == r.owner && !order_.alternatives(s.writer, who) && !order_.in_turns(s.writer, who) &&
          !order_.encloses(who, s.writer) && std::none_of(over.begin(), over.end(), [&](const Range& o) {
            return o.memory == r.memory && o.owner == r.owner && o.begin <= it->first && s.end <= o.end;
          }))
        return wrong(who, r, "writes a second time what " + order_.name(s.writer) + " has written");
      it = map.erase(it);
    }
    map.emplace(r.begin, Segment{r.end, r.owner, r.value, who, {}});
    return {};
  }

  // What one task touches must not overlap in itself, but for a result that begins where an operand does.
  Status itself(EventId who, const std::vector<Range>& reads, const std::vector<Range>& writes,
                const Range* scratch) {
    struct Mark {
      Range range;
      bool written;
    };
    std::vector<Mark> marks;
    for (const Range& r : reads) marks.push_back({r, false});
    for (const Range& r : writes) marks.push_back({r, true});
    if (scratch) marks.push_back({*scratch, true});
    std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return std::tie(a.range.memory, a.range.begin, a.written) <
             std::tie(b.range.memory, b.range.begin, b.written);
    });
    // Furthest end so far: of all ranges, and of the written ones.
    const Mark* any = nullptr;
    const Mark* written = nullptr;
    for (const Mark& k : marks) {
      if (any && any->range.memory != k.range.memory) any = written = nullptr;
      const bool is_scratch =
          scratch && k.written && k.range.owner == scratch->owner && k.range.begin == scratch->begin;
      if (written && written->range.end > k.range.begin)
        return wrong(who, k.range, "writes its own operand or result: " + owner_name(written->range.owner));
      if (k.written && any && any->range.end > k.range.begin &&
          (is_scratch || any->range.begin != k.range.begin || any->range.end < k.range.end))
        return wrong(who, k.range, "writes over a part of its own operand " + owner_name(any->range.owner));
      if (!any || k.range.end > any->range.end) any = &k;
      if (k.written && (!written || k.range.end > written->range.end)) written = &k;
    }
    return {};
  }

  Status ranges(const std::vector<Arg>& args, std::vector<Range>* out) const {
    out->clear();
    Range r;
    for (const Arg& a : args)
      if (range_of(a, &r)) out->push_back(r);
    return {};
  }

  Status lifetimes(EventId who, const ModelTask& task, const std::vector<Range>& list, bool written) const {
    for (const Range& r : list) {
      if (r.owner >= m_.buffers.size()) continue;
      const ModelBuffer& b = m_.buffers[r.owner];
      // A buffer whose bytes a result takes over in place may be said to end where the result begins.
      if (task.step < b.lower || task.step > b.upper || (written && task.step == b.upper))
        return wrong(who, r,
                     "touches it in step " + number(task.step) + ", but it lives from " + number(b.lower) +
                         " to " + number(b.upper));
    }
    return {};
  }

  Status task(EventId who, const ModelTask& t) {
    REGIE_TRY(ranges(t.operands, &reads_));
    REGIE_TRY(ranges(t.results, &writes_));
    if (t.kind == TaskKind::kDefine) writes_.clear();  // nothing is written
    REGIE_TRY(lifetimes(who, t, reads_, false));
    REGIE_TRY(lifetimes(who, t, writes_, true));
    Range scratch;
    const bool has_scratch = t.scratch != REGIE_NONE && placement_.sizes[t.scratch] > 0;
    if (has_scratch) {
      scratch = {m_.buffers[t.scratch].space, placement_.offsets[t.scratch],
                 placement_.offsets[t.scratch] + placement_.sizes[t.scratch], t.scratch, REGIE_NONE};
      REGIE_TRY(lifetimes(who, t, {scratch}, true));
    }
    REGIE_TRY(itself(who, reads_, writes_, has_scratch ? &scratch : nullptr));
    for (const Range& r : reads_) REGIE_TRY(read(who, r));
    // Scratch holds nothing before or after; its own bytes count as read, so that tasks may share it.
    if (has_scratch) REGIE_TRY(write(who, scratch, {scratch}));
    for (const Range& r : writes_) REGIE_TRY(write(who, r, reads_));
    return {};
  }

  // ---- Programs, branches and iterations in the place of their If or loop
  // ----------------------------------
  Status programs() {
    return order_.walk([&](Order::Visit what, EventId who, const ModelTask& t, size_t branch) -> Status {
      switch (what) {
        case Order::Visit::kTask:
          return task(who, t);
        case Order::Visit::kIfBegin: {
          Range r;
          return range_of(t.operands[0], &r) ? read(who, r) : Status();
        }
        case Order::Visit::kBranchEnd: {
          REGIE_TRY(ranges(t.program_results[branch], &reads_));
          for (const Range& r : reads_) REGIE_TRY(read(who, r));
          return moves(who, t.program_results[branch], t.results);
        }
        case Order::Visit::kIfEnd: {
          REGIE_TRY(ranges(t.results, &writes_));
          for (const Range& r : writes_) REGIE_TRY(write(who, r, {r}));
          return {};
        }
        case Order::Visit::kLoopBegin:
          return loop_begin(who, t);
        case Order::Visit::kTurnBegin:
          return turn_begin(who, t);
        case Order::Visit::kTurnEnd:
          return turn_end(who, t, branch);
      }
      return {};
    });
  }

  // What a loop collects: its results behind those that are carried.
  static std::vector<Arg> collected(const ModelTask& t) {
    const size_t carried = t.program_arguments.size() - 2;
    return {t.results.begin() + static_cast<std::ptrdiff_t>(carried), t.results.end()};
  }

  Status loop_begin(EventId who, const ModelTask& t) {
    REGIE_TRY(ranges(t.operands, &reads_));
    REGIE_TRY(lifetimes(who, t, reads_, false));
    for (const Range& r : reads_) REGIE_TRY(read(who, r));
    REGIE_TRY(ranges(t.program_arguments, &writes_));
    REGIE_TRY(lifetimes(who, t, writes_, true));
    // Values are copied to where they are carried one after the other, and there they must not meet.
    std::vector<Range> all = writes_;
    REGIE_TRY(ranges(collected(t), &writes_));
    REGIE_TRY(lifetimes(who, t, writes_, true));
    all.insert(all.end(), writes_.begin(), writes_.end());
    std::vector<Range> outside;
    Range r;
    for (size_t i = 0; i < t.operands.size(); ++i) {
      Range home;
      if (!range_of(t.operands[i], &r)) continue;
      const bool there = i >= 2 && range_of(t.program_arguments[i], &home) && home.memory == r.memory &&
                         home.begin == r.begin && home.end == r.end;
      if (!there) outside.push_back(r);
    }
    REGIE_TRY(apart(who, outside, all));
    for (const Range& w : all) REGIE_TRY(write(who, w, {w}));
    return {};
  }

  // None of `written` may touch another one of them, nor any of `read`.
  Status apart(EventId who, const std::vector<Range>& read, const std::vector<Range>& written) const {
    struct Mark {
      Range range;
      bool written;
    };
    std::vector<Mark> marks;
    for (const Range& r : read) marks.push_back({r, false});
    for (const Range& r : written) marks.push_back({r, true});
    std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return std::tie(a.range.memory, a.range.begin) < std::tie(b.range.memory, b.range.begin);
    });
    const Mark *any = nullptr, *last = nullptr;  // furthest ends: of all, of the written ones
    for (const Mark& k : marks) {
      if (any && any->range.memory != k.range.memory) any = last = nullptr;
      const Mark* met = k.written ? any : last;
      if (met && met->range.end > k.range.begin)
        return wrong(who, k.range, "lays what it carries or collects over " + owner_name(met->range.owner));
      if (!any || k.range.end > any->range.end) any = &k;
      if (k.written && (!last || k.range.end > last->range.end)) last = &k;
    }
    return {};
  }

  // Iteration number and condition are written anew.
  Status turn_begin(EventId who, const ModelTask& t) {
    Range r;
    for (size_t i = 0; i < 2; ++i)
      if (range_of(t.program_arguments[i], &r)) REGIE_TRY(write(who, r, {r}));
    return {};
  }

  // What the body gives is read, then what is carried is written, all at once; what was collected before must
  // still be there.
  Status turn_end(EventId who, const ModelTask& t, size_t turn) {
    const EventId loop = order_.owner(who);
    REGIE_TRY(ranges(t.program_results[0], &reads_));
    for (const Range& r : reads_) REGIE_TRY(read(who, r));
    REGIE_TRY(ranges(collected(t), &writes_));
    if (turn > 0)
      for (const Range& r : writes_) REGIE_TRY(read(who, r));
    REGIE_TRY(apart(who, reads_, writes_));
    for (const Range& r : writes_) REGIE_TRY(write(loop, r, {r}));
    const std::vector<Arg> state(t.program_arguments.begin() + 2, t.program_arguments.end());
    REGIE_TRY(ranges(state, &writes_));
    for (const Range& r : writes_) REGIE_TRY(write(loop, r, {r}));
    return {};
  }

  // A branch's results are copied one after the other: no copy may destroy what a later one reads.
  Status moves(EventId who, const std::vector<Arg>& from, const std::vector<Arg>& to) const {
    std::map<std::pair<uint32_t, uint64_t>, std::pair<uint64_t, size_t>>
        sources;  // memory, begin -> end, which
    Range r;
    uint64_t longest = 0;
    for (size_t i = 0; i < from.size(); ++i)
      if (range_of(from[i], &r)) {
        auto [it, is_new] = sources.try_emplace({r.memory, r.begin}, r.end, i);
        it->second = {std::max(it->second.first, r.end), std::max(it->second.second, i)};
        longest = std::max(longest, r.end - r.begin);
      }
    for (size_t i = 0; i < to.size(); ++i) {
      if (!range_of(to[i], &r)) continue;
      auto it = sources.lower_bound({r.memory, r.begin > longest ? r.begin - longest : 0});
      for (; it != sources.end() && it->first < std::pair(r.memory, r.end); ++it)
        if (it->second.first > r.begin && it->second.second > i)
          return wrong(who, r, "copies a branch's result over another one that is copied later");
    }
    return {};
  }

  Status outputs() {
    const EventId end = order_.end();
    for (size_t o = 0; o < m_.outputs.size(); ++o) {
      Range r;
      if (!range_of(m_.output_sources[o], &r)) continue;
      REGIE_TRY(read(end, r));
    }
    return {};
  }

  const Model& m_;
  const Placement& placement_;
  const std::vector<uint64_t>& bytes_;  // by type
  const regie_status code_;
  const LateFacts late_;
  Order order_;
  std::vector<Map> memories_;
  std::vector<Range> reads_, writes_;
};

}  // namespace

Status check_plan(const Model& model, const std::vector<int64_t>& symbol_values) {
  Result<ShapeValues> shapes = evaluate_shapes(model, symbol_values);
  if (!shapes) return std::move(shapes).status().while_doing("checking the plan");
  std::vector<uint64_t> bytes;
  const LateFacts late(model);
  for (uint32_t t = 0; t < model.types.size(); ++t) {
    Result<uint64_t> size = late.type(t) ? Result<uint64_t>(0) : bytes_at(model, t, *shapes);
    if (!size) return std::move(size).status().while_doing("checking the plan");
    bytes.push_back(*size);
  }
  REGIE_ASSIGN(const Placement placement, place_buffers(model, *shapes));
  Status status = PlanCheck(model, placement, bytes, REGIE_INTERNAL).run(symbol_values.empty());
  return status.ok()
             ? status
             : std::move(status).while_doing("checking the plan at " + symbols_text(model, shapes->symbols));
}

Status check_placement(const Model& model, const Placement& placement, const std::vector<uint64_t>& bytes) {
  return PlanCheck(model, placement, bytes, REGIE_CORRUPT).run(false);
}

}  // namespace regie
