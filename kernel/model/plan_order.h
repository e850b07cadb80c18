// Which tasks of a model are ordered, derived from streams and events alone: vector clocks over the
// linearised program, the branches of control flow one after the other in the place of their If, and two
// iterations of a loop in its place. For plan_check.cpp.
//
// Tasks of one stream run in order. A task that waits for another starts after it has ended. Control flow
// runs on the host, which waits for everything before it begins, between two iterations and before it goes
// on. Of two branches one runs, and iterations may be none, so seen from outside a task inside counts as its
// If or loop.
//
// Two iterations show what any number does: each begins with what the ones before it have left, and from the
// second on that is the same. For the same reason a loop inside of a second iteration is walked once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/model.h"

namespace regie {

using EventId = uint32_t;

class Order {
 public:
  explicit Order(const Model& model);

  // kTurnBegin, kTurnEnd: of an iteration, `branch` counts them.
  enum class Visit { kTask, kIfBegin, kBranchEnd, kIfEnd, kLoopBegin, kTurnBegin, kTurnEnd };
  // Calls `f` for each task in program order; `branch` for kBranchEnd. For an If, begin and end are one
  // event, and the end of a branch is an event of that branch after all its tasks. For a loop, begin and the
  // begin of each iteration are one event, that of the loop, and the end of an iteration one inside of it.
  using Visitor = std::function<Status(Visit what, EventId who, const ModelTask& task, size_t branch)>;
  Status walk(const Visitor& f);
  // After walk: an event after everything.
  EventId end();

  bool before(EventId a, EventId b) const;        // a has ended before b starts; false if a == b
  bool visible(EventId a, EventId b) const;       // a runs whenever b does
  bool alternatives(EventId a, EventId b) const;  // in two branches of one If
  bool in_turns(EventId a, EventId b) const;      // in two iterations of one loop
  bool in_loop(EventId a, EventId b) const;       // seen from b, a is in an iteration, else in a branch
  bool encloses(EventId a, EventId b) const;   // b is in a branch of the If a, or an iteration of the loop a
  bool same_line(EventId a, EventId b) const;  // same stream, same run of a program
  EventId owner(EventId e) const {
    return runs_[events_[e].run].owner;
  }  // the If or loop that e is inside of
  std::string name(EventId e) const;

 private:
  struct Event {
    uint32_t run = 0, task = REGIE_NONE;  // REGIE_NONE: end of a branch, an iteration or of all
    uint32_t stream = REGIE_NONE;         // none: the host
    uint32_t ordinal = 0;                 // on its stream
    size_t clock = 0;                     // into clocks_
  };
  struct Run {  // of a program: a branch, or one iteration
    uint32_t program = 0;
    uint32_t parent = REGIE_NONE;  // run
    EventId owner = 0;             // the If or loop
    size_t depth = 0;
    bool of_loop = false;
  };
  // The two runs by which a and b differ, with one owner; false if there are none.
  bool fork(EventId a, EventId b, bool of_loop) const;
  EventId add(uint32_t run, uint32_t task, uint32_t stream, const std::vector<uint32_t>& clock);
  void join(std::vector<uint32_t>* into, EventId event) const;
  // a, or the If or loop that holds it in an ancestor-or-equal of `run`
  EventId lift(EventId a, uint32_t run) const;
  bool is_ancestor(uint32_t ancestor, uint32_t run) const;

  const Model& m_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stream_ids_;
  std::vector<Event> events_;
  std::vector<uint32_t> clocks_;  // by event: per stream, how many of its tasks have ended
  std::vector<Run> runs_;
  std::vector<uint32_t> next_ordinal_;  // by stream
};

}  // namespace regie
