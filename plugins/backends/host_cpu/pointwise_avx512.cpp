// The loops of element-wise kernels for processors with avx512 (flags in CMakeLists.txt).
#define VECTOR_BYTES 64
#define LIBMVEC_LETTER e
#define F32_LANES 16
#define F64_LANES 8
#define FIND find_loop_avx512
#include "pointwise_level.h"
