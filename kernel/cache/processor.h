// Which processor this is, as far as compiled kernels can depend on it: name, family, and the sets of
// instructions that it and the system offer.
#pragma once

#include <string>

namespace regie {

struct Processor {
  std::string name;      // "AMD EPYC 9R45"
  std::string features;  // a digest of what the processor says of itself
};
const Processor& processor();

}  // namespace regie
