#include "regie/tile/stream.h"

#include <algorithm>

namespace regie::tile {

Plan::Plan(const Program& program) {
  std::vector<uint32_t> open;
  steps.reserve(program.code.size());
  for (const Instruction& i : program.code) {
    Step s{i.op,
           i.mode,
           static_cast<uint32_t>(values.size()),
           static_cast<uint8_t>(i.args.size()),
           static_cast<uint32_t>(varying.size()),
           0,
           0};
    for (size_t k = 0; k < i.args.size(); ++k) {
      const Expr& e = i.args[k];
      values.push_back(e.fixed() ? e.constant : 0);
      if (e.fixed()) continue;
      varying.emplace_back(static_cast<uint32_t>(k), static_cast<uint32_t>(numbers.size()));
      numbers.push_back({e.constant, e.low, e.high, static_cast<uint32_t>(parts.size()),
                         static_cast<uint32_t>(e.terms.size())});
      for (const Term& t : e.terms) parts.push_back({t.factor, t.divisor, t.modulus, t.variable});
      ++s.varying;
    }
    has_barrier_ = has_barrier_ || i.op == REGIE_TILE_OP_BARRIER;
    uint32_t here = static_cast<uint32_t>(steps.size());
    if (i.op == REGIE_TILE_OP_LOOP) {
      open.push_back(here);
    } else if (i.op == REGIE_TILE_OP_END) {
      s.match = open.back();
      steps[open.back()].match = here + 1;
      open.pop_back();
    }
    steps.push_back(s);
  }
}

std::vector<int64_t> Plan::signature(uint32_t core, Same what) const {
  std::vector<int64_t> out;
  std::array<int64_t, REGIE_TILE_MAX_VARIABLES> most{};  // the largest value of each variable
  for (const Step& s : steps) {
    const InstructionInfo& info = *instruction_info(s.op);
    for (uint32_t k = s.first_varying; k < s.first_varying + s.varying; ++k) {
      auto [slot, number] = varying[k];
      const Number& n = numbers[number];
      int64_t own = n.constant, low = 0, high = 0;
      bool by_core = false;
      for (uint32_t q = n.first; q < n.first + n.count; ++q) {
        const Part& p = parts[q];
        int64_t top = (p.variable ? most[p.variable] : core) / p.divisor;
        if (p.variable == 0) {
          by_core = true;
          own += p.factor * (p.modulus ? top % p.modulus : top);
          continue;
        }
        if (p.modulus) top = std::min(top, p.modulus - 1);
        (p.factor < 0 ? low : high) += p.factor * top;
      }
      if (s.op == REGIE_TILE_OP_LOOP)
        most[s.mode[0]] =
            std::clamp<int64_t>(std::clamp(own + high, n.low, n.high) - 1, 0, REGIE_TILE_COUNT_LIMIT);
      if (!by_core) continue;
      bool address = info.args[slot].kind == ArgKind::address;
      if (what == Same::on_chip && address && s.op == REGIE_TILE_OP_COPY && s.mode[slot] >= REGIE_TILE_GM)
        continue;
      if (own + low >= n.high) {
        out.insert(out.end(), {1, n.high});
      } else if (own + high <= n.low) {
        out.insert(out.end(), {2, n.low});
      } else {
        bool only_alignment = what == Same::time && address && n.low == kNoLow && n.high == kNoHigh;
        out.insert(out.end(), {3, only_alignment ? (own % 32 + 32) % 32 : own});
      }
    }
    if (s.op == REGIE_TILE_OP_LOOP && s.varying == 0)
      most[s.mode[0]] = std::clamp<int64_t>(values[s.first_value] - 1, 0, REGIE_TILE_COUNT_LIMIT);
  }
  return out;
}

Stream::Stream(const Plan& plan, uint32_t core, uint64_t budget) : plan_(&plan), budget_(budget) {
  variables_[0] = core;
}

Stream::Result Stream::next(Concrete& out) {
  const Plan& p = *plan_;
  while (next_ < p.steps.size()) {
    const Plan::Step& s = p.steps[next_];
    if (used_++ >= budget_) return Result::budget;
    at_ = next_;
    if (s.op == REGIE_TILE_OP_END) {
      Open& o = open_.back();
      if (++variables_[o.variable] < o.trips) {
        next_ = s.match + 1;
      } else {
        open_.pop_back();
        ++next_;
      }
      continue;
    }
    for (uint32_t k = 0; k < s.values; ++k) args_[k] = p.values[s.first_value + k];
    for (uint32_t k = s.first_varying; k < s.first_varying + s.varying; ++k)
      args_[p.varying[k].first] = p.evaluate(p.varying[k].second, variables_.data());
    if (s.op == REGIE_TILE_OP_LOOP) {
      if (args_[0] < 0 || args_[0] >= REGIE_TILE_COUNT_LIMIT) return Result::bad_trips;
      if (args_[0] == 0) {
        next_ = s.match;
      } else {
        variables_[s.mode[0]] = 0;
        open_.push_back({s.mode[0], args_[0]});
        ++next_;
      }
      continue;
    }
    out.index = next_++;
    out.op = s.op;
    out.mode = s.mode;
    out.arg = args_.data();
    return Result::instruction;
  }
  return Result::end;
}

std::vector<uint32_t> Stream::open_loops() const {
  std::vector<uint32_t> v;
  for (const Open& o : open_) v.push_back(o.variable);
  return v;
}

}  // namespace regie::tile
