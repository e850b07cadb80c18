// Sequences of which the run tells how many elements they have, as a Loop makes them: one tensor with the
// elements along a new axis in front, a stack. Its elements have one type and rank, and one shape, which may
// be the run's. Where a body does nothing to a sequence but add elements at its ends, it is what the Loop
// collects; else the stack is carried.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sequences.h"

namespace regie::onnx {

struct ElementType {
  regie_elem elem = REGIE_F32;
  std::vector<regie_dim> dims;
};

// Thrown while a Loop's body is read with sequence `growth` of it: it is not only added to (kOtherUse), or
// its elements are of this type (kElement), which is what the body was read for.
struct GrowthSeen {
  enum Kind { kOtherUse, kElement };
  uint32_t growth;
  Kind kind;
  ElementType type;
};

// The stack of a sequence. Of an empty list with elements of `type`, where that is known; UNSUPPORTED where
// it is not, and where elements cannot be in one tensor.
uint32_t stack_of(Translation& t, Sequence& s, const std::optional<ElementType>& type = std::nullopt);
Sequence from_stack(uint32_t stack);
// Nothing if it has none that are known.
std::optional<ElementType> type_of_elements(Translation& t, const Sequence& s);
// The values that a sequence is made of, and a sequence like it of others.
std::vector<uint32_t> parts_of(const Sequence& s);
Sequence of_parts(const Sequence& like, const std::vector<uint32_t>& parts);
// A sequence of the graphs around a region that the region reads.
struct CapturedSequence {
  static constexpr size_t kDirect = SIZE_MAX;  // a constant: the region reads it as it is
  std::string_view name;
  Sequence outside;
  std::vector<size_t> places;  // of its parts among what goes in
  Sequence inside(std::span<const uint32_t> args) const;
};
// The parts of a split, where they have not been made.
void complete(Translation& t, Sequence& s);

// What operators do to stacks; `position`: REGIE_NONE where it is not given.
Sequence stack_insert(Translation& t, const Sequence& s, uint32_t element, uint32_t position);
Sequence stack_erase(Translation& t, const Sequence& s, uint32_t position);
uint32_t stack_at(Translation& t, const Sequence& s, uint32_t position);
uint32_t stack_length(Translation& t, const Sequence& s);
uint32_t stack_concat(Translation& t, const Sequence& s, int64_t axis, bool new_axis);

// A sequence that a Loop grew: what it was before, and what iterations put in front of it and behind it, in
// the order of an iteration, each collected along a new axis 0.
Sequence grown(Translation& t, Sequence& before, const std::vector<uint32_t>& front,
               const std::vector<uint32_t>& back);

}  // namespace regie::onnx
