// Which parts of a model have sizes that only the run tells ("late"): everything that depends on a symbol
// that a task defines. Derived from the tasks, so that nothing in a file can contradict it. Late buffers are
// not in the plan's arenas: the run allocates each when it is written first, and takes it back at the end of
// its life.
#pragma once

#include <vector>

#include "model/model.h"

namespace regie {

struct LateFacts {
  explicit LateFacts(const Model& model);
  bool any() const { return any_; }
  bool dim(ModelDim d) const { return d < 0 && expressions[static_cast<size_t>(-(d + 1))]; }
  bool type(uint32_t t) const { return types[t]; }
  bool buffer(uint32_t b) const { return buffers[b]; }
  // An argument of which only the run knows where it lies, or how large it is.
  bool place(const Arg& a) const;
  bool arg(const Arg& a) const { return a.kind != Arg::kNone && (types[a.type] || place(a)); }
  // A task that cannot be prepared before the run has come to it.
  bool task(const ModelTask& t) const;

  std::vector<bool> symbols, expressions, types, buffers, outputs;

 private:
  bool any_ = false;
};

}  // namespace regie
