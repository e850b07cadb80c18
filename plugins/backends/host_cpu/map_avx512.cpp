#define HOST_CPU_MAPS map_loops_avx512
#define HOST_CPU_LANES 16
#include "map_kernels.inl"
