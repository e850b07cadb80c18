// The sizes that a plan with symbols is made for: what its task times, its arenas and the inputs that nobody
// gives are those of.
#include <algorithm>

#include "ir/structural.h"
#include "passes/compile_state.h"
#include "passes/typical.h"

namespace regie {

namespace {

class ReferenceSizes {
 public:
  ReferenceSizes(CompileState* state, std::vector<std::optional<int64_t>> wanted)
      : state_(*state),
        g_(*state->graph),
        dims_(state->graph->dims()),
        values_(state->symbol_values),
        wanted_(std::move(wanted)) {
    for (uint32_t v = 0; v < g_.value_count(); ++v)
      if (g_.live_value(v))
        for (int32_t d = 0; d < g_.value(v).type.rank; ++d)
          if (regie_dim dim = g_.value(v).type.dims[d]; dim < 0 && dim != REGIE_DIM_UNKNOWN)
            symbolic_.insert(dim);
    // What a branch needs is asked of the runs that take it.
    for (uint32_t n = g_.region(0).first; n != REGIE_NONE && !symbolic_.empty(); n = g_.node(n).next)
      if (state_.has_open_types(n) && !state_.has_late_types(n)) open_nodes_.push_back(n);
    values_.resize(dims_.symbol_count());
  }

  void find() {
    std::optional<std::vector<std::optional<int64_t>>> fallback;
    for (int64_t least : {1, 0}) {
      for (int64_t size = 1; size <= 1 << 14; size *= 2)
        if (take(size, least, &fallback)) return;
      if (!fallback) continue;
      // No power of two can be cut in three.
      for (int64_t size = 3; size <= kMostTried; ++size)
        if (take(size, least, &fallback)) return;
      values_ = *fallback;
      return;
    }
    for (size_t i = 0; i < values_.size(); ++i) set(i, 1);
  }

 private:
  static constexpr int64_t kMostTried = 128;

  // This size for all symbols that may have it, where every dimension comes out at `least` or more and no
  // operator refuses it; then less for those that need not have as much. `fallback`: the first that only
  // operators refuse.
  bool take(int64_t size, int64_t least, std::optional<std::vector<std::optional<int64_t>>>* fallback) {
    for (size_t i = 0; i < values_.size(); ++i) set(i, size);
    if (!fits(least)) return false;
    const bool good = all_allow();
    if (!good && *fallback) return false;
    // What data decide is a guess either way.
    for (size_t i = 0; i < values_.size() && size > 1; ++i) {
      if (dims_.symbol_at(i).data_dependent) continue;
      const auto kept = values_[i];
      set(i, 1);
      if (!fits(least) || (good && !all_allow())) values_[i] = kept;
    }
    if (!good) *fallback = values_;
    return good;
  }

  void set(size_t symbol, int64_t size) {
    if (wanted_[symbol]) size = *wanted_[symbol];
    values_[symbol] = std::clamp(size, dims_.symbol_at(symbol).lower, dims_.symbol_at(symbol).upper);
  }

  bool fits(int64_t least) const {
    return std::all_of(symbolic_.begin(), symbolic_.end(), [&](regie_dim dim) {
      auto size = dims_.evaluate(dim, values_);
      return size.ok() && *size >= least;
    });
  }

  // Those that refused something come first: they are the ones to refuse the next, too.
  bool all_allow() {
    const auto refuses = std::find_if(open_nodes_.begin(), open_nodes_.end(),
                                      [&](uint32_t n) { return !state_.ops->allows(g_, n, values_); });
    if (refuses == open_nodes_.end()) return true;
    std::rotate(open_nodes_.begin(), refuses, refuses + 1);
    return false;
  }

  CompileState& state_;
  const Graph& g_;
  const DimTable& dims_;
  std::vector<std::optional<int64_t>>& values_;
  std::vector<std::optional<int64_t>> wanted_;
  std::set<regie_dim> symbolic_;      // all that occur in types
  std::vector<uint32_t> open_nodes_;  // whose operators have a say
};

}  // namespace

Status CompileState::bind_symbols() {
  const DimTable& dims = graph->dims();
  REGIE_ASSIGN(std::vector<std::optional<int64_t>> wanted, typical_sizes(*graph, options.typical));
  // A run that leaves an input out has its default's sizes: the plan is best made for those.
  for (uint32_t i = 0; i < graph->region(0).arg_count; ++i) {
    const regie_value& v = graph->value(graph->region(0).args[i]);
    if (const Tensor* t = graph->default_of(v.id))
      for (int32_t d = 0; d < v.type.rank; ++d)
        if (const auto symbol = dims.symbol_index(v.type.dims[d]); symbol && !wanted[*symbol])
          wanted[*symbol] = t->dims()[static_cast<size_t>(d)];
  }
  symbol_said.assign(wanted.size(), false);
  for (size_t i = 0; i < wanted.size(); ++i) symbol_said[i] = wanted[i].has_value();
  ReferenceSizes(this, std::move(wanted)).find();
  return {};
}

}  // namespace regie
