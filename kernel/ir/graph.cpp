#include "ir/graph.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace regie {

namespace {
// The view structs are const for plug-ins; the arena behind them is ours.
uint32_t& writable(const uint32_t* p, uint32_t i) { return const_cast<uint32_t*>(p)[i]; }
}  // namespace

Graph::Graph() : dims_(std::make_unique<DimTable>()) { add_region({}); }

const regie_graph& Graph::view() const {
  view_.struct_size = sizeof(regie_graph);
  view_.node_count = node_count();
  view_.value_count = value_count();
  view_.region_count = region_count();
  view_.name = str(std::string_view(name_));
  view_.nodes = nodes_.data();
  view_.values = values_.data();
  view_.regions = regions_.data();
  view_.origins = origins_.data();
  view_.origin_count = static_cast<uint32_t>(origins_.size());
  view_.changed_count = 0;
  view_.changed = nullptr;
  view_.dims = dims_->handle();
  view_.engines = engines_.data();
  view_.engine_count = static_cast<uint32_t>(engines_.size());
  return view_;
}

void Graph::set_name(std::string_view name) { name_ = name; }

// ---- Questions ----

const Tensor& Graph::tensor(uint32_t value) const { return tensors_[value]; }

std::vector<uint32_t> Graph::constants(uint32_t region) const {
  std::vector<uint32_t> out;
  for (uint32_t v : region_constants_[region])
    if (is_constant(v) && values_[v].owner == region) out.push_back(v);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

uint32_t Graph::region_of(uint32_t value) const {
  const regie_value& v = values_[value];
  return v.kind == REGIE_VALUE_RESULT ? nodes_[v.owner].region : v.owner;
}

bool Graph::visible(uint32_t value, uint32_t region) const {
  if (!live_value(value)) return false;
  uint32_t home = region_of(value);
  if (home == region) return true;
  if (!is_constant(value)) return false;
  for (uint32_t r = region_scope_[region]; r != REGIE_NONE; r = region_scope_[r])
    if (r == home) return true;
  return false;
}

std::string Graph::describe_node(uint32_t node) const {
  if (node >= nodes_.size()) return "node #" + std::to_string(node) + " (no such node)";
  const regie_node& n = nodes_[node];
  std::string op = n.op.data ? std::string(view_str(n.op)) : "removed";
  if (n.name.size) return "node '" + std::string(view_str(n.name)) + "' (" + op + ")";
  std::string text = "node #" + std::to_string(node) + " (" + op + ")";
  if (n.origin_count) {
    text += " made from";
    constexpr uint32_t kMost = 4;
    for (uint32_t i = 0; i < n.origin_count && i < kMost; ++i)
      text += (i ? ", '" : " '") + std::string(origin(n.origins[i])) + "'";
    if (n.origin_count > kMost) text += " and " + std::to_string(n.origin_count - kMost) + " more";
    return text;
  }
  for (uint32_t r : results(node))
    if (r != REGIE_NONE && values_[r].name.size)
      return text + " that makes '" + std::string(view_str(values_[r].name)) + "'";
  return text;
}

std::string Graph::describe_value(uint32_t value) const {
  if (value >= values_.size()) return "value #" + std::to_string(value) + " (no such value)";
  const regie_value& v = values_[value];
  if (v.kind == REGIE_VALUE_DEAD) return "value #" + std::to_string(value) + " (removed)";
  if (v.name.size) return "value '" + std::string(view_str(v.name)) + "'";
  if (v.kind == REGIE_VALUE_RESULT)
    return "result " + std::to_string(v.index) + " of " + describe_node(v.owner);
  return std::string(v.kind == REGIE_VALUE_ARGUMENT ? "argument" : "constant") + " #" + std::to_string(value);
}

// ---- Making ----

regie_type Graph::make_type(regie_elem elem, std::span<const regie_dim> dims, uint16_t container) {
  regie_type t{};
  t.elem = elem;
  t.container = container;
  t.rank = static_cast<int32_t>(dims.size());
  t.dims = arena_.copy(dims);
  return t;
}

regie_type Graph::copy_type(const regie_type& type) {
  regie_type t = type;
  t.dims = type.rank > 0 ? arena_.copy(std::span<const regie_dim>(type.dims, static_cast<size_t>(type.rank)))
                         : nullptr;
  return t;
}

uint32_t Graph::add_origin(std::string_view text) {
  if (auto it = origin_ids_.find(text); it != origin_ids_.end()) return it->second;
  std::string_view kept = arena_.copy(text);
  uint32_t id = static_cast<uint32_t>(origins_.size());
  origins_.push_back(str(kept));
  origin_ids_.emplace(kept, id);
  return id;
}

uint32_t Graph::new_value(uint32_t kind, uint32_t owner, uint32_t index, std::string_view name) {
  regie_value v{};
  v.id = value_count();
  v.kind = kind;
  v.owner = owner;
  v.index = index;
  v.name = str(arena_.copy(name));
  v.type.rank = -1;
  v.alias_of = v.space = REGIE_NONE;
  values_.push_back(v);
  uses_.emplace_back();
  tensors_.emplace_back();
  return v.id;
}

uint32_t Graph::add_argument(uint32_t region, const regie_type& type, std::string_view name) {
  assert(region < regions_.size());
  std::vector<uint32_t>& args = region_args_[region];
  uint32_t id = new_value(REGIE_VALUE_ARGUMENT, region, static_cast<uint32_t>(args.size()), name);
  values_[id].type = copy_type(type);
  args.push_back(id);
  regions_[region].args = args.data();
  regions_[region].arg_count = static_cast<uint32_t>(args.size());
  return id;
}

Status Graph::set_default(uint32_t argument, Tensor tensor) {
  assert(live_value(argument) && values_[argument].kind == REGIE_VALUE_ARGUMENT);
  const regie_type& type = values_[argument].type;
  const std::span<const int64_t> dims = tensor.dims();
  bool fits = values_[argument].owner == 0 && tensor.elem() == type.elem && type.container == REGIE_TENSOR &&
              type.rank == static_cast<int32_t>(dims.size());
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    // Which symbols it stands for is compared when a run binds them.
    const auto [least, most] = dims_->range(type.dims[i]);
    fits = type.dims[i] >= 0 ? type.dims[i] == dims[i] : least <= dims[i] && dims[i] <= most;
  }
  if (!fits) return invalid_model("its default is not of its type", describe_value(argument));
  defaults_.insert_or_assign(argument, std::move(tensor));
  return {};
}

uint32_t Graph::add_constant(uint32_t region, uint32_t kind, Tensor tensor, std::string_view name) {
  const regie_tensor& t = tensor.view();
  regie_type type = make_type(t.elem, {t.dims, static_cast<size_t>(t.rank)});
  uint32_t id = add_abstract_constant(region, kind, type, name);
  values_[id].data = &t;
  tensors_[id] = std::move(tensor);
  return id;
}

uint32_t Graph::add_abstract_constant(uint32_t region, uint32_t kind, const regie_type& type,
                                      std::string_view name) {
  assert(region < regions_.size() && (kind == REGIE_VALUE_CONSTANT || kind == REGIE_VALUE_WEIGHT));
  uint32_t id = new_value(kind, region, 0, name);
  values_[id].type = copy_type(type);
  region_constants_[region].push_back(id);
  return id;
}

uint32_t Graph::add_node(uint32_t region, const NodeSpec& spec, uint32_t before) {
  assert(region < regions_.size() && spec.result_names.size() <= spec.result_count &&
         spec.omitted.size() <= spec.result_count);
  uint32_t id = node_count();
  regie_node n{};
  n.id = id;
  n.op_id = intern(spec.op);
  n.op = str(name_of(n.op_id));
  n.name = str(arena_.copy(std::string_view(spec.name)));
  n.region = region;
  n.prev = n.next = n.engine = n.stream = REGIE_NONE;
  n.operand_count = static_cast<uint32_t>(spec.operands.size());
  n.operands = arena_.copy(std::span<const uint32_t>(spec.operands));
  n.region_count = static_cast<uint32_t>(spec.regions.size());
  n.regions = arena_.copy(std::span<const uint32_t>(spec.regions));

  std::vector<const AttrValue*> sorted;
  for (const AttrValue& a : spec.attrs) sorted.push_back(&a);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->name < b->name; });
  regie_attr* attrs = arena_.allocate<regie_attr>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) attrs[i] = copy_attr(*sorted[i]);
  n.attrs = attrs;
  n.attr_count = static_cast<uint32_t>(sorted.size());

  n.result_count = spec.result_count;
  uint32_t* results = arena_.allocate<uint32_t>(spec.result_count);
  for (uint32_t i = 0; i < spec.result_count; ++i) {
    bool omitted = i < spec.omitted.size() && spec.omitted[i];
    results[i] = omitted
                     ? REGIE_NONE
                     : new_value(REGIE_VALUE_RESULT, id, i,
                                 i < spec.result_names.size() ? spec.result_names[i] : std::string_view());
  }
  n.results = results;
  nodes_.push_back(n);
  operand_slots_.push_back(arena_.allocate<uint32_t>(n.operand_count));
  changed_flag_.push_back(0);
  for (uint32_t i = 0; i < n.operand_count; ++i)
    if (n.operands[i] != REGIE_NONE) add_use(n.operands[i], {id, i});
  for (uint32_t r : spec.regions) {
    assert(r != 0 && regions_[r].parent == REGIE_NONE);
    regions_[r].parent = id;
    region_scope_[r] = region;
  }
  set_control(id, spec.control);
  set_origins(id, spec.origins);
  link(region, id, before);
  ++live_nodes_;
  touch(id);
  return id;
}

uint32_t Graph::add_region(std::string_view name, uint32_t scope) {
  regie_region r{};
  r.id = region_count();
  r.parent = REGIE_NONE;
  r.name = str(arena_.copy(name));
  r.first = r.last = REGIE_NONE;
  regions_.push_back(r);
  region_live_.push_back(1);
  region_scope_.push_back(scope);
  region_args_.emplace_back();
  region_results_.emplace_back();
  region_constants_.emplace_back();
  result_slots_.emplace_back();
  return r.id;
}

void Graph::skip_ids(uint32_t values, uint32_t nodes, uint32_t regions) {
  while (value_count() < values) new_value(REGIE_VALUE_DEAD, REGIE_NONE, 0, {});
  while (node_count() < nodes) {
    regie_node n{};
    n.id = node_count();
    n.region = n.prev = n.next = n.engine = n.stream = REGIE_NONE;
    nodes_.push_back(n);
    operand_slots_.push_back(nullptr);
    changed_flag_.push_back(0);
  }
  while (region_count() < regions) {
    uint32_t r = add_region({});
    region_live_[r] = 0;
  }
}

// ---- Uses ----

uint32_t& Graph::slot_of(regie_use use) {
  if (use.node & REGIE_USE_REGION) return result_slots_[use.node & ~REGIE_USE_REGION][use.operand];
  return operand_slots_[use.node][use.operand];
}

void Graph::add_use(uint32_t value, regie_use use) {
  assert(live_value(value));
  std::vector<regie_use>& list = uses_[value];
  slot_of(use) = static_cast<uint32_t>(list.size());
  list.push_back(use);
  values_[value].uses = list.data();
  values_[value].use_count = static_cast<uint32_t>(list.size());
}

// The last use moves into the free slot, so order depends on the history of edits alone.
void Graph::remove_use(uint32_t value, uint32_t slot) {
  std::vector<regie_use>& list = uses_[value];
  assert(slot < list.size());
  if (slot + 1 != list.size()) {
    list[slot] = list.back();
    slot_of(list[slot]) = slot;
  }
  list.pop_back();
  values_[value].use_count = static_cast<uint32_t>(list.size());
  // A value that has become single-use may match what it did not match before.
  if (list.size() == 1) {
    if (!(list[0].node & REGIE_USE_REGION)) touch(list[0].node);
    if (values_[value].kind == REGIE_VALUE_RESULT) touch(values_[value].owner);
  }
}

void Graph::set_operand(uint32_t node, uint32_t operand, uint32_t value) {
  assert(live(node) && operand < nodes_[node].operand_count);
  uint32_t& at = writable(nodes_[node].operands, operand);
  if (at == value) return;
  if (at != REGIE_NONE) remove_use(at, operand_slots_[node][operand]);
  at = value;
  if (value != REGIE_NONE) add_use(value, {node, operand});
  touch(node);
}

void Graph::set_region_result(uint32_t region, uint32_t index, uint32_t value) {
  assert(index < region_results_[region].size());
  uint32_t& at = region_results_[region][index];
  if (at == value) return;
  remove_use(at, result_slots_[region][index]);
  at = value;
  add_use(value, {region | REGIE_USE_REGION, index});
}

void Graph::set_region_results(uint32_t region, std::span<const uint32_t> values) {
  std::vector<uint32_t>& list = region_results_[region];
  for (size_t i = 0; i < list.size(); ++i) remove_use(list[i], result_slots_[region][i]);
  list.assign(values.begin(), values.end());
  result_slots_[region].assign(values.size(), 0);
  for (uint32_t i = 0; i < values.size(); ++i) add_use(values[i], {region | REGIE_USE_REGION, i});
  regions_[region].results = list.data();
  regions_[region].result_count = static_cast<uint32_t>(list.size());
  if (region != 0) return;
  size_t named = std::min(output_names_.size(), values.size());
  output_names_.resize(values.size());
  for (size_t i = named; i < values.size(); ++i) {
    output_names_[i] = view_str(values_[values[i]].name);
    if (output_names_[i].empty()) output_names_[i] = "output_" + std::to_string(i);
  }
}

void Graph::set_output_names(std::span<const std::string> names) {
  assert(names.size() == region_results_[0].size());
  output_names_.assign(names.begin(), names.end());
}

void Graph::replace_uses(uint32_t old_value, uint32_t new_value) {
  assert(live_value(old_value) && live_value(new_value));
  if (old_value == new_value) return;
  std::vector<regie_use> list = std::move(uses_[old_value]);
  uses_[old_value].clear();
  values_[old_value].uses = nullptr;
  values_[old_value].use_count = 0;
  for (regie_use u : list) {
    if (u.node & REGIE_USE_REGION) {
      region_results_[u.node & ~REGIE_USE_REGION][u.operand] = new_value;
    } else {
      writable(nodes_[u.node].operands, u.operand) = new_value;
      touch(u.node);
    }
    add_use(new_value, u);
  }
}

// ---- Removing ----

void Graph::kill_value(uint32_t value) {
  assert(uses_[value].empty());
  regie_value& v = values_[value];
  v.kind = REGIE_VALUE_DEAD;
  v.data = nullptr;
  v.content = nullptr;
  v.content_count = 0;
  v.uses = nullptr;
  v.alias_of = REGIE_NONE;
  uses_[value] = {};
  tensors_[value] = {};
}

void Graph::kill_node(uint32_t node) {
  ++revision_;
  regie_node& n = nodes_[node];
  for (uint32_t r : results(node))
    if (r != REGIE_NONE) kill_value(r);
  set_control(node, {});
  if (auto it = control_readers_.find(node); it != control_readers_.end()) {
    std::set<uint32_t> readers = std::move(it->second);
    control_readers_.erase(it);
    for (uint32_t reader : readers) {
      std::vector<uint32_t> left;
      for (uint32_t k = 0; k < nodes_[reader].control_count; ++k)
        if (nodes_[reader].control[k] != node) left.push_back(nodes_[reader].control[k]);
      set_control(reader, left);
    }
  }
  n.op = {};
  n.operand_count = n.result_count = n.attr_count = n.region_count = n.control_count = n.origin_count = 0;
  n.region = n.prev = n.next = REGIE_NONE;
  --live_nodes_;
}

void Graph::remove_node(uint32_t node) {
  assert(live(node));
  for ([[maybe_unused]] uint32_t r : results(node)) assert(r == REGIE_NONE || uses_[r].empty());
  unlink(node);
  kill_nodes({node}, {});
}

void Graph::remove_region(uint32_t region) {
  assert(region != 0 && live_region(region) && regions_[region].parent == REGIE_NONE);
  kill_nodes({}, {region});
}

// First everything inside lets go of what it reads, then it dies.
void Graph::kill_nodes(std::vector<uint32_t> nodes, std::vector<uint32_t> regions) {
  for (size_t i = 0, k = 0; i < nodes.size() || k < regions.size();) {
    if (k < regions.size()) {
      uint32_t r = regions[k++];
      for (uint32_t o = 0; o < region_results_[r].size(); ++o)
        remove_use(region_results_[r][o], result_slots_[r][o]);
      for (uint32_t m = regions_[r].first; m != REGIE_NONE; m = nodes_[m].next) nodes.push_back(m);
      continue;
    }
    uint32_t n = nodes[i++];
    for (uint32_t o = 0; o < nodes_[n].operand_count; ++o)
      if (nodes_[n].operands[o] != REGIE_NONE) remove_use(nodes_[n].operands[o], operand_slots_[n][o]);
    regions.insert(regions.end(), nodes_[n].regions, nodes_[n].regions + nodes_[n].region_count);
  }
  for (uint32_t n : nodes) kill_node(n);
  for (uint32_t r : regions) {
    for (uint32_t a : region_args_[r]) kill_value(a);
    for (uint32_t c : constants(r)) kill_value(c);
    region_args_[r].clear();
    region_results_[r].clear();
    region_constants_[r].clear();
    result_slots_[r].clear();
    regie_region dead{};
    dead.id = r;
    dead.parent = dead.first = dead.last = REGIE_NONE;
    regions_[r] = dead;
    region_live_[r] = 0;
    region_scope_[r] = REGIE_NONE;
  }
}

void Graph::remove_value(uint32_t value) {
  assert(live_value(value) && values_[value].kind != REGIE_VALUE_RESULT);
  if (values_[value].kind == REGIE_VALUE_ARGUMENT) {
    uint32_t region = values_[value].owner;
    std::vector<uint32_t>& args = region_args_[region];
    args.erase(args.begin() + values_[value].index);
    for (uint32_t i = 0; i < args.size(); ++i) values_[args[i]].index = i;
    regions_[region].args = args.data();
    regions_[region].arg_count = static_cast<uint32_t>(args.size());
    defaults_.erase(value);
  }
  kill_value(value);
}

}  // namespace regie
