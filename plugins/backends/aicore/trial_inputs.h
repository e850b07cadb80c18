// What a trial of a graph (trial.h) gives its inputs. A rounding is left over more or less by what a network
// looks at: errors of noise are independent from place to place and average out, those of a flat background
// are the same at each place and do not; a sigmoid that noise leaves in the middle is at its ends for a page
// of text. So there are several kinds, all from fixed seeds, and the worst counts.
#pragma once

#include <array>
#include <cstdint>

#include "regie/c/view.h"

namespace aicore {

enum class TrialInputs {
  kNoise,    // of mean 0 and variance 1
  kPage,     // light, nearly flat, with dark strokes: as pictures are once mean and deviation are taken out
  kPicture,  // between 0 and 1: smooth, with a few edges
  kFlat,     // small and nearly the same everywhere
};
inline constexpr std::array kTrialInputs{TrialInputs::kNoise, TrialInputs::kPage, TrialInputs::kPicture,
                                         TrialInputs::kFlat};
const char* name_of(TrialInputs kind);

// Fills argument `index` of region 0, whose tensor is `t`. Whole numbers that pick from a table are rows of
// it, others are a mask's. False for a type that it has no numbers for.
bool draw_input(const regie_graph& graph, uint32_t index, TrialInputs kind, const regie_tensor& t);

}  // namespace aicore
