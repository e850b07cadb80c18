#include "worker.h"

#include "regie/timeline.hpp"

namespace host_cpu {

Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::enqueue(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool Worker::wait(uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  return regie::sdk::wait_for_ns(changed_, lock, timeout_ns, [&] { return jobs_.empty(); });
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !jobs_.empty() || stopping_; });
    if (jobs_.empty()) return;
    std::function<void()>& job = jobs_.front();  // stays where it is while others are added
    lock.unlock();
    job();
    lock.lock();
    jobs_.pop_front();
    changed_.notify_all();
  }
}

LaunchCopy::LaunchCopy(const regie_launch& launch) : launch_(launch) {
  tensors_.assign(launch.operands, launch.operands + launch.operand_count);
  tensors_.insert(tensors_.end(), launch.results, launch.results + launch.result_count);
  size_t dims = 0;
  for (const regie_tensor& t : tensors_) dims += t.rank > 0 ? static_cast<size_t>(t.rank) : 0;
  dims_.reserve(dims);  // tensors point into it
  for (regie_tensor& t : tensors_) {
    if (t.rank <= 0 || !t.dims) continue;
    const int64_t* at = dims_.data() + dims_.size();
    dims_.insert(dims_.end(), t.dims, t.dims + t.rank);
    t.dims = at;
  }
  launch_.operands = tensors_.data();
  launch_.results = tensors_.data() + launch.operand_count;
}

}  // namespace host_cpu
