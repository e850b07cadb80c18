// A vector of HOST_CPU_LANES floats, for files that are compiled for one instruction set; within their unnamed namespace.

constexpr int L = HOST_CPU_LANES;
typedef float V __attribute__((vector_size(4 * L), aligned(4), may_alias));

inline V load(const float* p) { return *reinterpret_cast<const V*>(p); }
inline void store(float* p, V v) { *reinterpret_cast<V*>(p) = v; }
