#define HOST_CPU_MAPS map_loops_avx2
#define HOST_CPU_LANES 8
#include "map_kernels.inl"
