#include "pointwise_program.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "formats.h"
#include "regie/graph_view.hpp"

namespace host_cpu {

using regie::sdk::BlobReader;
using regie::sdk::BlobWriter;

namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kMostValues = 1 << 16;

// Whole bytes, at most eight of them.
bool is_covered(regie_elem e) {
  return (e >= REGIE_F32 && e <= REGIE_I64) || (e >= REGIE_BOOL && e <= REGIE_U64) || e == REGIE_BF16;
}

class Writer {
 public:
  Writer(const regie_graph* graph, const regie_node& node, const Formats& formats)
      : g_(graph), node_(node), formats_(formats) {}

  std::string write() {
    const regie_region* body = nullptr;
    if (node_.region_count == 1) body = &g_->regions[node_.regions[0]];
    if (node_.region_count > 1 || (body && body->arg_count != node_.operand_count))
      refuse("its region does not fit its operands");
    for (uint32_t i = 0; i < node_.operand_count; ++i) {
      const uint32_t v = body ? body->args[i] : node_.operands[i];
      operands_.push_back(v == REGIE_NONE ? regie_elem{REGIE_ELEM_UNKNOWN} : elem_of(v));
      // A constant of one element may be the operand of a single operator: it is then a constant here.
      if (v != REGIE_NONE && !is_scalar_constant(v)) values_.emplace(v, i);
    }
    if (body) {
      for (uint32_t n = body->first; n != REGIE_NONE; n = g_->nodes[n].next) constants_of(g_->nodes[n]);
      for (uint32_t i = 0; i < body->result_count; ++i) constant(body->results[i]);
      for (uint32_t n = body->first; n != REGIE_NONE; n = g_->nodes[n].next) step(g_->nodes[n]);
      for (uint32_t i = 0; i < body->result_count; ++i)
        results_.push_back(i < node_.result_count && node_.results[i] == REGIE_NONE
                               ? REGIE_NONE
                               : values_.at(body->results[i]));
    } else {
      constants_of(node_);
      step(node_);
      results_ = {values_.at(node_.results[0])};
    }
    return bytes();
  }

 private:
  regie_elem elem_of(uint32_t value) const {
    const regie_elem e = g_->values[value].type.elem;
    if (!is_covered(e)) refuse("elements of a type that it has no lanes for");
    return e;
  }
  bool is_scalar_constant(uint32_t value) const {
    const regie_value& v = g_->values[value];
    return regie::sdk::is_constant(v) && v.data && v.data->data && !v.data->strides &&
           regie::sdk::count_of(*v.data) == 1;
  }
  void constant(uint32_t value) {
    if (value == REGIE_NONE || values_.count(value)) return;
    const regie_value& v = g_->values[value];
    if (!regie::sdk::is_constant(v)) return;
    if (!is_scalar_constant(value)) refuse("a constant in its region is no scalar");
    PointwiseProgram::Constant c{elem_of(value), 0};
    std::memcpy(&c.bytes, v.data->data, std::min<uint64_t>(v.data->bytes, sizeof c.bytes));
    values_.emplace(value, static_cast<uint32_t>(operands_.size() + constants_.size()));
    constants_.push_back(c);
  }
  void constants_of(const regie_node& n) {
    for (uint32_t v : regie::sdk::operands_of(n)) constant(v);
  }
  void step(const regie_node& n) {
    if (n.result_count != 1 || n.results[0] == REGIE_NONE || (n.region_count && &n != &node_))
      refuse(std::string(regie::sdk::sv(n.op)) + " is not element-wise");
    regie::sdk::write_op(steps_, regie::sdk::sv(n.op), n.attrs, n.attr_count);
    steps_.put(n.operand_count);
    for (uint32_t v : regie::sdk::operands_of(n)) steps_.put(v == REGIE_NONE ? REGIE_NONE : values_.at(v));
    steps_.put(elem_of(n.results[0]));
    values_.emplace(n.results[0],
                    static_cast<uint32_t>(operands_.size() + constants_.size() + step_count_++));
  }
  std::string bytes() {
    BlobWriter out;
    out.raw("RGPW", 4);
    out.put(kVersion);
    out.put(static_cast<uint32_t>(operands_.size()));
    for (regie_elem e : operands_) out.put(e);
    out.put(static_cast<uint32_t>(constants_.size()));
    for (const auto& c : constants_) {
      out.put(c.elem);
      out.put(c.bytes);
    }
    out.put(step_count_);
    const std::string steps = steps_.take();
    out.raw(steps.data(), steps.size());
    out.put(static_cast<uint32_t>(results_.size()));
    for (uint32_t r : results_) out.put(r);
    for (regie_format f : formats_.operands) out.put(f);
    for (regie_format f : formats_.results) out.put(f);
    return out.take();
  }

  const regie_graph* g_;
  const regie_node& node_;
  const Formats& formats_;
  std::unordered_map<uint32_t, uint32_t> values_;  // of the graph -> of the program
  std::vector<regie_elem> operands_;
  std::vector<PointwiseProgram::Constant> constants_;
  BlobWriter steps_;
  uint32_t step_count_ = 0;
  std::vector<uint32_t> results_;
};

}  // namespace

std::string write_pointwise(const regie_graph* graph, const regie_node& node, const Formats& formats) {
  return Writer(graph, node, formats).write();
}

PointwiseProgram read_pointwise(const void* blob, uint64_t size) {
  BlobReader in(blob, size, "kernel of format host_cpu.pointwise/1");
  if (std::memcmp(in.raw(4), "RGPW", 4) != 0) in.corrupt("its mark is missing");
  if (in.get<uint32_t>() != kVersion) in.corrupt("it was written by another version");
  PointwiseProgram p;
  p.operands.resize(in.count(sizeof(regie_elem)));
  for (regie_elem& e : p.operands) {
    e = in.get<regie_elem>();
    if (e != REGIE_ELEM_UNKNOWN && !is_covered(e)) in.corrupt("an operand has an impossible type");
  }
  p.constants.resize(in.count(sizeof(regie_elem) + sizeof(uint64_t)));
  for (auto& c : p.constants) {
    c.elem = in.get<regie_elem>();
    c.bytes = in.get<uint64_t>();
    if (!is_covered(c.elem)) in.corrupt("a constant has an impossible type");
  }
  const uint32_t steps = in.count(16);
  if (p.operands.size() + p.constants.size() + steps > kMostValues) in.corrupt("it has too many values");
  p.steps.reserve(steps);
  for (uint32_t i = 0; i < steps; ++i) {
    PointwiseProgram::Step s;
    s.op = regie::sdk::read_op(in);
    s.operands.resize(in.count(sizeof(uint32_t)));
    for (uint32_t& v : s.operands) {
      v = in.get<uint32_t>();
      if (v == REGIE_NONE) continue;
      if (v >= p.value_count() || p.elem(v) == REGIE_ELEM_UNKNOWN)
        in.corrupt("a step reads what is not there");
    }
    s.result = in.get<regie_elem>();
    if (!is_covered(s.result)) in.corrupt("a step gives an impossible type");
    p.steps.push_back(std::move(s));
  }
  p.results.resize(in.count(sizeof(uint32_t)));
  for (uint32_t& r : p.results) {
    r = in.get<uint32_t>();
    if (r != REGIE_NONE && (r >= p.value_count() || p.elem(r) == REGIE_ELEM_UNKNOWN))
      in.corrupt("a result is not there");
  }
  for (auto [list, count] :
       {std::pair{&p.formats.operands, p.operands.size()}, std::pair{&p.formats.results, p.results.size()}}) {
    list->resize(count);
    for (regie_format& f : *list) {
      f = in.get<regie_format>();
      if (!is_known_format(f)) in.corrupt("a tensor has an impossible format");
    }
  }
  in.finish();
  return p;
}

std::string describe(const PointwiseProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (i == 8) return text + ", ... (" + std::to_string(program.steps.size()) + " operators)";
    text += (i ? ", " : "") + program.steps[i].op.op();
  }
  return text;
}

}  // namespace host_cpu
