#include "stacks.h"

#include <algorithm>
#include <string>

#include "operators.h"

namespace regie::onnx {

namespace {

uint32_t list(Translation& t, const std::vector<int64_t>& values, const char* name) {
  return t.constant(integers(values), name);
}

uint32_t concat(Translation& t, const std::vector<uint32_t>& parts, int64_t axis = 0) {
  return parts.size() == 1 ? parts[0] : t.make("Concat", parts, {Attribute::integer("axis", axis)});
}

uint32_t slice(Translation& t, uint32_t x, uint32_t from, uint32_t to) {
  return t.make("Slice", {x, from, to, list(t, {0}, "axis")});
}

// i64[1]: how many elements there are.
uint32_t count_of(Translation& t, uint32_t stack) {
  return slice(t, t.make("Shape", {stack}), list(t, {0}, "from"), list(t, {1}, "to"));
}

uint32_t as_list(Translation& t, uint32_t number) {
  return t.make("Reshape",
                {t.make("Cast", {number}, {Attribute::integer("to", REGIE_I64)}), list(t, {1}, "one")});
}

// The value, if the run finds that the condition holds.
uint32_t required(Translation& t, uint32_t value, uint32_t condition, const std::string& message) {
  return t.make("regie.Require", {value, condition},
                {Attribute::integer("expected", 1), Attribute::text("message", message)});
}

// i64[1]: a position -count..last as 0..last, where the run has seen that it is one; `last` is count, or one
// less.
uint32_t place_of(Translation& t, uint32_t stack, uint32_t position, bool behind_last) {
  const uint32_t count = count_of(t, stack), given = as_list(t, position), zero = list(t, {0}, "zero");
  const uint32_t at = t.make("Where", {t.make("Less", {given, zero}), t.make("Add", {given, count}), given});
  const uint32_t beyond = t.make(behind_last ? "LessOrEqual" : "Less", {at, count});
  const uint32_t fits = t.make("And", {t.make("GreaterOrEqual", {at, zero}), beyond});
  return required(t, at, fits, "the position is outside of the sequence, which a Loop made");
}

uint32_t one_stack(Translation& t, uint32_t element) {
  return t.make("Unsqueeze", {element, list(t, {0}, "front")});
}

// Of a stack that may have no elements, and does not know their shape then: with that of `like`.
uint32_t with_shape_of(Translation& t, uint32_t stack, uint32_t like) {
  const uint32_t zero = list(t, {0}, "zero");
  const uint32_t empty = t.make("Equal", {count_of(t, stack), zero});
  const uint32_t inner = slice(t, t.make("Shape", {like}), list(t, {1}, "from"), list(t, {INT64_MAX}, "to"));
  const uint32_t shape = t.make("Where", {empty, concat(t, {zero, inner}), t.make("Shape", {stack})});
  return t.make("Reshape", {stack, shape}, {Attribute::integer("allowzero", 1)});
}

void check_same(Translation& t, const ElementType& a, const ElementType& b) {
  if (a.elem != b.elem || a.dims.size() != b.dims.size())
    t.context.unsupported(
        "elements of several types or ranks are in a sequence that a Loop or an If changes, or a run chooses "
        "from");
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i])
      t.context.unsupported("elements of several shapes are in a sequence that a Loop or an If changes: " +
                            std::to_string(a.dims[i]) + " and " + std::to_string(b.dims[i]) + " on axis " +
                            std::to_string(i));
}

ElementType type_in(Translation& t, uint32_t stack) { return *type_of_elements(t, from_stack(stack)); }

ElementType type_of(Translation& t, uint32_t element) {
  const Translation::Type type = t.type(element);
  return {type.elem, type.dims};
}

// Of two stacks.
void check_same(Translation& t, uint32_t a, uint32_t b) { check_same(t, type_in(t, a), type_in(t, b)); }

void check_fits(Translation& t, uint32_t stack, uint32_t element) {
  check_same(t, type_in(t, stack), type_of(t, element));
}

// The run tells the shape of elements. While there are none, other axes of the stack may have any size.
bool open(Translation& t, uint32_t stack) {
  const ElementType type = type_in(t, stack);
  return std::any_of(type.dims.begin(), type.dims.end(), [](regie_dim d) { return d < 0; });
}

}  // namespace

void complete(Translation& t, Sequence& s) {
  if (!s.make) return;
  s.tensors = s.make(t);
  s.make = nullptr;
}

Sequence from_stack(uint32_t stack) {
  Sequence s;
  s.stack = stack;
  return s;
}

std::vector<uint32_t> parts_of(const Sequence& s) {
  std::vector<uint32_t> parts = s.tensors;
  for (uint32_t v : {s.order, s.stack})
    if (v != REGIE_NONE) parts.push_back(v);
  return parts;
}

Sequence of_parts(const Sequence& like, const std::vector<uint32_t>& parts) {
  Sequence s = like;
  size_t next = 0;
  for (uint32_t& v : s.tensors) v = parts[next++];
  if (s.order != REGIE_NONE) s.order = parts[next++];
  if (s.stack != REGIE_NONE) s.stack = parts[next];
  return s;
}

Sequence CapturedSequence::inside(std::span<const uint32_t> args) const {
  std::vector<uint32_t> parts = parts_of(outside);
  for (size_t i = 0; i < parts.size(); ++i)
    if (places[i] != kDirect) parts[i] = args[places[i]];
  return of_parts(outside, parts);
}

std::optional<ElementType> type_of_elements(Translation& t, const Sequence& s) {
  if (s.stack != REGIE_NONE) {
    const Translation::Type type = t.type(s.stack);
    return ElementType{type.elem, {type.dims.begin() + 1, type.dims.end()}};
  }
  if (s.tensors.empty()) return std::nullopt;
  const Translation::Type type = t.type(s.tensors[0]);
  return ElementType{type.elem, type.dims};
}

uint32_t stack_of(Translation& t, Sequence& s, const std::optional<ElementType>& type) {
  complete(t, s);
  if (s.stack != REGIE_NONE) return s.stack;
  if (s.length == 0) {
    if (!type)
      t.context.unsupported(
          "the elements of the sequence, which is empty at first, are not known when the model is read");
    TensorData none;
    none.elem = type->elem;
    none.dims = {0};
    for (regie_dim d : type->dims) none.dims.push_back(d >= 0 ? d : 0);
    none.allocate(0);
    return t.constant(none, "elements");
  }
  std::vector<uint32_t> parts;
  for (uint32_t v : s.tensors) {
    parts.push_back(one_stack(t, v));
    if (parts.size() > 1) check_fits(t, parts[0], v);
  }
  const uint32_t all = concat(t, parts);
  return s.order == REGIE_NONE ? all : t.make("Gather", {all, s.order}, {Attribute::integer("axis", 0)});
}

Sequence stack_insert(Translation& t, const Sequence& s, uint32_t element, uint32_t position) {
  check_fits(t, s.stack, element);
  const uint32_t one = one_stack(t, element);
  const uint32_t all = open(t, s.stack) ? with_shape_of(t, s.stack, one) : s.stack;
  if (position == REGIE_NONE) return from_stack(concat(t, {all, one}));
  const uint32_t place = place_of(t, s.stack, position, true);
  return from_stack(concat(t, {slice(t, all, list(t, {0}, "begin"), place), one,
                               slice(t, all, place, list(t, {INT64_MAX}, "end"))}));
}

Sequence stack_erase(Translation& t, const Sequence& s, uint32_t position) {
  if (position == REGIE_NONE) position = list(t, {-1}, "last");
  const uint32_t place = place_of(t, s.stack, position, false);
  const uint32_t next = t.make("Add", {place, list(t, {1}, "one")});
  return from_stack(concat(t, {slice(t, s.stack, list(t, {0}, "begin"), place),
                               slice(t, s.stack, next, list(t, {INT64_MAX}, "end"))}));
}

uint32_t stack_at(Translation& t, const Sequence& s, uint32_t position) {
  const uint32_t place = place_of(t, s.stack, position, false);
  return t.make("Gather", {s.stack, t.make("Reshape", {place, list(t, {}, "scalar")})},
                {Attribute::integer("axis", 0)});
}

uint32_t stack_length(Translation& t, const Sequence& s) {
  return t.make("Reshape", {count_of(t, s.stack), list(t, {}, "scalar")});
}

uint32_t stack_concat(Translation& t, const Sequence& s, int64_t axis, bool new_axis) {
  const int64_t rank = t.type(s.stack).rank - 1;
  axis = normal_axis(t, axis, rank + new_axis);
  // Of no elements that is an empty tensor, as a task whose results are empty does not run to refuse it.
  uint32_t all = s.stack;
  if (axis > 0) {
    std::vector<int64_t> perm;
    for (int64_t i = 1; i <= axis; ++i) perm.push_back(i);
    perm.push_back(0);
    for (int64_t i = axis + 1; i <= rank; ++i) perm.push_back(i);
    all = t.make("Transpose", {all}, {Attribute::list("perm", perm)});
  }
  if (new_axis) return all;
  // The axis of the elements, and that of theirs behind it, are one.
  const std::vector<regie_dim> dims = t.type(s.stack).dims;
  const uint32_t shape = t.make("Shape", {s.stack});
  const auto dim = [&](int64_t i) {
    const regie_dim known = dims[static_cast<size_t>(i)];
    return known >= 0 ? list(t, {known}, "dim")
                      : slice(t, shape, list(t, {i}, "from"), list(t, {i + 1}, "to"));
  };
  std::vector<uint32_t> wanted;
  for (int64_t i = 1; i <= rank; ++i)
    wanted.push_back(i == axis + 1 ? t.make("Mul", {dim(0), dim(i)}) : dim(i));
  return t.make("Reshape", {all, concat(t, wanted)}, {Attribute::integer("allowzero", 1)});
}

Sequence grown(Translation& t, Sequence& before, const std::vector<uint32_t>& front,
               const std::vector<uint32_t>& back) {
  // [iterations, ...] each -> [iterations * many, ...], iteration by iteration.
  const auto merged = [&](const std::vector<uint32_t>& collected) {
    if (collected.size() == 1) return collected[0];
    std::vector<uint32_t> beside;
    for (uint32_t v : collected) {
      check_same(t, collected[0], v);
      beside.push_back(t.make("Unsqueeze", {v, list(t, {1}, "beside")}));
    }
    const uint32_t all = concat(t, beside, 1);
    const uint32_t shape = t.make("Shape", {collected[0]});
    const uint32_t iterations = slice(t, shape, list(t, {0}, "from"), list(t, {1}, "to"));
    const uint32_t many = list(t, {static_cast<int64_t>(collected.size())}, "many");
    const uint32_t inner = slice(t, shape, list(t, {1}, "from"), list(t, {INT64_MAX}, "to"));
    return t.make("Reshape", {all, concat(t, {t.make("Mul", {iterations, many}), inner})},
                  {Attribute::integer("allowzero", 1)});
  };
  std::vector<uint32_t> parts;
  if (!front.empty())  // what the last iteration put there stands first
    parts.push_back(t.make("Slice", {merged(front), list(t, {-1}, "starts"), list(t, {INT64_MIN}, "ends"),
                                     list(t, {0}, "axes"), list(t, {-1}, "steps")}));
  if (!back.empty()) parts.push_back(merged(back));
  // Of no iterations the shape of what was collected is not known, where it is the run's.
  complete(t, before);
  if (before.stack == REGIE_NONE && before.length == 0) return from_stack(concat(t, parts));
  uint32_t stack = stack_of(t, before);
  for (uint32_t part : parts) check_same(t, stack, part);
  if (open(t, stack)) stack = with_shape_of(t, stack, parts[0]);
  for (uint32_t& part : parts)
    if (open(t, part)) part = with_shape_of(t, part, stack);
  parts.insert(parts.begin() + !front.empty(), stack);
  return from_stack(concat(t, parts));
}

}  // namespace regie::onnx
