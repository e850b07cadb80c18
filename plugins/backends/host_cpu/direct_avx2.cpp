#define HOST_CPU_DIRECT direct_avx2
#define HOST_CPU_LANES 8
#include "direct_kernels.inl"
