// What can be done before there is a model: oneDNN looks at the processor, and the code that generates
// kernels, some megabytes of a library of forty, is read into the process by generating a few small ones.
#include "primitive.h"
#include "regie/plugin.hpp"
#include "regie_digests.h"
#include "tables.h"

namespace host_cpu {

namespace {

dnnl_memory_desc_t channels_last(dnnl_dim_t channels, dnnl_dim_t side) {
  const dnnl_dims_t dims = {1, channels, side, side};
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_tag(&desc, 4, dims, dnnl_f32, dnnl_nhwc), "describing a picture");
  return desc;
}

// A convolution of the kinds that networks are made of: dense, of one position, of each channel by itself.
Operation convolution_of(dnnl_dim_t side, bool each_channel) {
  constexpr dnnl_dim_t kChannels = 32, kSide = 14;
  Operation op;
  op.kind = Operation::kConvolution;
  op.alg = dnnl_convolution_direct;
  op.src = op.dst = channels_last(kChannels, kSide);
  const dnnl_dims_t grouped = {kChannels, 1, 1, side, side}, dense = {kChannels, kChannels, side, side};
  check(each_channel ? dnnl_memory_desc_init_by_tag(&op.weights, 5, grouped, dnnl_f32, dnnl_abcde)
                     : dnnl_memory_desc_init_by_tag(&op.weights, 4, dense, dnnl_f32, dnnl_abcd),
        "describing weights");
  const dnnl_dims_t channels = {kChannels};
  check(dnnl_memory_desc_init_by_tag(&op.bias, 1, channels, dnnl_f32, dnnl_a), "describing a bias");
  for (int i = 0; i < 2; ++i) {
    op.strides[i] = 1;
    op.pad_l[i] = op.pad_r[i] = side / 2;
  }
  op.post.push_back({PostOp::kEltwise, dnnl_eltwise_relu, 0, 0, REGIE_NONE, {}});
  return op;
}

regie_status get_ready(uint32_t, const regie_host* host) {
  return regie::sdk::guard(host, [] {
    set_up_dnnl();
    const Engine engine = make_engine();
    for (const Operation& op : {convolution_of(3, false), convolution_of(1, false), convolution_of(3, true)})
      make_primitive(lower(engine.get(), op, Layout::kPlain, true).desc);
  });
}

constexpr regie_device_info kDevices[] = {
    {regie::sdk::lit("host_cpu"), regie::sdk::lit("this computer's processor")}};

}  // namespace

extern const regie_device_ahead_table ahead_table = {
    regie::sdk::head(sizeof(regie_device_ahead_table), REGIE_DIGEST_DEVICE_AHEAD), 1, 0, kDevices, get_ready};

}  // namespace host_cpu
