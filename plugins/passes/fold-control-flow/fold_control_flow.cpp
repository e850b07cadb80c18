// fold-control-flow: decisions that constants make are made at compile time.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kOps[] = {lit("If"), lit("Loop")};
constexpr regie_rewrite_info kInfo = {
    pass_info({
        .name = "fold-control-flow",
        .doc = "Takes the branch or the iterations that constants choose, and "
               "lets constants into regions",
        .requires_ = kRequires,
    }),
    static_cast<uint32_t>(std::size(kOps)), 0, kOps};

std::optional<int64_t> constant_integer(const regie_value* v) {
  const auto list = constant_integers(v);
  return list && list->size() == 1 ? std::optional(list->front()) : std::nullopt;
}

class FoldControlFlow {
 public:
  explicit FoldControlFlow(const Config&) {}

  void apply(PassContext& c, const regie_node& n) {
    if (sv(n.op) == "If") {
      if (const auto condition = constant_bool(c.graph().operand(n, 0)))
        return take(c, n, *condition ? 0 : 1);
    } else if (fold_loop(c, n)) {
      return;
    }
    let_in(c, n);
  }

 private:
  static std::vector<uint32_t> operands_from(const regie_node& n, uint32_t first) {
    return {n.operands + first, n.operands + n.operand_count};
  }

  static void take(PassContext& c, const regie_node& n, uint32_t branch) {
    Patch patch(c, branch ? "the condition is false" : "the condition is true", n.id);
    const std::vector<uint32_t> results = patch.inline_region(n.id, branch, operands_from(n, 1));
    for (uint32_t i = 0; i < n.result_count; ++i)
      if (n.results[i] != REGIE_NONE) patch.replace(n.results[i], results[i]);
    patch.remove(n.id);
    patch.commit();
  }

  // ---- Loop ----

  static bool fold_loop(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_region& body = g.region(n.regions[0]);
    const auto trips = constant_integer(g.operand(n, 0));
    const regie_value* condition = g.operand(n, 1);
    const std::optional<bool> begins = condition ? constant_bool(condition) : std::optional(true);
    if ((trips && *trips <= 0) || begins == false) return no_iteration(c, n);
    const bool stops = constant_bool(&g.value(body.results[0])) == false;
    const bool any = n.operands[0] == REGIE_NONE || (trips && *trips >= 1);
    if (begins == true && any && (stops || trips == 1)) return one_iteration(c, n), true;
    return false;
  }

  static bool no_iteration(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const uint32_t carried = GraphView::carried_values(n);
    for (uint32_t i = carried; i < n.result_count; ++i) {
      if (n.results[i] == REGIE_NONE || g.value(n.results[i]).use_count == 0) continue;
      const regie_type& t = g.value(n.results[i]).type;
      if (std::all_of(t.dims, t.dims + std::max(t.rank, 0), [](regie_dim d) { return d >= 0; })) continue;
      c.note(n.id, "kept",
             g.describe(n) + " makes no iteration, but the size of " + g.describe(g.value(n.results[i])) +
                 " is not known");
      return false;
    }
    Patch patch(c, "makes no iteration", n.id);
    for (uint32_t i = 0; i < n.result_count; ++i) {
      if (n.results[i] == REGIE_NONE || g.value(n.results[i]).use_count == 0) continue;
      patch.replace(n.results[i], i < carried ? n.operands[2 + i] : empty(patch, g.value(n.results[i])));
    }
    patch.remove(n.id);
    patch.commit();
    return true;
  }

  static uint32_t empty(Patch& patch, const regie_value& collected) {
    std::vector<int64_t> dims(collected.type.dims, collected.type.dims + collected.type.rank);
    dims[0] = 0;
    uint64_t nothing = 0;
    const regie_tensor t{collected.type.elem, 0, collected.type.rank, dims.data(), nullptr, &nothing, 0};
    return patch.constant(REGIE_VALUE_CONSTANT, t, sv(collected.name));
  }

  static void one_iteration(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const regie_region& body = g.region(n.regions[0]);
    const uint32_t carried = GraphView::carried_values(n);
    Patch patch(c, "makes one iteration", n.id);
    int64_t number = 0, axis = 0, one = 1;
    uint8_t yes = 1;
    auto scalar = [&](uint32_t argument, const void* data, uint64_t bytes) {
      const regie_type& t = g.value(argument).type;
      const std::vector<int64_t> ones(static_cast<size_t>(std::max(t.rank, 0)), 1);
      return patch.constant(REGIE_VALUE_CONSTANT, {t.elem, 0, static_cast<int32_t>(ones.size()), ones.data(),
                                                   nullptr, const_cast<void*>(data), bytes});
    };
    std::vector<uint32_t> args{scalar(body.args[0], &number, 8), scalar(body.args[1], &yes, 1)};
    for (uint32_t operand : operands_from(n, 2)) args.push_back(operand);
    const std::vector<uint32_t> results = patch.inline_region(n.id, 0, args);
    for (uint32_t i = 0; i < n.result_count; ++i) {
      if (n.results[i] == REGIE_NONE || g.value(n.results[i]).use_count == 0) continue;
      uint32_t value = results[1 + i];
      if (i >= carried) {
        const uint32_t axes =
            patch.constant(REGIE_VALUE_CONSTANT, {REGIE_I64, 0, 1, &one, nullptr, &axis, 8});
        value = patch.node({.op = "Unsqueeze", .operands = {value, axes}, .name = sv(n.name)}).results[0];
      }
      patch.replace(n.results[i], value);
    }
    patch.remove(n.id);
    patch.commit();
  }

  // ---- What stays ----

  static void let_in(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    const bool loop = sv(n.op) == "Loop";
    std::vector<std::pair<uint32_t, uint32_t>> swaps;  // who reads the first reads the second
    for (uint32_t r : regions_of(n))
      for (uint32_t a : args_of(g.region(r))) {
        const regie_value& argument = g.value(a);
        if (argument.use_count == 0) continue;
        const uint32_t captured = g.operand_behind(argument);
        if (captured != REGIE_NONE && is_constant(g.value(captured))) swaps.emplace_back(a, captured);
        if (!loop || captured != REGIE_NONE || argument.index < 2) continue;
        // Handed on from iteration to iteration as it is.
        const uint32_t i = argument.index - 2, initial = n.operands[argument.index];
        if (g.region(r).results[1 + i] != a) continue;
        if (n.results[i] != REGIE_NONE && g.value(n.results[i]).use_count)
          swaps.emplace_back(n.results[i], initial);
        if (is_constant(g.value(initial)) && argument.use_count > 1) swaps.emplace_back(a, initial);
      }
    if (swaps.empty()) return;
    Patch patch(c, "what stays as it is is read where it is", n.id);
    for (const auto& [from, to] : swaps) patch.replace(from, to);
    patch.commit();
  }
};

constexpr regie_rewrite_table kTable = rewrite_table<FoldControlFlow>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_REWRITE_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
