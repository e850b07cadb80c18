#include "pointwise_run.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "parallel.h"

namespace host_cpu {
namespace {

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

// `count` elements of an operand from `offset` on, into a register.
void PointwiseRun::fill(const Feed& f, char* to, int64_t offset, int64_t count) const {
  const regie_elem e = values_[f.value].elem;
  const uint32_t bytes = elem_bytes(e);
  const char* from = static_cast<const char*>(launch_->operands[f.value].data) + offset * bytes;
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
            static_cast<char*>(launch_->operands[f.value].data) + at * elem_bytes(values_[f.value].elem);
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
      t.at[v] = static_cast<char*>(launch_->operands[v].data) + start * elem_bytes(values_[v].elem);
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
  regie_status before = REGIE_OK;
  if (code_.compare_exchange_strong(before, code)) words_ = std::move(words);
}

regie_status PointwiseRun::run(const regie_launch& launch, std::string* words) {
  launch_ = &launch;
  code_.store(REGIE_OK);
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
