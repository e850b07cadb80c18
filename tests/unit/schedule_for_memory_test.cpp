// The scheduler that chooses an order for memory, through its C table. Live bytes are counted here from the
// graph itself, step by step; the least peak of small graphs comes from trying every order.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "ir/graph.h"
#include "support/provider.h"

namespace regie {
namespace {

using Order = std::vector<uint32_t>;

// A graph of nodes with one result each; sizes in units of 64 bytes.
struct Net {
  std::vector<std::vector<uint32_t>> inputs;  // by node: earlier nodes
  std::vector<uint64_t> size;
  std::vector<uint32_t> results;  // handed out, in their own memory
};

// A random graph whose nodes stand in a random valid order.
Net random_net(uint64_t seed, uint32_t count, uint32_t most_inputs, uint32_t reach) {
  std::mt19937_64 random(seed);
  Net made;
  for (uint32_t i = 0; i < count; ++i) {
    std::vector<uint32_t> inputs;
    const uint32_t from = i > reach ? i - reach : 0;
    for (uint64_t k = i ? 1 + random() % most_inputs : 0; k > 0; --k)
      inputs.push_back(from + static_cast<uint32_t>(random() % (i - from)));
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    made.inputs.push_back(inputs);
    made.size.push_back(1 + random() % 16);
  }
  std::vector<uint32_t> missing(count), ready, place(count);
  std::vector<std::vector<uint32_t>> next(count);
  for (uint32_t i = 0; i < count; ++i) {
    missing[i] = static_cast<uint32_t>(made.inputs[i].size());
    for (uint32_t j : made.inputs[i]) next[j].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  Net shuffled;
  shuffled.inputs.resize(count);
  shuffled.size.resize(count);
  for (uint32_t k = 0; k < count; ++k) {
    std::swap(ready[random() % ready.size()], ready.back());
    const uint32_t i = ready.back();
    ready.pop_back();
    place[i] = k;
    shuffled.size[k] = made.size[i];
    for (uint32_t j : made.inputs[i]) shuffled.inputs[k].push_back(place[j]);
    for (uint32_t n : next[i])
      if (--missing[n] == 0) ready.push_back(n);
  }
  for (uint32_t i = 0; i < count; ++i)
    if (next[i].empty()) shuffled.results.push_back(place[i]);
  return shuffled;
}

uint64_t peak_of(const Net& net, const Order& order) {
  const size_t n = net.size.size();
  std::vector<size_t> at(n), last(n);
  for (size_t k = 0; k < n; ++k) at[order[k]] = last[order[k]] = k;
  for (size_t i = 0; i < n; ++i)
    for (uint32_t j : net.inputs[i]) last[j] = std::max(last[j], at[i]);
  for (uint32_t r : net.results) last[r] = n;
  uint64_t peak = 0;
  for (size_t k = 0; k < n; ++k) {
    uint64_t live = 0;
    for (size_t i = 0; i < n; ++i)
      if (at[i] <= k && k <= last[i]) live += net.size[i];
    peak = std::max(peak, live);
  }
  return peak;
}

bool valid(const Net& net, const Order& order) {
  std::vector<bool> done(net.size.size(), false);
  for (uint32_t i : order) {
    for (uint32_t j : net.inputs[i])
      if (!done[j]) return false;
    if (done[i]) return false;
    done[i] = true;
  }
  return order.size() == net.size.size();
}

uint64_t least_peak(const Net& net) {
  uint64_t best = UINT64_MAX;
  Order order;
  std::vector<bool> done(net.size.size(), false);
  std::function<void()> extend = [&] {
    if (order.size() == net.size.size()) {
      best = std::min(best, peak_of(net, order));
      return;
    }
    for (uint32_t i = 0; i < net.size.size(); ++i) {
      if (done[i] ||
          !std::all_of(net.inputs[i].begin(), net.inputs[i].end(), [&](uint32_t j) { return done[j]; }))
        continue;
      done[i] = true;
      order.push_back(i);
      extend();
      order.pop_back();
      done[i] = false;
    }
  };
  extend();
  return best;
}

class ScheduleForMemory : public ::testing::Test {
 protected:
  Order schedule(const Net& net, uint32_t devices = 1) {
    Graph graph;
    std::vector<uint32_t> values, results;
    std::vector<regie_schedule_task> tasks;
    for (size_t i = 0; i < net.size.size(); ++i) {
      NodeSpec spec;
      spec.op = "Some";
      for (uint32_t j : net.inputs[i]) spec.operands.push_back(values[j]);
      const uint32_t node = graph.add_node(0, spec);
      values.push_back(graph.results(node)[0]);
      const regie_dim dims[] = {static_cast<regie_dim>(net.size[i]), 16};
      graph.set_type(values.back(), graph.make_type(REGIE_F32, dims));
      tasks.push_back({node, static_cast<uint32_t>(i % devices), static_cast<uint32_t>(net.inputs[i].size()),
                       0, net.inputs[i].data(), 1.0});
    }
    for (uint32_t r : net.results) results.push_back(values[r]);
    graph.set_region_results(0, results);
    std::vector<regie_schedule_device> list(devices, {str("dev"), 1, 0});
    Order order;
    regie_schedule_problem p{};
    p.struct_size = sizeof(p);
    p.task_count = static_cast<uint32_t>(tasks.size());
    p.device_count = devices;
    p.graph = &graph.view();
    p.tasks = tasks.data();
    p.devices = list.data();
    p.issue = [](const regie_schedule_problem* self, uint32_t task, uint32_t) -> regie_status {
      static_cast<Order*>(self->state)->push_back(task);
      return REGIE_OK;
    };
    p.event = [](const regie_schedule_problem*, uint32_t, uint32_t, regie_str) -> regie_status {
      return REGIE_OK;
    };
    p.state = &order;
    const Status s = call_plugin("schedule-for-memory", [&] {
      return scheduler_.table->schedule(scheduler_.index, host_table(), nullptr, &p);
    });
    EXPECT_TRUE(s.ok()) << s.to_string();
    return order;
  }

  test::Provided<regie_scheduler_table> scheduler_{&PluginHost::scheduler, "schedule-for-memory"};
};

TEST_F(ScheduleForMemory, FinishesABranchBeforeTheNext) {
  // Four wide results, each summed up to a narrow one: made one after the other, three are never alive at
  // once.
  Net net;
  net.inputs = {{}, {0}, {0}, {0}, {0}, {1}, {2}, {3}, {4}, {5, 6, 7, 8}};
  net.size = {1, 10, 10, 10, 10, 1, 1, 1, 1, 1};
  net.results = {9};
  const Order order = schedule(net);
  ASSERT_TRUE(valid(net, order));
  EXPECT_EQ(peak_of(net, Order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 41u);
  EXPECT_EQ(peak_of(net, order), 14u);
}

TEST_F(ScheduleForMemory, KeepsAnOrderThatIsNoWorse) {
  Net chain;
  for (uint32_t i = 0; i < 300; ++i) {
    chain.inputs.push_back(i ? std::vector<uint32_t>{i - 1} : std::vector<uint32_t>{});
    chain.size.push_back(5);
  }
  chain.results = {299};
  Order as_is(300);
  for (uint32_t i = 0; i < 300; ++i) as_is[i] = i;
  EXPECT_EQ(schedule(chain), as_is);
  // Two branches of one size: either order is as good.
  Net twins;
  twins.inputs = {{}, {0}, {0}, {1}, {2}, {3, 4}};
  twins.size = {1, 1, 1, 1, 1, 1};
  twins.results = {5};
  const Order given{0, 1, 2, 3, 4, 5};
  ASSERT_EQ(peak_of(twins, given), least_peak(twins));
  EXPECT_EQ(schedule(twins), given);
}

TEST_F(ScheduleForMemory, SmallGraphsGetTheBestOrder) {
  size_t better = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Net net = random_net(seed, 4 + seed % 6, 1 + seed % 3, 9);
    const Order order = schedule(net);
    ASSERT_TRUE(valid(net, order)) << seed;
    Order given(net.size.size());
    for (uint32_t i = 0; i < given.size(); ++i) given[i] = i;
    const uint64_t best = least_peak(net);
    ASSERT_EQ(peak_of(net, order), best) << seed;
    better += best < peak_of(net, given);
  }
  EXPECT_GT(better, 100u);
}

TEST_F(ScheduleForMemory, RandomNetsAreNeverWorseAndMostlyMuchBetter) {
  double logs = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Net net = random_net(seed + 1000, 40, 3, 20);
    const Order order = schedule(net);
    ASSERT_TRUE(valid(net, order)) << seed;
    Order given(net.size.size());
    for (uint32_t i = 0; i < given.size(); ++i) given[i] = i;
    ASSERT_LE(peak_of(net, order), peak_of(net, given)) << seed;
    logs += std::log(static_cast<double>(peak_of(net, order)) / static_cast<double>(peak_of(net, given)));
    if (seed == 0) {
      EXPECT_EQ(order, schedule(net)) << "the same twice";
    }
  }
  EXPECT_LE(std::exp(logs / 8), 0.75);
}

TEST_F(ScheduleForMemory, SeveralDevicesKeepTheProgramOrder) {
  const Net net = random_net(5, 30, 3, 20);
  const Order order = schedule(net, 2);
  for (uint32_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace regie
