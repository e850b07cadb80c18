#define HOST_CPU_SIMD simd_avx512
#define HOST_CPU_LANES 16
#include "simd_kernels.inl"
