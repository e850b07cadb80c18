#define HOST_CPU_MAPS map_loops_base
#define HOST_CPU_LANES 4
#include "map_kernels.inl"
