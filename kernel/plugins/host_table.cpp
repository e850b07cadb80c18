// The C table that plug-ins call, and the words of failures on their way from a plug-in to a Status.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "base/dim.h"
#include "base/log.h"
#include "base/names.h"
#include "plugins/host.h"
#include "plugins/host_interfaces.h"

namespace regie {

namespace {

struct LastFailure {
  bool set = false;
  regie_status code = REGIE_OK;
  std::string message, where;
};

LastFailure& last_failure() {
  thread_local LastFailure failure;
  return failure;
}

bool is_failure_code(regie_status code) { return code >= REGIE_INVALID_MODEL && code <= REGIE_INTERNAL; }

// What plug-ins call must not throw into them: a failure to allocate costs the words, never the process.

regie_status host_fail(regie_status code, regie_str message, regie_str where) noexcept {
  LastFailure& last = last_failure();
  // A plug-in that only passes a failure on has no words of its own: those that led here stay.
  if (message.size == 0 && last.set) {
    last.code = code;
    return code;
  }
  try {
    last.message.assign(message.data ? message.data : "", message.data ? message.size : 0);
    last.where.assign(where.data ? where.data : "", where.data ? where.size : 0);
  } catch (...) {
    last.message.clear();
    last.where.clear();
  }
  last.code = code;
  last.set = true;
  return code;
}

void host_log(regie_log_level level, regie_str component, regie_str message) noexcept {
  try {
    log(level, view(component), view(message));
  } catch (...) {
  }
}

regie_dim host_dim_op(regie_dim_table* dims, uint32_t op, regie_dim a, regie_dim b) noexcept {
  try {
    return DimTable::from(dims).op(op, a, b);
  } catch (...) {
    return REGIE_DIM_UNKNOWN;
  }
}

regie_dim host_dim_symbol(regie_dim_table* dims, regie_str name, int64_t lower, int64_t upper,
                          uint32_t flags) noexcept {
  try {
    return DimTable::from(dims).symbol(view(name), lower, upper, (flags & 1) != 0);
  } catch (...) {
    return REGIE_DIM_UNKNOWN;
  }
}

void host_dim_range(regie_dim_table* dims, regie_dim dim, int64_t* lower, int64_t* upper) noexcept {
  try {
    const auto [low, high] = DimTable::from(dims).range(dim);
    *lower = low;
    *upper = high;
  } catch (...) {
    *lower = INT64_MIN;
    *upper = INT64_MAX;
  }
}

size_t host_dim_print(regie_dim_table* dims, regie_dim dim, char* buffer, size_t size) noexcept {
  std::string text;
  try {
    text = DimTable::from(dims).print(dim);
  } catch (...) {
  }
  if (buffer && size != 0) {
    const size_t n = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = '\0';
  }
  return text.size();
}

struct Current {
  std::mutex mutex;
  std::weak_ptr<PluginHost> host;
};

// Never destroyed: a plug-in may look up until the very end of the process.
Current& current() {
  static auto* c = new Current;
  return *c;
}

regie_status find_kernel(regie_str op, const regie_op_kernel_table** table, uint32_t* index) noexcept {
  try {
    std::shared_ptr<PluginHost> host;
    {
      std::lock_guard lock(current().mutex);
      host = current().host.lock();
    }
    if (!host) return fail_on_this_thread(not_found("there is no plug-in host to ask for kernels"));
    Result<Provider<regie_op_kernel_table>> found = host->op_kernel(view(op));
    if (!found.ok()) return fail_on_this_thread(found.status());
    *table = found->table;
    *index = found->index;
    return REGIE_OK;
  } catch (...) {
    return REGIE_OUT_OF_MEMORY;
  }
}

constexpr regie_host_ops kOps = {sizeof(regie_host_ops), 0, find_kernel};

struct Offered {
  std::mutex mutex;
  std::map<std::string, const void*, std::less<>> tables;
};
Offered& offered() {
  static auto* o = new Offered;
  return *o;
}

const void* host_find(const char* interface_id) noexcept {
  if (!interface_id) return nullptr;
  if (std::strcmp(interface_id, REGIE_HOST_OPS_ID) == 0) return &kOps;
  std::lock_guard lock(offered().mutex);
  auto it = offered().tables.find(std::string_view(interface_id));
  return it == offered().tables.end() ? nullptr : it->second;
}

constexpr regie_host kHost = {sizeof(regie_host), REGIE_ABI_MINOR, host_find,      host_fail,     host_log,
                              host_dim_op,        host_dim_symbol, host_dim_range, host_dim_print};

}  // namespace

const regie_host* host_table() { return &kHost; }

void offer_host_interface(const char* id, const void* table) {
  std::lock_guard lock(offered().mutex);
  offered().tables[id] = table;
}

void set_current_plugin_host(std::weak_ptr<PluginHost> host) {
  std::lock_guard lock(current().mutex);
  current().host = std::move(host);
}

regie_status fail_on_this_thread(const Status& status) {
  if (status.ok()) return REGIE_OK;
  // The words of a plug-in's callback into the kernel: its chain of contexts is part of the message.
  std::string text = status.message();
  for (const std::string& context : status.context()) text += "; while " + context;
  return host_fail(status.code(), str(text), str(status.where()));
}

void clear_plugin_failure() {
  LastFailure& last = last_failure();
  last.set = false;
  last.code = REGIE_OK;
  last.message.clear();
  last.where.clear();
}

Status take_plugin_failure(std::string_view what, regie_status code) {
  if (code == REGIE_OK) return {};
  LastFailure& last = last_failure();
  std::string message = last.set ? std::move(last.message) : std::string();
  std::string where = last.set ? std::move(last.where) : std::string();
  clear_plugin_failure();
  if (!is_failure_code(code)) {
    std::string text = std::string(what) + " returned the unknown status code " + std::to_string(code) +
                       "; plug-ins must return a code of regie/c/status.h";
    if (!message.empty()) text += " (it said: " + message + ")";
    return bad_plugin(std::move(text), std::move(where));
  }
  if (message.empty())
    return Status::error(
        code, std::string(what) + " failed (" + std::string(status_code_name(code)) + ") without saying why",
        std::move(where));
  return Status::error(code, std::move(message), std::move(where))
      .while_doing("running " + std::string(what));
}

ConfigText::ConfigText(std::vector<std::pair<std::string, std::string>> pairs)
    : pairs_(std::make_shared<const std::vector<std::pair<std::string, std::string>>>(std::move(pairs))) {
  auto settings = std::make_shared<std::vector<regie_setting>>();
  settings->reserve(pairs_->size());
  for (const auto& [key, value] : *pairs_) settings->push_back({str(key), str(value)});
  config_.count = static_cast<uint32_t>(settings->size());
  config_.settings = settings->data();
  settings_ = std::move(settings);
}

}  // namespace regie
