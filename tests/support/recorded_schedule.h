// What a scheduler told of its schedule: tasks with their streams in the order of issue, events with reasons.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugins/host.h"

namespace regie::test {

struct RecordedSchedule {
  std::vector<std::pair<uint32_t, uint32_t>> issued;  // task, stream
  std::vector<std::pair<uint32_t, uint32_t>> events;
  std::vector<std::string> reasons;

  // Forgets what there is and has the problem's answers written here.
  void record(regie_schedule_problem* p) {
    *this = {};
    p->issue = [](const regie_schedule_problem* self, uint32_t task, uint32_t stream) -> regie_status {
      static_cast<RecordedSchedule*>(self->state)->issued.emplace_back(task, stream);
      return REGIE_OK;
    };
    p->event = [](const regie_schedule_problem* self, uint32_t from, uint32_t to,
                  regie_str why) -> regie_status {
      auto& r = *static_cast<RecordedSchedule*>(self->state);
      r.events.emplace_back(from, to);
      r.reasons.emplace_back(view(why));
      return REGIE_OK;
    };
    p->state = this;
  }
};

}  // namespace regie::test
