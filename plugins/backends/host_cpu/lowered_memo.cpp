#include "lowered_memo.h"

#include <algorithm>
#include <type_traits>
#include <utility>

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
std::string key_of(const Operation& op, Layout layout, bool free_weights,
                   const dnnl_memory_desc_t* packed = nullptr) {
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
  put(key, op.residual_operand != REGIE_NONE);
  put(key, packed != nullptr);
  if (packed) put(key, *packed);
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

dnnl_primitive_t SharedPrimitive::primitive() const {
  std::lock_guard lock(mutex_);
  if (!primitive_) primitive_ = make_primitive(lowered_.desc);
  return primitive_.get();
}

std::shared_ptr<const SharedPrimitive> SharedPrimitives::get(dnnl_engine_t engine, const Operation& op,
                                                             Layout layout, bool free_weights,
                                                             const dnnl_memory_desc_t* packed) {
  std::string key = key_of(op, layout, free_weights, packed);
  put(key, omp_get_max_threads());  // which a primitive is made for
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    if (known_.size() >= limit_) {
      std::erase_if(known_, [](const auto& e) {
        // One that somebody is about to fill is held twice; who has just filled it wrote under its lock.
        if (e.second.use_count() != 1) return false;
        std::lock_guard filled(e.second->mutex);
        return e.second->made.expired();
      });
      limit_ = std::max<size_t>(64, 2 * known_.size());
    }
    std::shared_ptr<Entry>& known = known_[std::move(key)];
    if (!known) known = std::make_shared<Entry>();
    entry = known;
  }
  std::lock_guard lock(entry->mutex);
  std::shared_ptr<const SharedPrimitive> made = entry->made.lock();
  if (!made) {
    made = std::make_shared<const SharedPrimitive>(lower(engine, op, layout, free_weights, packed));
    entry->made = made;
  }
  return made;
}

}  // namespace host_cpu
