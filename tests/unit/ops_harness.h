// Calls the standard operators' plug-in as a host would, without the kernel's plug-in host: the library is
// opened, its tables found, and nodes made of plain tensors run through shape function and kernel. Buffers
// have exactly the size that the interface promises, so that AddressSanitizer sees every access beyond.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/elem.h"
#include "ir/graph.h"
#include "regie/c/op_kernel.h"
#include "regie/c/op_shape.h"
#include "support/alloc_counter.h"

namespace regie::ops_test {

struct Failed {
  regie_status code = REGIE_OK;
  std::string message;
  bool ok() const { return code == REGIE_OK; }
};

// The plug-in's tables, with the position of each operator.
struct Plugin {
  const regie_op_shape_table* shapes = nullptr;
  const regie_op_kernel_table* kernels = nullptr;
  std::map<std::string, uint32_t> shape_index, kernel_index;
  static const Plugin& get();  // aborts with a message if the plug-in cannot be opened
};

struct Operand {
  bool present = false;
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  std::vector<regie_dim> dims;
  Tensor data;  // of constants
  std::optional<std::vector<regie_dim>> content;

  static Operand absent() { return {}; }
  static Operand of(regie_elem elem, std::vector<regie_dim> dims) {
    return {true, elem, std::move(dims), {}, {}};
  }
  static Operand constant(Tensor tensor);
  static Operand numbers(std::vector<int64_t> values);          // a constant list of i64
  static Operand with_content(std::vector<regie_dim> content);  // a computed list of i64
};

struct Result {
  bool set = false;
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  std::vector<regie_dim> dims;
  std::optional<std::vector<regie_dim>> content;
};

struct Inferred : Failed {
  std::vector<Result> results;
};

struct Region {
  std::vector<Operand> args, results;
};

using Attrs = std::vector<AttrValue>;  // in any order

inline AttrValue whole(const char* name, int64_t v) { return AttrValue::integer(name, v); }
inline AttrValue list(const char* name, std::vector<int64_t> v) {
  return AttrValue::integers(name, std::move(v));
}
inline Operand f32(std::vector<regie_dim> dims) { return Operand::of(REGIE_F32, std::move(dims)); }

Inferred infer(const std::string& op, const Attrs& attrs, const std::vector<Operand>& operands,
               uint32_t results, DimTable& dims, const std::vector<Region>& regions = {});

struct Ran : Failed {
  std::vector<Tensor> results;
};

struct RunOptions {
  std::vector<bool> constant;             // by operand: prepare sees its data
  std::vector<bool> omitted;              // by result
  test::AllocCounter* counter = nullptr;  // counts while the kernel runs
  std::optional<uint32_t> in_place;       // result 0 lies on this operand's bytes
};

// `types`: what infer gave. Operands without a tensor are absent.
Ran run(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& operands,
        const std::vector<Result>& types, const RunOptions& options = {});

// infer with concrete shapes (constants where `options` says so), then run.
Ran evaluate(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& operands,
             uint32_t results = 1);

template <class T>
Tensor tensor(regie_elem elem, std::vector<int64_t> dims, const std::vector<T>& values) {
  Tensor t = Tensor::zeros(elem, dims);
  if (static_cast<int64_t>(values.size()) != t.count()) std::abort();
  std::copy(values.begin(), values.end(), static_cast<T*>(t.mutable_data()));
  return t;
}
inline Tensor floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return tensor(REGIE_F32, std::move(dims), values);
}
inline Tensor integers(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return tensor(REGIE_I64, std::move(dims), values);
}

// A regie_host over DimTable that keeps failures of the calling thread.
const regie_host* test_host();
std::string last_failure();

}  // namespace regie::ops_test
