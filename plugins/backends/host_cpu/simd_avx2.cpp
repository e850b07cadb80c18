#define HOST_CPU_SIMD simd_avx2
#define HOST_CPU_LANES 8
#include "simd_kernels.inl"
