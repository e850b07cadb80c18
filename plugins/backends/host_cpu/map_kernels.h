// Inner loops over maps, compiled for several instruction sets (map_*.cpp, all from map_kernels.inl): windows
// of pooling, a factor and an addend for each channel, and turning a matrix.
//
// They are compiled ahead, so that nothing is generated when a model is loaded (docs/kernels.md). Nothing
// here allocates, throws or starts threads.
#pragma once

#include <cstdint>

namespace host_cpu {

enum class Window { kMax, kMean };

// Positions beside each other whose windows have the same part within the map, for channels that lie beside
// each other. Distances are in floats.
struct WindowWork {
  const float* x;  // the first window's first position that lies in the map
  float* y;
  int64_t channels;
  int64_t positions, x_step, y_step;   // from a position's window to the next one's; of the result
  int64_t rows, columns, row, column;  // of a window within the map; from one to the next
  float factor = 1;                    // of the sum, for kMean
};

// A row of positions whose windows' parts are elements beside each other: row-major maps.
struct RowWork {
  const float* x;  // the first row of the windows that lies in the map, at the first column that they read
  float* y;
  int64_t width, left, right;  // columns of the map that they read; padding before and after
  int64_t positions, stride;   // of the result; from a window to the next
  int64_t rows, row;           // of a window within the map; from one to the next
  int64_t columns, column;     // of a window; from one to the next
  // For kMean: how many elements of a row are counted at each position; rows that are.
  const float* counted;
  float rows_counted;
};
// left + width + right and two vectors.
constexpr int64_t kRowRoom = 4096, kRowSlack = 32;

struct MapLoops {
  // A maximum leaves out NaN, as the reference kernel does; of nothing else it is minus infinity.
  void (*window)(Window of, const WindowWork& work);
  void (*row)(Window of, const RowWork& work);
  // y = x * scale + shift, at least `least`; of positions one after the other. NaN stays.
  void (*affine)(float* y, const float* x, const float* scale, const float* shift, int64_t channels,
                 int64_t positions, float least);
  // y[j * y_step + i] = x[i * x_step + j] for rows i and columns j; of y whole vectors are written.
  void (*transpose)(float* y, int64_t y_step, const float* x, int64_t x_step, int64_t rows, int64_t columns);
};
const MapLoops& map_loops();

extern const MapLoops map_loops_base;
#if defined(__x86_64__)
extern const MapLoops map_loops_avx2, map_loops_avx512;
#endif

}  // namespace host_cpu
