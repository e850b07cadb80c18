// The planners plan-packed (greedy plans, then exact search) and plan-greedy (greedy plans alone).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "regie/c/memory.h"
#include "regie/pass.hpp"
#include "regie_digests.h"
#include "solve.h"

namespace {

using namespace regie::sdk;
using packed::Limits;

constexpr regie_str kRequires[] = {lit("scheduled")};
constexpr regie_str kEstablishes[] = {lit("planned")};
constexpr regie_option_info kOptions[] = {
    {lit("effort"), lit("default"),
     lit("fast: a tenth of a second; default: seconds, if that is what it takes; exhaustive: minutes")},
    {lit("seconds"), lit("0"),
     lit("search until a proof or for this long, whatever the machine makes of it: the plan is not "
         "reproducible; 0: no")},
};

constexpr uint64_t kVisitsANode = 100;

enum Planner : uint32_t { kPacked, kGreedy };
constexpr regie_pass_info kInfos[] = {
    pass_info({
        .name = "plan-packed",
        .doc = "Packs buffers by greedy orders and exact search, with a proof where it can",
        .requires_ = kRequires,
        .establishes = kEstablishes,
        .options = kOptions,
    }),
    pass_info({
        .name = "plan-greedy",
        .doc = "Packs buffers by several greedy orders and takes the best plan",
        .requires_ = kRequires,
        .establishes = kEstablishes,
    }),
};

double seconds_of(const Config& config) {
  const auto text = config.find("seconds");
  if (!text) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !std::isfinite(value) || value < 0)
    throw Failure(REGIE_INVALID_INPUT,
                  "option 'seconds' must be a number that is not negative, not '" + std::string(*text) + "'");
  return value;
}

// Work is counted in looks at an item or a pair: some 150 million a second.
Limits limits_of(Planner planner, const Config& config, const regie_memory_problem& problem) {
  Limits limits;
  limits.capacity = problem.capacity;
  limits.greedy_visits = 8'000'000;
  if (planner == kGreedy) {
    if (problem.node_budget) limits.greedy_visits = problem.node_budget;
    return limits;
  }
  const std::string_view effort = config.find("effort").value_or("default");
  limits.core_pairs = 3'000'000;
  if (effort == "fast") {
    limits.greedy_visits = 150'000;
    limits.search_work = 6'000'000;
    limits.core_pairs = 400'000;
  } else if (effort == "default") {
    // Conflicts are of plans for several streams, which are compiled all the time and rarely proven.
    limits.search_work = problem.conflict_count ? 20'000'000 : 1'600'000'000;
    if (problem.buffer_count >= packed::kMany) limits.greedy_visits = 120'000'000;
    limits.near_enough = 1.045;
  } else if (effort == "exhaustive") {
    limits.greedy_visits = 80'000'000;
    limits.search_work = 60'000'000'000;
    limits.core_pairs = 12'000'000;
  } else {
    throw Failure(REGIE_INVALID_INPUT,
                  "option 'effort' must be fast, default or exhaustive, not '" + std::string(effort) + "'");
  }
  limits.search_nodes = problem.node_budget;
  // Who wants few nodes wants an answer soon.
  if (problem.node_budget)
    limits.greedy_visits =
        std::min(limits.greedy_visits, kVisitsANode * std::min<uint64_t>(problem.node_budget, 1'000'000));
  limits.seconds = seconds_of(config);
  if (limits.seconds > 0) limits.search_nodes = UINT64_MAX;
  return limits;
}

std::string too_large(uint64_t peak, uint64_t capacity, uint64_t bound) {
  return "the best plan needs " + std::to_string(peak) + " bytes, the memory space has " +
         std::to_string(capacity) + "; " +
         (bound > capacity ? "no plan can do with less than " + std::to_string(bound) +
                                 ": use smaller shapes, or a device with more memory"
                           : "a better plan may exist: the lower bound is " + std::to_string(bound));
}

regie_status plan_memory(uint32_t index, const regie_host* host, const regie_config* options,
                         const regie_memory_problem* problem, uint64_t* offsets,
                         regie_memory_answer* answer) {
  return guard(host, [&] {
    const Limits limits = limits_of(static_cast<Planner>(index), Config(options), *problem);
    const packed::Problem p = packed::read(*problem);
    const packed::Outcome outcome = packed::solve(p, limits);
    for (uint64_t i = 0; i < problem->buffer_count; ++i) {
      const regie_memory_buffer& b = problem->buffers[i];
      offsets[i] = p.item_of[i] != packed::kNone   ? outcome.offsets[p.item_of[i]]
                   : b.offset != REGIE_OFFSET_FREE ? b.offset
                                                   : 0;
    }
    answer->peak = outcome.peak;
    answer->lower_bound = outcome.lower_bound;
    answer->proven_optimal = outcome.peak <= outcome.lower_bound;
    answer->proven_infeasible = outcome.lower_bound > problem->capacity;
    answer->nodes = outcome.nodes;
    if (outcome.peak > problem->capacity)
      throw Failure(REGIE_LIMIT, too_large(outcome.peak, problem->capacity, outcome.lower_bound));
  });
}

constexpr regie_memory_table kTable = {head(sizeof(regie_memory_table), REGIE_DIGEST_MEMORY), 2, 0, kInfos,
                                       plan_memory};

const void* find(const char* id) { return find_one(id, REGIE_MEMORY_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
