// Matrix products and convolutions on the cube: what is to be computed (CubeProblem), how it is cut
// (CubePlan, searched against the model of time of chip.h), the program, and the weights as the program reads
// them.
//
// A convolution is the product of the implicit matrix of its windows (output positions x (c1, kernel row,
// kernel column, c0)) with its weights, so both share everything but the way in of the left matrix and the
// way out of the result.
//
// A core computes tiles of `rows` x `columns`. The left panel of a tile (all of k) lies in L1, brought there
// through UB, where f32 becomes f16 and rows become fractals; the right matrix comes in chunks of k, or stays
// in L1 altogether. Where k is long both come in chunks. L0A, L0B, L0C and the buffers of results in UB are
// halved, so that the pipes overlap.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "chip.h"
#include "regie/c/view.h"
#include "vector_math.h"

namespace aicore {

struct Epilogue {
  float alpha = 1;      // of the product
  bool scaled = false;  // each column is multiplied by a factor of its own (CubeBuffers::factors)
  uint32_t bias_operand = REGIE_NONE;  // one f32 or f16 a column of the product (a channel)
  uint64_t bias_count = 0;
  uint32_t residual_operand = REGIE_NONE;  // of the result's shape
  std::string activation;                  // of activation_step; empty: none
  float activation_alpha = 0, activation_beta = 0;
};

// What becomes of the sums of a product of bytes (cube_bytes.cpp), in this order.
struct ByteEpilogue {
  // Weights minus their zero points are sums of so many s8.
  int64_t parts = 1;
  // Tables of one number a column behind the packed weights, in this order: what is added to the sums, in
  // s32 (zero points, whole biases); what they are multiplied by, in f32; what is added then, in f32.
  bool corrected = false, scaled = false, biased = false;
  // Scalars that are known when the model runs, of the left matrix: corrections are multiplied by its zero
  // point, factors by its scale.
  uint32_t zero_operand = REGIE_NONE, scale_operand = REGIE_NONE;
  // Of a result of bytes: its scale where the factors do not contain it already (else 0), its zero point,
  // and bounds in its units.
  float divisor = 0;
  int32_t zero = 0, low = 0, high = 0;
  int32_t pad = 0;  // the left matrix's zero point: what lies around a map
  // Of a sum with a residual of bytes (byte_sum.h): what the bytes so far and those of the residual are less
  // by, and times; what the sum is divided by (0: nothing), moved by, and the least that it may be.
  int32_t inner_zero = 0, residual_zero = 0, sum_zero = 0, sum_low = 0;
  float inner_scale = 0, residual_scale = 0, sum_divisor = 0;
  // It is made on the cube (add_on_cube), by a matrix behind the tables; this brings it to units.
  bool on_cube = false;
  float sum_factor = 0;
  int64_t sum_bytes() const { return on_cube ? 4 * kFractal : 0; }
  int64_t tables() const { return int64_t{corrected} + int64_t{scaled} + int64_t{biased}; }
};

struct CubeProblem {
  bool convolution = false;
  regie_elem elem = REGIE_F32;  // of the result, and of operands that do not say otherwise: f32 or f16
  regie_elem left_elem = REGIE_ELEM_UNKNOWN, right_elem = REGIE_ELEM_UNKNOWN, bias_elem = REGIE_ELEM_UNKNOWN,
             residual_elem = REGIE_ELEM_UNKNOWN;
  // Of a convolution: blocks of 16 channels (NC1HWC0), 32 of bytes, the result together with the residual.
  bool left_blocked = false, result_blocked = false;
  // Of a product: FRACTAL_NZ of halves, each batch for itself.
  bool left_matrix = false, right_matrix = false, residual_matrix = false, result_matrix = false;
  int64_t batch = 1;
  // Of a product: [m, k] x [k, n], of each batch. A and B may be the same for all of it.
  int64_t m = 0, n = 0, k = 0;
  bool a_batched = false, b_batched = false, transposed_a = false, transposed_b = false, constant_b = true;
  // Of a convolution. Groups are joined until their channels fill blocks of 16: `groups` are these, of
  // in_group and out_group channels each (the last may have fewer).
  int64_t channels = 0, height = 0, width = 0, out_channels = 0, out_height = 0, out_width = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, pad_top = 0,
          pad_left = 0;
  int64_t model_groups = 1, groups = 1, in_group = 0, out_group = 0;
  // Of few channels: so many rows of the input lie behind each other as channels, (channel, row) of a block
  // of 16, so that a step of k is not nearly all zeros. Row j of the map holds the input's from (j -
  // fold_above()) * stride_h on, a kernel covers as many at a time (cube_fold.cpp).
  int64_t fold = 1;
  int64_t fold_above() const { return fold / stride_h - 1; }  // rows of the map before the input's first
  int64_t fold_shift() const {
    return (stride_h - pad_top % stride_h) % stride_h;
  }  // rows before the kernel's
  int64_t map_height() const {
    return fold == 1 ? height : (height + stride_h - 1) / stride_h + fold_above();
  }
  int64_t map_kernel() const { return fold == 1 ? kernel_h : (kernel_h + fold_shift() + fold - 1) / fold; }
  int64_t map_stride() const { return fold == 1 ? stride_h : 1; }
  int64_t map_dilation() const { return fold == 1 ? dilation_h : fold / stride_h; }
  int64_t map_pad() const { return fold == 1 ? pad_top : (pad_top + fold_shift()) / stride_h - fold_above(); }
  Epilogue epilogue;
  ByteEpilogue bytes;
  uint32_t right_operand = 1;
  // 2: an f32 left matrix is the sum of two of halves, its values rounded and what that loses. They lie one
  // behind the other along k, and so do two copies of the weights: a product twice as deep, exact to 22 bits
  // of the left matrix.
  int64_t left_parts = 1;
  // Sums are turned as two halves as well.
  bool split_sums = false;
  // Bias, and a residual, that the cube adds (cube_addends.cpp); what stands for one there, a power of two.
  bool cube_bias = false, cube_residual = false;
  float ones = 1;

  // A product of bytes: left_elem is i8 or u8, the weights are i8.
  bool of_bytes() const { return is_byte(left_elem); }
  // Elements in the 32 bytes of k that fractals are made of, and bytes of one.
  int64_t k0() const { return of_bytes() ? 32 : 16; }
  int64_t lane() const { return of_bytes() ? 1 : 2; }
  int64_t element_bytes() const { return size_of(elem); }
  int64_t bytes_of(regie_elem e) const { return size_of(e == REGIE_ELEM_UNKNOWN ? elem : e); }
  // The left panel goes from global memory to L1 without a stay in UB: halves that lie in blocks, or rows of
  // whole blocks.
  bool direct() const {
    return bytes_of(left_elem) == lane() &&
           (convolution ? left_blocked : !transposed_a && (left_matrix || k % k0() == 0));
  }
  // The same of a right matrix that is computed.
  bool right_direct() const {
    return !constant_b && !of_bytes() && bytes_of(right_elem) == 2 &&
           (right_matrix || (transposed_b ? k : n) % 16 == 0);
  }
  // Elements of the result, and of the operands of a product, as they lie.
  int64_t laid_matrix(int64_t rows, int64_t columns, bool matrix) const {
    return matrix ? (rows + 15) / 16 * 16 * ((columns + 15) / 16 * 16) : rows * columns;
  }
  int64_t left_count() const {
    return (a_batched ? batch : 1) *
           (transposed_a ? laid_matrix(k, m, left_matrix) : laid_matrix(m, k, left_matrix));
  }
  int64_t right_count() const {
    return (b_batched ? batch : 1) *
           (transposed_b ? laid_matrix(n, k, right_matrix) : laid_matrix(k, n, right_matrix));
  }
  int64_t part_blocks() const;  // of k0, of one group
  int64_t k_blocks() const { return left_parts * part_blocks(); }
  int64_t n_blocks() const;
  int64_t left_blocks() const { return up(in_group, k0()); }
  // Channels as they lie: the last block of a blocked tensor is filled up with zeros.
  int64_t lanes_in() const { return left_blocked ? round_up(channels, k0()) : channels; }
  int64_t lanes_out() const { return result_blocked ? round_up(out_channels, result_lane()) : out_channels; }
  // Channels in a block of the result.
  int64_t result_lane() const { return is_byte(elem) ? 32 : 16; }
  // Sums become bytes while they leave L0C: nothing is done to them but what `requant` does.
  bool requants() const {
    return is_byte(elem) && bytes.scaled && !bytes.biased && bytes.divisor == 0 &&
           bytes.high == most_byte(elem) && (bytes.low == least_byte(elem) || bytes.low == bytes.zero);
  }
  // Are sums the result, but for rounding and bounds?
  bool leaves_as_it_is() const;
  // Sums go from positions x channels to channels x positions on their way out.
  bool turned() const { return convolution && !result_blocked; }
  int64_t result_columns() const { return convolution ? out_channels : n; }
  // Are there blocks of channels that the input does not fill?
  bool misses_channels() const { return groups * left_blocks() * k0() != channels; }
  // A column of 16 weights for each row of fractals takes so many fractals.
  int64_t right_parts() const { return of_bytes() ? bytes.parts : 1; }
};

struct CubePlan {
  int64_t parts_b = 1, parts_m = 1, parts_n = 1;  // of the cores
  int64_t turns_batch = 1, turns_group = 1, turns_m = 1, turns_c = 1,
          turns_n = 1;   // of a core, outermost first
  int64_t out_rows = 1;  // of a convolution: rows of the result in a tile
  int64_t rows = 16;     // of a tile: m, or positions
  int64_t padded_rows = 16;
  int64_t columns = 1;  // blocks of 16 of a tile
  int64_t n_tiles = 1;
  int64_t chunk = 1, step = 1;  // blocks of k: of the right matrix in L1, of L0
  int64_t chunks = 1, steps = 1;
  int64_t drained = 1;  // blocks of columns that go through UB at a time
  int64_t left_slots = 2;
  int64_t sums_slots = 2;  // 1: a tile that takes all of L0C is drained before the next one begins
  bool resident = false;   // the right matrix of the core stays in L1
  // Of a product whose left panel is too long for L1, or not worth keeping: it comes in chunks of k with the
  // right matrix, for each tile anew.
  bool streamed = false;
  // The way of the left panel through UB.
  int64_t window = 1, pixels = 16, pixel_chunks = 1,
          unit_blocks = 1;                                // convolution: rows of input, positions in UB
  int64_t unit_rows = 16, unit_columns = 16;              // product
  int64_t right_unit_rows = 16, right_unit_columns = 16;  // of a right matrix that is not constant
  // Addresses.
  int64_t l1_left = 0, left_bytes = 0, plane = 0, l1_right = 0, right_bytes = 0;
  int64_t l1_addends = 0, l1_residual = 0;
  int64_t ub_load = 0, ub_cast = 0, ub_panel = 0, ub_wide = 0, ub_right_load = 0, ub_right_panel = 0,
          ub_bias = 0, ub_bias_load = 0, ub_factors = 0;
  int64_t ub_drain = 0, ub_turned = 0, ub_sum = 0, ub_temporary = 0, ub_value = 0, ub_result = 0,
          ub_residual = 0, ub_used = 0;
  int64_t ub_tables = 0, ub_scalars = 0, ub_half = 0;  // of a product of bytes
  int64_t l1_sum = 0, l1_sum_right = 0, l0a_sum = 0, l0b_sum = 0;
  int64_t ub_sum_half = 0, ub_sum_inner = 0, ub_sum_outer = 0;  // of a sum with a residual of bytes
  int64_t result_slot = 0;       // of a product of bytes: bytes of one of two in ub_result
  double cycles = 0, pipes = 0;  // the first with what the memory takes
  bool operator<(const CubePlan& o) const { return cycles != o.cycles ? cycles < o.cycles : pipes < o.pipes; }
  int64_t cores() const { return parts_b * parts_m * parts_n; }
};

// A table of one number a column, in four bytes each: of all columns, and what tiles reach beyond them, as do
// those of a last group that is not full.
inline int64_t table_bytes(const CubeProblem& p, const CubePlan& t) {
  return (round_up(std::max(p.result_columns(), p.groups * p.out_group), 16) + t.columns * 16) * 4;
}

// Weights of a convolution, by output channel: calls body(k, i) for the i-th of channel n, with its k within
// the blocks of the joined group.
template <class Body>
void each_of_channel(const CubeProblem& p, int64_t n, Body&& body) {
  const int64_t k0 = p.k0(), window = p.kernel_h * p.kernel_w, inner = p.channels / p.model_groups,
                outer = p.out_channels / p.model_groups;
  if (p.fold > 1) {
    for (int64_t c = 0; c < inner; ++c)
      for (int64_t k = 0; k < window; ++k) {
        const int64_t row = k / p.kernel_w + p.fold_shift();
        body((row / p.fold * p.kernel_w + k % p.kernel_w) * k0 + c * p.fold + row % p.fold, c * window + k);
      }
    return;
  }
  for (int64_t i = 0; i < inner; ++i) {
    const int64_t c =
        n / outer * inner + i - n / p.out_group * p.in_group;  // channel within the joined group
    for (int64_t k = 0; k < window; ++k) body((c / k0 * window + k) * k0 + c % k0, i * window + k);
  }
}

// The best plan. Throws UNSUPPORTED where no tile fits the buffers, with the figures.
CubePlan plan_cube(const CubeProblem& problem, const Chip& chip);

// The program of a node: operands 0 (left), 1 (right: packed if constant) and those of the epilogue; result
// 0.
regie::tile::Program cube_program(const CubeProblem& problem, const CubePlan& plan, const Chip& chip,
                                  uint64_t right_bytes);

// The same as a part of a program: on the first `plan.cores()` cores, between global buffers of the builder.
// It begins and ends with all flags down.
struct CubeBuffers {
  uint32_t left = 0, right = 0, bias = REGIE_NONE, residual = REGIE_NONE, result = 0;
  uint64_t right_offset = 0;  // where a constant right matrix begins
  // Of a product of bytes: where the tables lie in `right`, and scalars that are known at run time.
  uint64_t tables_offset = 0;
  uint32_t zero = REGIE_NONE, scale = REGIE_NONE;
  // Of a scaled epilogue: one f32 a column from here on.
  uint32_t factors = REGIE_NONE;
  uint64_t factors_offset = 0;
};
void emit_cube(const CubeProblem& problem, const CubePlan& plan, regie::tile::Builder& builder,
               const CubeBuffers& buffers);

// Constant weights in the order of `cube_program`: FRACTAL_Z of f16, (group, block of k, block of n, 16 n, 16
// k). Behind them, where the epilogue is scaled, the factors that were taken out of the columns.
std::string pack_weights(const CubeProblem& problem, const CubePlan& plan, const regie_tensor& weights);
// What that is called.
inline const char* layout_of(const CubeProblem& p) {
  return p.epilogue.scaled ? "opaque:aicore:fractal_z-f16-factors" : "opaque:aicore:fractal_z-f16";
}

// Temporaries in UB that the epilogue needs, registers of f32.
uint32_t epilogue_temporaries(const CubeProblem& problem);
std::optional<VectorStep> epilogue_activation(const CubeProblem& problem, Source in);

}  // namespace aicore
