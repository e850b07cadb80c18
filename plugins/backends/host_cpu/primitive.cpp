#include "primitive.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "code_pool.h"
#include "dilated_rows.h"
#include "parallel.h"

namespace host_cpu {
namespace {

PrimitiveAttr make_attributes(const Operation& op) {
  dnnl_primitive_attr_t raw = nullptr;
  check(dnnl_primitive_attr_create(&raw), "creating attributes");
  PrimitiveAttr attr(raw);
  check(dnnl_primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user),
        "setting the scratchpad mode");
  if (!op.scales.empty()) {
    // One for all, or one along the channels of the result.
    const int axis = op.convolves() ? 1 : op.dst.ndims - 1;
    check(dnnl_primitive_attr_set_output_scales(attr.get(), static_cast<dnnl_dim_t>(op.scales.size()),
                                                op.scales.size() == 1 ? 0 : 1 << axis, op.scales.data()),
          "setting the scales");
  } else if (op.scale != 1)
    check(dnnl_primitive_attr_set_output_scales(attr.get(), 1, 0, &op.scale), "setting the scale");
  const int32_t at_run_time = DNNL_RUNTIME_S32_VAL;
  auto zero = [&](int argument, const int32_t* value) {
    check(dnnl_primitive_attr_set_zero_points(attr.get(), argument, 1, 0, value), "setting a zero point");
  };
  if (op.src_zero_operand != REGIE_NONE)
    zero(DNNL_ARG_SRC, &at_run_time);
  else if (op.src_zero != 0)
    zero(DNNL_ARG_SRC, &op.src_zero);
  if (op.weights_zero != 0) zero(DNNL_ARG_WEIGHTS, &op.weights_zero);
  if (op.dst_zero != 0) zero(DNNL_ARG_DST, &op.dst_zero);
  if (op.post.empty()) return attr;
  dnnl_post_ops_t raw_ops = nullptr;
  check(dnnl_post_ops_create(&raw_ops), "creating post-ops");
  PostOps ops(raw_ops);
  for (const PostOp& p : op.post) {
    switch (p.kind) {
      case PostOp::kSum:
        check(dnnl_post_ops_append_sum(ops.get(), p.alpha), "post-op sum");
        break;
      case PostOp::kEltwise:
        check(dnnl_post_ops_append_eltwise(ops.get(), 1, p.alg, p.alpha, p.beta),
              "post-op for the activation");
        break;
      case PostOp::kBinaryAdd:
        check(dnnl_post_ops_append_binary(ops.get(), dnnl_binary_add, &p.memory), "post-op add");
        break;
      case PostOp::kBinaryMul:
        check(dnnl_post_ops_append_binary(ops.get(), dnnl_binary_mul, &p.memory), "post-op product");
        break;
    }
  }
  check(dnnl_primitive_attr_set_post_ops(attr.get(), ops.get()), "setting post-ops");
  return attr;
}

dnnl_memory_desc_t of_any_layout(const dnnl_memory_desc_t& desc) {
  dnnl_memory_desc_t any{};
  check(dnnl_memory_desc_init_by_tag(&any, desc.ndims, desc.dims, desc.data_type, dnnl_format_tag_any),
        "any layout");
  return any;
}

dnnl_memory_desc_t channels_last(const dnnl_memory_desc_t& desc) {
  static constexpr dnnl_format_tag_t kTags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  dnnl_memory_desc_t last{};
  check(dnnl_memory_desc_init_by_tag(&last, desc.ndims, desc.dims, desc.data_type, kTags[desc.ndims - 3]),
        "channels last");
  return last;
}

PrimitiveDesc create(dnnl_engine_t engine, const_dnnl_op_desc_t desc, const PrimitiveAttr& attr) {
  dnnl_primitive_desc_t h = nullptr;
  check(dnnl_primitive_desc_create(&h, desc, attr.get(), engine, nullptr), "no implementation");
  return PrimitiveDesc(h);
}

std::string implementation(const PrimitiveDesc& desc) {
  const char* name = nullptr;
  check(dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name), "asking for the name");
  return name ? name : "";
}

// The best implementation that is acceptable; null if there is none.
template <class F>
PrimitiveDesc first_that(dnnl_engine_t engine, const_dnnl_op_desc_t desc, const PrimitiveAttr& attr,
                         F&& acceptable) {
  dnnl_primitive_desc_iterator_t h = nullptr;
  check(dnnl_primitive_desc_iterator_create(&h, desc, attr.get(), engine, nullptr), "no implementation");
  const std::unique_ptr<dnnl_primitive_desc_iterator, Destroy> iterator(h);
  do {
    PrimitiveDesc found(dnnl_primitive_desc_iterator_fetch(h));
    if (acceptable(found)) return found;
  } while (dnnl_primitive_desc_iterator_next(h) == dnnl_success);
  return {};
}

// The best that is no batch-reduced product.
PrimitiveDesc first_direct(dnnl_engine_t engine, const_dnnl_op_desc_t desc, const PrimitiveAttr& attr) {
  return first_that(engine, desc, attr,
                    [](const PrimitiveDesc& d) { return !implementation(d).starts_with("brg"); });
}

// Of a window without an element, the batch-reduced products of oneDNN 2.6 forget the bias, or read beside
// the result that they add to.
PrimitiveDesc create_direct(dnnl_engine_t engine, const_dnnl_op_desc_t desc, const PrimitiveAttr& attr) {
  PrimitiveDesc found = first_direct(engine, desc, attr);
  if (!found)
    throw regie::sdk::Failure(REGIE_UNSUPPORTED,
                              "oneDNN does not add where a window may lie in the padding altogether");
  return found;
}

// Of a map of one row the batch-reduced product generates code for each of hundreds of lengths, which takes
// up to 100 ms and 25 MB. The direct kernel is as fast, but for wide strides; wide dilations it does not
// know.
void take_direct(const Operation& op, dnnl_engine_t engine, const_dnnl_op_desc_t desc,
                 const PrimitiveAttr& attr, PrimitiveDesc* found) {
  const int last = op.dst.ndims - 1;
  for (int i = 2; i < last; ++i)
    if (op.dst.dims[i] != 1) return;
  if (op.dst.dims[last] <= 256 || (op.strides[last - 2] != 1 && op.src.dims[1] > 16)) return;
  if (!implementation(*found).starts_with("brgconv:")) return;
  PrimitiveDesc direct = first_direct(engine, desc, attr);
  if (direct && implementation(direct).starts_with("jit:")) *found = std::move(direct);
}

// oneDNN 2.6's depthwise kernels for processors before AVX2 read what they add to as if it were aligned,
// which it is not where the channels are no whole blocks.
void take_unaligned(const Operation& op, dnnl_engine_t engine, const_dnnl_op_desc_t desc,
                    const PrimitiveAttr& attr, PrimitiveDesc* found) {
  const std::string name = implementation(*found);
  if (op.residual_operand == REGIE_NONE || op.dst.dims[1] % 8 == 0 || !name.starts_with("jit_dw") ||
      name.find("avx2") != name.npos || name.find("avx512") != name.npos)
    return;
  *found = first_that(engine, desc, attr,
                      [](const PrimitiveDesc& d) { return !implementation(d).starts_with("jit_dw"); });
  if (!*found)
    throw regie::sdk::Failure(REGIE_UNSUPPORTED, "oneDNN does not add to so many channels on this processor");
}

// Some kernels of oneDNN 2.6 for bytes in groups of few channels are offered, but fail when they generate
// their code. Which, only an attempt tells; the library keeps what it made.
void take_makeable(const Operation& op, dnnl_engine_t engine, const_dnnl_op_desc_t desc,
                   const PrimitiveAttr& attr, PrimitiveDesc* found) {
  if (!op.quantised() || op.weights.ndims == op.src.ndims) return;
  auto makeable = [](const PrimitiveDesc& d) {
    dnnl_primitive_t h = nullptr;
    const dnnl_status_t status = dnnl_primitive_create(&h, d.get());
    const Primitive made(h);
    if (status != dnnl_runtime_error) check(status, "creating a primitive");
    return status == dnnl_success;
  };
  if (makeable(*found)) return;
  *found = first_that(engine, desc, attr, makeable);
  if (!*found) throw regie::sdk::Failure(REGIE_UNSUPPORTED, "oneDNN cannot make any of its kernels for it");
}

dnnl_memory_desc_t query(const PrimitiveDesc& desc, dnnl_query_t what) {
  const dnnl_memory_desc_t* found = dnnl_primitive_desc_query_md(desc.get(), what, 0);
  return found ? *found : dnnl_memory_desc_t{};
}

}  // namespace

void set_up_dnnl() {
  pool_generated_code();
  // Before its first kernel oneDNN looks for a profiler's library in some forty folders, unless somebody says
  // what he wants.
  if (!std::getenv("ONEDNN_JIT_PROFILE") && !std::getenv("DNNL_JIT_PROFILE"))
    dnnl_set_jit_profiling_flags(DNNL_JIT_PROFILE_NONE);
}

Width::Width(uint32_t threads) : before_(omp_get_max_threads()) {
  const int wanted = static_cast<int>(std::clamp<uint32_t>(threads, 1, 4096));
  if (wanted != before_) omp_set_num_threads(wanted);
}
Width::~Width() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

namespace {

// Over rows where that can be; the layouts are those of the operation as it is.
std::optional<Lowered> lower_over_rows(dnnl_engine_t engine, const Operation& op, Layout layout,
                                       bool free_weights, const dnnl_memory_desc_t* packed) {
  const std::optional<Operation> rows = over_rows(op);
  if (!rows) return std::nullopt;
  dnnl_memory_desc_t weights{};
  if (packed) weights = split_axis(*packed, 1);
  Lowered out;
  try {
    out = lower(engine, *rows, layout, free_weights, packed ? &weights : nullptr);
  } catch (const regie::sdk::Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    return std::nullopt;
  }
  if (out.is_plain_loop()) return std::nullopt;
  for (dnnl_memory_desc_t* desc : {&out.src, &out.dst, &out.weights}) {
    const auto joined = join_axes(*desc);
    if (!joined) return std::nullopt;
    *desc = *joined;
  }
  return out;
}

}  // namespace

Lowered lower(dnnl_engine_t engine, const Operation& op, Layout layout, bool free_weights,
              const dnnl_memory_desc_t* packed) {
  if (auto rows = lower_over_rows(engine, op, layout, free_weights, packed)) return std::move(*rows);
  PrimitiveAttr attr = make_attributes(op);
  const bool own = layout == Layout::kOwn;
  dnnl_memory_desc_t src = own && op.convolves() ? of_any_layout(op.src) : op.src;
  // Bytes are pooled channels last; where they lie otherwise, by a plain loop.
  if (own && op.kind == Operation::kPooling && op.quantised()) src = channels_last(op.src);
  dnnl_memory_desc_t dst = own ? of_any_layout(op.dst) : op.dst;
  dnnl_memory_desc_t weights = packed                             ? *packed
                               : free_weights && op.weights.ndims ? of_any_layout(op.weights)
                                                                  : op.weights;
  const dnnl_memory_desc_t* bias = op.bias.ndims ? &op.bias : nullptr;
  Lowered out;
  switch (op.kind) {
    case Operation::kConvolution: {
      dnnl_convolution_desc_t desc;
      const dnnl_alg_kind_t alg = layout == Layout::kWinograd ? dnnl_convolution_winograd : op.alg;
      check(
          dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, alg, &src, &weights, bias,
                                                     &dst, op.strides, op.dilates, op.pad_l, op.pad_r),
          "convolution");
      const bool adds = op.residual_operand != REGIE_NONE;
      out.desc = adds && may_miss(op) ? create_direct(engine, &desc, attr) : create(engine, &desc, attr);
      take_direct(op, engine, &desc, attr, &out.desc);
      take_unaligned(op, engine, &desc, attr, &out.desc);
      take_makeable(op, engine, &desc, attr, &out.desc);
      break;
    }
    case Operation::kDeconvolution: {
      dnnl_deconvolution_desc_t desc;
      check(dnnl_dilated_deconvolution_forward_desc_init(&desc, dnnl_forward_inference, op.alg, &src,
                                                         &weights, bias, &dst, op.strides, op.dilates,
                                                         op.pad_l, op.pad_r),
            "transposed convolution");
      out.desc = create(engine, &desc, attr);
      break;
    }
    case Operation::kMatMul: {
      dnnl_matmul_desc_t desc;
      check(dnnl_matmul_desc_init(&desc, &src, &weights, bias, &dst), "matmul");
      out.desc = create(engine, &desc, attr);
      break;
    }
    case Operation::kPooling: {
      dnnl_pooling_v2_desc_t desc;
      check(dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference, op.alg, &src, &dst, op.strides,
                                              op.kernel, op.dilates, op.pad_l, op.pad_r),
            "pooling");
      out.desc = create(engine, &desc, attr);
      break;
    }
  }
  out.src = query(out.desc, dnnl_query_src_md);
  out.weights = query(out.desc, dnnl_query_weights_md);
  out.dst = query(out.desc, dnnl_query_dst_md);
  const dnnl_memory_desc_t scratchpad = query(out.desc, dnnl_query_scratchpad_md);
  out.scratchpad = dnnl_memory_desc_get_size(&scratchpad);
  out.implementation = implementation(out.desc);
  if (layout == Layout::kWinograd && out.weights.format_kind != dnnl_format_kind_wino)
    throw regie::sdk::Failure(REGIE_UNSUPPORTED, "oneDNN has no Winograd kernel for it");
  return out;
}

bool is_in_little_room(const Operation& op, const Lowered& lowered) {
  constexpr double kFlopsAByte = 50;
  return static_cast<double>(lowered.scratchpad) <= std::max(4.0 * (1 << 20), op.flops / kFlopsAByte);
}

uint64_t winograd_digest(const dnnl_memory_desc_t& weights) {
  const dnnl_wino_desc_t& w = weights.format_desc.wino_desc;
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  auto mix = [&](uint64_t n) { hash = (hash ^ n) * 0x100000001b3u; };
  for (int n : {static_cast<int>(w.wino_format), w.r, w.alpha, w.ic, w.oc, w.ic_block, w.oc_block,
                w.ic2_block, w.oc2_block})
    mix(static_cast<uint64_t>(n));
  mix(w.size);
  return hash;
}

bool same_layout(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  return dnnl_memory_desc_equal(&a, &b);
}

Primitive make_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to,
                       uint64_t* scratchpad) {
  dnnl_primitive_attr_t raw = nullptr;
  check(dnnl_primitive_attr_create(&raw), "creating attributes");
  PrimitiveAttr attr(raw);
  check(dnnl_primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user),
        "setting the scratchpad mode");
  dnnl_primitive_desc_t h = nullptr;
  check(dnnl_reorder_primitive_desc_create(&h, &from, engine, &to, engine, attr.get()), "reorder");
  PrimitiveDesc desc(h);
  const dnnl_memory_desc_t pad = query(desc, dnnl_query_scratchpad_md);
  *scratchpad = std::max<uint64_t>(*scratchpad, dnnl_memory_desc_get_size(&pad));
  return make_primitive(desc);
}

Memory make_scratchpad(dnnl_engine_t engine, uint64_t bytes) {
  dnnl_memory_desc_t desc{};
  const dnnl_dims_t dims = {static_cast<dnnl_dim_t>(bytes)};
  check(dnnl_memory_desc_init_by_tag(&desc, 1, dims, dnnl_u8, dnnl_a), "describing the scratchpad");
  return make_memory(engine, desc);
}

void reorder_now(dnnl_engine_t engine, const dnnl_memory_desc_t& from_desc, const void* from,
                 const dnnl_memory_desc_t& to_desc, void* to) {
  dnnl_primitive_desc_t h = nullptr;
  check(dnnl_reorder_primitive_desc_create(&h, &from_desc, engine, &to_desc, engine, nullptr), "reorder");
  PrimitiveDesc desc(h);
  Primitive primitive = make_primitive(desc);
  Memory source = make_memory(engine, from_desc, const_cast<void*>(from)),
         target = make_memory(engine, to_desc, to);
  Stream stream = make_stream(engine);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, target.get()}};
  check(dnnl_primitive_execute(primitive.get(), stream.get(), 2, args), "reordering");
  check(dnnl_stream_wait(stream.get()), "waiting");
}

ScratchPlan plan_scratch(const Operation& op, const Lowered& lowered, uint64_t reorder_scratchpad) {
  ScratchPlan plan;
  plan.bytes = round_up(std::max(lowered.scratchpad, reorder_scratchpad));
  if (!same_layout(op.src, lowered.src)) {
    plan.src = plan.bytes;
    plan.bytes += round_up(dnnl_memory_desc_get_size(&lowered.src));
  }
  if (!same_layout(op.dst, lowered.dst)) {
    plan.dst = plan.bytes;
    plan.bytes += round_up(dnnl_memory_desc_get_size(&lowered.dst));
  }
  return plan;
}

}  // namespace host_cpu
