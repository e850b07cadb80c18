// simplify-reshapes: views of views become one, and a Reshape by a computed shape one by a constant.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kOps[] = {lit("Reshape"), lit("Flatten"), lit("Squeeze"), lit("Unsqueeze"),
                              lit("Transpose")};
constexpr regie_rewrite_info kInfo = {pass_info({
                                          .name = "simplify-reshapes",
                                          .doc = "Merges views of views, and gives them constant shapes",
                                          .requires_ = kRequires,
                                      }),
                                      static_cast<uint32_t>(std::size(kOps)), 0, kOps};

bool known(const regie_type& t) {
  return t.rank >= 0 && t.container == REGIE_TENSOR &&
         std::find(t.dims, t.dims + t.rank, REGIE_DIM_UNKNOWN) == t.dims + t.rank;
}

class SimplifyReshapes {
 public:
  explicit SimplifyReshapes(const Config&) {}

  void apply(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_value* out = g.result(n, 0);
    const regie_value* in = g.operand(n, 0);
    if (!in || !out || !known(in->type) || !known(out->type) || n.control_count || !is_view(g, n)) return;

    // The first value that all these views are of. Each view is shown to this pass itself, so one step back
    // is enough to merge whole chains.
    const regie_value* source = in;
    const regie_node* before = g.producer(*in);
    const bool chained = before && before->control_count == 0 && g.operand(*before, 0) &&
                         known(g.operand(*before, 0)->type) && is_view(g, *before);
    const bool computed = sv(n.op) == "Reshape" && g.operand(n, 1) && !is_constant(*g.operand(n, 1));
    if (!chained && !computed && sv(n.op) != "Transpose") return;

    auto shape = chained ? constant_shape(g.operand(*before, 0)->type, out->type) : std::nullopt;
    if (shape) source = g.operand(*before, 0);
    if (!shape && (computed || sv(n.op) == "Transpose")) shape = constant_shape(in->type, out->type);
    if (!shape) {
      if (computed)
        c.note(n.id, "kept",
               g.describe(n) + " by a shape that is computed: more than one dimension of " +
                   g.describe(*out) + " is neither a number nor that of its operand");
      return;
    }
    Patch patch(c, source == in ? "constant shape of " + std::string(sv(n.op)) : "views of views", n.id);
    const int64_t count = static_cast<int64_t>(shape->size());
    const regie_tensor tensor{REGIE_I64, 0, 1, &count, nullptr, shape->data(), shape->size() * 8};
    const uint32_t constant = patch.constant(REGIE_VALUE_CONSTANT, tensor);
    const auto made = patch.node({.op = "Reshape", .operands = {source->id, constant}, .name = sv(n.name)});
    patch.replace(out->id, made.results[0]);
    patch.remove(n.id);
    patch.commit();
  }

 private:
  // Of the same elements in the same order. A Transpose is if it moves axes of size 1 only.
  static bool is_view(const GraphView& g, const regie_node& n) {
    const std::string_view op = sv(n.op);
    if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") return true;
    if (op != "Transpose") return false;
    const regie_type& x = g.operand(n, 0)->type;
    const auto perm = Attrs(n).integers("perm");
    int64_t last = -1;
    for (int32_t i = 0; i < x.rank; ++i) {
      const int64_t axis = perm ? (*perm)[static_cast<size_t>(i)] : x.rank - 1 - i;
      if (axis < 0 || axis >= x.rank || x.dims[axis] == 1) continue;
      if (axis < last) return false;
      last = axis;
    }
    return true;
  }

  // The operand of a Reshape from `from` to `to`: numbers, 0 for what stays in its place, -1 for one more.
  // What stays in its place is not divided by, so that an empty batch does no harm.
  static std::optional<std::vector<int64_t>> constant_shape(const regie_type& from, const regie_type& to) {
    std::vector<int64_t> shape;
    bool found_out = false;
    for (int32_t i = 0; i < to.rank; ++i) {
      const regie_dim d = to.dims[i];
      if (d == 0) return std::nullopt;  // would mean: what stays in its place
      if (d > 0) {
        shape.push_back(d);
      } else if (i < from.rank && from.dims[i] == d) {
        shape.push_back(0);
      } else if (!found_out) {
        found_out = true;
        shape.push_back(-1);
      } else {
        return std::nullopt;
      }
    }
    return shape;
  }
};

constexpr regie_rewrite_table kTable = rewrite_table<SimplifyReshapes>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_REWRITE_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
