// A node's own program beside one that an overlay has for it (regie/tile/hand_written.h): the quicker of the
// two.
#pragma once

#include <map>
#include <string>

#include "lower.h"

namespace aicore {

// What the verifier said of hand-written programs in this compile, by program and sizes of the tensors: empty
// if good.
using Verdicts = std::map<std::string, std::string>;

struct Choice {
  Lowered lowered;
  std::string reason;  // with what the other would have taken
};

// Throws UNSUPPORTED with the reasons where there is neither.
Choice choose(const Request& r, const regie_host* host, Verdicts& verdicts);

}  // namespace aicore
