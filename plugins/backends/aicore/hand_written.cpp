#include "hand_written.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "regie/graph_view.hpp"
#include "regie/tile/codec.h"
#include "regie/tile/hand_written.h"
#include "regie/tile/verify.h"

namespace aicore {

namespace {

using regie::sdk::Failure;

std::string microseconds(const Chip& chip, double cycles) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f us", chip.ns(cycles) / 1000);
  return text;
}

// Are all tensors row-major? Hand-written programs know no other format.
bool is_plain(const Request& r) {
  for (auto ids : {regie::sdk::operands_of(r.node), regie::sdk::results_of(r.node)})
    for (uint32_t v : ids) {
      if (v == REGIE_NONE) continue;
      const regie_format f = r.graph->values[v].type.format;
      if (f != REGIE_FORMAT_ND && f != REGIE_FORMAT_NCHW) return false;
    }
  return true;
}

// Whether a stranger's program may run on this chip with these tensors, and writes all of the results.
std::string fault_of(const Request& r, const regie::tile::Program& p) {
  if (p.cores > r.chip.cores) return "it is for " + std::to_string(p.cores) + " cores";
  const auto &needs = p.chip, &has = r.chip.sizes;
  if (needs.l1 > has.l1 || needs.l0a > has.l0a || needs.l0b > has.l0b || needs.l0c > has.l0c ||
      needs.ub > has.ub)
    return "it is for larger buffers";
  for (const regie::tile::GlobalBuffer& b : p.gm) {
    if (b.kind == REGIE_TILE_SCRATCH) continue;
    const bool operand = b.kind == REGIE_TILE_OPERAND;
    const auto tensors = operand ? r.operands : r.results;
    const std::string what = (operand ? "operand " : "result ") + std::to_string(b.index);
    if (b.index >= tensors.size() || tensors[b.index].elem == REGIE_ELEM_UNKNOWN)
      return "there is no " + what;
    const auto bytes = regie::sdk::bytes_of(tensors[b.index]);
    if (!bytes || *bytes < b.bytes) return what + " has fewer bytes than it is for";
  }
  const regie::tile::VerifyResult verified = regie::tile::verify(p);
  if (!verified.ok()) return verified.message;
  for (size_t i = 0; i < r.results.size(); ++i) {
    if (r.results[i].elem == REGIE_ELEM_UNKNOWN) continue;
    // Of all buffers that are this result: several may write the same bytes.
    std::vector<regie::tile::ByteRange> ranges;
    for (size_t g = 0; g < p.gm.size(); ++g)
      if (p.gm[g].kind == REGIE_TILE_RESULT && p.gm[g].index == i)
        ranges.insert(ranges.end(), verified.writes[g].begin(), verified.writes[g].end());
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    uint64_t written = 0;  // all from the first byte on
    for (const regie::tile::ByteRange& range : ranges)
      if (range.begin <= written) written = std::max(written, range.end);
    if (written != regie::sdk::bytes_of(r.results[i]))
      return "it leaves parts of result " + std::to_string(i) + " unwritten";
  }
  return {};
}

// What the overlay offers, or why not.
std::optional<Lowered> offered(const Request& r, const regie_host* host, Verdicts& verdicts,
                               std::string* why_not) {
  if (!host || r.node.region_count || !is_plain(r)) return std::nullopt;
  try {
    auto given = regie::tile::ask_hand_written(host, r.op, {r.node.attrs, r.node.attr_count}, r.operands,
                                               r.results, r.chip.hardware);
    if (!given) return std::nullopt;
    std::string key = regie::tile::encode(given->program);
    for (auto list : {r.operands, r.results})
      for (const regie_tensor& t : list) key += ' ' + std::to_string(regie::sdk::bytes_of(t).value_or(0));
    auto at = verdicts.find(key);
    if (at == verdicts.end()) {
      at = verdicts.emplace(std::move(key), fault_of(r, given->program)).first;
      if (!at->second.empty())
        host->log(REGIE_LOG_WARNING, regie::sdk::lit("aicore"),
                  regie::sdk::str("the hand-written program '" + given->name + "' for " + std::string(r.op) +
                                  " is not used: " + at->second));
    }
    if (!at->second.empty())
      throw Failure(REGIE_UNSUPPORTED, "the program '" + given->name + "': " + at->second);
    Lowered l;
    l.name = "hand-written " + given->name;
    l.cycles = given->cycles;
    l.write = [program = std::move(given->program)] {
      Written w;
      for (const auto& b : program.gm)
        if (b.kind == REGIE_TILE_SCRATCH) w.scratch_bytes = std::max(w.scratch_bytes, b.index + b.bytes);
      w.program = program;
      return w;
    };
    return l;
  } catch (const Failure& f) {
    *why_not = f.message;
    return std::nullopt;
  }
}

}  // namespace

Choice choose(const Request& r, const regie_host* host, Verdicts& verdicts) {
  check_request(r);
  std::optional<Lowered> own;
  std::string why_not_own, why_not_theirs;
  bool overflows = false;
  try {
    own = lower_checked(r);
  } catch (const Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    overflows = dynamic_cast<const Overflow*>(&f) != nullptr;
    why_not_own = f.message;
  }
  std::optional<Lowered> theirs = offered(r, host, verdicts, &why_not_theirs);
  const std::string not_theirs = why_not_theirs.empty() ? "" : " (hand-written: " + why_not_theirs + ")";
  Choice c;
  if (theirs && (!own || theirs->cycles < own->cycles)) {
    c.reason = theirs->name + ", " + microseconds(r.chip, theirs->cycles) +
               "; its own: " + (own ? own->name + ", " + microseconds(r.chip, own->cycles) : why_not_own);
    c.lowered = std::move(*theirs);
  } else if (own) {
    c.reason = own->name + (theirs ? ", " + microseconds(r.chip, own->cycles) + "; " + theirs->name + ": " +
                                         microseconds(r.chip, theirs->cycles)
                                   : not_theirs);
    c.lowered = std::move(*own);
  } else if (overflows) {
    throw Overflow(why_not_own + not_theirs);
  } else {
    refuse(why_not_own + not_theirs);
  }
  return c;
}

}  // namespace aicore
