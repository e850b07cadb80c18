// Element types: names in the text form, sizes, and the dense tensor that constants are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "regie/c/view.h"

namespace regie {

std::string_view elem_name(regie_elem elem);  // "f32", "i64", "bool", "bf16", "f8e4m3fn" ...; "?" if unknown
std::optional<regie_elem> elem_from_name(std::string_view name);
uint32_t elem_bits(regie_elem elem);  // below 8 for packed types; 0 for string and unknown
// Bytes of `count` elements, sub-byte types packed; strings count as sizeof(regie_str). Saturates at
// UINT64_MAX.
uint64_t elem_bytes(regie_elem elem, uint64_t count);
uint64_t physical_bytes();  // of memory that this computer has
// Product; 1 for rank 0; saturates at INT64_MAX.
int64_t element_count(std::span<const int64_t> dims);

// An immutable tensor with its bytes: owned, or borrowed from a mapping that `owner` keeps alive.
class Tensor {
 public:
  Tensor() = default;
  // Owned, zero-filled, aligned to 64 bytes; elem must not be string. `what` is named where there is no
  // memory for it: OUT_OF_MEMORY "weight 'w' takes 68719476736 bytes: ...". For sizes that input decides.
  static Result<Tensor> try_zeros(regie_elem elem, std::span<const int64_t> dims, std::string_view what);
  static Result<Tensor> try_copy(const regie_tensor& from, std::string_view what);
  // For sizes that are known to be small: throws std::bad_alloc, as containers do.
  static Tensor zeros(regie_elem elem, std::span<const int64_t> dims);
  static Tensor copy(const regie_tensor& from);  // strings too; row-major; empty if there is no data
  static Tensor borrow(regie_elem elem, std::span<const int64_t> dims, const void* data,
                       std::shared_ptr<const void> owner);

  explicit operator bool() const { return rep_ != nullptr; }
  const regie_tensor& view() const;  // stable address while any copy of this Tensor lives
  regie_elem elem() const { return view().elem; }
  std::span<const int64_t> dims() const { return {view().dims, static_cast<size_t>(view().rank)}; }
  int64_t count() const { return element_count(dims()); }
  uint64_t bytes() const { return view().bytes; }
  const void* data() const { return view().data; }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(count())};
  }
  // Writable only directly after zeros(), before it is shared.
  void* mutable_data();
  // 32 hex digits over type, dims and bytes; computed once.
  const std::string& digest() const;

 private:
  struct Rep;
  std::shared_ptr<Rep> rep_;
};

}  // namespace regie
