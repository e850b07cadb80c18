#include "sequences.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "operators.h"
#include "stacks.h"

namespace regie::onnx {

namespace {

constexpr Translate kTakers[] = {sequence_construct,
                                 sequence_empty,
                                 sequence_insert,
                                 sequence_erase,
                                 sequence_at,
                                 sequence_length,
                                 concat_from_sequence,
                                 split_to_sequence,
                                 optional_has_element,
                                 identity,
                                 loop,
                                 sequence_map};

Sequence& sequence_operand(Translation& t, size_t i) {
  if (!is_sequence(t.operand(i)))
    t.context.invalid("input " + std::to_string(i) + " must be a sequence, and is a tensor");
  Sequence& s = t.sequence(t.operand(i));
  complete(t, s);
  return s;
}

// For operators that only see what a sequence is; of one that a Loop grows that is not known.
Sequence& settled_operand(Translation& t, size_t i) {
  Sequence& s = sequence_operand(t, i);
  if (s.sought)
    t.context.unsupported(
        "elements are read of a sequence that is empty before the Loop and has got none in its body: their "
        "type "
        "is not known");
  if (s.growth != REGIE_NONE) throw GrowthSeen{s.growth, GrowthSeen::kOtherUse, {}};
  return s;
}

// A number that nobody knows, for what is read for the types of its values and thrown away.
uint32_t unknown_number(Translation& t) {
  const uint32_t some = t.make("Shape", {t.make("NonZero", {t.constant(integers({1}), "some")})});
  return t.make("Gather", {some, t.constant(integer(1), "last")});
}

uint32_t iota(Translation& t, int64_t first, int64_t count, const char* name) {
  std::vector<int64_t> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return t.constant(integers(list), name);
}

uint32_t order_of(Translation& t, const Sequence& s) {
  return s.order != REGIE_NONE ? s.order : iota(t, 0, s.length, "order");
}

// A position that is an operand: -count..-1 count from the end, `last` is the greatest.
struct Position {
  bool known;
  int64_t number;  // normal, where it is known
  uint32_t value;  // as given, where it is not
};

Position position_of(Translation& t, size_t operand, int64_t count, int64_t last, int64_t fallback) {
  const uint32_t value = t.operand(operand);
  if (value == REGIE_NONE) return {true, fallback, REGIE_NONE};
  const std::optional<int64_t> at = known_number(t, value);
  if (!at) return {false, 0, value};
  if (*at < -count || *at > last)
    t.context.invalid("position " + std::to_string(*at) + " is outside of a sequence of " +
                      std::to_string(count) + (count == 1 ? " element" : " elements"));
  return {true, *at < 0 ? *at + count : *at, value};
}

// The position at run time as a scalar i64 from 0 on; one that is outside fails there, as an index into a
// list of `last + 1`.
uint32_t normal_position(Translation& t, const Position& p, int64_t count, int64_t last) {
  if (p.known) return t.constant(integer(p.number), "position");
  const uint32_t given = t.make("Reshape", {t.make("Cast", {p.value}, {Attribute::integer("to", REGIE_I64)}),
                                            t.constant(integers({}), "scalar")});
  const uint32_t zero = t.constant(integer(0), "zero");
  const uint32_t beyond = t.constant(integer(std::numeric_limits<int32_t>::max()), "beyond");
  const uint32_t from_end = t.make("Add", {given, t.constant(integer(count), "count")});
  const uint32_t at = t.make("Where", {t.make("Less", {given, zero}), from_end, given});
  const uint32_t checked = t.make("Where", {t.make("Less", {at, zero}), beyond, at});
  return t.make("Gather", {iota(t, 0, last + 1, "positions"), checked});
}

uint32_t stacked(Translation& t, const std::vector<uint32_t>& tensors, int64_t axis) {
  const uint32_t where = t.constant(integers({axis}), "axis");
  std::vector<uint32_t> parts;
  for (uint32_t v : tensors) parts.push_back(t.make("Unsqueeze", {v, where}));
  return t.make("Concat", parts, {Attribute::integer("axis", axis)});
}

// The tensor that the scalar i64 `which` names.
uint32_t chosen(Translation& t, const Sequence& s, uint32_t which) {
  if (s.tensors.size() == 1) return s.tensors[0];
  const Translation::Type first = t.type(s.tensors[0]);
  int64_t differs = -1;
  for (uint32_t v : s.tensors) {
    const Translation::Type other = t.type(v);
    if (other.elem != first.elem || other.rank != first.rank)
      t.context.unsupported(
          "the element is chosen at run time, among tensors of several types or ranks; make the position a "
          "constant");
    for (int64_t a = 0; a < first.rank; ++a) {
      const auto i = static_cast<size_t>(a);
      if (other.dims[i] == first.dims[i]) continue;
      if ((differs >= 0 && differs != a) || other.dims[i] < 0 || first.dims[i] < 0)
        t.context.unsupported(
            "the element is chosen at run time, among tensors whose shapes differ in more than one known "
            "dimension; make the position a constant");
      differs = a;
    }
  }
  if (differs < 0) return t.make("Gather", {stacked(t, s.tensors, 0), which});
  // Laid end to end, and cut out.
  std::vector<int64_t> starts, ends;
  int64_t at = 0;
  for (uint32_t v : s.tensors) {
    starts.push_back(at);
    ends.push_back(at += t.type(v).dims[static_cast<size_t>(differs)]);
  }
  const uint32_t all = t.make("Concat", s.tensors, {Attribute::integer("axis", differs)});
  const uint32_t one = t.make("Reshape", {which, t.constant(integers({1}), "one")});
  return t.make("Slice", {all, t.make("Gather", {t.constant(integers(starts), "starts"), one}),
                          t.make("Gather", {t.constant(integers(ends), "ends"), one}),
                          t.constant(integers({differs}), "axis")});
}

std::vector<uint32_t> elements_of(Translation& t, const Sequence& s) {
  if (s.order == REGIE_NONE) return s.tensors;
  std::vector<uint32_t> out;
  for (int64_t i = 0; i < s.length; ++i)
    out.push_back(chosen(t, s, t.make("Gather", {s.order, t.constant(integer(i), "element")})));
  return out;
}

}  // namespace

bool takes_sequences(void (*translate)(Translation&)) {
  return std::find(std::begin(kTakers), std::end(kTakers), translate) != std::end(kTakers);
}

void sequence_construct(Translation& t) {
  Sequence s;
  for (uint32_t v : t.operands) {
    if (v == REGIE_NONE || is_sequence(v)) t.context.invalid("the elements of a sequence are tensors");
    s.tensors.push_back(v);
  }
  s.length = static_cast<int64_t>(s.tensors.size());
  t.finish_with({t.add_sequence(std::move(s))});
}

void sequence_empty(Translation& t) {
  Sequence s;
  s.elem = element_type(t.context, static_cast<int32_t>(t.attributes.take_integer("dtype", 1)));
  t.finish_with({t.add_sequence(std::move(s))});
}

void sequence_insert(Translation& t) {
  Sequence s = sequence_operand(t, 0);
  if (is_sequence(t.operand(1))) t.context.invalid("the elements of a sequence are tensors");
  if (s.growth != REGIE_NONE) {
    const Translation::Type type = t.type(t.operand(1));
    if (s.sought) throw GrowthSeen{s.growth, GrowthSeen::kElement, {type.elem, type.dims}};
    const bool at_front = t.operand(2) != REGIE_NONE;
    if (at_front && known_number(t, t.operand(2)) != 0) throw GrowthSeen{s.growth, GrowthSeen::kOtherUse, {}};
    (at_front ? s.front : s.back).push_back(t.operand(1));
    return t.finish_with({t.add_sequence(std::move(s))});
  }
  if (s.stack != REGIE_NONE)
    return t.finish_with({t.add_sequence(stack_insert(t, s, t.operand(1), t.operand(2)))});
  const Position at = position_of(t, 2, s.length, s.length, s.length);
  if (at.known && s.order == REGIE_NONE) {
    s.tensors.insert(s.tensors.begin() + at.number, t.operand(1));
  } else {
    const uint32_t order = order_of(t, s), place = normal_position(t, at, s.length, s.length);
    const uint32_t added = t.constant(integers({static_cast<int64_t>(s.tensors.size())}), "added");
    const uint32_t all = t.make("Concat", {order, added}, {Attribute::integer("axis", 0)});
    const uint32_t here = iota(t, 0, s.length + 1, "here"), before = iota(t, -1, s.length + 1, "before");
    const uint32_t new_one = t.constant(integer(s.length), "new");
    const uint32_t rest = t.make("Where", {t.make("Equal", {here, place}), new_one, before});
    s.order = t.make("Gather", {all, t.make("Where", {t.make("Less", {here, place}), here, rest})});
    s.tensors.push_back(t.operand(1));
  }
  ++s.length;
  t.finish_with({t.add_sequence(std::move(s))});
}

void sequence_erase(Translation& t) {
  Sequence s = settled_operand(t, 0);
  if (s.stack != REGIE_NONE) return t.finish_with({t.add_sequence(stack_erase(t, s, t.operand(1)))});
  if (s.length == 0) t.context.invalid("nothing can be erased from an empty sequence");
  const Position at = position_of(t, 1, s.length, s.length - 1, s.length - 1);
  if (at.known && s.order == REGIE_NONE) {
    s.tensors.erase(s.tensors.begin() + at.number);
  } else {
    const uint32_t place = normal_position(t, at, s.length, s.length - 1);
    const uint32_t here = iota(t, 0, s.length - 1, "here"), next = iota(t, 1, s.length - 1, "next");
    s.order =
        t.make("Gather", {order_of(t, s), t.make("Where", {t.make("Less", {here, place}), here, next})});
  }
  --s.length;
  t.finish_with({t.add_sequence(std::move(s))});
}

void sequence_at(Translation& t) {
  const Sequence& s = settled_operand(t, 0);
  if (s.stack != REGIE_NONE) return t.finish("Identity", {stack_at(t, s, t.operand(1))}, {});
  if (s.length == 0) t.context.invalid("an empty sequence has no elements");
  const Position at = position_of(t, 1, s.length, s.length - 1, 0);
  if (at.known && s.order == REGIE_NONE)
    return t.finish("Identity", {s.tensors[static_cast<size_t>(at.number)]}, {});
  const uint32_t place = normal_position(t, at, s.length, s.length - 1);
  t.finish("Identity", {chosen(t, s, t.make("Gather", {order_of(t, s), place}))}, {});
}

void sequence_length(Translation& t) {
  if (!is_sequence(t.operand(0))) t.context.invalid("input 0 must be a sequence, and is a tensor");
  const Sequence& s = t.sequence(t.operand(0));
  if (s.growth != REGIE_NONE && !s.sought) throw GrowthSeen{s.growth, GrowthSeen::kOtherUse, {}};
  if (s.stack != REGIE_NONE) return t.finish("Identity", {stack_length(t, s)}, {});
  if (s.sought) return t.finish("Identity", {unknown_number(t)}, {});
  t.finish("Identity", {t.constant(integer(s.length), "length")}, {});
}

void concat_from_sequence(Translation& t) {
  const Sequence& s = settled_operand(t, 0);
  const int64_t axis = t.attributes.take_integer("axis", 0);
  if (s.stack != REGIE_NONE) {
    const bool new_axis = t.attributes.take_integer("new_axis", 0) != 0;
    return t.finish("Identity", {stack_concat(t, s, axis, new_axis)}, {});
  }
  if (s.length == 0) t.context.invalid("an empty sequence has no elements to concatenate");
  const std::vector<uint32_t> elements = elements_of(t, s);
  if (t.attributes.take_integer("new_axis", 0) != 0)
    return t.finish("Identity", {stacked(t, elements, axis)}, {});
  t.finish("Concat", elements, {Attribute::integer("axis", axis)});
}

void split_to_sequence(Translation& t) {
  const uint32_t x = t.operand(0), split = t.operand(1);
  const Translation::Type type = t.type(x);
  const int64_t axis = normal_axis(t, t.attributes.take_integer("axis", 0), type.rank);
  const bool keep = t.attributes.take_integer("keepdims", 1) != 0 || split != REGIE_NONE;
  const regie_dim size = type.dims[static_cast<size_t>(axis)];
  const char* const dynamic =
      "how many elements the sequence has is known only at run time; give the axis a fixed size, and sizes "
      "of parts that are constant";
  Sequence s;
  std::vector<int64_t> sizes;  // empty: `split` has them
  if (split != REGIE_NONE && t.type(split).rank == 1) {
    s.length = t.type(split).dims[0];
    if (s.length < 0) t.context.unsupported(dynamic);
  } else {
    const std::optional<int64_t> part = split == REGIE_NONE ? int64_t{1} : known_number(t, split);
    if (size < 0 && part == 1) {  // elements of one shape, as many as the run tells
      std::vector<int64_t> perm{axis};
      for (int64_t i = 0; i < type.rank; ++i)
        if (i != axis) perm.push_back(i);
      uint32_t stack = axis ? t.make("Transpose", {x}, {Attribute::list("perm", perm)}) : x;
      if (keep) stack = t.make("Unsqueeze", {stack, t.constant(integers({axis + 1}), "kept")});
      return t.finish_with({t.add_sequence(from_stack(stack))});
    }
    if (size < 0 || !part) t.context.unsupported(dynamic);
    if (*part < 1) t.context.invalid("parts of " + std::to_string(*part) + " elements");
    for (int64_t left = size; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, *part));
    s.length = static_cast<int64_t>(sizes.size());
  }
  s.make = [=, count = static_cast<size_t>(s.length)](Translation& user) {
    const uint32_t parts = sizes.empty() ? split : user.constant(integers(sizes), "split");
    std::vector<uint32_t> out =
        count == 0 ? std::vector<uint32_t>()
                   : user.make_several("Split", {x, parts}, {Attribute::integer("axis", axis)}, count);
    if (!keep)
      for (uint32_t& v : out) v = user.make("Squeeze", {v, user.constant(integers({axis}), "axis")});
    return out;
  };
  t.finish_with({t.add_sequence(std::move(s))});
}

void sequence_map(Translation& t) { t.finish_sequence_map(); }

// Tensors and sequences count as optionals that have their content.
void optional_has_element(Translation& t) {
  TensorData answer;
  answer.elem = REGIE_BOOL;
  *static_cast<uint8_t*>(answer.allocate(1)) = t.operand(0) != REGIE_NONE;
  t.finish("Identity", {t.constant(answer, "answer")}, {});
}

void identity(Translation& t) {
  if (is_sequence(t.operand(0))) return t.finish_with({t.operand(0)});
  t.finish("Identity", t.operands, {});
}

}  // namespace regie::onnx
