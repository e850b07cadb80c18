// What one plug-in of this build provides, found by name as the kernel finds it.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "plugins/host.h"

namespace regie::test {

// Keeps the plug-in loaded. Throws if there is no such one.
template <class Table>
struct Provided : Provider<Table> {
  Provided(Result<Provider<Table>> (PluginHost::*find)(std::string_view), const std::string& name) {
    auto made = PluginHost::create();
    if (!made.ok()) throw std::runtime_error(made.status().to_string());
    host = *made;
    auto found = ((*host).*find)(name);
    if (!found.ok()) throw std::runtime_error(found.status().to_string());
    static_cast<Provider<Table>&>(*this) = *found;
  }
  std::shared_ptr<PluginHost> host;
};

}  // namespace regie::test
