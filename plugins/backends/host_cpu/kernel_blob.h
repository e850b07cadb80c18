// The kernel formats of host_cpu as bytes.
//
// "host_cpu.reference/1": the operator (regie/op_blob.hpp), nothing else.
// "host_cpu.native/1": the operator; u32 operands, u32 their formats; u32 results, u32 their formats.
// "host_cpu.onednn/3": "RGHC", u32 version, u32 oneDNN major, minor, patch, u32 its instruction set; the
// operator; u32 layout; u32 operands, u32 results, each as u16 element type, u32 format, u32 rank, i64
// reference dimensions; u32 operand whose bytes are a packed weight, or REGIE_NONE, and then its layout: u32
// rank; u32 oneDNN's data type; per axis i64 size, padded size, stride; u32 inner blocks, each u32 axis and
// i64 size; u32 flags and i32 masks of what oneDNN puts behind the elements of bytes, their sums; u64 bytes;
// with layout 2, u64 offset, bytes and digest of the weights for Winograd's algorithm. The packed weight's
// layout describes plain data, so that any oneDNN can reorder it.
#pragma once

#include <string>
#include <vector>

#include "dnnl_handles.h"
#include "primitive.h"
#include "regie/op_blob.hpp"

namespace host_cpu {

constexpr char kReferenceFormat[] = "host_cpu.reference/1";
constexpr char kDnnlFormat[] = "host_cpu.onednn/3";
constexpr char kNativeFormat[] = "host_cpu.native/1";

struct TensorNote {
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  regie_format format = kPlainFormat;
  std::vector<int64_t> dims;
};

// Weights for Winograd's algorithm lie behind the packed ones, in oneDNN's own order, which only its digest
// describes: where another is wanted, the packed weights are used and the algorithm is not.
struct WinogradWeights {
  uint64_t offset = 0, bytes = 0, digest = 0;
};

struct DnnlBlob {
  regie::sdk::OpBlob op;
  Layout layout = Layout::kPlain;
  std::vector<TensorNote> operands, results;  // as at compile time
  uint32_t packed_operand = REGIE_NONE;
  dnnl_memory_desc_t packed{};
  uint64_t packed_bytes = 0;
  WinogradWeights winograd;  // of Layout::kWinograd
  Formats formats() const;
};

struct NativeBlob {
  regie::sdk::OpBlob op;
  Formats formats;
};

inline regie::sdk::Attrs attributes_of(const regie::sdk::OpBlob& op) {
  return {op.attrs().data(), static_cast<uint32_t>(op.attrs().size())};
}

std::string write_dnnl_blob(std::string_view op, const std::vector<regie_attr>& attrs, Layout layout,
                            const std::vector<regie_tensor>& operands,
                            const std::vector<regie_tensor>& results, const Formats& formats,
                            uint32_t packed_operand, const dnnl_memory_desc_t& packed,
                            const WinogradWeights& winograd = {});
std::string write_native_blob(std::string_view op, const std::vector<regie_attr>& attrs,
                              const Formats& formats);
// Throw Failure(CORRUPT) for everything that is not such a blob.
DnnlBlob read_dnnl_blob(const void* data, uint64_t size);
NativeBlob read_native_blob(const void* data, uint64_t size);

// Can this layout be written into a blob: blocked, and nothing beside the blocks?
bool is_storable(const dnnl_memory_desc_t& desc);
// Short name of a layout for "opaque:host_cpu:<digest>".
std::string layout_digest(const dnnl_memory_desc_t& desc);

}  // namespace host_cpu
