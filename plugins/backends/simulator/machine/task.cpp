// TileTask: a program that was decoded, verified and grouped once, and runs of it.

#include <algorithm>
#include <map>
#include <mutex>

#include "chip.h"
#include "regie/plugin.hpp"
#include "regie/tile/codec.h"
#include "regie/tile/stream.h"
#include "tile_machine.h"
#include "timing.h"

namespace regie::simulator {

struct TileTask::Impl {
  Impl(tile::Program p, const TileMachine& m, std::string n)
      : program(std::move(p)), machine(m), name(std::move(n)), plan(program) {}

  tile::Program program;
  TileMachine machine;
  std::string name;
  tile::Plan plan;
  mutable std::once_flag once;
  mutable tile::VerifyResult verified;  // by `once`
  std::vector<uint32_t> like;           // by core: the first core that takes the same time

  [[noreturn]] void fail(regie_status code, const std::string& what) const {
    throw sdk::Failure(code, "tile program of '" + name + "': " + what);
  }

  const tile::VerifyResult& verify() const {
    std::call_once(once, [this] { verified = tile::verify(program); });
    if (!verified.ok())
      fail(REGIE_INVALID_INPUT, std::string(tile::fault_name(verified.fault)) + ": " + verified.message);
    return verified;
  }

  void fits() const {
    if (program.cores > machine.cores)
      fail(REGIE_UNSUPPORTED, "it was compiled for " + std::to_string(program.cores) +
                                  " cores; the device has " + std::to_string(machine.cores));
    for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place)
      if (program.chip.size(place) > machine.chip.size(place))
        fail(REGIE_UNSUPPORTED, "it was compiled for " + std::to_string(program.chip.size(place)) +
                                    " bytes of " + tile::place_name(place) + "; the device has " +
                                    std::to_string(machine.chip.size(place)));
  }

  void compute(const std::vector<TileBuffer>& buffers) const;
  void time(const std::vector<TileBuffer>& buffers, bool keep, TileResult& out) const;
};

std::shared_ptr<const TileTask> TileTask::prepare(std::string_view blob, const TileMachine& machine,
                                                  std::string_view name, Verify verify) {
  std::shared_ptr<Impl> impl;
  try {
    impl = std::make_shared<Impl>(tile::decode(blob), machine, std::string(name));
  } catch (const sdk::Failure& f) {
    throw sdk::Failure(f.code, "kernel of '" + std::string(name) + "': " + f.message);
  }
  impl->fits();
  if (verify == Verify::now) impl->verify();
  std::map<std::vector<int64_t>, uint32_t> seen;
  for (uint32_t core = 0; core < impl->program.cores; ++core)
    impl->like.push_back(
        seen.try_emplace(impl->plan.signature(core, tile::Plan::Same::time), core).first->second);
  return std::shared_ptr<const TileTask>(new TileTask(std::move(impl)));
}

const tile::Program& TileTask::program() const { return impl_->program; }
const tile::VerifyResult& TileTask::accesses() const { return impl_->verify(); }

void TileTask::Impl::compute(const std::vector<TileBuffer>& buffers) const {
  tile::Concrete i;
  if (!plan.has_barrier()) {
    Chip chip(program.chip, buffers);
    for (uint32_t core = 0; core < program.cores; ++core) {
      tile::Stream stream(plan, core);
      while (stream.next(i) == tile::Stream::Result::instruction) chip.execute(i);
    }
    return;
  }
  std::vector<Chip> chips;
  std::vector<tile::Stream> streams;
  for (uint32_t core = 0; core < program.cores; ++core) {
    chips.emplace_back(program.chip, buffers);
    streams.emplace_back(plan, core);
  }
  for (bool more = true; more;) {
    more = false;  // every core meets as many barriers: all end in the same round
    for (uint32_t core = 0; core < program.cores; ++core)
      while (streams[core].next(i) == tile::Stream::Result::instruction) {
        if (i.op == REGIE_TILE_OP_BARRIER) {
          more = true;
          break;
        }
        chips[core].execute(i);
      }
  }
}

void TileTask::Impl::time(const std::vector<TileBuffer>& buffers, bool keep, TileResult& out) const {
  Cost cost(machine, buffers);
  std::vector<uint32_t> leaders;
  for (uint32_t core = 0; core < program.cores; ++core)
    if (like[core] == core) leaders.push_back(core);
  std::vector<Timeline> lines;
  std::vector<tile::Stream> streams;
  for (uint32_t core : leaders) {
    lines.emplace_back(cost, keep);
    lines.back().read.resize(program.gm.size());
    lines.back().written.resize(program.gm.size());
    streams.emplace_back(plan, core, tile::VerifyOptions{}.instruction_budget);
  }
  std::vector<std::array<std::vector<TileSpan>, REGIE_TILE_PIPES>> spans(leaders.size());
  std::vector<double> ends(leaders.size());
  double start = 0;
  for (bool more = true; more;) {
    more = false;
    double longest = 0;
    for (size_t k = 0; k < leaders.size(); ++k) {
      Timeline& line = lines[k];
      line.begin_segment();
      tile::Concrete i;
      tile::Stream::Result got;
      while ((got = streams[k].next(i)) == tile::Stream::Result::instruction) {
        if (i.op == REGIE_TILE_OP_BARRIER) {
          more = true;
          break;
        }
        bool alignment;  // of a verified program nothing is wrong; of another, counts and flags must be
                         // numbers that can be
        if (std::string wrong = tile::operand_fault(i, alignment); !wrong.empty())
          fail(REGIE_INVALID_INPUT, "instruction " + std::to_string(i.index) + ": " + wrong);
        line.step(i);
      }
      if (got == tile::Stream::Result::budget || got == tile::Stream::Result::bad_trips)
        fail(REGIE_INVALID_INPUT,
             "it has too many instructions, or a loop with an impossible number of turns");
      double end = line.end_segment();
      longest = std::max(longest, end);
      ends[k] = start + end;
      for (uint32_t pipe = 0; pipe < REGIE_TILE_PIPES; ++pipe) {
        if (line.last[pipe] == 0) continue;
        if (line.core.last[pipe] == 0) line.core.first[pipe] = start + line.first[pipe];
        line.core.last[pipe] = start + line.last[pipe];
        for (TileSpan s : line.spans[pipe])
          spans[k][pipe].push_back({start + s.begin, start + s.end, s.instruction});
      }
    }
    start += longest + (more ? machine.barrier_cycles : 0);
  }
  out.cycles = start;
  out.nanoseconds = start / machine.clock_ghz;
  for (uint32_t core = 0; core < program.cores; ++core) {
    size_t k =
        static_cast<size_t>(std::lower_bound(leaders.begin(), leaders.end(), like[core]) - leaders.begin());
    out.cores.push_back(lines[k].core);
    out.cores.back().cycles = ends[k];
    if (keep) out.timeline.push_back(spans[k]);
    for (size_t g = 0; g < program.gm.size(); ++g) {
      out.read_bytes[g] += lines[k].read[g];
      out.written_bytes[g] += lines[k].written[g];
    }
  }
}

TileResult TileTask::run(const std::vector<TileBuffer>& buffers, const TileRun& what) const {
  const tile::Program& p = impl_->program;
  if (buffers.size() != p.gm.size())
    impl_->fail(REGIE_INVALID_INPUT, "it has " + std::to_string(p.gm.size()) +
                                         " global buffers; the launch gives " +
                                         std::to_string(buffers.size()));
  for (size_t g = 0; g < buffers.size(); ++g) {
    if (buffers[g].bytes < p.gm[g].bytes)
      impl_->fail(REGIE_INVALID_INPUT, "gm" + std::to_string(g) + " has " + std::to_string(buffers[g].bytes) +
                                           " bytes at this launch; the program touches " +
                                           std::to_string(p.gm[g].bytes));
    if (what.numerics && p.gm[g].bytes && !buffers[g].data)
      impl_->fail(REGIE_INVALID_INPUT, "gm" + std::to_string(g) + " has no memory at this launch");
  }
  TileResult out;
  out.read_bytes.resize(p.gm.size());
  out.written_bytes.resize(p.gm.size());
  if (what.numerics) {
    impl_->verify();
    impl_->compute(buffers);
  }
  if (what.time) impl_->time(buffers, what.timeline, out);
  return out;
}

}  // namespace regie::simulator
