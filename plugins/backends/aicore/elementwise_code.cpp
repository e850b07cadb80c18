// What a node computes element by element, as steps: values get registers, given out by last use.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "elementwise.h"
#include "half.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::sv;

float scalar_of(const regie_tensor& t) {
  switch (t.elem) {
    case REGIE_F32:
      return *static_cast<const float*>(t.data);
    case REGIE_F16:
      return from_half(*static_cast<const uint16_t*>(t.data));
    case REGIE_F64:
      return static_cast<float>(*static_cast<const double*>(t.data));
    case REGIE_I8:
      return *static_cast<const int8_t*>(t.data);
    case REGIE_U8:
      return *static_cast<const uint8_t*>(t.data);
    case REGIE_I32:
      return static_cast<float>(*static_cast<const int32_t*>(t.data));
    case REGIE_I64:
      return static_cast<float>(*static_cast<const int64_t*>(t.data));
    default:
      refuse("a constant that is no number");
  }
}

class Compiler {
 public:
  explicit Compiler(const Request& r) : r_(r), g_(*r.graph) {}

  Code compile() {
    const regie_node& n = r_.node;
    const regie_region* body = n.region_count == 1 ? &g_.regions[n.regions[0]] : nullptr;
    if (n.region_count > 1) refuse("it has several regions");
    if (body && (body->arg_count != n.operand_count || body->result_count != n.result_count))
      refuse("its region does not fit its operands");
    for (uint32_t i = 0; i < n.operand_count; ++i) {
      const uint32_t v = body ? body->args[i] : n.operands[i];
      if (v == REGIE_NONE) continue;
      const regie_tensor& t = r_.operands[i];
      if (t.data && regie::sdk::count_of(t) == 1)
        at_[v] = {Location::kConstant, scalar_of(t), 0};
      else
        at_.emplace(v, Location{Location::kOperand, 0, i});
    }
    std::vector<const regie_node*> nodes;
    if (body)
      for (uint32_t i = body->first; i != REGIE_NONE; i = g_.nodes[i].next) nodes.push_back(&g_.nodes[i]);
    else
      nodes.push_back(&n);
    for (uint32_t i = 0; i < n.result_count; ++i) {
      const uint32_t v = body ? body->results[i] : n.results[i];
      if (v == REGIE_NONE || n.results[i] == REGIE_NONE) refuse("a result is not asked for");
      if (!is_float(r_.results[i].elem) && !is_byte(r_.results[i].elem))
        refuse("a result whose elements are neither f32, f16 nor bytes");
      wanted_.emplace(v, i);
      results_.push_back(v);
    }
    // Last reader of each value.
    for (size_t i = 0; i < nodes.size(); ++i)
      for (uint32_t v : regie::sdk::operands_of(*nodes[i]))
        if (v != REGIE_NONE) last_[v] = i;
    for (size_t i = 0; i < nodes.size(); ++i) step(*nodes[i], i, !body);
    // Results that are operands as they are, or another result.
    for (uint32_t i = 0; i < results_.size(); ++i) {
      const Location from = value(results_[i]);
      if (from.kind == Location::kResult && from.number == i) continue;
      Step s;
      s.vector.op = find_vector_op("Identity");
      s.in = {from};
      s.out = {Location::kResult, 0, i};
      push(std::move(s));
    }
    take_zeros_off();
    code_.registers = next_;
    return std::move(code_);
  }

 private:
  // A zero point that all readers of an operand take off it is taken off while elements are halves.
  void take_zeros_off() {
    for (uint32_t o : code_.operands) {
      if (!is_byte(r_.operands[o].elem)) continue;
      std::optional<float> zero;
      bool same = true;
      auto is_it = [o](const Location& l) { return l.kind == Location::kOperand && l.number == o; };
      for (const Step& s : code_.steps)
        for (size_t i = 0; i < s.in.size(); ++i) {
          if (!is_it(s.in[i])) continue;
          same = same && i == 0 && s.vector.op == find_vector_op("Dequantize") &&
                 s.in[2].kind == Location::kConstant && zero.value_or(s.in[2].constant) == s.in[2].constant;
          if (same) zero = s.in[2].constant;
        }
      if (!same || zero.value_or(0) == 0) continue;
      code_.zeros.emplace_back(o, *zero);
      for (Step& s : code_.steps)
        if (!s.in.empty() && is_it(s.in[0])) s.in[2].constant = 0;
      code_.quick -= 0.5;
    }
  }

  Location value(uint32_t v) {
    if (auto at = at_.find(v); at != at_.end()) {
      if (at->second.kind == Location::kOperand) {
        const uint32_t o = at->second.number;
        if (!is_float(r_.operands[o].elem) && !is_byte(r_.operands[o].elem))
          refuse("an operand whose elements are neither f32, f16 nor bytes");
        if (std::find(code_.operands.begin(), code_.operands.end(), o) == code_.operands.end())
          code_.operands.push_back(o);
      }
      return at->second;
    }
    const regie_value& x = g_.values[v];
    if (!regie::sdk::is_constant(x) || !x.data || !x.data->data || regie::sdk::count_of(*x.data) != 1)
      refuse("it reads a value that is neither an operand nor a constant");
    return at_[v] = {Location::kConstant, scalar_of(*x.data), 0};
  }

  uint32_t take() {
    if (free_.empty()) return next_++;
    const auto least = std::min_element(free_.begin(), free_.end());
    const uint32_t reg = *least;
    free_.erase(least);
    return reg;
  }

  void step(const regie_node& n, size_t number, bool single) {
    if (n.result_count != 1 || n.results[0] == REGIE_NONE || (n.region_count && !single))
      refuse(std::string(sv(n.op)) + " is not element-wise");
    const regie_elem made = g_.values[n.results[0]].type.elem;
    const bool quantises = sv(n.op) == "regie.Quantize";
    if (!is_float(made) && !(quantises && is_byte(made)))
      refuse(std::string(sv(n.op)) + " to elements that are neither f32 nor f16");
    // Bytes are whole numbers in registers of f32: exact, but there is no arithmetic of bytes.
    for (uint32_t v : regie::sdk::operands_of(n))
      if (v != REGIE_NONE && is_byte(g_.values[v].type.elem) && !quantises &&
          sv(n.op) != "regie.Dequantize" && sv(n.op) != "Cast")
        refuse(std::string(sv(n.op)) + " of bytes");
    Step s;
    std::vector<Source> sources;
    for (uint32_t v : regie::sdk::operands_of(n)) {
      if (v == REGIE_NONE) {
        // An absent bound of Clip.
        if (sv(n.op) != "Clip" || sources.empty()) refuse("an operand is absent");
        sources.push_back({0, sources.size() == 1 ? -INFINITY : INFINITY});
        s.in.push_back({Location::kConstant, *sources.back().constant, 0});
        continue;
      }
      const Location l = value(v);
      s.in.push_back(l);
      sources.push_back(l.kind == Location::kConstant ? Source{0, l.constant} : Source{});
    }
    s.vector = vector_step(sv(n.op), regie::sdk::Attrs(n), sources);
    s.in.resize(s.vector.in.size());
    if (quantises) {
      s.vector.alpha = static_cast<float>(least_byte(made));
      s.vector.beta = static_cast<float>(most_byte(made));
    }
    const uint32_t out = n.results[0];
    const auto wanted = wanted_.find(out);
    if (wanted != wanted_.end()) s.out = {Location::kResult, 0, wanted->second};
    s.to_bytes = quantises && wanted != wanted_.end() && !last_.contains(out) &&
                 std::count(results_.begin(), results_.end(), out) == 1 &&
                 is_byte(r_.results[wanted->second].elem) && s.in[2].kind == Location::kConstant;
    if (s.to_bytes) code_.quick -= 3;
    if (wanted == wanted_.end()) s.out = {Location::kRegister, 0, take()};
    for (uint32_t i = 0; i < s.vector.op->temporaries; ++i) s.temporaries.push_back(take());
    for (uint32_t t : s.temporaries) free_.push_back(t);
    for (uint32_t v : regie::sdk::operands_of(n)) {
      if (v == REGIE_NONE || last_[v] != number) continue;
      auto at = at_.find(v);
      if (at == at_.end() || at->second.kind != Location::kRegister) continue;
      free_.push_back(at->second.number);
      at_.erase(at);
    }
    at_[out] = s.out;
    if (s.out.kind == Location::kRegister && !last_.count(out)) free_.push_back(s.out.number);
    push(std::move(s));
  }

  void push(Step s) {
    code_.slow += s.vector.op->slow;
    code_.quick += s.vector.op->instructions;
    code_.steps.push_back(std::move(s));
  }

  const Request& r_;
  const regie_graph& g_;
  Code code_;
  std::unordered_map<uint32_t, Location> at_;
  std::unordered_map<uint32_t, uint32_t> wanted_;
  std::unordered_map<uint32_t, size_t> last_;
  std::vector<uint32_t> results_, free_;
  uint32_t next_ = 0;
};
}  // namespace

Code compile_elementwise(const Request& r) { return Compiler(r).compile(); }

}  // namespace aicore
