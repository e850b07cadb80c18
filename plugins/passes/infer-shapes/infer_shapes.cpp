// infer-shapes: types of all values, by the shape functions of the operators.
#include <optional>
#include <unordered_set>
#include <vector>

#include "regie/c/op_kernel.h"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr uint64_t kSmall = 64 << 10;  // bytes of a result that a shape may depend on

constexpr regie_str kEstablishes[] = {lit("shapes-known")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "infer-shapes",
    .doc = "Infers the types of all values in program order, those of regions before those of their owners",
    .establishes = kEstablishes,
});

class InferShapes {
 public:
  explicit InferShapes(const Config&) {}

  // Each node once: its operands stand before it in program order, and the results of its regions are known
  // when its turn comes. In later rounds of a stage types may have become more exact, so it looks at all
  // nodes again.
  void run(PassContext& c) {
    for (uint32_t n : c.graph().all_nodes(GraphView::Order::kInnerFirst)) {
      try {
        c.infer(n);
      } catch (const Failure& f) {
        // The shape may depend on what is computed from constants; the next run goes on from there.
        if (f.code != REGIE_UNSUPPORTED || !compute_operands(c, c.graph().node(n))) throw;
        return;
      }
    }
  }

 private:
  // Makes constants of what `n` depends on and what can be computed now. False if there is nothing.
  static bool compute_operands(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    bool any = false;
    std::vector<uint32_t> work{n.id};
    std::unordered_set<uint32_t> seen{n.id};
    for (size_t i = 0; i < work.size(); ++i)
      for (uint32_t v : operands_of(g.node(work[i]))) {
        if (v == REGIE_NONE || g.value(v).kind != REGIE_VALUE_RESULT || !seen.insert(g.value(v).owner).second)
          continue;
        const regie_node& producer = g.node(g.value(v).owner);
        work.push_back(producer.id);
        any = compute(c, producer) || any;
      }
    return any;
  }

  static bool compute(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_value* result = g.result(n, 0);
    if (n.region_count || n.result_count != 1 || !result) return false;
    if (c.op_flags(n.op) & (REGIE_OP_NONDETERMINISTIC | REGIE_OP_DYNAMIC_RESULT)) return false;
    const auto bytes = bytes_of(result->type);
    if (!bytes || *bytes > kSmall) return false;
    for (uint32_t v : operands_of(n))
      if (v != REGIE_NONE && !(is_constant(g.value(v)) && g.value(v).data)) return false;
    std::vector<regie_tensor> computed;
    if (c.evaluate(n, kSmall, &computed) != REGIE_OK) return false;
    Patch patch(c, "a shape depends on " + std::string(sv(n.op)), n.id);
    patch.replace(result->id, patch.constant(REGIE_VALUE_CONSTANT, computed[0], sv(result->name)));
    patch.remove(n.id);
    patch.commit();
    return true;
  }
};

constexpr regie_pass_table kTable = pass_table<InferShapes>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
