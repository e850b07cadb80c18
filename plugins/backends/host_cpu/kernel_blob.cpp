#include "kernel_blob.h"

#include <algorithm>
#include <array>

#include "regie/name_hash.hpp"

namespace host_cpu {
namespace {

using regie::sdk::BlobReader;
using regie::sdk::BlobWriter;

constexpr uint32_t kVersion = 3;
// What oneDNN may put behind the elements of a packed weight.
constexpr uint64_t kExtras = dnnl_memory_extra_flag_compensation_conv_s8s8 |
                             dnnl_memory_extra_flag_scale_adjust |
                             dnnl_memory_extra_flag_compensation_conv_asymmetric_src;
constexpr uint64_t kMaxBytes = uint64_t{1}
                               << 46;  // of a packed weight: keeps every product below within 64 bits

void write_tensors(BlobWriter& out, const std::vector<regie_tensor>& tensors,
                   const std::vector<regie_format>& formats) {
  out.put(static_cast<uint32_t>(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const regie_tensor& t = tensors[i];
    const bool present = t.elem != REGIE_ELEM_UNKNOWN;
    out.put(t.elem);
    out.put(formats[i]);
    out.put(present ? static_cast<uint32_t>(t.rank) : 0u);
    if (present) out.raw(t.dims, static_cast<size_t>(t.rank) * sizeof(int64_t));
  }
}

regie_format read_format(BlobReader& in) {
  const auto format = in.get<uint32_t>();
  if (!is_known_format(format)) in.corrupt("a tensor has an unknown format");
  return format;
}

std::vector<TensorNote> read_tensors(BlobReader& in) {
  std::vector<TensorNote> notes(in.count(sizeof(uint16_t) + 2 * sizeof(uint32_t)));
  for (TensorNote& n : notes) {
    n.elem = in.get<uint16_t>();
    n.format = read_format(in);
    n.dims.resize(in.count(sizeof(int64_t)));
    for (int64_t& d : n.dims) d = in.get<int64_t>();
  }
  return notes;
}

void write_layout(BlobWriter& out, const dnnl_memory_desc_t& desc) {
  const dnnl_blocking_desc_t& b = desc.format_desc.blocking;
  out.put(static_cast<uint32_t>(desc.ndims));
  out.put(static_cast<uint32_t>(desc.data_type));
  for (int i = 0; i < desc.ndims; ++i) {
    out.put<int64_t>(desc.dims[i]);
    out.put<int64_t>(desc.padded_dims[i]);
    out.put<int64_t>(b.strides[i]);
  }
  out.put(static_cast<uint32_t>(b.inner_nblks));
  for (int i = 0; i < b.inner_nblks; ++i) {
    out.put(static_cast<uint32_t>(b.inner_idxs[i]));
    out.put<int64_t>(b.inner_blks[i]);
  }
  out.put(static_cast<uint32_t>(desc.extra.flags));
  out.put<int32_t>(desc.extra.compensation_mask);
  out.put<int32_t>(desc.extra.asymm_compensation_mask);
  out.put<uint64_t>(dnnl_memory_desc_get_size(&desc));
}

// Nothing reaches oneDNN that could make it read outside of `bytes`: blocks divide the padded sizes, and the
// strides of the blocks, taken in descending order, nest without overlap and fill exactly the size that is
// stated.
dnnl_memory_desc_t read_layout(BlobReader& in, uint64_t* bytes) {
  dnnl_memory_desc_t desc{};
  dnnl_blocking_desc_t& b = desc.format_desc.blocking;
  uint32_t rank = in.get<uint32_t>();
  if (rank < 1 || rank > DNNL_MAX_NDIMS) in.corrupt("the packed weight has an impossible rank");
  desc.ndims = static_cast<int>(rank);
  const uint32_t type = in.get<uint32_t>();
  if (type != dnnl_f32 && type != dnnl_s8) in.corrupt("the packed weight has an impossible type");
  desc.data_type = static_cast<dnnl_data_type_t>(type);
  const int64_t size = type == dnnl_f32 ? 4 : 1;
  desc.format_kind = dnnl_blocked;
  for (uint32_t i = 0; i < rank; ++i) {
    desc.dims[i] = in.get<int64_t>();
    desc.padded_dims[i] = in.get<int64_t>();
    b.strides[i] = in.get<int64_t>();
    if (desc.dims[i] < 1 || desc.padded_dims[i] < desc.dims[i] || b.strides[i] < 1 ||
        static_cast<uint64_t>(desc.padded_dims[i]) > kMaxBytes ||
        static_cast<uint64_t>(b.strides[i]) > kMaxBytes)
      in.corrupt("the packed weight has impossible sizes");
  }
  std::array<int64_t, DNNL_MAX_NDIMS> block;
  block.fill(1);
  uint32_t blocks = in.get<uint32_t>();
  if (blocks > DNNL_MAX_NDIMS) in.corrupt("the packed weight has too many blocks");
  b.inner_nblks = static_cast<int>(blocks);
  int64_t inner = 1;
  for (uint32_t i = 0; i < blocks; ++i) {
    uint32_t axis = in.get<uint32_t>();
    int64_t size = in.get<int64_t>();
    if (axis >= rank || size < 1 || size > 4096 || inner > 1 << 20)
      in.corrupt("the packed weight has impossible blocks");
    b.inner_idxs[i] = axis;
    b.inner_blks[i] = size;
    block[axis] *= size;
    inner *= size;
  }
  // Axes by descending stride; an axis with one block has no say.
  std::vector<std::pair<int64_t, int64_t>> outer;  // stride, number of blocks
  for (uint32_t i = 0; i < rank; ++i) {
    if (desc.padded_dims[i] % block[i] || desc.padded_dims[i] - desc.dims[i] >= block[i])
      in.corrupt("the packed weight's blocks do not fit its sizes");
    if (desc.padded_dims[i] > block[i]) outer.emplace_back(b.strides[i], desc.padded_dims[i] / block[i]);
  }
  std::sort(outer.begin(), outer.end());
  int64_t elements = inner;
  for (auto [stride, count] : outer) {
    if (stride != elements) in.corrupt("the packed weight's strides do not nest");
    if (__builtin_mul_overflow(elements, count, &elements) || static_cast<uint64_t>(elements) > kMaxBytes / 4)
      in.corrupt("the packed weight is too large");
  }
  desc.extra.flags = in.get<uint32_t>();
  desc.extra.compensation_mask = in.get<int32_t>();
  desc.extra.asymm_compensation_mask = in.get<int32_t>();
  const int most = (1 << rank) - 1;
  auto has = [&](uint64_t flag) { return (desc.extra.flags & flag) != 0; };
  auto fits = [&](int mask, bool used) { return used ? mask > 0 && mask <= most : mask == 0; };
  if ((desc.extra.flags & ~kExtras) || (desc.extra.flags && type != dnnl_s8) ||
      !fits(desc.extra.compensation_mask, has(dnnl_memory_extra_flag_compensation_conv_s8s8)) ||
      !fits(desc.extra.asymm_compensation_mask, has(dnnl_memory_extra_flag_compensation_conv_asymmetric_src)))
    in.corrupt("the packed weight has impossible sums behind its elements");
  if (has(dnnl_memory_extra_flag_scale_adjust)) desc.extra.scale_adjust = 1;
  *bytes = in.get<uint64_t>();
  const uint64_t least = static_cast<uint64_t>(elements) * static_cast<uint64_t>(size);
  if (*bytes < least || (desc.extra.flags == 0 && *bytes != least) ||
      *bytes != dnnl_memory_desc_get_size(&desc))
    in.corrupt("the packed weight's size does not follow from its layout");
  return desc;
}

}  // namespace

bool is_storable(const dnnl_memory_desc_t& desc) {
  if (desc.format_kind != dnnl_blocked || desc.offset0 != 0 || (desc.extra.flags & ~kExtras)) return false;
  if (desc.data_type != dnnl_f32 && desc.data_type != dnnl_s8) return false;
  for (int i = 0; i < desc.ndims; ++i)
    if (desc.padded_offsets[i] != 0) return false;
  BlobWriter out;
  write_layout(out, desc);
  std::string bytes = out.take();
  BlobReader in(bytes.data(), bytes.size(), "layout");
  try {
    uint64_t size = 0;
    dnnl_memory_desc_t back = read_layout(in, &size);
    return same_layout(desc, back);
  } catch (const regie::sdk::Failure&) {
    return false;
  }
}

std::string layout_digest(const dnnl_memory_desc_t& desc) {
  BlobWriter out;
  write_layout(out, desc);
  const uint64_t hash = regie::sdk::name_hash(out.take());
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(hash >> shift) & 15];
  return text;
}

std::string write_dnnl_blob(std::string_view op, const std::vector<regie_attr>& attrs, Layout layout,
                            const std::vector<regie_tensor>& operands,
                            const std::vector<regie_tensor>& results, const Formats& formats,
                            uint32_t packed_operand, const dnnl_memory_desc_t& packed,
                            const WinogradWeights& winograd) {
  BlobWriter out;
  out.raw("RGHC", 4);
  out.put(kVersion);
  const dnnl_version_t* version = dnnl_version();
  out.put(static_cast<uint32_t>(version->major));
  out.put(static_cast<uint32_t>(version->minor));
  out.put(static_cast<uint32_t>(version->patch));
  out.put(static_cast<uint32_t>(dnnl_get_effective_cpu_isa()));
  regie::sdk::write_op(out, op, attrs.data(), static_cast<uint32_t>(attrs.size()));
  out.put(static_cast<uint32_t>(layout));
  write_tensors(out, operands, formats.operands);
  write_tensors(out, results, formats.results);
  out.put(packed_operand);
  if (packed_operand != REGIE_NONE) write_layout(out, packed);
  if (layout == Layout::kWinograd)
    for (uint64_t n : {winograd.offset, winograd.bytes, winograd.digest}) out.put<uint64_t>(n);
  return out.take();
}

Formats DnnlBlob::formats() const {
  Formats f;
  for (const TensorNote& n : operands) f.operands.push_back(n.format);
  for (const TensorNote& n : results) f.results.push_back(n.format);
  return f;
}

std::string write_native_blob(std::string_view op, const std::vector<regie_attr>& attrs,
                              const Formats& formats) {
  BlobWriter out;
  regie::sdk::write_op(out, op, attrs.data(), static_cast<uint32_t>(attrs.size()));
  for (const auto* list : {&formats.operands, &formats.results}) {
    out.put(static_cast<uint32_t>(list->size()));
    for (regie_format f : *list) out.put(f);
  }
  return out.take();
}

NativeBlob read_native_blob(const void* data, uint64_t size) {
  BlobReader in(data, size, "kernel of format host_cpu.native/1");
  NativeBlob blob;
  blob.op = regie::sdk::read_op(in);
  for (auto* list : {&blob.formats.operands, &blob.formats.results}) {
    list->resize(in.count(sizeof(uint32_t)));
    for (regie_format& f : *list) f = read_format(in);
  }
  in.finish();
  return blob;
}

DnnlBlob read_dnnl_blob(const void* data, uint64_t size) {
  BlobReader in(data, size, "kernel of format host_cpu.onednn/3");
  if (std::memcmp(in.raw(4), "RGHC", 4) != 0) in.corrupt("its mark is missing");
  if (in.get<uint32_t>() != kVersion) in.corrupt("its version is unknown");
  in.raw(4 *
         sizeof(uint32_t));  // which oneDNN and instruction set: for people, as layouts are described in full
  DnnlBlob blob;
  blob.op = regie::sdk::read_op(in);
  uint32_t layout = in.get<uint32_t>();
  if (layout > static_cast<uint32_t>(Layout::kWinograd)) in.corrupt("its layout is unknown");
  blob.layout = static_cast<Layout>(layout);
  blob.operands = read_tensors(in);
  blob.results = read_tensors(in);
  blob.packed_operand = in.get<uint32_t>();
  if (blob.packed_operand != REGIE_NONE) {
    if (blob.packed_operand >= blob.operands.size()) in.corrupt("the packed weight is no operand");
    blob.packed = read_layout(in, &blob.packed_bytes);
  }
  if (blob.layout == Layout::kWinograd) {
    WinogradWeights& w = blob.winograd;
    for (uint64_t* n : {&w.offset, &w.bytes, &w.digest}) *n = in.get<uint64_t>();
    if (blob.packed_operand == REGIE_NONE || w.offset % 64 || w.offset < blob.packed_bytes ||
        w.offset > kMaxBytes || w.bytes == 0 || w.bytes > kMaxBytes)
      in.corrupt("its weights for Winograd's algorithm have an impossible place");
  }
  in.finish();
  if (!is_lowered(blob.op.op())) in.corrupt("its operator is none of oneDNN's");
  return blob;
}

}  // namespace host_cpu
