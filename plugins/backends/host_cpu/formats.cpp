#include "formats.h"

#include <algorithm>
#include <string>

#include "regie/plugin.hpp"

namespace host_cpu {

void refuse(std::string why) { throw regie::sdk::Failure(REGIE_UNSUPPORTED, std::move(why)); }

bool Formats::all_plain() const {
  auto plain = [](regie_format f) { return f == kPlainFormat; };
  return std::all_of(operands.begin(), operands.end(), plain) &&
         std::all_of(results.begin(), results.end(), plain);
}

const char* format_name(regie_format format) {
  return format == kPlainFormat ? "plain" : format == kChannelsLast ? "nhwc" : "nChw16c";
}

bool is_known_format(regie_format format) {
  return format == kPlainFormat || format == kChannelsLast || format == kBlocked;
}

bool format_fits(std::span<const int64_t> dims, regie_format format) {
  if (format == kPlainFormat) return true;
  if (dims.size() < 3 || dims.size() > 5) return false;
  if (format == kChannelsLast) return true;
  return format == kBlocked && (dims[1] == 1 || (dims[1] > 0 && dims[1] % kBlock == 0));
}

std::vector<int64_t> physical_dims(std::span<const int64_t> dims, regie_format format) {
  if (!format_fits(dims, format))
    refuse(std::string("a tensor cannot have the format ") + format_name(format));
  std::vector<int64_t> out(dims.begin(), dims.end());
  if (format == kChannelsLast) {
    std::rotate(out.begin() + 1, out.begin() + 2, out.end());
  } else if (format == kBlocked) {
    const int64_t block = dims[1] == 1 ? 1 : kBlock;
    out[1] /= block;
    out.push_back(block);
  }
  return out;
}

int64_t physical_axis(int64_t axis, int64_t rank, regie_format format) {
  if (format != kChannelsLast || axis == 0) return axis;
  return axis == 1 ? rank - 1 : axis - 1;
}

dnnl_memory_desc_t dnnl_layout(std::span<const int64_t> dims, regie_format format) {
  static constexpr dnnl_format_tag_t kTags[3][3] = {{dnnl_ncw, dnnl_nwc, dnnl_nCw16c},
                                                    {dnnl_nchw, dnnl_nhwc, dnnl_nChw16c},
                                                    {dnnl_ncdhw, dnnl_ndhwc, dnnl_nCdhw16c}};
  if (dims.size() < 3 || dims.size() > 5 || !format_fits(dims, format))
    refuse("a tensor cannot have its format");
  dnnl_dims_t sizes{};
  std::copy(dims.begin(), dims.end(), sizes);
  const int column = format == kPlainFormat ? 0 : format == kChannelsLast ? 1 : 2;
  dnnl_memory_desc_t desc{};
  if (dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(dims.size()), sizes, dnnl_f32,
                                   kTags[dims.size() - 3][column]) != dnnl_success)
    refuse("oneDNN cannot describe a tensor of this shape");
  return desc;
}

bool same_order(std::span<const int64_t> dims, regie_format a, regie_format b) {
  if (a == b) return true;
  if (!format_fits(dims, a) || !format_fits(dims, b)) return false;
  if (dims[1] == 1) return true;
  return std::all_of(dims.begin() + 2, dims.end(), [](int64_t d) { return d == 1; });
}

}  // namespace host_cpu
