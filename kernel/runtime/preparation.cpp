#include "runtime/preparation.h"

namespace regie {

Preparation::Preparation(size_t count, std::function<void(size_t)> make)
    : count_(count), make_(std::move(make)), made_(std::make_unique<std::atomic<int>[]>(count)) {}

Preparation::~Preparation() { next_.store(count_, std::memory_order_relaxed); }

void Preparation::start(size_t threads) {
  others_.begin(Background::Urgency::kKernels, threads, [this] { return make_next(); });
}

bool Preparation::make_next() {
  const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= count_) return false;
  make_(index);
  made_[index].store(1, std::memory_order_release);
  made_[index].notify_one();
  return true;
}

void Preparation::need(size_t index) {
  std::atomic<int>& made = made_[index];
  while (made.load(std::memory_order_acquire) == 0)
    if (!make_next()) made.wait(0, std::memory_order_acquire);
}

}  // namespace regie
