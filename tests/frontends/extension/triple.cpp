// com.example.Triple: y = 3 * factor * x, as a vendor would add it.
#include <memory>

#include "regie/c/op_kernel.h"
#include "regie/c/op_shape.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"

struct regie_op_state {
  float factor;
  int64_t count;
};

namespace {

namespace sdk = regie::sdk;

const regie_str kOps[] = {sdk::lit("com.example.Triple")};
const regie_op_info kInfo[] = {{sdk::lit("com.example.Triple"), REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE, 0}};

regie_status infer(uint32_t, const regie_host*, const regie_shape_request* request) {
  return request->set_result(request, 0, &request->operands[0].type);
}

regie_status prepare(uint32_t, const regie_host* host, const regie_op_request* request,
                     regie_op_state** state, uint64_t* scratch_bytes) {
  return sdk::guard(host, [&] {
    const sdk::Attrs attrs(request->attrs, request->attr_count);
    *state = new regie_op_state{static_cast<float>(3 * attrs.number("factor", 1)),
                                sdk::count_of(request->operands[0])};
    *scratch_bytes = 0;
  });
}

regie_status run(const regie_op_state* state, const regie_host*, const regie_op_call* call) {
  const auto* x = static_cast<const float*>(call->operands[0].data);
  auto* y = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0; i < state->count; ++i) y[i] = state->factor * x[i];
  return REGIE_OK;
}

void release(regie_op_state* state) { delete state; }

const regie_op_shape_table kShapes = {sdk::head(sizeof(regie_op_shape_table), REGIE_DIGEST_OP_SHAPE), 1, 0,
                                      kOps, infer};
const regie_op_kernel_table kKernels = {
    sdk::head(sizeof(regie_op_kernel_table), REGIE_DIGEST_OP_KERNEL), 1, 0, kInfo, prepare, run, release};

const void* find(const char* id) {
  const std::string_view name(id);
  if (name == REGIE_OP_SHAPE_ID) return &kShapes;
  if (name == REGIE_OP_KERNEL_ID) return &kKernels;
  return nullptr;
}

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
