// A model's sizes and places at concrete values of its symbols: what the runtime does before it prepares a
// shape, and what the plan check checks. Also dimensions as text for messages and for the embedding API.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/model.h"

namespace regie {

struct ShapeValues {
  std::vector<int64_t> symbols;      // by index
  std::vector<int64_t> expressions;  // value of each of Model::expressions
  int64_t at(ModelDim dim) const { return dim >= 0 ? dim : expressions[static_cast<size_t>(-(dim + 1))]; }
};

std::vector<int64_t> reference_symbols(const Model& model);

// `symbols` empty: the reference. INVALID_INPUT if an expression overflows or divides by zero at these
// values.
Result<ShapeValues> evaluate_shapes(const Model& model, std::vector<int64_t> symbols = {});

// Dimensions of a type; INVALID_INPUT "... would be -2 ..." if one is negative at these values.
Result<std::vector<int64_t>> dims_at(const Model& model, uint32_t type, const ShapeValues& shapes);
// Bytes of a type, row-major and dense.
Result<uint64_t> bytes_at(const Model& model, uint32_t type, const ShapeValues& shapes);

// What a run has that does not give this input; it has a default. Valid as long as the model.
regie_tensor default_tensor(const Model& model, const ModelPort& port);

struct Placement {
  std::vector<uint64_t> sizes, offsets;  // by buffer
  std::vector<uint64_t> space_bytes;     // by space: the greatest end
};
// `least_sizes`: by buffer, what it needs at least (scratch of prepared executables); empty: nothing. Without
// an order of placement the plan is fixed: offsets and sizes are the model's, whatever is needed.
Result<Placement> place_buffers(const Model& model, const ShapeValues& shapes,
                                std::span<const uint64_t> least_sizes = {});

// "N", "2*N+1", "16"; "[N,1,8,8]"; "N=7, M=3".
std::string dim_text(const Model& model, ModelDim dim);
std::string dims_text(const Model& model, std::span<const ModelDim> dims);
std::string dims_text(std::span<const int64_t> dims);
std::string symbols_text(const Model& model, std::span<const int64_t> symbols);
const char* task_kind_text(TaskKind kind);  // "launch", "copy", "if", "loop", "define"

}  // namespace regie
