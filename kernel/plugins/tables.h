// The kinds of plug-in interfaces, and the one place that decides whether a plug-in is accepted: its entry,
// its tables' sizes and digests, its functions, and that it provides what its manifest says and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plugins/host.h"
#include "plugins/library_file.h"
#include "regie/c/entry.h"

namespace regie {

struct KindInfo {
  const char* kind;    // "op-kernel"
  const char* id;      // "draft/regie.op_kernel"
  const char* header;  // "op_kernel.h"
  const char* digest;  // of the header as this build saw it
  uint32_t size;       // of the table
  // Names of the table's entries, in order; the name of a missing function or list in `missing`.
  std::vector<regie_str> (*entries)(const void* table, const char** missing);
};
std::span<const KindInfo> plugin_kinds();
const KindInfo* find_kind(std::string_view kind);

// One interface of an accepted plug-in.
struct OpenTable {
  const void* table = nullptr;
  std::map<std::string, uint32_t, std::less<>> index;  // entry by name
};

// Messages say what differs, with both sides' versions. The numbers are checked twice: as they lie in the
// file, before it is opened, and as they are in memory.
Status check_entry_numbers(const EntryNumbers& numbers);
Status check_entry(const regie_plugin_entry_t* entry, const Manifest& manifest);
// Asks for every interface, provided or not, so that nothing comes unannounced.
Result<std::map<std::string, OpenTable, std::less<>>> check_tables(const regie_plugin_entry_t* entry,
                                                                   const Manifest& manifest);

}  // namespace regie
