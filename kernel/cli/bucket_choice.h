// Chooses sizes for plans from a log of shapes: so many plans that the requests, each rounded up to the next
// sizes, have the fewest elements in their inputs. Exact for one axis that varies (dynamic programming); for
// several, each axis in turn is solved exactly while the others stay, for every way to divide the number of
// plans among them, until nothing gets better.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/shape_trace.h"

namespace regie::cli {

struct TracedAxis {
  // "x.0"; all of them have the same size in every request.
  std::vector<std::pair<std::string, uint32_t>> places;
  std::vector<int64_t> sizes;  // that occur, ascending
};

struct TracedShapes {
  std::vector<TracedAxis> axes;  // those that vary
  struct Row {
    RequestShape shape;
    std::vector<int64_t> at;  // size of each axis
    uint64_t count = 0;
  };
  std::vector<Row> rows;  // distinct ones
  uint64_t requests = 0;
};
TracedShapes group_shapes(const std::vector<RequestShape>& trace);

struct BucketChoice {
  std::vector<std::vector<int64_t>> sizes;  // by axis, ascending
  size_t plans = 1;
  double served = 1;   // share of the requests that are not above the largest sizes
  double exact = 0;    // share of the requests that need no padding
  double padding = 0;  // share of the elements computed for the served ones that is padding
  std::string spec(const TracedShapes& traced) const;  // "buckets:x.0=1|4"
};

// The best found with at most `plans` plans that serve at least the share `cover` of the requests.
BucketChoice choose_buckets(const TracedShapes& traced, size_t plans, double cover);

}  // namespace regie::cli
