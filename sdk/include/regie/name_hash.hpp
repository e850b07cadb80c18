// A short name for bytes, the same on every computer: FNV-1a. It tells apart what an honest compiler makes, and
// protects against nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace regie::sdk {

constexpr uint64_t name_hash(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace regie::sdk
