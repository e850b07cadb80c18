#include "tensors.h"

#include <array>
#include <cstring>

namespace regie::python {

namespace {

struct Kind {
  regie_elem elem;
  const char* name;
  uint8_t bits;
  bool numpy;  // else ml_dtypes has it, and its arrays have no buffer: their bytes are seen as unsigned
               // integers
};

constexpr Kind kKinds[] = {
    {REGIE_F32, "float32", 32, true},
    {REGIE_U8, "uint8", 8, true},
    {REGIE_I8, "int8", 8, true},
    {REGIE_U16, "uint16", 16, true},
    {REGIE_I16, "int16", 16, true},
    {REGIE_I32, "int32", 32, true},
    {REGIE_I64, "int64", 64, true},
    {REGIE_BOOL, "bool", 8, true},
    {REGIE_F16, "float16", 16, true},
    {REGIE_F64, "float64", 64, true},
    {REGIE_U32, "uint32", 32, true},
    {REGIE_U64, "uint64", 64, true},
    {REGIE_C64, "complex64", 64, true},
    {REGIE_C128, "complex128", 128, true},
    {REGIE_BF16, "bfloat16", 16, false},
    {REGIE_F8E4M3FN, "float8_e4m3fn", 8, false},
    {REGIE_F8E4M3FNUZ, "float8_e4m3fnuz", 8, false},
    {REGIE_F8E5M2, "float8_e5m2", 8, false},
    {REGIE_F8E5M2FNUZ, "float8_e5m2fnuz", 8, false},
    {REGIE_U4, "uint4", 4, false},
    {REGIE_I4, "int4", 4, false},
    {REGIE_F4E2M1, "float4_e2m1fn", 4, false},
    {REGIE_F8E8M0, "float8_e8m0fnu", 8, false},
    {REGIE_U2, "uint2", 2, false},
    {REGIE_I2, "int2", 2, false},
};

const Kind* find_kind(regie_elem elem) {
  for (const Kind& k : kKinds)
    if (k.elem == elem) return &k;
  return nullptr;
}

const Kind& kind_of(regie_elem elem) {
  if (const Kind* k = find_kind(elem)) return *k;
  throw nb::type_error(("Regie's element type " + std::to_string(elem) + " has no NumPy dtype").c_str());
}

// Objects that live as long as the interpreter: never freed, since the interpreter may be gone when statics
// are.
struct Known {
  nb::object empty = nb::module_::import_("numpy").attr("empty");
  nb::object asarray = nb::module_::import_("numpy").attr("asarray");
  nb::object ascontiguousarray = nb::module_::import_("numpy").attr("ascontiguousarray");
  nb::object object = nb::module_::import_("numpy").attr("dtype")("O");
  std::array<nb::object, 32> dtypes;
};

Known& known() {
  static Known* k = new Known;
  return *k;
}

// The bytes of an array whose type has no buffer of its own.
nb::object as_bytes(const Kind& kind, nb::handle array) {
  return array.attr("view")(dtype_of(kind.bits == 16 ? REGIE_U16 : REGIE_U8));
}

unsigned mask_of(const Kind& kind) { return (1u << kind.bits) - 1; }

uint64_t count_of(int32_t rank, const int64_t* dims) {
  uint64_t n = 1;
  for (int32_t i = 0; i < rank; ++i) n *= static_cast<uint64_t>(dims[i]);
  return n;
}

nb::object empty_array(regie_elem elem, int32_t rank, const int64_t* dims) {
  nb::object shape = nb::steal(PyTuple_New(rank));
  for (int32_t i = 0; i < rank; ++i) PyTuple_SET_ITEM(shape.ptr(), i, PyLong_FromLongLong(dims[i]));
  return known().empty(shape, dtype_of(elem));
}

Py_buffer buffer_of(const Kind& kind, nb::handle array, int flags) {
  nb::object seen = kind.numpy ? nb::borrow(array) : as_bytes(kind, array);
  Py_buffer buffer;
  if (PyObject_GetBuffer(seen.ptr(), &buffer, flags) != 0) throw nb::python_error();
  return buffer;
}

}  // namespace

nb::object dtype_of(regie_elem elem) {
  if (elem == REGIE_STRING) return known().object;
  const Kind& kind = kind_of(elem);
  nb::object& dtype = known().dtypes[elem];
  if (!dtype.is_valid()) {
    nb::module_ numpy = nb::module_::import_("numpy");
    if (kind.numpy) {
      dtype = numpy.attr("dtype")(kind.name);
    } else {
      try {
        dtype = numpy.attr("dtype")(nb::module_::import_("ml_dtypes").attr(kind.name));
      } catch (nb::python_error& e) {
        if (!e.matches(PyExc_ImportError) && !e.matches(PyExc_AttributeError)) throw;
        throw nb::type_error((std::string("NumPy has no dtype ") + kind.name +
                              ": install ml_dtypes, which has it (pip install ml_dtypes)")
                                 .c_str());
      }
    }
  }
  return dtype;
}

std::string name_of(regie_elem elem) {
  if (elem == REGIE_STRING) return "string";
  const Kind* k = find_kind(elem);
  return k ? k->name : "unknown";
}

bool has_own_bytes(regie_elem elem) { return elem != REGIE_STRING && kind_of(elem).bits >= 8; }

void Argument::describe(const regie_port& port) {
  const auto rank = nb::cast<int32_t>(array_.attr("ndim"));
  nb::object shape = array_.attr("shape");
  for (int32_t i = 0; i < rank; ++i) dims_.push_back(nb::cast<int64_t>(shape[i]));
  tensor_.elem = port.elem;
  tensor_.rank = rank;
  tensor_.dims = dims_.data();
}

// The elements as a list of str or bytes, and where the characters of each lie.
void Argument::read_strings() {
  strings_ = array_.attr("ravel")().attr("tolist")();
  if (!PyList_Check(strings_.ptr())) throw nb::type_error("strings: the array gives no list");
  const Py_ssize_t count = PyList_GET_SIZE(strings_.ptr());
  texts_.resize(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* s = PyList_GET_ITEM(strings_.ptr(), i);
    regie_str& text = texts_[static_cast<size_t>(i)];
    Py_ssize_t size = 0;
    if (PyBytes_Check(s)) {
      text.data = PyBytes_AS_STRING(s);
      size = PyBytes_GET_SIZE(s);
    } else if (!PyUnicode_Check(s) || !(text.data = PyUnicode_AsUTF8AndSize(s, &size))) {
      PyErr_Clear();
      throw nb::type_error(("element " + std::to_string(i) + " of an array of strings is no text").c_str());
    }
    text.size = static_cast<size_t>(size);
  }
  tensor_.data = texts_.data();
  tensor_.bytes = texts_.size() * sizeof(regie_str);
}

Argument::Argument(const regie_port& port, nb::handle value) {
  array_ = known().asarray(value);
  nb::object dtype = array_.attr("dtype");
  if (port.elem == REGIE_STRING) {
    const auto letter = nb::cast<std::string>(dtype.attr("kind"));
    if (letter != "U" && letter != "S" && letter != "O")
      throw nb::type_error(("input '" + std::string(port.name) + "' is of strings, not " +
                            nb::cast<std::string>(nb::str(dtype)))
                               .c_str());
    describe(port);
    read_strings();
    return;
  }
  const Kind& kind = kind_of(port.elem);
  if (!dtype.is(dtype_of(kind.elem)) && !dtype.equal(dtype_of(kind.elem)))
    throw nb::type_error(("input '" + std::string(port.name) + "' is " + kind.name + ", not " +
                          nb::cast<std::string>(nb::str(dtype)) + "; convert it: array.astype(\"" +
                          kind.name + "\")")
                             .c_str());
  if (!nb::cast<bool>(array_.attr("flags").attr("c_contiguous"))) array_ = known().ascontiguousarray(array_);
  describe(port);
  buffer_.reset(new Buffer(buffer_of(kind, array_, PyBUF_C_CONTIGUOUS)));
  tensor_.data = buffer_->buf;
  tensor_.bytes = static_cast<uint64_t>(buffer_->len);
  if (kind.bits < 8) {  // NumPy has one a byte, Regie several
    const auto* from = static_cast<const uint8_t*>(buffer_->buf);
    const size_t each = 8u / kind.bits, count = static_cast<size_t>(buffer_->len);
    packed_.resize((count + each - 1) / each);
    for (size_t i = 0; i < count; ++i)
      packed_[i / each] |= static_cast<uint8_t>((from[i] & mask_of(kind)) << (i % each * kind.bits));
    tensor_.data = packed_.data();
    tensor_.bytes = packed_.size();
  }
}

nb::object new_array(regie_elem elem, int32_t rank, const int64_t* dims, regie_tensor* tensor) {
  const Kind& kind = kind_of(elem);
  nb::object array = empty_array(elem, rank, dims);
  Py_buffer buffer = buffer_of(kind, array, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
  *tensor = regie_tensor{};
  tensor->elem = elem;
  tensor->data = buffer.buf;
  tensor->bytes = static_cast<uint64_t>(buffer.len);
  PyBuffer_Release(&buffer);  // the array is new and ours: nobody moves its bytes
  return array;
}

nb::object to_array(const regie_tensor& from) {
  if (from.elem == REGIE_STRING) {
    nb::list list;
    const auto* texts = static_cast<const regie_str*>(from.data);
    const uint64_t n = count_of(from.rank, from.dims);
    for (uint64_t i = 0; i < n; ++i) {
      PyObject* text = PyUnicode_DecodeUTF8(texts[i].data, static_cast<Py_ssize_t>(texts[i].size), "replace");
      if (!text) throw nb::python_error();
      list.append(nb::steal(text));
    }
    nb::object array = empty_array(from.elem, from.rank, from.dims);
    array.attr("reshape")(-1)[nb::slice(nb::none(), nb::none(), nb::none())] = list;
    return array;
  }
  const Kind& kind = kind_of(from.elem);
  nb::object array = empty_array(from.elem, from.rank, from.dims);
  Py_buffer buffer = buffer_of(kind, array, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
  auto* to = static_cast<uint8_t*>(buffer.buf);
  if (kind.bits < 8) {
    const auto* packed = static_cast<const uint8_t*>(from.data);
    const uint64_t n = count_of(from.rank, from.dims), each = 8u / kind.bits;
    const bool sign = kind.elem == REGIE_I4 || kind.elem == REGIE_I2;
    for (uint64_t i = 0; i < n; ++i) {
      const unsigned bits = packed[i / each] >> (i % each * kind.bits) & mask_of(kind);
      // ml_dtypes keeps negative integers sign-extended in their byte.
      to[i] = static_cast<uint8_t>(sign && bits > mask_of(kind) / 2 ? bits | ~mask_of(kind) : bits);
    }
  } else if (buffer.len > 0) {
    std::memcpy(to, from.data, static_cast<size_t>(buffer.len));
  }
  PyBuffer_Release(&buffer);
  return array;
}

}  // namespace regie::python
