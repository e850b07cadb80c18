// Inner loops of convolutions by kernels of our own, over whole vectors of output channels; compiled for
// several instruction sets (direct_*.cpp, all from direct_kernels.inl).
//
// They do what oneDNN's direct kernels do, but are compiled ahead: nothing is generated when a model is
// loaded (docs/kernels.md).
#pragma once

#include <cstdint>

namespace host_cpu {

// What all work on one convolution has in common. Distances are in floats.
struct DirectShape {
  int64_t kernel_width;     // positions of a window's row
  const int64_t* src_taps;  // from a window's corner to each of its positions, row by row
  const int64_t* w_taps;    // from the first position's weights to each one's
  int64_t src_right;        // from a window's position to the next in its row
  int64_t src_step = 1;     // from an input channel to the next within 16
  int64_t src_block;        // from 16 input channels to the next 16
  int64_t src_pixel;        // from a position's window to the next position's in its row
  int64_t in_block;         // input channels whose weights lie evenly: 8 or 16
  int64_t w_step;           // from an input channel's weights to the next one's within a block of them
  int64_t w_block;          // from a block of input channels' weights to the next one's
  int64_t w_vector;         // from a vector of output channels to the next
  int64_t dst_vector;       // the same, in the result and what is added to it
  int64_t src_vector;       // the same, in the input, where each channel has a window of its own
  int64_t dst_pixel;        // from a position of the result to the next in its row
  // Each channel has a window of its own, of 3 or 5 columns, and the next position's begins one or two of
  // them further.
  bool rows_at_once = false;
  // What becomes of a sum y: kClip: it is kept between low and high; kHardSwish: y clip(low y + high, 0, 1);
  // kSteps: what `steps` makes of n of them, whole vectors. NaN stays.
  enum Ending { kNone, kClip, kHardSwish, kSteps } ending = kNone;
  float low = 0, high = 0;
  void (*steps)(const void* what, float* y, int64_t n);
  const void* what;
};

// Some vectors of channels, at most Direct::vectors of them, for some positions.
struct DirectWork {
  int vectors;
  int tail;  // channels in the last vector
  // Input channels, from a multiple of 16 on. Before those from 0 on nothing is in dst; until the last ones
  // are there sums are, before their ending.
  int64_t begin, end;
  bool last;
  const float* w;         // of the first vector
  const float* bias;      // of its first channel; NULL: none
  float* dst;             // of the first channel, at the position that dst_at counts from
  const float* residual;  // added to the result, lies like it; NULL: none
  int64_t count;          // positions
  // Positions beside each other that have the same part of their windows within the map: rows and columns
  // from the first number up to the second. The first window's corner, in the first channel.
  // rows_at_once: all of a row; columns are counted from the first window's first one on, those within the
  // map.
  const float* src;
  int64_t dst_at;
  int64_t rows[2], columns[2];
  // Positions anywhere, at most Direct::pixels: for each of a window's positions, for each of them, the first
  // channel of where it reads; NULL: in the padding. [window][count]
  const float* const* table;
  int64_t window;
  const int64_t* dst_ats;
};

struct Direct {
  int lanes, pixels, vectors;
  void (*strip)(const DirectShape& shape, const DirectWork& work);
  void (*scattered)(const DirectShape& shape, const DirectWork& work);
  // Of a convolution that has a window a channel; any number of vectors.
  void (*depthwise)(const DirectShape& shape, const DirectWork& work);
};

// For the processor at hand; NULL: there is none.
const Direct* direct();

#if defined(__x86_64__)
extern const Direct direct_avx2, direct_avx512;
#endif

}  // namespace host_cpu
