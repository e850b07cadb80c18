// fuse-pointwise: element-wise operators that follow each other become one regie.Pointwise.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "groups.h"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;
using namespace fuse_pointwise;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_option_info kOptions[] = {
    {lit("max-nodes"), lit("64"), lit("greatest number of operators in one regie.Pointwise")},
    {lit("max-operands"), lit("24"), lit("greatest number of tensors that one reads")},
    {lit("max-results"), lit("8"), lit("greatest number of tensors that one writes")},
};
constexpr regie_pass_info kInfo = pass_info({
    .name = "fuse-pointwise",
    .doc = "Makes one regie.Pointwise of element-wise operators that follow each other",
    .requires_ = kRequires,
    .options = kOptions,
});

// Do these operands alone have all dimensions of the shape?
bool covers(const GraphView& g, const std::vector<uint32_t>& operands, const regie_type& shape) {
  std::vector<bool> found(static_cast<size_t>(shape.rank), false);
  bool rank = false;
  for (uint32_t o : operands) {
    const regie_type& t = g.value(o).type;
    rank |= t.rank == shape.rank;
    for (int32_t i = 0; i < t.rank; ++i) {
      const int32_t axis = shape.rank - t.rank + i;
      if (t.dims[i] == shape.dims[axis]) found[static_cast<size_t>(axis)] = true;
    }
  }
  return rank && std::all_of(found.begin(), found.end(), [](bool f) { return f; });
}

class FusePointwise {
 public:
  explicit FusePointwise(const Config& options)
      : limits_{limit(options, "max-nodes", 64, 2), limit(options, "max-operands", 24, 1),
                limit(options, "max-results", 8, 1)} {}

  void run(PassContext& c) {
    // A group that reads what another one computes is dropped when that one is made, and made the next time;
    // what an engine refuses is refused again.
    Grouping grouping(c, limits_, &noted_);
    for (uint32_t region : c.graph().task_regions())
      for (const Group& group : grouping.find(region)) make(c, group);
  }

 private:
  static uint32_t limit(const Config& options, std::string_view key, int64_t fallback, int64_t least) {
    const int64_t v = options.integer(key, fallback);
    if (v < least || v > 4096)
      throw Failure(REGIE_INVALID_INPUT, "option '" + std::string(key) + "' must be between " +
                                             std::to_string(least) + " and 4096");
    return static_cast<uint32_t>(v);
  }

  static void make(PassContext& c, const Group& group) {
    const GraphView& g = c.graph();
    const regie_node& last = g.node(group.members.back());
    const regie_type& shape = g.result(last, 0)->type;
    const bool immediates = covers(g, group.operands, shape);
    std::vector<uint32_t> operands = group.operands;
    if (!immediates) add_constants(g, group, &operands);

    Patch patch(c, "element-wise operators that follow each other", last.id);
    std::vector<regie_type> types;
    for (uint32_t o : operands) {
      regie_type scalar{};
      scalar.elem = g.value(o).type.elem;
      types.push_back(scalar);
    }
    const Patch::Opened body = patch.open_region("body", types);
    std::unordered_map<uint32_t, uint32_t> inside{
        {REGIE_NONE, REGIE_NONE}};  // value of the graph -> of the region
    for (size_t i = 0; i < operands.size(); ++i) inside[operands[i]] = body.args[i];
    std::vector<uint32_t> outside, results;
    for (uint32_t id : group.members) {
      const regie_node& n = g.node(id);
      NewNode copy{sv(n.op)};
      copy.name = sv(n.name);
      copy.attrs.assign(n.attrs, n.attrs + n.attr_count);
      for (uint32_t o : operands_of(n)) {
        if (!inside.count(o)) inside[o] = scalar_constant(patch, g.value(o));
        copy.operands.push_back(inside[o]);
      }
      inside[n.results[0]] = patch.node(copy).results[0];
      if (group.unread.at(n.results[0]) == 0) continue;
      outside.push_back(n.results[0]);
      results.push_back(inside[n.results[0]]);
    }
    patch.close_region(results);
    NewNode fused{"regie.Pointwise"};
    fused.operands = operands;
    fused.regions = {body.region};
    fused.name = sv(last.name);
    fused.result_count = static_cast<uint32_t>(results.size());
    const Patch::Made made = patch.node(fused);
    for (size_t i = 0; i < outside.size(); ++i) patch.replace(outside[i], made.results[i]);
    for (uint32_t id : group.members) patch.remove(id);
    patch.commit();
  }

  static void add_constants(const GraphView& g, const Group& group, std::vector<uint32_t>* operands) {
    for (uint32_t id : group.members)
      for (uint32_t o : operands_of(g.node(id)))
        if (o != REGIE_NONE && is_immediate(g.value(o)) &&
            std::find(operands->begin(), operands->end(), o) == operands->end())
          operands->push_back(o);
  }

  static uint32_t scalar_constant(Patch& patch, const regie_value& v) {
    regie_tensor scalar = *v.data;
    scalar.rank = 0;
    scalar.dims = nullptr;
    return patch.constant(REGIE_VALUE_CONSTANT, scalar, sv(v.name));
  }

  const Limits limits_;
  std::set<uint32_t> noted_;  // nodes whose near misses the ledger has
};

constexpr regie_pass_table kTable = pass_table<FusePointwise>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
