// Elements of tensors as text, each type so that reading gives the same bits back.
#pragma once

#include <string>

#include "base/elem.h"
#include "text/lexer.h"

namespace regie {

// Element `index` of dense data. Complex numbers take two indices each.
std::string spell_element(regie_elem elem, const void* data, uint64_t index);
// Numbers (or strings) that a tensor of `count` elements is written with.
uint64_t spelled_count(regie_elem elem, uint64_t count);
// Reads one element at the lexer's place into data[index]; `elem` must not be string.
Status read_element(Lexer& lexer, regie_elem elem, void* data, uint64_t index);

}  // namespace regie
