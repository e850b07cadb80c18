// What the opaque handles of the embedding API (regie/api/regie.h) are, and the few helpers that its two
// halves share: runtime_*.cpp in libregie-runtime, compiler_*.cpp in libregie-compiler. Nothing else includes
// this.
#pragma once

#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/model.h"
#include "plugins/host.h"
#include "regie/api/regie.h"
#include "runtime/plan_session.h"
#include "runtime/session.h"
#include "runtime/shape_log.h"

struct regie_model {
  explicit regie_model(std::shared_ptr<const regie::Model> m);
  explicit regie_model(std::shared_ptr<const regie::PlanSet> s);

  struct Port {  // what a regie_port of it points to
    std::string name, dims_text;
    std::vector<int64_t> dims, reference_dims;
    regie_elem elem = REGIE_ELEM_UNKNOWN;
    bool any_rank = false;                      // a run tells it
    std::optional<regie_tensor> default_value;  // points into the model
  };
  std::shared_ptr<const regie::Model> model;  // of several plans: the one for the greatest sizes
  std::shared_ptr<const regie::PlanSet> set;  // of several plans, else NULL
  std::vector<Port> inputs, outputs;
  std::string source;          // what messages call it: the file that it was compiled or loaded from
  const char* report() const;  // made on first use
  const char* plan() const;    // made on first use
  std::string compile_report;  // ledger of the compile that made it, times included; empty if it was loaded
  std::string cache_report;    // JSON: where it came from; empty: loaded
  std::string shapes_report;   // JSON: what became of each plan of several
  std::optional<double> compile_ms;  // where no report of a compile says it

 private:
  void describe_ports(const regie::Model& from);
  mutable std::once_flag report_once_, plan_once_;
  mutable std::string report_, plan_;
};

struct regie_session {
  std::shared_ptr<regie::Session> session;
  std::shared_ptr<regie::PlanSession> plans;   // in place of it, of a model with several plans
  std::shared_ptr<regie::ShapeLog> shape_log;  // NULL: nobody asked for one
};

struct regie_context {
  std::shared_ptr<regie::Context> context;
  std::shared_ptr<regie::PlanContext> plans;
  std::shared_ptr<regie::ShapeLog> shape_log;
  std::string statistics, device_times;
  std::vector<regie_task_time> times;
};

namespace regie {

// What a report says of all plans, as far as the plans tell: sizes, arenas.
nlohmann::ordered_json plans_json(const PlanSet& set);

// Keeps the status as the calling thread's last error; gives its code.
regie_status api_result(const Status& status);

// Runs `body` (gives a Status); exceptions of libraries become a status. Every function of the API is one of
// these.
template <class F>
regie_status api_guard(F&& body) noexcept {
  try {
    return api_result(body());
  } catch (const std::bad_alloc&) {
    return api_result(Status::error(REGIE_OUT_OF_MEMORY, "out of memory"));
  } catch (const std::exception& e) {
    return api_result(internal_error(e.what()));
  } catch (...) {
    return api_result(internal_error("unknown exception"));
  }
}

// The options of one call: NULLs refused, an unknown key an error with the nearest known one.
class ApiOptions {
 public:
  // `once`: keys that may be given once; `repeated`: any number of times.
  static Result<ApiOptions> read(const regie_option* options, size_t count,
                                 std::initializer_list<const char*> once,
                                 std::initializer_list<const char*> repeated = {});
  std::optional<std::string> find(std::string_view key) const;
  std::string text(std::string_view key, std::string fallback = {}) const;
  // INVALID_INPUT "option 'threads' must be a number from 1 to 1024, not 'x'".
  Result<int64_t> integer(std::string_view key, int64_t fallback, int64_t lower, int64_t upper) const;
  Result<bool> flag(std::string_view key, bool fallback) const;  // "1" or "0"
  std::vector<std::string> all(std::string_view key) const;      // in the order given
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return pairs_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// The plug-in host for a plug-in path (colon separated, may be empty): one a path and value of
// REGIE_PLUGIN_PATH, kept for the life of the process, as libraries are never unloaded. Also makes it the one
// that serves plug-ins' look-ups, and logs what is wrong with its folders and manifests.
Result<std::shared_ptr<PluginHost>> api_plugin_host(const std::string& plugin_path);

}  // namespace regie
