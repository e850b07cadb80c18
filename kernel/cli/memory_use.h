// How much memory this process has held.
#pragma once

#include <cstdint>

namespace regie::cli {

// Resident bytes at most since the program was started; 0 if the system does not tell.
uint64_t peak_resident_bytes();

}  // namespace regie::cli
