// `regie bench` over several shapes: what the first use of each costs, and how fast it is afterwards.
#pragma once

#include <string>
#include <vector>

#include "cli/opened.h"
#include "cli/shape_trace.h"

namespace regie::cli {

struct ShapeBench {
  double duration_s = 3;    // of each shape
  double warm_up_ms = 200;  // of each shape
  uint64_t iterations = 10;
  uint64_t seed = 1;
  bool json = false;
};

// The shapes that the options name, each with the sizes of all inputs: the lines of --trace in their order,
// else --shape, where an input that comes again begins the next shape. Empty: neither is there.
Result<std::vector<RequestShape>> wanted_shapes(const regie_model* model, const po::variables_map& values);

// Runs them once in their order (so first uses are in it), then each distinct one for a while; prints.
int bench_shapes(const std::string& path, Opened& opened, const std::vector<RequestShape>& shapes,
                 const ShapeBench& plan, const po::variables_map& values);

}  // namespace regie::cli
