// Runs one pass or rewrite plug-in over a graph given as text, the way the pass manager does, but with
// engines, operator flags and aliases that the test invents: what no target of the tree offers can be tried
// that way. Operators are the real ones.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/edit.h"
#include "ir/graph.h"
#include "ir/verify.h"
#include "passes/plugin_op_set.h"
#include "plugins/host.h"
#include "text/text.h"

namespace regie {

class PassHarness {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  // What a context's functions answer. Empty: as the kernel would, without engines.
  std::function<uint32_t(const Graph&, uint32_t node, uint32_t result, uint32_t operand)> alias;
  std::function<uint32_t(std::string_view op, uint32_t real)> flags;
  std::function<std::vector<regie_format_wish>(const Graph&, uint32_t node)> wishes;
  std::function<double(uint32_t engine, uint32_t value, regie_format from, regie_format to)> reformat_ns;
  // Counted over the run.
  uint32_t runs = 0, evaluations = 0, inferences = 0, patches = 0;
  uint64_t shown = 0;  // nodes listed as changed, all runs together
  std::vector<EditNote> notes;

  Status open() {
    REGIE_ASSIGN(host_, PluginHost::create());
    REGIE_ASSIGN(ops_, PluginOpSet::create(host_));
    return {};
  }
  Status parse_graph(std::string_view text) {
    REGIE_ASSIGN(graph_, parse(text, "test.rg"));
    return check();
  }
  void take_graph(std::unique_ptr<Graph> graph) { graph_ = std::move(graph); }
  Graph& graph() { return *graph_; }
  PluginOpSet& ops() { return *ops_; }
  PluginHost& host() { return *host_; }
  std::string text() const { return print(*graph_); }
  Status check() const {
    VerifyOptions options;
    options.ops = ops_.get();
    return verify(*graph_, options);
  }

  // A pass, until it makes no more patches.
  Status run_pass(const std::string& name, const Settings& settings = {}) {
    REGIE_ASSIGN(auto provider, host_->pass(name));
    ConfigText config(settings);
    regie_pass* pass = nullptr;
    REGIE_TRY(call_plugin(
        name, [&] { return provider.table->create(provider.index, host_table(), config.get(), &pass); }));
    graph_->take_changed();
    std::vector<uint32_t> changed;
    graph_->for_each_node([&](uint32_t n) { changed.push_back(n); });
    Status s;
    for (bool again = true; s.ok() && again;) {
      s = once([&](const regie_pass_context* c) { return provider.table->run(pass, c); }, name, changed,
               &again);
      changed = live_changes();
      again &= s.ok();
    }
    provider.table->destroy(pass);
    return s.ok() ? check() : s;
  }

  // A rewrite, on every node and on what changes.
  Status run_rewrite(const std::string& name) {
    REGIE_ASSIGN(auto provider, host_->rewrite(name));
    regie_pass* pass = nullptr;
    REGIE_TRY(call_plugin(
        name, [&] { return provider.table->create(provider.index, host_table(), nullptr, &pass); }));
    graph_->take_changed();
    std::set<std::string> wanted;
    const regie_rewrite_info& info = provider.table->rewrites[provider.index];
    for (uint32_t i = 0; i < info.op_count; ++i) wanted.emplace(view_of(info.ops[i]));
    std::vector<uint32_t> work;
    graph_->for_each_node([&](uint32_t n) { work.push_back(n); });
    Status s;
    for (size_t i = 0; s.ok() && i < work.size(); ++i) {
      if (!graph_->live(work[i]) || !wanted.count(std::string(view_of(graph_->node(work[i]).op)))) continue;
      bool patched = false;
      s = once([&](const regie_pass_context* c) { return provider.table->apply(pass, c, work[i]); }, name, {},
               &patched);
      for (uint32_t n : live_changes()) work.push_back(n);
    }
    provider.table->destroy(pass);
    return s.ok() ? check() : s;
  }

  bool noted(std::string_view kind, std::string_view part) const {
    for (const EditNote& n : notes)
      if (n.kind == kind && n.text.find(part) != std::string::npos) return true;
    return false;
  }
  std::string all_notes() const {
    std::string out;
    for (const EditNote& n : notes) out += n.kind + ": " + n.text + "\n";
    return out;
  }

 private:
  std::vector<uint32_t> live_changes() {
    std::vector<uint32_t> changed = graph_->take_changed();
    std::erase_if(changed, [&](uint32_t n) { return !graph_->live(n); });
    return changed;
  }

  static PassHarness& self(const regie_pass_context* c) { return *static_cast<PassHarness*>(c->state); }

  template <class Call>
  Status once(Call&& call, const std::string& name, const std::vector<uint32_t>& changed, bool* patched) {
    Edit edit(*graph_);
    regie_graph view = graph_->view();
    view.changed = changed.data();
    view.changed_count = static_cast<uint32_t>(changed.size());
    shown += changed.size();
    ++runs;
    evaluated_.clear();
    regie_pass_context c{};
    c.struct_size = sizeof(c);
    c.host = host_table();
    c.graph = &view;
    c.edit = edit.handle();
    c.edit_api = edit_api();
    c.state = this;
    c.infer = [](const regie_pass_context* p, uint32_t node) {
      ++self(p).inferences;
      return fail_on_this_thread(self(p).ops_->infer(*self(p).graph_, node));
    };
    c.evaluate = [](const regie_pass_context* p, uint32_t node, uint64_t budget, regie_tensor* results) {
      PassHarness& h = self(p);
      ++h.evaluations;
      std::vector<Tensor> operands;
      for (uint32_t v : h.graph_->operands(node))
        operands.push_back(v == REGIE_NONE ? Tensor() : h.graph_->tensor(v));
      auto r = h.ops_->evaluate(*h.graph_, node, operands, budget);
      if (!r.ok()) return fail_on_this_thread(r.status());
      for (size_t i = 0; i < r->size(); ++i) results[i] = (*r)[i] ? (*r)[i].view() : regie_tensor{};
      for (Tensor& t : *r) h.evaluated_.push_back(std::move(t));
      return regie_status{REGIE_OK};
    };
    c.alias_kind = [](const regie_pass_context* p, uint32_t node, uint32_t result,
                      uint32_t operand) -> uint32_t {
      return self(p).alias ? self(p).alias(*self(p).graph_, node, result, operand)
                           : uint32_t{REGIE_ALIAS_NONE};
    };
    c.op_flags = [](const regie_pass_context* p, regie_str op) -> uint32_t {
      const uint32_t real = self(p).ops_->flags(view_of(op));
      return self(p).flags ? self(p).flags(view_of(op), real) : real;
    };
    c.format_wishes = [](const regie_pass_context* p, uint32_t node, regie_format_wish* to,
                         uint32_t capacity) -> uint32_t {
      if (!self(p).wishes) return 0;
      const std::vector<regie_format_wish> all = self(p).wishes(*self(p).graph_, node);
      for (size_t i = 0; i < all.size() && i < capacity; ++i) to[i] = all[i];
      return static_cast<uint32_t>(all.size());
    };
    c.reformat_ns = [](const regie_pass_context* p, uint32_t engine, uint32_t value, regie_format from,
                       regie_format to) -> double {
      return self(p).reformat_ns ? self(p).reformat_ns(engine, value, from, to) : -1;
    };
    REGIE_TRY(call_plugin(name, [&] { return call(&c); }));
    REGIE_ASSIGN(ApplyOutcome outcome, edit.apply(*ops_));
    *patched = !outcome.applied.empty() || outcome.dropped != 0;
    patches += static_cast<uint32_t>(outcome.applied.size());
    for (EditNote& n : outcome.notes) notes.push_back(std::move(n));
    return {};
  }
  static std::string_view view_of(regie_str s) { return {s.data, s.size}; }

  std::shared_ptr<PluginHost> host_;
  std::shared_ptr<PluginOpSet> ops_;
  std::unique_ptr<Graph> graph_;
  std::vector<Tensor> evaluated_;
};

}  // namespace regie
