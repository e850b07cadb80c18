#include "base/dim.h"

#include <algorithm>
#include <cassert>

#include "base/dim_impl.h"

namespace regie {

DimTable::DimTable() : impl_(std::make_unique<Impl>()) {}
DimTable::~DimTable() = default;

regie_dim DimTable::symbol(std::string_view name, int64_t lower, int64_t upper, bool data_dependent) {
  Impl& t = *impl_;
  if (auto it = t.fixed.find(name); it != t.fixed.end())
    return it->second < lower || it->second > upper ? REGIE_DIM_UNKNOWN : it->second;
  if (auto it = t.symbol_ids.find(name); it != t.symbol_ids.end()) {
    DimSymbol& s = t.symbols[it->second];
    const int64_t low = std::max(s.lower, lower), high = std::min(s.upper, upper);
    if (low > high) return REGIE_DIM_UNKNOWN;
    if (t.input_ranges_kept && !s.data_dependent && !data_dependent)
      return t.to_dim(t.of_atom(t.symbol_atoms[it->second]));
    if (low != s.lower || high != s.upper) ++t.age;
    s.lower = low;
    s.upper = high;
    s.data_dependent |= data_dependent;
    return t.to_dim(t.of_atom(t.symbol_atoms[it->second]));
  }
  if (lower > upper) return REGIE_DIM_UNKNOWN;
  const auto id = static_cast<uint32_t>(t.symbols.size());
  t.symbols.push_back({std::string(name), lower, upper, data_dependent});
  t.symbol_ids.emplace(name, id);
  Impl::AtomRep atom;
  atom.symbol = id;
  t.symbol_atoms.push_back(t.make_atom(std::move(atom)));
  return t.to_dim(t.of_atom(t.symbol_atoms.back()));
}

void DimTable::keep_input_ranges(bool on) { impl_->input_ranges_kept = on; }

void DimTable::fix_symbol(std::string name, int64_t value) {
  assert(value >= 0 && !find_symbol(name));
  impl_->fixed.emplace(std::move(name), value);
}

std::optional<regie_dim> DimTable::find_symbol(std::string_view name) const {
  if (auto it = impl_->fixed.find(name); it != impl_->fixed.end()) return it->second;
  const auto it = impl_->symbol_ids.find(name);
  if (it == impl_->symbol_ids.end()) return std::nullopt;
  return impl_->to_dim(impl_->of_atom(impl_->symbol_atoms[it->second]));
}

regie_dim DimTable::op(uint32_t op, regie_dim a, regie_dim b) {
  Impl& t = *impl_;
  if (!t.valid(a) || !t.valid(b)) return REGIE_DIM_UNKNOWN;
  if (a >= 0 && b >= 0) {
    int64_t r;
    if (op == REGIE_DIM_ADD && !__builtin_add_overflow(a, b, &r)) return r;
    if (op == REGIE_DIM_MUL && !__builtin_mul_overflow(a, b, &r)) return r;
    if (op == REGIE_DIM_SUB && a >= b) return a - b;
    if (op == REGIE_DIM_MIN) return std::min(a, b);
    if (op == REGIE_DIM_MAX) return std::max(a, b);
  }
  t.failed = false;
  const Impl::Poly x = t.to_poly(a), y = t.to_poly(b);
  Impl::Poly result = 0;
  switch (op) {
    case REGIE_DIM_ADD:
      result = t.add(x, y);
      break;
    case REGIE_DIM_SUB:
      result = t.subtract(x, y);
      break;
    case REGIE_DIM_MUL:
      result = t.multiply(x, y);
      break;
    case REGIE_DIM_FLOORDIV:
    case REGIE_DIM_CEILDIV:
      result = t.divide(op, x, y);
      break;
    case REGIE_DIM_MOD:
      result = t.modulo(x, y);
      break;
    case REGIE_DIM_MIN:
    case REGIE_DIM_MAX:
      result = t.least_or_greatest(op, x, y);
      break;
    default:
      return REGIE_DIM_UNKNOWN;
  }
  return t.failed ? REGIE_DIM_UNKNOWN : t.to_dim(result);
}

regie_dim DimTable::product(std::span<const regie_dim> dims) {
  regie_dim p = 1;
  for (regie_dim d : dims) p = mul(p, d);
  return p;
}

std::pair<int64_t, int64_t> DimTable::range(regie_dim dim) const {
  if (!impl_->valid(dim)) return {INT64_MIN, INT64_MAX};
  return impl_->dim_range(dim);
}

size_t DimTable::symbol_count() const { return impl_->symbols.size(); }

const DimSymbol& DimTable::symbol_at(size_t index) const {
  assert(index < impl_->symbols.size());
  return impl_->symbols[index];
}

std::optional<size_t> DimTable::symbol_index(regie_dim dim) const {
  const Impl& t = *impl_;
  if (dim >= 0 || !t.valid(dim)) return std::nullopt;
  const Impl::PolyRep& p = t.polys[static_cast<size_t>(-dim)];
  if (p.count != 1 || p.coef != 1 || t.monos[p.mono].degree != 1) return std::nullopt;
  const Impl::AtomRep& atom = t.atoms[t.monos[p.mono].factors[0].atom];
  if (atom.op != 0) return std::nullopt;
  return atom.symbol;
}

void DimTable::visit_symbols(regie_dim dim, const std::function<void(size_t)>& f) const {
  const Impl& t = *impl_;
  if (dim >= 0 || !t.valid(dim)) return;
  std::vector<regie_dim> open{dim};
  std::unordered_set<uint32_t> seen;
  std::vector<size_t> found;
  while (!open.empty()) {
    const regie_dim d = open.back();
    open.pop_back();
    for (const Impl::Term& term : t.dim_terms(d))
      for (const Impl::Factor& factor : t.monos[term.mono].factors) {
        if (!seen.insert(factor.atom).second) continue;
        const Impl::AtomRep& atom = t.atoms[factor.atom];
        if (atom.op == 0) found.push_back(atom.symbol);
        open.insert(open.end(), atom.operands.begin(), atom.operands.end());
      }
  }
  std::sort(found.begin(), found.end());
  for (size_t symbol : found) f(symbol);
}

}  // namespace regie
