// The kernels of the fake device: a word and a number in the blob, e.g. "scale:2". Format "fake/1".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regie/plugin.hpp"

namespace fake {

struct Program {
  std::string word;
  double number = 0;
};

// UNSUPPORTED for an unknown word, as a Failure.
Program parse(std::string_view blob);
uint64_t scratch_bytes(const Program& p);
// On host addresses. Failure: the device's error.
void run(const Program& p, const std::vector<regie_tensor>& operands,
         const std::vector<regie_tensor>& results, void* scratch, const std::vector<const void*>& prepared);

}  // namespace fake
