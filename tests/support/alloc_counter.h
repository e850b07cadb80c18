// Counts heap allocations of the whole process while it is armed, on any thread, and says which library
// asked. Those made on behalf of libdnnl or libgomp are counted apart. Needs alloc_counter.cpp in the binary,
// which takes malloc's place.
#pragma once

#include <cstdint>
#include <string>

namespace regie::test {

struct Allocations {
  uint64_t ours = 0, foreign = 0;  // foreign: libdnnl or libgomp among the callers
  std::string report;  // of the first few of ours: the libraries and functions that called, innermost first
};

void start_counting();
Allocations stop_counting();

}  // namespace regie::test
