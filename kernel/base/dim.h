// Dimension expressions: hash-consed, canonical, with ranges. A `regie_dim` >= 0 is a constant; a negative
// one is a handle of this table. Polynomials are kept as sums of products in a fixed order, so equal
// polynomials are equal handles; floordiv, ceildiv, mod, min and max are simplified by divisibility and range
// where that is exact.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

namespace regie {

struct DimSymbol {
  std::string name;
  int64_t lower = 0, upper = INT64_MAX;  // inclusive
  bool data_dependent = false;
};

// Symbols, by name, that are to be numbers.
using SymbolSizes = std::vector<std::pair<std::string, int64_t>>;

// Postfix bytecode that the model file keeps and the runtime evaluates without this table.
// Instructions: {push, constant}, {load, symbol index}, {operator REGIE_DIM_*, 0}.
struct DimCode {
  enum : int64_t { kPush = 100, kLoad = 101 };
  std::vector<int64_t> words;  // pairs
};
// Overflow and division by zero give an error, as does a symbol index out of range or a malformed program.
Result<int64_t> evaluate(const DimCode& code, std::span<const int64_t> symbols);

class DimTable {
 public:
  struct Impl;  // dim_impl.h
  DimTable();
  ~DimTable();
  DimTable(const DimTable&) = delete;
  DimTable& operator=(const DimTable&) = delete;

  // The same name gives the same handle and narrows its range; REGIE_DIM_UNKNOWN if nothing is left of the
  // range.
  regie_dim symbol(std::string_view name, int64_t lower = 0, int64_t upper = INT64_MAX,
                   bool data_dependent = false);
  // While on, ranges of symbols that are not data-dependent stay as they are when a symbol is asked for
  // again: what a branch that may not be taken needs of an input is not asked of every run.
  void keep_input_ranges(bool on);
  // From now on the symbol of this name, not made yet, is this number.
  void fix_symbol(std::string name, int64_t value);
  std::optional<regie_dim> find_symbol(std::string_view name) const;
  // `op` is REGIE_DIM_*. REGIE_DIM_UNKNOWN if an operand is unknown, or for a division by the constant zero,
  // a coefficient beyond 64 bits, or an expression beyond any use (nested 128 deep, a million symbols long).
  regie_dim op(uint32_t op, regie_dim a, regie_dim b);
  regie_dim add(regie_dim a, regie_dim b) { return op(REGIE_DIM_ADD, a, b); }
  regie_dim sub(regie_dim a, regie_dim b) { return op(REGIE_DIM_SUB, a, b); }
  regie_dim mul(regie_dim a, regie_dim b) { return op(REGIE_DIM_MUL, a, b); }
  regie_dim product(std::span<const regie_dim> dims);

  std::pair<int64_t, int64_t> range(regie_dim dim) const;  // inclusive, saturating
  // "N", "2*N+1", "floordiv(N+1, 2)", "?" for unknown. Terms are ordered by degree and name, so that the text
  // does not depend on the table. Names that are no identifiers are quoted, as in 2*"past length".
  std::string print(regie_dim dim) const;
  // The grammar that print writes; unknown symbols are made with the range 0..inf. `where` for messages.
  Result<regie_dim> parse(std::string_view text, std::string_view where = {});

  size_t symbol_count() const;
  const DimSymbol& symbol_at(size_t index) const;           // in the order of creation
  std::optional<size_t> symbol_index(regie_dim dim) const;  // if dim is just a symbol
  DimCode code(regie_dim dim) const;                        // symbols by that index
  // With values for all symbols that occur; error if one is missing.
  Result<int64_t> evaluate(regie_dim dim, std::span<const std::optional<int64_t>> values) const;
  // Calls f for each symbol that occurs.
  void visit_symbols(regie_dim dim, const std::function<void(size_t)>& f) const;

  regie_dim_table* handle() { return reinterpret_cast<regie_dim_table*>(this); }
  static DimTable& from(regie_dim_table* t) { return *reinterpret_cast<DimTable*>(t); }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace regie
