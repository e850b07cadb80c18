// Random graphs over FakeOpSet, the same for the same seed: nested regions, captures, constants and weights
// with data of many element types, absent operands, omitted results, attributes of every kind, control edges,
// provenance, odd and doubled names, symbols, and, if asked for, assignments. What they compute has a value
// (`meaning`), by which a test sees that a change kept it.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace regie::test {

struct RandomGraphOptions {
  uint32_t nodes = 30;      // about; over all regions
  uint32_t depth = 3;       // of nested regions
  bool assignments = true;  // engines, streams, spaces, aliases
  bool identities = true;   // many Identity and Call nodes, for patches that remove them
};

class RandomGraph {
 public:
  RandomGraph(uint64_t seed, const RandomGraphOptions& options = {}) : random_(seed), options_(options) {}

  std::unique_ptr<Graph> make() {
    auto graph = std::make_unique<Graph>();
    g_ = graph.get();
    g_->set_name(below(2) ? "random" : "odd name / \"quoted\"");
    regie_dim n = g_->dims().symbol("N", 1, 64), m = g_->dims().symbol("batch size", 0, 8, below(2) == 0);
    regie_dim odd = g_->dims().add(g_->dims().mul(2, n), g_->dims().op(REGIE_DIM_FLOORDIV, m, 3));
    std::vector<std::vector<regie_dim>> shapes = {{n, 3, 8}, {4}, {}, {odd, 2}, {REGIE_DIM_UNKNOWN, m}};
    for (const auto& s : shapes) types_.push_back(g_->make_type(REGIE_F32, s));
    types_[0].format = REGIE_FORMAT_NC1HWC0 | 16u << 16;
    types_[0].origin_format = REGIE_FORMAT_NCHW;
    regie_type any{};
    any.elem = REGIE_F32;
    any.rank = -1;
    types_.push_back(any);
    budget_ = options_.nodes;
    if (options_.assignments) {
      regie_engine_ref e{};
      e.device = str(std::string_view("host"));
      g_->set_engines({{"cpu", e}, {"null", e}});
    }
    fill(0, 1 + below(4), 0, {});
    if (options_.assignments) assign();
    return graph;
  }

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::mt19937_64& random() { return random_; }

 private:
  std::string name() {
    switch (below(8)) {
      case 0:
        return {};
      case 1:
        return "v";  // doubled on purpose
      case 2:
        return "a/b:" + std::to_string(below(5));
      case 3:
        return std::to_string(below(100));
      case 4:
        return "tab\there \"q\" \\ \xc3\xa9 \xff" + std::to_string(below(3));
      default:
        return "x" + std::to_string(counter_++);
    }
  }

  uint32_t any_of(const std::vector<uint32_t>& from) {
    return from[below(static_cast<uint32_t>(from.size()))];
  }

  uint32_t constant(uint32_t region) {
    static const regie_elem elems[] = {
        REGIE_F32, REGIE_F64,      REGIE_F16,    REGIE_BF16, REGIE_I8,   REGIE_U8,    REGIE_I16,  REGIE_U16,
        REGIE_I32, REGIE_U32,      REGIE_I64,    REGIE_U64,  REGIE_BOOL, REGIE_C64,   REGIE_C128, REGIE_U4,
        REGIE_I4,  REGIE_F8E4M3FN, REGIE_F4E2M1, REGIE_U2,   REGIE_I2,   REGIE_F8E8M0};
    regie_elem elem = elems[below(sizeof elems / sizeof elems[0])];
    std::vector<int64_t> dims;
    for (uint32_t i = below(3); i > 0; --i) dims.push_back(below(5));
    uint32_t kind = below(2) ? REGIE_VALUE_CONSTANT : REGIE_VALUE_WEIGHT;
    if (below(6) == 0)
      return g_->add_abstract_constant(region, kind, types_[below(static_cast<uint32_t>(types_.size()))],
                                       name());
    if (below(6) == 0) return g_->add_constant(region, kind, strings(dims), name());
    Tensor t = Tensor::zeros(elem, dims);
    auto* bytes = static_cast<uint8_t*>(t.mutable_data());
    for (uint64_t i = 0; i < t.bytes(); ++i) bytes[i] = static_cast<uint8_t>(random_());
    // What is unused of the last byte of a packed type is not part of the value.
    if (const auto used = static_cast<uint64_t>(t.count()) * elem_bits(elem) % 8; used != 0)
      bytes[t.bytes() - 1] &= static_cast<uint8_t>((1u << used) - 1);
    return g_->add_constant(region, kind, t, name());
  }

  Tensor strings(const std::vector<int64_t>& dims) {
    std::vector<std::string> texts(static_cast<size_t>(element_count(dims)));
    std::vector<regie_str> views;
    for (std::string& s : texts) s = name();
    for (std::string& s : texts) views.push_back(str(std::string_view(s)));
    regie_tensor t{};
    t.elem = REGIE_STRING;
    t.rank = static_cast<int32_t>(dims.size());
    t.dims = dims.data();
    t.data = views.data();
    t.bytes = views.size() * sizeof(regie_str);
    return Tensor::copy(t);
  }

  std::vector<AttrValue> attrs() {
    std::vector<AttrValue> all = {
        AttrValue::integer("axis", static_cast<int64_t>(random_())),
        AttrValue::number("epsilon", static_cast<double>(static_cast<float>(below(1000)) / 7)),
        AttrValue::number("exact", 0.1 * below(10)),
        AttrValue::text("mode", name()),
        AttrValue::integers("pads", {}),
        AttrValue::integers("strides", {1, -2, INT64_MIN})};
    AttrValue floats, texts, tensor;
    floats.name = "scales";
    floats.kind = REGIE_ATTR_FLOATS;
    if (below(2)) floats.floats = {0.0, -0.0, 1e300, INFINITY, -INFINITY, NAN, 1.5};
    texts.name = "odd key!";
    texts.kind = REGIE_ATTR_STRINGS;
    if (below(2)) texts.strings = {"", name(), "// no comment"};
    tensor.name = "value";
    tensor.kind = REGIE_ATTR_TENSOR;
    tensor.tensor = Tensor::zeros(REGIE_I32, std::vector<int64_t>{2, static_cast<int64_t>(below(3))});
    all.push_back(floats);
    all.push_back(texts);
    all.push_back(tensor);
    std::vector<AttrValue> some;
    for (AttrValue& a : all)
      if (below(5) == 0) some.push_back(a);
    return some;
  }

  // Arguments, constants, nodes and results of a region. `types`: of the arguments, for nested regions.
  void fill(uint32_t region, uint32_t arg_count, uint32_t depth, const std::vector<uint32_t>& captures) {
    std::vector<uint32_t> values;  // computed ones, all readable
    if (region == 0) {
      for (uint32_t i = 0; i < arg_count; ++i)
        values.push_back(g_->add_argument(0, types_[below(static_cast<uint32_t>(types_.size()))],
                                          "in" + std::to_string(i)));
    } else {
      for (uint32_t c : captures) {
        regie_type t = g_->value(c).type;
        values.push_back(g_->add_argument(region, t, name()));
      }
    }
    for (uint32_t i = below(4); i > 0; --i) constants_.push_back({constant(region), region});
    std::vector<uint32_t> nodes;
    uint32_t count = depth == 0 ? budget_ : std::min(budget_, 1 + below(6));
    for (uint32_t i = 0; i < count && (budget_ || depth == 0); ++i) {
      if (budget_) --budget_;
      nodes.push_back(node(region, depth, values, nodes));
      for (uint32_t r : g_->results(nodes.back()))
        if (r != REGIE_NONE) values.push_back(r);
    }
    std::vector<uint32_t> results;
    for (uint32_t i = 1 + below(3); i > 0; --i) results.push_back(any_of(values));
    g_->set_region_results(region, results);
    if (region == 0) {
      std::vector<std::string> names;
      for (size_t i = 0; i < results.size(); ++i) names.push_back("out " + std::to_string(i));
      g_->set_output_names(names);
    }
  }

  uint32_t node(uint32_t region, uint32_t depth, const std::vector<uint32_t>& values,
                const std::vector<uint32_t>& nodes) {
    NodeSpec spec;
    spec.attrs = attrs();
    if (below(2)) spec.name = name();
    for (uint32_t i = below(3); i > 0; --i)
      spec.origins.push_back(g_->add_origin("layer" + std::to_string(below(20)) + " (Op)"));
    if (!nodes.empty() && below(8) == 0) spec.control.push_back(any_of(nodes));
    uint32_t kind = below(options_.identities ? 12 : 9);
    auto visible_constant = [&]() -> uint32_t {
      for (int tries = 0; tries < 4 && !constants_.empty(); ++tries) {
        uint32_t c = constants_[below(static_cast<uint32_t>(constants_.size()))].first;
        if (g_->live_value(c) && g_->visible(c, region)) return c;
      }
      return REGIE_NONE;
    };
    if (kind < 2 && depth < options_.depth) {
      spec.op = kind ? "If" : "Call";
      for (uint32_t i = 1 + below(3); i > 0; --i) spec.operands.push_back(any_of(values));
      uint32_t results = REGIE_NONE;
      for (uint32_t k = 0; k <= kind; ++k) {
        uint32_t r = g_->add_region(k ? "else" : "then branch", region);
        fill(r, 0, depth + 1, spec.operands);
        results = std::min(results, g_->region(r).result_count);
        spec.regions.push_back(r);
      }
      spec.result_count = results;
    } else if (kind < 4) {
      spec.op = "Mix";
      spec.operands.push_back(any_of(values));
      for (uint32_t i = below(4); i > 0; --i)
        spec.operands.push_back(below(4) == 0   ? REGIE_NONE
                                : below(3) == 0 ? visible_constant()
                                                : any_of(values));
    } else if (kind == 4) {
      spec.op = "Split";
      spec.operands = {any_of(values)};
      spec.result_count = 2;
      if (below(3) == 0) spec.omitted = {below(2) == 0, false};
    } else if (kind == 5) {
      spec.op = "Sink";
      spec.operands = {any_of(values)};
      spec.result_count = 0;
    } else if (kind == 6) {
      spec.op = "Make";
    } else if (kind < 9) {
      spec.op = kind == 7 ? "Relu" : "Neg";
      spec.operands = {any_of(values)};
    } else {
      spec.op = "Identity";
      spec.operands = {any_of(values)};
    }
    for (uint32_t i = 0; i < spec.result_count; ++i) spec.result_names.push_back(name());
    uint32_t n = g_->add_node(region, spec);
    set_types(n);
    return n;
  }

  void set_types(uint32_t n) {
    const regie_dim four = 4;
    regie_type t =
        g_->node(n).operand_count ? g_->value(g_->operands(n)[0]).type : g_->make_type(REGIE_F32, {&four, 1});
    for (uint32_t i = 0; i < g_->node(n).result_count; ++i) {
      uint32_t r = g_->results(n)[i];
      if (r == REGIE_NONE) continue;
      if (g_->node(n).region_count) t = g_->value(g_->region(g_->node(n).regions[0]).results[i]).type;
      g_->set_type(r, t);
    }
  }

  void assign() {
    std::vector<uint32_t> values;
    for (uint32_t v = 0; v < g_->value_count(); ++v)
      if (g_->live_value(v)) values.push_back(v);
    for (uint32_t v : values)
      if (below(3) == 0) g_->set_space(v, below(2));
    for (size_t i = 1; i < values.size(); ++i) {
      uint32_t base = values[below(static_cast<uint32_t>(i))];
      if (below(6) == 0 && g_->value(base).space == g_->value(values[i]).space)
        g_->set_alias(values[i], base, below(3) * 64);
    }
    for (uint32_t n = 0; n < g_->node_count(); ++n) {
      if (below(2)) g_->set_engine(n, below(2));
      if (below(3) == 0) g_->set_stream(n, below(4));
    }
  }

  std::mt19937_64 random_;
  RandomGraphOptions options_;
  Graph* g_ = nullptr;
  std::vector<regie_type> types_;
  std::vector<std::pair<uint32_t, uint32_t>> constants_;
  uint32_t budget_ = 0, counter_ = 0;
};

// What the outputs (and sinks, in order of their operands' meanings) are as functions of the inputs, as one
// number: equal functions give equal numbers, and an Identity or a Call changes nothing. Recursive over
// regions only.
class Meaning {
 public:
  explicit Meaning(const Graph& g) : g_(g) {}
  uint64_t of_graph() {
    std::unordered_map<uint32_t, uint64_t> known;
    for (uint32_t i = 0; i < g_.region(0).arg_count; ++i) known[g_.region(0).args[i]] = hash(1, i);
    region(0, known);
    uint64_t h = sinks_;
    for (uint32_t i = 0; i < g_.region(0).result_count; ++i) {
      h = hash(h, known.at(g_.region(0).results[i]));
      h = hash(h, std::hash<std::string_view>()(g_.output_name(i)));
    }
    return h;
  }

 private:
  static uint64_t hash(uint64_t a, uint64_t b) {
    a ^= b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2);
    a *= 0xff51afd7ed558ccd;
    return a ^ (a >> 33);
  }

  void region(uint32_t r, std::unordered_map<uint32_t, uint64_t>& known) {
    for (uint32_t c : g_.constants(r))
      known[c] = g_.value(c).data ? hash(2, std::hash<std::string>()(g_.tensor(c).digest()))
                                  : hash(3, std::hash<std::string_view>()(view(g_.value(c).name)));
    for (uint32_t n = g_.region(r).first; n != REGIE_NONE; n = g_.node(n).next) node(n, known);
  }

  std::vector<uint64_t> call(uint32_t r, uint32_t n, std::unordered_map<uint32_t, uint64_t>& known) {
    for (uint32_t i = 0; i < g_.region(r).arg_count; ++i)
      known[g_.region(r).args[i]] = i < g_.node(n).operand_count ? known.at(g_.operands(n)[i]) : 0;
    region(r, known);
    std::vector<uint64_t> out;
    for (uint32_t i = 0; i < g_.region(r).result_count; ++i) out.push_back(known.at(g_.region(r).results[i]));
    return out;
  }

  void node(uint32_t n, std::unordered_map<uint32_t, uint64_t>& known) {
    const regie_node& node = g_.node(n);
    std::string_view op = view(node.op);
    std::vector<uint64_t> inner;
    for (uint32_t k = 0; k < node.region_count; ++k) {
      std::vector<uint64_t> results = call(node.regions[k], n, known);
      inner.insert(inner.end(), results.begin(), results.end());
    }
    uint64_t h = std::hash<std::string_view>()(op);
    for (uint32_t v : g_.operands(n)) h = hash(h, v == REGIE_NONE ? 7 : known.at(v));
    for (uint64_t i : inner) h = hash(h, i);
    if (op == "Sink") sinks_ += h;
    for (uint32_t i = 0; i < node.result_count; ++i) {
      if (g_.results(n)[i] == REGIE_NONE) continue;
      known[g_.results(n)[i]] = op == "Identity" ? known.at(g_.operands(n)[0])
                                : op == "Call"   ? inner[i]
                                                 : hash(h, i);
    }
  }

  const Graph& g_;
  uint64_t sinks_ = 0;
};

inline uint64_t meaning(const Graph& g) { return Meaning(g).of_graph(); }

}  // namespace regie::test
