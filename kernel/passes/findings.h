// The host's half of regie/c/findings.h.
#pragma once

#include "passes/compile_state.h"

namespace regie {

// While it lives, engines that are asked on this thread may speak of this compile's graph.
class FindingsCall {
 public:
  explicit FindingsCall(CompileState& state);
  ~FindingsCall();
  FindingsCall(const FindingsCall&) = delete;

 private:
  CompileState* before_;
};

}  // namespace regie
