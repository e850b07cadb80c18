// Writing kernels: by oneDNN, by a loop, by a kernel of our own, or the operator's reference kernel.
#include <algorithm>
#include <cstring>

#include "direct_convolution.h"
#include "engine.h"
#include "executable.h"
#include "kernel_blob.h"
#include "pointwise_engine.h"
#include "pointwise_program.h"
#include "pooling.h"

namespace host_cpu {

using regie::sdk::Failure;

namespace {

// What a device must have to run a packed weight without packing it again.
std::optional<std::string_view> needed_capability(bool bytes) {
  if (bytes) return "avx512_core_vnni";
  if (uses_isa(dnnl_cpu_isa_avx512_core)) return "avx512_core";
  if (uses_isa(dnnl_cpu_isa_avx2)) return "avx2";
  return std::nullopt;
}

// Refers to its arguments.
regie_kernel kernel_of(const char* format, const std::string& name, const std::string& blob) {
  regie_kernel k{};
  k.struct_size = sizeof k;
  k.flags = REGIE_KERNEL_ANY_SHAPE;
  k.format = regie::sdk::str(format);
  k.name = regie::sdk::str(name);
  k.blob = blob.data();
  k.blob_size = blob.size();
  return k;
}

void need_plain(const Work& work) {
  if (!work.formats.all_plain())
    refuse(std::string(work.op) + " was to be computed in a format in which it cannot be");
}

void emit_reference(const regie_engine_compile& request, const Work& work, uint64_t scratch_bytes) {
  regie::sdk::BlobWriter out;
  regie::sdk::write_op(out, work.op, work.node.attrs, work.node.attr_count, work.node.region_count);
  const std::string blob = out.take(), name = "reference " + std::string(work.op);
  regie_kernel k = kernel_of(kReferenceFormat, name, blob);
  k.flags |= REGIE_KERNEL_REFERENCE;
  k.scratch_bytes = scratch_bytes;
  regie::sdk::check(request.emit(&request, &k));
}

void emit_reference(regie_engine& e, const regie_engine_compile& request, const Work& work) {
  need_plain(work);
  std::string why_not;
  const auto kernel = reference_kernel(e, work, &why_not);
  if (!kernel) refuse("host_cpu cannot run " + std::string(work.op) + ": " + why_not);
  uint64_t scratch_bytes = kernel->scratch_bytes();
  const uint32_t residual = residual_operand(work.op);
  if (residual < work.operands.size() && work.operands[residual].elem != REGIE_ELEM_UNKNOWN) {
    const ReferenceScratch scratch = plan_reference_scratch(scratch_bytes, work.operands[residual]);
    scratch_bytes = scratch.residual_at + scratch.residual_bytes;
  }
  emit_reference(request, work, scratch_bytes);
}

// "own Resize nhwc"
std::string name_of(std::string name, const Formats& formats) {
  if (!formats.all_plain()) name.append(" ").append(format_name(formats.results[0]));
  return name;
}

void emit_dnnl(regie_engine& e, const regie_engine_compile& request, const Work& work, const Choice& c) {
  WinogradWeights winograd;
  if (c.winograd) {
    winograd.offset = round_up(dnnl_memory_desc_get_size(&c.lowered->weights));
    winograd.bytes = dnnl_memory_desc_get_size(&c.winograd->weights);
    winograd.digest = winograd_digest(c.winograd->weights);
  }
  const std::string blob = write_dnnl_blob(
      work.op, work.attrs, c.winograd ? Layout::kWinograd : c.layout, work.operands, work.results,
      work.formats, c.pack ? c.op.weights_operand : REGIE_NONE, c.lowered->weights, winograd);
  const std::string name = name_of(kernel_name(e, work, c), work.formats);
  regie_kernel k = kernel_of(kDnnlFormat, name, blob);
  uint64_t reorders = 0;
  if (!same_layout(c.op.src, c.lowered->src)) make_reorder(e.dnnl.get(), c.op.src, c.lowered->src, &reorders);
  if (!same_layout(c.op.dst, c.lowered->dst)) {
    make_reorder(e.dnnl.get(), c.lowered->dst, c.op.dst, &reorders);
    if (c.op.residual_operand != REGIE_NONE) make_reorder(e.dnnl.get(), c.op.dst, c.lowered->dst, &reorders);
  }
  k.scratch_bytes = plan_scratch(c.op, *(c.winograd ? c.winograd : c.lowered), reorders).bytes;
  if (!c.pack) return regie::sdk::check(request.emit(&request, &k));

  const uint64_t bytes =
      std::max<uint64_t>(dnnl_memory_desc_get_size(&c.lowered->weights), winograd.offset + winograd.bytes);
  const Bytes packed = make_bytes(bytes);
  std::memset(packed.get(), 0, bytes);
  if (c.winograd)
    reorder_now(e.dnnl.get(), c.op.weights, work.operands[c.op.weights_operand].data, c.winograd->weights,
                static_cast<char*>(packed.get()) + winograd.offset);
  reorder_now(e.dnnl.get(), c.op.weights, work.operands[c.op.weights_operand].data, c.lowered->weights,
              packed.get());
  const std::string layout = "opaque:host_cpu:" + layout_digest(c.lowered->weights);
  regie_packed_weight weight{c.op.weights_operand, 64, packed.get(), bytes, regie::sdk::str(layout)};
  k.weight_count = 1;
  k.weights = &weight;
  regie_str capability{};
  if (auto needed = needed_capability(c.op.quantised())) {
    capability = regie::sdk::str(*needed);
    k.requires_count = 1;
    k.requires_ = &capability;
  }
  regie::sdk::check(request.emit(&request, &k));
}

void emit_native(const regie_engine_compile& request, const Work& work, uint64_t scratch_bytes) {
  const std::string blob = write_native_blob(work.op, work.attrs, work.formats);
  const std::string name = name_of("own " + std::string(work.op), work.formats);
  regie_kernel k = kernel_of(kNativeFormat, name, blob);
  k.scratch_bytes = scratch_bytes;
  regie::sdk::check(request.emit(&request, &k));
}

// Null where there is none at these shapes.
NativePtr try_native(const Work& work, uint32_t threads) {
  try {
    return find_native(work.op) ? work.native(threads) : nullptr;
  } catch (const Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    return nullptr;
  }
}

// A kernel that can be made only when the run has told the shapes.
void emit_untried(regie_engine& e, const regie_engine_compile& request, const Work& work) {
  if (!regie::sdk::find_reference(e.catcher, work.op)) refuse(no_reference_for(work.op));
  need_plain(work);
  return find_native(work.op) ? emit_native(request, work, 0) : emit_reference(request, work, 0);
}

}  // namespace

std::string kernel_name(const regie_engine& e, const Work& work, const Choice& c, bool open) {
  Formats formats = work.formats;
  if (open && formats.all_plain() && c.op.convolves()) {
    formats.operands[c.op.src_operand] = formats.results[0] = kChannelsLast;
  }
  if (e.settings.convolutions == Convolutions::kAhead && suits_pooling(c.op, formats)) return "own pooling";
  if (e.settings.convolutions == Convolutions::kAhead && c.pack && !c.winograd &&
      suits_direct(c.op, c.lowered->weights, formats))
    return c.op.convolves() ? "own direct convolution" : "own direct product";
  return "oneDNN " + (c.winograd ? c.winograd : c.lowered)->implementation;
}

regie_status compile(regie_engine* e, const regie_engine_compile* request) {
  return regie::sdk::guard(e->host, [&] {
    Width width(request->threads);
    Work work(request->graph, request->node, request->shapes);
    if (work.untried) return emit_untried(*e, *request, work);
    std::optional<Choice> choice;
    if (is_lowered(work.op)) {
      try {
        choice = choose(*e, work);
      } catch (const Failure& f) {
        if (f.code != REGIE_UNSUPPORTED) throw;
      }
    }
    if (choice) return emit_dnnl(*e, *request, work, *choice);
    std::string why_not;
    if (auto kernel = lower_pointwise(e->catcher, request->graph, work.node, work.operands.data(),
                                      work.results.data(), work.formats, &why_not)) {
      const regie_kernel k = kernel_of(kPointwiseFormat, kernel->name, kernel->blob);
      return regie::sdk::check(request->emit(request, &k));
    }
    if (const NativePtr own = try_native(work, request->threads))
      return emit_native(*request, work, own->scratch_bytes);
    emit_reference(*e, *request, work);
  });
}

}  // namespace host_cpu
