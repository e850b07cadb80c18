#include "base/elem.h"

#include <unistd.h>

#include <cassert>
#include <cstring>
#include <mutex>
#include <new>

#include "base/hash.h"

namespace regie {

namespace {

struct ElemInfo {
  std::string_view name;
  uint32_t bits;
};

// Indexed by regie_elem.
constexpr ElemInfo kElems[] = {
    {"?", 0},          {"f32", 32},   {"u8", 8},         {"i8", 8},     {"u16", 16},  {"i16", 16},
    {"i32", 32},       {"i64", 64},   {"string", 0},     {"bool", 8},   {"f16", 16},  {"f64", 64},
    {"u32", 32},       {"u64", 64},   {"c64", 64},       {"c128", 128}, {"bf16", 16}, {"f8e4m3fn", 8},
    {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8}, {"u4", 4},     {"i4", 4},    {"f4e2m1", 4},
    {"f8e8m0", 8},     {"u2", 2},     {"i2", 2},
};
constexpr size_t kElemCount = sizeof kElems / sizeof kElems[0];
static_assert(kElemCount == REGIE_I2 + 1);

constexpr std::align_val_t kAlignment{64};

struct FreeAligned {
  void operator()(std::byte* p) const { ::operator delete(p, kAlignment); }
};
using Bytes = std::unique_ptr<std::byte, FreeAligned>;

// At least one line of cache, so that the data of an empty tensor is an address too. NULL if there is no
// memory; nor is there for more than the computer has, which an overcommitting system would grant, to end the
// process when it is used.
Bytes allocate_bytes(uint64_t size) {
  const uint64_t wanted = size == 0 ? 64 : size;
  if (wanted > physical_bytes()) return nullptr;
  return Bytes(static_cast<std::byte*>(::operator new(wanted, kAlignment, std::nothrow)));
}

// Copies elements of `width` bytes that lie at `strides` to row-major order.
void gather(std::byte* to, const std::byte* from, size_t width, std::span<const int64_t> dims,
            const int64_t* strides) {
  std::vector<int64_t> at(dims.size(), 0);
  const int64_t count = element_count(dims);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * width, from + offset * static_cast<int64_t>(width), width);
    for (size_t axis = dims.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < dims[axis]) break;
      offset -= strides[axis] * dims[axis];
      at[axis] = 0;
    }
  }
}

Status no_memory(std::string_view what, regie_elem elem, std::span<const int64_t> dims) {
  std::string text = std::string(what) + ", " + std::string(elem_name(elem)) + "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return Status::error(REGIE_OUT_OF_MEMORY,
                       text + "], takes " +
                           std::to_string(elem_bytes(elem, static_cast<uint64_t>(element_count(dims)))) +
                           " bytes, which this computer does not have free");
}

}  // namespace

uint64_t physical_bytes() {
  static const auto bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

std::string_view elem_name(regie_elem elem) { return kElems[elem < kElemCount ? elem : 0].name; }

std::optional<regie_elem> elem_from_name(std::string_view name) {
  for (size_t i = 1; i < kElemCount; ++i)
    if (kElems[i].name == name) return static_cast<regie_elem>(i);
  return std::nullopt;
}

uint32_t elem_bits(regie_elem elem) { return elem < kElemCount ? kElems[elem].bits : 0; }

uint64_t elem_bytes(regie_elem elem, uint64_t count) {
  const uint32_t bits = elem_bits(elem);
  if (bits != 0 && bits < 8) return count / (8 / bits) + (count % (8 / bits) != 0);
  const uint64_t width = elem == REGIE_STRING ? sizeof(regie_str) : bits / 8;
  uint64_t bytes;
  return __builtin_mul_overflow(width, count, &bytes) ? UINT64_MAX : bytes;
}

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool saturated = false;
  for (int64_t d : dims) {
    assert(d >= 0);
    if (d == 0) return 0;
    saturated |= __builtin_mul_overflow(count, d, &count);
    if (saturated) count = INT64_MAX;
  }
  return count;
}

struct Tensor::Rep {
  regie_tensor view{};
  std::vector<int64_t> dims;
  Bytes bytes;
  std::shared_ptr<const void> owner;
  std::once_flag digest_once;
  std::string digest;

  Rep(regie_elem elem, std::span<const int64_t> d) : dims(d.begin(), d.end()) {
    view.elem = elem;
    view.rank = static_cast<int32_t>(dims.size());
    view.dims = dims.data();
    view.bytes = elem_bytes(elem, static_cast<uint64_t>(element_count(dims)));
  }
};

Result<Tensor> Tensor::try_zeros(regie_elem elem, std::span<const int64_t> dims, std::string_view what) {
  try {
    return zeros(elem, dims);
  } catch (const std::bad_alloc&) {
    return no_memory(what, elem, dims);
  }
}

Result<Tensor> Tensor::try_copy(const regie_tensor& from, std::string_view what) {
  try {
    return copy(from);
  } catch (const std::bad_alloc&) {
    return no_memory(what, from.elem, {from.dims, static_cast<size_t>(from.rank)});
  }
}

Tensor Tensor::zeros(regie_elem elem, std::span<const int64_t> dims) {
  assert(elem != REGIE_STRING);
  Tensor t;
  auto rep = std::make_shared<Rep>(elem, dims);
  rep->bytes = allocate_bytes(rep->view.bytes);
  if (!rep->bytes) throw std::bad_alloc();
  std::memset(rep->bytes.get(), 0, rep->view.bytes);
  rep->view.data = rep->bytes.get();
  t.rep_ = std::move(rep);
  return t;
}

Tensor Tensor::copy(const regie_tensor& from) {
  const std::span<const int64_t> dims(from.dims, static_cast<size_t>(from.rank));
  Tensor t;
  auto rep = std::make_shared<Rep>(from.elem, dims);
  const uint64_t own = rep->view.bytes;
  const auto count = static_cast<size_t>(element_count(dims));
  if (count != 0 && from.data == nullptr) return t;
  assert(from.strides == nullptr || from.elem == REGIE_STRING || elem_bits(from.elem) >= 8);
  uint64_t total = own;
  std::vector<regie_str> texts;
  if (from.elem == REGIE_STRING && count != 0) {
    texts.resize(count);
    if (from.strides)
      gather(reinterpret_cast<std::byte*>(texts.data()), static_cast<const std::byte*>(from.data),
             sizeof(regie_str), dims, from.strides);
    else
      std::memcpy(texts.data(), from.data, own);
    for (const regie_str& s : texts) total += s.size;
  }
  rep->bytes = allocate_bytes(total);
  if (!rep->bytes) throw std::bad_alloc();
  std::byte* data = rep->bytes.get();
  if (from.elem == REGIE_STRING) {
    std::byte* text = data + own;
    for (regie_str& s : texts) {
      if (s.size != 0) std::memcpy(text, s.data, s.size);
      s.data = reinterpret_cast<const char*>(text);
      text += s.size;
    }
    if (own != 0) std::memcpy(data, texts.data(), own);
  } else if (from.strides) {
    gather(data, static_cast<const std::byte*>(from.data), elem_bits(from.elem) / 8, dims, from.strides);
  } else if (own != 0) {
    std::memcpy(data, from.data, own);
  }
  rep->view.data = data;
  t.rep_ = std::move(rep);
  return t;
}

Tensor Tensor::borrow(regie_elem elem, std::span<const int64_t> dims, const void* data,
                      std::shared_ptr<const void> owner) {
  Tensor t;
  t.rep_ = std::make_shared<Rep>(elem, dims);
  t.rep_->view.data = const_cast<void*>(data);
  t.rep_->owner = std::move(owner);
  return t;
}

const regie_tensor& Tensor::view() const {
  static constexpr regie_tensor kEmpty{};
  return rep_ ? rep_->view : kEmpty;
}

void* Tensor::mutable_data() {
  assert(rep_ && rep_->bytes && "only a tensor of zeros() may be written");
  return rep_->bytes.get();
}

const std::string& Tensor::digest() const {
  static const std::string kEmpty;
  if (!rep_) return kEmpty;
  Rep& r = *rep_;
  std::call_once(r.digest_once, [&r] {
    Hasher h;
    h.number(r.view.elem).number(r.dims.size());
    for (int64_t d : r.dims) h.number(static_cast<uint64_t>(d));
    if (r.view.elem == REGIE_STRING) {
      const auto* texts = static_cast<const regie_str*>(r.view.data);
      const auto count = static_cast<size_t>(element_count(r.dims));
      for (size_t i = 0; i < count; ++i) h.text(std::string_view(texts[i].data, texts[i].size));
    } else {
      h.bytes(r.view.data, r.view.bytes);
    }
    r.digest = h.hex();
  });
  return r.digest;
}

}  // namespace regie
