#include "runtime/late.h"

#include <algorithm>
#include <cstring>

#include "base/names.h"

namespace regie {

LateRun::LateRun(const SessionCore& core, const ShapePlan& plan, LatePool& pool)
    : core_(core),
      model_(*core.model),
      plan_(plan),
      pool_(pool),
      symbols_(plan.shapes.symbols),
      known_(model_.symbols.size()),
      dims_(model_.types.size()),
      bytes_(model_.types.size()),
      buffers_(model_.buffers.size()),
      outputs_(model_.outputs.size()) {
  for (uint32_t t = 0; t < dims_.size(); ++t)
    if (core.late.type(t)) dims_[t].resize(model_.types[t].dims.size());
}

LateRun::~LateRun() {
  end();
  for (Scratch& s : scratch)
    if (s.memory.bytes()) pool_.give(s.space, std::move(s.memory));
}

void LateRun::begin() {
  end();
  for (size_t s = 0; s < known_.size(); ++s) known_[s] = !core_.late.symbols[s];
  std::fill(outputs_.begin(), outputs_.end(), Output{});
}

void LateRun::end() {
  while (!live_.empty()) release(live_.back());
}

Status LateRun::bind(uint32_t symbol, int64_t value) {
  const ModelSymbol& s = model_.symbols[symbol];
  if (value < s.lower || value > s.upper)
    return invalid_input("the dimension " + s.name + " is " + std::to_string(value) +
                         "; the model was compiled for " + std::to_string(s.lower) +
                         (s.upper == INT64_MAX ? " and up" : " to " + std::to_string(s.upper)));
  symbols_[symbol] = value;
  known_[symbol] = 1;
  return {};
}

Result<int64_t> LateRun::value(ModelDim dim) const {
  if (!core_.late.dim(dim)) return plan_.shapes.at(dim);
  const DimCode& code = model_.expressions[static_cast<size_t>(-(dim + 1))];
  for (size_t w = 0; w < code.words.size(); w += 2)
    if (code.words[w] == DimCode::kLoad && !known_[static_cast<size_t>(code.words[w + 1])])
      return Status::error(REGIE_CORRUPT,
                           "the dimension " + dim_text(model_, dim) +
                               " is needed before the task that tells it; compile the model again");
  Result<int64_t> value = evaluate(code, symbols_);
  if (!value.ok())
    return invalid_input("the dimension " + dim_text(model_, dim) +
                         " has no value: " + value.status().message());
  if (*value < 0)
    return invalid_input("the dimension " + dim_text(model_, dim) + " would be " + std::to_string(*value));
  return value;
}

Status LateRun::measure(uint32_t type) {
  if (!core_.late.type(type)) return {};
  const ModelType& t = model_.types[type];
  std::vector<int64_t>& dims = dims_[type];
  for (size_t d = 0; d < dims.size(); ++d) {
    REGIE_ASSIGN(dims[d], value(t.dims[d]));
  }
  const int64_t count = element_count(dims);
  bytes_[type] = elem_bytes(t.elem, static_cast<uint64_t>(count));
  if (count == INT64_MAX || bytes_[type] > static_cast<uint64_t>(INT64_MAX))
    return invalid_input("a tensor " + std::string(elem_name(t.elem)) + dims_text(dims) +
                         " is larger than an address");
  return {};
}

Status LateRun::allocate(uint32_t buffer) {
  Buffer& b = buffers_[buffer];
  const ModelBuffer& of = model_.buffers[buffer];
  REGIE_ASSIGN(const int64_t bytes, value(of.size));
  Result<DeviceMemory> memory = pool_.take(of.space, static_cast<uint64_t>(bytes));
  if (!memory.ok())
    return std::move(memory).status().while_doing("finding " + std::to_string(bytes) + " bytes for '" +
                                                  of.name + "' in memory space '" +
                                                  model_.spaces[of.space].name + "'");
  b.memory = std::move(memory).value();
  b.bytes = static_cast<uint64_t>(bytes);
  b.live = true;
  live_.push_back(buffer);
  return {};
}

Status LateRun::place(const Arg& a, regie_tensor* t, bool written) {
  if (a.kind == Arg::kNone) return {};
  REGIE_TRY(measure(a.type));
  if (core_.late.type(a.type)) t->bytes = bytes_[a.type];
  uint64_t room = 0;
  switch (a.kind) {
    case Arg::kNone:
      return {};
    case Arg::kBuffer: {
      if (!core_.late.buffer(a.index)) {
        room = static_cast<uint64_t>(std::max<int64_t>(0, plan_.shapes.at(model_.buffers[a.index].size)));
        break;
      }
      Buffer& b = buffers_[a.index];
      if (!b.live && !written)
        return Status::error(REGIE_CORRUPT,
                             "'" + model_.buffers[a.index].name +
                                 "' is read where no task has written it; compile the model again");
      if (!b.live) REGIE_TRY(allocate(a.index));
      room = b.bytes;
      t->data = b.memory.data() ? b.memory.data() + a.offset : nullptr;
      break;
    }
    case Arg::kOutput: {
      const uint32_t type = model_.outputs[a.index].type;
      if (!core_.late.outputs[a.index]) {
        room = plan_.bytes[type];
        break;
      }
      Output& o = outputs_[a.index];
      if (!o.address) {
        REGIE_TRY(measure(type));
        REGIE_ASSIGN(o.address, find_output(a.index, bytes_[type]));
        o.bytes = bytes_[type];
      }
      room = o.bytes;
      t->data = static_cast<std::byte*>(o.address) + a.offset;
      break;
    }
    case Arg::kWeight:
      // The bytes of another layout than the portable one are for the device to compare.
      if (model_.weights[a.index].layout != kPortable) return {};
      room = model_.weights[a.index].size;
      break;
    case Arg::kInput:
      room = plan_.bytes[model_.inputs[a.index].type];
      break;
  }
  if (a.offset <= room && bytes(a.type) <= room - a.offset) return {};
  return Status::error(REGIE_CORRUPT,
                       "a tensor of " + std::to_string(bytes(a.type)) +
                           " bytes does not fit where the model puts it; compile the model again");
}

void LateRun::release_until(uint64_t step) {
  for (size_t i = live_.size(); i-- > 0;)
    if (model_.buffers[live_[i]].upper <= step) release(live_[i]);
}

void LateRun::release(uint32_t buffer) {
  Buffer& b = buffers_[buffer];
  if (!b.live) return;
  b.live = false;
  pool_.give(model_.buffers[buffer].space, std::move(b.memory));
  std::erase(live_, buffer);
}

void LateRun::release_since(uint64_t step) {
  for (size_t i = live_.size(); i-- > 0;)
    if (model_.buffers[live_[i]].lower > step) release(live_[i]);
}

Status LateRun::place_again(const LateSlot& slot) {
  const Arg& a = *slot.arg;
  if (a.kind == Arg::kBuffer && core_.late.buffer(a.index) && buffers_[a.index].live) {
    REGIE_ASSIGN(const int64_t bytes, value(model_.buffers[a.index].size));
    if (buffers_[a.index].bytes < static_cast<uint64_t>(bytes)) release(a.index);
  }
  return place(slot, true);
}

Status LateRun::grow(uint32_t buffer, uint64_t used, uint64_t need, regie_tensor* tensor) {
  Buffer& b = buffers_[buffer];
  if (!b.live || b.bytes < need) {
    const uint64_t room = std::max<uint64_t>(need, b.live ? 2 * b.bytes : 0);
    Result<DeviceMemory> memory = pool_.take(model_.buffers[buffer].space, room);
    if (!memory.ok())
      return std::move(memory).status().while_doing("finding " + std::to_string(room) + " bytes for '" +
                                                    model_.buffers[buffer].name + "'");
    if (used) std::memcpy(memory->data(), b.memory.data(), used);
    release(buffer);
    b.memory = std::move(memory).value();
    b.bytes = room;
    b.live = true;
    live_.push_back(buffer);
  }
  tensor->data = b.memory.data();
  return {};
}

namespace {

struct Answer {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<uint8_t> told;
  std::span<const regie_tensor> results;
};

regie_status set_result(const regie_shape_request* self, uint32_t index, const regie_type* type) {
  auto& answer = *static_cast<Answer*>(self->sink);
  if (index >= answer.shapes.size() || !type || type->rank < 0 || (type->rank > 0 && !type->dims))
    return fail_on_this_thread(
        bad_plugin("a shape function set a result that is not there, or gave no rank"));
  const regie_tensor& expected = answer.results[index];
  if (expected.elem != REGIE_ELEM_UNKNOWN && (type->elem != expected.elem || type->rank != expected.rank))
    return fail_on_this_thread(Status::error(
        REGIE_CORRUPT, "result " + std::to_string(index) + " has another type than the model says"));
  DimTable& dims = DimTable::from(self->dims);
  for (int32_t d = 0; d < type->rank; ++d) {
    const auto [least, most] = dims.range(type->dims[d]);
    answer.shapes[index].push_back(least == most && least >= 0 ? least : -1);
  }
  answer.told[index] = 1;
  return REGIE_OK;
}

regie_status set_content(const regie_shape_request*, uint32_t, const regie_dim*, uint32_t) {
  return REGIE_OK;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> ask_shapes(const LateOp& op, std::span<const regie_tensor> operands,
                                                     std::span<const regie_tensor> results) {
  DimTable dims;
  std::vector<regie_operand_info> infos(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const regie_tensor& t = operands[i];
    if (t.elem == REGIE_ELEM_UNKNOWN) continue;
    infos[i].present = 1;
    infos[i].type.elem = t.elem;
    infos[i].type.container = REGIE_TENSOR;
    infos[i].type.rank = t.rank;
    infos[i].type.dims = t.dims;
    infos[i].data = t.data ? &t : nullptr;
  }
  Answer answer{std::vector<std::vector<int64_t>>(results.size()), std::vector<uint8_t>(results.size()),
                results};
  regie_shape_request q{};
  q.struct_size = sizeof q;
  q.attr_count = static_cast<uint32_t>(op.op.attrs().size());
  q.operand_count = static_cast<uint32_t>(infos.size());
  q.result_count = static_cast<uint32_t>(results.size());
  q.op = str(op.op.op());
  q.attrs = op.op.attrs().data();
  q.operands = infos.data();
  q.dims = dims.handle();
  q.set_result = set_result;
  q.set_content = set_content;
  q.sink = &answer;
  Status s = call_plugin("shape function of " + std::string(op.op.op()),
                         [&] { return op.shape.table->infer(op.shape.index, host_table(), &q); });
  // At run time it is the data that are wrong.
  if (s.code() == REGIE_INVALID_MODEL) s = invalid_input(s.message());
  REGIE_TRY(std::move(s));
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].elem != REGIE_ELEM_UNKNOWN && !answer.told[i])
      return bad_plugin("the shape function of " + std::string(op.op.op()) + " did not set result " +
                        std::to_string(i));
  return std::move(answer.shapes);
}

}  // namespace regie
