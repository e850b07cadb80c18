// The parts of the grammar that graphs and the patterns of rules share: types, literals, tensors.
#pragma once

#include <string>

#include "ir/graph.h"
#include "text/lexer.h"
#include "text/text.h"

namespace regie {

// f32[N,3,8,8]  f32[*]  ?[2,?]  seq(f32[2])  opt(f32[2])  f32[1,4,8,8,16]:NC1HWC0<16>/NCHW. Dimensions go
// into the graph's arena and table.
Result<regie_type> parse_type(Lexer& lexer, Graph& graph);
// ND, NCHW, NC1HWC0<16>, opaque<3>
Result<regie_format> parse_format(Lexer& lexer);
std::string spell_format(regie_format format);

// 1  1.5  "a"  [1, 2]  floats []  f32[2] [1.0, 2.0]  f32[100] digest("…"). A list of integers with a float in
// it is a list of floats.
Result<AttrValue> parse_attr_value(Lexer& lexer, Graph& graph, std::string name, const ParseOptions& options);
// Elements of a tensor with these dimensions, row-major: `1`, `[1, 2]`, or nested `[[1], [2]]`, which means
// the same.
Result<Tensor> parse_elements(Lexer& lexer, regie_elem elem, std::span<const int64_t> dims);
// digest("…") or elements. An empty Tensor: a digest that nobody knows.
Result<Tensor> parse_tensor_data(Lexer& lexer, regie_elem elem, std::span<const int64_t> dims,
                                 const ParseOptions& options);
// A bare word or a string.
Result<std::string> parse_name(Lexer& lexer, std::string_view what);
// The type's dimensions as numbers; an error at `at` if they are not constant.
Result<std::vector<int64_t>> constant_dims(const Lexer& lexer, const Token& at, const regie_type& type);

}  // namespace regie
