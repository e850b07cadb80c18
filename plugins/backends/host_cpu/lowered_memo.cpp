#include "lowered_memo.h"

#include <type_traits>

#include "parallel.h"

namespace host_cpu {

namespace {

template <class T>
void put(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything that `lower` reads. Bytes between members may differ between equal descriptions: then one is
// looked up in vain, no more.
std::string key_of(const Operation& op, Layout layout, bool free_weights) {
  std::string key;
  put(key, op.kind);
  put(key, op.alg);
  put(key, op.scale);
  put(key, layout);
  put(key, free_weights);
  put(key, omp_get_max_threads());
  for (const dnnl_memory_desc_t* d : {&op.src, &op.weights, &op.bias, &op.dst}) put(key, *d);
  for (const dnnl_dims_t* d : {&op.strides, &op.dilates, &op.kernel, &op.pad_l, &op.pad_r}) put(key, *d);
  for (int32_t zero : {op.src_zero, op.weights_zero, op.dst_zero}) put(key, zero);
  put(key, op.src_zero_operand);
  put(key, op.scales.size());
  for (float s : op.scales) put(key, s);
  for (const PostOp& p : op.post) {
    put(key, p.kind);
    put(key, p.alg);
    put(key, p.alpha);
    put(key, p.beta);
    put(key, p.memory);
  }
  return key;
}

}  // namespace

const Lowered& LoweredMemo::get(dnnl_engine_t engine, const Operation& op, Layout layout, bool free_weights) {
  std::string key = key_of(op, layout, free_weights);
  auto it = known_.find(key);
  if (it == known_.end()) it = known_.emplace(std::move(key), lower(engine, op, layout, free_weights)).first;
  return it->second;
}

}  // namespace host_cpu
