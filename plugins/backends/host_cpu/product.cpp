#include "product.h"

namespace host_cpu {

namespace {

dnnl_memory_desc_t matrix(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  const dnnl_dims_t dims = {rows, columns}, strides = {row_step, column_step};
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_strides(&desc, 2, dims, dnnl_f32, strides), "describing a matrix");
  return desc;
}

PrimitiveAttr attributes(bool add) {
  dnnl_primitive_attr_t attr = nullptr;
  check(dnnl_primitive_attr_create(&attr), "making attributes");
  PrimitiveAttr made(attr);
  check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "asking for the scratch");
  if (add) {
    dnnl_post_ops_t post = nullptr;
    check(dnnl_post_ops_create(&post), "making a sum");
    const PostOps owned(post);
    check(dnnl_post_ops_append_sum(post, 1.f), "making a sum");
    check(dnnl_primitive_attr_set_post_ops(attr, post), "adding a sum");
  }
  return made;
}

}  // namespace

Product::Product(const ProductShape& shape, uint32_t callers, uint32_t width) : engine_(make_engine()) {
  const Width scope(width);
  const dnnl_memory_desc_t a = matrix(shape.m, shape.k, shape.k, 1),
                           b = shape.b_transposed ? matrix(shape.k, shape.n, 1, shape.k)
                                                  : matrix(shape.k, shape.n, shape.n, 1),
                           c = matrix(shape.m, shape.n, shape.c_step ? shape.c_step : shape.n, 1);
  dnnl_matmul_desc_t desc;
  check(dnnl_matmul_desc_init(&desc, &a, &b, nullptr, &c), "describing a product");
  const PrimitiveAttr attr = attributes(shape.add);
  dnnl_primitive_desc_t found = nullptr;
  check(dnnl_primitive_desc_create(&found, &desc, attr.get(), engine_.get(), nullptr), "choosing a product");
  const PrimitiveDesc chosen(found);
  primitive_ = make_primitive(chosen);
  const dnnl_memory_desc_t* scratch = dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
  scratch_bytes_ = (dnnl_memory_desc_get_size(scratch) + 63) / 64 * 64;
  for (uint32_t i = 0; i < callers; ++i) {
    Caller of{make_stream(engine_.get()),           make_memory(engine_.get(), a),
              make_memory(engine_.get(), b),        make_memory(engine_.get(), c),
              make_memory(engine_.get(), *scratch), {}};
    of.args = {{DNNL_ARG_SRC, of.a.get()}, {DNNL_ARG_WEIGHTS, of.b.get()}, {DNNL_ARG_DST, of.c.get()}};
    of.args.push_back({DNNL_ARG_SCRATCHPAD, of.scratch.get()});
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
