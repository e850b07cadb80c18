#include "base/names.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

namespace regie {

namespace {
struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::string_view, NameId> ids;
  std::deque<std::string> names;
};
// Never destroyed: names are used until the very end of the process.
Table& table() {
  static Table* t = new Table;
  return *t;
}
}  // namespace

NameId intern(std::string_view text) {
  Table& t = table();
  {
    std::shared_lock lock(t.mutex);
    if (auto it = t.ids.find(text); it != t.ids.end()) return it->second;
  }
  std::unique_lock lock(t.mutex);
  if (auto it = t.ids.find(text); it != t.ids.end()) return it->second;
  t.names.emplace_back(text);
  NameId id = static_cast<NameId>(t.names.size() - 1);
  t.ids.emplace(t.names.back(), id);
  return id;
}

std::string_view name_of(NameId id) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  return t.names[id];
}

}  // namespace regie
