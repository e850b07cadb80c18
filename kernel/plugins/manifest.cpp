#include "plugins/manifest.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/toml.h"
#include "plugins/tables.h"

namespace regie {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSchema = 1;

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

Result<std::pair<std::string, std::string>> parse_provided(const std::string& item,
                                                           const std::string& where) {
  const size_t colon = item.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == item.size())
    return invalid_input(in_quotes(item) + " in 'provides' must be \"<kind>:<name>\"", where);
  std::string kind = item.substr(0, colon);
  std::vector<std::string> known;
  for (const KindInfo& k : plugin_kinds()) known.emplace_back(k.kind);
  if (std::find(known.begin(), known.end(), kind) == known.end()) {
    std::string text = in_quotes(item) + " in 'provides': unknown kind " + in_quotes(kind);
    if (auto nearest = nearest_name(kind, known)) {
      text += "; did you mean " + in_quotes(*nearest) + "?";
    } else {
      text += "; known kinds:";
      for (size_t i = 0; i < known.size(); ++i) text += (i ? ", " : " ") + known[i];
    }
    return invalid_input(std::move(text), where);
  }
  return std::pair(std::move(kind), item.substr(colon + 1));
}

// Folders of this library and of the executable, nearest first.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  Dl_info info;
  static const char anchor = 0;
  if (::dladdr(&anchor, &info) != 0 && info.dli_fname) {
    const fs::path self = fs::canonical(info.dli_fname, error);
    if (!error) folders.push_back(self.parent_path());
  }
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(executable.parent_path());
  return folders;
}

std::string first_folder(std::initializer_list<const char*> below) {
  for (const fs::path& own : own_folders())
    for (const char* relative : below) {
      std::error_code error;
      const fs::path folder = fs::canonical(own / relative, error);
      if (!error && fs::is_directory(folder, error)) return folder.string();
    }
  return {};
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::string& path, bool linked_in) {
  REGIE_ASSIGN(const TomlTable toml, TomlTable::parse(text, path));
  REGIE_TRY(toml.check_schema(kSchema));
  Manifest m;
  m.path = path;
  REGIE_ASSIGN(const TomlValue name, toml.require("name"));
  REGIE_ASSIGN(m.name, name.as_string());
  REGIE_ASSIGN(const TomlValue version, toml.require("version"));
  REGIE_ASSIGN(m.version, version.as_string());
  REGIE_ASSIGN(const TomlValue library, toml.require("library"));
  REGIE_ASSIGN(const std::string file, library.as_string());
  REGIE_ASSIGN(const TomlValue provides, toml.require("provides"));
  REGIE_ASSIGN(const std::vector<TomlValue> items, provides.as_array());
  if (const std::optional<TomlValue> list = toml.find("environment")) {
    REGIE_ASSIGN(m.environment, list->as_strings());
  }
  REGIE_TRY(toml.finish());
  if (m.name.empty()) return invalid_input("'name' must not be empty", name.where());
  if (m.version.empty()) return invalid_input("'version' must not be empty", version.where());
  if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos)
    return invalid_input(
        "'library' must be the name of a file in the manifest's folder, not " + in_quotes(file),
        library.where());
  if (!linked_in) m.library = (fs::path(path).parent_path() / file).string();
  std::set<std::string> seen;
  for (const TomlValue& item : items) {
    REGIE_ASSIGN(const std::string entry, item.as_string());
    REGIE_ASSIGN(auto provided, parse_provided(entry, item.where()));
    if (!seen.insert(entry).second)
      return invalid_input(in_quotes(entry) + " is twice in 'provides'", item.where());
    m.provides.push_back(std::move(provided));
  }
  if (m.provides.empty()) return invalid_input("'provides' must name something", provides.where());
  return m;
}

std::vector<std::string> folders_of_path(std::string_view rest) {
  std::vector<std::string> folders;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    if (const std::string_view folder = rest.substr(0, colon); !folder.empty()) folders.emplace_back(folder);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return folders;
}

std::string built_in_plugin_folder() { return first_folder({"regie/plugins", "../lib/regie/plugins"}); }

std::string built_in_config_folder() { return first_folder({"../share/regie/configs"}); }

}  // namespace regie
