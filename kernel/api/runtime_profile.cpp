// The embedding API's profiles: runs with every task timed, and what they add up to.
#include <chrono>

#include "api/objects.h"
#include "base/json_text.h"
#include "profile/profile.h"

namespace {

using regie::api_guard;
using regie::invalid_input;
using regie::Status;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Status keep(regie_profile& to, regie_context& context, uint64_t begin_ns, uint64_t end_ns) {
  regie::ProfiledRun run;
  run.begin_ns = begin_ns;
  run.end_ns = end_ns;
  const regie_task_time* times = nullptr;
  const size_t count = regie_context_task_times(&context, &times);
  run.times.assign(times, times + count);
  if (context.plans && count == 0)
    return invalid_input(
        "of a model with several plans only the one of the greatest sizes can be profiled; compile with the "
        "sizes of another one, shape in place of shapes");
  run.streams = regie::read_device_times(regie_context_device_times(&context));
  return to.profile.add(std::move(run));
}

}  // namespace

regie_status regie_profile_create(const regie_model* model, regie_profile** profile) {
  return api_guard([&]() -> Status {
    if (!model || !profile)
      return invalid_input("regie_profile_create: a model and a place for the profile are needed");
    *profile = nullptr;
    *profile = new regie_profile(model, model->source);
    return {};
  });
}

void regie_profile_release(regie_profile* profile) { delete profile; }

regie_status regie_profile_run(regie_profile* profile, regie_context* context, const regie_tensor* inputs,
                               size_t input_count, regie_tensor* outputs, size_t output_count) {
  if (!profile || !context)
    return api_guard([] { return invalid_input("regie_profile_run: a profile and a context are needed"); });
  if (const regie_status s = regie_context_set_profiling(context, 1)) return s;
  const uint64_t begin_ns = now_ns();
  regie_status ran = regie_run(context, inputs, input_count, outputs, output_count);
  const uint64_t end_ns = now_ns();
  if (!ran) ran = api_guard([&] { return keep(*profile, *context, begin_ns, end_ns); });
  // What the run said is what the caller hears.
  if (ran == REGIE_OK) return regie_context_set_profiling(context, 0);
  const std::string words = regie_last_error();
  regie_context_set_profiling(context, 0);
  return ran;
}

const char* regie_profile_summary(regie_profile* profile) {
  if (!profile) return "{}";
  const regie_status made = api_guard([&]() -> Status {
    profile->summary = regie::json_text(profile->profile.summary());
    return {};
  });
  return made == REGIE_OK ? profile->summary.c_str() : "{}";
}

const char* regie_profile_trace(regie_profile* profile) {
  if (!profile) return "{}";
  const regie_status made = api_guard([&]() -> Status {
    profile->trace = profile->profile.trace();
    return {};
  });
  return made == REGIE_OK ? profile->trace.c_str() : "{}";
}
