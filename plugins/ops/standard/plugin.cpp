// The plug-in's tables: the rows of all families, in one numbering, behind the two C interfaces.
#include <algorithm>
#include <vector>

#include "op.h"
#include "regie_digests.h"

namespace regie::ops {
namespace {

regie_status infer(uint32_t op, const regie_host* host, const regie_shape_request* request);
regie_status prepare(uint32_t op, const regie_host* host, const regie_op_request* request,
                     regie_op_state** state, uint64_t* scratch_bytes);
regie_status run(const regie_op_state* state, const regie_host* host, const regie_op_call* call);
void release(regie_op_state* state) { delete reinterpret_cast<const Kernel*>(state); }

// Made when the first interface is asked for, and constant from then on.
struct Tables {
  std::vector<Op> shapes, kernels;
  std::vector<regie_str> names;
  std::vector<regie_op_info> infos;
  regie_op_shape_table shape_table{};
  regie_op_kernel_table kernel_table{};

  Tables() {
    for (auto family : {unary_ops,      binary_ops,     compare_ops,       cast_ops,
                        conv_ops,       pool_ops,       matmul_ops,        norm_ops,
                        reduce_ops,     view_ops,       data_movement_ops, slice_ops,
                        shape_ops,      structural_ops, index_ops,         integer_ops,
                        layer_norm_ops, math_ops,       recurrent_ops,     resize_ops,
                        scatter_ops,    attention_ops,  block_ops,         einsum_ops,
                        quantize_ops,   sampling_ops,   signal_ops,        fused_attention_ops,
                        pointwise_ops,  loss_ops,       selection_ops,     string_ops,
                        ngram_ops,      random_ops,     deform_conv_ops,   linear_attention_ops,
                        quantised_ops,  suppression_ops})
      for (const Op& op : family()) {
        shapes.push_back(op);
        names.push_back(sdk::str(op.name));
        if (!op.prepare) continue;
        kernels.push_back(op);
        infos.push_back({sdk::str(op.name), op.flags, 0});
      }
    shape_table = {sdk::head(sizeof(regie_op_shape_table), REGIE_DIGEST_OP_SHAPE),
                   static_cast<uint32_t>(names.size()), 0, names.data(), infer};
    kernel_table = {sdk::head(sizeof(regie_op_kernel_table), REGIE_DIGEST_OP_KERNEL),
                    static_cast<uint32_t>(infos.size()),
                    0,
                    infos.data(),
                    prepare,
                    run,
                    release};
  }
};

const Tables& tables() {
  static const Tables* tables = new Tables;  // never destroyed: threads may use it to the end of the process
  return *tables;
}

const Op& row(const std::vector<Op>& ops, uint32_t index) {
  if (index >= ops.size()) throw sdk::Failure(REGIE_INTERNAL, "no operator with this index");
  return ops[index];
}

regie_status infer(uint32_t op, const regie_host* host, const regie_shape_request* request) {
  return sdk::guard(host, [&] { row(tables().shapes, op).infer(Infer(host, *request)); });
}

regie_status prepare(uint32_t op, const regie_host* host, const regie_op_request* request,
                     regie_op_state** state, uint64_t* scratch_bytes) {
  return sdk::guard(host, [&] {
    Prepare context(*request, host);
    KernelPtr kernel = row(tables().kernels, op).prepare(context);
    *scratch_bytes = context.scratch_bytes;
    *state = reinterpret_cast<regie_op_state*>(const_cast<Kernel*>(kernel.release()));
  });
}

regie_status run(const regie_op_state* state, const regie_host* host, const regie_op_call* call) {
  return sdk::guard(host, [&] { reinterpret_cast<const Kernel*>(state)->run(Call(*call)); });
}

}  // namespace

const regie_op_kernel_table& kernel_table() { return tables().kernel_table; }

namespace {

const void* find(const char* interface_id) {
  std::string_view id = interface_id;
  if (id == REGIE_OP_SHAPE_ID) return &tables().shape_table;
  if (id == REGIE_OP_KERNEL_ID) return &tables().kernel_table;
  return nullptr;
}

}  // namespace
}  // namespace regie::ops

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, regie::ops::find)
