// NumPy arrays as tensors of the embedding API and back. NumPy is used through Python's buffer protocol and
// three of its own functions, so this module is not bound to a version of NumPy's C interface.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "regie/api/regie.hpp"

namespace regie::python {

namespace nb = nanobind;

// The NumPy dtype of an element type; those that NumPy lacks come from ml_dtypes.
// Strings are objects of type str. Raises TypeError where there is none.
nb::object dtype_of(regie_elem elem);
std::string name_of(regie_elem elem);

// An argument of a run: a view of the array's bytes where they are dense and in row-major order, else of a
// copy. Keeps the array alive. Raises TypeError if the element type is another than the port's, with both
// names: nothing is converted silently.
class Argument {
 public:
  Argument(const regie_port& port, nb::handle value);
  Argument(Argument&&) = default;
  const regie_tensor& tensor() const { return tensor_; }

 private:
  struct Buffer : Py_buffer {
    ~Buffer() { PyBuffer_Release(this); }
  };
  void describe(const regie_port& port);
  void read_strings();

  nb::object array_;
  std::unique_ptr<Buffer> buffer_;
  std::vector<int64_t> dims_;
  std::vector<uint8_t> packed_;   // of types below a byte
  std::vector<regie_str> texts_;  // of strings; their characters belong to `strings_`
  nb::object strings_;
  regie_tensor tensor_{};
};

// A new array of the tensor's type and shape with a copy of its elements.
nb::object to_array(const regie_tensor& tensor);
// A new array without content, and the tensor that is its bytes. For types whose arrays have Regie's bytes:
// neither packed ones nor strings.
nb::object new_array(regie_elem elem, int32_t rank, const int64_t* dims, regie_tensor* tensor);
bool has_own_bytes(regie_elem elem);

}  // namespace regie::python
