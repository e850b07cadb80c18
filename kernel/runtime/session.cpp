#include "runtime/session.h"

#include "runtime/core.h"
#include "runtime/run_state.h"

namespace regie {

struct Session::Impl {
  std::shared_ptr<SessionCore> core;
};

struct Context::Impl {
  std::unique_ptr<RunState> state;
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Result<std::shared_ptr<Session>> Session::create(std::shared_ptr<const Model> model,
                                                 std::shared_ptr<PluginHost> plugins,
                                                 const SessionOptions& options) {
  std::shared_ptr<Session> session(new Session);
  REGIE_ASSIGN(session->impl_->core, make_core(std::move(model), std::move(plugins), options));
  return session;
}

const Model& Session::model() const { return *impl_->core->model; }

SessionStatistics Session::statistics() const {
  return {impl_->core->shapes_prepared, impl_->core->late_prepared};
}

Result<std::shared_ptr<Context>> Session::acquire() {
  const std::shared_ptr<SessionCore>& core = impl_->core;
  std::unique_ptr<Context> context;
  {
    std::lock_guard lock(core->pool_mutex);
    if (!core->pool.empty()) {
      context = std::move(core->pool.back());
      core->pool.pop_back();
    }
  }
  if (!context) {
    context.reset(new Context);
    REGIE_ASSIGN(context->impl_->state, RunState::make(core.get()));
  }
  // The core lives as long as somebody has a session or a context of it; pooled contexts do not count.
  return std::shared_ptr<Context>(context.release(), [core](Context* c) {
    std::unique_ptr<Context> owned(c);
    std::lock_guard lock(core->pool_mutex);
    core->pool.push_back(std::move(owned));
  });
}

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;

Status Context::run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
  return impl_->state->run(inputs, outputs);
}
bool Context::owns_output(size_t output, const void* data) const {
  return impl_->state->owns_output(output, data);
}
void Context::set_profiling(bool on) { impl_->state->set_profiling(on); }
std::span<const TaskTime> Context::times() const { return impl_->state->times(); }
std::span<const DeviceRecord> Context::records() const { return impl_->state->records(); }
const RunStatistics& Context::statistics() const { return impl_->state->statistics(); }

}  // namespace regie
