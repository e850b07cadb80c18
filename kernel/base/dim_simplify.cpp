// Simplification of what is no polynomial. Each step is an identity over the integers wherever the original
// has a value (a division by something that may be zero has none there), or holds by the ranges of the
// symbols.
#include <algorithm>
#include <numeric>

#include "base/dim_impl.h"

namespace regie {

namespace {

constexpr size_t kMaxLongDivision = 64;  // terms on either side

bool bounded(int64_t v) { return v != INT64_MIN && v != INT64_MAX; }

uint64_t magnitude(int64_t v) { return v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v); }

}  // namespace

bool DimTable::Impl::is_shifted(Poly p, uint32_t op, regie_dim* x, int64_t* k, int64_t* c) const {
  *c = constant_term(p);
  if (polys[p].count != (*c == 0 ? 1u : 2u)) return false;
  // Of two terms the root is either the atom, or the constant with the atom before it.
  const Poly at = polys[p].mono == 0 ? polys[p].left : p;
  if (at == 0 || polys[at].coef != 1) return false;
  const MonoRep& mono = monos[polys[at].mono];
  if (mono.factors.size() != 1 || mono.degree != 1) return false;
  const AtomRep& atom = atoms[mono.factors[0].atom];
  if (atom.op != op || atom.operands[1] <= 0) return false;
  *x = atom.operands[0];
  *k = atom.operands[1];
  return true;
}

void DimTable::Impl::take_out(Poly a, Poly b, Poly* quotient, Poly* rest) {
  *quotient = 0;
  *rest = a;
  if (polys[b].count == 1) {
    const PolyRep divisor = polys[b];
    std::vector<Term> out, left;
    for (const Term& t : terms(a)) {
      Mono m;
      if (divisor.coef != -1 && t.coef % divisor.coef != 0)
        left.push_back(t);
      else if (!divide_monos(t.mono, divisor.mono, &m))
        left.push_back(t);
      else if (divisor.coef == -1 && t.coef == INT64_MIN)
        left.push_back(t);
      else
        out.push_back({m, t.coef / divisor.coef});
    }
    if (out.empty()) return;
    *quotient = build(out);
    *rest = build(left);
    return;
  }
  // Long division by leading terms; the order of terms is a monomial order, so it ends.
  if (polys[a].count > kMaxLongDivision || polys[b].count > kMaxLongDivision) return;
  const Term lead = terms(b).front();
  Poly q = 0, r = a;
  for (size_t step = 0; r != 0; ++step) {
    if (step == kMaxLongDivision) return;
    if (failed) {
      failed = false;  // of this attempt, not of the operation
      return;
    }
    const Term top = terms(r).front();
    Mono m;
    if (lead.coef == -1 ? top.coef == INT64_MIN : top.coef % lead.coef != 0) return;
    if (!divide_monos(top.mono, lead.mono, &m)) return;
    const Poly t = make_poly(m, top.coef / lead.coef, 0, 0);
    q = add(q, t);
    r = subtract(r, multiply(t, b));
  }
  *quotient = q;
  *rest = 0;
}

void DimTable::Impl::cancel(Poly* a, Poly* b) {
  uint64_t coef = 0;
  Mono mono = 0;
  bool first = true;
  const std::vector<Term> upper = terms(*a), lower = terms(*b);
  for (const std::vector<Term>* side : {&upper, &lower})
    for (const Term& t : *side) {
      coef = std::gcd(coef, magnitude(t.coef));
      mono = first ? t.mono : common_mono(mono, t.mono);
      first = false;
    }
  const bool flip = lower.front().coef < 0;
  if ((coef <= 1 && mono == 0 && !flip) || coef > INT64_MAX) return;
  const int64_t divisor = flip ? -static_cast<int64_t>(coef) : static_cast<int64_t>(coef);
  auto reduced = [&](const std::vector<Term>& side) {
    std::vector<Term> result;
    for (const Term& t : side) {
      Mono m = 0;
      divide_monos(t.mono, mono, &m);
      if (divisor == -1 && t.coef == INT64_MIN)
        failed = true;
      else
        result.push_back({m, t.coef / divisor});
    }
    return build(result);
  };
  *a = reduced(upper);
  *b = reduced(lower);
}

DimTable::Impl::Poly DimTable::Impl::divide(uint32_t op, Poly a, Poly b) {
  int64_t divisor;
  if (!is_constant(b, &divisor)) return divide_by_symbols(op, a, b);
  if (divisor == 0 || divisor == INT64_MIN) {
    failed = true;
    return 0;
  }
  if (divisor < 0) {
    a = scale(a, -1);
    divisor = -divisor;
  }
  if (op == REGIE_DIM_CEILDIV) a = add(a, constant(divisor - 1));
  return failed ? 0 : divide_by_constant(a, divisor);
}

// floordiv(a, b), b > 0.
DimTable::Impl::Poly DimTable::Impl::divide_by_constant(Poly a, int64_t b) {
  if (b == 1) return a;
  const Interval r = range(a);
  if (bounded(r.first) && bounded(r.second) && floor_div(r.first, b) == floor_div(r.second, b))
    return constant(floor_div(r.first, b));

  // a = b * whole + rest. Coefficients are cut toward zero, which keeps the range as tight as it was; the
  // constant is cut downwards, so that floordiv(N - 1, 2) + 1 and floordiv(N + 1, 2) are one.
  std::vector<Term> whole, rest;
  int64_t shift = 0;
  uint64_t common = static_cast<uint64_t>(b);
  for (const Term& t : terms(a)) {
    if (t.mono == 0) {
      if (floor_div(t.coef, b) != 0) whole.push_back({0, floor_div(t.coef, b)});
      shift = floor_mod(t.coef, b);
      continue;
    }
    if (t.coef / b != 0) whole.push_back({t.mono, t.coef / b});
    if (t.coef % b != 0) {
      rest.push_back({t.mono, t.coef % b});
      common = std::gcd(common, magnitude(t.coef % b));
    }
  }
  const Poly quotient = build(whole);
  if (rest.empty()) return quotient;
  // floor(x / b) = floor(floor(x / g) / (b / g))
  const auto g = static_cast<int64_t>(common);
  for (Term& t : rest) t.coef /= g;
  if (shift / g != 0) rest.push_back({0, shift / g});
  const Poly inner = build(rest);
  b /= g;

  regie_dim x;
  int64_t k, c, kb, kc;
  if (is_shifted(inner, REGIE_DIM_FLOORDIV, &x, &k, &c) && !__builtin_mul_overflow(k, b, &kb) &&
      !__builtin_mul_overflow(k, c, &kc)) {
    const Poly flat = add(to_poly(x), constant(kc));
    return failed ? 0 : add(quotient, divide_by_constant(flat, kb));
  }
  return add(quotient, of_operation(REGIE_DIM_FLOORDIV, {to_dim(inner), b}));
}

DimTable::Impl::Poly DimTable::Impl::divide_by_symbols(uint32_t op, Poly a, Poly b) {
  Poly quotient, rest;
  take_out(a, b, &quotient, &rest);
  if (rest == 0 || failed) return quotient;
  const Poly before = b;
  cancel(&rest, &b);
  if (failed) return 0;
  if (b != before && polys[b].count == 1) {
    int64_t c;
    if (is_constant(b, &c)) return add(quotient, divide(op, rest, b));
  }
  return add(quotient, of_operation(op, {to_dim(rest), to_dim(b)}));
}

DimTable::Impl::Poly DimTable::Impl::modulo(Poly a, Poly b) {
  int64_t divisor;
  if (is_constant(b, &divisor)) {
    if (divisor == 0 || divisor == INT64_MIN) {
      failed = true;
      return 0;
    }
    // mod(a, -b) = -mod(-a, b)
    if (divisor > 0) return modulo_constant(a, divisor);
    const Poly negative = scale(a, -1);
    return failed ? 0 : scale(modulo_constant(negative, -divisor), -1);
  }
  Poly quotient, rest;
  take_out(a, b, &quotient, &rest);
  if (rest == 0 || failed) return 0;
  for (Poly p : {a, rest}) {
    const Interval r = range(p), d = range(b);
    if (r.first >= 0 && bounded(r.second) && r.second < d.first) return p;
  }
  return of_operation(REGIE_DIM_MOD, {to_dim(rest), to_dim(b)});
}

// mod(a, b), b > 0.
DimTable::Impl::Poly DimTable::Impl::modulo_constant(Poly a, int64_t b) {
  if (b == 1) return 0;
  auto inside = [&](Poly p) {
    const Interval r = range(p);
    return r.first >= 0 && r.second < b;
  };
  if (inside(a)) return a;
  std::vector<Term> rest;
  int64_t shift = 0;
  uint64_t common = static_cast<uint64_t>(b);
  for (const Term& t : terms(a)) {
    const int64_t coef = floor_mod(t.coef, b);
    if (t.mono == 0) {
      shift = coef;
    } else if (coef != 0) {
      rest.push_back({t.mono, coef});
      common = std::gcd(common, magnitude(coef));
    }
  }
  if (rest.empty()) return constant(shift);
  // mod(g x + c, g b) = g mod(x + floor(c / g), b) + c mod g
  const auto g = static_cast<int64_t>(common);
  for (Term& t : rest) t.coef /= g;
  if (shift / g != 0) rest.push_back({0, shift / g});
  const Poly inner = build(rest);
  b /= g;
  Poly reduced;
  regie_dim x;
  int64_t k, c;
  if (inside(inner)) {
    reduced = inner;
  } else if (is_shifted(inner, REGIE_DIM_MOD, &x, &k, &c) && k % b == 0) {
    reduced = modulo_constant(add(to_poly(x), constant(c)), b);
  } else {
    reduced = of_operation(REGIE_DIM_MOD, {to_dim(inner), b});
  }
  return add(scale(reduced, g), constant(shift % g));
}

DimTable::Impl::Poly DimTable::Impl::least_or_greatest(uint32_t op, Poly a, Poly b) {
  // The operands of nested ones of the same kind lie side by side.
  std::vector<regie_dim> operands, nested[2];
  const Poly sides[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    const PolyRep& p = polys[sides[i]];
    nested[i] = {to_dim(sides[i])};
    if (p.count != 1 || p.coef != 1 || monos[p.mono].degree != 1) continue;
    const AtomRep& atom = atoms[monos[p.mono].factors[0].atom];
    if (atom.op == op) nested[i] = atom.operands;
  }
  if (nested[0].size() + nested[1].size() > kMaxFlattened) {
    nested[0] = {to_dim(a)};
    nested[1] = {to_dim(b)};
  }
  operands = nested[0];
  operands.insert(operands.end(), nested[1].begin(), nested[1].end());

  // One that is never beyond another has no say. Of two that are always equal the earlier stays.
  std::vector<bool> idle(operands.size(), false);
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 0; j < operands.size() && !idle[i]; ++j) {
      if (i == j || idle[j]) continue;
      if (operands[i] == operands[j]) {
        idle[i] = true;
        continue;
      }
      const Poly x = to_poly(operands[i]), y = to_poly(operands[j]);
      const Interval difference = range(op == REGIE_DIM_MIN ? subtract(x, y) : subtract(y, x));
      // An overflow of the difference says nothing about the operands.
      if (!failed && difference.first >= 0) idle[i] = true;
      failed = false;
    }
  std::vector<regie_dim> kept;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!idle[i]) kept.push_back(operands[i]);
  if (kept.size() == 1) return to_poly(kept[0]);
  std::sort(kept.begin(), kept.end(), [this](regie_dim x, regie_dim y) { return compare_dims(x, y) < 0; });
  return of_operation(op, std::move(kept));
}

}  // namespace regie
