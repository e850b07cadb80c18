#include "shadow.h"

#include <algorithm>
#include <cstring>

namespace regie::tile {

namespace {

constexpr int64_t kBlock = REGIE_TILE_BLOCK_BYTES;

std::string bytes_text(uint32_t place, int64_t begin, int64_t end) {
  return "bytes " + std::to_string(begin) + ".." + std::to_string(end) + " of " + place_name(place);
}

std::string race_text(uint32_t place, int64_t block, const char* mine, const char* theirs, uint32_t other,
                      uint32_t pipe, const std::string& by) {
  auto pipes = mode_words(ModeKind::pipe);
  return std::string(mine) + " " + bytes_text(place, block * kBlock, (block + 1) * kBlock) + " that " + by +
         " on pipe " + std::string(pipes[other]) + " " + theirs + ", and no flag from " +
         std::string(pipes[other]) + " to " + std::string(pipes[pipe]) + " orders them";
}

}  // namespace

Shadow::Shadow(const OnChip& chip, bool report_unused) : report_unused_(report_unused) {
  for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place) {
    memories_[place].bytes.assign(chip.size(place), 0);
    memories_[place].blocks.resize(chip.size(place) / kBlock + 1);
  }
}

void Shadow::reset() {
  if (report_unused_) unused_ = unused_bytes();
  for (Memory& m : memories_) {
    if (m.touched) std::memset(m.bytes.data(), 0, static_cast<size_t>(m.touched));
    m.touched = 0;
  }
}

uint64_t Shadow::unused_bytes() const {
  uint64_t sum = unused_;
  for (const Memory& m : memories_)
    sum += static_cast<uint64_t>(std::count(m.bytes.begin(), m.bytes.end(), uint8_t{1}));
  return sum;
}

Fault Shadow::read(uint32_t place, int64_t begin, int64_t end, uint32_t pipe, uint32_t at, const Clock& clock,
                   std::string& detail) {
  Memory& m = memories_[place];
  size_t count = static_cast<size_t>(end - begin);
  uint8_t* bytes = m.bytes.data() + begin;
  if (const void* zero = std::memchr(bytes, 0, count)) {
    int64_t first = begin + (static_cast<const uint8_t*>(zero) - bytes);
    detail =
        "reads " + bytes_text(place, begin, end) + "; byte " + std::to_string(first) + " was never written";
    return Fault::uninitialised;
  }
  if (report_unused_) std::memset(bytes, 2, count);
  for (int64_t k = begin / kBlock, last = (end - 1) / kBlock; k <= last; ++k) {
    Block& b = m.blocks[static_cast<size_t>(k)];
    if (b.write_at > clock[b.writer]) {  // never of its own pipe: a pipe knows all that it did
      detail = race_text(place, k, "reads", "writes", b.writer, pipe,
                         "instruction " + std::to_string(b.instruction));
      return Fault::race;
    }
    b.read_at[pipe] = at;
  }
  return Fault::none;
}

Fault Shadow::write(uint32_t place, int64_t begin, int64_t end, uint32_t pipe, uint32_t at,
                    const Clock& clock, uint32_t instruction, std::string& detail) {
  Memory& m = memories_[place];
  uint8_t* bytes = m.bytes.data() + begin;
  size_t count = static_cast<size_t>(end - begin);
  if (report_unused_) unused_ += static_cast<uint64_t>(std::count(bytes, bytes + count, uint8_t{1}));
  std::memset(bytes, 1, count);
  m.touched = std::max(m.touched, end);
  for (int64_t k = begin / kBlock, last = (end - 1) / kBlock; k <= last; ++k) {
    Block& b = m.blocks[static_cast<size_t>(k)];
    if (b.write_at > clock[b.writer]) {
      detail = race_text(place, k, "writes", "writes", b.writer, pipe,
                         "instruction " + std::to_string(b.instruction));
      return Fault::race;
    }
    bool unordered = false;
    for (uint32_t q = 0; q < REGIE_TILE_PIPES; ++q) unordered |= b.read_at[q] > clock[q];
    if (unordered) {
      uint32_t q = 0;
      while (b.read_at[q] <= clock[q]) ++q;
      detail = race_text(place, k, "writes", "reads", q, pipe, "an earlier instruction");
      return Fault::race;
    }
    b.write_at = at;
    b.writer = pipe;
    b.instruction = instruction;
  }
  return Fault::none;
}

void merge_ranges(std::vector<ByteRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const ByteRange& r : ranges) {
    if (kept && r.begin <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, r.end);
    else
      ranges[kept++] = r;
  }
  ranges.resize(kept);
}

GlobalShadow::GlobalShadow(const Program& program) {
  buffers_.resize(program.gm.size());
  for (size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].only_read = program.gm[i].access == REGIE_TILE_READ;
}

void GlobalShadow::access(uint32_t buffer, uint64_t begin, uint64_t end, bool write, uint32_t core,
                          uint32_t phase, uint32_t pipe, uint32_t at, uint32_t known, uint32_t instruction) {
  Buffer& b = buffers_[buffer];
  if (b.only_read) {
    if (!b.merged.empty() && b.merged.back().end == begin) {
      b.merged.back().end = end;
      return;
    }
    b.merged.push_back({begin, end});
    if (b.merged.size() < b.merge_at) return;
    merge_ranges(b.merged);
    b.merge_at = std::max<size_t>(4096, 2 * b.merged.size());
    return;
  }
  if (!b.runs.empty()) {
    Run& last = b.runs.back();
    if (last.end == begin && last.core == core && last.at == at && last.write == write &&
        last.phase == phase) {
      last.end = end;
      return;
    }
  }
  b.runs.push_back({begin, end, core, phase, pipe, at, known, instruction, order_++, write});
}

GlobalShadow::Race GlobalShadow::finish(std::vector<std::vector<ByteRange>>& reads,
                                        std::vector<std::vector<ByteRange>>& writes) {
  reads.assign(buffers_.size(), {});
  writes.assign(buffers_.size(), {});
  for (uint32_t i = 0; i < buffers_.size(); ++i) {
    Buffer& b = buffers_[i];
    if (b.only_read) {
      merge_ranges(b.merged);
      reads[i] = b.merged;
      continue;
    }
    std::sort(b.runs.begin(), b.runs.end(), [](const Run& x, const Run& y) {
      return x.begin != y.begin ? x.begin < y.begin : x.order < y.order;
    });
    // Runs that reach beyond the current one's begin. Two that overlap are ordered by a barrier, by their
    // pipe, or by flags.
    std::vector<const Run*> active;
    std::vector<std::pair<const Run*, ByteRange>> covered;  // what earlier writes give to a read
    for (const Run& r : b.runs) {
      std::erase_if(active, [&](const Run* o) { return o->end <= r.begin; });
      for (const Run* o : active) {
        if (!r.write && !o->write) continue;
        const Run &first = r.order < o->order ? r : *o, &second = r.order < o->order ? *o : r;
        bool same_core = first.core == second.core;
        bool ordered = first.phase != second.phase ||
                       (same_core && (first.pipe == second.pipe || first.at <= second.known));
        uint64_t begin = r.begin, end = std::min(r.end, o->end);
        if (!ordered)
          return {true,         i,
                  second.core,  second.instruction,
                  first.core,   first.instruction,
                  second.write, first.write,
                  begin,        end};
        bool write_first = first.phase != second.phase ? first.phase < second.phase : true;
        const Run &early = write_first ? first : second, &late = write_first ? second : first;
        if (early.write && !late.write) covered.push_back({&late, {begin, end}});
      }
      active.push_back(&r);
    }
    std::sort(covered.begin(), covered.end(), [](auto& x, auto& y) {
      return x.first != y.first ? x.first->order < y.first->order : x.second.begin < y.second.begin;
    });
    std::vector<const Run*> by_order;
    for (const Run& r : b.runs)
      if (!r.write) by_order.push_back(&r);
    std::sort(by_order.begin(), by_order.end(),
              [](const Run* x, const Run* y) { return x->order < y->order; });
    size_t next = 0;
    for (const Run* r : by_order) {
      uint64_t at = r->begin;
      for (; next < covered.size() && covered[next].first == r; ++next) {
        if (covered[next].second.begin > at) reads[i].push_back({at, covered[next].second.begin});
        at = std::max(at, covered[next].second.end);
      }
      if (at < r->end) reads[i].push_back({at, r->end});
    }
    for (const Run& r : b.runs)
      if (r.write) writes[i].push_back({r.begin, r.end});
    merge_ranges(reads[i]);
    merge_ranges(writes[i]);
  }
  return {};
}

}  // namespace regie::tile
