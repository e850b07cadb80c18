// Cast, by way of a wide type: each element type is read and written once, not once a pair.
#include <cmath>
#include <limits>

#include "op.h"
#include "small_types.h"
#include "walk.h"

namespace regie::ops {
namespace {

constexpr int64_t chunk = 256;

// Integers up to 64 bits go through int64_t (uint64_t for u64), floats through double; all of these are
// exact.
template <class T>
using Wide = std::conditional_t<is_float<T>, double,
                                std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t>>;

union Buffer {
  double floats[chunk];
  int64_t ints[chunk];
  uint64_t unsigneds[chunk];
};
template <class W>
auto* buffer_of(Buffer& b) {
  if constexpr (std::is_same_v<W, double>) {
    return b.floats;
  } else if constexpr (std::is_same_v<W, int64_t>) {
    return b.ints;
  } else {
    return b.unsigneds;
  }
}

// What becomes of small types, and of what is cast to them.
struct Options {
  const SmallType* from = nullptr;
  const SmallType* to = nullptr;
  SmallCast how;
};

template <class T>
void load(const void* from, int64_t at, int64_t count, Buffer& to, const Options&) {
  auto* wide = buffer_of<Wide<T>>(to);
  const T* source = static_cast<const T*>(from) + at;
  for (int64_t i = 0; i < count; ++i) wide[i] = static_cast<Wide<T>>(Compute<T>(source[i]));
}

// Floats are cut towards zero; what does not fit is held at the end of the range, NaN becomes 0. Integers
// wrap around.
template <class W, class T>
T convert(W x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool(x != W(0));
  } else if constexpr (is_float<T>) {
    return T(static_cast<Compute<T>>(x));
  } else if constexpr (std::is_same_v<W, double>) {
    return saturated<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

void load_small(const void* from, int64_t at, int64_t count, Buffer& to, const Options& options) {
  const SmallType& type = *options.from;
  for (int64_t i = 0; i < count; ++i) {
    const double value = decode(type, read_bits(type, from, at + i));
    if (type.is_float()) {
      to.floats[i] = value;
    } else {
      to.ints[i] = static_cast<int64_t>(value);
    }
  }
}

template <class W>
void store_small(Buffer& from, void* to, int64_t at, int64_t count, const Options& options) {
  const SmallType& type = *options.to;
  const W* wide = buffer_of<W>(from);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t bits = 0;
    if (std::is_integral_v<W> && !type.is_float()) {  // exact also beyond 2^53
      bits = static_cast<uint8_t>(static_cast<uint64_t>(wide[i]) & ((1u << type.bits) - 1));
    } else {
      bits = encode(type, static_cast<double>(wide[i]), options.how);
    }
    write_bits(type, to, at + i, bits);
  }
}

template <class W, class T>
void store(Buffer& from, void* to, int64_t at, int64_t count, const Options&) {
  const W* wide = buffer_of<W>(from);
  T* target = static_cast<T*>(to) + at;
  for (int64_t i = 0; i < count; ++i) target[i] = convert<W, T>(wide[i]);
}

using Load = void (*)(const void* from, int64_t at, int64_t count, Buffer& to, const Options& options);
using Store = void (*)(Buffer& from, void* to, int64_t at, int64_t count, const Options& options);

template <class W>
Store find_store(regie_elem elem) {
  if (small_type(elem)) return store_small<W>;
  Store found = nullptr;
  dispatch(All(), elem, [&]<class T>() { found = store<W, T>; });
  return found;
}

regie_elem target_of(std::string_view op, const sdk::Attrs& attrs) {
  int64_t to = attrs.integer("to", 0);
  if (to < REGIE_F32 || to > REGIE_I2)
    throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": attribute 'to' is " + std::to_string(to) +
                                                ", which is no element type");
  return static_cast<regie_elem>(to);
}

void infer_cast(const Infer& infer) {
  regie_elem to = target_of(infer.op, infer.attrs);
  infer.result(0, to, infer.shape(0));
  if (to == REGIE_BOOL) {  // conditions on shapes
    auto numbers = infer.numbers(0);
    if (!numbers) return;
    for (int64_t& n : *numbers) n = n != 0;
    return infer.content(0, *numbers);
  }
  if (to != REGIE_I64 && to != REGIE_I32 && to != REGIE_F32 && to != REGIE_F64) return;
  if (auto elements = infer.elements(0)) infer.content(0, *elements);
}

KernelPtr prepare_cast(Prepare& p) {
  p.expect_result(0, p.shape(0));
  regie_elem to = target_of(p.op, p.attrs);
  if (p.out(0).elem != to) p.bad("the result must be of type " + std::string(elem_name(to)));
  static constexpr std::string_view kRounds[] = {"up", "down", "nearest"};
  static_assert(chunk % 8 == 0);  // packed elements of one byte are in one chunk
  Options options{small_type(p.in(0).elem), small_type(to), {}};
  options.how.saturate = p.attrs.integer("saturate", 1) != 0;
  options.how.round = static_cast<SmallCast::Round>(choice(p.op, p.attrs, "round_mode", kRounds));
  Load load_chunk = nullptr;
  Store store_chunk = nullptr;
  if (options.from) {
    load_chunk = load_small;
    store_chunk = options.from->is_float() ? find_store<double>(to) : find_store<int64_t>(to);
  } else if (!dispatch(All(), p.in(0).elem, [&]<class T>() {
               load_chunk = load<T>;
               store_chunk = find_store<Wide<T>>(to);
             })) {
    p.no_type(p.in(0).elem);
  }
  if (!store_chunk) p.no_type(to);
  return make_kernel([=, total = sdk::count_of(p.in(0))](const Call& call) {
    Buffer buffer;
    for (int64_t at = 0; at < total; at += chunk) {
      int64_t count = std::min(chunk, total - at);
      load_chunk(call.in<void>(0), at, count, buffer, options);
      store_chunk(buffer, call.out<void>(0), at, count, options);
    }
  });
}

// ---- BitCast: the same bytes as another type of that size ----

void infer_bit_cast(const Infer& infer) {
  const regie_elem to = target_of(infer.op, infer.attrs), from = infer.elem(0);
  if (elem_size(to) == 0 || elem_size(to) != elem_size(from))
    infer.bad(std::string(elem_name(from)) + " and " + std::string(elem_name(to)) + " differ in size");
  infer.result(0, to, infer.shape(0));
}

KernelPtr prepare_bit_cast(Prepare& p) {
  p.expect_result(0, p.shape(0));
  const uint32_t size = elem_size(p.in(0).elem);
  if (size == 0 || size != elem_size(p.out(0).elem)) p.no_type(p.in(0).elem);
  return make_kernel([bytes = static_cast<uint64_t>(sdk::count_of(p.in(0))) * size](const Call& call) {
    copy_bytes(call.out<void>(0), call.in<void>(0), bytes);
  });
}

constexpr Op table[] = {{"BitCast", 0, infer_bit_cast, prepare_bit_cast},
                        {"Cast", REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE, infer_cast, prepare_cast}};

}  // namespace

std::span<const Op> cast_ops() { return table; }

}  // namespace regie::ops
