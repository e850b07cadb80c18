// What follows from a CubeProblem alone.
#include <algorithm>
#include <utility>

#include "cube.h"

namespace aicore {

int64_t CubeProblem::part_blocks() const {
  if (convolution) return up(in_group, k0()) * map_kernel() * kernel_w;
  const int64_t blocks = up(k, k0());
  // Parts that may have to come in chunks have a length that chunks divide.
  return left_parts == 2 && blocks > 64 ? round_up(blocks, 16) : blocks;
}
int64_t CubeProblem::n_blocks() const { return convolution ? up(out_group, 16) : up(n, 16); }

std::optional<VectorStep> epilogue_activation(const CubeProblem& p, Source in) {
  if (p.epilogue.activation.empty()) return std::nullopt;
  return activation_step(p.epilogue.activation, p.epilogue.activation_alpha, p.epilogue.activation_beta,
                         std::move(in));
}

uint32_t epilogue_temporaries(const CubeProblem& p) {
  const auto step = epilogue_activation(p, {});
  const uint32_t of_residual = p.epilogue.residual_operand != REGIE_NONE && p.bytes_of(p.residual_elem) == 2;
  return std::max(step ? step->op->temporaries : 0, of_residual);
}

}  // namespace aicore
