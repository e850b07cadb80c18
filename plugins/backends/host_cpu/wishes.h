// Which formats a node can be computed in, and what each saves: the engine's answer to the layout stage.
//
// Convolutions gain, as oneDNN's fast kernels read channels last or blocked and need conversions around them
// otherwise; pooling gains a little; element-wise operators, concatenations, reductions and the like go along
// at no gain, so that conversions move to where they cost least.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "dnnl_handles.h"
#include "lowered_memo.h"
#include "regie/c/engine.h"
#include "regie/reference_kernel.hpp"
#include "settings.h"

namespace host_cpu {

struct WishRequest {
  dnnl_engine_t engine;
  LoweredMemo& lowered;
  const Settings& settings;
  const regie_graph& graph;
  const regie_node& node;
  std::string_view op;
  const std::vector<regie_tensor>& operands;  // at the reference shapes
  const std::vector<regie_tensor>& results;
  bool empty;
  const regie::sdk::WordCatcher& catcher;
};
std::vector<regie_format_wish> list_wishes(const WishRequest& request);

// Is it of the operators that gain, not only of those that go along?
bool gains_by_format(const regie_node& node);

// Negative: not possible.
double conversion_ns(const Settings& settings, const regie_tensor& tensor, regie_format from,
                     regie_format to);

// Does a Transpose between these formats leave every byte in place?
bool transposes_nothing(const regie::sdk::Attrs& attrs, std::span<const int64_t> dims, regie_format from,
                        regie_format to);

}  // namespace host_cpu
