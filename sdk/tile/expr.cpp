#include <algorithm>
#include <bit>

#include "regie/plugin.hpp"
#include "regie/tile/program.h"

namespace regie::tile {

namespace {

[[noreturn]] void beyond(const char* what) {
  throw sdk::Failure(REGIE_UNSUPPORTED, std::string("a tile expression cannot hold ") + what);
}

}  // namespace

int64_t Expr::evaluate(const int64_t* variables) const {
  int64_t sum = constant;
  for (const Term& t : terms) {
    int64_t v = variables[t.variable];
    if (t.divisor != 1) v /= t.divisor;
    if (t.modulus) v %= t.modulus;
    sum += t.factor * v;
  }
  return std::clamp(sum, low, high);
}

Expr variable(uint32_t number) {
  Expr e;
  e.terms.push_back({1, 1, 0, number});
  return e;
}

Expr operator+(Expr a, const Expr& b) {
  if (b.fixed() && b.constant == 0) return a;
  if (a.fixed() && a.constant == 0) return b;
  if (a.fixed() && !b.fixed()) return b + a;
  if ((a.clamped() && !b.fixed()) || b.clamped()) beyond("a sum of which a part is clamped");
  a.constant += b.constant;
  if (a.low != kNoLow) a.low += b.constant;
  if (a.high != kNoHigh) a.high += b.constant;
  for (const Term& t : b.terms) {
    auto same = std::find_if(a.terms.begin(), a.terms.end(), [&](const Term& o) {
      return o.variable == t.variable && o.divisor == t.divisor && o.modulus == t.modulus;
    });
    if (same == a.terms.end()) {
      a.terms.push_back(t);
    } else if ((same->factor += t.factor) == 0) {
      a.terms.erase(same);
    }
  }
  return a;
}

Expr operator-(Expr a, const Expr& b) { return std::move(a) + b * -1; }

Expr operator*(Expr a, int64_t factor) {
  if (factor == 1) return a;
  if (factor == 0) return 0;
  if (a.clamped()) {
    if (factor < 0) {
      std::swap(a.low, a.high);
      a.low = a.low == kNoHigh ? kNoLow : a.low * factor;
      a.high = a.high == kNoLow ? kNoHigh : a.high * factor;
    } else {
      if (a.low != kNoLow) a.low *= factor;
      if (a.high != kNoHigh) a.high *= factor;
    }
  }
  a.constant *= factor;
  for (Term& t : a.terms) t.factor *= factor;
  return a;
}

Expr operator/(Expr a, int64_t divisor) {
  if (divisor < 1) beyond("a division by less than 1");
  if (divisor == 1) return a;
  if (a.fixed()) return a.constant >= 0 ? a.constant / divisor : -((-a.constant + divisor - 1) / divisor);
  if (a.clamped() || a.constant || a.terms.size() != 1 || a.terms[0].factor != 1 || a.terms[0].modulus)
    beyond("a quotient of anything but a variable");
  a.terms[0].divisor *= divisor;
  return a;
}

Expr operator%(Expr a, int64_t modulus) {
  if (modulus < 1) beyond("a remainder by less than 1");
  if (modulus == 1) return 0;
  if (a.fixed()) return ((a.constant % modulus) + modulus) % modulus;
  if (a.clamped() || a.constant || a.terms.size() != 1 || a.terms[0].factor != 1 || a.terms[0].modulus)
    beyond("a remainder of anything but a variable or its quotient");
  a.terms[0].modulus = modulus;
  return a;
}

Expr min(Expr a, int64_t high) { return clamp(kNoLow, high, std::move(a)); }
Expr max(Expr a, int64_t low) { return clamp(low, kNoHigh, std::move(a)); }

Expr clamp(int64_t low, int64_t high, Expr a) {
  if (low > high) beyond("a clamp whose low end is above its high end");
  if (a.fixed()) return std::clamp(a.constant, low, high);
  a.low = std::clamp(a.low, low, high);
  a.high = std::clamp(a.high, low, high);
  if (a.low == a.high) return a.low;
  return a;
}

Expr scalar(float value) { return static_cast<int64_t>(std::bit_cast<uint32_t>(value)); }

}  // namespace regie::tile
