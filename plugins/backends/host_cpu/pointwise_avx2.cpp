// The loops of element-wise kernels for processors with avx2 (flags in CMakeLists.txt).
#define VECTOR_BYTES 32
#define LIBMVEC_LETTER d
#define F32_LANES 8
#define F64_LANES 4
#define FIND find_loop_avx2
#include "pointwise_level.h"
