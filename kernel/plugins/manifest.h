// Manifests: what NAME.toml beside NAME.so says, and the folders in which they are looked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plugins/host.h"

namespace regie {

// `text` is the manifest's, `path` for messages and the library's folder; `linked_in`: the library is this
// binary.
Result<Manifest> parse_manifest(std::string_view text, const std::string& path, bool linked_in);

// The folders of a path such as REGIE_PLUGIN_PATH, in its order, empty ones left out.
std::vector<std::string> folders_of_path(std::string_view path);
// Places beside this library or this executable; empty if there is none.
std::string built_in_plugin_folder();  // .../lib/regie/plugins
std::string built_in_config_folder();  // .../share/regie/configs

}  // namespace regie
