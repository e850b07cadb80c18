// alias-in-place: results that lie on the bytes of an operand, and parts that lie in their whole.
#include <algorithm>
#include <string>
#include <vector>

#include "regie/part_view.hpp"
#include "regie/pass.hpp"
#include "regie_digests.h"
#include "storage.h"

namespace {

using namespace regie::sdk;
using namespace alias_in_place;

constexpr regie_str kRequires[] = {lit("placed")};
constexpr regie_option_info kOptions[] = {
    {lit("parts"), lit("1"), lit("0: Concat, Split and Slice are always copied")},
    {lit("overwrite"), lit("last-reader"),
     lit("sole-reader: leaves to the scheduler what depends on the order, writing over bytes that others "
         "read, too")},
};
constexpr regie_pass_info kInfo = pass_info({
    .name = "alias-in-place",
    .doc = "Lets results lie on the bytes of operands: views, results written over what is read for the last "
           "time, parts of what is joined or cut",
    .requires_ = kRequires,
    .options = kOptions,
});

constexpr uint64_t kAlignment = 64;        // that kernels may expect of a tensor
constexpr uint64_t kMostWork = 4'000'000;  // node visits that the choice of parts may cost

struct Alias {
  uint32_t value, base;
  uint64_t offset;
  std::string reason;
};
struct Note {
  uint32_t node;
  std::string kind, text;
};

// One walk over the graph, with the parts of some nodes left where they are.
class Walk {
 public:
  // `chosen`: nodes that join or cut without copying, if nothing speaks against it. `tell`: keep aliases and
  // notes, with their words; a walk that is a trial has none.
  // `sole`: only those are written over that nobody else reads.
  Walk(const PassContext& context, const std::vector<uint8_t>& chosen, bool tell, bool sole)
      : context_(context),
        graph_(context.graph()),
        chosen_(chosen),
        tell_(tell),
        sole_(sole),
        storage_(graph_),
        shared_(graph_.value_count(), 0) {}

  void run() {
    for (uint32_t region : graph_.task_regions())
      for (const regie_node& n : graph_.nodes(region)) {
        if (is_control_flow(n)) continue;
        if (chosen_[n.id] && place_parts(n)) continue;
        for (uint32_t r = 0; r < n.result_count; ++r)
          if (n.results[r] != REGIE_NONE) place(n, r);
      }
  }
  const Storage& storage() const { return storage_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  const std::vector<Note>& notes() const { return notes_; }

 private:
  void place(const regie_node& n, uint32_t r) {
    const regie_value& result = graph_.value(n.results[r]);
    if (result.alias_of != REGIE_NONE) {  // by an earlier round
      if (storage_.root(result.id) == result.id)
        storage_.put(result.id, result.alias_of, result.alias_offset);
      return;
    }
    if (joins_or_cuts(n)) return;
    std::vector<std::string> misses;
    for (uint32_t o = 0; o < n.operand_count; ++o) {
      const uint32_t kind = n.operands[o] == REGIE_NONE ? 0u : context_.alias_kind(n.id, r, o);
      if (kind == REGIE_ALIAS_NONE) continue;
      const regie_value& operand = graph_.value(n.operands[o]);
      std::string why = obstacle(n, result, operand);
      if (why.empty() && kind == REGIE_ALIAS_INPLACE) why = overwrite_obstacle(n, r, operand);
      if (why.empty() && kind == REGIE_ALIAS_INPLACE && sole_ && has_others(n, operand) &&
          !is_joined(result)) {
        if (tell_)
          notes_.push_back({n.id, "left",
                            graph_.describe(n) + ": whether " + graph_.describe(result) +
                                " is written over " + graph_.describe(operand) +
                                " depends on the order, which the scheduler chooses"});
        continue;
      }
      if (why.empty()) {
        const Storage::Place to = storage_.place(operand.id);
        // By a view's base it is known as one, so that nothing is copied.
        const bool view = kind == REGIE_ALIAS_VIEW;
        const char* how = view ? " is a view of " : " is written over ";
        if (tell_)
          aliases_.push_back({result.id, view ? operand.id : to.root, view ? 0 : to.offset,
                              graph_.describe(result) + how + graph_.describe(operand)});
        shared_[to.root] |= has_others(n, operand);
        return storage_.put(result.id, to.root, to.offset);
      }
      if (tell_)
        misses.push_back(graph_.describe(n) + ": " + graph_.describe(result) +
                         " keeps its own bytes instead of those of " + graph_.describe(operand) + ": " + why);
    }
    for (const std::string& text : misses) notes_.push_back({n.id, "near-miss", text});
  }

  // ---- parts ----

  bool place_parts(const regie_node& n) {
    const std::vector<PartView> parts = part_views(graph_, n);
    const bool joins = sv(n.op) == "Concat";
    std::string why =
        parts.empty() ? "its parts are no pieces of the whole's bytes" : part_obstacle(n, parts, joins);
    if (!why.empty()) {
      if (tell_) notes_.push_back({n.id, "near-miss", graph_.describe(n) + " copies: " + why});
      return false;
    }
    if (!joins) {
      for (const PartView& p : parts) alias(p.part, p.whole, p.offset, " is a part of ");
      return true;
    }
    for (const PartView& p : parts) {
      const Storage::Place from = storage_.place(p.part);
      if (from.root == storage_.root(p.whole)) continue;  // came along with the part before
      alias(from.root, p.whole, p.offset - from.offset, " is computed as a part of ");
    }
    return true;
  }

  void alias(uint32_t value, uint32_t base, uint64_t offset, const char* how) {
    if (tell_)
      aliases_.push_back({value, base, offset,
                          graph_.describe(graph_.value(value)) + how + graph_.describe(graph_.value(base))});
    storage_.put(value, base, offset);
    shared_[storage_.root(base)] = 1;
  }

  std::string part_obstacle(const regie_node& n, const std::vector<PartView>& parts, bool joins) {
    const regie_value& whole = graph_.value(parts[0].whole);
    if (whole.alias_of != REGIE_NONE && joins) return graph_.describe(whole) + " lies elsewhere";
    if (joins && is_region_result(whole))
      return graph_.describe(whole) + " is handed out, in memory of the receiver";
    for (uint32_t i = 0; i < parts.size(); ++i) {
      // What holds for one part holds for the others.
      if (i == 0 && context_.alias_kind(n.id, 0, 0) != REGIE_ALIAS_VIEW)
        return "its engine says that it cannot do without";
      const regie_value& part = graph_.value(parts[i].part);
      if (parts[i].offset % kAlignment)
        return graph_.describe(part) + " would begin " + std::to_string(parts[i].offset) +
               " bytes into the whole, which is not aligned";
      if (part.space != whole.space) return graph_.describe(part) + " lies in another memory space";
      const std::string why = joins ? join_obstacle(n, parts, i) : cut_obstacle(n, part, whole);
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string cut_obstacle(const regie_node& n, const regie_value& part, const regie_value& whole) {
    if (is_constant(whole)) return graph_.describe(whole) + " is a constant";
    if (whole.kind == REGIE_VALUE_ARGUMENT) return graph_.describe(whole) + " lies outside of the region";
    const regie_value& root = graph_.value(storage_.root(whole.id));
    if (is_region_result(root)) return graph_.describe(root) + " is handed out, in memory of the receiver";
    if (is_region_result(part)) return graph_.describe(part) + " is handed out, in memory of the receiver";
    if (graph_.node(whole.owner).region != n.region)
      return graph_.describe(whole) + " lies outside of the region";
    if (part.alias_of != REGIE_NONE) return graph_.describe(part) + " lies elsewhere";
    return {};
  }

  // Whole classes move, and each at most once: the part is all of its class, or together with its neighbours
  // makes up a whole that was joined before.
  std::string join_obstacle(const regie_node& n, const std::vector<PartView>& parts, uint32_t i) {
    const regie_value& part = graph_.value(parts[i].part);
    if (is_constant(part)) return graph_.describe(part) + " is a constant";
    if (part.kind != REGIE_VALUE_RESULT) return graph_.describe(part) + " is an input";
    const Storage::Place at = storage_.place(part.id);
    const regie_value& root = graph_.value(at.root);
    if (root.kind != REGIE_VALUE_RESULT || graph_.node(root.owner).region != n.region)
      return graph_.describe(part) + " lies outside of the region";
    if (root.space != part.space) return graph_.describe(part) + " lies in another memory space";
    const Readers& all = storage_.readers(at.root);
    if (all.handed_out != REGIE_NONE)
      return graph_.describe(graph_.value(all.handed_out)) + " is handed out, in memory of the receiver";
    if (graph_.engine(graph_.node(root.owner).engine).device_index != graph_.engine(n.engine).device_index)
      return graph_.describe(part) + " is computed on another device";
    // Each part of the same class must lie in it as it is to lie in the whole, and all of it must be covered.
    uint64_t covered = 0;
    for (const PartView& p : parts) {
      const Storage::Place other = storage_.place(p.part);
      if (other.root != at.root) continue;
      if (p.offset - other.offset != parts[i].offset - at.offset || parts[i].offset < at.offset)
        return graph_.describe(graph_.value(p.part)) + " is a part twice, or lies in another whole already";
      covered += *bytes_of(graph_.value(p.part).type);
    }
    const auto bytes = bytes_of(root.type);
    if (!bytes || *bytes != covered) return graph_.describe(part) + " lies in another whole already";
    return {};
  }

  // ---- views and results in place ----

  // Why the result cannot share the operand's bytes at all; empty if it can.
  std::string obstacle(const regie_node& n, const regie_value& result, const regie_value& operand) const {
    const regie_value& root = graph_.value(storage_.root(operand.id));
    if (is_constant(operand)) return "that is a constant";
    if (operand.kind == REGIE_VALUE_ARGUMENT)
      return graph_.region(operand.owner).parent == REGIE_NONE ? "that is an input of the graph"
                                                               : "that lies outside of the region";
    if (is_region_result(result)) return "it is handed out, in memory of the receiver";
    if (is_region_result(root)) return "those are handed out, in memory of the receiver";
    if (result.space != operand.space) return "that lies in another memory space";
    if (!same_bytes(result.type, operand.type, context_.dims())) return "it may have another size";
    for (uint32_t v : results_of(n))
      if (v != REGIE_NONE && v != result.id && storage_.root(v) == root.id)
        return "another result lies there";
    return {};
  }

  // Why the node must not write over the operand; empty if it may.
  std::string overwrite_obstacle(const regie_node& n, uint32_t r, const regie_value& operand) {
    const uint32_t root = storage_.root(operand.id);
    // Wherever the node itself reads these bytes it must be able to overwrite them.
    for (uint32_t o = 0; o < n.operand_count; ++o) {
      if (n.operands[o] == REGIE_NONE || storage_.root(n.operands[o]) != root) continue;
      if (n.operands[o] != operand.id)
        return "it also reads them as " + graph_.describe(graph_.value(n.operands[o]));
      if (context_.alias_kind(n.id, r, o) != REGIE_ALIAS_INPLACE)
        return "it also reads them as operand " + std::to_string(o);
    }
    const Readers& all = storage_.readers(root);
    if (all.handed_out != REGIE_NONE) return graph_.describe(graph_.value(all.handed_out)) + " is handed out";
    if (all.last > n.order)
      return graph_.describe(graph_.node(all.last_node)) + " still reads " +
             graph_.describe(graph_.value(all.last_value));
    for (uint32_t other : all.on)
      if (other != REGIE_NONE &&
          graph_.engine(graph_.node(other).engine).device_index != graph_.engine(n.engine).device_index)
        return graph_.describe(graph_.node(other)) +
               " reads them on another device, and it would have to wait for that";
    return {};
  }

  // Somebody else reads the operand, or what lies on its bytes; so which is the last reader is a matter of
  // order.
  bool has_others(const regie_node& n, const regie_value& operand) const {
    if (shared_[storage_.root(operand.id)]) return true;
    for (const regie_use& u : uses_of(operand))
      if (is_region_use(u) || u.node != n.id) return true;
    return false;
  }

  // It becomes a part of a whole, and what it is written over does so with it: the scheduler sees no parts.
  bool is_joined(const regie_value& result) const {
    for (const regie_use& u : uses_of(result))
      if (!is_region_use(u) && chosen_[u.node] && sv(graph_.node(u.node).op) == "Concat") return true;
    return false;
  }

  const PassContext& context_;
  const GraphView& graph_;
  const std::vector<uint8_t>& chosen_;
  const bool tell_, sole_;
  Storage storage_;
  std::vector<uint8_t> shared_;  // by root: its bytes have had readers that others do not come after
  std::vector<Alias> aliases_;
  std::vector<Note> notes_;
};

class AliasInPlace {
 public:
  explicit AliasInPlace(const Config& options)
      : parts_(options.integer("parts", 1) != 0), sole_(options.find("overwrite") == "sole-reader") {
    if (!sole_ && options.find("overwrite").value_or("last-reader") != "last-reader")
      throw Failure(REGIE_INVALID_INPUT, "option 'overwrite' is last-reader or sole-reader");
  }

  void run(PassContext& c) {
    const GraphView& g = c.graph();
    std::vector<uint8_t> chosen(g.node_count(), 0);
    std::vector<uint32_t> candidates;
    for (uint32_t region : g.task_regions())
      for (const regie_node& n : g.nodes(region))
        if (parts_ && joins_or_cuts(n)) candidates.push_back(n.id);
    if (!candidates.empty()) choose(c, candidates, &chosen);
    Walk walk(c, chosen, true, sole_);
    walk.run();
    for (const Note& n : walk.notes()) c.note(n.node, n.kind, n.text);
    for (uint32_t n : candidates)
      if (!chosen[n])
        c.note(n, "near-miss", g.describe(g.node(n)) + " copies: without, more bytes would be alive at once");
    for (const Alias& a : walk.aliases()) c.set_alias(a.value, a.base, a.offset, a.reason);
  }

 private:
  // The candidates that together leave what is alive at once no larger than if all of them copied.
  static void choose(const PassContext& c, const std::vector<uint32_t>& candidates,
                     std::vector<uint8_t>* chosen) {
    const Timeline timeline(c.graph());
    uint64_t work = 0;
    std::vector<uint64_t> limit;
    auto fits = [&] {
      work += c.graph().node_count();
      Walk walk(c, *chosen, false, false);
      walk.run();
      const std::vector<uint64_t> peaks = timeline.peaks(c, walk.storage());
      if (limit.empty()) limit = peaks;
      for (size_t s = 0; s < peaks.size(); ++s)
        if (peaks[s] > limit[s]) return false;
      return true;
    };
    fits();  // sets the limit
    // All of a range, or what is left of its halves.
    std::vector<std::pair<size_t, size_t>> ranges{{0, candidates.size()}};
    while (!ranges.empty()) {
      const auto [begin, end] = ranges.back();
      ranges.pop_back();
      for (size_t i = begin; i < end; ++i) (*chosen)[candidates[i]] = 1;
      if (work <= kMostWork && fits()) continue;
      for (size_t i = begin; i < end; ++i) (*chosen)[candidates[i]] = 0;
      if (end - begin == 1) continue;
      const size_t middle = begin + (end - begin) / 2;
      ranges.emplace_back(middle, end);
      ranges.emplace_back(begin, middle);
    }
  }

  const bool parts_, sole_;
};

constexpr regie_pass_table kTable = pass_table<AliasInPlace>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
