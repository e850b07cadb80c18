// schedule-on-streams: takes the order that the scheduler before it chose, and lays the tasks on several
// streams of their devices where that is predicted to be faster, with the fewest events.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "bytes.h"
#include "events.h"
#include "lay.h"
#include "predict.h"
#include "regie/graph_view.hpp"
#include "regie/pass.hpp"
#include "regie_digests.h"
#include "share.h"

namespace {

using namespace regie::sdk;
using namespace streams;

constexpr double kLeastGain = 0.02;    // of the prediction for one stream
constexpr double kLeastGainNs = 1000;  // less is no reason
constexpr double kAsGood = 0.01;       // of the best: then the order for memory and fewer streams count
constexpr size_t kMostTasks = 50'000, kMostSearched = 4'000;

constexpr regie_str kRequires[] = {lit("scheduled")};
constexpr regie_str kEstablishes[] = {lit("scheduled")};
constexpr regie_option_info kOptions[] = {
    {lit("streams"), lit("auto"),
     lit("streams a device at most; auto: as many as the target gives its devices, one where it gives none")},
    {lit("events"), lit("fewest"), lit("every: an event for each need between streams, to compare with")},
    {lit("reuse"), lit("0.01"),
     lit("share of the predicted time that events may add which only let buffers share bytes; off: none, not "
         "even for a memory limit")},
    {lit("reuse-worth"), lit("2"),
     lit("a share of the time is given only for a share of all arenas that is so many times as large")},
};
constexpr regie_pass_info kInfos[] = {
    pass_info({
        .name = "schedule-on-streams",
        .doc = "Several streams a device where that is predicted to be faster, with the fewest events",
        .requires_ = kRequires,
        .establishes = kEstablishes,
        .options = kOptions,
    }),
};

struct Candidate : Way {
  uint32_t most = 1;
  Order order = Order::kGiven;
};

class Scheduler {
 public:
  Scheduler(const regie_schedule_problem& problem, const regie_host_scheduling* host, Problem& read,
            const regie_host_reuse* reuse, Rates rates, bool every)
      : p_(problem),
        g_(problem.graph),
        host_(host),
        q_(read),
        n_(read.network),
        every_(every),
        bytes_(problem, read, reuse),
        share_(read.network, bytes_, rates,
               [this](const Schedule& s, const std::vector<Event>& events) {
                 return !limited_ || !over_limit(events, event_ids(n_, s, events));
               }),
        reuse_(reuse) {
    limited_ =
        std::any_of(n_.devices.begin(), n_.devices.end(), [](const Device& d) { return d.events != 0; });
  }

  void run() {
    one_ = judged(one_stream(n_), 1, Order::kGiven);
    Candidate chosen = choose();
    if (every_) {
      chosen.events = all_events(n_, chosen.schedule);
      chosen.ns = predict(n_, chosen.schedule, chosen.events);
    } else if (several(chosen.schedule) && n_.tasks.size() <= kMostSearched) {
      bytes_.read();
      share_.decide(&chosen, others(chosen), one_.ns - least_gain(), one_.ns);
    }
    const std::vector<uint32_t> ids = event_ids(n_, chosen.schedule, chosen.events);
    if (const Device* full = over_limit(chosen.events, ids))
      throw Failure(REGIE_LIMIT,
                    "device '" + full->name + "' has " + std::to_string(full->events) +
                        " events, fewer than this graph needs at once" +
                        (every_ ? "; take events=every away" : "; place fewer operators across devices"));
    issue(chosen.schedule);
    for (size_t e = 0; e < chosen.events.size(); ++e) event(chosen, chosen.events[e], ids[e]);
    tell(chosen, ids);
  }

 private:
  Candidate judged(Schedule schedule, uint32_t most, Order order) const {
    Candidate c;
    c.events = fewest_events(n_, schedule);
    c.ns = predict(n_, schedule, c.events);
    c.schedule = std::move(schedule);
    c.most = most;
    c.order = order;
    return c;
  }

  // The best of several ways to lay the tasks, or one stream.
  Candidate choose() {
    uint32_t limit = 1;
    for (const Device& d : n_.devices) limit = std::max(limit, d.streams);
    if (limit < 2) return one_;
    if (n_.tasks.size() > kMostTasks) {
      why_ = "one stream a device: there are more than " + std::to_string(kMostTasks) + " tasks";
      return one_;
    }
    std::vector<Candidate>& all = all_;
    double best = one_.ns;
    bool refused = false;
    for (uint32_t most : {2u, 3u, 4u, 8u, 16u}) {
      if (most > limit && most > 2) break;
      for (Order order : {Order::kGiven, Order::kFirst, Order::kHostLast}) {
        if (order != Order::kGiven && n_.tasks.size() > kMostSearched) continue;
        Candidate c = judged(lay(n_, most, order), most, order);
        if (limited_ && over_limit(c.events, event_ids(n_, c.schedule, c.events))) {
          refused = true;
          continue;
        }
        best = std::min(best, c.ns);
        all.push_back(std::move(c));
      }
    }
    if (one_.ns - best < least_gain()) {
      why_ = "one stream a device: " + us(one_.ns) + "; the best of " + std::to_string(all.size()) +
             " ways with more takes " + us(best) +
             (refused ? ", and others need more events than there are" : "");
      return one_;
    }
    const double enough = std::min(best + kAsGood * one_.ns, one_.ns);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& c) {
      return c.order == Order::kGiven && c.ns <= enough;
    });
    const auto any = std::find_if(all.begin(), all.end(), [&](const Candidate& c) { return c.ns <= enough; });
    return found != all.end() ? *found : *any;
  }

  double least_gain() const { return std::max(kLeastGainNs, kLeastGain * one_.ns); }

  // More streams than devices.
  bool several(const Schedule& s) const {
    return std::any_of(s.stream.begin(), s.stream.end(), [](uint32_t stream) { return stream != 0; });
  }

  // Further ways with several streams that are faster than one, each as it is once, the fastest first.
  std::vector<Way> others(const Candidate& chosen) const {
    std::vector<Way> ways;
    const auto same = [](const Way& a, const Way& b) {
      return a.schedule.order == b.schedule.order && a.schedule.stream == b.schedule.stream;
    };
    for (const Candidate& c : all_) {
      if (c.ns > one_.ns || !several(c.schedule) || same(c, chosen)) continue;
      if (std::none_of(ways.begin(), ways.end(), [&](const Way& w) { return same(w, c); })) ways.push_back(c);
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.ns < b.ns; });
    return ways;
  }

  // A device that would need more flags at once than it has.
  const Device* over_limit(const std::vector<Event>& events, const std::vector<uint32_t>& ids) const {
    for (size_t e = 0; e < events.size(); ++e) {
      const Device& d = n_.devices[n_.tasks[events[e].from].device];
      if (d.events != 0 && ids[e] >= d.events) return &d;
    }
    return nullptr;
  }

  void issue(const Schedule& s) {
    for (const regie_reuse_step& step : steps_of(p_, q_, s)) check(p_.issue(&p_, step.task, step.stream));
  }

  void event(const Candidate& c, const Event& e, uint32_t id) const {
    std::string reason = place(c.schedule, e.to) + " needs " + place(c.schedule, e.from);
    if (every_)
      reason += ", whatever else implies it";
    else if (share_.for_bytes(e))
      reason = place(c.schedule, e.to) + " waits for " + place(c.schedule, e.from) + " " + share_.reason(e);
    else
      reason += ", and nothing that it waits for implies that";
    reason += "; flag " + std::to_string(id);
    check(p_.event(&p_, q_.task_of[e.from], q_.task_of[e.to], str(reason)));
  }

  void tell(const Candidate& c, const std::vector<uint32_t>& ids) {
    if (!host_) return;
    std::set<std::pair<uint32_t, uint32_t>> used, flags;
    for (uint32_t t : c.schedule.order) used.emplace(n_.tasks[t].device, c.schedule.stream[t]);
    for (size_t e = 0; e < ids.size(); ++e) flags.emplace(n_.tasks[c.events[e].from].device, ids[e]);
    std::set<uint32_t> devices;
    for (const auto& [device, stream] : used) devices.insert(device);
    if (used.size() > devices.size()) {
      note(REGIE_NONE, std::to_string(used.size()) + " streams: predicted " + us(c.ns) +
                           ", on one a device " + us(one_.ns) + "; " + std::to_string(c.events.size()) +
                           " events, " + std::to_string(flags.size()) + " of them at once");
      explain_streams(c.schedule);
    } else if (!why_.empty()) {
      note(REGIE_NONE, why_);
    }
    if (!every_) tell_of_bytes();
    check(host_->predict(&p_, c.ns, one_.ns, static_cast<uint32_t>(flags.size())));
  }

  void tell_of_bytes() const {
    uint32_t events = 0;
    uint64_t bytes = 0;
    double ns = 0;
    for (const std::string& line : share_.notes(&events, &bytes, &ns))
      check(host_->note(&p_, REGIE_NONE, lit("reuse"), str(line)));
    for (const std::string& line : share_.refused())
      check(host_->note(&p_, REGIE_NONE, lit("reuse-refused"), str(line)));
    if (reuse_ && events) check(reuse_->chosen(&p_, events, bytes, ns));
  }

  // Where a task leaves the streams of those that it needs.
  void explain_streams(const Schedule& s) const {
    std::vector<uint32_t> last(n_.devices.size(), REGIE_NONE);
    for (uint32_t t : s.order) {
      const Task& task = n_.tasks[t];
      const bool goes_on = std::any_of(task.after.begin(), task.after.end(), [&](uint32_t a) {
        return n_.tasks[a].device == task.device && s.stream[a] == s.stream[t];
      });
      const uint32_t beside = last[task.device];
      if (!goes_on && beside != REGIE_NONE && s.stream[beside] != s.stream[t])
        note(q_.task_of[t], "on stream " + std::to_string(s.stream[t]) + " of " +
                                n_.devices[task.device].name + ", beside " + place(s, beside));
      last[task.device] = t;
    }
  }

  void note(uint32_t task, const std::string& text) const {
    check(host_->note(&p_, task, lit("stream"), str(text)));
  }

  std::string place(const Schedule& s, uint32_t t) const {
    return g_.describe(g_.node(p_.tasks[q_.task_of[t]].node)) + " on " + n_.devices[n_.tasks[t].device].name +
           " stream " + std::to_string(s.stream[t]);
  }

  const regie_schedule_problem& p_;
  GraphView g_;
  const regie_host_scheduling* host_;
  const Problem& q_;
  const Network& n_;
  const bool every_;
  bool limited_ = false;  // some device has so many events and no more
  Bytes bytes_;
  Share share_;
  const regie_host_reuse* reuse_ = nullptr;
  std::vector<Candidate> all_;
  Candidate one_;
  std::string why_;
};

uint32_t wanted_streams(const Config& config) {
  const auto text = config.find("streams");
  if (!text || *text == "auto") return 0;
  const int64_t n = config.integer("streams", 0);
  if (n < 1 || n > 1024)
    throw Failure(REGIE_INVALID_INPUT,
                  "option 'streams' must be auto or 1 to 1024, not '" + std::string(*text) + "'");
  return static_cast<uint32_t>(n);
}

bool every_event(const Config& config) {
  const std::string_view text = config.find("events").value_or("fewest");
  if (text != "fewest" && text != "every")
    throw Failure(REGIE_INVALID_INPUT,
                  "option 'events' must be fewest or every, not '" + std::string(text) + "'");
  return text == "every";
}

regie_status schedule(uint32_t, const regie_host* host, const regie_config* options,
                      const regie_schedule_problem* problem) {
  return guard(host, [&] {
    const Config config(options);
    const auto* about = static_cast<const regie_host_scheduling*>(
        host->find ? host->find(REGIE_HOST_SCHEDULING_ID) : nullptr);
    if (about && about->struct_size < sizeof(regie_host_scheduling)) about = nullptr;
    const auto* reuse =
        static_cast<const regie_host_reuse*>(host->find ? host->find(REGIE_HOST_REUSE_ID) : nullptr);
    if (reuse && reuse->struct_size < sizeof(regie_host_reuse)) reuse = nullptr;
    Problem read = streams::read(*problem, options, about, wanted_streams(config));
    Scheduler(*problem, about, read, reuse, rates_of(config), every_event(config)).run();
  });
}

constexpr regie_scheduler_table kTable = {head(sizeof(regie_scheduler_table), REGIE_DIGEST_SCHEDULER), 1, 0,
                                          kInfos, schedule};

const void* find(const char* id) { return find_one(id, REGIE_SCHEDULER_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
