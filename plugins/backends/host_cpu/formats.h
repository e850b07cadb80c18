// The formats that kernels of host_cpu read and write besides row-major, and what they are: row-major tensors
// of other dimensions. So a kernel that knows row-major only can run on them if its axes are renamed.
//
// Channels last ("NHWC", for one to three spatial axes): N, spatial axes, C. Blocked ("NC1HWC0<16>"): N,
// C/16, spatial axes, 16. Neither takes more bytes than row-major: blocked is offered for whole blocks only
// (and, trivially, for one channel).
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regie/c/view.h"

namespace host_cpu {

[[noreturn]] void refuse(std::string why);  // throws Failure(UNSUPPORTED)

constexpr regie_format kPlainFormat = REGIE_FORMAT_ND;
constexpr regie_format kChannelsLast = REGIE_FORMAT_NHWC;
constexpr int64_t kBlock = 16;
constexpr regie_format kBlocked = REGIE_FORMAT_NC1HWC0 | static_cast<uint32_t>(kBlock) << 16;

// Of a node's operands and results.
struct Formats {
  std::vector<regie_format> operands, results;
  bool all_plain() const;
};

const char* format_name(regie_format format);
// One of the three; what a kernel blob says may be any.
bool is_known_format(regie_format format);
// Can a tensor of these dimensions have it, whatever its symbolic (negative) ones turn out to be?
bool format_fits(std::span<const int64_t> dims, regie_format format);
// The same bytes as a row-major tensor. Throws Failure(UNSUPPORTED) if the format does not fit.
std::vector<int64_t> physical_dims(std::span<const int64_t> dims, regie_format format);
// Where an axis is among the physical dimensions. Of the blocked channels it is the blocks' axis.
int64_t physical_axis(int64_t axis, int64_t rank, regie_format format);
dnnl_memory_desc_t dnnl_layout(std::span<const int64_t> dims, regie_format format);
// Do both formats put the bytes of such a tensor alike? True where but one axis is longer than 1.
bool same_order(std::span<const int64_t> dims, regie_format a, regie_format b);

}  // namespace host_cpu
