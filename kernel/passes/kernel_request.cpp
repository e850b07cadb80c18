// What a kernel is asked for, as a digest. Values are numbered in the order in which they are met, so that
// neither names nor ids count.
#include <unordered_map>

#include "base/hash.h"
#include "passes/kernel_cache.h"
#include "text/text.h"

namespace regie {

namespace {

class Describe {
 public:
  explicit Describe(const CompileState& state) : state_(state), g_(*state.graph) {}

  void node(uint32_t id, Hasher& h) {
    // Regions without recursion: those of a node are described after it, in order.
    std::vector<uint32_t> rest{id};
    while (!rest.empty()) {
      const uint32_t at = rest.back();
      rest.pop_back();
      const regie_node& n = g_.node(at);
      h.text(view(n.op)).number(n.operand_count).number(n.result_count).number(n.attr_count);
      for (uint32_t i = 0; i < n.attr_count; ++i) attribute(n.attrs[i], h);
      for (uint32_t v : g_.operands(at)) value(v, h);
      for (uint32_t v : g_.results(at)) value(v, h);
      h.number(n.region_count);
      for (uint32_t i = 0; i < n.region_count; ++i) {
        const regie_region& r = g_.region(n.regions[i]);
        h.number(r.arg_count).number(r.result_count);
        for (uint32_t a = 0; a < r.arg_count; ++a) value(r.args[a], h);
        uint64_t count = 0;
        for (uint32_t inner = r.first; inner != REGIE_NONE; inner = g_.node(inner).next) {
          rest.push_back(inner);
          ++count;
        }
        h.number(count);
        for (uint32_t k = 0; k < r.result_count; ++k) value(r.results[k], h);
      }
    }
  }

  // Arguments, every node, what it gives.
  void region(uint32_t id, Hasher& h) {
    const regie_region& r = g_.region(id);
    h.number(r.arg_count).number(r.result_count);
    for (uint32_t a = 0; a < r.arg_count; ++a) value(r.args[a], h);
    for (uint32_t n = r.first; n != REGIE_NONE; n = g_.node(n).next) {
      h.number(g_.node(n).engine);
      node(n, h);
    }
    for (uint32_t k = 0; k < r.result_count; ++k) value(r.results[k], h);
  }

  void tensor(const regie_tensor& t, Hasher& h) {
    h.number(t.elem).number(static_cast<uint64_t>(t.rank));
    for (int32_t i = 0; i < t.rank; ++i) h.number(static_cast<uint64_t>(t.dims[i]));
    if (!t.data) return;
    if (t.elem != REGIE_STRING) {
      h.number(t.bytes).bytes(t.data, t.bytes);
      return;
    }
    const auto* strings = static_cast<const regie_str*>(t.data);
    const auto count = element_count({t.dims, static_cast<size_t>(t.rank)});
    for (int64_t i = 0; i < count; ++i) h.text(view(strings[i]));
  }

 private:
  void attribute(const regie_attr& a, Hasher& h) {
    h.text(view(a.name)).number(a.kind).number(a.count);
    switch (a.kind) {
      case REGIE_ATTR_INT:
        h.number(static_cast<uint64_t>(a.v.i));
        break;
      case REGIE_ATTR_FLOAT:
        h.bytes(&a.v.f, sizeof a.v.f);
        break;
      case REGIE_ATTR_STRING:
        h.text(view(a.v.s));
        break;
      case REGIE_ATTR_INTS:
        h.bytes(a.v.ints, a.count * sizeof *a.v.ints);
        break;
      case REGIE_ATTR_FLOATS:
        h.bytes(a.v.floats, a.count * sizeof *a.v.floats);
        break;
      case REGIE_ATTR_STRINGS:
        for (uint32_t i = 0; i < a.count; ++i) h.text(view(a.v.strs[i]));
        break;
      default:
        tensor(*a.v.tensor, h);
    }
  }

  // Its number; where it is met first, what it is, and on whose bytes it lies.
  void value(uint32_t id, Hasher& h) {
    if (id == REGIE_NONE) {
      h.number(UINT64_MAX);
      return;
    }
    const auto [it, fresh] = numbers_.emplace(id, numbers_.size());
    h.number(it->second);
    if (!fresh) return;
    const regie_value& v = g_.value(id);
    h.number(v.kind).text(print_type(g_, v.type)).number(v.type.format).number(v.type.origin_format);
    h.number(v.space == REGIE_NONE ? 0 : v.space + 1);
    h.number(storages_.emplace(state_.storage_of(id), storages_.size()).first->second);
    h.number(v.alias_of != REGIE_NONE).number(v.alias_offset);
    if (g_.is_constant(id) && g_.tensor(id)) tensor(g_.tensor(id).view(), h);
  }

  const CompileState& state_;
  const Graph& g_;
  std::unordered_map<uint32_t, uint64_t> numbers_, storages_;
};

}  // namespace

std::string kernel_request(const CompileState& state, uint32_t node, const NodeShapes& shapes) {
  Hasher h;
  h.number(state.options.threads);
  Describe describe(state);
  describe.node(node, h);
  for (const auto* list : {&shapes.operands(), &shapes.results()})
    for (const regie_tensor& t : *list) {
      regie_tensor shape = t;
      shape.data = nullptr;
      describe.tensor(shape, h);
    }
  return h.hex();
}

std::string graph_request(const CompileState& state) {
  Hasher h;
  Describe(state).region(0, h);
  return h.hex();
}

}  // namespace regie
