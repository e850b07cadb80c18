#include "pointwise_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "formats.h"
#include "parallel.h"

namespace host_cpu {

using regie::sdk::Failure;

namespace {

constexpr int64_t kMostTile = 2048;        // elements
constexpr int64_t kLongRow = 256;          // tiles are cut from such rows, and hold several shorter ones
constexpr int64_t kCacheBytes = 24 << 10;  // of registers, so that operands and results have room beside them
constexpr double kNsAnAddition = 0.05;     // per element, in the first-level cache
constexpr double kBytesANs = 12;           // of memory, one thread
constexpr double kParallelNs = 20e3;       // what is quicker is left to one thread

template <class T>
void repeat(char* to, const char* from, int64_t count) {
  T value;
  std::memcpy(&value, from, sizeof value);
  std::fill_n(reinterpret_cast<T*>(to), count, value);
}
template <class T>
void gather(char* to, const char* from, int64_t stride, int64_t count) {
  T* out = reinterpret_cast<T*>(to);
  const T* in = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) out[i] = in[i * stride];
}
void copy(char* to, const char* from, int64_t stride, int64_t count, uint32_t bytes) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * bytes);
    return;
  }
  auto by = [&]<class T>(T) {
    if (stride == 0)
      repeat<T>(to, from, count);
    else
      gather<T>(to, from, stride, count);
  };
  if (bytes == 1) by(uint8_t{});
  if (bytes == 2) by(uint16_t{});
  if (bytes == 4) by(uint32_t{});
  if (bytes == 8) by(uint64_t{});
}

Loop widening(regie_elem e) {
  return find_loop(e == REGIE_F16 ? Code::kWidenF16 : Code::kWidenBf16, Lane::kF32, Lane::kF32);
}
Loop narrowing(regie_elem e) {
  return find_loop(e == REGIE_F16 ? Code::kNarrowF16 : Code::kNarrowBf16, Lane::kF32, Lane::kF32);
}
void convert(Loop loop, void* to, const void* from, int64_t count) {
  loop({to, {from, nullptr, nullptr}, count, 0, 0});
}

[[noreturn]] void bad(const std::string& why) {
  throw Failure(REGIE_INVALID_INPUT, "element-wise kernel: " + why);
}

}  // namespace

// What one thread has while it walks.
struct PointwiseRun::Thread {
  uint32_t number;
  std::array<char*, kMostValues> at;        // of each value's tile
  std::array<int64_t, kMostFeeds> offsets;  // of each feed's row
  std::array<int64_t, kMostFeeds> filled;   // the offset that its register holds
  std::array<int64_t, kMostRank> index;     // of the row
  alignas(64) std::array<char, kStackBytes> registers;
};

PointwiseRun::PointwiseRun(const regie::sdk::WordCatcher& catcher, const PointwiseProgram& program,
                           const PrepareRequest& request, uint32_t threads)
    : catcher_(catcher), program_(program), plan_(plan_pointwise(program)) {
  if (request.operand_count != program.operands.size() || request.result_count != program.results.size())
    bad("it has another number of operands or results than it was compiled for");
  if (plan_.value_count > kMostValues)
    throw Failure(REGIE_UNSUPPORTED,
                  "an element-wise kernel of more than " + std::to_string(kMostValues) + " values");
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
      throw Failure(REGIE_UNSUPPORTED, "an operand's format differs from the result's");
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
  if (dims.size() > kMostRank) throw Failure(REGIE_UNSUPPORTED, "a tensor of more than 16 dimensions");
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
    if (t.strides) throw Failure(REGIE_UNSUPPORTED, "a strided operand");
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
    Feed f{i, i, false, false, false, std::move(merged[i])};
    int64_t dense = 1;
    f.full = true;
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
      v.index = f.operand;
      continue;  // needs no feed
    }
    // A row of its own, long enough that it is not repeated within a tile.
    f.direct = !f.full && f.strides.back() == 1 && !is_half(v.elem) && row_ >= kLongRow;
    v.place = f.direct ? Place::kRow : Place::kSlot;
    v.index = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(f));
  }
  feeds_ = std::move(kept);
  if (feeds_.size() > kMostFeeds)
    throw Failure(REGIE_UNSUPPORTED, "an element-wise kernel with more than 64 broadcast operands");
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
      v.index = r;
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
      throw Failure(REGIE_UNSUPPORTED,
                    "an element-wise kernel that needs more registers than there is room for");
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
  if (static_cast<uint64_t>(slot_bytes_) * slots_ > kStackBytes)
    throw Failure(REGIE_UNSUPPORTED,
                  "an element-wise kernel that needs more registers than there is room for");
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
    if (!reference) throw Failure(REGIE_UNSUPPORTED, "no plug-in has a reference kernel for " + step.op.op());
    if (!(reference->flags() & REGIE_OP_ELEMENTWISE) || step.operands.size() > 16)
      throw Failure(REGIE_UNSUPPORTED, step.op.op() + " is not element-wise");
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

// ---- launch ----

// `count` elements of an operand from `offset` on, into a register.
void PointwiseRun::fill(const Feed& f, char* to, int64_t offset, int64_t count) const {
  const regie_elem e = values_[f.value].elem;
  const uint32_t bytes = elem_bytes(e);
  const char* from = static_cast<const char*>(launch_->operands[f.operand].data) + offset * bytes;
  const int64_t stride = f.full ? 1 : f.strides.back();
  if (!is_half(e)) return copy(to, from, stride, count, bytes);
  if (stride == 1) return convert(widening(e), to, from, count);
  if (stride == 0) {
    convert(widening(e), to, from, 1);
    return repeat<uint32_t>(to, to, count);
  }
  for (int64_t i = 0; i < count; ++i) convert(widening(e), to + 4 * i, from + 2 * i * stride, 1);
}

void PointwiseRun::start(Thread& t) const {
  for (size_t v = 0; v < values_.size(); ++v)
    t.at[v] = values_[v].slot == REGIE_NONE ? nullptr : t.registers.data() + values_[v].slot * slot_bytes_;
  const int64_t count = std::min(tile_, elements_);
  for (uint32_t v = program_.first_constant(); v < values_.size(); ++v) {
    const bool extra = v >= program_.value_count();
    if (!values_[v].uniform || values_[v].slot == REGIE_NONE || (v >= program_.first_step() && !extra))
      continue;
    const PointwiseProgram::Constant& c = extra ? plan_.more_constants[v - program_.value_count()]
                                                : program_.constants[v - program_.first_constant()];
    char element[8];
    std::memcpy(element, &c.bytes, sizeof element);
    if (is_half(c.elem)) {
      char wide[4];
      convert(widening(c.elem), wide, element, 1);
      std::memcpy(element, wide, sizeof wide);
    }
    copy(t.at[v], element, 0, count, lane_bytes(c.elem));
  }
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const Feed& f = feeds_[i];
    t.filled[i] = -1;
    if (values_[f.value].uniform) {
      fill(f, t.at[f.value], 0, count);
      continue;
    }
    if (!f.direct && !f.full && f.periodic && rows_a_tile_)
      for (int64_t r = 0; r * row_ < count; ++r)
        fill(f, t.at[f.value] + r * row_ * lane_bytes(values_[f.value].elem), 0, row_);
  }
}

void PointwiseRun::tiles(uint32_t thread, int64_t from, int64_t to) {
  Thread t;
  t.number = thread;
  start(t);
  if (flat_) {
    for (int64_t i = from; i < to && code_.load(std::memory_order_relaxed) == REGIE_OK; ++i)
      one_tile(t, i * tile_, std::min(tile_, elements_ - i * tile_));
    return;
  }
  const size_t outer = dims_.size() - 1;
  auto go_to = [&](int64_t row) {
    t.offsets.fill(0);
    for (size_t d = outer; d-- > 0; row /= dims_[d]) {
      t.index[d] = row % dims_[d];
      for (size_t f = 0; f < feeds_.size(); ++f) t.offsets[f] += t.index[d] * feeds_[f].strides[d];
    }
  };
  auto next_row = [&] {
    for (size_t d = outer; d-- > 0;) {
      for (size_t f = 0; f < feeds_.size(); ++f) t.offsets[f] += feeds_[f].strides[d];
      if (++t.index[d] < dims_[d]) return;
      for (size_t f = 0; f < feeds_.size(); ++f) t.offsets[f] -= feeds_[f].strides[d] * dims_[d];
      t.index[d] = 0;
    }
  };
  if (rows_a_tile_) {
    go_to(from * rows_a_tile_);
    for (int64_t i = from; i < to && code_.load(std::memory_order_relaxed) == REGIE_OK; ++i) {
      const int64_t rows = std::min(rows_a_tile_, rows_ - i * rows_a_tile_);
      for (int64_t r = 0; r < rows; ++r, next_row())
        for (size_t k = 0; k < feeds_.size(); ++k) {
          const Feed& f = feeds_[k];
          if (f.full || f.periodic || values_[f.value].uniform) continue;
          fill(f, t.at[f.value] + r * row_ * lane_bytes(values_[f.value].elem), t.offsets[k], row_);
        }
      one_tile(t, i * rows_a_tile_ * row_, rows * row_);
    }
    return;
  }
  go_to(from / parts_a_row_);
  for (int64_t i = from; i < to && code_.load(std::memory_order_relaxed) == REGIE_OK; ++i) {
    const int64_t row = i / parts_a_row_, begin = i % parts_a_row_ * tile_;
    const int64_t count = std::min(tile_, row_ - begin);
    for (size_t k = 0; k < feeds_.size(); ++k) {
      const Feed& f = feeds_[k];
      if (f.full || values_[f.value].uniform) continue;
      const int64_t at = t.offsets[k] + begin * f.strides.back();
      if (f.direct) {
        t.at[f.value] =
            static_cast<char*>(launch_->operands[f.operand].data) + at * elem_bytes(values_[f.value].elem);
      } else if (f.strides.back() != 0 || t.filled[k] != at) {
        fill(f, t.at[f.value], at, f.strides.back() == 0 ? tile_ : count);
        t.filled[k] = at;
      }
    }
    one_tile(t, row * row_ + begin, count);
    if (begin + tile_ >= row_) next_row();
  }
}

void PointwiseRun::one_tile(Thread& t, int64_t start, int64_t count) {
  for (size_t v = 0; v < program_.operands.size(); ++v)
    if (values_[v].place == Place::kDirect)
      t.at[v] =
          static_cast<char*>(launch_->operands[values_[v].index].data) + start * elem_bytes(values_[v].elem);
  for (const Feed& f : feeds_)
    if (f.full && !values_[f.value].uniform) fill(f, t.at[f.value], start, count);
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Output& o = outputs_[k];
    if (!o.stored && !in_slot_[k])
      t.at[o.value] =
          static_cast<char*>(launch_->results[o.result].data) + start * elem_bytes(values_[o.value].elem);
  }
  for (const PointwiseInstruction& i : plan_.instructions) {
    if (!i.loop) {
      call_reference(t, i, count);
      continue;
    }
    LoopCall call{t.at[i.result], {}, count, i.p, i.q};
    for (int k = 0; k < 3; ++k)
      call.operands[k] = i.operands[k] == REGIE_NONE ? nullptr : t.at[i.operands[k]];
    i.loop(call);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const Output& o = outputs_[k];
    if (!o.stored && !in_slot_[k]) continue;
    const regie_elem e = program_.elem(program_.results[o.result]);
    char* to = static_cast<char*>(launch_->results[o.result].data) + start * elem_bytes(e);
    if (is_half(e))
      convert(narrowing(e), to, t.at[o.value], count);
    else
      std::memmove(to, t.at[o.value], static_cast<size_t>(count) * elem_bytes(e));
  }
}

// By chunks; the last one is filled up with copies of its last element, which raise no error of their own.
void PointwiseRun::call_reference(Thread& t, const PointwiseInstruction& instruction, int64_t count) {
  const Call& call = *calls_[instruction.step];
  const PointwiseProgram::Step& step = program_.steps[instruction.step];
  alignas(64) char local[17][kChunk * 8];
  std::array<regie_tensor, 16> operands{};
  std::copy(call.tensors.begin(), call.tensors.end(), operands.begin());
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t part = std::min(kChunk, count - at);
    for (size_t k = 0; k < step.operands.size(); ++k) {
      if (call.operands[k] == REGIE_NONE) continue;
      const Value& v = values_[call.operands[k]];
      const regie_elem e = program_.elem(step.operands[k]);
      // Uniform registers may be shorter than a chunk.
      const bool whole = part == kChunk && !is_half(e) && !v.uniform;
      const char* from = t.at[call.operands[k]] + (v.uniform ? 0 : at * lane_bytes(e));
      if (whole) {
        operands[k].data = const_cast<char*>(from);
        continue;
      }
      const int64_t given = v.uniform ? 1 : part;
      if (is_half(e))
        convert(narrowing(e), local[k], from, given);
      else
        std::memcpy(local[k], from, static_cast<size_t>(given) * elem_bytes(e));
      if (given < kChunk)
        copy(local[k] + given * elem_bytes(e), local[k] + (given - 1) * elem_bytes(e), 0, kChunk - given,
             elem_bytes(e));
      operands[k].data = local[k];
    }
    char* to = t.at[instruction.result] + at * lane_bytes(step.result);
    const bool whole = part == kChunk && !is_half(step.result);
    regie_tensor result = call.result;
    result.data = whole ? to : local[16];
    std::string words;
    void* scratch = call.scratch.empty() ? nullptr : call.scratch[t.number].get();
    const regie_status code = call.kernel.run(catcher_, operands.data(), &result, scratch, &words);
    if (code != REGIE_OK) return failed(code, std::move(words));
    if (whole) continue;
    if (is_half(step.result))
      convert(widening(step.result), to, local[16], part);
    else
      std::memcpy(to, local[16], static_cast<size_t>(part) * elem_bytes(step.result));
  }
}

void PointwiseRun::failed(regie_status code, std::string words) {
  if (failing_.test_and_set()) return;
  words_ = std::move(words);
  code_.store(code);
}

regie_status PointwiseRun::run(const regie_launch& launch, std::string* words) {
  launch_ = &launch;
  code_.store(REGIE_OK);
  failing_.clear();
  for (size_t k = 0; k < outputs_.size(); ++k) {
    in_slot_[k] = 0;
    for (uint32_t operand : outputs_[k].conflicts)
      in_slot_[k] |= launch.operands[operand].data == launch.results[outputs_[k].result].data;
  }
  // choose_tiles has weighed whether threads are worthwhile.
  parallel(threads_, tile_count_, kWorthwhile, [&](int64_t begin, int64_t end) {
    tiles(static_cast<uint32_t>(omp_get_thread_num()), begin, end);
  });
  launch_ = nullptr;
  if (code_.load() != REGIE_OK) *words = std::move(words_);
  return code_.load();
}

}  // namespace host_cpu
