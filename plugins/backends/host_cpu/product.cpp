#include "product.h"

#include "primitive.h"

namespace host_cpu {

namespace {

dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  const dnnl_dims_t dims = {rows, columns}, strides = {row_step, column_step};
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_strides(&desc, 2, dims, dnnl_f32, strides), "describing a matrix");
  return desc;
}

}  // namespace

Product::Product(const ProductShape& shape, uint32_t callers, uint32_t width) : engine_(make_engine()) {
  const Width scope(width);
  Operation op;
  op.kind = Operation::kMatMul;
  op.src = matrix(shape.m, shape.k, shape.k, 1);
  op.weights =
      shape.b_transposed ? matrix(shape.k, shape.n, 1, shape.k) : matrix(shape.k, shape.n, shape.n, 1);
  op.dst = matrix(shape.m, shape.n, shape.c_step ? shape.c_step : shape.n, 1);
  if (shape.add) op.post.push_back({PostOp::kSum, dnnl_alg_kind_undef, 1, 0, REGIE_NONE, {}});
  const Lowered made = lower(engine_.get(), op, Layout::kPlain, false);
  primitive_ = make_primitive(made.desc);
  scratch_bytes_ = round_up(made.scratchpad);
  for (uint32_t i = 0; i < callers; ++i) {
    Caller of{make_stream(engine_.get()),
              make_memory(engine_.get(), op.src),
              make_memory(engine_.get(), op.weights),
              make_memory(engine_.get(), op.dst),
              make_scratchpad(engine_.get(), made.scratchpad),
              {}};
    of.args = {{DNNL_ARG_SRC, of.a.get()},
               {DNNL_ARG_WEIGHTS, of.b.get()},
               {DNNL_ARG_DST, of.c.get()},
               {DNNL_ARG_SCRATCHPAD, of.scratch.get()}};
    callers_.push_back(std::move(of));
  }
}

dnnl_status_t Product::run(uint32_t caller, const float* a, const float* b, float* c, void* scratch) const {
  const Caller& of = callers_[caller];
  auto set = [](const Memory& memory, const void* data) {
    return dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data));
  };
  for (dnnl_status_t status : {set(of.a, a), set(of.b, b), set(of.c, c), set(of.scratch, scratch)})
    if (status != dnnl_success) return status;
  return dnnl_primitive_execute(primitive_.get(), of.stream.get(), static_cast<int>(of.args.size()),
                                of.args.data());
}

}  // namespace host_cpu
