// Interned names: one process-wide table, so that equal names are equal numbers and a name's bytes live for
// ever. Ids depend on the order of interning: never sort or emit by id.
#pragma once

#include <cstdint>
#include <string_view>

#include "regie/c/status.h"

namespace regie {

using NameId = uint32_t;

NameId intern(std::string_view text);  // thread-safe
std::string_view name_of(NameId id);   // valid for the life of the process

inline std::string_view view(regie_str s) { return {s.data, s.size}; }
inline regie_str str(std::string_view s) { return {s.data(), s.size()}; }
// A regie_str whose bytes live for ever.
inline regie_str interned(std::string_view text) { return str(name_of(intern(text))); }

}  // namespace regie
