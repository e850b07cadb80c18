// Events that only let buffers share bytes: small graphs with known answers, and random ones on which every
// set of such events is tried. The plan of a schedule is the best of all ways to stack the buffers, found
// here.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>

#include "schedule-on-streams/events.h"
#include "schedule-on-streams/predict.h"
#include "schedule-on-streams/reuse.h"
#include "support/stream_networks.h"

namespace regie {
namespace {

using streams::Buffer;
using streams::Event;
using streams::Network;
using streams::Plan;
using streams::Reuse;
using streams::ReuseGoal;
using streams::Schedule;
using test::Matrix;
using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

bool all_before(const Matrix& before, const Buffer& a, const Buffer& b) {
  if (a.kept) return false;
  for (uint32_t x : a.touching)
    for (uint32_t y : b.touching)
      if (!before[x][y]) return false;
  return true;
}

bool share(const Matrix& before, const Buffer& a, const Buffer& b) {
  return all_before(before, a, b) || all_before(before, b, a);
}

// The least arena: of every order in which buffers are put down, each upon those below that it must not
// touch.
Plan best_plan(const std::vector<Buffer>& buffers, const Matrix& before) {
  const size_t count = buffers.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<bool>> meet(count, std::vector<bool>(count));
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < count; ++b) meet[a][b] = a != b && !share(before, buffers[a], buffers[b]);
  Plan best;
  best.bytes = UINT64_MAX;
  do {
    Plan plan;
    plan.offsets.assign(count, 0);
    for (size_t k = 0; k < count; ++k) {
      uint64_t& at = plan.offsets[order[k]];
      for (size_t j = 0; j < k; ++j)
        if (meet[order[k]][order[j]]) at = std::max(at, plan.offsets[order[j]] + buffers[order[j]].size);
      plan.bytes = std::max(plan.bytes, at + buffers[order[k]].size);
    }
    if (plan.bytes < best.bytes) best = plan;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

streams::Planner planner(const Network& n, const std::vector<Buffer>& buffers) {
  return [&](const Schedule& s, const std::vector<Event>& events, bool) {
    return best_plan(buffers, test::reach(n, s, test::pairs_of(events)));
  };
}

// What each task makes and who reads it; some work in room of their own.
std::vector<Buffer> random_buffers(std::mt19937_64& random, const Network& n, size_t most) {
  std::vector<Buffer> buffers;
  for (uint32_t t = 0; t < n.tasks.size() && buffers.size() < most; ++t) {
    if (random() % 4 == 0) continue;
    Buffer b;
    b.touching = {t};
    b.size = 64 * (1 + random() % 8);
    b.space = n.tasks[t].device;
    if (random() % 4)
      for (uint32_t r = t + 1; r < n.tasks.size(); ++r)
        if (std::count(n.tasks[r].after.begin(), n.tasks[r].after.end(), t)) b.touching.push_back(r);
    b.kept = random() % 12 == 0;
    buffers.push_back(b);
  }
  return buffers;
}

// The schedule when `pairs` of tasks must wait as well, tasks as near to their places as that lets them be.
std::optional<Schedule> delayed(const Network& n, const Schedule& s, const Pairs& pairs) {
  Schedule made;
  made.stream = s.stream;
  std::vector<bool> done(n.tasks.size(), false);
  while (made.order.size() < s.order.size()) {
    const size_t before = made.order.size();
    for (size_t k = 0; k < s.order.size() && made.order.size() == before; ++k) {
      const uint32_t t = s.order[k];
      bool ready = !done[t];
      for (size_t i = 0; i < k; ++i)
        if (test::one_line(n, s, s.order[i], t)) ready = ready && done[s.order[i]];
      for (uint32_t a : n.tasks[t].after) ready = ready && done[a];
      for (const auto& [from, to] : pairs)
        if (to == t) ready = ready && done[from];
      if (!ready) continue;
      done[t] = true;
      made.order.push_back(t);
    }
    if (made.order.size() == before) return std::nullopt;
  }
  return made;
}

struct Judged {
  double ns;
  uint64_t bytes;
};

std::optional<Judged> judged(const Network& n, const Schedule& s, const std::vector<Buffer>& buffers,
                             const Pairs& more, double most_ns) {
  const auto schedule = delayed(n, s, more);
  if (!schedule) return std::nullopt;
  Network needs = n;
  for (const auto& [from, to] : more) needs.tasks[to].after.push_back(from);
  const std::vector<Event> events = streams::fewest_events(needs, *schedule);
  const double ns = streams::predict(n, *schedule, events);
  if (!more.empty() && ns > most_ns) return std::nullopt;
  return Judged{ns, best_plan(buffers, test::reach(n, *schedule, test::pairs_of(events))).bytes};
}

double objective(const Judged& j, const Judged& none, double worth) {
  return static_cast<double>(j.bytes) / static_cast<double>(none.bytes) / worth +
         std::max(j.ns, none.ns) / none.ns;
}

// The pairs of tasks that have to wait so that `b` may lie where `a` lay.
void add_waits(const Buffer& a, const Buffer& b, Pairs* pairs) {
  for (uint32_t x : a.touching)
    for (uint32_t y : b.touching) pairs->emplace_back(x, y);
}

// What must hold of each answer, whatever it is.
void check_answer(const Reuse& r, const Network& n, const Schedule& s, const std::vector<Buffer>& buffers,
                  double most_ns) {
  const Matrix all = test::reach(n, r.schedule, test::pairs_of(r.events));
  const Matrix base = test::reach(n, s, test::needs(n));
  for (size_t a = 0; a < n.tasks.size(); ++a)
    for (size_t b = 0; b < n.tasks.size(); ++b) {
      ASSERT_TRUE(!base[a][b] || all[a][b]) << "the schedule's own order holds";
      ASSERT_FALSE(all[a][b] && all[b][a]);
    }
  ASSERT_EQ(r.schedule.stream, s.stream);
  ASSERT_LE(r.ns, std::max(most_ns, r.ns_before));
  ASSERT_EQ(r.ns, streams::predict(n, r.schedule, r.events));
  ASSERT_EQ(r.bytes, best_plan(buffers, all).bytes);
  // No event can go without ordering less.
  for (size_t e = 0; e < r.events.size(); ++e) {
    std::vector<Event> fewer = r.events;
    fewer.erase(fewer.begin() + static_cast<long>(e));
    ASSERT_NE(test::reach(n, r.schedule, test::pairs_of(fewer)), all) << "event " << e;
  }
  for (const Reuse::Weighed& w : r.taken)
    ASSERT_TRUE(all_before(all, buffers[w.turn.first], buffers[w.turn.second]));
}

TEST(StreamReuse, IsAsGoodAsEverySetOfTurns) {
  size_t every = 0, taken = 0, several = 0, costly = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    const Network n =
        test::random_network(random, 5 + static_cast<uint32_t>(seed % 4), 1 + seed % 2, 3 + seed % 3);
    const Schedule s = test::random_schedule(random, n, 2 + seed % 2);
    const std::vector<Buffer> buffers = random_buffers(random, n, 5);
    if (buffers.empty()) continue;
    const auto none = judged(n, s, buffers, {}, 0);
    ASSERT_TRUE(none);
    ReuseGoal goal;
    goal.worth = 1 + static_cast<double>(random() % 3);
    goal.most_ns = none->ns * (1 + static_cast<double>(random() % 3) / 10);
    const streams::Planner plan = planner(n, buffers);
    const Reuse r = streams::weigh_reuse(n, s, buffers, plan, goal);
    ASSERT_NO_FATAL_FAILURE(check_answer(r, n, s, buffers, goal.most_ns)) << "seed " << seed;
    ASSERT_EQ(r.ns_before, none->ns);
    ASSERT_EQ(r.bytes_before, none->bytes);
    const double ours = objective({r.ns, r.bytes}, *none, goal.worth);
    ASSERT_LE(ours, objective(*none, *none, goal.worth)) << "seed " << seed;
    const Matrix before = test::reach(n, s, test::needs(n));
    Pairs open;
    for (uint32_t a = 0; a < buffers.size(); ++a)
      for (uint32_t b = 0; b < buffers.size(); ++b)
        if (a != b && !buffers[a].kept && buffers[a].space == buffers[b].space &&
            !all_before(before, buffers[a], buffers[b]))
          open.emplace_back(a, b);
    if (open.size() > 9) continue;
    double best = ours + 1;
    for (uint32_t bits = 0; bits < uint32_t{1} << open.size(); ++bits) {
      Pairs waits;
      for (size_t k = 0; k < open.size(); ++k)
        if (bits >> k & 1) add_waits(buffers[open[k].first], buffers[open[k].second], &waits);
      if (const auto j = judged(n, s, buffers, waits, goal.most_ns))
        best = std::min(best, objective(*j, *none, goal.worth));
    }
    if (r.every) {
      ASSERT_NEAR(ours, best, 1e-8) << "seed " << seed;
    }
    every += r.every;
    taken += !r.taken.empty();
    several += r.taken.size() > 1;
    costly += r.ns > r.ns_before;
  }
  EXPECT_GT(every, 150u);
  EXPECT_GT(taken, 40u);
  EXPECT_GT(several, 5u);
  EXPECT_GT(costly, 5u);
}

// Where nothing competes for engines or the host, waiting never makes anything sooner; then no set of events
// whatsoever is better than what turns of buffers give.
TEST(StreamReuse, NoSetOfEventsIsBetter) {
  size_t tried = 0, taken = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Network n = test::random_network(random, 5 + static_cast<uint32_t>(seed % 2), 1, 4);
    for (streams::Unit& u : n.units) u.at_once = 16;
    n.devices[0].issue_ns = n.devices[0].event_issue_ns = 0;
    const Schedule s = test::random_schedule(random, n, 2);
    const std::vector<Buffer> buffers = random_buffers(random, n, 4);
    if (buffers.empty()) continue;
    const Matrix before = test::reach(n, s, test::needs(n));
    Pairs open;
    for (uint32_t a = 0; a < n.tasks.size(); ++a)
      for (uint32_t b = 0; b < n.tasks.size(); ++b)
        if (a != b && !before[a][b] && !before[b][a]) open.emplace_back(a, b);
    if (open.size() > 10) continue;
    const auto none = judged(n, s, buffers, {}, 0);
    ReuseGoal goal;
    goal.most_ns = none->ns * 1.2;
    const Reuse r = streams::weigh_reuse(n, s, buffers, planner(n, buffers), goal);
    if (!r.every) continue;
    double best = 1e9;
    for (uint32_t bits = 0; bits < uint32_t{1} << open.size(); ++bits) {
      Pairs waits;
      for (size_t k = 0; k < open.size(); ++k)
        if (bits >> k & 1) waits.push_back(open[k]);
      if (const auto j = judged(n, s, buffers, waits, goal.most_ns))
        best = std::min(best, objective(*j, *none, goal.worth));
    }
    ASSERT_NEAR(objective({r.ns, r.bytes}, *none, goal.worth), best, 1e-8) << "seed " << seed;
    ++tried;
    taken += !r.taken.empty();
  }
  EXPECT_GT(tried, 100u);
  EXPECT_GT(taken, 20u);
}

TEST(StreamReuse, OfManyTurnsNothingIsWorseThanNone) {
  double sum = 0;
  size_t count = 0, taken = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Network n = test::random_network(random, 24, 1, 14);
    const Schedule s = test::random_schedule(random, n, 3);
    const std::vector<Buffer> buffers = random_buffers(random, n, 7);
    ReuseGoal goal;
    goal.most_ns = 1.05 * streams::predict(n, s, streams::fewest_events(n, s));
    const Reuse r = streams::weigh_reuse(n, s, buffers, planner(n, buffers), goal);
    ASSERT_NO_FATAL_FAILURE(check_answer(r, n, s, buffers, goal.most_ns)) << "seed " << seed;
    if (r.every) continue;
    const double ratio = static_cast<double>(r.bytes) / static_cast<double>(r.bytes_before);
    ASSERT_LE(ratio / goal.worth + std::max(r.ns, r.ns_before) / r.ns_before, 1 / goal.worth + 1 + 1e-12)
        << "seed " << seed;
    sum += ratio;
    ++count;
    taken += !r.taken.empty();
  }
  EXPECT_GT(count, 20u);
  EXPECT_GT(taken, 10u);
  EXPECT_LT(sum / static_cast<double>(count), 0.97);
}

// On stream 0 a first task makes `a`, which a second reads; on stream 1 a third makes `c`, from which a
// fourth makes `b`. Nothing orders `a` and `b`.
class StreamReuseOfTwo : public ::testing::Test {
 protected:
  StreamReuseOfTwo() {
    streams::Device d;
    d.name = "npu";
    d.streams = 2;
    d.event_ns = 100;
    n.devices = {d};
    n.units = {{1}, {1}};
    n.tasks = {{0, 0, 1000, 0, false, {}},
               {0, 0, 1000, 0, false, {0}},
               {0, 1, 5000, 0, false, {}},
               {0, 1, 1000, 0, false, {2}}};
    s = {{0, 1, 2, 3}, {0, 0, 1, 1}};
    buffers = {{{0, 1}, 640, 64, 0, false}, {{3}, 640, 64, 0, false}, {{2, 3}, 64, 64, 0, false}};
    goal.most_ns = 6000;
  }
  Reuse weigh() const { return streams::weigh_reuse(n, s, buffers, planner(n, buffers), goal); }

  Network n;
  Schedule s;
  std::vector<Buffer> buffers;
  ReuseGoal goal;
};

TEST_F(StreamReuseOfTwo, AnEventThatTakesNoTimeIsTaken) {
  const Reuse r = weigh();
  EXPECT_TRUE(r.every);
  EXPECT_EQ(r.bytes_before, 1344u);
  EXPECT_EQ(r.bytes, 704u);
  EXPECT_EQ(r.ns, 6000);
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].from, 1u);
  EXPECT_EQ(r.events[0].to, 3u);
  ASSERT_EQ(r.taken.size(), 1u);
  EXPECT_EQ(r.taken[0].turn.first, 0u);
  EXPECT_EQ(r.taken[0].turn.second, 1u);
  EXPECT_EQ(r.taken[0].bytes, 640);
  EXPECT_EQ(r.taken[0].ns, 0);
}

TEST_F(StreamReuseOfTwo, OneThatTakesTimeIsWeighed) {
  n.tasks[1].busy_ns = 4500;  // ends at 5500: 600 of 6000 later, for 640 of 1344 bytes
  EXPECT_TRUE(weigh().events.empty()) << "the time is not given";
  EXPECT_EQ(weigh().bytes, 1344u);
  goal.most_ns = 6600;
  EXPECT_EQ(weigh().bytes, 704u);
  EXPECT_EQ(weigh().ns, 6600);
  goal.worth = 4.7;  // 0.476 of the bytes is 4.76 times 0.1 of the time
  EXPECT_EQ(weigh().bytes, 704u);
  goal.worth = 4.8;
  const Reuse r = weigh();
  EXPECT_EQ(r.bytes, 1344u);
  EXPECT_TRUE(r.taken.empty());
  ASSERT_FALSE(r.refused.empty());
  EXPECT_EQ(r.refused[0].bytes, 640);
  EXPECT_EQ(r.refused[0].ns, 600);
  goal.limit = 704;
  EXPECT_EQ(weigh().bytes, 704u) << "a limit is met whatever it takes";
  goal.limit = 1344;
  EXPECT_TRUE(weigh().events.empty()) << "and is no wish for less";
  goal.limit = 704;
  goal.most_ns = 6599;
  EXPECT_EQ(weigh().bytes, 1344u);
}

TEST_F(StreamReuseOfTwo, FlagsCyclesAndKeptBuffersStopIt) {
  goal.allowed = [](const Schedule&, const std::vector<Event>& events) { return events.empty(); };
  EXPECT_EQ(weigh().bytes, 1344u) << "the device has no flag left";
  goal.allowed = nullptr;
  buffers[0].kept = true;
  EXPECT_EQ(weigh().bytes, 1344u) << "it is read after all tasks";
  buffers[0].kept = false;
  n.tasks[1].after = {0, 3};  // then the reader of `a` needs `b`
  s.order = {0, 2, 3, 1};
  EXPECT_EQ(weigh().bytes, 1344u) << "each would wait for the other";
  n.tasks[1].after = {0};
  buffers[1].space = 1;
  EXPECT_TRUE(weigh().taken.empty()) << "they lie in different memories";
}

TEST_F(StreamReuseOfTwo, ATaskIssuedEarlierMayHaveToWait) {
  s.order = {2, 3, 0, 1};
  goal.most_ns = 6000;
  const Reuse r = weigh();
  EXPECT_EQ(r.bytes, 704u);
  EXPECT_EQ(r.ns, 6000);
  EXPECT_EQ(r.schedule.order, (std::vector<uint32_t>{2, 0, 1, 3}));
}

TEST_F(StreamReuseOfTwo, AnEventThatIsImpliedThenGoes) {
  // The fourth task needs the first: with the wait for the second that is said already.
  n.tasks[3].after = {0, 2};
  ASSERT_EQ(streams::fewest_events(n, s).size(), 1u);
  const Reuse r = weigh();
  EXPECT_EQ(r.bytes, 704u);
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].from, 1u);
}

}  // namespace
}  // namespace regie
