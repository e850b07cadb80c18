// Sequences and optionals exist while a model is read, and not in the graph: how many elements a sequence has
// is known then, so that it is a list of tensors, and an optional is its content or nothing. What only runs
// know (a sequence that is an input, one that a Loop grows) is refused. Which element an operator takes may
// be known only at run time: a sequence then carries the order of its elements as a value.
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
void optional_has_element(Translation&);
void identity(Translation&);

// Do operands or results of this operator include sequences? Others are refused if they get one.
bool takes_sequences(void (*translate)(Translation&));

}  // namespace regie::onnx
