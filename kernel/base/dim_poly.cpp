#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/dim_impl.h"

namespace regie {

namespace {

enum { kAtom, kMono, kPoly };

// A bijection on 64 bits, so that priorities of different monomials differ.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t add_size(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;

int64_t bound_add(int64_t a, int64_t b, int64_t unbounded) {
  if (a == unbounded || b == unbounded) return unbounded;
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? kLow : kHigh;
}

int64_t bound_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t product;
  const bool unbounded = a == kLow || a == kHigh || b == kLow || b == kHigh;
  if (!unbounded && !__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? kHigh : kLow;
}

int64_t bound_floor_div(int64_t a, int64_t b) {
  const bool a_unbounded = a == kLow || a == kHigh, b_unbounded = b == kLow || b == kHigh;
  const bool negative = a != 0 && (a < 0) != (b < 0);
  if (b_unbounded) return negative ? -1 : 0;
  if (a_unbounded) return negative ? kLow : kHigh;
  return floor_div(a, b);
}

Interval corners(Interval a, Interval b, int64_t (*f)(int64_t, int64_t)) {
  const int64_t v[] = {f(a.first, b.first), f(a.first, b.second), f(a.second, b.first),
                       f(a.second, b.second)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

int64_t negated(int64_t v) { return v == kLow ? kHigh : v == kHigh ? kLow : -v; }

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Interval interval_add(Interval a, Interval b) {
  return {bound_add(a.first, b.first, kLow), bound_add(a.second, b.second, kHigh)};
}

Interval interval_mul(Interval a, Interval b) { return corners(a, b, bound_mul); }

Interval interval_power(Interval a, uint32_t exponent) {
  Interval r{1, 1};
  for (uint32_t i = 0; i < exponent; ++i) r = interval_mul(r, a);
  if (exponent % 2 == 0 && r.first < 0) r.first = 0;
  return r;
}

Interval interval_divide(uint32_t op, Interval a, Interval b) {
  if (op == REGIE_DIM_CEILDIV) {
    const Interval r = interval_divide(REGIE_DIM_FLOORDIV, {negated(a.second), negated(a.first)}, b);
    return {negated(r.second), negated(r.first)};
  }
  // The quotient is monotone in the divisor on either side of zero.
  Interval result{kHigh, kLow};
  auto include = [&](Interval divisor) {
    if (divisor.first > divisor.second) return;
    const Interval r = corners(a, divisor, bound_floor_div);
    result = {std::min(result.first, r.first), std::max(result.second, r.second)};
  };
  include({std::max<int64_t>(b.first, 1), b.second});
  include({b.first, std::min<int64_t>(b.second, -1)});
  return result.first > result.second ? Interval{kLow, kHigh} : result;
}

Interval interval_mod(Interval a, Interval b) {
  if (b.first > 0 && a.first >= 0) {
    if (a.second < b.first) return a;
    return {0, std::min(a.second, b.second == kHigh ? kHigh : b.second - 1)};
  }
  return {b.first >= 0      ? 0
          : b.first == kLow ? kLow
                            : b.first + 1,
          b.second <= 0       ? 0
          : b.second == kHigh ? kHigh
                              : b.second - 1};
}

// ---- Hash-consing
// ------------------------------------------------------------------------------------------------

DimTable::Impl::Impl()
    : atom_set_(16, Hash{this, kAtom}, Equal{this, kAtom}),
      mono_set_(16, Hash{this, kMono}, Equal{this, kMono}),
      poly_set_(16, Hash{this, kPoly}, Equal{this, kPoly}) {
  monos.emplace_back();
  mono_set_.insert(0);
  polys.emplace_back();
}

size_t DimTable::Impl::Hash::operator()(uint32_t id) const {
  uint64_t h = 0;
  auto feed = [&h](uint64_t v) { h = mix(h ^ v); };
  if (what == kAtom) {
    const AtomRep& a = self->atoms[id];
    feed(a.op);
    feed(a.symbol);
    for (regie_dim d : a.operands) feed(static_cast<uint64_t>(d));
  } else if (what == kMono) {
    for (const Factor& f : self->monos[id].factors) feed(uint64_t{f.atom} << 32 | f.exponent);
  } else {
    const PolyRep& p = self->polys[id];
    feed(uint64_t{p.left} << 32 | p.right);
    feed(p.mono);
    feed(static_cast<uint64_t>(p.coef));
  }
  return h;
}

bool DimTable::Impl::Equal::operator()(uint32_t x, uint32_t y) const {
  if (what == kAtom) {
    const AtomRep &a = self->atoms[x], &b = self->atoms[y];
    return a.op == b.op && a.symbol == b.symbol && a.operands == b.operands;
  }
  if (what == kMono) return self->monos[x].factors == self->monos[y].factors;
  const PolyRep &a = self->polys[x], &b = self->polys[y];
  return a.mono == b.mono && a.coef == b.coef && a.left == b.left && a.right == b.right;
}

// The candidate is put in place first, so that the set can look at it by number; a known one takes it away
// again.
template <class Rep>
uint32_t DimTable::Impl::cons(std::vector<Rep>& reps, Set& set, Rep rep) {
  const auto id = static_cast<uint32_t>(reps.size());
  reps.push_back(std::move(rep));
  const auto [it, inserted] = set.insert(id);
  if (!inserted) reps.pop_back();
  return *it;
}

DimTable::Impl::Atom DimTable::Impl::make_atom(AtomRep rep) {
  for (regie_dim d : rep.operands) {
    if (d >= 0) {
      rep.size = add_size(rep.size, 1);
      continue;
    }
    rep.depth = std::max(rep.depth, polys[static_cast<size_t>(-d)].depth + 1);
    rep.size = add_size(rep.size, polys[static_cast<size_t>(-d)].size);
  }
  if (rep.depth > kMaxDepth || rep.size > kMaxSize) failed = true;
  return cons(atoms, atom_set_, std::move(rep));
}

DimTable::Impl::Mono DimTable::Impl::make_mono(std::vector<Factor> factors) {
  MonoRep rep;
  for (const Factor& f : factors) {
    rep.degree += f.exponent;
    rep.depth = std::max(rep.depth, atoms[f.atom].depth);
    rep.size = add_size(rep.size, atoms[f.atom].size * f.exponent);
  }
  if (rep.degree > kMaxDegree) failed = true;
  rep.factors = std::move(factors);
  return cons(monos, mono_set_, std::move(rep));
}

DimTable::Impl::Poly DimTable::Impl::make_poly(Mono mono, int64_t coef, Poly left, Poly right) {
  assert(coef != 0);
  PolyRep rep;
  rep.mono = mono;
  rep.coef = coef;
  rep.left = left;
  rep.right = right;
  rep.count = polys[left].count + polys[right].count + 1;
  rep.depth = std::max({monos[mono].depth, polys[left].depth, polys[right].depth});
  rep.size = add_size(add_size(polys[left].size, polys[right].size), monos[mono].size + 2);
  if (rep.size > kMaxSize) failed = true;
  return cons(polys, poly_set_, std::move(rep));
}

DimTable::Impl::Poly DimTable::Impl::of_operation(uint32_t op, std::vector<regie_dim> operands) {
  AtomRep rep;
  rep.op = op;
  rep.operands = std::move(operands);
  const Atom atom = make_atom(std::move(rep));
  const Interval r = atom_range(atom);
  // Division of a bounded thing often has one answer.
  if (r.first == r.second && r.first != kLow && r.first != kHigh) return constant(r.first);
  return of_atom(atom);
}

// ---- Order
// ------------------------------------------------------------------------------------------------------- By
// names and structure alone, so that an expression prints the same in every table. Recursion is bounded by
// kMaxDepth.

int DimTable::Impl::compare_atoms(Atom x, Atom y) const {
  if (x == y) return 0;
  const AtomRep &a = atoms[x], &b = atoms[y];
  if (a.op != b.op) return a.op < b.op ? -1 : 1;
  if (a.op == 0) return symbols[a.symbol].name < symbols[b.symbol].name ? -1 : 1;
  if (a.operands.size() != b.operands.size()) return a.operands.size() < b.operands.size() ? -1 : 1;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (int c = compare_dims(a.operands[i], b.operands[i]); c != 0) return c;
  return 0;
}

// Graded lexicographic: what has the higher degree comes first, then what has more of the earlier atom.
int DimTable::Impl::compare_monos(Mono x, Mono y) const {
  if (x == y) return 0;
  const MonoRep &a = monos[x], &b = monos[y];
  if (a.degree != b.degree) return a.degree > b.degree ? -1 : 1;
  for (size_t i = 0; i < std::min(a.factors.size(), b.factors.size()); ++i) {
    if (int c = compare_atoms(a.factors[i].atom, b.factors[i].atom); c != 0) return c;
    if (a.factors[i].exponent != b.factors[i].exponent)
      return a.factors[i].exponent > b.factors[i].exponent ? -1 : 1;
  }
  return 0;
}

int DimTable::Impl::compare_dims(regie_dim x, regie_dim y) const {
  if (x == y) return 0;
  const std::vector<Term> a = dim_terms(x), b = dim_terms(y);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (int c = compare_monos(a[i].mono, b[i].mono); c != 0) return c;
    if (a[i].coef != b[i].coef) return a[i].coef < b[i].coef ? -1 : 1;
  }
  return a.size() < b.size() ? -1 : 1;
}

// ---- Polynomials
// -------------------------------------------------------------------------------------------------

regie_dim DimTable::Impl::to_dim(Poly p) const {
  int64_t c;
  if (is_constant(p, &c) && c >= 0) return c;
  return -static_cast<regie_dim>(p);
}

bool DimTable::Impl::is_constant(Poly p, int64_t* c) const {
  if (p == 0) {
    *c = 0;
    return true;
  }
  if (polys[p].count != 1 || polys[p].mono != 0) return false;
  *c = polys[p].coef;
  return true;
}

int64_t DimTable::Impl::constant_term(Poly p) const {
  if (p == 0) return 0;
  while (polys[p].right != 0) p = polys[p].right;
  return polys[p].mono == 0 ? polys[p].coef : 0;
}

std::vector<DimTable::Impl::Term> DimTable::Impl::terms(Poly p) const {
  std::vector<Term> list;
  list.reserve(polys[p].count);
  std::vector<Poly> above;
  while (p != 0 || !above.empty()) {
    for (; p != 0; p = polys[p].left) above.push_back(p);
    p = above.back();
    above.pop_back();
    list.push_back({polys[p].mono, polys[p].coef});
    p = polys[p].right;
  }
  return list;
}

std::vector<DimTable::Impl::Term> DimTable::Impl::dim_terms(regie_dim d) const {
  if (d == 0) return {};
  if (d > 0) return {{0, d}};
  return terms(static_cast<Poly>(-d));
}

DimTable::Impl::Pieces DimTable::Impl::split(Poly p, Mono at) {
  if (p == 0) return {0, 0, 0};
  const PolyRep rep = polys[p];
  const int order = compare_monos(at, rep.mono);
  if (order == 0) return {rep.left, rep.right, rep.coef};
  if (order < 0) {
    Pieces s = split(rep.left, at);
    s.right = make_poly(rep.mono, rep.coef, s.right, rep.right);
    return s;
  }
  Pieces s = split(rep.right, at);
  s.left = make_poly(rep.mono, rep.coef, rep.left, s.left);
  return s;
}

DimTable::Impl::Poly DimTable::Impl::join(Poly left, Poly right) {
  if (left == 0) return right;
  if (right == 0) return left;
  const PolyRep l = polys[left], r = polys[right];
  if (mix(l.mono) > mix(r.mono)) return make_poly(l.mono, l.coef, l.left, join(l.right, right));
  return make_poly(r.mono, r.coef, join(left, r.left), r.right);
}

DimTable::Impl::Poly DimTable::Impl::add(Poly a, Poly b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (mix(polys[a].mono) < mix(polys[b].mono)) std::swap(a, b);
  const PolyRep top = polys[a];
  const Pieces other = split(b, top.mono);
  int64_t coef;
  if (__builtin_add_overflow(top.coef, other.coef, &coef)) {
    failed = true;
    return a;
  }
  const Poly left = add(top.left, other.left), right = add(top.right, other.right);
  return coef == 0 ? join(left, right) : make_poly(top.mono, coef, left, right);
}

DimTable::Impl::Poly DimTable::Impl::scale(Poly p, int64_t by) {
  if (p == 0 || by == 0) return 0;
  if (by == 1) return p;
  const PolyRep rep = polys[p];
  int64_t coef;
  if (__builtin_mul_overflow(rep.coef, by, &coef)) {
    failed = true;
    return p;
  }
  const Poly left = scale(rep.left, by), right = scale(rep.right, by);
  return make_poly(rep.mono, coef, left, right);
}

DimTable::Impl::Poly DimTable::Impl::build(std::span<const Term> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0].coef == 0 ? 0 : make_poly(terms[0].mono, terms[0].coef, 0, 0);
  const size_t half = terms.size() / 2;
  const Poly left = build(terms.subspan(0, half));
  return add(left, build(terms.subspan(half)));
}

DimTable::Impl::Poly DimTable::Impl::multiply(Poly a, Poly b) {
  int64_t c;
  if (is_constant(a, &c)) return scale(b, c);
  if (is_constant(b, &c)) return scale(a, c);
  if (uint64_t{polys[a].count} * polys[b].count > kMaxExpansion) {
    regie_dim x = to_dim(a), y = to_dim(b);
    if (compare_dims(x, y) > 0) std::swap(x, y);
    return of_operation(REGIE_DIM_MUL, {x, y});
  }
  std::vector<Term> products;
  const std::vector<Term> left = terms(a), right = terms(b);
  products.reserve(left.size() * right.size());
  for (const Term& l : left)
    for (const Term& r : right) {
      Term t{multiply_monos(l.mono, r.mono), 0};
      if (__builtin_mul_overflow(l.coef, r.coef, &t.coef)) failed = true;
      products.push_back(t);
    }
  return build(products);
}

DimTable::Impl::Mono DimTable::Impl::multiply_monos(Mono x, Mono y) {
  if (x == 0) return y;
  if (y == 0) return x;
  const std::vector<Factor>&a = monos[x].factors, &b = monos[y].factors;
  std::vector<Factor> product;
  product.reserve(a.size() + b.size());
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const int order = compare_atoms(a[i].atom, b[j].atom);
    if (order < 0) {
      product.push_back(a[i++]);
    } else if (order > 0) {
      product.push_back(b[j++]);
    } else {
      product.push_back({a[i].atom, a[i].exponent + b[j].exponent});
      ++i, ++j;
    }
  }
  product.insert(product.end(), a.begin() + static_cast<ptrdiff_t>(i), a.end());
  product.insert(product.end(), b.begin() + static_cast<ptrdiff_t>(j), b.end());
  return make_mono(std::move(product));
}

bool DimTable::Impl::divide_monos(Mono x, Mono y, Mono* quotient) {
  if (monos[y].degree > monos[x].degree) return false;
  const std::vector<Factor>& b = monos[y].factors;
  std::vector<Factor> rest;
  size_t j = 0;
  for (const Factor& f : monos[x].factors) {
    if (j < b.size() && b[j].atom == f.atom) {
      if (b[j].exponent > f.exponent) return false;
      if (b[j].exponent < f.exponent) rest.push_back({f.atom, f.exponent - b[j].exponent});
      ++j;
    } else {
      rest.push_back(f);
    }
  }
  if (j < b.size()) return false;
  *quotient = make_mono(std::move(rest));
  return true;
}

DimTable::Impl::Mono DimTable::Impl::common_mono(Mono x, Mono y) {
  std::vector<Factor> common;
  const std::vector<Factor>& b = monos[y].factors;
  for (const Factor& f : monos[x].factors)
    for (const Factor& g : b)
      if (f.atom == g.atom) common.push_back({f.atom, std::min(f.exponent, g.exponent)});
  return make_mono(std::move(common));
}

// ---- Ranges
// ------------------------------------------------------------------------------------------------------

Interval DimTable::Impl::range(Poly p) {
  if (p == 0) return {0, 0};
  if (polys[p].range_age == age) return polys[p].range;
  const PolyRep rep = polys[p];
  Interval r = interval_mul(mono_range(rep.mono), {rep.coef, rep.coef});
  r = interval_add(interval_add(range(rep.left), r), range(rep.right));
  polys[p].range = r;
  polys[p].range_age = age;
  return r;
}

Interval DimTable::Impl::mono_range(Mono m) {
  Interval r{1, 1};
  for (const Factor& f : monos[m].factors)
    r = interval_mul(r, interval_power(atom_range(f.atom), f.exponent));
  return r;
}

Interval DimTable::Impl::atom_range(Atom atom) {
  const AtomRep& a = atoms[atom];
  if (a.op == 0) return {symbols[a.symbol].lower, symbols[a.symbol].upper};
  Interval r = dim_range(a.operands[0]);
  for (size_t i = 1; i < a.operands.size(); ++i) {
    const Interval b = dim_range(a.operands[i]);
    switch (a.op) {
      case REGIE_DIM_MUL:
        r = interval_mul(r, b);
        break;
      case REGIE_DIM_FLOORDIV:
      case REGIE_DIM_CEILDIV:
        r = interval_divide(a.op, r, b);
        break;
      case REGIE_DIM_MOD:
        r = interval_mod(r, b);
        break;
      case REGIE_DIM_MIN:
        r = {std::min(r.first, b.first), std::min(r.second, b.second)};
        break;
      default:
        r = {std::max(r.first, b.first), std::max(r.second, b.second)};
        break;
    }
  }
  return r;
}

}  // namespace regie
