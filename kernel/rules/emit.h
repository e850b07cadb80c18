// Writes a rule's replacement as one patch. Internal.
#pragma once

#include <vector>

#include "ir/edit.h"
#include "rules/match.h"

namespace regie {

// Whether all attributes and constants of the replacement can be computed under this match; else which
// statement not.
bool can_emit(const MatchState& m, uint32_t* statement);

struct EmittedPatch {
  std::vector<uint32_t> removed;  // nodes
  std::vector<uint32_t> read;     // matched values that the new nodes read
  std::vector<uint32_t> made;     // values that the new nodes give
};

// Records begin .. commit on `edit`; `m` must be a match for which can_emit holds.
Result<EmittedPatch> emit(const MatchState& m, Edit& edit);

}  // namespace regie
