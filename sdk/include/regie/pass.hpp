// Header-only veneer for passes: read the graph, record a patch, say why. A pass is a class with a
// constructor from its options and `run(PassContext&)`; a rewrite has `apply(PassContext&, const
// regie_node&)`. `pass_table` and `rewrite_table` make the C tables of it. Everything inside may throw
// `Failure`; nothing of it crosses the boundary. plugins/passes/infer-shapes is the
// shortest example.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regie/c/pass.h"
#include "regie/graph_view.hpp"
#include "regie/plugin.hpp"

namespace regie::sdk {

// regie_pass_info by names. The spans are static arrays of the plug-in.
struct PassInfo {
  std::string_view name, doc;
  std::span<const regie_str> requires_ = {}, establishes = {}, breaks = {};
  std::span<const regie_option_info> options = {};
};
constexpr regie_pass_info pass_info(const PassInfo& p) {
  return {{p.name.data(), p.name.size()},
          {p.doc.data(), p.doc.size()},
          static_cast<uint32_t>(p.requires_.size()),
          static_cast<uint32_t>(p.establishes.size()),
          static_cast<uint32_t>(p.breaks.size()),
          static_cast<uint32_t>(p.options.size()),
          p.requires_.data(),
          p.establishes.data(),
          p.breaks.data(),
          p.options.data()};
}

// What a pass may do while it runs. Failures of the host become exceptions, except where a status is
// returned.
class PassContext {
 public:
  explicit PassContext(const regie_pass_context* c)
      : c_(c), graph_(c->graph), next_node_(c->graph->node_count) {}
  const GraphView& graph() const { return graph_; }
  const regie_host* host() const { return c_->host; }
  Dims dims() const { return {c_->host, c_->graph->dims}; }

  void infer(uint32_t node) const { check(c_->infer(c_, node)); }
  // Fills one tensor a result, valid until the pass returns. Not every refusal is a failure of the pass: it
  // decides.
  regie_status evaluate(const regie_node& n, uint64_t budget_bytes,
                        std::vector<regie_tensor>* results) const {
    results->assign(n.result_count, regie_tensor{});
    return c_->evaluate(c_, n.id, budget_bytes, results->data());
  }
  uint32_t alias_kind(uint32_t node, uint32_t result, uint32_t operand) const {
    return c_->alias_kind(c_, node, result, operand);
  }
  uint32_t op_flags(regie_str op) const { return c_->op_flags(c_, op); }
  std::vector<regie_format_wish> format_wishes(uint32_t node) const {
    std::vector<regie_format_wish> wishes(128);  // enough for nearly all: engines work for their answers
    const uint32_t count = c_->format_wishes(c_, node, wishes.data(), 128);
    const bool more = count > wishes.size();
    wishes.resize(count);
    if (more) c_->format_wishes(c_, node, wishes.data(), count);
    return wishes;
  }
  double reformat_ns(uint32_t engine, uint32_t value, regie_format from, regie_format to) const {
    return c_->reformat_ns(c_, engine, value, from, to);
  }

  // A line for the ledger; `node` REGIE_NONE: about the pass as a whole.
  void note(uint32_t node, std::string_view kind, std::string_view text) {
    check(c_->edit_api->note(c_->edit, node, str(kind), str(text)));
  }
  // Assignments. They are applied after all patches of this run, so they may name what those make.
  void set_engine(uint32_t node, uint32_t engine, std::string_view reason) {
    check(c_->edit_api->set_engine(c_->edit, node, engine, str(reason)));
  }
  void set_type(uint32_t value, const regie_type& type) {
    check(c_->edit_api->set_type(c_->edit, value, &type));
  }
  void set_space(uint32_t value, uint32_t space) { check(c_->edit_api->set_space(c_->edit, value, space)); }
  void set_alias(uint32_t value, uint32_t base, uint64_t offset, std::string_view reason) {
    check(c_->edit_api->set_alias(c_->edit, value, base, offset, str(reason)));
  }

 private:
  friend class Patch;
  const regie_pass_context* c_;
  GraphView graph_;
  uint32_t next_node_;  // id that the next recorded node gets (patch.h)
};

// An attribute; it refers to its name.
inline regie_attr integer_attr(std::string_view name, int64_t value) {
  regie_attr a{};
  a.name = str(name);
  a.kind = REGIE_ATTR_INT;
  a.count = 1;
  a.v.i = value;
  return a;
}

// A node to be made by a patch.
struct NewNode {
  std::string_view op;
  std::vector<uint32_t> operands = {};  // REGIE_NONE: absent
  std::string_view name = {};
  std::vector<regie_attr> attrs = {};
  std::vector<uint32_t> control = {};
  uint32_t result_count = 1;
  std::vector<std::string_view> result_names = {};  // empty: unnamed; else one a result
  std::vector<uint32_t> regions = {};               // from open_region, closed before
};

// Records one patch: it is abandoned unless `commit` is reached, so that an exception leaves no half of it
// behind.
class Patch {
 public:
  struct Made {
    uint32_t node;
    std::vector<uint32_t> results;
  };

  // New nodes take the place of node `anchor` in program order.
  Patch(PassContext& context, std::string_view title, uint32_t anchor)
      : context_(context), api_(context.c_->edit_api), edit_(context.c_->edit) {
    check(api_->begin(edit_, str(title), anchor));
    open_ = true;
  }
  ~Patch() {
    if (open_) api_->abandon(edit_);
  }
  Patch(const Patch&) = delete;
  Patch& operator=(const Patch&) = delete;

  uint32_t constant(uint32_t kind, const regie_tensor& tensor, std::string_view name = {}) {
    uint32_t value = REGIE_NONE;
    check(api_->constant(edit_, kind, &tensor, str(name), &value));
    return value;
  }
  Made node(const NewNode& n) {
    regie_node_desc d{};
    d.struct_size = sizeof(d);
    d.operand_count = static_cast<uint32_t>(n.operands.size());
    d.result_count = n.result_count;
    d.attr_count = static_cast<uint32_t>(n.attrs.size());
    d.control_count = static_cast<uint32_t>(n.control.size());
    d.region_count = static_cast<uint32_t>(n.regions.size());
    d.regions = n.regions.data();
    d.op = str(n.op);
    d.name = str(n.name);
    d.operands = n.operands.data();
    d.attrs = n.attrs.data();
    d.control = n.control.data();
    std::vector<regie_str> names;
    for (std::string_view name : n.result_names) names.push_back(str(name));
    names.resize(n.result_count);
    d.result_names = names.data();
    Made made{context_.next_node_, std::vector<uint32_t>(n.result_count, REGIE_NONE)};
    check(api_->node(edit_, &d, made.results.data()));
    ++context_.next_node_;
    return made;
  }
  struct Opened {
    uint32_t region;
    std::vector<uint32_t> args;
  };
  // Nodes and constants made until close_region belong to the region; a node made after that takes it.
  Opened open_region(std::string_view name, std::span<const regie_type> types) {
    Opened opened{REGIE_NONE, std::vector<uint32_t>(types.size(), REGIE_NONE)};
    check(api_->open_region(edit_, str(name), static_cast<uint32_t>(types.size()), types.data(), nullptr,
                            &opened.region, opened.args.data()));
    return opened;
  }
  void close_region(std::span<const uint32_t> results) {
    check(api_->close_region(edit_, static_cast<uint32_t>(results.size()), results.data()));
  }
  // Moves the nodes of region `which` of `node` before it, its arguments bound to `args`; the region's results.
  // `node` is to be removed by this patch.
  std::vector<uint32_t> inline_region(uint32_t node, uint32_t which, std::span<const uint32_t> args) {
    const GraphView& g = context_.graph();
    std::vector<uint32_t> results(g.region(g.node(node).regions[which]).result_count, REGIE_NONE);
    check(api_->inline_region(edit_, node, which, args.data(), results.data()));
    return results;
  }
  void replace(uint32_t old_value, uint32_t new_value) { check(api_->replace(edit_, old_value, new_value)); }
  void remove(uint32_t node) { check(api_->remove(edit_, node)); }
  void set_operand(uint32_t node, uint32_t operand, uint32_t value) {
    check(api_->set_operand(edit_, node, operand, value));
  }
  void commit() {
    open_ = false;
    check(api_->commit(edit_));
  }

 private:
  PassContext& context_;
  const regie_edit_api* api_;
  regie_edit* edit_;
  bool open_ = false;
};

namespace detail {
template <class P>
regie_status create(uint32_t, const regie_host* host, const regie_config* options, regie_pass** pass) {
  return guard(host, [&] { *pass = reinterpret_cast<regie_pass*>(new P(Config(options))); });
}
template <class P>
void destroy(regie_pass* pass) {
  delete reinterpret_cast<P*>(pass);
}
template <class P>
regie_status run(regie_pass* pass, const regie_pass_context* c) {
  return guard(c->host, [&] {
    PassContext context(c);
    reinterpret_cast<P*>(pass)->run(context);
  });
}
template <class P>
regie_status apply(regie_pass* pass, const regie_pass_context* c, uint32_t node) {
  return guard(c->host, [&] {
    PassContext context(c);
    reinterpret_cast<P*>(pass)->apply(context, c->graph->nodes[node]);
  });
}
}  // namespace detail

// The table of a plug-in with one pass. `digest` is REGIE_DIGEST_PASS of "regie_digests.h".
template <class P>
constexpr regie_pass_table pass_table(const regie_pass_info* info, const char* digest) {
  return {head(sizeof(regie_pass_table), digest),
          1,
          0,
          info,
          detail::create<P>,
          detail::run<P>,
          detail::destroy<P>};
}
template <class P>
constexpr regie_rewrite_table rewrite_table(const regie_rewrite_info* info, const char* digest) {
  return {head(sizeof(regie_rewrite_table), digest),
          1,
          0,
          info,
          detail::create<P>,
          detail::apply<P>,
          detail::destroy<P>};
}

// `find` of a plug-in with one table.
inline const void* find_one(const char* asked, std::string_view id, const void* table) {
  return asked && id == asked ? table : nullptr;
}

}  // namespace regie::sdk
