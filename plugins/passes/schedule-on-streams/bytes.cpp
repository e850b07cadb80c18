#include "bytes.h"

#include <algorithm>

#include "regie/plugin.hpp"

namespace streams {

using namespace regie::sdk;

std::vector<regie_reuse_step> steps_of(const regie_schedule_problem& problem, const Problem& read,
                                       const Schedule& s) {
  const Network& n = read.network;
  std::vector<uint32_t> place(n.tasks.size(), 0);
  for (uint32_t k = 0; k < s.order.size(); ++k) place[s.order[k]] = k + 1;
  std::vector<std::vector<uint32_t>> idle(s.order.size() + 1);  // by place, in the order of the problem
  for (uint32_t t = 0; t < problem.task_count; ++t) {
    if (read.network_of[t] != REGIE_NONE) continue;
    uint32_t at = 0;
    for (uint32_t a : read.real_after[t]) at = std::max(at, place[a]);
    idle[at].push_back(t);
  }
  std::vector<regie_reuse_step> steps;
  for (uint32_t at = 0; at <= s.order.size(); ++at) {
    if (at) steps.push_back({read.task_of[s.order[at - 1]], s.stream[s.order[at - 1]]});
    for (uint32_t t : idle[at]) {
      uint32_t stream = 0, last = 0;
      for (uint32_t a : read.real_after[t])
        if (n.tasks[a].device == problem.tasks[t].device && place[a] > last) {
          last = place[a];
          stream = s.stream[a];
        }
      steps.push_back({t, stream});
    }
  }
  return steps;
}

void Bytes::read() {
  if (!host_ || told_) return;
  check(host_->buffers(&p_, &told_, &count_));
  for (uint32_t b = 0; b < count_; ++b) {
    const regie_reuse_buffer& told = told_[b];
    Buffer made;
    made.size = told.size;
    made.alignment = told.alignment;
    made.space = told.space;
    made.kept = told.kept != 0;
    for (uint32_t i = 0; i < told.touch_count; ++i) {
      const uint32_t task = told.touching[i];
      if (task >= p_.task_count || q_.network_of[task] == REGIE_NONE)
        throw Failure(REGIE_INTERNAL, "a task that runs nothing touches " + name(b));
      made.touching.push_back(q_.network_of[task]);
    }
    if (made.touching.empty()) throw Failure(REGIE_INTERNAL, "no task touches " + name(b));
    buffers_.push_back(std::move(made));
  }
}

uint64_t Bytes::limit() const { return host_ ? host_->limit(&p_) : 0; }

Planner Bytes::planner() const {
  return [this](const Schedule& schedule, const std::vector<Event>& events, bool thorough) {
    const std::vector<regie_reuse_step> steps = steps_of(p_, q_, schedule);
    std::vector<regie_reuse_event> told;
    for (const Event& e : events) told.push_back({q_.task_of[e.from], q_.task_of[e.to]});
    std::pair<Key, Key> key;
    for (const regie_reuse_step& k : steps) key.first.emplace_back(k.task, k.stream);
    for (const regie_reuse_event& e : told) key.second.emplace_back(e.from, e.to);
    if (thorough)
      if (const auto at = known_.find(key); at != known_.end()) return at->second;
    regie_reuse_schedule asked{};
    asked.struct_size = sizeof(asked);
    asked.event_count = static_cast<uint32_t>(told.size());
    asked.steps = steps.data();
    asked.events = told.data();
    asked.thorough = thorough;
    Plan plan;
    plan.offsets.resize(buffers_.size());
    check(host_->plan(&p_, &asked, &plan.bytes, plan.offsets.data()));
    if (thorough) known_.emplace(std::move(key), plan);
    return plan;
  };
}

std::string Bytes::name(uint32_t buffer) const {
  const regie_reuse_buffer& b = told_[buffer];
  if (b.value == REGIE_NONE)
    return "the room that " + g_.describe(g_.node(p_.tasks[b.touching[0]].node)) + " works in";
  return g_.describe(g_.value(b.value));
}

}  // namespace streams
