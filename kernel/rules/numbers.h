// Elements of tensors as numbers, for predicates, constants that rules make, and comparing results.
#pragma once

#include <cstdint>
#include <optional>

#include "base/elem.h"
#include "ir/graph.h"

namespace regie {

// Element `index` of a tensor of floats, integers or bool; nothing for other types or if there are no bytes.
std::optional<double> number_at(const regie_tensor& tensor, int64_t index);
// Integers and bool without loss.
std::optional<int64_t> integer_at(const regie_tensor& tensor, int64_t index);
// The element of a constant whose elements are all equal; nothing for other values.
std::optional<double> splat_of(const Graph& graph, uint32_t value);
// Rounds to the tensor's type (to nearest, ties to even). False for types that number_at does not read.
bool set_number(Tensor& tensor, int64_t index, double number);
bool is_float(regie_elem elem);
bool is_integer(regie_elem elem);  // bool not

}  // namespace regie
