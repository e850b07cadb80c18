// remove-identity: operators that hand on their operand unchanged.
#include <algorithm>
#include <string>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kOps[] = {lit("Identity"), lit("Dropout"), lit("Cast"),    lit("Transpose"),
                              lit("Reshape"),  lit("Flatten"), lit("Squeeze"), lit("Unsqueeze"),
                              lit("Expand"),   lit("Tile"),    lit("Slice"),   lit("Concat"),
                              lit("Pad")};
constexpr regie_rewrite_info kInfo = {pass_info({
                                          .name = "remove-identity",
                                          .doc = "Removes operators that hand on their operand unchanged",
                                          .requires_ = kRequires,
                                      }),
                                      static_cast<uint32_t>(std::size(kOps)), 0, kOps};

bool all_positive(const regie_value* v) {
  const auto list = constant_integers(v);
  return list && std::all_of(list->begin(), list->end(), [](int64_t x) { return x > 0; });
}
bool all_zero(const regie_value* v) {
  const auto list = constant_integers(v);
  return list && std::all_of(list->begin(), list->end(), [](int64_t x) { return x == 0; });
}

class RemoveIdentity {
 public:
  explicit RemoveIdentity(const Config&) {}

  void apply(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_value* in = g.operand(n, 0);
    const regie_value* out = g.result(n, 0);
    if (!in || !out) return;
    const char* why = reason(g, n, *in, *out);
    if (!why) return;

    // A graph output lies in memory of its own and has a name of its own: it cannot be an input or a second
    // output.
    if (is_region_result(*out) && (in->kind == REGIE_VALUE_ARGUMENT || is_region_result(*in))) {
      c.note(n.id, "kept",
             g.describe(n) + " " + why + ", but makes output " + g.describe(*out) + " of " +
                 (in->kind == REGIE_VALUE_ARGUMENT ? "input " : "output ") + g.describe(*in));
      return;
    }
    Patch patch(c, std::string(sv(n.op)) + " " + why, n.id);
    patch.replace(out->id, in->id);
    patch.remove(n.id);
    patch.commit();
  }

 private:
  // Why the node's first result is its first operand; null if it is not.
  static const char* reason(const GraphView& g, const regie_node& n, const regie_value& in,
                            const regie_value& out) {
    const std::string_view op = sv(n.op);
    if (op == "Identity") return "hands on its operand";
    if (op == "Dropout") {
      const regie_value* mask = g.result(n, 1);
      if (mask && mask->use_count) return nullptr;
      const regie_value* training = g.operand(n, 2);
      if (training && constant_bool(training) != false) return nullptr;
      return "does nothing outside of training";
    }
    // Equal types are necessary for the rest.
    if (!same_type(in.type, out.type)) return nullptr;
    if (op == "Cast") return "to the type that it has";
    if (op == "Transpose") {
      const auto perm = Attrs(n).integers("perm");
      if (!perm) return in.type.rank <= 1 ? "leaves the order of the axes" : nullptr;
      for (size_t i = 0; i < perm->size(); ++i)
        if ((*perm)[i] != static_cast<int64_t>(i)) return nullptr;
      return "leaves the order of the axes";
    }
    if (op == "Slice") {
      // Of the same extent: with positive steps it takes everything in order; with a negative one it
      // reverses.
      const regie_value* steps = g.operand(n, 4);
      return !steps || all_positive(steps) ? "takes everything" : nullptr;
    }
    if (op == "Pad") return all_zero(g.operand(n, 1)) ? "by nothing" : nullptr;
    if (op == "Concat") return n.operand_count == 1 ? "of one operand" : nullptr;
    return "to the shape that it has";  // Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile
  }
};

constexpr regie_rewrite_table kTable = rewrite_table<RemoveIdentity>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_REWRITE_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
