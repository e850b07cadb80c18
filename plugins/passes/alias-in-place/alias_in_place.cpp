// alias-in-place: results that lie on the bytes of an operand.
#include <string>
#include <vector>

#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "alias-in-place",
    .doc = "Lets results lie on the bytes of operands: views, and results written over what is read for the "
           "last time",
    .requires_ = kRequires,
});

// Values that share bytes form a class, named by its root: the value that owns the bytes. Of its readers it
// is enough to know the last one in program order, and on which devices they are.
struct Readers {
  bool known = false;
  uint64_t last = 0;  // order of the last reader
  uint32_t last_node = REGIE_NONE, last_value = REGIE_NONE;
  uint32_t handed_out = REGIE_NONE;           // a member that the region hands out
  uint32_t on[2] = {REGIE_NONE, REGIE_NONE};  // a reader each of two different devices
};

class AliasInPlace {
 public:
  explicit AliasInPlace(const Config&) {}

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    root_.resize(g.value_count());
    for (uint32_t v = 0; v < root_.size(); ++v) root_[v] = v;
    readers_.assign(g.value_count(), {});
    for (uint32_t region : g.task_regions())
      for (const regie_node& n : g.nodes(region))
        for (uint32_t r = 0; !is_control_flow(n) && r < n.result_count; ++r)
          if (n.results[r] != REGIE_NONE) place(c, n, r);
  }

 private:
  void place(PassContext& c, const regie_node& n, uint32_t r) {
    const GraphView& g = c.graph();
    const regie_value& result = g.value(n.results[r]);
    if (result.alias_of != REGIE_NONE)
      return join(g, result.id, root_[result.alias_of]);  // by an earlier round
    std::vector<std::string> misses;
    for (uint32_t o = 0; o < n.operand_count; ++o) {
      const uint32_t kind = n.operands[o] == REGIE_NONE ? 0u : c.alias_kind(n.id, r, o);
      if (kind == REGIE_ALIAS_NONE) continue;
      const regie_value& operand = g.value(n.operands[o]);
      std::string why = obstacle(c, n, result, operand);
      if (why.empty() && kind == REGIE_ALIAS_INPLACE) why = overwrite_obstacle(c, n, r, operand);
      if (why.empty()) {
        const char* how = kind == REGIE_ALIAS_VIEW ? " is a view of " : " is written over ";
        c.set_alias(result.id, root_[operand.id], 0, g.describe(result) + how + g.describe(operand));
        return join(g, result.id, root_[operand.id]);
      }
      misses.push_back(g.describe(n) + ": " + g.describe(result) +
                       " keeps its own bytes instead of those of " + g.describe(operand) + ": " + why);
    }
    for (const std::string& text : misses) c.note(n.id, "near-miss", text);
  }

  // Why the result cannot share the operand's bytes at all; empty if it can.
  std::string obstacle(const PassContext& c, const regie_node& n, const regie_value& result,
                       const regie_value& operand) const {
    const GraphView& g = c.graph();
    const regie_value& root = g.value(root_[operand.id]);
    if (is_constant(operand)) return "that is a constant";
    if (operand.kind == REGIE_VALUE_ARGUMENT)
      return g.region(operand.owner).parent == REGIE_NONE ? "that is an input of the graph"
                                                          : "that lies outside of the region";
    if (is_region_result(result)) return "it is handed out, in memory of the receiver";
    if (is_region_result(root)) return "those are handed out, in memory of the receiver";
    if (result.space != operand.space) return "that lies in another memory space";
    if (!same_bytes(c, result.type, operand.type)) return "it may have another size";
    for (uint32_t v : results_of(n))
      if (v != REGIE_NONE && v != result.id && root_[v] == root.id) return "another result lies there";
    return {};
  }

  // Why the node must not write over the operand; empty if it may.
  std::string overwrite_obstacle(const PassContext& c, const regie_node& n, uint32_t r,
                                 const regie_value& operand) {
    const GraphView& g = c.graph();
    const uint32_t root = root_[operand.id];
    // Wherever the node itself reads these bytes it must be able to overwrite them.
    for (uint32_t o = 0; o < n.operand_count; ++o) {
      if (n.operands[o] == REGIE_NONE || root_[n.operands[o]] != root) continue;
      if (n.operands[o] != operand.id) return "it also reads them as " + g.describe(g.value(n.operands[o]));
      if (c.alias_kind(n.id, r, o) != REGIE_ALIAS_INPLACE)
        return "it also reads them as operand " + std::to_string(o);
    }
    const Readers& all = readers(g, root);
    if (all.handed_out != REGIE_NONE) return g.describe(g.value(all.handed_out)) + " is handed out";
    if (all.last > n.order)
      return g.describe(g.node(all.last_node)) + " still reads " + g.describe(g.value(all.last_value));
    for (uint32_t other : all.on)
      if (other != REGIE_NONE && device(g, other) != device(g, n.id))
        return g.describe(g.node(other)) +
               " reads them on another device, and it would have to wait for that";
    return {};
  }

  Readers& readers(const GraphView& g, uint32_t root) {
    Readers& all = readers_[root];
    if (!all.known) {
      all.known = true;
      add_readers(g, root, &all);
    }
    return all;
  }
  void join(const GraphView& g, uint32_t value, uint32_t root) {
    root_[value] = root;
    add_readers(g, value, &readers(g, root));
  }
  static void add_readers(const GraphView& g, uint32_t value, Readers* all) {
    for (const regie_use& u : uses_of(g.value(value))) {
      if (is_region_use(u)) {
        all->handed_out = value;
        continue;
      }
      const regie_node& reader = g.node(u.node);
      if (reader.order >= all->last) {
        all->last = reader.order;
        all->last_node = reader.id;
        all->last_value = value;
      }
      if (all->on[0] == REGIE_NONE)
        all->on[0] = reader.id;
      else if (all->on[1] == REGIE_NONE && device(g, reader.id) != device(g, all->on[0]))
        all->on[1] = reader.id;
    }
  }
  static uint32_t device(const GraphView& g, uint32_t node) {
    const uint32_t engine = g.node(node).engine;
    if (engine == REGIE_NONE)
      throw Failure(REGIE_INTERNAL, "it has no engine, although the graph is placed",
                    g.describe(g.node(node)));
    return g.engine(engine).device_index;
  }

  static bool same_bytes(const PassContext& c, const regie_type& a, const regie_type& b) {
    if (elem_bits(a.elem) == 0 || elem_bits(a.elem) != elem_bits(b.elem) || a.rank < 0 || b.rank < 0)
      return false;
    return same_dims(a, b) || c.dims().product(dims_of(a)) == c.dims().product(dims_of(b));
  }

  std::vector<uint32_t> root_;    // by value
  std::vector<Readers> readers_;  // by root
};

constexpr regie_pass_table kTable = pass_table<AliasInPlace>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
