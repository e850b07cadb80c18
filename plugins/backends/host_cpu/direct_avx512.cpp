#define HOST_CPU_DIRECT direct_avx512
#define HOST_CPU_LANES 16
#include "direct_kernels.inl"
