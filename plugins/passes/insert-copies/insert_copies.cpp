// insert-copies: brings every operand into the memory space that its reader reads.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr uint32_t kHost =
    0;  // the memory space of arguments and results of the graph, and of what control flow hands over
constexpr std::string_view kCopy = "regie.Copy";

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "insert-copies",
    .doc = "Inserts a copy wherever a value is needed in another memory space than it lies in",
    .requires_ = kRequires,
});

// One copy: of a value, into a space, for these readers.
struct Copy {
  uint32_t value, space;
  uint32_t anchor;                                          // the first reader, or what computes it
  bool hands_over = false;                                  // read by the region's results
  std::vector<std::pair<uint32_t, uint32_t>> readers = {};  // node, operand
};

class InsertCopies {
 public:
  explicit InsertCopies(const Config&) {}

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    const std::vector<uint32_t> regions = g.task_regions();
    find_hosted(g, regions);
    for (uint32_t region : regions) {
      set_spaces(c, region);
      std::vector<Copy> copies = needed(g, region);
      std::stable_partition(copies.begin(), copies.end(), [](const Copy& k) { return k.hands_over; });
      for (const Copy& copy : copies) insert(c, copy);
    }
  }

 private:
  static uint32_t engine_space(const GraphView& g, const regie_node& n) {
    if (n.engine == REGIE_NONE)
      throw Failure(REGIE_INTERNAL, "it has no engine, although the graph is placed", g.describe(n));
    return g.engine(n.engine).space;
  }

  // A region without nodes that hands over what it captured has no place for a copy of its own: its owner
  // gets one.
  void find_hosted(const GraphView& g, const std::vector<uint32_t>& regions) {
    hosted_.clear();
    for (uint32_t r : regions) {
      const regie_region& region = g.region(r);
      if (region.parent == REGIE_NONE || region.first != REGIE_NONE) continue;
      const regie_node& owner = g.node(region.parent);
      for (uint32_t v : results_of(region))
        if (g.value(v).kind == REGIE_VALUE_ARGUMENT && g.value(v).owner == r)
          if (const uint32_t place = g.captured_place(g.value(v)); place != REGIE_NONE)
            hosted_.insert(uint64_t{owner.id} << 32 | place);
    }
  }
  bool is_hosted(uint32_t node, uint32_t operand) const {
    return hosted_.count(uint64_t{node} << 32 | operand) != 0;
  }

  // Where a value lies; REGIE_NONE: everywhere, as constants are uploaded when a model is loaded.
  uint32_t space_of(const GraphView& g, uint32_t id) const {
    const regie_value* v = &g.value(id);
    while (v->kind == REGIE_VALUE_ARGUMENT) {
      const uint32_t outer = g.operand_behind(*v);
      if (outer == REGIE_NONE) return kHost;
      const regie_node& owner = g.node(g.region(v->owner).parent);
      if (is_hosted(owner.id, g.captured_place(*v)) && !is_constant(g.value(outer))) return kHost;
      v = &g.value(outer);
    }
    if (is_constant(*v)) return REGIE_NONE;
    const regie_node& n = *g.producer(*v);
    if (is_control_flow(n)) return kHost;
    if (sv(n.op) == kCopy && v->space != REGIE_NONE) return v->space;
    return engine_space(g, n);
  }

  void set_space(PassContext& c, uint32_t value) {
    if (value == REGIE_NONE) return;
    const uint32_t space = space_of(c.graph(), value);
    if (space != REGIE_NONE && c.graph().value(value).space != space) c.set_space(value, space);
  }
  void set_spaces(PassContext& c, uint32_t region) {
    for (uint32_t v : args_of(c.graph().region(region))) set_space(c, v);
    for (const regie_node& n : c.graph().nodes(region))
      for (uint32_t v : results_of(n)) set_space(c, v);
  }

  // The copies of one region, in the order of their first readers.
  std::vector<Copy> needed(const GraphView& g, uint32_t region) const {
    std::vector<Copy> copies;
    std::unordered_map<uint64_t, size_t> known;  // value and space
    auto need = [&](uint32_t value, uint32_t space, uint32_t anchor) -> Copy* {
      if (value == REGIE_NONE) return nullptr;
      const uint32_t here = space_of(g, value);
      if (here == REGIE_NONE || here == space) return nullptr;
      const auto [at, fresh] = known.emplace(uint64_t{value} << 32 | space, copies.size());
      if (fresh) copies.push_back({value, space, anchor});
      return &copies[at->second];
    };
    for (const regie_node& n : g.nodes(region)) {
      if (sv(n.op) == kCopy) continue;
      // Control flow reads its own operands, such as a condition, on the host; its captures stay where they
      // are.
      const bool control = is_control_flow(n);
      const uint32_t space = control ? kHost : engine_space(g, n);
      const uint32_t own = control ? g.own_operands(n) : n.operand_count;
      for (uint32_t i = 0; i < n.operand_count; ++i) {
        if (i >= own && !is_hosted(n.id, i)) continue;
        if (Copy* copy = need(n.operands[i], space, n.id)) copy->readers.emplace_back(n.id, i);
      }
    }
    for (uint32_t v : results_of(g.region(region))) {
      Copy* copy = need(v, kHost, REGIE_NONE);
      if (!copy) continue;
      // Right behind what computes it (the host puts it in order), so that the bytes there are free early.
      const regie_node* producer = g.producer(g.value(v));
      copy->anchor = producer ? producer->id : g.region(region).first;
      copy->hands_over = true;
    }
    return copies;
  }

  void insert(PassContext& c, const Copy& copy) const {
    const GraphView& g = c.graph();
    const regie_value& v = g.value(copy.value);
    const uint32_t here = space_of(g, copy.value);
    // The device that is not the host moves the bytes, in either direction.
    const uint32_t engine = engine_in(g, copy.space == kHost ? here : copy.space);
    const std::string target = copy.space == kHost ? "host" : std::string(sv(g.engine(engine).device));
    Patch patch(c, "copy between devices", copy.anchor);
    const std::string name = (v.name.size ? std::string(sv(v.name)) : "value") + " to " + target;
    const std::string result = v.name.size ? std::string(sv(v.name)) + "." + target : std::string();
    const Patch::Made made =
        patch.node({.op = kCopy, .operands = {copy.value}, .name = name, .result_names = {result}});
    if (copy.hands_over) {
      // Results are rewired as a whole; the other readers in the value's own space go back to it.
      const std::set<std::pair<uint32_t, uint32_t>> readers(copy.readers.begin(), copy.readers.end());
      patch.replace(copy.value, made.results[0]);
      for (const regie_use& u : uses_of(v))
        if (!is_region_use(u) && !readers.count({u.node, u.operand}))
          patch.set_operand(u.node, u.operand, copy.value);
    } else {
      for (const auto& [node, operand] : copy.readers) patch.set_operand(node, operand, made.results[0]);
    }
    patch.commit();
    c.set_engine(made.node, engine, "copies " + g.describe(v) + " to " + target);
    c.set_space(made.results[0], copy.space);
  }

  static uint32_t engine_in(const GraphView& g, uint32_t space) {
    for (uint32_t e = 0; e < g.engines().size(); ++e)
      if (g.engine(e).space == space) return e;
    throw Failure(REGIE_INTERNAL, "no engine of the target uses memory space " + std::to_string(space));
  }

  std::unordered_set<uint64_t> hosted_;  // node and operand: captures that are needed on the host
};

constexpr regie_pass_table kTable = pass_table<InsertCopies>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
