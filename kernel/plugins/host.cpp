#include "plugins/host.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/toml.h"
#include "plugins/library_file.h"
#include "plugins/manifest.h"
#include "plugins/static_plugins.h"
#include "plugins/tables.h"

namespace regie {

namespace {

namespace fs = std::filesystem;

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) text += (i ? ", " : "") + list[i];
  return text;
}

struct Library {
  const regie_plugin_entry_t* linked_in = nullptr;
  bool tried = false;
  Status status;
  std::map<std::string, OpenTable, std::less<>> tables;  // by kind
};

// Opens a shared object for the rest of the process: code, tables and what threads hold of it stay valid.
Result<const regie_plugin_entry_t*> load(const std::string& path) {
  boost::dll::fs::error_code error;
  using Mode = boost::dll::load_mode::type;
  auto* library = new boost::dll::shared_library;
  library->load(fs::absolute(path), Mode(boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local),
                error);
  if (error) {
    delete library;
    const char* detail = ::dlerror();
    return bad_plugin(
        "the dynamic linker cannot open it: " + (detail ? std::string(detail) : error.message()) +
        "; link it with -z defs to see what it lacks");
  }
  // Reachable for ever, so that the handle is never given back and never called a leak.
  static std::mutex mutex;
  static auto* opened = new std::vector<boost::dll::shared_library*>;
  {
    std::lock_guard lock(mutex);
    opened->push_back(library);
  }
  if (!library->has("regie_plugin_entry")) return bad_plugin("it exports no symbol regie_plugin_entry");
  return &library->get<const regie_plugin_entry_t>("regie_plugin_entry");
}

Result<const regie_plugin_entry_t*> open_library(const std::string& path) {
  REGIE_ASSIGN(const LibraryFile file, read_library_file(path));
  if (!file.has_entry)
    return bad_plugin(
        "it exports no symbol regie_plugin_entry, so it is no plug-in; define it with REGIE_PLUGIN");
  REGIE_TRY(check_entry_numbers(file.numbers));
  if ((file.needs & ~uint32_t{REGIE_BUILD_FLAGS}) != 0)
    return bad_plugin(
        "it calls the run time of a sanitizer that this Regie was built without; build both with the same");
  return load(path);
}

}  // namespace

// Manifests are parsed when somebody asks for a name that they mention, or for all: a process that runs a
// model needs one or two of dozens.
struct PluginHost::Impl {
  struct Slot {
    std::string file, text;  // not parsed yet
    const regie_static_plugin* linked = nullptr;
    bool parsed = false, sound = false;
    // TOML can write a name in several ways, all others with a backslash.
    bool mentions(std::string_view name) const {
      return text.find(name) != std::string::npos || text.find('\\') != std::string::npos;
    }
    Manifest manifest;
    Library library;
  };

  std::vector<std::string> folders;   // searched for manifests, in order
  std::vector<std::string> overlays;  // those of them that the user gave

  std::mutex words_mutex;  // guards the next two; taken last
  bool silent = false;
  std::vector<std::string> unsaid;

  mutable std::mutex mutex;  // guards what follows
  std::vector<Slot> slots;   // as many as `create` found, at places of their own
  bool all_parsed = false;
  std::map<std::string, std::map<std::string, std::vector<uint32_t>, std::less<>>, std::less<>> providers;
  std::vector<PluginProblem> problems;
  std::vector<Manifest> manifests;  // the sound ones, once all are parsed

  void read_folder(const std::string& folder);
  void parse(uint32_t which);
  void parse_all();
  const std::vector<uint32_t>* provided(std::string_view kind, std::string_view name) const;
  // Who provides this, of manifests that mention the name; NULL: nobody.
  const std::vector<uint32_t>* look_up(std::string_view kind, std::string_view name);
  void report(std::string path, std::string message);
  Status open(uint32_t which);
  Status absent(std::string_view kind, std::string_view name);
  template <class Table>
  Result<Provider<Table>> find(std::string_view kind, std::string_view name);
};

void PluginHost::Impl::report(std::string path, std::string message) {
  {
    std::lock_guard lock(words_mutex);
    if (silent)
      unsaid.push_back(message);
    else
      log(REGIE_LOG_WARNING, "plug-ins", message);
  }
  problems.push_back({std::move(path), std::move(message)});
}

void PluginHost::Impl::read_folder(const std::string& folder) {
  std::error_code error;
  const std::vector<std::string> files = files_in(folder, ".toml", &error);
  if (error)
    return report(folder, "cannot read the plug-in folder " + in_quotes(folder) + ": " + error.message() +
                              "; correct REGIE_PLUGIN_PATH or make the folder");
  for (const std::string& file : files) {
    Result<std::string> text = read_text_file(file);
    if (!text.ok()) {
      report(file, text.status().to_string());
      continue;
    }
    slots.emplace_back();
    slots.back().file = file;
    slots.back().text = std::move(text).value();
  }
}

void PluginHost::Impl::parse(uint32_t which) {
  Slot& slot = slots[which];
  if (slot.parsed) return;
  slot.parsed = true;
  Result<Manifest> manifest = parse_manifest(slot.text, slot.file, slot.linked != nullptr);
  slot.text.clear();
  if (!manifest.ok()) return report(slot.file, manifest.status().to_string());
  slot.sound = true;
  slot.manifest = std::move(manifest).value();
  if (slot.linked) {
    slot.manifest.path += " " + slot.manifest.name;
    slot.library.linked_in = static_cast<const regie_plugin_entry_t*>(slot.linked->entry);
  }
  for (const auto& [kind, name] : slot.manifest.provides) {
    std::vector<uint32_t>& ids = providers[kind][name];
    ids.insert(std::upper_bound(ids.begin(), ids.end(), which), which);
  }
}

void PluginHost::Impl::parse_all() {
  if (all_parsed) return;
  all_parsed = true;
  for (uint32_t i = 0; i < slots.size(); ++i) parse(i);
  for (const Slot& slot : slots)
    if (slot.sound) manifests.push_back(slot.manifest);
}

const std::vector<uint32_t>* PluginHost::Impl::provided(std::string_view kind, std::string_view name) const {
  const auto it = providers.find(kind);
  if (it == providers.end()) return nullptr;
  const auto entry = it->second.find(name);
  return entry == it->second.end() ? nullptr : &entry->second;
}

const std::vector<uint32_t>* PluginHost::Impl::look_up(std::string_view kind, std::string_view name) {
  if (!all_parsed)
    for (uint32_t i = 0; i < slots.size(); ++i)
      if (!slots[i].parsed && slots[i].mentions(name)) parse(i);
  return provided(kind, name);
}

Status PluginHost::Impl::open(uint32_t which) {
  Library& library = slots[which].library;
  if (library.tried) return library.status;
  library.tried = true;
  const Manifest& manifest = slots[which].manifest;
  auto attempt = [&]() -> Status {
    for (const Slot& other : slots)
      if (&other != &slots[which] && other.library.tried && other.library.status.ok() &&
          other.manifest.name == manifest.name)
        return bad_plugin("a plug-in of the same name is open already: " + in_quotes(other.manifest.path) +
                          "; rename or remove one");
    const regie_plugin_entry_t* entry = library.linked_in;
    if (!entry) {
      REGIE_ASSIGN(entry, open_library(manifest.library));
    }
    REGIE_TRY(check_entry(entry, manifest));
    REGIE_ASSIGN(library.tables, check_tables(entry, manifest));
    return {};
  };
  Status s = attempt();
  if (!s.ok()) {
    const std::string& path = manifest.library.empty() ? manifest.path : manifest.library;
    s = Status::error(s.code(), "plug-in " + in_quotes(manifest.name) + " is refused: " + s.message(), path);
    problems.push_back({path, s.message()});
    library.tables.clear();
  }
  library.status = s;
  return s;
}

Status PluginHost::Impl::absent(std::string_view kind, std::string_view name) {
  parse_all();
  std::string text = "no plug-in provides " + in_quotes(std::string(kind) + ":" + std::string(name));
  std::vector<std::string> known;
  if (auto it = providers.find(kind); it != providers.end())
    for (const auto& entry : it->second) known.push_back(entry.first);
  if (auto nearest = nearest_name(name, known)) text += "; did you mean " + in_quotes(*nearest) + "?";
  text += folders.empty() ? "; no plug-in folder was found" : "; searched in " + joined(folders);
  text += "; set REGIE_PLUGIN_PATH for more";
  if (!problems.empty()) {
    text += "; plug-ins with problems: ";
    for (size_t i = 0; i < problems.size(); ++i) text += (i ? ", " : "") + problems[i].path;
  }
  return not_found(std::move(text));
}

template <class Table>
Result<Provider<Table>> PluginHost::Impl::find(std::string_view kind, std::string_view name) {
  std::lock_guard lock(mutex);
  const std::vector<uint32_t>* found = look_up(kind, name);
  if (!found) return absent(kind, name);
  if (found->size() > 1) {
    std::vector<std::string> files;
    for (uint32_t id : *found) files.push_back(slots[id].manifest.path);
    return bad_plugin(std::to_string(files.size()) + " plug-ins provide " +
                      in_quotes(std::string(kind) + ":" + std::string(name)) + ": " + joined(files) +
                      "; remove or rename all but one");
  }
  const uint32_t which = found->front();
  REGIE_TRY(open(which));
  const OpenTable& table = slots[which].library.tables.find(kind)->second;
  Provider<Table> provider;
  provider.table = static_cast<const Table*>(table.table);
  provider.index = table.index.find(name)->second;
  provider.manifest = &slots[which].manifest;
  return provider;
}

PluginHost::PluginHost() : impl_(std::make_unique<Impl>()) {}
PluginHost::~PluginHost() = default;

Result<std::shared_ptr<PluginHost>> PluginHost::create(std::vector<std::string> extra_folders) {
  const char* environment = std::getenv("REGIE_PLUGIN_PATH");
  REGIE_ASSIGN(std::shared_ptr<PluginHost> host,
               create_silent(std::move(extra_folders), environment ? environment : ""));
  host->say_problems();
  return host;
}

void PluginHost::say_problems() {
  std::lock_guard lock(impl_->words_mutex);
  impl_->silent = false;
  for (const std::string& words : impl_->unsaid) log(REGIE_LOG_WARNING, "plug-ins", words);
  impl_->unsaid.clear();
}

Result<std::shared_ptr<PluginHost>> PluginHost::create_silent(std::vector<std::string> extra_folders,
                                                              std::string_view environment) {
  std::shared_ptr<PluginHost> host(new PluginHost);
  Impl& impl = *host->impl_;
  impl.silent = true;
  for (const std::string& folder : extra_folders)
    if (std::error_code error; !fs::is_directory(folder, error))
      return not_found("there is no plug-in folder '" + folder +
                       "'; check the path that was given for plug-ins");
  std::vector<std::string> folders = std::move(extra_folders);
  for (std::string& folder : folders_of_path(environment)) folders.push_back(std::move(folder));
  const size_t given = folders.size();
  if (std::string built_in = built_in_plugin_folder(); !built_in.empty())
    folders.push_back(std::move(built_in));
  std::set<std::string> seen;
  for (size_t i = 0; i < folders.size(); ++i) {
    std::error_code error;
    const fs::path real = fs::canonical(folders[i], error);
    if (!seen.insert(error ? folders[i] : real.string()).second) continue;
    impl.folders.push_back(folders[i]);
    if (i < given) impl.overlays.push_back(folders[i]);
    impl.read_folder(folders[i]);
  }
  for (size_t i = 0; i < regie_static_plugin_count; ++i) {
    impl.slots.emplace_back();
    impl.slots.back().file = "(linked in)";
    impl.slots.back().text = regie_static_plugins[i].manifest_toml;
    impl.slots.back().linked = &regie_static_plugins[i];
  }
  return host;
}

const std::vector<Manifest>& PluginHost::manifests() const {
  std::lock_guard lock(impl_->mutex);
  impl_->parse_all();
  return impl_->manifests;
}

std::vector<PluginProblem> PluginHost::problems() const {
  std::lock_guard lock(impl_->mutex);
  impl_->parse_all();
  return impl_->problems;
}

std::vector<std::string> PluginHost::names(std::string_view kind) const {
  std::lock_guard lock(impl_->mutex);
  impl_->parse_all();
  std::vector<std::string> names;
  if (auto it = impl_->providers.find(kind); it != impl_->providers.end())
    for (const auto& entry : it->second) names.push_back(entry.first);
  return names;
}

Result<Provider<regie_frontend_table>> PluginHost::frontend(std::string_view name) {
  return impl_->find<regie_frontend_table>("frontend", name);
}
Result<Provider<regie_op_shape_table>> PluginHost::op_shape(std::string_view op) {
  return impl_->find<regie_op_shape_table>("op-shape", op);
}
Result<Provider<regie_op_kernel_table>> PluginHost::op_kernel(std::string_view op) {
  return impl_->find<regie_op_kernel_table>("op-kernel", op);
}
Result<Provider<regie_pass_table>> PluginHost::pass(std::string_view name) {
  return impl_->find<regie_pass_table>("pass", name);
}
Result<Provider<regie_rewrite_table>> PluginHost::rewrite(std::string_view name) {
  return impl_->find<regie_rewrite_table>("rewrite", name);
}
Result<Provider<regie_placer_table>> PluginHost::placer(std::string_view name) {
  return impl_->find<regie_placer_table>("placer", name);
}
Result<Provider<regie_scheduler_table>> PluginHost::scheduler(std::string_view name) {
  return impl_->find<regie_scheduler_table>("scheduler", name);
}
Result<Provider<regie_memory_table>> PluginHost::memory(std::string_view name) {
  return impl_->find<regie_memory_table>("memory", name);
}
Result<Provider<regie_engine_table>> PluginHost::engine(std::string_view name) {
  return impl_->find<regie_engine_table>("engine", name);
}
Result<Provider<regie_device_table>> PluginHost::device(std::string_view name) {
  return impl_->find<regie_device_table>("device", name);
}
Result<const regie_device_trace_table*> PluginHost::device_trace(std::string_view name) {
  {
    std::lock_guard lock(impl_->mutex);
    if (!impl_->look_up("device-trace", name)) return nullptr;
  }
  REGIE_ASSIGN(const auto found, impl_->find<regie_device_trace_table>("device-trace", name));
  return found.table;
}

Status PluginHost::verify_library(const Manifest& manifest) {
  std::lock_guard lock(impl_->mutex);
  impl_->parse_all();
  for (uint32_t i = 0; i < impl_->slots.size(); ++i)
    if (impl_->slots[i].sound && impl_->slots[i].manifest.path == manifest.path) return impl_->open(i);
  return not_found("no plug-in of this host has the manifest " + in_quotes(manifest.path));
}

std::vector<std::string> PluginHost::opened() const {
  std::lock_guard lock(impl_->mutex);
  std::vector<std::string> list;
  for (const Impl::Slot& slot : impl_->slots)
    if (slot.library.tried && slot.library.status.ok())
      list.push_back(slot.manifest.name + " " + slot.manifest.version);
  std::sort(list.begin(), list.end());
  return list;
}

// ---- Configuration files
// -----------------------------------------------------------------------------------------

namespace {

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// <folder>/<kind> of the overlays, then of the product.
std::vector<std::string> config_folders(const std::vector<std::string>& overlays, std::string_view kind) {
  std::vector<std::string> folders;
  for (const std::string& overlay : overlays)
    if (const fs::path folder = fs::path(overlay) / kind; is_folder(folder))
      folders.push_back(folder.string());
  if (const std::string product = built_in_config_folder(); !product.empty())
    if (const fs::path folder = fs::path(product) / kind; is_folder(folder))
      folders.push_back(folder.string());
  return folders;
}

}  // namespace

std::vector<std::string> PluginHost::schema_folders() const {
  std::vector<std::string> folders = config_folders(impl_->overlays, "ops");
  // Overlays add to the product's operators: those come first.
  const std::string product = built_in_config_folder();
  if (!folders.empty() && !product.empty() && folders.back() == (fs::path(product) / "ops").string())
    std::rotate(folders.begin(), folders.end() - 1, folders.end());
  return folders;
}

Result<std::string> PluginHost::find_config(std::string_view kind, std::string_view name) const {
  std::error_code error;
  const std::string given(name);
  if (name.find('/') != std::string_view::npos) {
    if (fs::is_regular_file(given, error)) return given;
    return not_found("there is no file " + in_quotes(name) + "; check the path");
  }
  const bool has_ending = name.size() > 5 && name.substr(name.size() - 5) == ".toml";
  const std::string stem(has_ending ? name.substr(0, name.size() - 5) : name);
  const std::vector<std::string> folders = config_folders(impl_->overlays, kind);
  for (const std::string& folder : folders)
    if (const fs::path file = fs::path(folder) / (stem + ".toml"); fs::is_regular_file(file, error))
      return file.string();
  if (has_ending && fs::is_regular_file(given, error)) return given;
  std::string text = "no file " + in_quotes(stem + ".toml") + " in the " + std::string(kind) + " folders";
  if (auto nearest = nearest_name(stem, config_names(kind)))
    text += "; did you mean " + in_quotes(*nearest) + "?";
  text += folders.empty() ? " (there are none)" : "; searched in " + joined(folders);
  return not_found(std::move(text));
}

std::vector<std::string> PluginHost::config_names(std::string_view kind) const {
  std::set<std::string> names;
  for (const std::string& folder : config_folders(impl_->overlays, kind)) {
    std::error_code error;
    for (const std::string& path : files_in(folder, ".toml", &error))
      names.insert(fs::path(path).stem().string());
  }
  return {names.begin(), names.end()};
}

}  // namespace regie
