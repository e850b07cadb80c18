// Shared by what looks at concrete instructions. Not installed.
#pragma once

#include "regie/tile/stream.h"

namespace regie::tile {

// It does nothing: a count is 0. Its other arguments mean nothing then.
bool is_idle(const Concrete& instruction);

}  // namespace regie::tile
