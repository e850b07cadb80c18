// Owning handles over oneDNN's C interface, and its failures as sdk::Failure. The C interface, not the C++
// one: arguments of an execution are then an array that is made once and reused, where the C++ wrapper builds
// a map at every call.
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <memory>
#include <string>

#include "regie/plugin.hpp"

namespace host_cpu {

inline void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  regie_status code = status == dnnl_out_of_memory                                       ? REGIE_OUT_OF_MEMORY
                      : status == dnnl_unimplemented || status == dnnl_invalid_arguments ? REGIE_UNSUPPORTED
                                                                                         : REGIE_INTERNAL;
  throw regie::sdk::Failure(code, std::string("oneDNN: ") + what + ": " + dnnl_status2str(status));
}

struct Destroy {
  void operator()(dnnl_engine_t h) const { dnnl_engine_destroy(h); }
  void operator()(dnnl_stream_t h) const { dnnl_stream_destroy(h); }
  void operator()(dnnl_memory_t h) const { dnnl_memory_destroy(h); }
  void operator()(dnnl_primitive_t h) const { dnnl_primitive_destroy(h); }
  void operator()(dnnl_primitive_desc_t h) const { dnnl_primitive_desc_destroy(h); }
  void operator()(dnnl_primitive_desc_iterator_t h) const { dnnl_primitive_desc_iterator_destroy(h); }
  void operator()(dnnl_primitive_attr_t h) const { dnnl_primitive_attr_destroy(h); }
  void operator()(dnnl_post_ops_t h) const { dnnl_post_ops_destroy(h); }
};
using Engine = std::unique_ptr<dnnl_engine, Destroy>;
using Stream = std::unique_ptr<dnnl_stream, Destroy>;
using Memory = std::unique_ptr<dnnl_memory, Destroy>;
using Primitive = std::unique_ptr<dnnl_primitive, Destroy>;
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Destroy>;
using PrimitiveAttr = std::unique_ptr<dnnl_primitive_attr, Destroy>;
using PostOps = std::unique_ptr<dnnl_post_ops, Destroy>;

inline Engine make_engine() {
  dnnl_engine_t h = nullptr;
  check(dnnl_engine_create(&h, dnnl_cpu, 0), "creating an engine");
  return Engine(h);
}
inline Stream make_stream(dnnl_engine_t engine) {
  dnnl_stream_t h = nullptr;
  check(dnnl_stream_create(&h, engine, dnnl_stream_in_order), "creating a stream");
  return Stream(h);
}
inline Memory make_memory(dnnl_engine_t engine, const dnnl_memory_desc_t& desc,
                          void* data = DNNL_MEMORY_NONE) {
  dnnl_memory_t h = nullptr;
  check(dnnl_memory_create(&h, &desc, engine, data), "describing a memory");
  return Memory(h);
}
inline Primitive make_primitive(const PrimitiveDesc& desc) {
  dnnl_primitive_t h = nullptr;
  check(dnnl_primitive_create(&h, desc.get()), "creating a primitive");
  return Primitive(h);
}

// Does oneDNN use these instructions here?
inline bool uses_isa(dnnl_cpu_isa_t wanted) {
  const auto bits = static_cast<uint32_t>(wanted);
  return (static_cast<uint32_t>(dnnl_get_effective_cpu_isa()) & bits) == bits;
}

// The width of parallel regions that the calling thread opens, while in scope.
class Width {
 public:
  explicit Width(uint32_t threads);
  ~Width();
  Width(const Width&) = delete;

 private:
  int before_;
};

}  // namespace host_cpu
