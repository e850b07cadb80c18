#include "op.h"

#include <algorithm>
#include <cmath>

namespace regie::ops {

namespace {
constexpr uint32_t max_content = 1024;

std::string quoted(std::string_view op, const std::string& message) {
  return std::string(op) + ": " + message;
}

// False if there are floats that are no whole numbers, or too great to be told from their neighbours.
template <class T>
bool append_numbers(const regie_tensor& t, std::vector<int64_t>& to) {
  const T* from = static_cast<const T*>(t.data);
  for (int64_t i = 0, n = sdk::count_of(t); i < n; ++i) {
    const Compute<T> x = from[i];
    if constexpr (is_float<T>)
      if (!(x == std::floor(x) && std::abs(x) < Compute<T>(1 << 24))) return false;
    to.push_back(static_cast<int64_t>(x));
  }
  return true;
}

// Sizes go through floats where exporters compute with them (the ends of grids, for instance).
using ContentTypes = Types<int64_t, int32_t, Bool, float, double>;

std::optional<std::vector<int64_t>> numbers_of(const regie_tensor* t) {
  if (!t || !t->data || sdk::count_of(*t) > max_content) return std::nullopt;
  std::vector<int64_t> numbers;
  bool whole = false;
  dispatch(ContentTypes(), t->elem, [&]<class T>() { whole = append_numbers<T>(*t, numbers); });
  return whole ? std::optional(std::move(numbers)) : std::nullopt;
}
}  // namespace

int64_t normal_axis(std::string_view what, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw sdk::Failure(REGIE_INVALID_MODEL, std::string(what) + " " + std::to_string(axis) +
                                                " is outside of a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

size_t choice(std::string_view op, const sdk::Attrs& attrs, std::string_view attribute,
              std::span<const std::string_view> names) {
  const std::string_view text = attrs.text(attribute, names[0]);
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return i;
  throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": unknown " + std::string(attribute) + " '" +
                                              std::string(text) + "'");
}

std::string print_shape(Index shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<std::string_view> texts(const sdk::Attrs& attrs, std::string_view name) {
  std::vector<std::string_view> list;
  const regie_attr* a = attrs.find(name);
  if (!a) return list;
  if (a->kind != REGIE_ATTR_STRINGS)
    throw sdk::Failure(REGIE_INVALID_MODEL,
                       "attribute '" + std::string(name) + "' must be a list of strings");
  for (uint32_t i = 0; i < a->count; ++i) list.push_back(sdk::sv(a->v.strs[i]));
  return list;
}

Infer::Infer(const regie_host* host, const regie_shape_request& request)
    : op(sdk::sv(request.op)),
      attrs(request.attrs, request.attr_count),
      dims(host, request.dims),
      request_(request) {}

const regie_operand_info& Infer::in(uint32_t i) const {
  if (!has(i)) bad("operand " + std::to_string(i) + " is missing");
  return request_.operands[i];
}

Checked<regie_dim> Infer::shape(uint32_t i) const {
  const regie_operand_info& o = in(i);
  if (o.type.container != REGIE_TENSOR) bad("operand " + std::to_string(i) + " must be a tensor");
  if (o.type.rank < 0) unsupported("the rank of operand " + std::to_string(i) + " is not known");
  return sdk::dims_of(o.type);
}

std::optional<Shape> Infer::content(uint32_t i) const {
  if (in(i).type.rank > 1) return std::nullopt;
  return elements(i);
}

std::optional<Shape> Infer::elements(uint32_t i) const {
  const regie_operand_info& o = in(i);
  for (regie_dim d : sdk::dims_of(o.type))
    if (d == 0) return Shape();  // nothing is known of nothing
  if (auto numbers = numbers_of(o.data)) {
    Shape content;
    for (int64_t n : *numbers) content.push_back(dim(n));
    return content;
  }
  if (!o.content) return std::nullopt;
  Shape content(o.content, o.content + o.content_count);
  for (regie_dim d : content)
    if (d == REGIE_DIM_UNKNOWN) return std::nullopt;
  return content;
}

std::optional<std::vector<int64_t>> Infer::numbers(uint32_t i) const {
  if (in(i).type.rank <= 1)
    if (auto numbers = numbers_of(in(i).data)) return numbers;
  auto known = content(i);
  if (!known) return std::nullopt;
  std::vector<int64_t> numbers;
  for (regie_dim d : *known) {
    auto n = number(d);
    if (!n) return std::nullopt;
    numbers.push_back(*n);
  }
  return numbers;
}

Shape Infer::list(uint32_t i) const {
  if (auto known = content(i)) return std::move(*known);
  return unknown(length(i));
}

size_t Infer::length(uint32_t i) const {
  auto shape = this->shape(i);
  if (shape.size() > 1) bad("operand " + std::to_string(i) + " must be a list");
  if (shape.empty()) return 1;
  const auto n = number(shape[0]);
  if (!n)
    unsupported("the rank of the result depends on the length of operand " + std::to_string(i) +
                ", which is known only at run time; give it a fixed length");
  // Nothing has that many axes; a list of the graph's sizes would be longer than any message.
  if (*n > max_content) bad("operand " + std::to_string(i) + " has " + std::to_string(*n) + " elements");
  return static_cast<size_t>(*n);
}

bool Infer::known(std::span<const regie_dim> dims) {
  return std::find(dims.begin(), dims.end(), REGIE_DIM_UNKNOWN) == dims.end();
}

void Infer::result(uint32_t i, regie_elem elem, std::span<const regie_dim> shape) const {
  if (i >= request_.result_count) return;
  for (regie_dim d : shape)
    if (auto n = number(d); n && *n < 0)
      bad("the result would have the shape " + print(shape) +
          ": the operands are too small for these attributes");
  regie_type type{};
  type.elem = elem;
  type.container = REGIE_TENSOR;
  type.rank = static_cast<int32_t>(shape.size());
  type.dims = shape.data();
  sdk::check(request_.set_result(&request_, i, &type));
}

void Infer::content(uint32_t i, std::span<const regie_dim> content) const {
  if (i >= request_.result_count || content.size() > max_content) return;
  for (regie_dim d : content)
    if (d == REGIE_DIM_UNKNOWN) return;
  sdk::check(request_.set_content(&request_, i, content.data(), static_cast<uint32_t>(content.size())));
}

std::optional<int64_t> Infer::number(regie_dim d) const {
  if (d >= 0) return d;
  if (d == REGIE_DIM_UNKNOWN) return std::nullopt;
  auto [lower, upper] = dims.range(d);
  if (lower != upper) return std::nullopt;
  return lower;
}

regie_dim Infer::dim(int64_t number) const {
  if (number >= 0) return number;
  // The least number has no positive counterpart; as a bound it means the same as its neighbour.
  return dims.sub(0, number == INT64_MIN ? INT64_MAX : -number);
}

bool Infer::surely_at_least(regie_dim d, int64_t least) const {
  return d != REGIE_DIM_UNKNOWN && (d >= 0 ? d : dims.range(d).first) >= least;
}

bool Infer::surely_below(regie_dim d, int64_t bound) const {
  return d != REGIE_DIM_UNKNOWN && (d >= 0 ? d : dims.range(d).second) < bound;
}

bool Infer::surely_differ(regie_dim a, regie_dim b) const {
  if (a == b || a == REGIE_DIM_UNKNOWN || b == REGIE_DIM_UNKNOWN) return false;
  if (a >= 0 && b >= 0) return true;
  auto [a_low, a_high] = a >= 0 ? std::pair(a, a) : dims.range(a);
  auto [b_low, b_high] = b >= 0 ? std::pair(b, b) : dims.range(b);
  return a_high < b_low || b_high < a_low;
}

bool Infer::agree(regie_dim a, regie_dim b) const {
  if (surely_differ(a, b)) return false;
  if (a < 0) std::swap(a, b);
  return a < 0 || b >= 0 || b == REGIE_DIM_UNKNOWN || dims.fix(b, a);
}

bool Infer::is_multiple_above(regie_dim y, regie_dim x) const {
  if (x >= 0 || y >= 0 || x == REGIE_DIM_UNKNOWN || y == REGIE_DIM_UNKNOWN || !surely_at_least(x, 0))
    return false;
  for (int64_t k : {2, 3, 4, 5, 6, 8, 16, 32})
    if (dims.mul(dims.ceildiv(x, k), k) == y) return true;
  return false;
}

Shape Infer::broadcast(std::span<const regie_dim> a, std::span<const regie_dim> b) const {
  if (a.size() < b.size()) std::swap(a, b);
  Shape result(a.begin(), a.end());
  size_t skip = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    regie_dim x = a[skip + i], y = b[i];
    regie_dim& to = result[skip + i];
    if (x == y || y == 1) continue;
    if (x == 1) {
      to = y;
    } else if (surely_differ(x, y) && surely_differ(x, 1) && surely_differ(y, 1)) {
      bad("shapes " + print(a) + " and " + print(b) + " cannot be broadcast to each other");
    } else if (y >= 0 || (x < 0 && surely_differ(y, 1))) {
      to = y;  // x is y, or 1
    } else if (x >= 0 || surely_differ(x, 1)) {
      to = x;
    } else if (is_multiple_above(y, x)) {
      // As where a map that was halved is doubled again: 0 with 0, never 1, and no less.
      to = y;
    } else if (is_multiple_above(x, y)) {
      to = x;
    } else if (surely_at_least(x, 1) && surely_at_least(y, 1)) {
      to = dims.max(x, y);
    } else {  // the greater one, but 0 where one is 0 and the other 1
      to = dims.mul(dims.max(x, y), dims.min(1, dims.min(x, y)));
    }
  }
  return result;
}

std::string Infer::print(std::span<const regie_dim> shape) const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + (shape[i] == REGIE_DIM_UNKNOWN ? std::string("?") : dims.print(shape[i]));
  return text + "]";
}

void Infer::bad(const std::string& message) const {
  throw sdk::Failure(REGIE_INVALID_MODEL, quoted(op, message));
}
void Infer::unsupported(const std::string& message) const {
  throw sdk::Failure(REGIE_UNSUPPORTED, quoted(op, message));
}

Prepare::Prepare(const regie_op_request& request, const regie_host* host)
    : op(sdk::sv(request.op)), attrs(request.attrs, request.attr_count), request_(request), host_(host) {
  for (uint32_t i = 0; i < request.operand_count; ++i) {
    const regie_tensor& t = request.operands[i];
    if (!t.strides) continue;
    int64_t stride = 1;
    for (int32_t d = t.rank; d-- > 0; stride *= t.dims[d])
      if (t.dims[d] > 1 && t.strides[d] != stride)
        unsupported("operand " + std::to_string(i) + " is strided; make it dense first");
  }
}

const regie_tensor& Prepare::in(uint32_t i) const {
  if (!has(i)) bad("operand " + std::to_string(i) + " is missing");
  return request_.operands[i];
}

const regie_tensor& Prepare::out(uint32_t i) const {
  if (!wants(i)) bad("result " + std::to_string(i) + " is missing");
  return request_.results[i];
}

void Prepare::expect_result(uint32_t i, Index shape) const {
  Index given = out_shape(i);
  if (std::equal(given.begin(), given.end(), shape.begin(), shape.end())) return;
  std::string operands;
  for (uint32_t k = 0; k < request_.operand_count; ++k)
    if (has(k)) operands += (operands.empty() ? "" : ", ") + print_shape(this->shape(k));
  bad("operands of the shapes " + operands + " give a result of the shape " + print_shape(shape) + ", not " +
      print_shape(given));
}

uint32_t Prepare::moved_bytes(const regie_tensor& from) const {
  const uint32_t size = elem_size(from.elem);
  if (size == 0) no_type(from.elem);
  for (uint32_t i = 0; i < results(); ++i)
    if (wants(i) && out(i).elem != from.elem)
      bad("result " + std::to_string(i) + " has another type than what is copied into it");
  return size;
}

void Prepare::no_type(regie_elem elem) const {
  unsupported("no reference kernel for elements of type " + std::string(elem_name(elem)));
}
void Prepare::bad(const std::string& message) const {
  throw sdk::Failure(REGIE_INVALID_INPUT, quoted(op, message));
}
void Prepare::unsupported(const std::string& message) const {
  throw sdk::Failure(REGIE_UNSUPPORTED, quoted(op, message));
}

}  // namespace regie::ops
