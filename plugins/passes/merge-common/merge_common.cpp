// merge-common: equal computations of equal operands are done once, equal constants are kept once.
#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "regie/c/op_kernel.h"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "merge-common",
    .doc = "Computes equal nodes once and keeps equal constants once",
    .requires_ = kRequires,
});

// A running hash; equality is always checked afterwards.
class Hash {
 public:
  void add(uint64_t x) { h_ = (h_ ^ x) * 0x9e3779b97f4a7c15u, h_ ^= h_ >> 29; }
  void add(const void* data, uint64_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
    }
    uint64_t rest = size;
    for (; size > 0; --size) rest = rest << 8 | *p++;
    add(rest);
  }
  void add(regie_str s) { add(s.data, s.size); }
  uint64_t get() const { return h_; }

 private:
  uint64_t h_ = 0x243f6a8885a308d3u;
};

bool same_tensor(const regie_tensor& a, const regie_tensor& b) {
  if (a.elem != b.elem || a.rank != b.rank || a.bytes != b.bytes || a.strides || b.strides) return false;
  if (!a.data || !b.data || a.elem == REGIE_STRING) return false;
  return std::equal(a.dims, a.dims + a.rank, b.dims) && std::memcmp(a.data, b.data, a.bytes) == 0;
}

// The shape and a few stretches of the bytes: weights of one shape nearly always differ there.
void add_tensor(Hash& h, const regie_tensor& t) {
  constexpr uint64_t kStretch = 256;
  h.add(t.elem);
  for (int64_t d : dims_of(t)) h.add(static_cast<uint64_t>(d));
  if (!t.data || t.elem == REGIE_STRING) return;
  const auto* p = static_cast<const char*>(t.data);
  if (t.bytes <= 4 * kStretch) return h.add(p, t.bytes);
  for (uint64_t at : {uint64_t{0}, t.bytes / 3, t.bytes / 3 * 2, t.bytes - kStretch}) h.add(p + at, kStretch);
}

bool same_attr(const regie_attr& a, const regie_attr& b) {
  if (a.kind != b.kind || a.count != b.count || sv(a.name) != sv(b.name)) return false;
  switch (a.kind) {
    case REGIE_ATTR_INT:
      return a.v.i == b.v.i;
    case REGIE_ATTR_FLOAT:
      return std::memcmp(&a.v.f, &b.v.f, sizeof a.v.f) == 0;
    case REGIE_ATTR_STRING:
      return sv(a.v.s) == sv(b.v.s);
    case REGIE_ATTR_INTS:
      return std::equal(a.v.ints, a.v.ints + a.count, b.v.ints);
    case REGIE_ATTR_FLOATS:
      return a.count == 0 || std::memcmp(a.v.floats, b.v.floats, a.count * sizeof(double)) == 0;
    case REGIE_ATTR_STRINGS:
      return std::equal(a.v.strs, a.v.strs + a.count, b.v.strs,
                        [](regie_str x, regie_str y) { return sv(x) == sv(y); });
    default:
      return same_tensor(*a.v.tensor, *b.v.tensor);
  }
}

void add_attr(Hash& h, const regie_attr& a) {
  h.add(a.name);
  h.add(a.count);
  switch (a.kind) {
    case REGIE_ATTR_INT:
      return h.add(static_cast<uint64_t>(a.v.i));
    case REGIE_ATTR_FLOAT:
      return h.add(&a.v.f, sizeof a.v.f);
    case REGIE_ATTR_STRING:
      return h.add(a.v.s);
    case REGIE_ATTR_INTS:
      return h.add(a.v.ints, a.count * sizeof(int64_t));
    case REGIE_ATTR_FLOATS:
      return h.add(a.v.floats, a.count * sizeof(double));
    default:
      return;
  }
}

bool commutes(std::string_view op) {
  return op == "Add" || op == "Mul" || op == "And" || op == "Or" || op == "Xor" || op == "Equal";
}

class MergeCommon {
 public:
  explicit MergeCommon(const Config&) {}

  // All nodes once, in program order: what is found equal counts as one from there on, so that whole chains
  // meet in one run.
  void run(PassContext& c) {
    const GraphView& g = c.graph();
    if (g.changed().empty()) return;
    merged_.resize(g.value_count());
    for (uint32_t v = 0; v < g.value_count(); ++v) merged_[v] = v;
    result_.assign(g.value_count(), false);
    for (uint32_t r = 0; r < g.region_count(); ++r)
      for (uint32_t v : results_of(g.region(r))) result_[v] = true;
    merge_constants(c);
    seen_.clear();
    for (uint32_t id : g.all_nodes(GraphView::Order::kOwnerFirst)) merge_node(c, g.node(id));
  }

 private:
  void merge_constants(PassContext& c) {
    const GraphView& g = c.graph();
    std::unordered_map<uint64_t, std::vector<uint32_t>> seen;
    for (uint32_t v = 0; v < g.value_count(); ++v) {
      const regie_value& value = g.value(v);
      if (!is_constant(value) || !value.data || value.use_count == 0 || result_[v]) continue;
      Hash h;
      h.add(value.kind);
      h.add(value.owner);
      add_tensor(h, *value.data);
      std::vector<uint32_t>& bucket = seen[h.get()];
      auto equal = std::find_if(bucket.begin(), bucket.end(), [&](uint32_t other) {
        const regie_value& o = g.value(other);
        return o.kind == value.kind && o.owner == value.owner && same_tensor(*o.data, *value.data) &&
               same_type(o.type, value.type);
      });
      if (equal == bucket.end()) {
        bucket.push_back(v);
        continue;
      }
      merged_[v] = *equal;
      Patch patch(c, "equal constants", REGIE_NONE);
      patch.replace(v, *equal);
      patch.commit();
    }
  }

  void collect_operands(const regie_node& n) {
    operands_.clear();
    for (uint32_t v : operands_of(n)) operands_.push_back(v == REGIE_NONE ? v : merged_[v]);
    if (n.operand_count == 2 && commutes(sv(n.op))) std::sort(operands_.begin(), operands_.end());
  }

  void merge_node(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    if (n.region_count || n.control_count || n.result_count == 0) return;
    collect_operands(n);
    Hash h;
    h.add(n.op_id);
    h.add(n.region);
    for (uint32_t v : operands_) h.add(v);
    for (uint32_t i = 0; i < n.attr_count; ++i) add_attr(h, n.attrs[i]);
    std::vector<Seen>& bucket = seen_[h.get()];
    for (const Seen& s : bucket) {
      const regie_node& other = g.node(s.node);
      if (s.operands == operands_ && equal(g, other, n)) return merge(c, other, n);
    }
    bucket.push_back({n.id, operands_});
  }

  static bool equal(const GraphView& g, const regie_node& a, const regie_node& b) {
    if (a.op_id != b.op_id || a.region != b.region || a.engine != b.engine || a.attr_count != b.attr_count)
      return false;
    if (a.result_count < b.result_count) return false;
    for (uint32_t i = 0; i < a.attr_count; ++i)
      if (!same_attr(a.attrs[i], b.attrs[i])) return false;
    for (uint32_t i = 0; i < b.result_count; ++i) {
      if (b.results[i] == REGIE_NONE) continue;
      if (a.results[i] == REGIE_NONE) return false;
      const regie_value &x = g.value(a.results[i]), &y = g.value(b.results[i]);
      if (!same_type(x.type, y.type) || x.space != y.space) return false;
    }
    return true;
  }

  void merge(PassContext& c, const regie_node& kept, const regie_node& n) {
    const GraphView& g = c.graph();
    if (c.op_flags(n.op) & REGIE_OP_NONDETERMINISTIC) return;
    // A result of a region lies in memory of its own, so one value cannot be two of them.
    for (uint32_t i = 0; i < n.result_count; ++i)
      if (n.results[i] != REGIE_NONE && result_[n.results[i]] && result_[kept.results[i]])
        return c.note(n.id, "kept",
                      g.describe(n) + " equals " + g.describe(kept) + ", but both make results of the graph");
    Patch patch(c, "equal " + std::string(sv(n.op)), n.id);
    for (uint32_t i = 0; i < n.result_count; ++i) {
      if (n.results[i] == REGIE_NONE) continue;
      if (g.value(n.results[i]).use_count) patch.replace(n.results[i], kept.results[i]);
      merged_[n.results[i]] = kept.results[i];
      if (result_[n.results[i]]) result_[kept.results[i]] = true;
    }
    patch.remove(n.id);
    patch.commit();
  }

  struct Seen {
    uint32_t node;
    std::vector<uint32_t> operands;
  };
  std::unordered_map<uint64_t, std::vector<Seen>> seen_;
  std::vector<uint32_t> merged_;    // by value: the one that stands for it
  std::vector<bool> result_;        // by value: a region gives it
  std::vector<uint32_t> operands_;  // of the node at hand
};

constexpr regie_pass_table kTable = pass_table<MergeCommon>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
