// From a program and shapes to a PointwiseRun: where values lie, and how tiles are cut.
#include <algorithm>

#include "formats.h"
#include "pointwise_run.h"

namespace host_cpu {

using regie::sdk::Failure;

namespace {

constexpr int64_t kMostTile = 2048;        // elements
constexpr int64_t kLongRow = 256;          // tiles are cut from such rows, and hold several shorter ones
constexpr int64_t kCacheBytes = 24 << 10;  // of registers, so that operands and results have room beside them
constexpr double kNsAnAddition = 0.05;     // per element, in the first-level cache
constexpr double kBytesANs = 12;           // of memory, one thread
constexpr double kParallelNs = 20e3;       // what is quicker is left to one thread

[[noreturn]] void bad(const std::string& why) {
  throw Failure(REGIE_INVALID_INPUT, "element-wise kernel: " + why);
}

}  // namespace

PointwiseRun::PointwiseRun(const regie::sdk::WordCatcher& catcher, const PointwiseProgram& program,
                           const PrepareRequest& request, uint32_t threads)
    : catcher_(catcher), program_(program), plan_(plan_pointwise(program)) {
  if (request.operand_count != program.operands.size() || request.result_count != program.results.size())
    bad("it has another number of operands or results than it was compiled for");
  if (plan_.value_count > kMostValues)
    refuse("an element-wise kernel of more than " + std::to_string(kMostValues) + " values");
  values_.resize(plan_.value_count);
  for (uint32_t v = 0; v < plan_.value_count; ++v)
    values_[v].elem =
        v < program.value_count() ? program.elem(v) : plan_.more_constants[v - program.value_count()].elem;
  rename_axes(request);
  const PrepareRequest physical{physical_operands_.data(), request.operand_count, physical_results_.data(),
                                request.result_count};
  merge_dimensions(physical);
  place_operands();
  place_results(physical);
  give_slots();
  choose_tiles(threads);
  prepare_calls();
}

// All results have one format. An operand has it too, or is row-major with bytes that lie alike in both, as
// one element or one for each channel do.
void PointwiseRun::rename_axes(const PrepareRequest& r) {
  physical_operands_.assign(r.operands, r.operands + r.operand_count);
  physical_results_.assign(r.results, r.results + r.result_count);
  if (program_.formats.all_plain()) return;
  regie_format format = kPlainFormat;
  size_t rank = 0;
  for (uint32_t i = 0; i < r.result_count; ++i) {
    if (r.results[i].elem == REGIE_ELEM_UNKNOWN) continue;
    format = program_.formats.results[i];
    rank = static_cast<size_t>(r.results[i].rank);
  }
  physical_dims_.reserve(r.operand_count + r.result_count);
  auto rename = [&](regie_tensor& t, regie_format own) {
    if (t.elem == REGIE_ELEM_UNKNOWN) return;
    if (t.rank > static_cast<int32_t>(rank)) bad("an operand has more dimensions than the result");
    std::vector<int64_t> dims(rank, 1);
    std::copy(t.dims, t.dims + t.rank, dims.end() - t.rank);
    if (own != format && !same_order(dims, own, format))
      refuse("an operand's format differs from the result's");
    physical_dims_.push_back(physical_dims(dims, format));
    t.rank = static_cast<int32_t>(physical_dims_.back().size());
    t.dims = physical_dims_.back().data();
  };
  for (uint32_t i = 0; i < r.operand_count; ++i) rename(physical_operands_[i], program_.formats.operands[i]);
  for (uint32_t i = 0; i < r.result_count; ++i) rename(physical_results_[i], program_.formats.results[i]);
}

// Axes over which every tensor goes on alike become one.
void PointwiseRun::merge_dimensions(const PrepareRequest& r) {
  const regie_tensor* shape = nullptr;
  for (uint32_t i = 0; i < r.result_count; ++i)
    if (r.results[i].elem != REGIE_ELEM_UNKNOWN) shape = &r.results[i];
  if (!shape) bad("it has no result");
  const auto dims = regie::sdk::dims_of(*shape);
  if (dims.size() > kMostRank) refuse("a tensor of more than 16 dimensions");
  elements_ = regie::sdk::count_of(*shape);
  for (uint32_t i = 0; i < r.result_count; ++i) {
    const regie_tensor& t = r.results[i];
    if (t.elem == REGIE_ELEM_UNKNOWN) continue;
    if (t.strides || !std::equal(dims.begin(), dims.end(), t.dims, t.dims + t.rank))
      bad("its results have different shapes");
    if (program_.results[i] == REGIE_NONE || t.elem != program_.elem(program_.results[i]))
      bad("a result is of another type than it was compiled for");
  }
  // Strides by axis, of each operand; then merged from the last axis on.
  std::vector<std::vector<int64_t>> strides(r.operand_count);
  std::vector<bool> present(r.operand_count, false);
  for (uint32_t i = 0; i < r.operand_count; ++i) {
    const regie_tensor& t = r.operands[i];
    if (t.elem != program_.operands[i]) bad("an operand is of another type than it was compiled for");
    if (t.elem == REGIE_ELEM_UNKNOWN) continue;
    present[i] = true;
    if (t.strides) refuse("a strided operand");
    if (t.rank > static_cast<int32_t>(dims.size())) bad("an operand has more dimensions than the result");
    const size_t skip = dims.size() - static_cast<size_t>(t.rank);
    strides[i].assign(dims.size(), 0);
    int64_t stride = 1;
    for (size_t axis = dims.size(); axis-- > skip;) {
      const int64_t n = t.dims[axis - skip];
      if (n != dims[axis] && n != 1) bad("an operand cannot be broadcast to the result");
      strides[i][axis] = n == 1 ? 0 : stride;
      stride *= n;
    }
  }
  std::vector<std::vector<int64_t>> merged(r.operand_count);
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 1) continue;
    bool joins = !dims_.empty();
    for (uint32_t i = 0; joins && i < r.operand_count; ++i)
      joins = !present[i] || strides[i][axis] == merged[i].back() * dims_.back();
    if (!joins) dims_.push_back(1);
    for (uint32_t i = 0; !joins && i < r.operand_count; ++i)
      if (present[i]) merged[i].push_back(strides[i][axis]);
    dims_.back() *= dims[axis];
  }
  if (dims_.empty()) {
    dims_.push_back(1);
    for (uint32_t i = 0; i < r.operand_count; ++i)
      if (present[i]) merged[i].push_back(0);
  }
  std::reverse(dims_.begin(), dims_.end());
  for (uint32_t i = 0; i < r.operand_count; ++i) {
    if (!present[i]) continue;
    std::reverse(merged[i].begin(), merged[i].end());
    Feed f{i, true, false, false, std::move(merged[i])};
    int64_t dense = 1;
    for (size_t d = dims_.size(); d-- > 0; dense *= dims_[d])
      f.full &= f.strides[d] == dense || dims_[d] == 1;
    feeds_.push_back(std::move(f));
  }
  row_ = dims_.back();
  rows_ = row_ ? elements_ / row_ : 0;
  flat_ = dims_.size() == 1;
}

template <class F>
void PointwiseRun::each_read(const PointwiseInstruction& i, F&& f) const {
  if (i.loop) {
    for (uint32_t v : i.operands)
      if (v != REGIE_NONE) f(v);
  } else {
    for (uint32_t v : program_.steps[i.step].operands)
      if (v != REGIE_NONE) f(plan_.same_as[v]);
  }
}

// Which operands are read where they lie, which go through a register.
void PointwiseRun::place_operands() {
  std::vector<bool> read(plan_.value_count, false);
  for (const PointwiseInstruction& i : plan_.instructions) each_read(i, [&](uint32_t v) { read[v] = true; });
  for (uint32_t v : program_.results)
    if (v != REGIE_NONE) read[plan_.same_as[v]] = true;

  std::vector<Feed> kept;
  for (Feed& f : feeds_) {
    if (!read[f.value]) continue;
    Value& v = values_[f.value];
    const bool zero = std::all_of(f.strides.begin(), f.strides.end(), [](int64_t s) { return s == 0; });
    v.uniform = zero && !(f.full && elements_ > 1);
    f.periodic = std::all_of(f.strides.begin(), f.strides.end() - 1, [](int64_t s) { return s == 0; });
    if (f.full && !v.uniform && !is_half(v.elem)) {
      v.place = Place::kDirect;
      continue;  // needs no feed
    }
    // A row of its own, long enough that it is not repeated within a tile.
    f.direct = !f.full && f.strides.back() == 1 && !is_half(v.elem) && row_ >= kLongRow;
    v.place = f.direct ? Place::kRow : Place::kSlot;
    kept.push_back(std::move(f));
  }
  feeds_ = std::move(kept);
  if (feeds_.size() > kMostFeeds) refuse("an element-wise kernel with more than 64 broadcast operands");
  // A walk over rows is needed only where a register differs from row to row.
  const bool rows = std::any_of(feeds_.begin(), feeds_.end(),
                                [&](const Feed& f) { return !f.full && !values_[f.value].uniform; });
  if (!rows) {
    flat_ = true;
    row_ = elements_;
    rows_ = 1;
  }
  for (uint32_t v = program_.first_constant(); v < plan_.value_count; ++v) {
    const bool constant = v < program_.first_step() || v >= program_.value_count();
    if (!constant || !read[v]) continue;
    values_[v].place = Place::kSlot;
    values_[v].uniform = true;
  }
}

bool PointwiseRun::reads_later(uint32_t value, size_t from) const {
  bool found = false;
  for (size_t k = from; k < plan_.instructions.size(); ++k)
    each_read(plan_.instructions[k], [&](uint32_t v) { found |= v == value; });
  return found;
}

// A result is written by the loop that computes it. If the launch puts it over an operand that a later loop
// still reads, it goes through a register after all.
void PointwiseRun::place_results(const PrepareRequest& request) {
  for (const PointwiseInstruction& i : plan_.instructions) values_[i.result].place = Place::kSlot;
  for (uint32_t r = 0; r < program_.results.size(); ++r) {
    if (request.results[r].elem == REGIE_ELEM_UNKNOWN) continue;
    Output o{r, plan_.same_as[program_.results[r]], false, {}};
    Value& v = values_[o.value];
    const bool step = o.value >= program_.first_step() && o.value < program_.value_count();
    o.stored = !step || v.place != Place::kSlot || is_half(v.elem);
    if (!o.stored) {
      v.place = Place::kResult;
      size_t first = 0;
      while (plan_.instructions[first].result != o.value) ++first;
      for (uint32_t operand = 0; operand < program_.operands.size(); ++operand)
        if (values_[operand].place == Place::kDirect) {
          bool conflicts = reads_later(operand, first + 1);
          for (uint32_t other : program_.results)
            conflicts |= other != REGIE_NONE && plan_.same_as[other] == operand;
          if (conflicts) o.conflicts.push_back(operand);
        }
    }
    outputs_.push_back(std::move(o));
  }
  in_slot_.assign(outputs_.size(), 0);
}

// Registers: for what is fed, one each; for what loops compute, from when it is made to when it is last read.
void PointwiseRun::give_slots() {
  for (Value& v : values_)
    if (v.place == Place::kSlot || v.place == Place::kResult) widest_ = std::max(widest_, lane_bytes(v.elem));
  // What a reference kernel writes is its own affair: there is room for any element.
  for (const PointwiseInstruction& i : plan_.instructions)
    if (!i.loop) widest_ = 8;
  const uint32_t first_step = program_.first_step(), end = program_.value_count();
  auto is_step = [&](uint32_t v) { return v >= first_step && v < end; };
  for (uint32_t v = 0; v < values_.size(); ++v)
    if (!is_step(v) && values_[v].place == Place::kSlot) values_[v].slot = slots_++;
  std::vector<size_t> last(values_.size(), 0);
  for (size_t k = 0; k < plan_.instructions.size(); ++k) {
    last[plan_.instructions[k].result] = k;
    each_read(plan_.instructions[k], [&](uint32_t v) { last[v] = k; });
  }
  for (const Output& o : outputs_) last[o.value] = plan_.instructions.size();
  std::vector<uint32_t> free;
  for (size_t k = 0; k < plan_.instructions.size(); ++k) {
    const PointwiseInstruction& i = plan_.instructions[k];
    // Loops work in place over what is read for the last time, if elements are of one size.
    auto release = [&](bool before) {
      each_read(i, [&](uint32_t v) {
        if (!is_step(v) || last[v] != k || values_[v].slot == REGIE_NONE || v == i.result) return;
        const bool in_place = i.loop && lane_bytes(values_[v].elem) == lane_bytes(values_[i.result].elem);
        if (in_place == before && std::find(free.begin(), free.end(), values_[v].slot) == free.end())
          free.push_back(values_[v].slot);
      });
    };
    release(true);
    Value& result = values_[i.result];
    const bool wants =
        result.place == Place::kSlot || std::any_of(outputs_.begin(), outputs_.end(), [&](const Output& o) {
          return o.value == i.result && !o.conflicts.empty();
        });
    if (wants && result.slot == REGIE_NONE) {
      if (free.empty()) free.push_back(slots_++);
      result.slot = free.back();
      free.pop_back();
    }
    release(false);
    if (last[i.result] == k && result.slot != REGIE_NONE) free.push_back(result.slot);  // nobody reads it
    std::sort(free.begin(), free.end());
    free.erase(std::unique(free.begin(), free.end()), free.end());
  }
}

void PointwiseRun::choose_tiles(uint32_t threads) {
  int64_t most = kMostTile;
  if (slots_) {
    most = std::min<int64_t>(most, kCacheBytes / (int64_t{slots_} * widest_));
    most = std::max<int64_t>(most / 64 * 64, 64);
    if (static_cast<uint64_t>(most) * slots_ * widest_ > kStackBytes)
      refuse("an element-wise kernel that needs more registers than there is room for");
  }
  if (flat_) {
    tile_ = most;
    tile_count_ = (elements_ + tile_ - 1) / tile_;
  } else if (row_ >= kLongRow || row_ > most) {  // parts of rows, of about one size
    parts_a_row_ = (row_ + most - 1) / most;
    tile_ = ((row_ + parts_a_row_ - 1) / parts_a_row_ + 15) / 16 * 16;
    tile_ = std::min(tile_, most);
    parts_a_row_ = (row_ + tile_ - 1) / tile_;
    tile_count_ = rows_ * parts_a_row_;
  } else {
    rows_a_tile_ = std::max<int64_t>(1, most / std::max<int64_t>(row_, 1));
    tile_ = rows_a_tile_ * row_;
    tile_count_ = (rows_ + rows_a_tile_ - 1) / rows_a_tile_;
  }
  slot_bytes_ = static_cast<uint32_t>(round_up(static_cast<uint64_t>(tile_) * widest_));
  double bytes = 0;
  for (const Value& v : values_)
    if (v.place == Place::kDirect || v.place == Place::kResult) bytes += lane_bytes(v.elem);
  const double ns = static_cast<double>(elements_) * std::max(plan_.cost * kNsAnAddition, bytes / kBytesANs);
  threads_ =
      ns < kParallelNs ? 1 : static_cast<uint32_t>(std::min<int64_t>(std::max(threads, 1u), tile_count_));
}

void PointwiseRun::prepare_calls() {
  calls_.resize(program_.steps.size());
  for (const PointwiseInstruction& i : plan_.instructions) {
    if (i.loop) continue;
    const PointwiseProgram::Step& step = program_.steps[i.step];
    auto reference = regie::sdk::find_reference(catcher_, step.op.op());
    if (!reference) refuse("no plug-in has a reference kernel for " + step.op.op());
    if (!(reference->flags() & REGIE_OP_ELEMENTWISE) || step.operands.size() > 16)
      refuse(step.op.op() + " is not element-wise");
    std::vector<regie_tensor> operands(step.operands.size());
    std::vector<uint32_t> places;
    auto describe = [](regie_elem e, bool uniform) {
      regie_tensor t{};
      t.elem = e;
      t.rank = uniform ? 0 : 1;
      t.dims = &kChunk;
      t.bytes = (uniform ? 1 : kChunk) * elem_bytes(e);
      return t;
    };
    bool all_uniform = true;
    for (size_t k = 0; k < step.operands.size(); ++k) {
      places.push_back(step.operands[k] == REGIE_NONE ? REGIE_NONE : plan_.same_as[step.operands[k]]);
      if (places[k] == REGIE_NONE) continue;
      all_uniform &= values_[places[k]].uniform;
      operands[k] = describe(program_.elem(step.operands[k]), values_[places[k]].uniform);
    }
    // Of constants alone: the first one stands for a whole chunk.
    if (all_uniform)
      for (size_t k = 0; k < places.size() && all_uniform; ++k)
        if (places[k] != REGIE_NONE) {
          operands[k] = describe(operands[k].elem, false);
          all_uniform = false;
        }
    const regie_tensor result = describe(step.result, false);
    const uint32_t operand_count = static_cast<uint32_t>(operands.size());
    calls_[i.step] = std::make_unique<Call>(
        Call{regie::sdk::ReferenceKernel(catcher_, *reference, step.op.op(), step.op.attrs(), operands.data(),
                                         operand_count, &result, 1),
             std::move(places),
             std::move(operands),
             result,
             {}});
    for (uint32_t t = 0; calls_[i.step]->kernel.scratch_bytes() && t < threads_; ++t)
      calls_[i.step]->scratch.push_back(make_bytes(calls_[i.step]->kernel.scratch_bytes()));
  }
}

}  // namespace host_cpu
