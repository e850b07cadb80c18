#include "executable.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>

namespace host_cpu {

using regie::sdk::Failure;

void FreeDelete::operator()(void* p) const { std::free(p); }

Bytes make_bytes(uint64_t bytes) {
  void* p = std::aligned_alloc(64, std::max<uint64_t>(64, round_up(bytes)));
  if (!p) throw std::bad_alloc();
  return Bytes(p);
}

namespace {

regie::sdk::ReferenceOp find_kernel(const regie::sdk::WordCatcher& catcher, const std::string& op) {
  if (auto found = regie::sdk::find_reference(catcher, op)) return *found;
  throw Failure(REGIE_NOT_FOUND,
                "no plug-in has a reference kernel for " + op + "; add the one that it was compiled with");
}

// The weight's row-major description for a reference kernel, taken from its own dimensions.
dnnl_memory_desc_t row_major(const dnnl_memory_desc_t& like) {
  dnnl_dims_t strides{};
  int64_t stride = 1;
  for (int i = like.ndims; i-- > 0; stride *= like.dims[i]) strides[i] = stride;
  dnnl_memory_desc_t desc{};
  check(dnnl_memory_desc_init_by_strides(&desc, like.ndims, like.dims, like.data_type, strides),
        "describing a weight");
  return desc;
}

const void* packed_bytes(const DnnlBlob& blob, const PrepareRequest& request) {
  const void* data = request.operands[blob.packed_operand].data;
  if (!data) throw Failure(REGIE_INVALID_INPUT, "the packed weight was not handed to prepare");
  if (request.operands[blob.packed_operand].bytes <
      std::max(blob.packed_bytes, blob.winograd.offset + blob.winograd.bytes))
    throw Failure(REGIE_CORRUPT, "a packed weight has " +
                                     std::to_string(request.operands[blob.packed_operand].bytes) +
                                     " bytes; its kernel was made for " + std::to_string(blob.packed_bytes));
  return data;
}

// oneDNN transforms some 10 to 20 million weights a second, once for a new shape, which is to cost no more
// than a few runs: few weights, or so many places that a run of the kernel takes as long.
constexpr int64_t kFewTransformed = int64_t{1} << 18, kManyPlaces = 800;

int64_t elements_of(const dnnl_memory_desc_t& desc) {
  return std::accumulate(desc.dims, desc.dims + desc.ndims, int64_t{1}, std::multiplies<>());
}

bool worth_transforming(const Operation& op) {
  const int64_t places = elements_of(op.dst) / std::max<int64_t>(1, op.dst.dims[1]);
  return elements_of(op.weights) <= kFewTransformed || places >= kManyPlaces;
}

}  // namespace

Bytes unpack(dnnl_engine_t engine, const DnnlBlob& blob, const PrepareRequest& request) {
  // A weight that was transposed in the model (transB) is packed from a transposed view: its axes are the
  // matrix's.
  const regie_tensor& t = request.operands[blob.packed_operand];
  dnnl_memory_desc_t desc = row_major(blob.packed), packed = blob.packed;
  packed.extra = {};  // what stands behind the elements belongs to the packing
  const bool transposed = attributes_of(blob.op).integer("transB", 0) != 0;
  if (transposed && blob.packed.ndims >= 2) {
    const int n = desc.ndims;
    auto& strides = desc.format_desc.blocking.strides;
    strides[n - 1] = desc.dims[n - 2];
    strides[n - 2] = 1;
  }
  if (blob.op.op() == "ConvTranspose") swap_channels(desc, t.rank >= 0 && blob.packed.ndims > t.rank);
  const uint64_t bytes = dnnl_memory_desc_get_size(&desc);
  if (t.rank < 0 || regie::sdk::bytes_of(t).value_or(0) != bytes)
    throw Failure(REGIE_CORRUPT, "the packed weight of a kernel has another size than its operand");
  Bytes plain = make_bytes(bytes);
  reorder_now(engine, packed, packed_bytes(blob, request), desc, plain.get());
  return plain;
}

ReferenceScratch plan_reference_scratch(uint64_t kernel_bytes, const regie_tensor& residual) {
  ReferenceScratch plan;
  plan.residual_at = round_up(kernel_bytes);
  plan.residual_bytes = regie::sdk::bytes_of(residual).value_or(0);
  return plan;
}

// ---- reference ----

ReferenceRun::ReferenceRun(const regie::sdk::WordCatcher& catcher, const regie::sdk::OpBlob& op,
                           const PrepareRequest& r, uint32_t operand, Bytes unpacked, const Formats* formats)
    : catcher_(catcher),
      operand_(operand),
      residual_(residual_operand(op.op())),
      unpacked_(std::move(unpacked)),
      operands_(r.operands, r.operands + r.operand_count),
      results_(r.results, r.results + r.result_count),
      kernel_([&] {
        if (operand_ != REGIE_NONE) {
          operands_[operand_].data = unpacked_.get();
          operands_[operand_].bytes = regie::sdk::bytes_of(operands_[operand_]).value_or(0);
        }
        return regie::sdk::ReferenceKernel(catcher, find_kernel(catcher, op.op()), op.op(), op.attrs(),
                                           operands_.data(), r.operand_count, r.results, r.result_count);
      }()) {
  scratch_bytes_ = residual_at_ = kernel_.scratch_bytes();
  if (residual_ >= r.operand_count || operands_[residual_].elem == REGIE_ELEM_UNKNOWN) {
    residual_ = REGIE_NONE;
  } else {
    const ReferenceScratch scratch = plan_reference_scratch(residual_at_, operands_[residual_]);
    residual_at_ = scratch.residual_at;
    residual_bytes_ = scratch.residual_bytes;
    scratch_bytes_ = residual_at_ + residual_bytes_;
  }
  if (!formats) return;
  for (uint32_t i = 0; i < r.operand_count; ++i) add_plain(r.operands[i], i, false, formats->operands[i]);
  for (uint32_t i = 0; i < r.result_count; ++i) add_plain(r.results[i], i, true, formats->results[i]);
}

void ReferenceRun::add_plain(const regie_tensor& t, uint32_t index, bool is_result, regie_format format) {
  if (t.elem == REGIE_ELEM_UNKNOWN || format == kPlainFormat) return;
  NativeTensor plain{t.elem, kPlainFormat, {t.dims, t.dims + t.rank}, nullptr}, other = plain;
  other.format = format;
  NativeRequest request{"regie.Reformat",
                        regie::sdk::Attrs(nullptr, 0),
                        {is_result ? plain : other},
                        {is_result ? other : plain},
                        1};
  scratch_bytes_ = round_up(scratch_bytes_);
  plain_.push_back({index, is_result, scratch_bytes_, make_native(request)});
  scratch_bytes_ += t.bytes;
}

void* ReferenceRun::give_characters(void* self, uint32_t, regie_elem elem, int32_t rank,
                                    const int64_t* dims) {
  if (elem != REGIE_U8 || rank != 1 || dims[0] < 0) return nullptr;
  try {
    return static_cast<ReferenceRun*>(self)
        ->characters_.emplace_back(make_bytes(static_cast<uint64_t>(dims[0])))
        .get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

regie_status ReferenceRun::run(const regie_launch& launch, std::string* words) {
  characters_.clear();
  const regie::sdk::ReferenceKernel::Room room{give_characters, this};
  const bool aliased = residual_ != REGIE_NONE && launch.operands[residual_].data == launch.results[0].data;
  if (operand_ == REGIE_NONE && !aliased && plain_.empty())
    return kernel_.run(catcher_, launch.operands, launch.results, launch.scratch, words, room);
  std::copy(launch.operands, launch.operands + launch.operand_count, operands_.begin());
  std::copy(launch.results, launch.results + launch.result_count, results_.begin());
  char* scratch = static_cast<char*>(launch.scratch);
  if (operand_ != REGIE_NONE) operands_[operand_].data = unpacked_.get();
  auto reformat = [&](const Plain& p, const regie_tensor& from, regie_tensor to) {
    regie_launch step{};
    step.operands = &from;
    step.results = &to;
    p.reformat->run(step);
  };
  for (const Plain& p : plain_) {
    regie_tensor& t = p.is_result ? results_[p.index] : operands_[p.index];
    t.data = scratch + p.at;
    if (!p.is_result) reformat(p, launch.operands[p.index], t);
  }
  if (aliased && operands_[residual_].data == launch.results[0].data) {
    char* copy = scratch + residual_at_;
    std::memcpy(copy, launch.operands[residual_].data, residual_bytes_);
    operands_[residual_].data = copy;
  }
  const regie_status code =
      kernel_.run(catcher_, operands_.data(), results_.data(), launch.scratch, words, room);
  for (const Plain& p : plain_)
    if (p.is_result && code == REGIE_OK) reformat(p, results_[p.index], launch.results[p.index]);
  return code;
}

// ---- our own ----

NativeRequest native_request(std::string_view op, const regie::sdk::Attrs& attrs,
                             const regie_tensor* operands, const regie_tensor* results,
                             const Formats& formats, uint32_t threads) {
  NativeRequest request{op, attrs, {}, {}, threads};
  auto add = [](std::vector<NativeTensor>& list, const regie_tensor& t, regie_format format) {
    NativeTensor& to = list.emplace_back();
    if (t.elem == REGIE_ELEM_UNKNOWN) return;
    if (t.strides) refuse("a tensor is strided");
    to.elem = t.elem;
    to.format = format;
    to.dims.assign(t.dims, t.dims + t.rank);
    to.data = t.data;
  };
  for (size_t i = 0; i < formats.operands.size(); ++i)
    add(request.operands, operands[i], formats.operands[i]);
  for (size_t i = 0; i < formats.results.size(); ++i) add(request.results, results[i], formats.results[i]);
  return request;
}

NativeRun::NativeRun(const NativeBlob& blob, const PrepareRequest& r, uint32_t threads) {
  if (blob.formats.operands.size() != r.operand_count || blob.formats.results.size() != r.result_count)
    throw Failure(REGIE_INVALID_INPUT, "kernel for " + blob.op.op() + ": it has another number of operands");
  kernel_ = make_native(
      native_request(blob.op.op(), attributes_of(blob.op), r.operands, r.results, blob.formats, threads));
}

regie_status NativeRun::run(const regie_launch& launch, std::string* words) const {
  try {
    kernel_->run(launch);
    return REGIE_OK;
  } catch (const Failure& f) {
    *words = f.message;
    return f.code;
  } catch (const std::exception& e) {
    *words = e.what();
    return REGIE_DEVICE;
  }
}

// ---- oneDNN ----

void DnnlRun::add(Memory& memory, int argument, uint32_t operand, uint64_t offset) {
  args_.push_back({argument, memory.get()});
  bound_.push_back({memory.get(), operand, offset});
  memories_.push_back(std::move(memory));
}

void DnnlRun::add_own(Memory& memory, int argument, void* data) {
  check(dnnl_memory_set_data_handle(memory.get(), data), "setting an address");
  args_.push_back({argument, memory.get()});
  memories_.push_back(std::move(memory));
}

void DnnlRun::prepare_weights(dnnl_engine_t engine, const DnnlBlob& blob, const PrepareRequest& request,
                              SharedPrimitives& primitives, RepackedWeights& shared) {
  const bool packed = blob.packed_operand != REGIE_NONE;
  if (packed && (blob.packed_operand != op_.weights_operand || blob.packed.ndims != op_.weights.ndims ||
                 !std::equal(blob.packed.dims, blob.packed.dims + blob.packed.ndims, op_.weights.dims)))
    throw Failure(REGIE_CORRUPT, "the packed weight of a kernel has another shape than its operand");
  if (!packed) {
    made_ = primitives.get(engine, op_, blob.layout, false);
    return;
  }
  const void* from = packed_bytes(blob, request);
  auto repack = [&](const std::string& name, bool from_plain) {
    const Lowered& lowered = made_->lowered();
    repacked_ = shared.get(
        from, name,
        [&] {
          Bytes to = make_bytes(dnnl_memory_desc_get_size(&lowered.weights));
          if (from_plain)
            reorder_now(engine, op_.weights, unpack(engine, blob, request).get(), lowered.weights, to.get());
          else
            reorder_now(engine, blob.packed, from, lowered.weights, to.get());
          return SharedBytes(std::move(to));
        },
        &packed_now_);
  };
  Layout layout = blob.layout;
  if (layout == Layout::kWinograd) {
    try {
      made_ = primitives.get(engine, op_, layout, true);
      const Lowered& lowered = made_->lowered();
      const uint64_t digest = winograd_digest(lowered.weights);
      if (digest == blob.winograd.digest &&
          dnnl_memory_desc_get_size(&lowered.weights) == blob.winograd.bytes)
        weights_offset_ = blob.winograd.offset;
      else if (worth_transforming(op_))
        // Which blocks the transformed weights lie in depends on the size of the picture.
        repack("winograd " + std::to_string(digest), true);
      if (weights_offset_ || repacked_) return;
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
    }
    layout = Layout::kPlain;
  }
  // Another width or shape may want other blocks; with these it may have a plain loop left, or nothing.
  bool fits = true;
  try {
    made_ = primitives.get(engine, op_, layout, true, &blob.packed);
    fits = !made_->lowered().is_plain_loop();
  } catch (const Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    fits = false;
  }
  if (!fits) {
    made_ = primitives.get(engine, op_, layout, true);
    const dnnl_memory_desc_t& wanted = made_->lowered().weights;
    // What is put behind the elements of quantised weights is computed from row-major ones only.
    if (!same_layout(wanted, blob.packed)) repack(layout_digest(wanted), op_.quantised());
  }
}

Operation describe_request(const DnnlBlob& blob, const PrepareRequest& r) {
  Operation op =
      describe(blob.op.op(), attributes_of(blob.op), r.operands, r.operand_count, r.results, r.result_count);
  set_formats(op, blob.formats(), r.operands, r.results);
  return op;
}

DnnlRun::DnnlRun(dnnl_engine_t engine, const DnnlBlob& blob, Operation op, const PrepareRequest& r,
                 SharedPrimitives& primitives, RepackedWeights& shared)
    : op_(std::move(op)) {
  prepare_weights(engine, blob, r, primitives, shared);
  const Lowered& lowered = made_->lowered();
  primitive_ = made_->primitive();
  dst_bytes_ = dnnl_memory_desc_get_size(&op_.dst);

  uint64_t reorders = 0;
  src_ = make_memory(engine, lowered.src);
  dst_ = make_memory(engine, lowered.dst);
  args_ = {{DNNL_ARG_SRC, src_.get()}, {DNNL_ARG_DST, dst_.get()}};
  if (!same_layout(op_.src, lowered.src)) {
    reorder_src_ = make_reorder(engine, op_.src, lowered.src, &reorders);
    plain_src_ = make_memory(engine, op_.src);
    src_args_ = {{DNNL_ARG_FROM, plain_src_.get()}, {DNNL_ARG_TO, src_.get()}};
  }
  if (!same_layout(op_.dst, lowered.dst)) {
    reorder_dst_ = make_reorder(engine, lowered.dst, op_.dst, &reorders);
    plain_dst_ = make_memory(engine, op_.dst);
    dst_args_ = {{DNNL_ARG_FROM, dst_.get()}, {DNNL_ARG_TO, plain_dst_.get()}};
    if (op_.residual_operand != REGIE_NONE) {
      reorder_residual_ = make_reorder(engine, op_.dst, lowered.dst, &reorders);
      plain_residual_ = make_memory(engine, op_.dst);
      residual_args_ = {{DNNL_ARG_FROM, plain_residual_.get()}, {DNNL_ARG_TO, dst_.get()}};
    }
  }
  if (op_.weights.ndims) {
    Memory weights = make_memory(engine, lowered.weights);
    if (repacked_)
      add_own(weights, DNNL_ARG_WEIGHTS, repacked_.get());
    else
      add(weights, DNNL_ARG_WEIGHTS, op_.weights_operand, weights_offset_);
  }
  if (op_.bias.ndims) {
    Memory bias = make_memory(engine, op_.bias);
    if (op_.bias_values.empty())
      add(bias, DNNL_ARG_BIAS, op_.bias_operand);
    else
      add_own(bias, DNNL_ARG_BIAS, op_.bias_values.data());
  }
  if (op_.src_zero_operand != REGIE_NONE) {
    dnnl_memory_desc_t one{};
    const dnnl_dims_t dims = {1};
    check(dnnl_memory_desc_init_by_tag(&one, 1, dims, dnnl_s32, dnnl_a), "describing a zero point");
    src_zero_ = std::make_unique<int32_t>(0);
    Memory zero = make_memory(engine, one);
    add_own(zero, DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, src_zero_.get());
  }
  for (size_t i = 0; i < op_.post.size(); ++i) {
    if (op_.post[i].kind != PostOp::kBinaryAdd && op_.post[i].kind != PostOp::kBinaryMul) continue;
    Memory addend = make_memory(engine, op_.post[i].memory);
    add(addend, DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, op_.post[i].operand);
  }
  scratch_ = plan_scratch(op_, lowered, reorders);
  const uint64_t pad = std::max(lowered.scratchpad, reorders);
  if (pad) {
    scratchpad_ = make_scratchpad(engine, pad);
    for (auto* args : {&args_, &src_args_, &dst_args_, &residual_args_})
      if (!args->empty()) args->push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
  }
}

void DnnlRun::set_addresses(const regie_launch& launch) {
  auto set = [](const Memory& memory, void* data) {
    if (memory) check(dnnl_memory_set_data_handle(memory.get(), data), "setting an address");
  };
  char* scratch = static_cast<char*>(launch.scratch);
  void* src = launch.operands[op_.src_operand].data;
  void* dst = launch.results[0].data;
  set(scratchpad_, scratch + scratch_.scratchpad);
  set(plain_src_, src);
  set(src_, plain_src_ ? scratch + scratch_.src : src);
  set(plain_dst_, dst);
  set(dst_, plain_dst_ ? scratch + scratch_.dst : dst);
  if (op_.residual_operand != REGIE_NONE) {
    void* residual = launch.operands[op_.residual_operand].data;
    set(plain_residual_, residual);
    // The sum is taken from what stands in the result; unless the plan put the residual there, it is copied
    // first.
    if (!plain_residual_ && residual != dst) std::memcpy(dst, residual, dst_bytes_);
  }
  if (src_zero_) {
    const regie_tensor& zero = launch.operands[op_.src_zero_operand];
    *src_zero_ = zero.elem == REGIE_U8 ? *static_cast<const uint8_t*>(zero.data)
                                       : *static_cast<const int8_t*>(zero.data);
  }
  for (const Bound& b : bound_)
    check(
        dnnl_memory_set_data_handle(b.memory, static_cast<char*>(launch.operands[b.operand].data) + b.offset),
        "setting an address");
}

regie_status DnnlRun::run(const regie_launch& launch, dnnl_stream_t stream, std::string* words) {
  try {
    set_addresses(launch);
    auto execute = [&](dnnl_primitive_t p, const std::vector<dnnl_exec_arg_t>& args) {
      if (p) check(dnnl_primitive_execute(p, stream, static_cast<int>(args.size()), args.data()), "running");
    };
    execute(reorder_src_.get(), src_args_);
    execute(reorder_residual_.get(), residual_args_);
    execute(primitive_, args_);
    execute(reorder_dst_.get(), dst_args_);
    return REGIE_OK;
  } catch (const Failure& f) {
    *words = f.message;
    return REGIE_DEVICE;
  }
}

}  // namespace host_cpu
