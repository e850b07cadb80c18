// What a schedule orders, and with it which buffers share bytes and which could after one more wait.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reuse.h"

namespace streams {

// before(a, b): a has ended before b starts, by the streams' orders and what waits for what. A row of bits a
// task.
class Before {
 public:
  Before(const Network& network, const Schedule& schedule, const std::vector<Event>& events);
  bool operator()(uint32_t a, uint32_t b) const { return rows_[b * width_ + a / 64] >> (a % 64) & 1; }

 private:
  size_t width_;
  std::vector<uint64_t> rows_;
};

// Of each buffer, who touches it first and last: more than one where nothing orders them.
class Turns {
 public:
  // `before`: what holds whatever turns are taken.
  Turns(const std::vector<Buffer>& buffers, const Before& before);

  // They may share bytes.
  bool apart(const Before& before, uint32_t a, uint32_t b) const {
    return ordered(before, a, b) || ordered(before, b, a);
  }
  // It is not so yet, and could be without a cycle.
  bool possible(const Before& before, Turn turn) const;
  // Who has to wait for whom.
  void waits(Turn turn, std::vector<Event>* more) const;
  // Those of whom no two share bytes and who lie on each other up to the top of a plan, in all spaces.
  std::vector<uint32_t> stack(const Before& before, const Plan& plan) const;

 private:
  bool ordered(const Before& before, uint32_t a, uint32_t b) const;

  const std::vector<Buffer>& buffers_;
  std::vector<std::vector<uint32_t>> first_, last_;
};

// The schedule with more waits: the tasks stay where they are as far as that goes. None: a cycle.
std::optional<Schedule> with_waits(const Network& network, const Schedule& schedule,
                                   const std::vector<Event>& more);

}  // namespace streams
