// How DimTable keeps its expressions. Everything is a polynomial: a sum of coefficient times monomial, a
// monomial being a product of atoms, an atom a symbol or one of floordiv, ceildiv, mod, min, max (or a
// product too large to multiply out) over other expressions. All three are hash-consed, so equality is
// equality of numbers.
//
// A polynomial is a persistent treap ordered by monomial, its priorities a fixed function of the monomial.
// Such a tree has one shape for one set of terms, however it was built; adding a term to a sum of n costs
// O(log n) and shares the rest.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/dim.h"

namespace regie {

using Interval = std::pair<int64_t, int64_t>;  // inclusive; INT64_MIN and INT64_MAX stand for "no bound"

Interval interval_add(Interval a, Interval b);
Interval interval_mul(Interval a, Interval b);
Interval interval_power(Interval a, uint32_t exponent);
Interval interval_divide(uint32_t op, Interval a,
                         Interval b);  // REGIE_DIM_FLOORDIV or CEILDIV, zero divisors left out
Interval interval_mod(Interval a, Interval b);

// Toward minus infinity; b != 0, and not INT64_MIN / -1.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

struct DimTable::Impl {
  using Atom = uint32_t;
  using Mono = uint32_t;  // 0: the empty product
  using Poly = uint32_t;  // 0: the empty sum; a regie_dim handle is its negative

  struct AtomRep {
    uint32_t op = 0;  // REGIE_DIM_*; 0: symbol
    uint32_t symbol = 0;
    uint32_t depth = 0;
    uint64_t size = 1;
    std::vector<regie_dim> operands;
  };
  struct Factor {
    Atom atom;
    uint32_t exponent;
    bool operator==(const Factor&) const = default;
  };
  struct MonoRep {
    std::vector<Factor> factors;  // in the order of compare_atoms
    uint32_t degree = 0, depth = 0;
    uint64_t size = 0;
  };
  struct PolyRep {
    Mono mono = 0;
    Poly left = 0, right = 0;
    uint32_t count = 0, depth = 0;
    uint32_t range_age = 0;  // of `range`; stale unless equal to age_
    int64_t coef = 0;
    uint64_t size = 0;
    Interval range{};
  };
  struct Term {
    Mono mono;
    int64_t coef;
  };
  struct Pieces {
    Poly left, right;
    int64_t coef;
  };

  Impl();

  // What the expressions may grow to; beyond it the result is REGIE_DIM_UNKNOWN.
  static constexpr uint32_t kMaxDepth = 128, kMaxDegree = 64;
  static constexpr uint64_t kMaxSize = 1 << 20;
  static constexpr uint64_t kMaxExpansion = 1 << 14;  // products of sums beyond this are not multiplied out
  static constexpr size_t kMaxFlattened = 16;         // operands of one min or max

  // ---- dim_poly.cpp ----
  bool valid(regie_dim d) const {
    return d >= 0 || (d != REGIE_DIM_UNKNOWN && static_cast<uint64_t>(-d) < polys.size());
  }
  Poly to_poly(regie_dim d) { return d >= 0 ? constant(d) : static_cast<Poly>(-d); }
  regie_dim to_dim(Poly p) const;
  Poly constant(int64_t c) { return c == 0 ? 0 : make_poly(0, c, 0, 0); }
  bool is_constant(Poly p, int64_t* c) const;
  int64_t constant_term(Poly p) const;

  int compare_atoms(Atom a, Atom b) const;
  int compare_monos(Mono a, Mono b) const;
  int compare_dims(regie_dim a, regie_dim b) const;

  Atom make_atom(AtomRep rep);
  Mono make_mono(std::vector<Factor> factors);
  Poly make_poly(Mono mono, int64_t coef, Poly left, Poly right);
  Poly of_atom(Atom atom) { return make_poly(make_mono({{atom, 1}}), 1, 0, 0); }
  Poly of_operation(uint32_t op, std::vector<regie_dim> operands);
  Mono multiply_monos(Mono a, Mono b);
  bool divide_monos(Mono a, Mono b, Mono* quotient);  // false if b does not divide a
  Mono common_mono(Mono a, Mono b);

  Pieces split(Poly p, Mono at);
  Poly join(Poly left, Poly right);
  Poly add(Poly a, Poly b);
  Poly scale(Poly p, int64_t by);
  Poly subtract(Poly a, Poly b) { return add(a, scale(b, -1)); }
  Poly multiply(Poly a, Poly b);
  Poly build(std::span<const Term> terms);
  std::vector<Term> terms(Poly p) const;  // in order: degree first, then names; the constant last
  std::vector<Term> dim_terms(regie_dim d) const;

  Interval range(Poly p);
  Interval dim_range(regie_dim d) { return d >= 0 ? Interval{d, d} : range(static_cast<Poly>(-d)); }
  Interval atom_range(Atom a);
  Interval mono_range(Mono m);

  // ---- dim_simplify.cpp ----
  Poly divide(uint32_t op, Poly a, Poly b);  // REGIE_DIM_FLOORDIV or CEILDIV
  Poly divide_by_constant(Poly a, int64_t b);
  Poly divide_by_symbols(uint32_t op, Poly a, Poly b);
  Poly modulo(Poly a, Poly b);
  Poly modulo_constant(Poly a, int64_t b);
  Poly least_or_greatest(uint32_t op, Poly a, Poly b);
  // a == b * quotient + rest, where `rest` has no term that a single-term b divides; multi-term: all or
  // nothing.
  void take_out(Poly a, Poly b, Poly* quotient, Poly* rest);
  // Divides both by what is common to all of their terms.
  void cancel(Poly* a, Poly* b);
  // p is 1 * op(x, k) + c with a constant k > 0.
  bool is_shifted(Poly p, uint32_t op, regie_dim* x, int64_t* k, int64_t* c) const;

  std::vector<DimSymbol> symbols;
  std::map<std::string, uint32_t, std::less<>> symbol_ids;
  std::map<std::string, int64_t, std::less<>> fixed;
  std::vector<Atom> symbol_atoms;
  std::vector<AtomRep> atoms;
  std::vector<MonoRep> monos;
  std::vector<PolyRep> polys;
  uint32_t age = 1;  // grows when a symbol's range shrinks
  bool input_ranges_kept = false;
  bool failed = false;  // overflow, division by zero or a limit met by the operation under way

 private:
  struct Hash {
    const Impl* self;
    int what;
    size_t operator()(uint32_t id) const;
  };
  struct Equal {
    const Impl* self;
    int what;
    bool operator()(uint32_t a, uint32_t b) const;
  };
  using Set = std::unordered_set<uint32_t, Hash, Equal>;
  template <class Rep>
  uint32_t cons(std::vector<Rep>& reps, Set& set, Rep rep);
  Set atom_set_, mono_set_, poly_set_;
};

}  // namespace regie
