#define HOST_CPU_SIMD simd_base
#define HOST_CPU_LANES 4
#include "simd_kernels.inl"
