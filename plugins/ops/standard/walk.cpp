#include "walk.h"

namespace regie::ops {

void check_rank(std::string_view op, size_t rank) {
  if (rank > max_rank)
    throw sdk::Failure(REGIE_UNSUPPORTED, std::string(op) + ": tensors of rank " + std::to_string(rank) +
                                              "; the reference kernel goes up to " +
                                              std::to_string(max_rank));
}

Dims dense_strides(Index shape) {
  Dims strides{};
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Dims broadcast_strides(std::string_view op, Index from, Index to) {
  check_rank(op, to.size());
  bool fits = from.size() <= to.size();
  Dims dense = fits ? dense_strides(from) : Dims{}, strides{};
  size_t skip = fits ? to.size() - from.size() : 0;
  for (size_t axis = 0; fits && axis < from.size(); ++axis) {
    fits = from[axis] == 1 || from[axis] == to[skip + axis];
    strides[skip + axis] = from[axis] == 1 ? 0 : dense[axis];
  }
  if (!fits)
    throw sdk::Failure(REGIE_INVALID_INPUT, std::string(op) + ": a tensor of shape " + print_shape(from) +
                                                " cannot be broadcast to " + print_shape(to));
  return strides;
}

namespace {
template <class T>
void copy_rows(const Walk<2>& walk, const void* from, void* to) {
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  walk.rows([&](const auto& at, int64_t count, const auto& step) {
    const T* s = source + at[0];
    T* t = target + at[1];
    if (step[0] == 1 && step[1] == 1) {
      std::memcpy(t, s, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) t[i * step[1]] = s[i * step[0]];
    }
  });
}
struct Wide {
  uint64_t halves[2];
};
}  // namespace

void copy_strided(const Walk<2>& walk, uint32_t size, const void* from, void* to) {
  switch (size) {
    case 1:
      return copy_rows<uint8_t>(walk, from, to);
    case 2:
      return copy_rows<uint16_t>(walk, from, to);
    case 4:
      return copy_rows<uint32_t>(walk, from, to);
    case 8:
      return copy_rows<uint64_t>(walk, from, to);
    default:
      return copy_rows<Wide>(walk, from, to);
  }
}

}  // namespace regie::ops
