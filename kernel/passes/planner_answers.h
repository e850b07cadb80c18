// What memory planners have answered in this compile. A scheduler that weighs schedules has them planned with
// full effort (regie/c/reuse.h), and the memory driver plans the one that it chose once more, as does a
// pipeline that goes back to a schedule it had: the same numbers are asked about again, and a planner's
// answer is a function of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "plugins/host.h"
#include "regie/c/memory.h"

namespace regie {

class PlannerAnswers {
 public:
  // The planner's own answer to the problem, or the one that it gave to the same before. `options` live as
  // long as this. Answers to problems with a node budget, of which there may be many, are not kept.
  Status plan(const Provider<regie_memory_table>& planner, const regie_config* options,
              const regie_memory_problem& problem, std::vector<uint64_t>* offsets,
              regie_memory_answer* answer);

 private:
  struct Answer {
    std::vector<uint64_t> offsets;
    regie_memory_answer answer{};
  };
  std::map<std::string, Answer> known_;  // by everything that was asked, as bytes
  size_t bytes_ = 0;                     // of keys and offsets
};

}  // namespace regie
