#include "regie/tile/verify.h"

#include <algorithm>
#include <map>
#include <memory>

#include "regie/tile/codec.h"
#include "regie/tile/stream.h"
#include "shadow.h"

namespace regie::tile {

const char* fault_name(Fault fault) {
  constexpr const char* names[] = {
      "none", "form",    "budget",    "operand",   "alignment", "out-of-buffer", "out-of-gm", "uninitialised",
      "race", "gm-race", "gm-access", "set-twice", "dead-lock", "left-set",      "barrier",   "unused-write"};
  return names[static_cast<size_t>(fault)];
}

namespace {

constexpr uint64_t kRunBudget = uint64_t{1} << 28, kBlockBudget = uint64_t{1} << 33;

struct Flag {
  bool is_set = false, waited = false;
  uint32_t set_by = 0;  // instruction
  uint32_t last_wait = 0;
  Clock known{};
};

struct Core {
  Core(const Plan& plan, uint32_t n, uint64_t budget) : stream(plan, n, budget), number(n) {}
  Stream stream;
  uint32_t number;
  bool light = false;  // on chip as an earlier core that was verified
  bool done = false;
  uint32_t phase = 0;
  std::array<Clock, REGIE_TILE_PIPES> known{};  // by pipe: what it knows of all
  Clock time{};
  std::array<Flag, REGIE_TILE_PIPES * REGIE_TILE_PIPES * REGIE_TILE_FLAGS> flags{};
  Shadow* shadow = nullptr;
};

struct Stop {};

class Verifier {
 public:
  Verifier(const Program& program, const VerifyOptions& options)
      : p_(program), o_(options), plan_(program), gm_(program), budget_(options.instruction_budget) {}

  VerifyResult run() {
    try {
      walk();
      finish();
    } catch (const Stop&) {
    }
    return std::move(r_);
  }

 private:
  [[noreturn]] void fault(Fault f, const Core& c, const std::string& what) {
    r_.fault = f;
    r_.core = c.number;
    r_.instruction = c.stream.position();
    r_.message = "core " + std::to_string(c.number) + ", " + named(r_.instruction);
    std::string at;
    for (uint32_t v : c.stream.open_loops())
      at += (at.empty() ? " at v" : ", v") + std::to_string(v) + " = " +
            std::to_string(c.stream.variables()[v]);
    r_.message += at + ": " + what;
    throw Stop{};
  }

  std::string named(uint32_t instruction) const {
    if (instruction >= p_.code.size()) return "the end";
    return "instruction " + std::to_string(instruction) + " `" + instruction_text(p_.code[instruction]) + "`";
  }

  void walk() {
    std::map<std::vector<int64_t>, uint32_t> seen;
    std::vector<std::unique_ptr<Shadow>> shadows;
    auto fresh = [&] {
      shadows.push_back(std::make_unique<Shadow>(p_.chip, o_.report_unused));
      return shadows.back().get();
    };
    std::vector<std::unique_ptr<Core>> cores;
    Clock time{};
    for (uint32_t n = 0; n < p_.cores; ++n) {
      auto core = std::make_unique<Core>(plan_, n, budget_);
      core->light = !seen.try_emplace(plan_.signature(n, Plan::Same::on_chip), n).second;
      if (plan_.has_barrier()) {
        core->shadow = core->light ? nullptr : fresh();
        cores.push_back(std::move(core));
        continue;
      }
      if (!core->light) {
        if (shadows.empty()) fresh();
        core->shadow = shadows[0].get();
        core->shadow->reset();
        core->time = time;
        for (Clock& k : core->known) k = time;
      }
      segment(*core);
      if (!core->light) time = core->time;
    }
    for (bool more = !cores.empty(); more;) {
      for (auto& c : cores) segment(*c);
      more = !cores[0]->done;
      for (auto& c : cores)
        if (c->done == more) fault(Fault::barrier, *c, "it meets another number of barriers than core 0");
    }
    for (auto& s : shadows) r_.unused_bytes += s->unused_bytes();
  }

  // Until a barrier or the end.
  void segment(Core& c) {
    Concrete i;
    for (;;) {
      switch (c.stream.next(i)) {
        case Stream::Result::budget:
          fault(Fault::budget, c,
                "more than " + std::to_string(o_.instruction_budget) + " concrete instructions");
        case Stream::Result::bad_trips:
          fault(Fault::operand, c, "a loop has a negative or impossibly large number of turns");
        case Stream::Result::end:
          c.done = true;
          check_flags(c);
          budget_ -= std::min(budget_, c.stream.steps());
          return;
        case Stream::Result::instruction:
          break;
      }
      ++r_.instructions;
      if (i.op == REGIE_TILE_OP_BARRIER) {
        ++c.phase;
        for (Clock& k : c.known) k = c.time;
        return;
      }
      step(c, i);
    }
  }

  void check_flags(const Core& c) {
    for (size_t k = 0; k < c.flags.size(); ++k)
      if (c.flags[k].is_set)
        fault(Fault::left_set, c,
              flag_text(k) + ", set by " + named(c.flags[k].set_by) + ", is never waited for");
  }

  static std::string flag_text(size_t k) {
    auto pipes = mode_words(ModeKind::pipe);
    size_t pair = k / REGIE_TILE_FLAGS;
    return "flag " + std::to_string(k % REGIE_TILE_FLAGS) + " from " +
           std::string(pipes[pair / REGIE_TILE_PIPES]) + " to " + std::string(pipes[pair % REGIE_TILE_PIPES]);
  }

  void step(Core& c, const Concrete& i) {
    bool alignment = false;
    if (std::string wrong = operand_fault(i, alignment); !wrong.empty())
      fault(alignment ? Fault::alignment : Fault::operand, c, wrong);
    uint32_t pipe = pipe_of(i.op, i.mode);
    uint32_t now = ++c.time[pipe];
    c.known[pipe][pipe] = now;
    if (i.op == REGIE_TILE_OP_SET || i.op == REGIE_TILE_OP_WAIT) return flag(c, i, now);
    if (c.light && i.op != REGIE_TILE_OP_COPY) return;
    if (i.op == REGIE_TILE_OP_IM2COL && i.arg[14] && i.arg[16]) im2col_bounds(c, i);
    regions_of(i, regions_);
    for (const Region& r : regions_) bounds(c, r);
    if (!c.light) overlaps(c, i);
    for (const Region& r : regions_) touch(c, i, r, pipe, now);
  }

  void flag(Core& c, const Concrete& i, uint32_t now) {
    size_t k =
        (size_t{i.mode[0]} * REGIE_TILE_PIPES + i.mode[1]) * REGIE_TILE_FLAGS + static_cast<size_t>(i.arg[0]);
    Flag& f = c.flags[k];
    if (i.op == REGIE_TILE_OP_SET) {
      if (f.is_set) fault(Fault::set_twice, c, flag_text(k) + " is still set by " + named(f.set_by));
      if (f.waited && c.known[i.mode[0]][i.mode[1]] < f.last_wait)
        fault(Fault::set_twice, c,
              flag_text(k) + " may still be set: nothing tells the pipe that the last wait is over");
      f.is_set = true;
      f.set_by = i.index;
      f.known = c.known[i.mode[0]];
      return;
    }
    if (!f.is_set) fault(Fault::dead_lock, c, flag_text(k) + " is not set by an earlier instruction");
    f.is_set = false;
    f.waited = true;
    f.last_wait = now;
    Clock& mine = c.known[i.mode[1]];
    for (size_t q = 0; q < mine.size(); ++q) mine[q] = std::max(mine[q], f.known[q]);
  }

  void im2col_bounds(Core& c, const Concrete& i) {
    Region r{
        i.mode[0],        true, i.arg[0], i.arg[16] * REGIE_TILE_FRACTAL_BYTES, {(i.arg[14] + 15) / 16, 1, 1},
        {i.arg[18], 0, 0}};
    bounds(c, r);
  }

  void bounds(Core& c, const Region& r) {
    bool global = r.place >= REGIE_TILE_GM;
    uint64_t size = global ? p_.gm[r.place - REGIE_TILE_GM].bytes : p_.chip.size(r.place);
    if (static_cast<uint64_t>(r.end()) > size)
      fault(global ? Fault::out_of_gm : Fault::out_of_buffer, c,
            std::string(r.write ? "writes" : "reads") + " up to byte " + std::to_string(r.end()) + " of " +
                place_name(r.place) + ", which has " + std::to_string(size));
    if (global && !(p_.gm[r.place - REGIE_TILE_GM].access & (r.write ? REGIE_TILE_WRITE : REGIE_TILE_READ)))
      fault(Fault::gm_access, c,
            std::string(r.write ? "writes " : "reads ") + place_name(r.place) +
                ", which is not declared for it");
    uint64_t runs = static_cast<uint64_t>(r.n[0]);
    for (int64_t n : {r.n[1], r.n[2]}) runs = runs > kRunBudget ? runs : runs * static_cast<uint64_t>(n);
    runs_ += runs;
    if (runs_ <= kRunBudget) blocks_ += runs * (static_cast<uint64_t>(r.bytes) / REGIE_TILE_BLOCK_BYTES + 1);
    if (runs_ > kRunBudget || blocks_ > kBlockBudget)
      fault(Fault::budget, c, "the program moves more than can be followed");
  }

  void overlaps(Core& c, const Concrete& i) {
    const int64_t* a = i.arg;
    auto pair = [&](int64_t to, int64_t to_bytes, int64_t from, int64_t from_bytes, bool same, int64_t n1,
                    int64_t t1, int64_t f1, int64_t n2, int64_t t2, int64_t f2) {
      runs_ += static_cast<uint64_t>(n1 * n2);
      if (runs_ > kRunBudget) fault(Fault::budget, c, "the program moves more than can be followed");
      for (int64_t y = 0; y < n2; ++y)
        for (int64_t x = 0; x < n1; ++x) {
          int64_t t = to + x * t1 + y * t2, f = from + x * f1 + y * f2;
          if (t < f + from_bytes && f < t + to_bytes && !(same && t == f))
            fault(Fault::operand, c,
                  "its destination at " + std::to_string(t) + " overlaps its source at " + std::to_string(f) +
                      " in one repeat, and they are not the same elements");
        }
    };
    switch (i.op) {
      case REGIE_TILE_OP_BINARY:
      case REGIE_TILE_OP_COMPARE: {
        bool compare = i.op == REGIE_TILE_OP_COMPARE;
        int64_t e = bytes_of(i.mode[1]), n = a[3] * e, t = compare ? a[3] / 8 : n;
        pair(a[0], t, a[1], n, !compare, a[4], a[5], a[6], a[8], a[9], a[10]);
        if (i.mode[2] != REGIE_TILE_BY_SCALAR)
          pair(a[0], t, a[2], i.mode[2] == REGIE_TILE_BY_ROW ? e : n, !compare, a[4], a[5], a[7], a[8], a[9],
               a[11]);
        break;
      }
      case REGIE_TILE_OP_UNARY:
      case REGIE_TILE_OP_CAST: {
        int64_t f = a[2] * bytes_of(i.op == REGIE_TILE_OP_CAST ? i.mode[0] : i.mode[1]),
                t = a[2] * bytes_of(i.mode[1]);
        pair(a[0], t, a[1], f, f == t, a[3], a[4], a[5], a[6], a[7], a[8]);
        break;
      }
      case REGIE_TILE_OP_SELECT: {
        int64_t n = a[4] * bytes_of(i.mode[0]);
        pair(a[0], n, a[1], a[4] / 8, false, a[5], a[6], a[7], a[10], a[11], a[12]);
        pair(a[0], n, a[2], n, true, a[5], a[6], a[8], a[10], a[11], a[13]);
        if (i.mode[1] != REGIE_TILE_BY_SCALAR)
          pair(a[0], n, a[3], n, true, a[5], a[6], a[9], a[10], a[11], a[14]);
        break;
      }
      default:
        break;
    }
  }

  void touch(Core& c, const Concrete& i, const Region& r, uint32_t pipe, uint32_t now) {
    bool global = r.place >= REGIE_TILE_GM;
    if (!global && c.light) return;
    uint32_t other = pipe == REGIE_TILE_LOAD ? REGIE_TILE_STORE : REGIE_TILE_LOAD;
    std::string detail;
    for (int64_t z = 0; z < r.n[2]; ++z)
      for (int64_t y = 0; y < r.n[1]; ++y)
        for (int64_t x = 0; x < r.n[0]; ++x) {
          int64_t begin = r.at + x * r.stride[0] + y * r.stride[1] + z * r.stride[2];
          if (global) {
            gm_.access(r.place - REGIE_TILE_GM, static_cast<uint64_t>(begin),
                       static_cast<uint64_t>(begin + r.bytes), r.write, c.number, c.phase, pipe, now,
                       c.known[pipe][other], i.index);
            continue;
          }
          Fault f = r.write
                        ? c.shadow->write(r.place, begin, begin + r.bytes, pipe, now, c.known[pipe], i.index,
                                          detail)
                        : c.shadow->read(r.place, begin, begin + r.bytes, pipe, now, c.known[pipe], detail);
          if (f != Fault::none) fault(f, c, detail);
        }
  }

  void finish() {
    GlobalShadow::Race race = gm_.finish(r_.reads, r_.writes);
    if (race.found) {
      r_.fault = Fault::gm_race;
      r_.core = race.core;
      r_.instruction = race.instruction;
      r_.message = "core " + std::to_string(race.core) + ", " + named(race.instruction) +
                   (race.write ? ": writes" : ": reads") + " bytes " + std::to_string(race.begin) + ".." +
                   std::to_string(race.end) + " of " + place_name(REGIE_TILE_GM + race.buffer) +
                   " that core " + std::to_string(race.other_core) + ", " + named(race.other_instruction) +
                   (race.other_write ? " writes" : " reads") + ", in no order with it";
    } else if (o_.report_unused && r_.unused_bytes) {
      r_.fault = Fault::unused_write;
      r_.message = std::to_string(r_.unused_bytes) + " bytes on chip are written and never read";
    }
  }

  const Program& p_;
  const VerifyOptions& o_;
  Plan plan_;
  GlobalShadow gm_;
  VerifyResult r_;
  uint64_t budget_, runs_ = 0, blocks_ = 0;
  std::vector<Region> regions_;
};

}  // namespace

VerifyResult verify(const Program& program, const VerifyOptions& options) {
  if (std::string wrong = check_form(program); !wrong.empty()) {
    VerifyResult r;
    r.fault = Fault::form;
    r.message = wrong;
    return r;
  }
  return Verifier(program, options).run();
}

}  // namespace regie::tile
