// Which tasks of a model are ordered, derived from streams and events alone: vector clocks over the
// linearised program, the branches of control flow one after the other in the place of their If. For
// plan_check.cpp.
//
// Tasks of one stream run in order. A task that waits for another starts after it has ended. Control flow
// runs on the host, which waits for everything before it begins and before it goes on. Of two branches one
// runs, so seen from outside a task of a branch counts as its If.
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

  enum class Visit { kTask, kIfBegin, kBranchEnd, kIfEnd };
  // Calls `f` for each task in program order; `branch` for kBranchEnd. For an If, begin and end are one
  // event, and the end of a branch is an event of that branch after all its tasks.
  using Visitor = std::function<Status(Visit what, EventId who, const ModelTask& task, size_t branch)>;
  Status walk(const Visitor& f);
  // After walk: an event after everything.
  EventId end();

  bool before(EventId a, EventId b) const;        // a has ended before b starts; false if a == b
  bool visible(EventId a, EventId b) const;       // a runs whenever b does
  bool alternatives(EventId a, EventId b) const;  // in two branches of one If
  bool encloses(EventId a, EventId b) const;      // b is in a branch of the If a
  bool same_line(EventId a, EventId b) const;     // same stream, same program
  std::string name(EventId e) const;

 private:
  struct Event {
    uint32_t program = 0, task = REGIE_NONE;  // REGIE_NONE: end of a branch or of all
    uint32_t stream = REGIE_NONE;             // none: the host
    uint32_t ordinal = 0;                     // on its stream
    size_t clock = 0;                         // into clocks_
  };
  struct Program {
    uint32_t parent = REGIE_NONE;  // program
    EventId owner = 0;             // the If
    size_t depth = 0;
  };
  EventId add(uint32_t program, uint32_t task, uint32_t stream, const std::vector<uint32_t>& clock);
  void join(std::vector<uint32_t>* into, EventId event) const;
  EventId lift(EventId a,
               uint32_t program) const;  // a, or the If that holds it in an ancestor-or-equal of `program`
  bool is_ancestor(uint32_t ancestor, uint32_t program) const;

  const Model& m_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stream_ids_;
  std::vector<Event> events_;
  std::vector<uint32_t> clocks_;  // by event: per stream, how many of its tasks have ended
  std::vector<Program> programs_;
  std::vector<uint32_t> next_ordinal_;  // by stream
};

}  // namespace regie
