// From the bytes of a model file to wire messages. Tensor payloads stay where they are: the reader first
// walks the bytes once, drops what nobody reads (documentation, metadata), and replaces each raw_data by its
// place in the file; only that skeleton goes through protobuf. So weights are never copied by parsing, and a
// model larger than protobuf's limit of 2 GiB is read as long as its structure is smaller. The walk also
// gives precise words for broken bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "onnx.pb.h"

namespace regie::onnx {

namespace wire = regie::onnx_wire;

// Nested control flow deeper than this is refused (recursion over regions is bounded by it).
constexpr int kMaxDepth = 100;

// Fills `model`; throws sdk::Failure (INVALID_MODEL) with the byte at which the file breaks.
void read_model(const void* data, uint64_t size, wire::Model* model);

// 0..100: do these first bytes, of a file of `file_size` bytes, look like a model? See
// regie_frontend_table.probe.
uint32_t probe_model(std::string_view path, const void* head, uint64_t head_size, uint64_t file_size);

}  // namespace regie::onnx
