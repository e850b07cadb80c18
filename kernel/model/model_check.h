// What the parts of a model's structural check share: where they are in it, and how they say what is wrong
// there. For check.cpp, task_check.cpp and strings.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/model.h"

namespace regie {

class ModelCheck {
 protected:
  ModelCheck(const Model& model, regie_status code) : m_(model), code_(code) {}

  static std::string number(uint64_t n) { return std::to_string(n); }

  Status bad(std::string message) const {
    return Status::error(code_, (place_.empty() ? "" : place_ + ": ") + std::move(message));
  }
  Status index(const char* what, uint64_t i, size_t count) const {
    if (i < count) return {};
    return bad(std::string(what) + " " + number(i) + " does not exist; there are " + number(count));
  }
  // A dimension that is this symbol and nothing else.
  bool is_symbol(ModelDim d, size_t symbol) const {
    return d < 0 && m_.expressions[static_cast<size_t>(-(d + 1))].words ==
                        std::vector<int64_t>{DimCode::kLoad, static_cast<int64_t>(symbol)};
  }

  const Model& m_;
  const regie_status code_;
  std::string place_;
};

}  // namespace regie
