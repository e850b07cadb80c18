#include "tensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "regie/half.hpp"

namespace regie::onnx {

namespace {

struct Element {
  const char* name;
  uint32_t bits;
};

// By element number (view.h).
constexpr Element kElements[] = {
    {"?", 0},          {"f32", 32},   {"u8", 8},         {"i8", 8},     {"u16", 16},  {"i16", 16},
    {"i32", 32},       {"i64", 64},   {"string", 0},     {"bool", 8},   {"f16", 16},  {"f64", 64},
    {"u32", 32},       {"u64", 64},   {"c64", 64},       {"c128", 128}, {"bf16", 16}, {"f8e4m3fn", 8},
    {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8}, {"u4", 4},     {"i4", 4},    {"f4e2m1", 4},
    {"f8e8m0", 8},     {"u2", 2},     {"i2", 2}};
constexpr int kElementCount = static_cast<int>(std::size(kElements));

uint64_t count_elements(const Context& context, const std::vector<int64_t>& dims, const std::string& what) {
  uint64_t count = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) context.invalid(what + " has the negative dimension " + std::to_string(d));
    if (d == 0) empty = true;
  }
  if (empty) return 0;
  for (int64_t d : dims)
    // 2^57 elements of 128 bits would overflow the count of bytes.
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(d), &count) || count > (uint64_t{1} << 57))
      context.invalid(what + " has more elements than can be addressed");
  return count;
}

uint64_t byte_count(regie_elem elem, uint64_t count) { return (count * kElements[elem].bits + 7) / 8; }

[[noreturn]] void wrong_size(const Context& context, const TensorData& t, const std::string& what,
                             uint64_t has) {
  context.invalid(what + " of " + shape_text(t.elem, t.dims) + " needs " + std::to_string(t.bytes) +
                  " bytes, has " + std::to_string(has));
}

uint64_t number_of(const Context& context, const wire::Entry& entry, const std::string& what) {
  const std::string& text = entry.value();
  uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n > INT64_MAX)
    context.invalid(what + ": external data has " + entry.key() + " " + quoted(text) +
                    ", which is not a number of bytes");
  return n;
}

void point_to_external(const Context& context, const wire::Tensor& tensor, const std::string& what,
                       TensorData* out) {
  const std::string* location = nullptr;
  uint64_t offset = 0, length = out->bytes;
  for (const wire::Entry& entry : tensor.external_data()) {
    if (entry.key() == "location") location = &entry.value();
    if (entry.key() == "offset") offset = number_of(context, entry, what);
    if (entry.key() == "length") length = number_of(context, entry, what);
  }
  if (!location || location->empty()) context.invalid(what + " has external data without a location");
  if (length != out->bytes)
    context.invalid(what + " of " + shape_text(out->elem, out->dims) + " needs " +
                    std::to_string(out->bytes) + " bytes, its entry in " + quoted(*location) + " has " +
                    std::to_string(length));
  if (out->bytes == 0) return;
  uint64_t size = 0;
  Context::check(context.import->source->external(context.import->source, sdk::str(*location), offset, length,
                                                  &out->data, &size));
  if (size != out->bytes) wrong_size(context, *out, what, size);
}

// Which repeated field holds the elements of a type.
enum class Store { kInt32, kInt64, kUint64, kFloat, kDouble, kString };

Store store_of(regie_elem elem) {
  switch (elem) {
    case REGIE_F32:
    case REGIE_C64:
      return Store::kFloat;
    case REGIE_F64:
    case REGIE_C128:
      return Store::kDouble;
    case REGIE_I64:
      return Store::kInt64;
    case REGIE_U32:
    case REGIE_U64:
      return Store::kUint64;
    case REGIE_STRING:
      return Store::kString;
    default:
      return Store::kInt32;
  }
}

// The inclusive range of what an entry of int32_data may be for a type.
std::pair<int32_t, int32_t> entry_range(regie_elem elem) {
  switch (elem) {
    case REGIE_BOOL:
      return {0, 1};
    case REGIE_I8:
      return {-128, 127};
    case REGIE_I16:
      return {-32768, 32767};
    case REGIE_I32:
      return {INT32_MIN, INT32_MAX};
    case REGIE_U16:
    case REGIE_F16:
    case REGIE_BF16:
      return {0, 65535};
    case REGIE_I2:
    case REGIE_I4:
      return {-128, 255};  // several elements; writers differ in the sign of the byte
    default:
      return {0, 255};
  }
}

template <class Field>
void copy_field(const Context& context, const Field& field, const std::string& what, uint64_t entries,
                TensorData* out) {
  using T = typename std::decay_t<decltype(field)>::value_type;
  if (static_cast<uint64_t>(field.size()) != entries)
    wrong_size(context, *out, what,
               static_cast<uint64_t>(field.size()) * (entries ? out->bytes / entries : sizeof(T)));
  void* to = out->allocate(out->bytes);
  if (entries) std::memcpy(to, field.data(), entries * sizeof(T));
}

void decode(const Context& context, const wire::Tensor& tensor, const std::string& what, uint64_t count,
            TensorData* out) {
  switch (store_of(out->elem)) {
    case Store::kFloat:
      return copy_field(context, tensor.float_data(), what, out->elem == REGIE_C64 ? 2 * count : count, out);
    case Store::kDouble:
      return copy_field(context, tensor.double_data(), what, out->elem == REGIE_C128 ? 2 * count : count,
                        out);
    case Store::kInt64:
      return copy_field(context, tensor.int64_data(), what, count, out);
    case Store::kUint64: {
      if (out->elem == REGIE_U64) return copy_field(context, tensor.uint64_data(), what, count, out);
      const auto& from = tensor.uint64_data();
      if (static_cast<uint64_t>(from.size()) != count)
        wrong_size(context, *out, what, 4 * static_cast<uint64_t>(from.size()));
      auto* to = static_cast<uint32_t*>(out->allocate(out->bytes));
      for (uint64_t v : from) {
        if (v > UINT32_MAX) context.invalid(what + " of u32 has the element " + std::to_string(v));
        *to++ = static_cast<uint32_t>(v);
      }
      return;
    }
    case Store::kString: {
      if (static_cast<uint64_t>(tensor.string_data_size()) != count)
        context.invalid(what + " of " + shape_text(out->elem, out->dims) + " needs " + std::to_string(count) +
                        " strings, has " + std::to_string(tensor.string_data_size()));
      for (const std::string& s : tensor.string_data()) out->strings.push_back(sdk::str(s));
      out->data = out->strings.data();
      out->bytes = out->strings.size() * sizeof(regie_str);
      return;
    }
    case Store::kInt32:
      break;
  }
  const auto& from = tensor.int32_data();
  const uint32_t bits = kElements[out->elem].bits;
  const size_t size = std::max(bits / 8, 1u);  // of an entry: packed types have a byte of elements in each
  const uint64_t entries = bits < 8 ? out->bytes : count;
  if (static_cast<uint64_t>(from.size()) != entries)
    wrong_size(context, *out, what, static_cast<uint64_t>(from.size()) * size);
  auto [low, high] = entry_range(out->elem);
  auto* to = static_cast<uint8_t*>(out->allocate(out->bytes));
  for (int32_t v : from) {
    if (v < low || v > high)
      context.invalid(what + " of " + std::string(element_name(out->elem)) + " has the element " +
                      std::to_string(v));
    std::memcpy(to, &v, size);  // little endian, as the format is
    to += size;
  }
}

// Kernels read a bool as a byte that is 0 or 1.
void normalise_bools(TensorData* t) {
  const auto* from = static_cast<const uint8_t*>(t->data);
  bool clean = true;
  for (uint64_t i = 0; i < t->bytes && clean; ++i) clean = from[i] <= 1;
  if (clean) return;
  std::vector<uint64_t> words((t->bytes + 7) / 8);
  auto* to = reinterpret_cast<uint8_t*>(words.data());
  for (uint64_t i = 0; i < t->bytes; ++i) to[i] = from[i] != 0;
  t->words = std::move(words);
  t->data = t->words.data();
}

template <class T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
void put(TensorData* out, T value) {
  std::memcpy(out->allocate(sizeof(T)), &value, sizeof(T));
}

}  // namespace

void* TensorData::allocate(uint64_t size) {
  words.assign((size + 7) / 8, 0);
  data = words.data();
  bytes = size;
  return words.data();
}

regie_tensor TensorData::view() const {
  return {elem, 0, static_cast<int32_t>(dims.size()), dims.data(), nullptr, const_cast<void*>(data), bytes};
}

regie_elem element_type(const Context& context, int32_t number) {
  if (number == 0) context.invalid("an element type is missing");
  if (number < 0) context.invalid("element type " + std::to_string(number) + " does not exist");
  if (number >= kElementCount)
    context.unsupported("element type " + std::to_string(number) +
                        " of ONNX is not supported; supported are the types 1 to " +
                        std::to_string(kElementCount - 1));
  return static_cast<regie_elem>(number);
}

std::string_view element_name(regie_elem elem) { return elem < kElementCount ? kElements[elem].name : "?"; }

std::string shape_text(regie_elem elem, const std::vector<int64_t>& dims) {
  std::string text(element_name(elem));
  text += '[';
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + ']';
}

TensorData read_tensor(const Context& context, const wire::Tensor& tensor, const std::string& what) {
  TensorData out;
  out.elem = element_type(context, tensor.data_type());
  out.dims.assign(tensor.dims().begin(), tensor.dims().end());
  const uint64_t count = count_elements(context, out.dims, what);
  out.bytes = byte_count(out.elem, count);
  if (tensor.has_segment()) context.unsupported(what + " is stored in segments");
  const bool typed = tensor.float_data_size() || tensor.int32_data_size() || tensor.string_data_size() ||
                     tensor.int64_data_size() || tensor.double_data_size() || tensor.uint64_data_size();
  const bool external = tensor.data_location() == 1;
  if ((typed ? 1 : 0) + (external ? 1 : 0) + (tensor.raw_size() != 0 ? 1 : 0) > 1)
    context.invalid(what + " has its data twice: raw, typed and external data exclude each other");
  if (out.elem == REGIE_STRING) {
    if (external || tensor.has_raw_offset())
      context.invalid(what + " of string cannot have raw or external data");
    decode(context, tensor, what, count, &out);
  } else if (external) {
    point_to_external(context, tensor, what, &out);
  } else if (tensor.has_raw_offset() && !typed) {
    if (tensor.raw_size() != out.bytes) wrong_size(context, out, what, tensor.raw_size());
    out.data = static_cast<const uint8_t*>(context.import->source->data) + tensor.raw_offset();
  } else {
    decode(context, tensor, what, count, &out);
  }
  if (out.elem == REGIE_BOOL) normalise_bools(&out);
  return out;
}

TensorData read_sparse(Context& context, const wire::SparseTensor& tensor, const std::string& what) {
  // What a file asks for beyond its own size has a limit over all its sparse tensors: a small file is no way
  // to any amount of memory.
  constexpr uint64_t kLeastAllowed = uint64_t{64} << 20, kAllowedTimesFile = 64;
  const TensorData values = read_tensor(context, tensor.values(), what + " (values)");
  const TensorData indices = read_tensor(context, tensor.indices(), what + " (indices)");
  TensorData out;
  out.elem = values.elem;
  out.dims.assign(tensor.dims().begin(), tensor.dims().end());
  const uint64_t count = count_elements(context, out.dims, what);
  const uint32_t bits = kElements[out.elem].bits;
  if (bits < 8) context.unsupported(what + ": a sparse tensor of " + std::string(element_name(out.elem)));
  const uint64_t bytes = byte_count(out.elem, count), file = context.import->source->size;
  const uint64_t allowed = kLeastAllowed + kAllowedTimesFile * std::min(file, uint64_t{1} << 40);
  if (bytes > allowed - std::min(allowed, context.dense_bytes))
    context.fail(REGIE_LIMIT, what + " of " + shape_text(out.elem, out.dims) + " is sparse and would take " +
                                  std::to_string(bytes) + " bytes when made dense, after " +
                                  std::to_string(context.dense_bytes) + " of others; a file of " +
                                  std::to_string(file) + " bytes may take " + std::to_string(allowed) +
                                  ": store it dense in an external file");
  context.dense_bytes += bytes;
  const uint64_t rank = out.dims.size();
  if (values.dims.size() != 1) context.invalid(what + ": the values of a sparse tensor have one dimension");
  const auto stored = static_cast<uint64_t>(values.dims[0]);
  const bool linear = indices.dims.size() == 1 && static_cast<uint64_t>(indices.dims[0]) == stored;
  const bool coordinates = indices.dims.size() == 2 && static_cast<uint64_t>(indices.dims[0]) == stored &&
                           static_cast<uint64_t>(indices.dims[1]) == rank;
  if (indices.elem != REGIE_I64 || !(linear || coordinates))
    context.invalid(what + ": the indices of a sparse tensor with " + std::to_string(stored) +
                    " values and rank " + std::to_string(rank) + " cannot be " +
                    shape_text(indices.elem, indices.dims));
  const size_t size = bits / 8;
  auto* to = static_cast<uint8_t*>(out.allocate(bytes));
  const auto* from = static_cast<const uint8_t*>(values.data);
  const auto* index = static_cast<const uint8_t*>(indices.data);  // perhaps unaligned in the file
  for (uint64_t k = 0; k < stored; ++k) {
    uint64_t at = 0;
    for (uint64_t axis = 0; axis < (linear ? 1 : rank); ++axis, index += 8) {
      int64_t i = 0;
      std::memcpy(&i, index, 8);
      const auto limit = linear ? count : static_cast<uint64_t>(out.dims[axis]);
      if (i < 0 || static_cast<uint64_t>(i) >= limit)
        context.invalid(what + ": index " + std::to_string(i) + " of a sparse tensor is outside 0.." +
                        std::to_string(limit) + " (exclusive)");
      at = linear ? static_cast<uint64_t>(i) : at * limit + static_cast<uint64_t>(i);
    }
    std::memcpy(to + at * size, from + k * size, size);
  }
  return out;
}

namespace {
template <class Stored, class T>
TensorData list_of(regie_elem elem, const std::vector<T>& values) {
  TensorData out;
  out.elem = elem;
  out.dims = {static_cast<int64_t>(values.size())};
  auto* to = static_cast<Stored*>(out.allocate(values.size() * sizeof(Stored)));
  for (T v : values) *to++ = static_cast<Stored>(v);
  return out;
}
}  // namespace

TensorData integer(int64_t value) {
  TensorData out = integers({value});
  out.dims.clear();
  return out;
}
TensorData integers(const std::vector<int64_t>& values) { return list_of<int64_t>(REGIE_I64, values); }
TensorData floats(const std::vector<double>& values) { return list_of<float>(REGIE_F32, values); }

std::optional<int64_t> whole_at(const regie_tensor& tensor, int64_t at) {
  auto read = [&]<class T>(T number) -> std::optional<int64_t> {
    std::memcpy(&number, static_cast<const char*>(tensor.data) + static_cast<size_t>(at) * sizeof(T),
                sizeof(T));
    if constexpr (std::is_floating_point_v<T>)
      if (!(std::fabs(number) < T(0x1p62))) return std::nullopt;
    return static_cast<int64_t>(number);
  };
  switch (tensor.elem) {
    case REGIE_F32:
      return read(float{});
    case REGIE_F64:
      return read(double{});
    case REGIE_I32:
      return read(int32_t{});
    case REGIE_I64:
      return read(int64_t{});
    default:
      return std::nullopt;
  }
}

bool scalar(regie_elem elem, double value, TensorData* out) {
  out->elem = elem;
  out->dims.clear();
  switch (elem) {
    case REGIE_F32:
      put(out, static_cast<float>(value));
      return true;
    case REGIE_F64:
      put(out, value);
      return true;
    case REGIE_F16:
      put(out, sdk::half_bits(static_cast<float>(value)));
      return true;
    case REGIE_BF16:
      put(out, sdk::bfloat_bits(static_cast<float>(value)));
      return true;
    case REGIE_I8:
      put(out, saturated<int8_t>(value));
      return true;
    case REGIE_U8:
      put(out, saturated<uint8_t>(value));
      return true;
    case REGIE_I16:
      put(out, saturated<int16_t>(value));
      return true;
    case REGIE_U16:
      put(out, saturated<uint16_t>(value));
      return true;
    case REGIE_I32:
      put(out, saturated<int32_t>(value));
      return true;
    case REGIE_U32:
      put(out, saturated<uint32_t>(value));
      return true;
    case REGIE_I64:
      put(out, saturated<int64_t>(value));
      return true;
    case REGIE_U64:
      put(out, saturated<uint64_t>(value));
      return true;
    default:
      return false;
  }
}

}  // namespace regie::onnx
