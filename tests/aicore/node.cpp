#include "node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "half.h"
#include "regie/tile/codec.h"
#include "regie/tile/verify.h"
#include "target_machine.h"
#include "wishes.h"

namespace aicore::test {

namespace simulator = regie::simulator;

namespace {

int64_t product(const std::vector<int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::vector<char> bytes_of(const std::vector<double>& values, regie_elem elem) {
  std::vector<char> out(values.size() * static_cast<size_t>(size_of(elem)));
  for (size_t i = 0; i < values.size(); ++i) {
    const float f = static_cast<float>(values[i]);
    const uint16_t half = to_half(f);
    const auto whole = static_cast<int32_t>(is_byte(elem) || elem == REGIE_I32 ? values[i] : 0);
    if (elem == REGIE_F16)
      std::memcpy(out.data() + 2 * i, &half, 2);
    else if (is_byte(elem))
      out[i] = static_cast<char>(whole);
    else if (elem == REGIE_I32)
      std::memcpy(out.data() + 4 * i, &whole, 4);
    else
      std::memcpy(out.data() + 4 * i, &f, 4);
  }
  return out;
}

// Which axis of a tensor in FRACTAL_NZ has its rows.
size_t rows_axis(const std::vector<int64_t>& dims, regie_format format) {
  return dims.size() - 2 - (format >> 24 & 0x3f);
}
// Where element i of a row-major tensor lies: the definitions of NC1HWC0 and FRACTAL_NZ,
// batch·W1·H1·16·W0 + (w/W0)·H1·16·W0 + h·W0 + w%W0.
int64_t place_of(int64_t i, const std::vector<int64_t>& dims, regie_format format) {
  if (is_matrix(format)) {
    const size_t rows = rows_axis(dims, format);
    const int64_t plane = (dims[rows] + 15) / 16 * 16 * 16;
    int64_t at = 0, step = (dims.back() + 15) / 16 * plane;
    for (size_t d = dims.size(); d-- > 0; i /= dims[d]) {
      const int64_t here = i % dims[d];
      if (d + 1 == dims.size()) {
        at += here / 16 * plane + here % 16;
      } else if (d == rows) {
        at += here * 16;
      } else {
        at += here * step;
        step *= dims[d];
      }
    }
    return at;
  }
  const int64_t block = regie::sdk::block_of(format);
  if (!block) return i;
  int64_t map = 1;
  for (size_t d = 2; d < dims.size(); ++d) map *= dims[d];
  const int64_t position = i % map, c = i / map % dims[1], n = i / map / dims[1];
  return ((n * ((dims[1] + block - 1) / block) + c / block) * map + position) * block + c % block;
}
// How many elements lie there: channels beyond the last one fill its block up.
int64_t laid(const std::vector<int64_t>& dims, regie_format format) {
  if (is_matrix(format)) {
    const int64_t rows = dims[rows_axis(dims, format)];
    return product(dims) / rows / dims.back() * ((rows + 15) / 16 * 16) * ((dims.back() + 15) / 16 * 16);
  }
  const int64_t block = regie::sdk::block_of(format);
  return block ? product(dims) / dims[1] * ((dims[1] + block - 1) / block * block) : product(dims);
}
// As they are to be by docs/aicore.md, zeros.
std::vector<double> in_format(const std::vector<double>& values, const std::vector<int64_t>& dims,
                              regie_format format) {
  std::vector<double> out(static_cast<size_t>(laid(dims, format)));
  for (size_t i = 0; i < values.size(); ++i)
    out[static_cast<size_t>(place_of(static_cast<int64_t>(i), dims, format))] = values[i];
  return out;
}

simulator::TileMachine machine_of(const Chip& chip) {
  simulator::TileMachine m = simulator::machine_of(chip.hardware);
  m.cores = chip.cores;
  m.chip = chip.sizes;
  return m;
}

}  // namespace

int64_t Array::count() const { return product(dims); }

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

Array random_array(Random& random, std::vector<int64_t> dims, double bound) {
  Array a{std::move(dims), {}};
  a.values.resize(static_cast<size_t>(a.count()));
  for (double& v : a.values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    v = from_half(to_half(static_cast<float>((2 * unit - 1) * bound)));
  }
  return a;
}

Array fine_array(Random& random, std::vector<int64_t> dims) {
  Array a = random_array(random, std::move(dims));
  for (double& v : a.values) v = static_cast<float>(std::sin(v * 1000) + v / 16);
  return a;
}

Node::Node(std::string op, regie_elem elem) : op_(std::move(op)), elem_(elem) {}

Node& Node::operand(const Array& a, bool constant) { return operand(a, constant, elem_); }
Node& Node::operand(const Array& a, bool constant, regie_elem elem) {
  operands_.push_back({a.dims, elem, bytes_of(a.values, elem), constant, true});
  operands_.back().values = a.values;
  return *this;
}
Node& Node::operand_in(regie_format format) {
  Value& v = operands_.back();
  v.format = format;
  v.bytes = bytes_of(in_format(v.values, v.dims, format), v.stored());
  return *this;
}
Node& Node::result_in(regie_format format) {
  Value& v = results_.back();
  v.format = format;
  v.bytes.resize(static_cast<size_t>(laid(v.dims, format) * size_of(v.stored())), '\x7f');
  return *this;
}
Node& Node::integers(std::vector<int64_t> values) {
  Value v{{static_cast<int64_t>(values.size())}, REGIE_I64, {}, true, true};
  v.bytes.resize(values.size() * 8);
  std::memcpy(v.bytes.data(), values.data(), v.bytes.size());
  operands_.push_back(std::move(v));
  return *this;
}
Node& Node::absent() {
  operands_.push_back({{}, REGIE_ELEM_UNKNOWN, {}, false, false});
  return *this;
}
Node& Node::result(std::vector<int64_t> dims) { return result(std::move(dims), elem_); }
Node& Node::result(std::vector<int64_t> dims, regie_elem elem) {
  const size_t bytes = static_cast<size_t>(product(dims) * size_of(elem));
  results_.push_back({std::move(dims), elem, std::vector<char>(bytes, '\x7f'), false, true});
  return *this;
}
Node& Node::late_result(std::vector<int64_t> dims) {
  results_.push_back({std::move(dims), elem_, {}, false, true});
  return *this;
}
Node& Node::symbolic() {
  symbolic_ = true;
  return *this;
}
regie_attr& Node::add(const char* name, uint32_t kind) {
  texts_.emplace_back(name);
  regie_attr a{};
  a.name = {texts_.back().data(), texts_.back().size()};
  a.kind = kind;
  a.count = 1;
  attrs_.push_back(a);
  return attrs_.back();
}
Node& Node::attr(const char* name, int64_t value) {
  add(name, REGIE_ATTR_INT).v.i = value;
  return *this;
}
Node& Node::attr(const char* name, double value) {
  add(name, REGIE_ATTR_FLOAT).v.f = value;
  return *this;
}
Node& Node::attr(const char* name, std::vector<int64_t> values) {
  lists_.push_back(std::move(values));
  regie_attr& a = add(name, REGIE_ATTR_INTS);
  a.count = static_cast<uint32_t>(lists_.back().size());
  a.v.ints = lists_.back().data();
  return *this;
}
Node& Node::attr(const char* name, const char* value) {
  regie_attr& a = add(name, REGIE_ATTR_STRING);
  texts_.emplace_back(value);
  a.v.s = {texts_.back().data(), texts_.back().size()};
  return *this;
}
Node& Node::body(const std::string& op, std::vector<uint32_t> operands, regie_elem elem) {
  steps_.push_back({op, std::move(operands), {}, 0, elem});
  return *this;
}

void Node::build() {
  values_.clear();
  operand_tensors_.clear();
  result_tensors_.clear();
  nodes_.clear();
  regions_.clear();
  operand_ids_.clear();
  result_ids_.clear();
  argument_ids_.clear();
  body_results_.clear();
  node_regions_.clear();
  auto tensor = [](Value& v) {
    regie_tensor t{};
    if (!v.present) return t;
    t.elem = v.stored();
    t.rank = static_cast<int32_t>(v.dims.size());
    t.dims = v.dims.data();
    t.data = v.constant ? v.bytes.data() : nullptr;
    t.bytes = v.bytes.size();
    return t;
  };
  auto value = [&](const Value* v, uint32_t kind) {
    regie_value x{};
    x.id = static_cast<uint32_t>(values_.size());
    x.kind = kind;
    x.type.elem = v ? v->elem : elem_;
    x.type.rank = v ? static_cast<int32_t>(v->dims.size()) : 0;
    x.type.dims = v ? v->dims.data() : nullptr;
    values_.push_back(x);
    return x.id;
  };
  operand_formats_.clear();
  result_formats_.clear();
  for (const Value& v : operands_) operand_formats_.push_back(v.format);
  for (const Value& v : results_) result_formats_.push_back(v.format);
  operand_tensors_.reserve(operands_.size());
  for (Value& v : operands_) {
    operand_tensors_.push_back(tensor(v));
    if (!v.present) {
      operand_ids_.push_back(REGIE_NONE);
      continue;
    }
    const uint32_t id = value(&v, v.constant ? REGIE_VALUE_CONSTANT : REGIE_VALUE_ARGUMENT);
    if (v.constant) values_[id].data = &operand_tensors_.back();
    operand_ids_.push_back(id);
  }
  for (Value& v : results_) {
    result_tensors_.push_back(tensor(v));
    result_ids_.push_back(value(&v, REGIE_VALUE_RESULT));
    if (symbolic_) {
      symbolic_dims_ = v.dims;
      symbolic_dims_.front() = -2;
      values_.back().type.dims = symbolic_dims_.data();
    }
  }
  regie_node n{};
  n.op = {op_.data(), op_.size()};
  n.operand_count = static_cast<uint32_t>(operand_ids_.size());
  n.operands = operand_ids_.data();
  n.result_count = static_cast<uint32_t>(result_ids_.size());
  n.results = result_ids_.data();
  n.attr_count = static_cast<uint32_t>(attrs_.size());
  n.attrs = attrs_.data();
  n.prev = n.next = REGIE_NONE;
  nodes_.push_back(n);
  if (!steps_.empty()) {
    std::vector<uint32_t> by_number;
    for (size_t i = 0; i < operands_.size(); ++i) {
      argument_ids_.push_back(value(&operands_[i], REGIE_VALUE_ARGUMENT));
      by_number.push_back(argument_ids_.back());
    }
    for (Step& s : steps_) {
      s.result = value(nullptr, REGIE_VALUE_RESULT);
      if (s.elem != REGIE_ELEM_UNKNOWN) values_.back().type.elem = s.elem;
      by_number.push_back(s.result);
      regie_node x{};
      x.op = {s.op.data(), s.op.size()};
      s.values.clear();
      for (uint32_t o : s.operands) s.values.push_back(by_number[o]);
      x.operand_count = static_cast<uint32_t>(s.values.size());
      x.operands = s.values.data();
      x.result_count = 1;
      x.results = &s.result;
      x.next = nodes_.size() < steps_.size() ? static_cast<uint32_t>(nodes_.size() + 1) : REGIE_NONE;
      nodes_.push_back(x);
    }
    body_results_.push_back(by_number.back());
    regions_.resize(2);
    regions_[1].arg_count = static_cast<uint32_t>(argument_ids_.size());
    regions_[1].args = argument_ids_.data();
    regions_[1].result_count = 1;
    regions_[1].results = body_results_.data();
    regions_[1].first = 1;
    regions_[1].last = static_cast<uint32_t>(nodes_.size() - 1);
    node_regions_.push_back(1);
    nodes_[0].region_count = 1;
    nodes_[0].regions = node_regions_.data();
  }
  graph_ = {};
  graph_.struct_size = sizeof graph_;
  graph_.nodes = nodes_.data();
  graph_.node_count = static_cast<uint32_t>(nodes_.size());
  graph_.values = values_.data();
  graph_.value_count = static_cast<uint32_t>(values_.size());
  graph_.regions = regions_.data();
  graph_.region_count = static_cast<uint32_t>(regions_.size());
}

Request Node::request(const Chip& chip) {
  build();
  return {chip,
          plans_,
          &graph_,
          nodes_[0],
          op_,
          regie::sdk::Attrs(nodes_[0]),
          operand_tensors_,
          result_tensors_,
          operand_formats_,
          result_formats_};
}

Lowered Node::lower(const Chip& chip) { return aicore::lower(request(chip)); }

Choice Node::choose(const Chip& chip, const regie_host* host, Verdicts& verdicts) {
  return aicore::choose(request(chip), host, verdicts);
}

uint32_t Node::options(const Chip& chip) {
  take(0);
  wishes_ = wishes_of(request(chip), chip.two_halves ? Rounding::kNothing : Rounding::kAll);
  return wishes_.empty() ? 0 : wishes_.back().option;
}

void Node::take(uint32_t option) {
  auto set = [](Value& v, regie_format format) {
    if (v.format == format) return;
    v.format = format;
    if (!v.values.empty()) v.bytes = bytes_of(in_format(v.values, v.dims, format), v.stored());
  };
  for (Value& v : operands_) set(v, REGIE_FORMAT_ND);
  for (Value& v : results_) set(v, REGIE_FORMAT_ND);
  for (const regie_format_wish& w : wishes_)
    if (w.option == option) set(w.is_result ? results_[w.index] : operands_[w.index], w.format);
  for (Value& v : results_)
    if (!v.bytes.empty())
      v.bytes.assign(static_cast<size_t>(laid(v.dims, v.format) * size_of(v.stored())), '\x7f');
}

std::optional<std::vector<double>> Node::run(const Chip& chip) {
  const Lowered lowered = lower(chip);
  predicted = lowered.cycles;
  name = lowered.name;
  Written w = lowered.write();
  const auto checked = regie::tile::verify(w.program);
  if (!checked.ok()) {
    ADD_FAILURE() << name << ": " << checked.message;
    return std::nullopt;
  }
  const auto task = simulator::TileTask::prepare(regie::tile::encode(w.program), machine_of(chip), name);
  std::vector<simulator::TileBuffer> buffers;
  std::vector<char> scratch(w.scratch_bytes, '\x7f');
  // As on the device once it is warm: activations lie in the second-level cache if they fit, constants come
  // from the memory.
  double activations = 0;
  for (const Value& v : operands_)
    if (v.present && !v.constant) activations += static_cast<double>(v.bytes.size());
  for (const Value& v : results_) activations += static_cast<double>(v.bytes.size());
  for (const auto& g : w.program.gm) {
    simulator::TileBuffer b;
    const bool constant = g.kind == REGIE_TILE_OPERAND && operands_[g.index].constant;
    b.read_rate = constant ? chip.read_rate(w.program.cores) : chip.read_rate(w.program.cores, activations);
    b.write_rate = chip.write_rate(w.program.cores, activations);
    b.latency = chip.hardware.l2_latency;
    if (g.kind == REGIE_TILE_RESULT) {
      b.data = results_[g.index].bytes.data();
      b.bytes = results_[g.index].bytes.size();
    } else if (g.kind == REGIE_TILE_SCRATCH) {
      b.data = scratch.data() + g.index;
      b.bytes = scratch.size() - g.index;
    } else {
      b.data = operands_[g.index].bytes.data();
      b.bytes = operands_[g.index].bytes.size();
      for (PackedWeight& p : w.weights)
        if (p.operand == g.index) {
          b.data = p.bytes.data();
          b.bytes = p.bytes.size();
        }
    }
    buffers.push_back(b);
  }
  // A constant comes from the memory once: what is read again lies in the cache.
  const std::vector<uint64_t> moved = task->run(buffers, {false, true, false}).read_bytes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& g = w.program.gm[i];
    if (g.kind != REGIE_TILE_OPERAND || !operands_[g.index].constant || moved[i] == 0) continue;
    const double missed = std::min(1.0, static_cast<double>(g.bytes) / static_cast<double>(moved[i]));
    buffers[i].read_rate =
        1 / (missed / chip.read_rate(w.program.cores) + (1 - missed) / chip.hardware.l2_read);
  }
  cycles = task->run(buffers).cycles;
  for (const Value& v : results_)
    if (v.present && !v.bytes.empty() && !padding_is_zero(v))
      ADD_FAILURE() << name << ": its padding is not zero";
  return value_of(0);
}

// Every byte that no element lies on.
bool Node::padding_is_zero(const Value& v) {
  const auto size = static_cast<size_t>(size_of(v.stored()));
  std::vector<char> rest = v.bytes;
  for (int64_t i = 0; i < product(v.dims); ++i)
    std::memset(rest.data() + static_cast<size_t>(place_of(i, v.dims, v.format)) * size, 0, size);
  return std::all_of(rest.begin(), rest.end(), [](char c) { return c == 0; });
}

std::vector<double> Node::value_of(size_t result) const {
  std::vector<double> out;
  const Value& y = results_[result];
  for (int64_t i = 0; i < product(y.dims); ++i) {
    const int64_t at = place_of(i, y.dims, y.format);
    if (y.stored() == REGIE_F16) {
      uint16_t half;
      std::memcpy(&half, y.bytes.data() + 2 * at, 2);
      out.push_back(from_half(half));
    } else if (y.elem == REGIE_U8) {
      out.push_back(static_cast<uint8_t>(y.bytes[static_cast<size_t>(at)]));
    } else if (y.elem == REGIE_I8) {
      out.push_back(static_cast<int8_t>(y.bytes[static_cast<size_t>(at)]));
    } else if (y.elem == REGIE_I32) {
      int32_t whole;
      std::memcpy(&whole, y.bytes.data() + 4 * at, 4);
      out.push_back(whole);
    } else {
      float f;
      std::memcpy(&f, y.bytes.data() + 4 * at, 4);
      out.push_back(f);
    }
  }
  return out;
}

}  // namespace aicore::test
