#include "after.h"

namespace host_cpu {

std::optional<After> after(const PostOp& p) {
  if (p.kind != PostOp::kEltwise) return std::nullopt;
  switch (p.alg) {
    case dnnl_eltwise_relu:
      return After{false, p.alpha == 0 ? Unary::kRelu : Unary::kLeakyRelu, p.alpha, 0};
    case dnnl_eltwise_logistic:
      return After{false, Unary::kSigmoid, 0, 0};
    case dnnl_eltwise_tanh:
      return After{false, Unary::kTanh, 0, 0};
    case dnnl_eltwise_hardswish:
      return After{false, Unary::kHardSwish, 0, 0};
    case dnnl_eltwise_clip:
      return After{false, Unary::kClip, p.alpha, p.beta};
    case dnnl_eltwise_linear:
      return After{true, Unary::kRelu, p.alpha, p.beta};
    case dnnl_eltwise_elu:
      return After{false, Unary::kElu, p.alpha, 0};
    case dnnl_eltwise_gelu_erf:
      return After{false, Unary::kGelu, 0, 0};
    case dnnl_eltwise_gelu_tanh:
      return After{false, Unary::kGeluTanh, 0, 0};
    case dnnl_eltwise_swish:
      return After{false, Unary::kSwish, p.alpha, 0};
    default:
      return std::nullopt;
  }
}

}  // namespace host_cpu
