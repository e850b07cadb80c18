// schedule-in-order and schedule-for-memory: one stream a device, tasks in program order or in one that keeps
// fewer bytes alive, and only the events that nothing else implies.
#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "memory_model.h"
#include "memory_order.h"
#include "recompute.h"
#include "regie/c/scheduler.h"
#include "regie/graph_view.hpp"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_str kEstablishes[] = {lit("scheduled")};
constexpr regie_option_info kOverwrite = {
    lit("overwrite"), lit("1"),
    lit("1: results are written over what is read for the last time, where the engine says that they may")};
constexpr regie_option_info kInOrderOptions[] = {
    {lit("overwrite"), lit("0"),
     lit("1: results are written over what is read for the last time, where the engine says that they may")},
};
constexpr regie_option_info kOptions[] = {
    {lit("budget"), lit("16000000"),
     lit("steps that the search for an order may take: about a quarter of a second")},
    kOverwrite,
    {lit("recompute"), lit("0.025"),
     lit("share of the predicted time of all tasks that computing values again may add, where that lowers "
         "the "
         "peak; 0: none, but for a memory limit")},
    {lit("recompute-worth"), lit("2"),
     lit("a share of the time is given only for a share of the peak that is so many times as large")},
    {lit("recompute-budget"), lit("16000000"),
     lit("steps that the search for what to compute again may take; without a memory limit, of a graph of "
         "more than a thousand tasks as many times less as it has thousands")},
};

enum Scheduler : uint32_t { kInOrder, kForMemory };
constexpr regie_pass_info kInfos[] = {
    pass_info({
        .name = "schedule-in-order",
        .doc = "One stream a device in program order, with events only where no other order implies them",
        .requires_ = kRequires,
        .establishes = kEstablishes,
        .options = kInOrderOptions,
    }),
    pass_info({
        .name = "schedule-for-memory",
        .doc = "The same in an order that keeps fewer bytes alive, where there is one device",
        .requires_ = kRequires,
        .establishes = kEstablishes,
        .options = kOptions,
    }),
};

// Vector clocks. A device's clock says, for each device, how many of its tasks are known to have ended before
// the next task of this one starts. A task's clock is that of its device right after it, so waiting for a
// task brings in all that it had waited for.
class Schedule {
 public:
  Schedule(const regie_schedule_problem* p)
      : problem_(p),
        graph_(p->graph),
        devices_(p->device_count),
        known_(static_cast<size_t>(p->device_count) * p->device_count, 0),
        after_task_(static_cast<size_t>(p->task_count) * p->device_count, 0),
        place_(p->task_count, 0),
        issued_(p->device_count, 0),
        events_(p->device_count, 0) {}

  // `issued` is called after each task.
  template <class F>
  void run(const order::Order& order, F&& issued) {
    for (uint32_t t : order) {
      issue(t);
      issued(t);
    }
  }

 private:
  uint64_t* device_clock(uint32_t d) { return &known_[static_cast<size_t>(d) * devices_]; }
  uint64_t* task_clock(uint32_t t) { return &after_task_[static_cast<size_t>(t) * devices_]; }

  void issue(uint32_t t) {
    const regie_schedule_task& task = problem_->tasks[t];
    if (task.device >= devices_)
      throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " has no device");
    uint64_t* known = device_clock(task.device);

    check(problem_->issue(problem_, t, 0));
    // Latest first: a later task may have waited for an earlier one, never the other way round.
    std::vector<uint32_t> after(task.after, task.after + task.after_count);
    std::sort(after.begin(), after.end(), std::greater<>());
    for (uint32_t a : after) {
      if (a >= problem_->task_count || place_[a] == 0)
        throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " is before a task that it needs");
      const uint32_t from = problem_->tasks[a].device;
      if (from == task.device || known[from] >= place_[a]) continue;
      wait(a, t);
      for (uint32_t d = 0; d < devices_; ++d) known[d] = std::max(known[d], task_clock(a)[d]);
    }
    place_[t] = ++issued_[task.device];
    known[task.device] = place_[t];
    std::copy(known, known + devices_, task_clock(t));
  }

  void wait(uint32_t from, uint32_t to) {
    const uint32_t device = problem_->tasks[from].device;
    const regie_schedule_device& d = problem_->devices[device];
    if (d.max_events != 0 && ++events_[device] > d.max_events)
      throw Failure(REGIE_LIMIT,
                    "device '" + std::string(sv(d.name)) + "' has " + std::to_string(d.max_events) +
                        " events, fewer than this graph needs; place fewer operators across devices");
    const std::string reason = describe(to) + " on " + device_name(to) + " needs " + describe(from) + " on " +
                               device_name(from) + ", and nothing that it waits for implies that";
    check(problem_->event(problem_, from, to, str(reason)));
  }

  std::string describe(uint32_t task) const {
    return graph_.describe(graph_.node(problem_->tasks[task].node));
  }
  std::string device_name(uint32_t task) const {
    return std::string(sv(problem_->devices[problem_->tasks[task].device].name));
  }

  const regie_schedule_problem* problem_;
  GraphView graph_;
  const uint32_t devices_;
  std::vector<uint64_t> known_;       // device x device
  std::vector<uint64_t> after_task_;  // task x device
  std::vector<uint64_t> place_;       // of a task on its device, from 1
  std::vector<uint64_t> issued_;      // tasks a device
  std::vector<uint64_t> events_;      // events a device
};

const regie_host_sharing* sharing_of(const regie_host* host) {
  const auto* s =
      static_cast<const regie_host_sharing*>(host->find ? host->find(REGIE_HOST_SHARING_ID) : nullptr);
  return s && s->struct_size >= sizeof(regie_host_sharing) ? s : nullptr;
}

const regie_host_recompute* recompute_of(const regie_host* host) {
  const auto* r =
      static_cast<const regie_host_recompute*>(host->find ? host->find(REGIE_HOST_RECOMPUTE_ID) : nullptr);
  return r && r->struct_size >= sizeof(regie_host_recompute) ? r : nullptr;
}

uint64_t natural(const Config& config, const char* name, int64_t otherwise) {
  const int64_t number = config.integer(name, otherwise);
  if (number < 0)
    throw Failure(REGIE_INVALID_INPUT, "option '" + std::string(name) + "' must not be negative");
  return static_cast<uint64_t>(number);
}

double share(const Config& config, const char* name, double otherwise) {
  const auto text = config.find(name);
  if (!text) return otherwise;
  double number = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && end == text->data() + text->size() && number >= 0 && number <= 1e6)
    return number;
  throw Failure(
      REGIE_INVALID_INPUT,
      "option '" + std::string(name) + "' must be a number of at least 0, not '" + std::string(*text) + "'");
}

// Asks the host to have values computed again, if that is wanted and something comes of it.
void ask_for_repeats(const regie_schedule_problem& problem, const regie_host_recompute& host,
                     const Config& config, const order::Order& order, order::Region* region) {
  uint64_t bytes = 0;
  const uint32_t wanted = host.wanted(&problem, &bytes);
  order::RecomputeGoal goal;
  for (uint32_t t = 0; t < problem.task_count; ++t) goal.total += std::max(problem.tasks[t].cost_ns, 1.0);
  goal.cost = share(config, "recompute", 0.025) * goal.total;
  goal.worth = share(config, "recompute-worth", 2);
  const uint64_t budget = natural(config, "recompute-budget", 16'000'000);
  if (wanted == REGIE_RECOMPUTE_NOT || (wanted == REGIE_RECOMPUTE_PAYS && goal.cost <= 0)) return;
  order::add_repeats(problem, host, region);
  order::Recomputed made;
  if (wanted == REGIE_RECOMPUTE_PAYS) {
    // What a window around the peak gives is the same share of the whole peak in a large graph or a small
    // one, while all that is done beside the search takes longer.
    made = order::recompute(*region, order, goal, budget / (1 + problem.task_count / 1000));
  } else {
    // Little time first: what costs more is looked for only if it takes more.
    goal.bytes = static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX / 2));
    goal.worth = 0;
    for (double most : {0.01, 0.04, 0.16, 0.64, 2.56, 10.24}) {
      goal.cost = most * goal.total;
      order::Recomputed more = order::recompute(*region, order, goal, budget);
      if (made.steps.empty() || more.peak < made.peak) made = std::move(more);
      if (made.peak <= goal.bytes) break;
    }
  }
  if (made.cost > 0)
    check(host.repeat(&problem, made.steps.data(), static_cast<uint32_t>(made.steps.size())));
}

regie_status schedule(uint32_t index, const regie_host* host, const regie_config* options,
                      const regie_schedule_problem* problem) {
  return guard(host, [&] {
    const Config config(options);
    const bool overwrite = config.integer("overwrite", index == kForMemory) != 0;
    order::Order order(problem->task_count);
    for (uint32_t t = 0; t < order.size(); ++t) order[t] = t;
    order::Region region;
    const bool choose = index == kForMemory && order::one_device(*problem);
    const regie_host_sharing* sharing = sharing_of(host);
    if (choose || overwrite) region = order::memory_model(*problem, host, sharing, choose);
    if (!overwrite) region.overwrites.clear();
    if (choose) {
      const regie_host_recompute* again = recompute_of(host);
      order = order::for_memory(region, natural(config, "budget", 16'000'000));
      if (again) ask_for_repeats(*problem, *again, config, order, &region);
    }
    std::vector<order::Overwrite> written;
    if (!region.overwrites.empty()) order::Replay(region).run(order, 0, &written);
    const GraphView graph(problem->graph);
    size_t next = 0;
    Schedule(problem).run(order, [&](uint32_t task) {
      for (; next < written.size() && written[next].task == task; ++next) {
        const order::Overwrite& w = written[next];
        check(sharing->write_over(problem, task, w.result, order::root_of(graph, w.value)));
      }
    });
  });
}

constexpr regie_scheduler_table kTable = {head(sizeof(regie_scheduler_table), REGIE_DIGEST_SCHEDULER), 2, 0,
                                          kInfos, schedule};

const void* find(const char* id) { return find_one(id, REGIE_SCHEDULER_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
