#include "plugins/tables.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>

#include "regie_digests.h"

namespace regie {

namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

// Collects the first function that is not there.
class Functions {
 public:
  explicit Functions(const char** missing) : missing_(missing) {}
  template <class F>
  Functions& operator()(F* function, const char* name) {
    if (!function && !*missing_) *missing_ = name;
    return *this;
  }

 private:
  const char** missing_;
};

template <class Table, class Entry, class NameOf>
std::vector<regie_str> names_of(const Table& table, const Entry* entries, const char* list,
                                const char** missing, NameOf name_of) {
  std::vector<regie_str> names;
  if (table.count != 0 && !entries) {
    if (!*missing) *missing = list;
    return names;
  }
  for (uint32_t i = 0; i < table.count; ++i) names.push_back(name_of(entries[i]));
  return names;
}

template <class Table>
const Table& as(const void* table) {
  return *static_cast<const Table*>(table);
}

const auto name_field = [](const auto& info) { return info.name; };

std::vector<regie_str> frontends(const void* table, const char** missing) {
  const auto& t = as<regie_frontend_table>(table);
  Functions{missing}(t.probe, "probe")(t.import_model, "import_model");
  return names_of(t, t.frontends, "frontends", missing, name_field);
}

std::vector<regie_str> op_shapes(const void* table, const char** missing) {
  const auto& t = as<regie_op_shape_table>(table);
  Functions{missing}(t.infer, "infer");
  return names_of(t, t.ops, "ops", missing, [](const regie_str& op) { return op; });
}

std::vector<regie_str> op_kernels(const void* table, const char** missing) {
  const auto& t = as<regie_op_kernel_table>(table);
  Functions{missing}(t.prepare, "prepare")(t.run, "run")(t.release, "release");
  return names_of(t, t.ops, "ops", missing, [](const regie_op_info& info) { return info.op; });
}

std::vector<regie_str> passes(const void* table, const char** missing) {
  const auto& t = as<regie_pass_table>(table);
  Functions{missing}(t.create, "create")(t.run, "run")(t.destroy, "destroy");
  return names_of(t, t.passes, "passes", missing, name_field);
}

std::vector<regie_str> rewrites(const void* table, const char** missing) {
  const auto& t = as<regie_rewrite_table>(table);
  Functions{missing}(t.create, "create")(t.apply, "apply")(t.destroy, "destroy");
  return names_of(t, t.rewrites, "rewrites", missing,
                  [](const regie_rewrite_info& info) { return info.pass.name; });
}

std::vector<regie_str> placers(const void* table, const char** missing) {
  const auto& t = as<regie_placer_table>(table);
  Functions{missing}(t.place, "place");
  return names_of(t, t.placers, "placers", missing, name_field);
}

std::vector<regie_str> schedulers(const void* table, const char** missing) {
  const auto& t = as<regie_scheduler_table>(table);
  Functions{missing}(t.schedule, "schedule");
  return names_of(t, t.schedulers, "schedulers", missing, name_field);
}

std::vector<regie_str> planners(const void* table, const char** missing) {
  const auto& t = as<regie_memory_table>(table);
  Functions{missing}(t.plan, "plan");
  return names_of(t, t.planners, "planners", missing, name_field);
}

std::vector<regie_str> engines(const void* table, const char** missing) {
  const auto& t = as<regie_engine_table>(table);
  Functions{missing}(t.create, "create")(t.destroy, "destroy")(t.ask, "ask")(t.alias, "alias")(t.compile,
                                                                                               "compile");
  return names_of(t, t.engines, "engines", missing, name_field);
}

std::vector<regie_str> devices(const void* table, const char** missing) {
  const auto& t = as<regie_device_table>(table);
  Functions{missing}(t.create, "create")(t.destroy, "destroy")(t.describe, "describe")(
      t.allocate, "allocate")(t.release, "release")(t.stream_create, "stream_create")(
      t.stream_destroy, "stream_destroy")(t.stream_wait, "stream_wait")(t.kernel_load, "kernel_load")(
      t.kernel_release, "kernel_release")(t.prepare, "prepare")(t.executable_release, "executable_release")(
      t.launch, "launch")(t.copy, "copy")(t.call_host, "call_host")(t.fence_create, "fence_create")(
      t.fence_destroy, "fence_destroy")(t.fence_signal, "fence_signal")(t.fence_wait, "fence_wait")(
      t.host_wait, "host_wait")(t.now, "now");
  return names_of(t, t.devices, "devices", missing, name_field);
}

std::vector<regie_str> device_traces(const void* table, const char** missing) {
  const auto& t = as<regie_device_trace_table>(table);
  Functions{missing}(t.record, "record")(t.tag, "tag")(t.collect, "collect");
  return names_of(t, t.devices, "devices", missing, name_field);
}

constexpr KindInfo kKinds[] = {
    {"frontend", REGIE_FRONTEND_ID, "frontend.h", REGIE_DIGEST_FRONTEND, sizeof(regie_frontend_table),
     frontends},
    {"op-shape", REGIE_OP_SHAPE_ID, "op_shape.h", REGIE_DIGEST_OP_SHAPE, sizeof(regie_op_shape_table),
     op_shapes},
    {"op-kernel", REGIE_OP_KERNEL_ID, "op_kernel.h", REGIE_DIGEST_OP_KERNEL, sizeof(regie_op_kernel_table),
     op_kernels},
    {"pass", REGIE_PASS_ID, "pass.h", REGIE_DIGEST_PASS, sizeof(regie_pass_table), passes},
    {"rewrite", REGIE_REWRITE_ID, "pass.h", REGIE_DIGEST_PASS, sizeof(regie_rewrite_table), rewrites},
    {"placer", REGIE_PLACER_ID, "placer.h", REGIE_DIGEST_PLACER, sizeof(regie_placer_table), placers},
    {"scheduler", REGIE_SCHEDULER_ID, "scheduler.h", REGIE_DIGEST_SCHEDULER, sizeof(regie_scheduler_table),
     schedulers},
    {"memory", REGIE_MEMORY_ID, "memory.h", REGIE_DIGEST_MEMORY, sizeof(regie_memory_table), planners},
    {"engine", REGIE_ENGINE_ID, "engine.h", REGIE_DIGEST_ENGINE, sizeof(regie_engine_table), engines},
    {"device", REGIE_DEVICE_ID, "device.h", REGIE_DIGEST_DEVICE, sizeof(regie_device_table), devices},
    {"device-trace", REGIE_DEVICE_TRACE_ID, "device_trace.h", REGIE_DIGEST_DEVICE_TRACE,
     sizeof(regie_device_trace_table), device_traces},
};

// More entries than any table has; beyond it the count is rubbish and the list must not be walked.
constexpr uint32_t kMaxEntries = 1 << 16;

std::string version(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string sanitizers(uint32_t flags) {
  if (flags == 0) return "no sanitizer";
  std::string text;
  if (flags & REGIE_BUILD_ASAN) text = "AddressSanitizer";
  if (flags & REGIE_BUILD_TSAN) text += text.empty() ? "ThreadSanitizer" : " and ThreadSanitizer";
  return text.empty() ? "unknown build flags " + std::to_string(flags) : text;
}

std::string shortened(const char* digest) {
  return std::string(digest, std::min<size_t>(std::strlen(digest), 12));
}

Status unequal(const char* what, const char* plugin, const std::string& manifest) {
  return bad_plugin("the library says that its " + std::string(what) + " is " +
                    in_quotes(plugin ? plugin : "(nothing)") + ", the manifest says " + in_quotes(manifest) +
                    "; install the two files together");
}

Status check_table(const KindInfo& kind, const void* table, const Manifest& manifest, OpenTable* open) {
  const std::string what = "its interface " + std::string(kind.id);
  const auto& head = *static_cast<const regie_table_head*>(table);
  if (!head.header_digest)
    return bad_plugin(what + " has no header digest; fill regie_table_head from regie_digests.h");
  if (std::strcmp(head.header_digest, kind.digest) != 0)
    return bad_plugin(what + " was built with another regie/c/" + kind.header + " (digest " +
                      shortened(head.header_digest) + ") than this Regie " REGIE_VERSION " (digest " +
                      shortened(kind.digest) + "); build the plug-in with the SDK of this version");
  if (head.struct_size != kind.size)
    return bad_plugin(what + " has a table of " + std::to_string(head.struct_size) +
                      " bytes, this Regie " REGIE_VERSION " knows one of " + std::to_string(kind.size) +
                      "; set struct_size to the size of the whole table");
  // All tables agree up to here: head, count.
  uint32_t count;
  std::memcpy(&count, static_cast<const char*>(table) + sizeof(regie_table_head), sizeof count);
  if (count > kMaxEntries) return bad_plugin(what + " claims " + std::to_string(count) + " entries");
  const char* missing = nullptr;
  const std::vector<regie_str> names = kind.entries(table, &missing);
  if (missing) return bad_plugin(what + " lacks '" + missing + "' (it is NULL)");

  std::set<std::string> promised;
  for (const auto& [provided, name] : manifest.provides)
    if (provided == kind.kind) promised.insert(name);
  for (uint32_t i = 0; i < names.size(); ++i) {
    const std::string text = names[i].data ? std::string(names[i].data, names[i].size) : std::string();
    const std::string item = std::string(kind.kind) + ":" + text;
    if (text.empty())
      return bad_plugin(what + " has an entry without a name (number " + std::to_string(i) + ")");
    if (!open->index.emplace(text, i).second)
      return bad_plugin(what + " has two entries named " + in_quotes(text));
    if (!promised.erase(text))
      return bad_plugin("the library provides " + in_quotes(item) +
                        ", which its manifest does not name; add it to PROVIDES");
  }
  if (!promised.empty())
    return bad_plugin("the manifest names " + in_quotes(std::string(kind.kind) + ":" + *promised.begin()) +
                      ", which the library does not provide; correct PROVIDES or the table");
  open->table = table;
  return {};
}

}  // namespace

std::span<const KindInfo> plugin_kinds() { return kKinds; }

const KindInfo* find_kind(std::string_view kind) {
  for (const KindInfo& k : kKinds)
    if (kind == k.kind) return &k;
  return nullptr;
}

Status check_entry_numbers(const EntryNumbers& n) {
  if (n.magic != REGIE_ENTRY_MAGIC)
    return bad_plugin(
        "its regie_plugin_entry does not begin with Regie's magic number; define it with REGIE_PLUGIN");
  if (n.abi_major != REGIE_ABI_MAJOR || n.abi_minor > REGIE_ABI_MINOR)
    return bad_plugin(
        "it was built against version " + version(n.abi_major, n.abi_minor) +
        " of the plug-in interface, this Regie " REGIE_VERSION " has " +
        version(REGIE_ABI_MAJOR, REGIE_ABI_MINOR) + "; " +
        (n.abi_major < REGIE_ABI_MAJOR ? "build it with the SDK of this version" : "use a newer Regie"));
  if (n.struct_size < sizeof(regie_plugin_entry_t))
    return bad_plugin("its regie_plugin_entry has " + std::to_string(n.struct_size) +
                      " bytes, this Regie " REGIE_VERSION " needs " +
                      std::to_string(sizeof(regie_plugin_entry_t)) +
                      "; build it with the SDK of this version");
  if (n.build_flags != REGIE_BUILD_FLAGS)
    return bad_plugin("it was built with " + sanitizers(n.build_flags) +
                      ", this Regie " REGIE_VERSION " with " + sanitizers(REGIE_BUILD_FLAGS) +
                      "; build both with the same (REGIE_PLUGIN_BUILD_FLAGS)");
  return {};
}

Status check_entry(const regie_plugin_entry_t* entry, const Manifest& manifest) {
  if (!entry) return bad_plugin("it has no regie_plugin_entry");
  // The size decides how much of the struct there is; the numbers are in every version of it.
  REGIE_TRY(check_entry_numbers(
      {entry->magic, entry->struct_size, entry->abi_major, entry->abi_minor, entry->build_flags}));
  if (!entry->name || manifest.name != entry->name) return unequal("name", entry->name, manifest.name);
  if (!entry->version || manifest.version != entry->version)
    return unequal("version", entry->version, manifest.version);
  if (!entry->find)
    return bad_plugin("its regie_plugin_entry has no find function; define it with REGIE_PLUGIN");
  return {};
}

Result<std::map<std::string, OpenTable, std::less<>>> check_tables(const regie_plugin_entry_t* entry,
                                                                   const Manifest& manifest) {
  std::map<std::string, OpenTable, std::less<>> tables;
  for (const KindInfo& kind : kKinds) {
    const void* table = nullptr;
    try {
      table = entry->find(kind.id);
    } catch (...) {
      return bad_plugin("its find function threw an exception when asked for " + std::string(kind.id) +
                        "; it must return a table or NULL");
    }
    const auto wanted = std::find_if(manifest.provides.begin(), manifest.provides.end(),
                                     [&](const auto& p) { return p.first == kind.kind; });
    if (table) {
      REGIE_TRY(check_table(kind, table, manifest, &tables[kind.kind]));
    } else if (wanted != manifest.provides.end()) {
      return bad_plugin("the manifest names " + in_quotes(wanted->first + ":" + wanted->second) +
                        ", but the library has no interface " + kind.id + "; correct PROVIDES or find");
    }
  }
  return tables;
}

}  // namespace regie
