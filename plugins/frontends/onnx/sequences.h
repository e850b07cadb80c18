// Sequences and optionals exist while a model is read, and not in the graph: mostly it is known then how many
// elements a sequence has, so that it is a list of tensors, and an optional is its content or nothing. Which
// element an operator takes may be known only at run time: a sequence then carries the order of its elements
// as a value. One that a Loop or an If changes is a stack (stacks.h): one tensor of all its elements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "regie/c/view.h"

namespace regie::onnx {

class Translation;

struct Sequence {
  // The tensors that elements are among. Empty until asked for, where `make` makes them: the parts of a split
  // whose number alone is read are never made.
  std::vector<uint32_t> tensors;
  std::function<std::vector<uint32_t>(Translation&)> make;
  int64_t length = 0;
  // i64[length], which tensor each element is; REGIE_NONE: the tensors in their order.
  uint32_t order = REGIE_NONE;
  // Not REGIE_NONE: all elements along an axis in front, and nothing of the above.
  uint32_t stack = REGIE_NONE;
  regie_elem elem = REGIE_F32;  // of a list that has none
  // Of a Loop's body that is being read, a carried sequence and what was added at its ends so far; or, if it
  // is `sought`, one of which the type of elements is looked for.
  uint32_t growth = REGIE_NONE;
  bool sought = false;
  std::vector<uint32_t> front, back;
};

// Ids of sequences, beside those of values.
constexpr uint32_t kSequenceBit = 0x80000000u;
inline bool is_sequence(uint32_t id) { return id != REGIE_NONE && (id & kSequenceBit); }

void sequence_construct(Translation&);
void sequence_empty(Translation&);
void sequence_insert(Translation&);
void sequence_erase(Translation&);
void sequence_at(Translation&);
void sequence_length(Translation&);
void concat_from_sequence(Translation&);
void split_to_sequence(Translation&);
void sequence_map(Translation&);
void optional_has_element(Translation&);
void identity(Translation&);

// Do operands or results of this operator include sequences? Others are refused if they get one.
bool takes_sequences(void (*translate)(Translation&));

}  // namespace regie::onnx
