// hash64 (hash.h) for processors with AVX2. C alone is included here: see hash_avx2.cpp.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace regie {

uint64_t hash64_avx2(const void* data, size_t size);

}  // namespace regie
