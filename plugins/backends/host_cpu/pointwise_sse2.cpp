// The loops of element-wise kernels for processors with sse2 (flags in CMakeLists.txt).
#define VECTOR_BYTES 16
#define LIBMVEC_LETTER b
#define F32_LANES 4
#define F64_LANES 2
#define FIND find_loop_sse2
#include "pointwise_level.h"
