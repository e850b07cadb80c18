// Greedy plans. Three families, each good at what the others are not:
//  * by time: an allocator's walk through time, best fit; n log n, whatever the overlaps are;
//  * lowest place first: like water rising, whoever can lie lowest is placed next; the best of the three on
//    hard instances; no gap below is ever filled;
//  * by rank: largest first, say, each at the lowest or the tightest gap among those already placed; the
//    work is the number of pairs that share time.
// Offsets are by item. Fixed items stay where they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "problem.h"

namespace packed {

using Offsets = std::vector<uint64_t>;
using Order = std::vector<uint32_t>;  // free items with bytes, first one first

enum class Tie { kLargest, kLongest };  // among items that start together

Offsets plan_by_time(const Problem& problem, Tie tie, bool backwards);
// Items with an offset in `settled` are there already (kFree: not): all that are fixed or have several parts.
Offsets plan_by_time(const Problem& problem, Offsets settled, Tie tie, bool backwards);

// Nothing, if it would take more than `visits` looks at items, or if too many items are fixed. Those that it
// takes are taken off.
std::optional<Offsets> plan_lowest_first(const Problem& problem, const Order& order, uint64_t* visits);

enum class Fit { kFirst, kBest };
Offsets plan_by_rank(const Problem& problem, const Order& order, Fit fit);

}  // namespace packed
