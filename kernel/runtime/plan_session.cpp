#include "runtime/plan_session.h"

#include "base/log.h"

namespace regie {

PlanSession::PlanSession() = default;
PlanSession::~PlanSession() = default;

Result<std::shared_ptr<PlanSession>> PlanSession::create(std::shared_ptr<const PlanSet> set,
                                                         std::shared_ptr<PluginHost> plugins,
                                                         const SessionOptions& options) {
  if (!set || !plugins) return internal_error("a session needs plans and a plug-in host");
  auto session = std::make_shared<PlanSession>();
  session->set_ = std::move(set);
  session->plugins_ = std::move(plugins);
  session->options_ = options;
  const size_t count = session->set_->plans.size() + 1;
  session->sessions_.resize(count);
  session->making_ = std::make_unique<std::mutex[]>(count);
  session->runs_ = std::make_unique<std::atomic<uint64_t>[]>(count);
  // What is wrong with the devices is said now, not at the first run.
  REGIE_TRY(session->session(session->set_->plans.size() - 1).status());
  return session;
}

Result<Session*> PlanSession::session(size_t plan) {
  auto ready = [&] {
    std::lock_guard lock(mutex_);
    return sessions_[plan].get();
  };
  if (Session* s = ready()) return s;
  std::lock_guard one(making_[plan]);
  if (Session* s = ready()) return s;
  const std::string text = plan == set_->plans.size() ? "dynamic shapes" : set_->plan_text(plan);
  auto made = Session::create(set_->plan(plan), plugins_, options_);
  if (!made.ok()) return std::move(made).status().while_doing("making the plan for " + text + " ready");
  log(REGIE_LOG_INFO, "shapes", set_->ports->name + ": the plan for " + text + " is made ready");
  std::lock_guard lock(mutex_);
  sessions_[plan] = std::move(made).value();
  return sessions_[plan].get();
}

Result<std::shared_ptr<PlanContext>> PlanSession::acquire() {
  std::unique_ptr<PlanContext> context;
  {
    std::lock_guard lock(mutex_);
    if (!pool_.empty()) {
      context = std::move(pool_.back());
      pool_.pop_back();
    }
  }
  if (!context) context = std::make_unique<PlanContext>(this);
  return std::shared_ptr<PlanContext>(context.release(), [session = shared_from_this()](PlanContext* c) {
    std::unique_ptr<PlanContext> owned(c);
    std::lock_guard lock(session->mutex_);
    session->pool_.push_back(std::move(owned));
  });
}

PlanStatistics PlanSession::statistics() const {
  PlanStatistics s{exact_, padded_, dynamic_, resized_, refused_, {}};
  for (size_t p = 0; p <= set_->plans.size(); ++p) s.runs.push_back(runs_[p]);
  return s;
}

SessionStatistics PlanSession::preparations() const {
  std::lock_guard lock(mutex_);
  SessionStatistics sum;
  for (const auto& s : sessions_)
    if (s) {
      const SessionStatistics one = s->statistics();
      sum.shapes_prepared += one.shapes_prepared;
      sum.late_prepared += one.late_prepared;
    }
  return sum;
}

size_t PlanSession::plans_ready() const {
  std::lock_guard lock(mutex_);
  size_t n = 0;
  for (const auto& s : sessions_) n += s != nullptr;
  return n;
}

}  // namespace regie
