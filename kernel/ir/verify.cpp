#include "ir/verify.h"

#include <algorithm>
#include <unordered_set>

#include "ir/types.h"
#include "text/text.h"

namespace regie {

namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, bool shapes_known) : g_(graph), shapes_known_(shapes_known) {}

  Status run() {
    REGIE_TRY(walk());
    REGIE_TRY(check_values());
    REGIE_TRY(check_uses());
    return check_names();
  }

  Status check_aliases() const {
    std::vector<uint8_t> state(g_.value_count(), 0);  // 1: on the path, 2: known to end
    for (uint32_t v = 0; v < g_.value_count(); ++v) {
      std::vector<uint32_t> path;
      uint32_t at = v;
      while (g_.live_value(at) && state[at] == 0) {
        state[at] = 1;
        path.push_back(at);
        uint32_t base = g_.value(at).alias_of;
        if (base == REGIE_NONE) break;
        if (!g_.live_value(base))
          return wrong(g_.describe_value(at) + " lies in a value that does not exist");
        if (g_.value(base).space != g_.value(at).space)
          return wrong(g_.describe_value(at) + " lies in a value of another memory space");
        if (state[base] == 1) return wrong(g_.describe_value(at) + " lies in itself");
        at = base;
      }
      for (uint32_t p : path) state[p] = 2;
    }
    return {};
  }

 private:
  Status wrong(const std::string& what, uint32_t node = REGIE_NONE) const {
    return internal_error(node == REGIE_NONE ? what : g_.describe_node(node) + " " + what);
  }

  // Every region once, from the outermost inwards; every live node must be met.
  Status walk() {
    if (g_.region_count() == 0 || g_.region(0).parent != REGIE_NONE) return wrong("region 0 has an owner");
    region_seen_.assign(g_.region_count(), 0);
    depth_first_ = {0};
    region_seen_[0] = 1;
    uint32_t met = 0;
    for (size_t i = 0; i < depth_first_.size(); ++i) {
      uint32_t r = depth_first_[i], prev = REGIE_NONE;
      const regie_region& region = g_.region(r);
      if (region.id != r) return wrong("region " + std::to_string(r) + " has another id");
      for (uint32_t n = region.first; n != REGIE_NONE; n = g_.node(n).next) {
        if (!g_.live(n)) return wrong("region " + std::to_string(r) + " links a removed node");
        const regie_node& node = g_.node(n);
        if (node.id != n || node.region != r) return wrong("is linked in a region that it is not of", n);
        if (node.prev != prev) return wrong("has a neighbour that does not link back", n);
        if (prev != REGIE_NONE && g_.node(prev).order >= node.order)
          return wrong("has a label out of order", n);
        if (++met > g_.live_node_count()) return wrong("a region's list of nodes has no end");
        REGIE_TRY(check_node(n));
        prev = n;
      }
      if (region.last != prev)
        return wrong("region " + std::to_string(r) + " ends with another node than its list");
    }
    uint32_t live = 0;
    for (uint32_t n = 0; n < g_.node_count(); ++n) live += g_.live(n);
    if (live != g_.live_node_count() || met != live)
      return wrong("there are live nodes that no region links");
    return {};
  }

  Status check_node(uint32_t n) {
    const regie_node& node = g_.node(n);
    for (uint32_t k = 0; k < node.region_count; ++k) {
      uint32_t r = node.regions[k];
      if (r >= g_.region_count() || region_seen_[r])
        return wrong("owns a region that another node owns too", n);
      if (g_.region(r).parent != n) return wrong("owns a region that names another owner", n);
      if (g_.scope(r) != node.region) return wrong("owns a region with another scope", n);
      region_seen_[r] = 1;
      depth_first_.push_back(r);
    }
    for (uint32_t i = 0; i < node.operand_count; ++i) {
      uint32_t v = node.operands[i];
      if (v == REGIE_NONE) continue;
      if (!g_.live_value(v))
        return wrong("reads a value that does not exist (operand " + std::to_string(i) + ")", n);
      if (!g_.visible(v, node.region))
        return wrong("reads " + g_.describe_value(v) + " of another region", n);
      if (g_.value(v).kind == REGIE_VALUE_RESULT && g_.node(g_.value(v).owner).order >= node.order)
        return wrong("reads " + g_.describe_value(v) + " before it is made", n);
    }
    for (uint32_t i = 0; i < node.result_count; ++i) {
      uint32_t v = node.results[i];
      if (v == REGIE_NONE) continue;
      if (!g_.live_value(v) || g_.value(v).kind != REGIE_VALUE_RESULT || g_.value(v).owner != n ||
          g_.value(v).index != i)
        return wrong("has a result that is not its own (" + std::to_string(i) + ")", n);
    }
    for (uint32_t i = 1; i < node.attr_count; ++i)
      if (!(view(node.attrs[i - 1].name) < view(node.attrs[i].name)))
        return wrong("has attributes out of order or twice", n);
    for (uint32_t k = 0; k < node.control_count; ++k) {
      uint32_t c = node.control[k];
      if (!g_.live(c) || g_.node(c).region != node.region || g_.node(c).order >= node.order)
        return wrong("has a control edge from a node that does not stand before it in its region", n);
    }
    for (uint32_t k = 0; k < node.origin_count; ++k)
      if (node.origins[k] >= g_.view().origin_count || (k && node.origins[k - 1] >= node.origins[k]))
        return wrong("has origins out of order or beyond the table", n);
    if (node.engine != REGIE_NONE && node.engine >= g_.view().engine_count)
      return wrong("is placed on no engine", n);
    return {};
  }

  Status check_values() {
    for (uint32_t v = 0; v < g_.value_count(); ++v) {
      const regie_value& value = g_.value(v);
      if (value.id != v) return wrong("value " + std::to_string(v) + " has another id");
      if (value.kind == REGIE_VALUE_DEAD) {
        if (value.use_count) return wrong("a removed value is still read");
        continue;
      }
      if (value.kind == REGIE_VALUE_RESULT) {
        bool own = g_.live(value.owner) && value.index < g_.node(value.owner).result_count &&
                   g_.node(value.owner).results[value.index] == v;
        if (!own) return wrong(g_.describe_value(v) + " is not among its node's results");
      } else if (value.owner >= g_.region_count() || !region_seen_[value.owner]) {
        return wrong(g_.describe_value(v) + " belongs to no region of the graph");
      }
      if (value.kind == REGIE_VALUE_ARGUMENT) {
        const regie_region& r = g_.region(value.owner);
        if (value.index >= r.arg_count || r.args[value.index] != v)
          return wrong(g_.describe_value(v) + " is not among its region's arguments");
      }
      REGIE_TRY(check_type(value));
    }
    for (uint32_t r : depth_first_)
      for (uint32_t i = 0; i < g_.region(r).arg_count; ++i) {
        uint32_t v = g_.region(r).args[i];
        if (!g_.live_value(v) || g_.value(v).kind != REGIE_VALUE_ARGUMENT || g_.value(v).owner != r)
          return wrong("region " + std::to_string(r) + " has an argument that is not its own");
      }
    return {};
  }

  Status check_type(const regie_value& value) const {
    const regie_type& t = value.type;
    if (t.rank < -1 || (t.rank > 0 && !t.dims))
      return wrong(g_.describe_value(value.id) + " has a type without dimensions");
    if (t.container > REGIE_OPTIONAL_SEQUENCE)
      return wrong(g_.describe_value(value.id) + " is in no known container");
    bool tensor = t.container == REGIE_TENSOR;
    if (shapes_known_ && tensor && !type_known(t))
      return wrong(g_.describe_value(value.id) +
                   " has a type that is not wholly known: " + print_type(g_, t));
    if (!value.data) return {};
    const regie_tensor& d = *value.data;
    std::span<const int64_t> dims(d.dims, static_cast<size_t>(d.rank));
    bool fits = d.elem == t.elem && d.bytes == elem_bytes(d.elem, static_cast<uint64_t>(element_count(dims)));
    if (t.format == REGIE_FORMAT_ND)
      fits = fits && d.rank == t.rank && std::equal(dims.begin(), dims.end(), t.dims);
    return fits ? Status() : wrong(g_.describe_value(value.id) + " has data that does not fit its type");
  }

  // Each reader is listed once by what it reads, and each entry of a list is a reader.
  Status check_uses() {
    std::vector<uint64_t> base(g_.node_count() + 1, 0);
    for (uint32_t n = 0; n < g_.node_count(); ++n) base[n + 1] = base[n] + g_.node(n).operand_count;
    std::vector<uint64_t> region_base(g_.region_count() + 1, base.back());
    for (uint32_t r = 0; r < g_.region_count(); ++r)
      region_base[r + 1] = region_base[r] + g_.region(r).result_count;
    std::vector<uint8_t> listed(region_base.back(), 0);
    for (uint32_t v = 0; v < g_.value_count(); ++v) {
      for (regie_use u : g_.uses(v)) {
        bool of_region = u.node & REGIE_USE_REGION;
        uint32_t id = u.node & ~REGIE_USE_REGION;
        bool there = of_region ? id < g_.region_count() && u.operand < g_.region(id).result_count &&
                                     g_.region(id).results[u.operand] == v
                               : g_.live(id) && u.operand < g_.node(id).operand_count &&
                                     g_.node(id).operands[u.operand] == v;
        if (!there) return wrong(g_.describe_value(v) + " lists a reader that does not read it");
        uint8_t& mark = listed[(of_region ? region_base[id] : base[id]) + u.operand];
        if (mark++) return wrong(g_.describe_value(v) + " lists a reader twice");
      }
    }
    for (uint32_t n = 0; n < g_.node_count(); ++n)
      for (uint32_t i = 0; i < g_.node(n).operand_count; ++i)
        if (g_.node(n).operands[i] != REGIE_NONE && !listed[base[n] + i])
          return wrong("reads " + g_.describe_value(g_.node(n).operands[i]) + ", which does not list it", n);
    for (uint32_t r : depth_first_)
      for (uint32_t i = 0; i < g_.region(r).result_count; ++i) {
        uint32_t v = g_.region(r).results[i];
        if (!g_.live_value(v) || !g_.visible(v, r))
          return wrong("region " + std::to_string(r) + " gives a value that it cannot see");
        if (!listed[region_base[r] + i])
          return wrong(g_.describe_value(v) + " does not list a region that gives it");
      }
    return {};
  }

  Status check_names() const {
    std::unordered_set<std::string_view> inputs, outputs;
    const regie_region& r = g_.region(0);
    for (uint32_t i = 0; i < r.arg_count; ++i) {
      std::string_view name = view(g_.value(r.args[i]).name);
      if (!name.empty() && !inputs.insert(name).second)
        return wrong("two inputs are named '" + std::string(name) + "'");
    }
    for (uint32_t i = 0; i < r.result_count; ++i)
      if (g_.output_name(i).empty() || !outputs.insert(g_.output_name(i)).second)
        return wrong("two outputs are named '" + std::string(g_.output_name(i)) + "'");
    return {};
  }

  const Graph& g_;
  const bool shapes_known_;
  std::vector<uint8_t> region_seen_;
  std::vector<uint32_t> depth_first_;
};

}  // namespace

std::optional<std::string> find_fault(const Graph& graph) {
  Verifier verifier(graph, false);
  Status s = verifier.run();
  if (s.ok()) s = verifier.check_aliases();
  return s.ok() ? std::nullopt : std::optional<std::string>(s.message());
}

Status verify(const Graph& graph, const VerifyOptions& options) {
  Verifier verifier(graph, options.shapes_known);
  auto broken = [](const Status& s, regie_status code) {
    return Status::error(code, (code == REGIE_INTERNAL ? "the graph is broken: " : "") + s.message());
  };
  if (Status s = verifier.run(); !s.ok()) return broken(s, options.code);
  if (Status s = verifier.check_aliases(); !s.ok()) return broken(s, options.alias_code);
  for (uint32_t n = 0; options.ops && n < graph.node_count(); ++n)
    if (graph.live(n)) REGIE_TRY(options.ops->check(graph, n));
  return {};
}

Status verify_given(const Graph& graph, const OpSet& ops) {
  VerifyOptions options;
  options.ops = &ops;
  options.code = options.alias_code = REGIE_INVALID_MODEL;
  return verify(graph, options);
}

}  // namespace regie
