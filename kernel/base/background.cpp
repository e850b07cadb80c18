#include "base/background.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace regie {

struct Background::Job {
  Urgency urgency;
  size_t threads;
  std::function<bool()> piece;
  size_t running = 0;
  bool done = false;  // no piece is left to take
};

namespace {

// A start has its next job within less; a thread that sleeps longer is not kept.
constexpr std::chrono::milliseconds kPatience{20};

class Pool {
 public:
  using Job = Background::Job;

  static Pool& all() {
    static Pool* pool = make();  // never destroyed: its threads may be the last to run
    return *pool;
  }

  void add(Job* job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(job);
    size_t sum = 0;
    for (const Job* j : jobs_) sum += j->done ? 0 : j->threads;
    const size_t others = std::max<size_t>(std::thread::hardware_concurrency(), 1) - 1;
    const size_t wanted = std::min(sum, std::max(others, job->threads));
    try {
      for (; threads_ < wanted; ++threads_) std::thread([this] { work(); }).detach();
    } catch (const std::system_error&) {
      // No further one is to be had.
    }
    wake_.notify_all();
  }

  void remove(Job* job) {
    std::unique_lock lock(mutex_);
    job->done = true;
    ended_.wait(lock, [&] { return job->running == 0; });
    std::erase(jobs_, job);
  }

 private:
  static Pool* make() {
    auto* pool = new Pool;
    // The child has none of the threads.
    pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                   [] {
                     all().threads_ = 0;
                     all().mutex_.unlock();
                   });
    return pool;
  }

  Job* most_urgent() const {
    Job* best = nullptr;
    for (Job* j : jobs_)
      if (!j->done && j->running < j->threads && (!best || j->urgency < best->urgency)) best = j;
    return best;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = most_urgent();
      if (!job) {
        if (!wake_.wait_for(lock, kPatience, [&] { return most_urgent() != nullptr; })) break;
        continue;
      }
      ++job->running;
      lock.unlock();
      const bool more = job->piece();
      lock.lock();
      if (!more) job->done = true;
      if (--job->running == 0) ended_.notify_all();
    }
    --threads_;
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<Job*> jobs_;
  size_t threads_ = 0;
};

}  // namespace

Background::Background() = default;

Background::~Background() {
  if (job_) Pool::all().remove(job_.get());
}

void Background::begin(Urgency urgency, size_t threads, std::function<bool()> piece) {
  if (threads == 0) return;
  job_ = std::make_unique<Job>(Job{urgency, threads, std::move(piece)});
  Pool::all().add(job_.get());
}

}  // namespace regie
