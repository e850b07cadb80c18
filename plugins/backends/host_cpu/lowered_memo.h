// What `lower` gave, by what it was asked: networks repeat their layers, each is asked about more than once,
// and having oneDNN choose takes tens of microseconds. Of one thread.
#pragma once

#include <string>
#include <unordered_map>

#include "primitive.h"

namespace host_cpu {

class LoweredMemo {
 public:
  // Lives as long as the memo. Throws as `lower` does, which is not remembered.
  const Lowered& get(dnnl_engine_t engine, const Operation& op, Layout layout, bool free_weights);

 private:
  std::unordered_map<std::string, Lowered> known_;
};

}  // namespace host_cpu
