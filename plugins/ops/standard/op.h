// What an operator of this plug-in is: a row {name, flags, shape function, kernel} in the table of its
// family, and the two contexts that shape functions and kernels see. Both fail by throwing sdk::Failure;
// plugin.cpp turns that into a status.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "numeric.h"
#include "regie/c/op_kernel.h"
#include "regie/c/op_shape.h"
#include "regie/plugin.hpp"

namespace regie::ops {

// A list whose elements are looked up within its bounds: a shape of another rank than an operator is for must
// not be read past its end, whatever a shape function or kernel forgot to ask.
template <class T>
class Checked : public std::span<const T> {
 public:
  using std::span<const T>::span;
  Checked() = default;
  Checked(std::span<const T> s) : std::span<const T>(s) {}  // NOLINT: as a span is
  const T& operator[](size_t i) const {
    if (i >= this->size()) outside(i);
    return std::span<const T>::operator[](i);
  }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[this->size() - 1]; }

 private:
  [[noreturn]] void outside(size_t i) const {
    throw sdk::Failure(REGIE_INVALID_MODEL,
                       "an operand of rank " + std::to_string(this->size()) + " has no dimension " +
                           (i > this->size() ? std::string("at all") : std::to_string(i)));
  }
};

using Shape = std::vector<regie_dim>;  // of a type: dimension expressions
using Index = Checked<int64_t>;        // of a tensor: concrete dimensions, strides, axes

// Axis -rank..rank-1 as 0..rank-1; INVALID_MODEL if it is outside. `what` is e.g. "Softmax: axis".
int64_t normal_axis(std::string_view what, int64_t axis, int64_t rank);

// Index -size..size-1 as 0..size-1; INVALID_INPUT if it is outside.
inline int64_t normal_index(std::string_view op, int64_t index, int64_t size) {
  if (index < -size || index >= size)
    throw sdk::Failure(REGIE_INVALID_INPUT, std::string(op) + ": index " + std::to_string(index) +
                                                " is outside of an axis of size " + std::to_string(size));
  return index < 0 ? index + size : index;
}

// Which of these names an attribute is, the first if it is absent; INVALID_MODEL if it is none of them.
size_t choice(std::string_view op, const sdk::Attrs& attrs, std::string_view attribute,
              std::span<const std::string_view> names);

// The only element of a tensor whose data is there, as double or int64_t; nothing if it is of another type.
template <class Number>
std::optional<Number> scalar_of(const regie_tensor* t) {
  using List = std::conditional_t<std::is_integral_v<Number>, Ints, Numbers>;
  std::optional<Number> value;
  if (t && t->data && sdk::count_of(*t) == 1)
    dispatch(List(), t->elem,
             [&]<class T>() { value = static_cast<Number>(Compute<T>(*static_cast<const T*>(t->data))); });
  return value;
}

// The strings of an attribute; none if it is absent.
std::vector<std::string_view> texts(const sdk::Attrs& attrs, std::string_view name);

// One request to a shape function.
class Infer {
 public:
  Infer(const regie_host* host, const regie_shape_request& request);

  const std::string_view op;
  const sdk::Attrs attrs;
  const sdk::Dims dims;

  uint32_t operands() const { return request_.operand_count; }
  uint32_t results() const { return request_.result_count; }
  std::span<const regie_region_info> regions() const { return {request_.regions, request_.region_count}; }
  bool has(uint32_t i) const { return i < request_.operand_count && request_.operands[i].present; }
  const regie_operand_info& in(uint32_t i) const;  // INVALID_MODEL if it is absent
  Checked<regie_dim> shape(uint32_t i) const;      // UNSUPPORTED if the rank is not known
  int64_t rank(uint32_t i) const { return static_cast<int64_t>(shape(i).size()); }
  regie_elem elem(uint32_t i) const { return in(i).type.elem; }

  // The elements of a small integer tensor as expressions, if they are known.
  std::optional<Shape> content(uint32_t i) const;
  // The same of a tensor of any rank, row by row: exporters reshape and turn lists of pads, for instance.
  std::optional<Shape> elements(uint32_t i) const;
  // As `content` if all of them are plain numbers.
  std::optional<std::vector<int64_t>> numbers(uint32_t i) const;
  // As `content`, but elements that only the run tells are REGIE_DIM_UNKNOWN, which goes through arithmetic
  // and may be given as a dimension. UNSUPPORTED if not even their number is known.
  Shape list(uint32_t i) const;
  // How many elements a list of rank 0 or 1 has; UNSUPPORTED if that depends on data.
  size_t length(uint32_t i) const;

  void result(uint32_t i, regie_elem elem, std::span<const regie_dim> shape) const;
  // Drops it if an element is unknown or there are too many.
  void content(uint32_t i, std::span<const regie_dim> content) const;

  std::optional<int64_t> number(regie_dim d) const;    // if it is a plain number, of any sign
  regie_dim dim(int64_t number) const;                 // the expression for a number of any sign
  static bool known(std::span<const regie_dim> dims);  // is none REGIE_DIM_UNKNOWN?
  static Shape unknown(size_t rank) { return Shape(rank, REGIE_DIM_UNKNOWN); }
  bool surely_at_least(regie_dim d, int64_t least) const;
  bool surely_below(regie_dim d, int64_t bound) const;
  // Do these differ for every size? (Two constants that are not equal, or ranges that do not meet.)
  bool surely_differ(regie_dim a, regie_dim b) const;
  // States that these are equal: a symbol is fixed to the number that it must be. False if they cannot be.
  bool agree(regie_dim a, regie_dim b) const;
  // Is y, whatever the symbols are, the least multiple of some k >= 2 that is no less than x?
  bool is_multiple_above(regie_dim y, regie_dim x) const;
  Shape broadcast(std::span<const regie_dim> a, std::span<const regie_dim> b) const;
  int64_t axis(int64_t axis, int64_t rank) const {
    return normal_axis(std::string(op) + ": axis", axis, rank);
  }
  // The attribute 'axis' as an axis of operand 0.
  size_t axis_attribute(int64_t fallback) const {
    return static_cast<size_t>(axis(attrs.integer("axis", fallback), rank(0)));
  }
  std::string print(std::span<const regie_dim> shape) const;  // "[N, 3]"

  [[noreturn]] void bad(const std::string& message) const;  // INVALID_MODEL
  [[noreturn]] void unsupported(const std::string& message) const;

 private:
  const regie_shape_request& request_;
};

// One launch of a prepared kernel.
class Call {
 public:
  explicit Call(const regie_op_call& call) : call_(call) {}
  const regie_tensor& operand(uint32_t i) const { return call_.operands[i]; }
  template <class T>
  const T* in(uint32_t i) const {
    return static_cast<const T*>(data_of<T>(call_.operands[i]));
  }
  template <class T>
  T* out(uint32_t i) const {
    return static_cast<T*>(data_of<T>(call_.results[i]));
  }
  template <class T>
  T* scratch() const {
    return static_cast<T*>(call_.scratch);
  }
  // Room for the characters of a result of strings, which stays as long as the result is read.
  char* characters(uint32_t i, uint64_t bytes) const {
    if (bytes == 0) return nullptr;
    const auto count = static_cast<int64_t>(bytes);
    void* room = call_.allocate ? call_.allocate(call_.context, i, REGIE_U8, 1, &count) : nullptr;
    if (!room)
      throw sdk::Failure(REGIE_OUT_OF_MEMORY,
                         "no room for the characters of strings, " + std::to_string(bytes) + " bytes");
    return static_cast<char*>(room);
  }

 private:
  // Schemas hold at compile time; a model file may say another type, whose elements are smaller than those
  // that the kernel is for. Without a size: strings, packed elements, and what moves bytes.
  template <class T>
  static void* data_of(const regie_tensor& t) {
    if constexpr (!std::is_void_v<T>)
      if (const uint32_t size = elem_size(t.elem); t.data && size != 0 && size < sizeof(T))
        throw sdk::Failure(REGIE_INVALID_INPUT, "a tensor of " + std::string(elem_name(t.elem)) +
                                                    " does not have the type that the kernel is for");
    return t.data;
  }
  const regie_op_call& call_;
};

// A prepared kernel: immutable, so that several threads may run it.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Call& call) const = 0;
};
using KernelPtr = std::unique_ptr<const Kernel>;

// A kernel out of a callable void(const Call&).
template <class F>
KernelPtr make_kernel(F f) {
  struct Lambda final : Kernel {
    explicit Lambda(F g) : body(std::move(g)) {}
    void run(const Call& call) const override { body(call); }
    F body;
  };
  return std::make_unique<Lambda>(std::move(f));
}

// One request to prepare a kernel: concrete shapes.
class Prepare {
 public:
  explicit Prepare(const regie_op_request& request, const regie_host* host = nullptr);

  const std::string_view op;
  const sdk::Attrs attrs;
  uint64_t scratch_bytes = 0;

  uint32_t operands() const { return request_.operand_count; }
  uint32_t results() const { return request_.result_count; }
  bool has(uint32_t i) const {
    return i < request_.operand_count && request_.operands[i].elem != REGIE_ELEM_UNKNOWN;
  }
  bool wants(uint32_t i) const {
    return i < request_.result_count && request_.results[i].elem != REGIE_ELEM_UNKNOWN;
  }
  const regie_tensor& in(uint32_t i) const;
  const regie_tensor& out(uint32_t i) const;
  Index shape(uint32_t i) const { return sdk::dims_of(in(i)); }
  Index out_shape(uint32_t i) const { return sdk::dims_of(out(i)); }
  int64_t axis(int64_t axis, int64_t rank) const {
    return normal_axis(std::string(op) + ": axis", axis, rank);
  }
  size_t axis_attribute(int64_t fallback) const {  // as Infer's
    return static_cast<size_t>(axis(attrs.integer("axis", fallback), in(0).rank));
  }

  // INVALID_INPUT unless result `i` has just this shape: operands of these sizes do not fit each other.
  void expect_result(uint32_t i, Index shape) const;

  // Calls f with the C++ type of `elem`; UNSUPPORTED, naming the type, if it is not in the list.
  template <class List, class F>
  KernelPtr dispatch(List types, regie_elem elem, F&& f) const {
    KernelPtr kernel;
    if (!ops::dispatch(types, elem, [&]<class T>() { kernel = f.template operator()<T>(); })) no_type(elem);
    return kernel;
  }
  // Bytes of an element of `from`, which results are copied from: they must have its type.
  uint32_t moved_bytes(const regie_tensor& from) const;
  [[noreturn]] void no_type(regie_elem elem) const;
  [[noreturn]] void bad(const std::string& message) const;  // INVALID_INPUT
  [[noreturn]] void unsupported(const std::string& message) const;
  const regie_op_request& request() const { return request_; }
  const regie_host* host() const { return host_; }

 private:
  const regie_op_request& request_;
  const regie_host* host_;
};

struct Op {
  std::string_view name;
  uint32_t flags;  // REGIE_OP_*
  void (*infer)(const Infer&);
  KernelPtr (*prepare)(Prepare&);  // null: the operator has no kernel (it is structural)
};

// The families; each in a file of that name.
std::span<const Op> unary_ops();
std::span<const Op> binary_ops();
std::span<const Op> compare_ops();
std::span<const Op> cast_ops();
std::span<const Op> conv_ops();
std::span<const Op> pool_ops();
std::span<const Op> matmul_ops();
std::span<const Op> fused_attention_ops();
std::span<const Op> norm_ops();
std::span<const Op> reduce_ops();
std::span<const Op> view_ops();
std::span<const Op> data_movement_ops();
std::span<const Op> slice_ops();
std::span<const Op> shape_ops();
std::span<const Op> structural_ops();
std::span<const Op> recurrent_ops();
std::span<const Op> resize_ops();
std::span<const Op> math_ops();
std::span<const Op> integer_ops();
std::span<const Op> layer_norm_ops();
std::span<const Op> index_ops();
std::span<const Op> scatter_ops();
std::span<const Op> block_ops();
std::span<const Op> sampling_ops();
std::span<const Op> einsum_ops();
std::span<const Op> selection_ops();
std::span<const Op> suppression_ops();
std::span<const Op> signal_ops();
std::span<const Op> quantize_ops();
std::span<const Op> attention_ops();
std::span<const Op> loss_ops();
std::span<const Op> linear_attention_ops();
std::span<const Op> deform_conv_ops();
std::span<const Op> random_ops();
std::span<const Op> ngram_ops();
std::span<const Op> string_ops();
std::span<const Op> quantised_ops();
std::span<const Op> pointwise_ops();

const regie_op_kernel_table& kernel_table();  // of this plug-in

std::string print_shape(Index shape);  // "[2, 3]"

}  // namespace regie::ops
