#include "runtime.h"

#include <cstdlib>
#include <set>

namespace twin {

namespace {
std::set<std::string>& names() {
  static std::set<std::string> n;
  return n;
}
}  // namespace

const char* version() { return TWIN_VERSION; }

void register_name(const std::string& name) {
  if (!names().insert(name).second) std::abort();
}

size_t registered() { return names().size(); }

}  // namespace twin
