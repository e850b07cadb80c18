// One operator as bytes: its name and its attributes, so that an engine can put them into a kernel blob and a
// device can read them back years later. Header-only, shared by every backend whose kernels name an operator.
//
// Layout, little endian, no padding: "RGOP", u32 version, text operator, u32 count, then each attribute: text
// name, u8 kind (REGIE_ATTR_*), value. A text is u32 size and bytes; a list is u32 count and elements; a
// tensor is u16 element type, u32 rank, i64 dimensions, then text elements for strings or u64 size and bytes
// for the others.
//
// A reader trusts nothing: sizes are checked against what is left before anything is allocated, and every
// violation is Failure(REGIE_CORRUPT). Operators with regions are not covered: `write_op` refuses them.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "regie/plugin.hpp"
#include "regie/type_view.hpp"

namespace regie::sdk {

static_assert(std::endian::native == std::endian::little,
              "blobs are written in the byte order of the machine");

class BlobWriter {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view s) {
    put(static_cast<uint32_t>(s.size()));
    bytes_.append(s);
  }
  void raw(const void* data, size_t size) {
    if (size) bytes_.append(static_cast<const char*>(data), size);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class BlobReader {
 public:
  // `what` names the bytes in messages, e.g. "kernel blob".
  BlobReader(const void* data, uint64_t size, std::string what)
      : p_(static_cast<const char*>(data)), left_(size), what_(std::move(what)) {}
  template <class T>
  T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, raw(sizeof value), sizeof value);
    return value;
  }
  std::string_view text() {
    uint32_t size = get<uint32_t>();
    return {raw(size), size};
  }
  // A u32 count of things of at least `least` bytes each: more than could follow is refused here.
  uint32_t count(size_t least) {
    uint32_t n = get<uint32_t>();
    if (n > left_ / least) corrupt("a count exceeds what is there");
    return n;
  }
  const char* raw(uint64_t size) {
    if (size > left_) corrupt("it ends too early");
    const char* at = p_;
    p_ += size;
    left_ -= size;
    return at;
  }
  uint64_t left() const { return left_; }
  void finish() {
    if (left_) corrupt("bytes follow the end");
  }
  [[noreturn]] void corrupt(std::string_view why) const {
    throw Failure(REGIE_CORRUPT, what_ + " is damaged: " + std::string(why));
  }

 private:
  const char* p_;
  uint64_t left_;
  std::string what_;
};

// An operator with attributes that owns their bytes; read from a blob. Moves keep what `attrs` points to.
class OpBlob {
 public:
  OpBlob() = default;
  OpBlob(OpBlob&&) = default;
  OpBlob& operator=(OpBlob&&) = default;

  const std::string& op() const { return op_; }
  const std::vector<regie_attr>& attrs() const { return attrs_; }

 private:
  friend OpBlob read_op(BlobReader& in);
  template <class T>
  T* own(size_t count) {
    static_assert(std::is_trivial_v<T> && alignof(T) <= alignof(std::max_align_t));
    storage_.push_back(
        std::make_unique<std::max_align_t[]>(count * sizeof(T) / sizeof(std::max_align_t) + 1));
    return reinterpret_cast<T*>(storage_.back().get());
  }
  regie_str own_text(std::string_view s) {
    char* copy = own<char>(s.size() + 1);
    std::memcpy(copy, s.data(), s.size());
    return {copy, s.size()};
  }
  template <class T>
  const T* own_list(BlobReader& in, uint32_t count) {
    T* copy = own<T>(count);
    for (uint32_t i = 0; i < count; ++i) copy[i] = in.get<T>();
    return copy;
  }
  const regie_str* own_texts(BlobReader& in, uint32_t count) {
    regie_str* copy = own<regie_str>(count);
    for (uint32_t i = 0; i < count; ++i) copy[i] = own_text(in.text());
    return copy;
  }
  regie_tensor* own_tensor(BlobReader& in);

  std::string op_;
  std::vector<regie_attr> attrs_;
  std::vector<std::unique_ptr<std::max_align_t[]>> storage_;
};

inline regie_tensor* OpBlob::own_tensor(BlobReader& in) {
  regie_tensor* t = own<regie_tensor>(1);
  *t = {};
  t->elem = in.get<uint16_t>();
  uint32_t rank = in.count(sizeof(int64_t));
  t->rank = static_cast<int32_t>(rank);
  t->dims = own_list<int64_t>(in, rank);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    if (t->dims[i] < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(t->dims[i]), &elements))
      in.corrupt("a tensor has impossible dimensions");
  }
  if (t->elem == REGIE_STRING) {
    if (elements > in.left() / sizeof(uint32_t)) in.corrupt("a tensor exceeds what is there");
    t->data = const_cast<regie_str*>(own_texts(in, static_cast<uint32_t>(elements)));
    t->bytes = elements * sizeof(regie_str);
    return t;
  }
  uint32_t bits = elem_bits(t->elem);
  t->bytes = in.get<uint64_t>();
  if (!bits || elements > UINT64_MAX / 128 || t->bytes != (elements * bits + 7) / 8)
    in.corrupt("a tensor's size does not match its dimensions");
  const char* from = in.raw(t->bytes);
  char* copy = own<char>(t->bytes);
  if (t->bytes) std::memcpy(copy, from, t->bytes);
  t->data = copy;
  return t;
}

inline void write_op(BlobWriter& out, std::string_view op, const regie_attr* attrs, uint32_t attr_count,
                     uint32_t region_count = 0) {
  if (region_count)
    throw Failure(REGIE_UNSUPPORTED, std::string(op) + " has regions, which this kernel format cannot hold");
  out.raw("RGOP", 4);
  out.put<uint32_t>(1);
  out.text(op);
  out.put(attr_count);
  for (uint32_t i = 0; i < attr_count; ++i) {
    const regie_attr& a = attrs[i];
    out.text(sv(a.name));
    out.put(static_cast<uint8_t>(a.kind));
    switch (a.kind) {
      case REGIE_ATTR_INT:
        out.put(a.v.i);
        break;
      case REGIE_ATTR_FLOAT:
        out.put(a.v.f);
        break;
      case REGIE_ATTR_STRING:
        out.text(sv(a.v.s));
        break;
      case REGIE_ATTR_INTS:
        out.put(a.count);
        out.raw(a.v.ints, a.count * sizeof(int64_t));
        break;
      case REGIE_ATTR_FLOATS:
        out.put(a.count);
        out.raw(a.v.floats, a.count * sizeof(double));
        break;
      case REGIE_ATTR_STRINGS:
        out.put(a.count);
        for (uint32_t k = 0; k < a.count; ++k) out.text(sv(a.v.strs[k]));
        break;
      case REGIE_ATTR_TENSOR: {
        const regie_tensor& t = *a.v.tensor;
        if (t.strides)
          throw Failure(REGIE_UNSUPPORTED, "attribute '" + std::string(sv(a.name)) + "' is a strided tensor");
        out.put(t.elem);
        out.put(static_cast<uint32_t>(t.rank));
        out.raw(t.dims, static_cast<size_t>(t.rank) * sizeof(int64_t));
        if (t.elem == REGIE_STRING) {
          for (int64_t k = 0; k < count_of(t); ++k) out.text(sv(static_cast<const regie_str*>(t.data)[k]));
        } else {
          out.put(t.bytes);
          out.raw(t.data, t.bytes);
        }
        break;
      }
      default:
        throw Failure(REGIE_INTERNAL, "attribute '" + std::string(sv(a.name)) + "' has an unknown kind");
    }
  }
}

inline OpBlob read_op(BlobReader& in) {
  OpBlob blob;
  if (std::memcmp(in.raw(4), "RGOP", 4) != 0) in.corrupt("the operator's mark is missing");
  if (in.get<uint32_t>() != 1) in.corrupt("its operator was written by another version");
  blob.op_ = in.text();
  uint32_t count = in.count(5);
  blob.attrs_.resize(count);
  for (regie_attr& a : blob.attrs_) {
    a.name = blob.own_text(in.text());
    a.kind = in.get<uint8_t>();
    a.count = 1;
    switch (a.kind) {
      case REGIE_ATTR_INT:
        a.v.i = in.get<int64_t>();
        break;
      case REGIE_ATTR_FLOAT:
        a.v.f = in.get<double>();
        break;
      case REGIE_ATTR_STRING:
        a.v.s = blob.own_text(in.text());
        break;
      case REGIE_ATTR_INTS:
        a.count = in.count(sizeof(int64_t));
        a.v.ints = blob.own_list<int64_t>(in, a.count);
        break;
      case REGIE_ATTR_FLOATS:
        a.count = in.count(sizeof(double));
        a.v.floats = blob.own_list<double>(in, a.count);
        break;
      case REGIE_ATTR_STRINGS:
        a.count = in.count(sizeof(uint32_t));
        a.v.strs = blob.own_texts(in, a.count);
        break;
      case REGIE_ATTR_TENSOR:
        a.v.tensor = blob.own_tensor(in);
        break;
      default:
        in.corrupt("an attribute has an unknown kind");
    }
  }
  return blob;
}

}  // namespace regie::sdk
