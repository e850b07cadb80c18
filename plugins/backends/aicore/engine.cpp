// The engine `aicore`: answers for nodes with the reason, and compiles them to tile programs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "find_widths.h"
#include "hand_written.h"
#include "lower.h"
#include "matrices.h"
#include "reformat.h"
#include "reformat_matrices.h"
#include "regie/c/pass.h"
#include "regie/graph_view.hpp"
#include "regie/part_view.hpp"
#include "regie/tile/codec.h"
#include "regie_digests.h"
#include "tables.h"
#include "wishes.h"

using regie::sdk::Failure;

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h),
        chip(regie::sdk::read_accelerator(
            "aicore", params, kOwnKeys,
            [this](std::string_view key, std::string_view text) { return read(key, text); })) {
    chip.two_halves = operands_as != Operands::kHalves;
    auto demand = [](bool holds, const char* words) {
      if (!holds) throw Failure(REGIE_INVALID_INPUT, "aicore: " + std::string(words));
    };
    demand(operands_as == Operands::kChosen || width_settings.listed.empty(),
           "parameter 'two_halves' is for operands = \"auto\": the other settings leave nothing to choose");
    if (operands_as != Operands::kTwoHalves) return;
    demand(!rounding_given || rounding == aicore::Rounding::kNothing,
           "parameter 'operands' is f16x2, which what lies between tasks as halves has no use for: "
           "'between_tasks' must be f32, or left out");
    rounding = aicore::Rounding::kNothing;
  }
  // What is rounded to halves: between tasks (formats.h), and on the way into the cube (chip.h).
  bool read(std::string_view key, std::string_view text) {
    if (key == kOwnKeys[1]) {
      if (text != "f16" && text != "f16x2" && text != "auto")
        throw Failure(REGIE_INVALID_INPUT,
                      "aicore: parameter 'operands' is f16, f16x2 or auto, not '" + std::string(text) + "'");
      operands_as = text == "f16"    ? Operands::kHalves
                    : text == "auto" ? Operands::kChosen
                                     : Operands::kTwoHalves;
      return true;
    }
    if (key == kOwnKeys[2]) {
      width_settings.listed = aicore::listed_names(text);
      return true;
    }
    if (key == kOwnKeys[3]) {
      const std::string number(text);
      char* end = nullptr;
      width_settings.accuracy = std::strtod(number.c_str(), &end);
      if (number.empty() || *end || !(width_settings.accuracy > 0 && width_settings.accuracy < 1))
        throw Failure(REGIE_INVALID_INPUT,
                      "aicore: parameter 'accuracy' is between 0 and 1, not '" + number + "'");
      return true;
    }
    if (key != kOwnKeys[0]) return false;
    rounding_given = true;
    if (text == "f32")
      rounding = aicore::Rounding::kNothing;
    else if (text == "f16-where-exact")
      rounding = aicore::Rounding::kFree;
    else if (text == "f16")
      rounding = aicore::Rounding::kShared;
    else if (text == "f16-everywhere")
      rounding = aicore::Rounding::kAll;
    else
      throw Failure(
          REGIE_INVALID_INPUT,
          "aicore: parameter 'between_tasks' is f32, f16-where-exact, f16 or f16-everywhere, not '" +
              std::string(text) + "'");
    return true;
  }
  static constexpr std::string_view kOwnKeys[] = {"between_tasks", "operands", "two_halves", "accuracy"};
  enum class Operands { kHalves, kTwoHalves, kChosen };
  const regie_host* host;
  // Before `chip`, which reads them.
  aicore::Rounding rounding = aicore::Rounding::kShared;
  bool rounding_given = false;
  Operands operands_as = Operands::kChosen;
  aicore::WidthSettings width_settings;
  aicore::Chip chip;
  aicore::PlanCache plans;
  aicore::Verdicts verdicts;
  aicore::WidthFinder widths;
  std::vector<regie_tensor> operands, results;  // of the request at hand, as they lie
  std::string reason;                           // of the last answer
};

namespace aicore {
namespace {

Request request_of(regie_engine& e, const regie_graph* graph, uint32_t node,
                   const regie_engine_shapes& shapes) {
  const regie_node& n = graph->nodes[node];
  std::vector<regie_format> operand_formats, result_formats;
  auto format = [&](uint32_t v) { return v == REGIE_NONE ? kPlainFormat : graph->values[v].type.format; };
  for (uint32_t v : regie::sdk::operands_of(n)) operand_formats.push_back(format(v));
  for (uint32_t v : regie::sdk::results_of(n)) result_formats.push_back(format(v));
  e.operands = stored({shapes.operands, n.operand_count}, operand_formats);
  e.results = stored({shapes.results, n.result_count}, result_formats);
  return {e.chip,
          e.plans,
          graph,
          n,
          regie::sdk::sv(n.op),
          regie::sdk::Attrs(n),
          e.operands,
          e.results,
          std::move(operand_formats),
          std::move(result_formats)};
}

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

// Predicted with operands of one half; no end of time where there is no such program.
double ns_of_halves(regie_engine& e, const regie_graph* graph, uint32_t node,
                    const regie_engine_shapes& shapes) {
  if (!is_product(regie::sdk::sv(graph->nodes[node].op)) && !is_window(regie::sdk::sv(graph->nodes[node].op)))
    return INFINITY;
  Chip halves = e.chip;
  halves.two_halves = false;
  const Request r = request_of(e, graph, node, shapes);
  try {
    return halves.ns(lower({halves, r.plans, r.graph, r.node, r.op, r.attrs, r.operands, r.results,
                            r.operand_formats, r.result_formats})
                         .cycles);
  } catch (const Failure&) {
    return INFINITY;
  }
}

regie_status ask(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_answer* answer) {
  return regie::sdk::guard(e->host, [&] {
    *answer = {};
    try {
      Choice c = choose(request_of(*e, graph, node, *shapes), e->host, e->verdicts);
      answer->can = 1;
      // A Reshape's result lies on its operand, as on all engines of the device.
      const bool shares = regie::sdk::sv(graph->nodes[node].op) == "Reshape";
      answer->cost_ns = shares ? 0 : e->chip.ns(c.lowered.cycles);
      // Most operands that are chosen for are one half in the end, and nothing is known yet.
      if (!shares && e->operands_as == regie_engine::Operands::kChosen && !e->widths.asked())
        answer->cost_ns = std::min(answer->cost_ns, ns_of_halves(*e, graph, node, *shapes));
      e->reason = std::move(c.reason);
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
      e->reason = f.message;
    }
    answer->reason = regie::sdk::str(e->reason);
  });
}

// Programs read operands while they write results: nothing may lie on another. Parts may lie in their whole,
// as then no program runs.
uint32_t alias(regie_engine*, const regie_graph* graph, uint32_t id, uint32_t result, uint32_t operand) {
  const regie_node& n = graph->nodes[id];
  if (regie::sdk::joins_or_cuts(n)) {
    const bool one = regie::sdk::sv(n.op) == "Concat" ? result == 0 : operand == 0;
    return one && !regie::sdk::part_views(regie::sdk::GraphView(graph), n).empty() ? REGIE_ALIAS_VIEW
                                                                                   : REGIE_ALIAS_NONE;
  }
  return result == 0 && operand == 0 && leaves_bytes(graph, n) ? REGIE_ALIAS_VIEW : REGIE_ALIAS_NONE;
}

// Tensors of a node as the graph's types say, where these are concrete.
struct WrittenShapes {
  WrittenShapes(const regie_graph* graph, const regie_node& n) {
    dims.reserve(n.operand_count + n.result_count);
    for (uint32_t v : regie::sdk::operands_of(n)) known = known && add(graph, v, operands);
    for (uint32_t v : regie::sdk::results_of(n)) known = known && add(graph, v, results);
  }
  std::vector<std::vector<int64_t>> dims;
  std::vector<regie_tensor> operands, results;
  bool known = true;

 private:
  bool add(const regie_graph* graph, uint32_t v, std::vector<regie_tensor>& to) {
    regie_tensor t{};
    if (v != REGIE_NONE) {
      const regie_value& value = graph->values[v];
      if (value.type.rank < 0 || value.type.elem == REGIE_ELEM_UNKNOWN) return false;
      dims.emplace_back();
      for (regie_dim d : regie::sdk::dims_of(value.type)) {
        if (d < 0) return false;
        dims.back().push_back(d);
      }
      t.elem = value.type.elem;
      t.rank = value.type.rank;
      t.dims = dims.back().data();
      if (regie::sdk::is_constant(value) && value.data) {
        t.data = value.data->data;
        t.bytes = value.data->bytes;
      }
    }
    to.push_back(t);
    return true;
  }
};

// What it costs that the operand of a reader is f32, in nanoseconds.
double price_of_width(regie_engine& e, const regie_graph* graph, uint32_t node) {
  const regie_node& n = graph->nodes[node];
  const WrittenShapes shapes(graph, n);
  if (!shapes.known) return 0;
  Chip halves = e.chip;
  halves.two_halves = false;
  auto cycles = [&](const Chip& chip) {
    return lower({chip, e.plans, graph, n, regie::sdk::sv(n.op), regie::sdk::Attrs(n), shapes.operands,
                  shapes.results})
        .cycles;
  };
  try {
    return std::max(0.0, e.chip.ns(cycles(e.chip)) - e.chip.ns(cycles(halves)));
  } catch (const Failure&) {
    return 0;
  }
}

// Where there is a choice: which values lie as f32.
const Widths* widths_for(regie_engine& e, const regie_graph* graph, uint32_t engine) {
  if (e.operands_as != regie_engine::Operands::kChosen) return nullptr;
  e.width_settings.all_rounded = e.rounding == Rounding::kAll;
  return &e.widths.of(e.host, graph, engine, e.width_settings,
                      [&](const Widths::Reader& r) { return price_of_width(e, graph, r.node); });
}

uint32_t formats(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_format_wish* wishes, uint32_t capacity) {
  try {
    const Request r = request_of(*e, graph, node, *shapes);
    // A hand-written program is for row-major tensors, and what another format saves is saved from its time.
    const double quickest = choose(r, e->host, e->verdicts).lowered.cycles;
    const std::vector<regie_format_wish> all =
        wishes_of(r, e->rounding, widths_for(*e, graph, r.node.engine), quickest);
    std::copy_n(all.begin(), std::min<size_t>(all.size(), capacity), wishes);
    return static_cast<uint32_t>(all.size());
  } catch (const std::exception&) {
    return 0;
  }
}

// What is rounded only where all readers round must not be widened for one that does not.
double reformat_ns(regie_engine* e, const regie_tensor* t, regie_format from, regie_format to) {
  const bool wide = t->elem == REGIE_F32;
  if (wide && is_half(from) && !is_half(to) && e->rounding == Rounding::kFree) return -1;
  if (wide && is_half(to) && e->rounding == Rounding::kNothing) return -1;
  try {
    const std::span<const int64_t> dims{t->dims, static_cast<size_t>(t->rank)};
    if (is_matrix(from) || is_matrix(to))
      return e->chip.ns(plan_matrix_reformat(e->chip, dims, t->elem, from, t->elem, to).cycles);
    return e->chip.ns(plan_reformat(e->chip, dims, t->elem, from, t->elem, to).cycles);
  } catch (const std::exception&) {
    return -1;
  }
}

// A fusion whose working set overflows the buffers is vetoed with the figures, and so are attention and sums
// of bytes that have no program while their parts have. Only nodes of concrete shapes can be judged.
uint32_t accept_fusion(regie_engine* e, const regie_graph* graph, uint32_t id, regie_str* reason) {
  const regie_node& n = graph->nodes[id];
  const WrittenShapes written(graph, n);
  if (!written.known) return 1;
  const regie_engine_shapes shapes{written.operands.data(), written.results.data()};
  try {
    choose(request_of(*e, graph, id, shapes), e->host, e->verdicts);
    return 1;
  } catch (const Failure& f) {
    const bool overflows = dynamic_cast<const Overflow*>(&f) != nullptr;
    const std::string_view op = regie::sdk::sv(n.op);
    if (f.code != REGIE_UNSUPPORTED || (!overflows && op != "regie.Attention" && op != "regie.QConvAdd"))
      return 1;
    e->reason = f.message;
    *reason = regie::sdk::str(e->reason);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

regie_status compile(regie_engine* e, const regie_engine_compile* request) {
  return regie::sdk::guard(e->host, [&] {
    const Lowered l =
        choose(request_of(*e, request->graph, request->node, request->shapes), e->host, e->verdicts).lowered;
    const Written w = l.write();
    const std::string blob = regie::tile::encode(w.program);
    std::vector<regie_packed_weight> weights;
    for (const PackedWeight& p : w.weights)
      weights.push_back({p.operand, 512, p.bytes.data(), p.bytes.size(), regie::sdk::str(p.layout)});
    regie_kernel k{};
    k.struct_size = sizeof k;
    k.format = regie::sdk::lit(REGIE_TILE_FORMAT);
    k.name = regie::sdk::str(l.name);
    k.blob = blob.data();
    k.blob_size = blob.size();
    k.weight_count = static_cast<uint32_t>(weights.size());
    k.weights = weights.data();
    k.scratch_bytes = w.scratch_bytes;
    regie::sdk::check(request->emit(request, &k));
  });
}

constexpr regie_engine_info kEngines[] = {
    {regie::sdk::lit("aicore"),
     regie::sdk::lit("AI Cores: tile programs for matrix products, convolutions and vectors")}};

}  // namespace

extern const regie_engine_table engine_table = {
    regie::sdk::head(sizeof(regie_engine_table), REGIE_DIGEST_ENGINE),
    1,
    0,
    kEngines,
    create,
    destroy,
    ask,
    alias,
    formats,
    accept_fusion,
    compile,
    reformat_ns};

}  // namespace aicore
