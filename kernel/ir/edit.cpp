#include "ir/edit.h"

#include <algorithm>
#include <unordered_set>

#include "ir/recording.h"
#include "ir/types.h"
#include "text/text.h"

namespace regie {

using namespace recording;  // NOLINT: the records are this file's vocabulary

struct Edit::Impl {
  Graph& graph;
  std::vector<Entry> entries;
  std::vector<EditNote> notes;
  Patch patch;  // being recorded
  bool recording = false;
  Ids next;
  std::vector<uint32_t> open;                 // regions being made
  std::vector<Entry> after_patch;             // assignments made while a patch is recorded
  std::unordered_set<uint32_t> removed_here;  // by the patch being recorded
  std::unordered_set<uint32_t> taken_regions;
  std::unordered_set<uint32_t> inlined;
  uint32_t own_serial = 0;

  explicit Impl(Graph& g) : graph(g) { sync(); }
  void sync() {
    if (entries.empty() && !recording)
      next = {graph.next_value_id(), graph.next_node_id(), graph.next_region_id()};
  }
  bool knows_value(uint32_t v) const {
    return graph.live_value(v) || (v >= graph.value_count() && v < next.value);
  }
  bool knows_node(uint32_t n) const { return graph.live(n) || (n >= graph.node_count() && n < next.node); }
  bool is_new_node(uint32_t n) const { return n >= patch.first.node; }

  Status wrong(std::string message) const {
    return bad_plugin("patch '" + patch.title + "': " + std::move(message));
  }
  Status ready() const {
    if (recording) return {};
    return bad_plugin("a patch was changed outside of begin and commit");
  }
  Status need_value(uint32_t v, const char* what) const {
    if (knows_value(v)) return {};
    return wrong(std::string(what) + " is value #" + std::to_string(v) + ", which does not exist");
  }
  Status need_node(uint32_t n, const char* what) const {
    if (knows_node(n)) return {};
    return wrong(std::string(what) + " is node #" + std::to_string(n) + ", which does not exist");
  }
  std::vector<Entry>& assignments() { return recording ? after_patch : entries; }
  void push_patch() {
    entries.push_back(std::move(patch));
    for (Entry& e : after_patch) entries.push_back(std::move(e));
    after_patch.clear();
  }
};

Edit::Edit(Graph& graph) : impl_(std::make_unique<Impl>(graph)) {}
Edit::~Edit() = default;

bool Edit::recording() const { return impl_->recording; }

Status Edit::complete() const {
  if (!impl_->open.empty()) return impl_->wrong("a region was opened and not closed");
  if (impl_->recording) return impl_->wrong("it was begun and neither committed nor abandoned");
  return {};
}

Status Edit::begin(std::string_view title, uint32_t anchor) {
  Impl& m = *impl_;
  if (m.recording)
    return m.wrong("it was neither committed nor abandoned when '" + std::string(title) + "' was begun");
  m.sync();
  m.patch = Patch();
  m.patch.title = title;
  m.patch.first = m.next;
  m.patch.anchor = anchor;
  if (anchor != REGIE_NONE) REGIE_TRY(m.need_node(anchor, "the anchor"));
  m.removed_here.clear();
  m.taken_regions.clear();
  m.inlined.clear();
  m.recording = true;
  return {};
}

Status Edit::commit() {
  Impl& m = *impl_;
  if (!m.recording) return bad_plugin("commit without begin");
  if (!m.open.empty()) return m.wrong("a region was opened and not closed");
  for (uint32_t n : m.inlined)
    if (!m.removed_here.count(n))
      return m.wrong("it inlines a region of " + m.graph.describe_node(n) + " but does not remove it");
  m.patch.end = m.next;
  m.push_patch();
  m.patch = Patch();
  m.recording = false;
  return {};
}

Status Edit::abandon() {
  Impl& m = *impl_;
  if (!m.recording) return bad_plugin("abandon without begin");
  m.open.clear();
  m.patch.end = m.next;
  m.patch.abandoned = true;
  m.patch.steps.clear();
  m.push_patch();
  m.patch = Patch();
  m.recording = false;
  return {};
}

Result<uint32_t> Edit::constant(uint32_t kind, const regie_tensor& tensor, std::string_view name) {
  Impl& m = *impl_;
  if (tensor.rank < 0 || (tensor.rank > 0 && !tensor.dims))
    return m.wrong("a constant needs concrete dimensions");
  std::span<const int64_t> dims(tensor.dims, static_cast<size_t>(tensor.rank));
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    return m.wrong("constant '" + std::string(name) + "' has a negative dimension");
  if (tensor.elem != REGIE_STRING && elem_bits(tensor.elem) == 0)
    return m.wrong("constant '" + std::string(name) + "' has no element type");
  uint64_t bytes = elem_bytes(tensor.elem, static_cast<uint64_t>(element_count(dims)));
  if (tensor.bytes != bytes || (bytes && !tensor.data))
    return m.wrong("constant '" + std::string(name) + "' has " + std::to_string(tensor.bytes) +
                   " bytes; its type needs " + std::to_string(bytes));
  Result<Tensor> copied = Tensor::try_copy(tensor, "constant '" + std::string(name) + "'");
  if (!copied.ok()) return std::move(copied).status();
  return constant(kind, std::move(copied).value(), name);
}

Result<uint32_t> Edit::constant(uint32_t kind, Tensor tensor, std::string_view name) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  if (kind != REGIE_VALUE_CONSTANT && kind != REGIE_VALUE_WEIGHT)
    return m.wrong("a constant's kind must be REGIE_VALUE_CONSTANT or REGIE_VALUE_WEIGHT");
  if (!tensor) return m.wrong("constant '" + std::string(name) + "' has no data");
  uint32_t id = m.next.value++;
  m.patch.steps.push_back(MakeConstant{kind, id, std::move(tensor), std::string(name)});
  return id;
}

Result<std::vector<uint32_t>> Edit::node(NodeSpec spec) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  if (spec.op.empty()) return m.wrong("a node needs an operator");
  if (spec.omitted.size() > spec.result_count || spec.result_names.size() > spec.result_count)
    return m.wrong("a node has more result names than results");
  for (uint32_t v : spec.operands)
    if (v != REGIE_NONE) REGIE_TRY(m.need_value(v, "an operand"));
  for (uint32_t c : spec.control) REGIE_TRY(m.need_node(c, "a control edge"));
  std::unordered_set<std::string_view> names;
  for (const AttrValue& a : spec.attrs) {
    if (a.name.empty() || !names.insert(a.name).second)
      return m.wrong("attribute '" + a.name + "' of " + spec.op + " is there twice");
    if (a.kind < REGIE_ATTR_INT || a.kind > REGIE_ATTR_TENSOR || (a.kind == REGIE_ATTR_TENSOR && !a.tensor))
      return m.wrong("attribute '" + a.name + "' of " + spec.op + " has no value");
  }
  for (uint32_t r : spec.regions)
    if (r < m.patch.first.region || r >= m.next.region ||
        std::find(m.open.begin(), m.open.end(), r) != m.open.end() || !m.taken_regions.insert(r).second)
      return m.wrong(spec.op + " takes a region that was not opened and closed for it, or takes it twice");
  MakeNode step{m.next.node++, std::move(spec), {}};
  for (uint32_t i = 0; i < step.spec.result_count; ++i)
    step.results.push_back(i < step.spec.omitted.size() && step.spec.omitted[i] ? REGIE_NONE
                                                                                : m.next.value++);
  std::vector<uint32_t> results = step.results;
  m.patch.steps.push_back(std::move(step));
  return results;
}

Result<uint32_t> Edit::open_region(std::string_view name, std::span<const regie_type> types,
                                   std::span<const std::string> names, std::vector<uint32_t>* args) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  args->clear();
  OpenRegion step{0, std::string(name), {}, {names.begin(), names.end()}};
  for (const regie_type& t : types) step.types.push_back(m.graph.copy_type(t));
  uint32_t id = step.id = m.next.region++;
  for (size_t i = 0; i < types.size(); ++i) args->push_back(m.next.value++);
  m.open.push_back(id);
  m.patch.steps.push_back(std::move(step));
  return id;
}

Status Edit::close_region(std::span<const uint32_t> results) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  if (m.open.empty()) return m.wrong("close_region without open_region");
  for (uint32_t v : results) REGIE_TRY(m.need_value(v, "a region's result"));
  m.patch.steps.push_back(CloseRegion{{results.begin(), results.end()}});
  m.open.pop_back();
  return {};
}

Status Edit::replace(uint32_t old_value, uint32_t new_value) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  REGIE_TRY(m.need_value(old_value, "what is replaced"));
  REGIE_TRY(m.need_value(new_value, "the replacement"));
  if (old_value == new_value) return m.wrong("it replaces a value by itself");
  m.patch.steps.push_back(Replace{old_value, new_value});
  return {};
}

Status Edit::remove(uint32_t node) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  REGIE_TRY(m.need_node(node, "what is removed"));
  if (m.is_new_node(node)) return m.wrong("it removes a node that it makes itself");
  if (!m.removed_here.insert(node).second)
    return m.wrong("it removes " + m.graph.describe_node(node) + " twice");
  m.patch.steps.push_back(Remove{node});
  return {};
}

Status Edit::set_operand(uint32_t node, uint32_t operand, uint32_t value) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  REGIE_TRY(m.need_node(node, "whose operand is set"));
  if (value != REGIE_NONE) REGIE_TRY(m.need_value(value, "the operand"));
  if (m.graph.live(node) && operand >= m.graph.node(node).operand_count)
    return m.wrong(m.graph.describe_node(node) + " has no operand " + std::to_string(operand));
  m.patch.steps.push_back(SetOperand{node, operand, value});
  return {};
}

Result<uint32_t> Edit::region_arg_count(uint32_t node, uint32_t which) const {
  const Impl& m = *impl_;
  REGIE_TRY(m.need_node(node, "whose region is inlined"));
  if (!m.graph.live(node)) return m.wrong("it inlines a region of a node that is not in the graph yet");
  if (which >= m.graph.node(node).region_count)
    return m.wrong(m.graph.describe_node(node) + " has no region " + std::to_string(which));
  return m.graph.region(m.graph.node(node).regions[which]).arg_count;
}

Result<std::vector<uint32_t>> Edit::inline_region(uint32_t node, uint32_t which,
                                                  std::span<const uint32_t> args) {
  Impl& m = *impl_;
  REGIE_TRY(m.ready());
  REGIE_ASSIGN(uint32_t arg_count, region_arg_count(node, which));
  if (!m.open.empty()) return m.wrong("inline_region inside open_region");
  const regie_region& r = m.graph.region(m.graph.node(node).regions[which]);
  if (args.size() != arg_count)
    return m.wrong("region " + std::to_string(which) + " of " + m.graph.describe_node(node) + " has " +
                   std::to_string(arg_count) + " arguments, not " + std::to_string(args.size()));
  for (uint32_t a : args) REGIE_TRY(m.need_value(a, "an argument"));
  if (!m.inlined.insert(node).second)
    return m.wrong("it inlines two regions of " + m.graph.describe_node(node));
  InlineRegion step{node, which, {args.begin(), args.end()}, {}};
  for (uint32_t i = 0; i < r.result_count; ++i) {
    const regie_value& v = m.graph.value(r.results[i]);
    bool argument = v.kind == REGIE_VALUE_ARGUMENT && v.owner == r.id;
    step.results.push_back(argument ? args[v.index] : v.id);
  }
  std::vector<uint32_t> results = step.results;
  m.patch.steps.push_back(std::move(step));
  return results;
}

// ---- Assignments ----

namespace {
// A plug-in may make types more precise or change how the bytes lie, never what a value is.
Status assign_type(Graph& graph, uint32_t value, const regie_type& type, bool* changed) {
  const regie_type old = graph.value(value).type;
  bool same_layout = type.format == old.format;
  if (same_layout ? !types_agree(old, type) : type.elem != old.elem && old.elem != REGIE_ELEM_UNKNOWN)
    return invalid_model(graph.describe_value(value) + " is " + print_type(graph, old) +
                         " and cannot become " + print_type(graph, type));
  regie_type merged = same_layout ? merge_types(graph, type, old) : graph.copy_type(type);
  *changed = !same_type(merged, old);
  if (*changed) graph.set_type(value, merged);
  return {};
}
}  // namespace

Status Edit::set_type(uint32_t value, const regie_type& type) {
  Impl& m = *impl_;
  m.sync();
  REGIE_TRY(m.need_value(value, "whose type is set"));
  m.assignments().push_back(SetType{value, m.graph.copy_type(type)});
  return {};
}

Status Edit::set_alias(uint32_t value, uint32_t base, uint64_t offset, std::string_view reason) {
  Impl& m = *impl_;
  m.sync();
  REGIE_TRY(m.need_value(value, "whose alias is set"));
  if (base != REGIE_NONE) REGIE_TRY(m.need_value(base, "the alias base"));
  m.assignments().push_back(SetAlias{value, base, offset, std::string(reason)});
  return {};
}

Status Edit::set_engine(uint32_t node, uint32_t engine, std::string_view reason) {
  Impl& m = *impl_;
  m.sync();
  REGIE_TRY(m.need_node(node, "whose engine is set"));
  if (engine != REGIE_NONE && engine >= m.graph.view().engine_count)
    return bad_plugin("engine " + std::to_string(engine) + " does not exist; the target has " +
                      std::to_string(m.graph.view().engine_count));
  m.assignments().push_back(SetEngine{node, engine, std::string(reason)});
  return {};
}

Status Edit::set_space(uint32_t value, uint32_t space) {
  Impl& m = *impl_;
  m.sync();
  REGIE_TRY(m.need_value(value, "whose memory space is set"));
  m.assignments().push_back(SetSpace{value, space});
  return {};
}

void Edit::note(uint32_t node, std::string_view kind, std::string_view text) {
  impl_->notes.push_back({node, std::string(kind), std::string(text)});
}

// ---- Applying ----

Result<ApplyOutcome> Edit::apply(const OpSet& ops, const EditOptions& options) {
  Impl& m = *impl_;
  REGIE_TRY(complete());
  ApplyOutcome out;
  std::vector<Entry> entries = std::exchange(m.entries, {});
  Ids end = m.next;
  Graph& g = m.graph;
  uint32_t& serial = options.next_serial ? *options.next_serial : m.own_serial;

  auto apply_patch = [&](const Patch& patch) -> Status {
    if (patch.abandoned) return {};
    PatchApplier applier(g, ops, patch);
    if (applier.stale()) {
      ++out.dropped;
      return {};
    }
    uint32_t number = serial++;
    if (options.accept && !options.accept(number)) {
      ++out.held_back;
      return {};
    }
    if (Status s = applier.run(); !s.ok()) {
      applier.undo();
      return std::move(s).while_doing("applying patch '" + patch.title + "'");
    }
    for (uint32_t n : applier.new_nodes()) {
      if (!options.veto || !applier.beside_anchor(n)) continue;
      Status s = options.veto(g, n);
      if (s.ok()) continue;
      applier.undo();
      ++out.vetoed;
      out.notes.push_back({patch.anchor, "veto", "'" + patch.title + "': " + s.message()});
      return {};
    }
    AppliedPatch applied;
    applied.serial = number;
    applier.finish(&applied);
    out.applied.push_back(std::move(applied));
    return {};
  };
  auto reason = [&](uint32_t node, const char* kind, const std::string& text) {
    ++out.assignments;
    if (!text.empty()) out.notes.push_back({node, kind, text});
  };

  Status failed;
  for (const Entry& entry : entries) {
    if (const Patch* patch = std::get_if<Patch>(&entry)) {
      failed = apply_patch(*patch);
    } else if (const SetType* t = std::get_if<SetType>(&entry)) {
      bool changed = false;
      if (g.live_value(t->value)) failed = assign_type(g, t->value, t->type, &changed);
      out.assignments += changed;
    } else if (const SetAlias* a = std::get_if<SetAlias>(&entry)) {
      if (!g.live_value(a->value) || (a->base != REGIE_NONE && !g.live_value(a->base))) continue;
      const regie_value& v = g.value(a->value);
      if (v.alias_of == a->base && v.alias_offset == a->offset) continue;
      g.set_alias(a->value, a->base, a->offset);
      reason(v.kind == REGIE_VALUE_RESULT ? v.owner : REGIE_NONE, "alias", a->reason);
    } else if (const SetEngine* e = std::get_if<SetEngine>(&entry)) {
      if (!g.live(e->node) || g.node(e->node).engine == e->engine) continue;
      g.set_engine(e->node, e->engine);
      reason(e->node, "engine", e->reason);
    } else if (const SetSpace* s = std::get_if<SetSpace>(&entry)) {
      if (!g.live_value(s->value) || g.value(s->value).space == s->space) continue;
      g.set_space(s->value, s->space);
      ++out.assignments;
    }
    if (!failed.ok()) break;
  }
  g.skip_ids(end.value, end.node, end.region);
  out.notes.insert(out.notes.begin(), m.notes.begin(), m.notes.end());
  m.notes.clear();
  m.sync();
  if (!failed.ok()) return failed;
  return out;
}

}  // namespace regie
