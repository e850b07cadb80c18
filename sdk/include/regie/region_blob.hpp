// A region of scalar operators, such as that of regie.Pointwise, as bytes: for kernels that name an operator with
// its region (op_blob.hpp holds the operator itself). Header-only.
//
// Layout, little endian, no padding: "RGRN", u32 version, u32 count of arguments, each its u16 element type; u32
// count of constants, each u16 element type, u64 size, bytes; u32 count of nodes, each the operator (op_blob.hpp),
// u32 count of operands, each a u32 number, and u16 the element type of its one result; u32 count of the region's
// results, each a number. Values are numbered: arguments, constants, results of the nodes; an absent operand is
// REGIE_NONE.
//
// A reader trusts nothing: every violation is Failure(REGIE_CORRUPT).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "regie/op_blob.hpp"

namespace regie::sdk {

// Throws Failure(UNSUPPORTED) for a region that holds more than this can say.
inline void write_region(BlobWriter& out, const regie_graph& graph, uint32_t id) {
  const auto refuse = [](const std::string& what) { throw Failure(REGIE_UNSUPPORTED, "its region " + what); };
  const regie_region& region = graph.regions[id];
  std::map<uint32_t, uint32_t> numbers;
  const auto number = [&](uint32_t value) { numbers.emplace(value, static_cast<uint32_t>(numbers.size())); };
  out.raw("RGRN", 4);
  out.put<uint32_t>(1);
  out.put(region.arg_count);
  for (uint32_t i = 0; i < region.arg_count; ++i) {
    if (graph.values[region.args[i]].type.rank != 0) refuse("takes more than scalars");
    number(region.args[i]);
    out.put(graph.values[region.args[i]].type.elem);
  }
  std::vector<uint32_t> constants;
  const auto look = [&](uint32_t value) {
    if (value == REGIE_NONE || !graph.values[value].data || numbers.count(value)) return;
    constants.push_back(value);
    number(value);
  };
  uint32_t nodes = 0;
  for (uint32_t n = region.first; n != REGIE_NONE; n = graph.nodes[n].next, ++nodes)
    for (uint32_t i = 0; i < graph.nodes[n].operand_count; ++i) look(graph.nodes[n].operands[i]);
  for (uint32_t i = 0; i < region.result_count; ++i) look(region.results[i]);
  out.put(static_cast<uint32_t>(constants.size()));
  for (uint32_t c : constants) {
    const regie_tensor& t = *graph.values[c].data;
    if (t.rank != 0 || elem_bits(t.elem) == 0 || !t.data) refuse("has constants that are no scalars");
    out.put(t.elem);
    out.put(t.bytes);
    out.raw(t.data, t.bytes);
  }
  const auto refer = [&](uint32_t value) {
    if (value == REGIE_NONE) return out.put(value);
    const auto at = numbers.find(value);
    if (at == numbers.end()) refuse("reads what is computed outside of it");
    out.put(at->second);
  };
  out.put(nodes);
  for (uint32_t id_of = region.first; id_of != REGIE_NONE; id_of = graph.nodes[id_of].next) {
    const regie_node& n = graph.nodes[id_of];
    if (n.result_count != 1 || n.results[0] == REGIE_NONE) refuse("has a node of several results");
    write_op(out, sv(n.op), n.attrs, n.attr_count, n.region_count);
    out.put(n.operand_count);
    for (uint32_t i = 0; i < n.operand_count; ++i) refer(n.operands[i]);
    out.put(graph.values[n.results[0]].type.elem);
    number(n.results[0]);
  }
  out.put(region.result_count);
  for (uint32_t i = 0; i < region.result_count; ++i) refer(region.results[i]);
}

// A graph of one region, number 1, that owns all that its view points to.
class RegionBlob {
 public:
  explicit RegionBlob(BlobReader& in) {
    if (std::memcmp(in.raw(4), "RGRN", 4) != 0) in.corrupt("the region's mark is missing");
    if (in.get<uint32_t>() != 1) in.corrupt("its region was written by another version");
    const uint32_t args = in.count(2);
    for (uint32_t i = 0; i < args; ++i) value(REGIE_VALUE_ARGUMENT, in.get<uint16_t>(), i);
    const uint32_t constants = in.count(10);
    for (uint32_t i = 0; i < constants; ++i) constant(in, i);
    const uint32_t nodes = in.count(18);
    for (uint32_t i = 0; i < nodes; ++i) node(in);
    results_ = references(in, false);
    for (uint32_t i = 0; i < args; ++i) args_.push_back(i);
    // Nothing moves any more.
    for (size_t i = 0; i < nodes_.size(); ++i) {
      regie_node& n = nodes_[i];
      n.id = static_cast<uint32_t>(i);
      n.region = 1;
      n.op = str(ops_[i]->op());
      n.attrs = ops_[i]->attrs().data();
      n.attr_count = static_cast<uint32_t>(ops_[i]->attrs().size());
      n.operands = operands_[i].data();
      n.operand_count = static_cast<uint32_t>(operands_[i].size());
      n.results = &made_[i];
      n.result_count = 1;
      n.prev = i ? static_cast<uint32_t>(i - 1) : REGIE_NONE;
      n.next = i + 1 < nodes_.size() ? static_cast<uint32_t>(i + 1) : REGIE_NONE;
      n.engine = n.stream = REGIE_NONE;
      n.order = i;
    }
    regions_.resize(2);
    regions_[0].parent = REGIE_NONE;
    regions_[0].first = regions_[0].last = REGIE_NONE;
    regie_region& body = regions_[1];
    body.id = 1;
    body.args = args_.data();
    body.arg_count = args;
    body.results = results_.data();
    body.result_count = static_cast<uint32_t>(results_.size());
    body.first = nodes ? 0 : REGIE_NONE;
    body.last = nodes ? nodes - 1 : REGIE_NONE;
    graph_.struct_size = sizeof graph_;
    graph_.nodes = nodes_.data();
    graph_.node_count = nodes;
    graph_.values = values_.data();
    graph_.value_count = static_cast<uint32_t>(values_.size());
    graph_.regions = regions_.data();
    graph_.region_count = 2;
  }
  RegionBlob(const RegionBlob&) = delete;
  const regie_graph* graph() const { return &graph_; }
  uint32_t region() const { return 1; }

 private:
  uint32_t value(uint32_t kind, regie_elem elem, uint32_t index) {
    regie_value v{};
    v.id = static_cast<uint32_t>(values_.size());
    v.kind = kind;
    v.owner = kind == REGIE_VALUE_RESULT ? index : 1;
    v.index = kind == REGIE_VALUE_RESULT ? 0 : index;
    v.type.elem = elem;
    v.alias_of = v.space = REGIE_NONE;
    values_.push_back(v);
    return v.id;
  }
  void constant(BlobReader& in, uint32_t index) {
    const auto elem = in.get<uint16_t>();
    const auto size = in.get<uint64_t>();
    const uint32_t bits = elem_bits(elem);
    if (bits == 0 || size != (bits + 7) / 8) in.corrupt("a constant of its region has another size than its type");
    auto& bytes = bytes_.emplace_back();
    std::memcpy(bytes.data, in.raw(size), size);
    regie_tensor& t = tensors_.emplace_back();
    t = {};
    t.elem = elem;
    t.data = bytes.data;
    t.bytes = size;
    values_[value(REGIE_VALUE_CONSTANT, elem, index)].data = &t;
  }
  std::vector<uint32_t> references(BlobReader& in, bool may_be_absent) {
    std::vector<uint32_t> list(in.count(4));
    for (uint32_t& v : list) {
      v = in.get<uint32_t>();
      if (v >= values_.size() && !(may_be_absent && v == REGIE_NONE))
        in.corrupt("its region reads a value that is not there yet");
    }
    return list;
  }
  void node(BlobReader& in) {
    ops_.push_back(std::make_unique<OpBlob>(read_op(in)));
    operands_.push_back(references(in, true));
    made_.push_back(value(REGIE_VALUE_RESULT, in.get<uint16_t>(), static_cast<uint32_t>(nodes_.size())));
    nodes_.emplace_back();
  }

  struct Scalar {
    alignas(16) unsigned char data[16];
  };
  std::vector<regie_value> values_;
  std::vector<regie_node> nodes_;
  std::vector<regie_region> regions_;
  std::vector<std::unique_ptr<OpBlob>> ops_;
  std::vector<std::vector<uint32_t>> operands_;
  std::vector<uint32_t> args_, results_;
  std::deque<uint32_t> made_;
  std::deque<Scalar> bytes_;
  std::deque<regie_tensor> tensors_;
  regie_graph graph_{};
};

}  // namespace regie::sdk
