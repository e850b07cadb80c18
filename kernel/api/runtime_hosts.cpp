// Plug-in hosts by search path, and opening ahead.
#include "api/hosts.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "api/objects.h"
#include "base/file.h"
#include "model/file.h"
#include "model/layout.h"
#include "plugins/manifest.h"

namespace regie {

namespace {

// One a path, made once; whoever asks while it is made waits for it alone.
struct HostEntry {
  std::mutex mutex;
  std::shared_ptr<PluginHost> host;
};

using HostKey = std::pair<std::string, std::string>;  // plugin-path and REGIE_PLUGIN_PATH

struct Hosts {
  std::mutex mutex;
  std::map<HostKey, HostEntry> by_path;  // entries stay where they are
  static Hosts& all() {
    static Hosts* hosts = new Hosts;  // never destroyed: plug-ins may be in use until the end
    return *hosts;
  }
};

HostKey host_key(const std::string& plugin_path) {
  const char* environment = std::getenv("REGIE_PLUGIN_PATH");
  return {plugin_path, environment ? environment : ""};
}

using HostOfPath = std::map<HostKey, HostEntry>::value_type;

HostOfPath& entry_of(const std::string& plugin_path) {
  Hosts& hosts = Hosts::all();
  std::lock_guard lock(hosts.mutex);
  return *hosts.by_path.try_emplace(host_key(plugin_path)).first;
}

Result<std::shared_ptr<PluginHost>> host_in(HostOfPath& of) {
  auto& [key, entry] = of;
  const auto& [plugin_path, environment] = key;
  std::lock_guard lock(entry.mutex);
  if (!entry.host) {
    REGIE_ASSIGN(entry.host, PluginHost::create_silent(folders_of_path(plugin_path), environment));
  }
  return entry.host;
}

// Threads that open libraries for nobody in particular. A process must not end while one of them runs the
// initialisers of a library, and a child of fork() would find the locks that they hold held for ever.
class Openings {
 public:
  static Openings& all() {
    static Openings* openings = make();  // never destroyed, as its threads may be the last to run
    return *openings;
  }
  template <class Work>
  Status begin(Work work) {
    std::lock_guard lock(mutex_);
    std::erase_if(list_, [](Opening& o) {
      if (!o.done->load(std::memory_order_acquire)) return false;
      o.thread.join();
      return true;
    });
    list_.reserve(list_.size() + 1);  // a thread that is there can be kept
    try {
      auto done = std::make_shared<std::atomic<bool>>(false);
      std::thread thread([work = std::move(work), done] {
        is_one() = true;
        try {
          work();
        } catch (...) {  // whoever needs it tries again
        }
        done->store(true, std::memory_order_release);
      });
      list_.push_back({std::move(thread), std::move(done)});
    } catch (const std::system_error& e) {
      return Status::error(REGIE_LIMIT,
                           std::string("no thread is to be had to open libraries on: ") + e.what());
    }
    return {};
  }

 private:
  static Openings* make() {
    auto* made = new Openings;
    // An initialiser of a library may fork or end the process: it does not wait for itself.
    std::atexit([] {
      if (is_one()) return;
      Openings& openings = all();
      std::lock_guard lock(openings.mutex_);
      openings.join();
    });
    pthread_atfork(
        [] {
          if (is_one()) return;
          all().mutex_.lock();
          all().join();
        },
        unlock, unlock);
    return made;
  }
  static void unlock() {
    if (!is_one()) all().mutex_.unlock();
  }
  static bool& is_one() {
    thread_local bool value = false;
    return value;
  }
  void join() {
    for (Opening& o : list_) o.thread.join();
    list_.clear();
  }
  struct Opening {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> done;
  };
  std::mutex mutex_;
  std::vector<Opening> list_;
};

}  // namespace

Result<std::shared_ptr<PluginHost>> find_host(const std::string& plugin_path) {
  return host_in(entry_of(plugin_path));
}

Status open_ahead(const std::string& device, const std::string& plugin_path) {
  // The variable is read here, not by the thread: the caller may change it at once.
  HostOfPath& of = entry_of(plugin_path);
  return Openings::all().begin([&of, device] {
    const Result<std::shared_ptr<PluginHost>> host = host_in(of);
    // Opening alone: oneDNN in use would meet the end of what it keeps, as the process ends.
    if (host.ok()) static_cast<void>((*host)->device(device));
  });
}

std::future<void> open_devices_of(const MappedFile& file) {
  if (std::thread::hardware_concurrency() < 2) return {};
  {
    std::lock_guard lock(Hosts::all().mutex);
    if (Hosts::all().by_path.count(host_key(""))) return {};
  }
  std::vector<std::string> names = device_plugins(file.bytes());
  if (names.empty()) return {};
  try {
    // What it throws stays in the future: whoever needs them tries again.
    return std::async(std::launch::async, [names = std::move(names)] {
      const Result<std::shared_ptr<PluginHost>> host = find_host("");
      for (const std::string& name : names)
        if (host.ok()) static_cast<void>((*host)->device(name));
    });
  } catch (const std::system_error&) {
    return {};  // no thread is to be had
  }
}

Result<std::shared_ptr<PluginHost>> api_plugin_host(const std::string& plugin_path) {
  REGIE_ASSIGN(std::shared_ptr<PluginHost> host, find_host(plugin_path));
  host->say_problems();
  set_current_plugin_host(host);
  return host;
}

}  // namespace regie

regie_status regie_open_ahead(const char* device, const char* plugin_path) {
  return regie::api_guard([&]() -> regie::Status {
    if (!device || !*device)
      return regie::invalid_input(
          "regie_open_ahead: the name of a device plug-in is needed, such as host_cpu");
    return regie::open_ahead(device, plugin_path ? plugin_path : "");
  });
}
