// What `lower` gave, by what it was asked: networks repeat their layers, each is asked about more than once,
// and having oneDNN choose takes tens of microseconds.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "primitive.h"

namespace host_cpu {

// Of the engine: everything that it was asked about, on one thread.
class LoweredMemo {
 public:
  // Lives as long as the memo. Throws as `lower` does, which is not remembered.
  const Lowered& get(dnnl_engine_t engine, const Operation& op, Layout layout, bool free_weights);

 private:
  std::unordered_map<std::string, Lowered> known_;
};

// What equal operations of a device share: oneDNN's choice, and its primitive once one of them needs it. A
// primitive keeps nothing of a launch, as its scratchpad comes with the launch's arguments.
class SharedPrimitive {
 public:
  explicit SharedPrimitive(Lowered lowered) : lowered_(std::move(lowered)) {}
  const Lowered& lowered() const { return lowered_; }
  dnnl_primitive_t primitive() const;  // made at the first call; any thread

 private:
  Lowered lowered_;
  mutable std::mutex mutex_;
  mutable Primitive primitive_;
};

// Those that somebody holds. Any thread; who asks for one that another thread is about to make waits for it.
class SharedPrimitives {
 public:
  // Throws as `lower` does.
  std::shared_ptr<const SharedPrimitive> get(dnnl_engine_t engine, const Operation& op, Layout layout,
                                             bool free_weights, const dnnl_memory_desc_t* packed = nullptr);

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const SharedPrimitive> made;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> known_;
  size_t limit_ = 64;  // of entries, before those that nobody holds are looked for
};

}  // namespace host_cpu
