// The runtime half of the embedding API: sessions, contexts, runs.
#include <cstdlib>

#include "api/objects.h"
#include "base/progress.h"

using regie::api_guard;
using regie::invalid_input;
using regie::Status;

regie_status regie_session_create(const regie_model* model, const regie_option* options, size_t option_count,
                                  regie_session** session) {
  return api_guard([&]() -> Status {
    if (!model || !session)
      return invalid_input("regie_session_create: a model and a place for the session are needed");
    *session = nullptr;
    REGIE_ASSIGN(
        const regie::ApiOptions read,
        regie::ApiOptions::read(options, option_count, {"threads", "timeout-ms", "plugin-path", "shape-log"},
                                {"device-set"}));
    regie::SessionOptions to;
    REGIE_ASSIGN(const int64_t threads, read.integer("threads", 0, 1, 1024));
    REGIE_ASSIGN(const int64_t timeout_ms, read.integer("timeout-ms", 0, 1, int64_t{1} << 40));
    to.threads = static_cast<uint32_t>(threads);
    to.timeout_ns = static_cast<uint64_t>(timeout_ms) * 1000000;
    for (const std::string& text : read.all("device-set")) {
      const size_t dot = text.find('.'), equals = text.find('=');
      if (dot == 0 || dot == std::string::npos || equals == std::string::npos || equals <= dot + 1)
        return invalid_input("option 'device-set' must be DEVICE.PARAMETER=VALUE, not '" + text + "'");
      to.device_settings.push_back(
          {text.substr(0, dot), text.substr(dot + 1, equals - dot - 1), text.substr(equals + 1)});
    }
    REGIE_ASSIGN(std::shared_ptr<regie::PluginHost> host, regie::api_plugin_host(read.text("plugin-path")));
    auto made = std::make_unique<regie_session>();
    if (model->set) {
      REGIE_ASSIGN(made->plans, regie::PlanSession::create(model->set, std::move(host), to));
    } else {
      to.arenas_ahead = true;
      REGIE_ASSIGN(made->session, regie::Session::create(model->model, std::move(host), to));
    }
    const char* variable = std::getenv("REGIE_SHAPE_LOG");
    if (const std::string log = read.text("shape-log", variable ? variable : ""); !log.empty()) {
      std::vector<std::string> names;
      for (const regie_model::Port& p : model->inputs) names.push_back(p.name);
      REGIE_ASSIGN(made->shape_log, regie::ShapeLog::open(log, std::move(names)));
    }
    *session = made.release();
    return {};
  });
}

void regie_session_release(regie_session* session) { delete session; }

regie_status regie_context_acquire(regie_session* session, regie_context** context) {
  return api_guard([&]() -> Status {
    if (!session || !context)
      return invalid_input("regie_context_acquire: a session and a place for the context are needed");
    *context = nullptr;
    auto got = std::make_unique<regie_context>();
    if (session->plans) {
      REGIE_ASSIGN(got->plans, session->plans->acquire());
    } else {
      REGIE_ASSIGN(got->context, session->session->acquire());
    }
    got->shape_log = session->shape_log;
    *context = got.release();
    return {};
  });
}

void regie_context_release(regie_context* context) { delete context; }

regie_status regie_run(regie_context* context, const regie_tensor* inputs, size_t input_count,
                       regie_tensor* outputs, size_t output_count) {
  return api_guard([&]() -> Status {
    if (!context) return invalid_input("regie_run: a context is needed");
    if ((input_count && !inputs) || (output_count && !outputs))
      return invalid_input("regie_run: inputs or outputs are NULL");
    if (context->shape_log) context->shape_log->write({inputs, input_count});
    return context->plans ? context->plans->run({inputs, input_count}, {outputs, output_count})
                          : context->context->run({inputs, input_count}, {outputs, output_count});
  });
}

regie_status regie_context_set_profiling(regie_context* context, uint32_t on) {
  return api_guard([&]() -> Status {
    if (!context) return invalid_input("regie_context_set_profiling: a context is needed");
    if (context->plans)
      context->plans->set_profiling(on != 0);
    else
      context->context->set_profiling(on != 0);
    return {};
  });
}

size_t regie_context_task_times(regie_context* context, const regie_task_time** times) {
  if (times) *times = nullptr;
  if (!context || !times) return 0;
  const regie_status copied = api_guard([&]() -> Status {
    context->times.clear();
    for (const regie::TaskTime& t : context->plans ? context->plans->times() : context->context->times())
      context->times.push_back({t.program, t.task, t.wait_ns, t.issue_ns, t.issued_ns, t.begin_ns, t.end_ns});
    return {};
  });
  if (copied) return 0;
  *times = context->times.data();
  return context->times.size();
}

void regie_set_progress(regie_progress function, void* context) {
  regie::set_progress_sink(function, context);
}
