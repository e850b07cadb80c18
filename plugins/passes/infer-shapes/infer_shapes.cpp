// infer-shapes: types of all values, by the shape functions of the operators.
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

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
    for (uint32_t n : c.graph().all_nodes(GraphView::Order::kInnerFirst)) c.infer(n);
  }
};

constexpr regie_pass_table kTable = pass_table<InferShapes>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
