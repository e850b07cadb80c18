#include <algorithm>
#include <unordered_set>

#include "base/toml.h"
#include "rules/emit.h"
#include "rules/match.h"
#include "rules/rule.h"

namespace regie {
namespace {

class Applier {
 public:
  Applier(const RuleSet& rules, Graph& graph, Edit& edit, const ApplyPatches& apply,
          const ApplyRulesOptions& options)
      : rules_(rules),
        graph_(graph),
        edit_(edit),
        apply_(apply),
        statistics_(options.statistics),
        details_(options.details),
        details_a_reason_(options.details_a_reason),
        matcher_(graph) {}

  Status choose(const std::vector<std::string>& only) {
    chosen_.assign(rules_.groups.size(), only.empty());
    for (const std::string& name : only) {
      auto at = std::find_if(rules_.groups.begin(), rules_.groups.end(),
                             [&](const RuleSet::Group& g) { return g.name == name; });
      if (at == rules_.groups.end()) {
        auto near = nearest_name(name, rule_names(rules_));
        return not_found("there is no rule '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : ""));
      }
      chosen_[static_cast<size_t>(at - rules_.groups.begin())] = true;
    }
    return {};
  }

  Result<uint64_t> run(const std::vector<uint32_t>* changed) {
    prepare_statistics();
    limit_ = uint64_t{graph_.live_node_count()} + 1000;
    if (changed) {
      for (uint32_t node : *changed)
        if (graph_.live(node)) retry_readers(node);
    } else {
      graph_.for_each_node([&](uint32_t node) { enqueue(node); });
    }
    uint64_t applied = 0;
    while (!queue_.empty()) {
      record_batch();
      REGIE_TRY(failure_);
      if (batch_.empty()) break;
      REGIE_ASSIGN(uint64_t taken, take_batch());
      applied += taken;
    }
    if (statistics_) find_near_misses();
    return applied;
  }

 private:
  struct Recorded {
    uint32_t rule, root;
    uint64_t generation;
    EmittedPatch patch;
    std::vector<uint32_t> bound;  // values
  };

  void enqueue(uint32_t node) {
    if (!rules_.by_root.count(graph_.node(node).op_id)) return;
    if (node >= queued_.size()) queued_.resize(std::max<size_t>(graph_.node_count(), node + 1));
    if (queued_[node]) return;
    queued_[node] = 1;
    queue_.push_back(node);
  }

  // What may match now that `node` is new or changed: the node, and what reads it by way of nodes that can be
  // inside of a pattern, no further than a pattern is deep.
  void retry_readers(uint32_t node) {
    cone_.assign(1, {node, 1});
    for (size_t i = 0; i < cone_.size(); ++i) {
      auto [n, depth] = cone_[i];
      enqueue(n);
      if (depth >= rules_.depth || !rules_.inner.count(graph_.node(n).op_id)) continue;
      if (n >= seen_.size()) seen_.resize(graph_.node_count());
      if (seen_[n] == epoch_ && depth > 1) continue;
      if (depth > 1) seen_[n] = epoch_;
      for (uint32_t value : graph_.results(n)) {
        if (value == REGIE_NONE) continue;
        for (const regie_use& use : graph_.uses(value))
          if (!(use.node & REGIE_USE_REGION)) cone_.push_back({use.node, depth + 1});
      }
    }
    ++epoch_;
  }

  // A patch of this batch took or changed something that the match stands on: it must be looked at afresh.
  bool conflicts(const MatchState& m) const {
    for (uint32_t node : m.nodes) {
      if (removed_.count(node)) return true;
      for (uint32_t value : graph_.results(node))
        if (value != REGIE_NONE && read_.count(value)) return true;
    }
    for (uint32_t value : m.values) {
      if (value >= kUnboundValue) continue;
      const regie_value& v = graph_.value(value);
      if (v.kind == REGIE_VALUE_RESULT && removed_.count(v.owner)) return true;
    }
    return false;
  }

  void record_batch() {
    batch_.clear(), removed_.clear(), read_.clear(), deferred_.clear();
    matcher_.graph_changed();
    for (size_t i = 0; i < queue_.size() && failure_.ok(); ++i) {
      uint32_t node = queue_[i];
      queued_[node] = 0;
      if (graph_.live(node)) try_rules(node);
    }
    queue_.clear();
  }

  void try_rules(uint32_t node) {
    auto candidates = rules_.by_root.find(graph_.node(node).op_id);
    if (candidates == rules_.by_root.end()) return;
    if (removed_.count(node)) return;
    for (uint32_t index : candidates->second) {
      const Rule& rule = rules_.rules[index];
      if (!chosen_[rule.group] || refused_.count(key(index, node))) continue;
      if (!matcher_.may_match(rule, node) || !matcher_.match(rule, node)) {
        if (statistics_) {
          std::vector<uint32_t>& failed = statistics_->failed_roots[rule.group];
          if (failed.empty() || failed.back() != node) failed.push_back(node);
        }
        continue;
      }
      if (conflicts(matcher_.state())) {
        deferred_.push_back(node);
        return;
      }
      record(index, node);
      return;
    }
  }

  void record(uint32_t index, uint32_t node) {
    const MatchState& m = matcher_.state();
    Recorded r;
    r.rule = index;
    r.root = node;
    r.generation = 1;
    for (uint32_t n : m.nodes) {
      auto made = generation_.find(n);
      if (made != generation_.end()) r.generation = std::max(r.generation, made->second + 1);
    }
    // A chain may be eaten up node by node, so a row of rewrites may be as long as the graph. A replacement
    // that matches again makes a row without end; one that matches at several places makes too many before.
    if (r.generation > limit_ || recorded_ > kRewritesANode * limit_) {
      failure_ = invalid_input("rule '" + rules_.rules[index].name + "' rewrites its own results for ever (" +
                                   std::to_string(recorded_) + " rewrites, up to " +
                                   std::to_string(r.generation) + " in a row, at " +
                                   graph_.describe_node(node) + "); its replacement must not match again",
                               rules_.rules[index].where);
      return;
    }
    ++recorded_;
    auto patch = emit(m, edit_);
    if (!patch.ok()) {
      failure_ = std::move(patch).status().while_doing("applying rule '" + rules_.rules[index].name + "'");
      return;
    }
    r.patch = std::move(patch).value();
    for (uint32_t v : m.values)
      if (v < kUnboundValue) r.bound.push_back(v);
    removed_.insert(r.patch.removed.begin(), r.patch.removed.end());
    read_.insert(r.patch.read.begin(), r.patch.read.end());
    if (statistics_) ++statistics_->rules[rules_.rules[index].group].matched;
    batch_.push_back(std::move(r));
  }

  Result<uint64_t> take_batch() {
    REGIE_ASSIGN(ApplyOutcome outcome, apply_());
    uint64_t applied = 0;
    for (const Recorded& r : batch_) {
      if (graph_.live(r.root)) {  // vetoed or held back
        refused_.insert(key(r.rule, r.root));
        enqueue(r.root);
        continue;
      }
      ++applied;
      if (statistics_) {
        const uint32_t group = rules_.rules[r.rule].group;
        ++statistics_->rules[group].applied;
        ++statistics_->rules[group].by_pattern[r.rule - rules_.groups[group].first];
      }
      for (uint32_t value : r.patch.made) {
        if (value == REGIE_NONE || !graph_.live_value(value)) continue;
        uint32_t node = graph_.value(value).owner;
        generation_[node] = r.generation;
        retry_readers(node);
      }
      // A value that lost readers may have a single one now.
      for (uint32_t value : r.bound)
        if (graph_.live_value(value) && graph_.value(value).use_count == 1) {
          const regie_use& use = graph_.uses(value)[0];
          if (!(use.node & REGIE_USE_REGION)) retry_readers(use.node);
        }
    }
    for (uint32_t node : deferred_)
      if (graph_.live(node)) enqueue(node);
    return applied;
  }

  static uint64_t key(uint32_t rule, uint32_t node) { return uint64_t{rule} << 32 | node; }

  void prepare_statistics() {
    if (!statistics_) return;
    statistics_->rules.resize(rules_.groups.size());
    statistics_->failed_roots.resize(rules_.groups.size());
    for (size_t i = 0; i < rules_.groups.size(); ++i) {
      statistics_->rules[i].name = rules_.groups[i].name;
      statistics_->rules[i].by_pattern.resize(rules_.groups[i].count);
    }
  }

  // Whether a pattern of the rule matches at `root`; if not, `nearest` is the one that got furthest.
  bool any_matches(const RuleSet::Group& group, uint32_t root, uint32_t* nearest) {
    uint32_t progress = 0;
    *nearest = group.first;
    for (uint32_t i = group.first; i < group.first + group.count; ++i) {
      if (matcher_.match(rules_.rules[i], root)) return true;
      if (i > group.first && matcher_.failure().progress <= progress) continue;
      *nearest = i;
      progress = matcher_.failure().progress;
    }
    return false;
  }

  // Looks once more at the roots that failed, on the graph as it is now: what matched since, or is gone, is
  // no near miss.
  void find_near_misses() {
    matcher_.graph_changed();
    for (size_t i = 0; i < rules_.groups.size(); ++i) {
      const RuleSet::Group& group = rules_.groups[i];
      RuleCount& count = statistics_->rules[i];
      std::vector<uint32_t>& roots = statistics_->failed_roots[i];
      std::sort(roots.begin(), roots.end());
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
      uint32_t nearest = 0;
      count.reasons.clear(), count.details.clear();
      struct Tally {
        uint64_t code;
        uint64_t count;
        std::string text;
      };
      std::vector<Tally> tallies;
      std::vector<uint32_t> failed;
      for (uint32_t root : roots) {
        if (!graph_.live(root) || any_matches(group, root, &nearest)) continue;
        failed.push_back(root);
        // The failure is that of the last pattern tried.
        if (nearest + 1 < group.first + group.count) matcher_.match(rules_.rules[nearest], root);
        const MatchFailure& f = matcher_.failure();
        const uint64_t pattern = nearest - group.first;
        uint64_t code =
            static_cast<uint64_t>(f.kind) << 56 | pattern << 44 | uint64_t{f.node} << 32 | f.index;
        auto at =
            std::find_if(tallies.begin(), tallies.end(), [&](const Tally& t) { return t.code == code; });
        if (at == tallies.end()) at = tallies.insert(at, {code, 0, matcher_.reason()});
        if (++at->count > details_a_reason_ || count.details.size() >= details_) continue;
        NearMiss miss;
        miss.rule = group.name;
        miss.node = root;
        miss.node_text = graph_.describe_node(root);
        miss.reason = at->text;
        miss.passed = f.progress;
        miss.stopped_at = matcher_.details(&miss.in_the_way);
        for (uint32_t n : matcher_.state().nodes)
          if (n != REGIE_NONE && n != root) miss.reached.push_back(n);
        count.details.push_back(std::move(miss));
      }
      count.near_misses = failed.size();
      roots = std::move(failed);
      std::stable_sort(tallies.begin(), tallies.end(),
                       [](const Tally& a, const Tally& b) { return a.count > b.count; });
      for (Tally& t : tallies) count.reasons.emplace_back(std::move(t.text), t.count);
    }
  }

  const RuleSet& rules_;
  Graph& graph_;
  Edit& edit_;
  const ApplyPatches& apply_;
  RuleStatistics* statistics_;
  size_t details_, details_a_reason_;
  Matcher matcher_;
  std::vector<bool> chosen_;
  static constexpr uint64_t kRewritesANode = 16;
  uint64_t limit_ = 0, recorded_ = 0;
  std::vector<uint32_t> queue_, deferred_;
  std::vector<uint8_t> queued_;
  std::vector<std::pair<uint32_t, uint32_t>> cone_;
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 1;
  std::vector<Recorded> batch_;
  std::unordered_set<uint32_t> removed_, read_;  // nodes, values: of the present batch
  std::unordered_set<uint64_t> refused_;
  std::unordered_map<uint32_t, uint64_t> generation_;
  Status failure_;
};

}  // namespace

Result<uint64_t> apply_rules(const RuleSet& rules, Graph& graph, Edit& edit, const ApplyPatches& apply,
                             const ApplyRulesOptions& options) {
  Applier applier(rules, graph, edit, apply, options);
  REGIE_TRY(applier.choose(options.only));
  return applier.run(options.changed);
}

}  // namespace regie
