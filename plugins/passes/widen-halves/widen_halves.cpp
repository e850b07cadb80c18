// widen-halves: computes networks of 16-bit floats in single precision.
#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "widen-halves",
    .doc = "Computes in single precision where products or normalisations of 16-bit floats are asked for",
    .requires_ = kRequires,
});

// What makes it worth while: engines have no kernels of their own for these.
constexpr std::string_view kHeavy[] = {"Attention",
                                       "AveragePool",
                                       "BatchNormalization",
                                       "Conv",
                                       "ConvTranspose",
                                       "Einsum",
                                       "GRU",
                                       "Gemm",
                                       "GlobalAveragePool",
                                       "GlobalMaxPool",
                                       "GroupNormalization",
                                       "InstanceNormalization",
                                       "LSTM",
                                       "LayerNormalization",
                                       "LogSoftmax",
                                       "MatMul",
                                       "MaxPool",
                                       "RMSNormalization",
                                       "RNN",
                                       "ReduceMax",
                                       "ReduceMean",
                                       "ReduceMin",
                                       "ReduceSum",
                                       "Resize",
                                       "Softmax"};
// What depends on the type itself, or is not to be drawn again.
constexpr std::string_view kAsTheyAre[] = {"BitCast",          "CastLike",          "EyeLike",  "Multinomial",
                                           "RandomNormalLike", "RandomUniformLike", "Bernoulli"};

bool one_of(std::span<const std::string_view> list, std::string_view op) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

class WidenHalves {
 public:
  explicit WidenHalves(const Config&) {}

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    wide_.clear();
    bool heavy = false;
    const auto nodes = g.all_nodes(GraphView::Order::kInnerFirst);
    for (uint32_t n : nodes) heavy |= one_of(kHeavy, sv(g.node(n).op)) && reads_half(g, g.node(n));
    if (!heavy) return;
    for (uint32_t n : nodes) visit(c, g.node(n));
  }

 private:
  static bool is_half(const regie_type& t) {
    return t.container == REGIE_TENSOR && (t.elem == REGIE_F16 || t.elem == REGIE_BF16);
  }
  static bool reads_half(const GraphView& g, const regie_node& n) {
    for (uint32_t v : operands_of(n))
      if (v != REGIE_NONE && is_half(g.value(v).type)) return true;
    return false;
  }

  void visit(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    if (sv(n.op) == "Cast") return cast(c, n);
    if (!reads_half(g, n) || n.region_count || n.control_count || one_of(kAsTheyAre, sv(n.op))) return;
    // Of sequences and optionals the elements would have to be converted one by one.
    for (uint32_t v : operands_of(n))
      if (v != REGIE_NONE && g.value(v).type.container != REGIE_TENSOR) return;
    uint32_t count = n.result_count;
    while (count && n.results[count - 1] == REGIE_NONE) --count;
    for (uint32_t i = 0; i < count; ++i)
      if (n.results[i] != REGIE_NONE && g.value(n.results[i]).type.container != REGIE_TENSOR) return;

    Patch patch(c, "widen " + std::string(sv(n.op)), n.id);
    std::vector<uint32_t> operands(n.operands, n.operands + n.operand_count);
    for (uint32_t& v : operands)
      if (v != REGIE_NONE && is_half(g.value(v).type)) v = widened(patch, v);
    const auto made = patch.node({.op = sv(n.op),
                                  .operands = operands,
                                  .name = sv(n.name),
                                  .attrs = {n.attrs, n.attrs + n.attr_count},
                                  .result_count = count});
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t old = n.results[i];
      if (old == REGIE_NONE) continue;
      if (!is_half(g.value(old).type)) {
        patch.replace(old, made.results[i]);
        continue;
      }
      wide_[old] = made.results[i];
      patch.replace(old, converted(patch, made.results[i], g.value(old).type.elem));
    }
    patch.remove(n.id);
    patch.commit();
  }

  // Between single precision and what is computed in it anyway there is nothing to round.
  void cast(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_value *from = g.operand(n, 0), *to = g.result(n, 0);
    if (!from || !to || n.control_count) return;
    if (is_half(to->type)) {
      if (from->type.elem == REGIE_F32 && from->kind == REGIE_VALUE_RESULT) wide_[to->id] = from->id;
      return;
    }
    const auto known = wide_.find(from->id);
    if (known == wide_.end() || to->type.elem != REGIE_F32) return;
    Patch patch(c, "single precision all the way", n.id);
    patch.replace(to->id, known->second);
    patch.remove(n.id);
    patch.commit();
  }

  static uint32_t converted(Patch& patch, uint32_t value, regie_elem elem) {
    return patch.node({.op = "Cast", .operands = {value}, .attrs = {integer_attr("to", elem)}}).results[0];
  }
  uint32_t widened(Patch& patch, uint32_t value) {
    const auto known = wide_.find(value);
    return known == wide_.end() ? converted(patch, value, REGIE_F32) : known->second;
  }

  std::unordered_map<uint32_t, uint32_t> wide_;  // of a half, the value in single precision
};

constexpr regie_pass_table kTable = pass_table<WidenHalves>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
