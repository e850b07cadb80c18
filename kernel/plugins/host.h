// The plug-in host: finds plug-ins by their manifests, opens the ones that are needed, negotiates tables, and
// calls them safely. Nothing here knows an operator or a device; it knows kinds ("pass", "engine",
// "op-kernel" ...) and names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "regie/c/device.h"
#include "regie/c/device_trace.h"
#include "regie/c/engine.h"
#include "regie/c/entry.h"
#include "regie/c/frontend.h"
#include "regie/c/host.h"
#include "regie/c/memory.h"
#include "regie/c/op_kernel.h"
#include "regie/c/op_shape.h"
#include "regie/c/pass.h"
#include "regie/c/placer.h"
#include "regie/c/scheduler.h"

namespace regie {

// What NAME.toml beside NAME.so says.
struct Manifest {
  std::string path;     // of the manifest
  std::string library;  // full path; empty if linked in statically
  std::string name, version;
  std::vector<std::pair<std::string, std::string>> provides;  // {"pass", "fold-constants"} ...
  std::vector<std::string> environment;                       // variables that change what it gives
};

// One provider of a name, opened: which library, and which entry of its table.
template <class Table>
struct Provider {
  const Table* table = nullptr;
  uint32_t index = 0;
  const Manifest* manifest = nullptr;
};

struct PluginProblem {  // for `plugins list`
  std::string path, message;
};

class PluginHost {
 public:
  // Finds the manifests of all folders: REGIE_PLUGIN_PATH (colon separated) first, then the built-in folder
  // beside the libraries, then what is linked in. They are parsed when a name that they mention, or all, is
  // asked for. A broken manifest is a problem of its own and harms no other. The same kind and name twice is
  // an error when it is asked for, naming both files.
  static Result<std::shared_ptr<PluginHost>> create(std::vector<std::string> extra_folders = {});
  // With `environment` in place of REGIE_PLUGIN_PATH, and its problems logged by say_problems() only: for a
  // host that is made before anybody is known to need it.
  static Result<std::shared_ptr<PluginHost>> create_silent(std::vector<std::string> extra_folders,
                                                           std::string_view environment);
  void say_problems();  // those that were not logged yet, and later ones at once
  ~PluginHost();

  const std::vector<Manifest>& manifests() const;
  std::vector<PluginProblem> problems() const;                  // so far: manifests unread, libraries refused
  std::vector<std::string> names(std::string_view kind) const;  // sorted

  // Opens the library that provides `kind`:`name` on first use. NOT_FOUND names the nearest one and the
  // folders searched; BAD_PLUGIN names the library and both sides' versions. Thread-safe. `Table` decides id
  // and digest.
  Result<Provider<regie_frontend_table>> frontend(std::string_view name);
  Result<Provider<regie_op_shape_table>> op_shape(std::string_view op);
  Result<Provider<regie_op_kernel_table>> op_kernel(std::string_view op);
  Result<Provider<regie_pass_table>> pass(std::string_view name);
  Result<Provider<regie_rewrite_table>> rewrite(std::string_view name);
  Result<Provider<regie_placer_table>> placer(std::string_view name);
  Result<Provider<regie_scheduler_table>> scheduler(std::string_view name);
  Result<Provider<regie_memory_table>> memory(std::string_view name);
  Result<Provider<regie_engine_table>> engine(std::string_view name);
  Result<Provider<regie_device_table>> device(std::string_view name);
  // NULL: the device of that name tells no more than its own table does.
  Result<const regie_device_trace_table*> device_trace(std::string_view name);

  // Opens everything that `manifest` says and checks that it provides exactly that (`plugins describe`,
  // tests).
  Status verify_library(const Manifest& manifest);

  // "name version" of every library opened so far, sorted: part of a model's identity.
  std::vector<std::string> opened() const;

  // Folders with operator schemas (configs/ops of the product, `ops` of overlay folders), for
  // SchemaSet::load.
  std::vector<std::string> schema_folders() const;
  // Full path of configs/<kind>/<name>.toml (kind: pipelines, rules, targets), overlays first; `name` may be
  // a path.
  Result<std::string> find_config(std::string_view kind, std::string_view name) const;
  std::vector<std::string> config_names(std::string_view kind) const;

 private:
  PluginHost();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The C table that plug-ins get. One a process.
const regie_host* host_table();
// Which PluginHost serves REGIE_HOST_OPS_ID look-ups; the last one set, process-wide (they differ in folders
// only).
void set_current_plugin_host(std::weak_ptr<PluginHost> host);

// Keeps `status` as the calling thread's last failure and gives its code: what regie_host.fail does.
regie_status fail_on_this_thread(const Status& status);
// Turns a plug-in's return into a Status with the words that it left; exceptions that it lets out (of any
// runtime library) become BAD_PLUGIN. `what` is e.g. "pass 'fold-constants' of plug-in passes-basic".
template <class F>
Status call_plugin(std::string_view what, F&& call);
Status take_plugin_failure(std::string_view what, regie_status code);
void clear_plugin_failure();

template <class F>
Status call_plugin(std::string_view what, F&& call) {
  regie_status code;
  clear_plugin_failure();
  try {
    code = call();
  } catch (...) {
    return bad_plugin(std::string(what) +
                      " threw an exception across the plug-in boundary; plug-ins must return a status");
  }
  return code == REGIE_OK ? Status() : take_plugin_failure(what, code);
}

// An owning regie_config.
class ConfigText {
 public:
  ConfigText() = default;
  explicit ConfigText(std::vector<std::pair<std::string, std::string>> pairs);
  const regie_config* get() const { return &config_; }
  const std::vector<std::pair<std::string, std::string>>& pairs() const { return *pairs_; }

 private:
  std::shared_ptr<const std::vector<std::pair<std::string, std::string>>> pairs_ =
      std::make_shared<std::vector<std::pair<std::string, std::string>>>();
  std::shared_ptr<const std::vector<regie_setting>> settings_;
  regie_config config_{};
};

}  // namespace regie
