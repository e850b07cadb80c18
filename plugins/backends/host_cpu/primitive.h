// From an Operation to an oneDNN primitive: which layouts it wants, how much scratch, and how a weight is
// packed.
#pragma once

#include <string>

#include "dnnl_handles.h"
#include "operation.h"

namespace host_cpu {

// Before anything else of oneDNN is used: where its code lies, and whom it tells of it.
void set_up_dnnl();

// Bytes up to where what follows them is aligned, to 64.
constexpr uint64_t round_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// How a kernel treats activations. Values are row-major between kernels; a kernel may still reorder inside.
enum class Layout : uint32_t {
  kPlain = 0,  // the primitive reads and writes row-major
  kOwn = 1,    // the primitive chooses; where it wants another layout, reorders into scratch stand around it
  kWinograd = 2  // as kPlain, but by Winograd's algorithm, whose weights are transformed beforehand
};

struct Lowered {
  PrimitiveDesc desc;
  dnnl_memory_desc_t src{}, weights{}, dst{};  // as the primitive wants them
  uint64_t scratchpad = 0;
  std::string implementation;  // oneDNN's name for it
  // What oneDNN has left where it has nothing fast.
  bool is_plain_loop() const { return implementation.find("ref") != std::string::npos; }
};

// `packed`: the layout that the weights have already; NULL: oneDNN chooses if `free_weights`, else row-major.
// Uses the thread width of the calling thread. Throws UNSUPPORTED where oneDNN has nothing.
Lowered lower(dnnl_engine_t engine, const Operation& op, Layout layout, bool free_weights,
              const dnnl_memory_desc_t* packed = nullptr);

// Does a Winograd kernel work in no more than 4 MiB, or a byte for every 50 operations that the convolution
// takes directly? It saves about half of them.
bool is_in_little_room(const Operation& op, const Lowered& lowered);

// Which weights a Winograd kernel wants, as a number: equal ones may be handed over as bytes.
uint64_t winograd_digest(const dnnl_memory_desc_t& weights);

bool same_layout(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b);

// Copies between two layouts of one tensor; waits for it.
void reorder_now(dnnl_engine_t engine, const dnnl_memory_desc_t& from_desc, const void* from,
                 const dnnl_memory_desc_t& to_desc, void* to);
Primitive make_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to,
                       uint64_t* scratchpad);

// Of so many bytes, which a launch says where to find.
Memory make_scratchpad(dnnl_engine_t engine, uint64_t bytes);

// Where reorders and the primitive's own scratchpad lie in a launch's scratch; each part aligned to 64.
struct ScratchPlan {
  uint64_t scratchpad = 0, src = 0, dst = 0, bytes = 0;  // offsets, then the total
};
ScratchPlan plan_scratch(const Operation& op, const Lowered& lowered, uint64_t reorder_scratchpad);

}  // namespace host_cpu
