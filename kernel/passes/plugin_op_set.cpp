#include "passes/plugin_op_set.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "ir/edit.h"
#include "ir/types.h"
#include "passes/known_content.h"
#include "passes/region_types.h"
#include "ir/structural.h"
#include "passes/late_symbols.h"
#include "text/text.h"

namespace regie {

namespace {

constexpr int64_t kContentLimit = 1024;  // op_shape.h promises content of constants up to this many elements

// Everything a shape request points to, alive for one call.
struct ShapeCall {
  regie_shape_request request{};
  std::vector<regie_attr> attrs;
  std::vector<regie_operand_info> operands;
  std::vector<std::vector<regie_dim>> contents;
  std::vector<regie_region_info> regions;
  std::vector<std::vector<regie_type>> region_types;
  PluginOpSet::Inferred result;
};

regie_status set_result(const regie_shape_request* self, uint32_t index, const regie_type* type) {
  auto& call = *static_cast<ShapeCall*>(self->sink);
  if (index >= call.result.types.size() || type == nullptr || type->rank < 0 ||
      (type->rank > 0 && !type->dims))
    return fail_on_this_thread(bad_plugin("shape function set result " + std::to_string(index) + " of " +
                                          std::to_string(call.result.types.size()) + " or gave it no rank"));
  auto dims = std::make_unique<std::vector<regie_dim>>(type->dims, type->dims + type->rank);
  call.result.types[index] = *type;
  call.result.types[index].dims = dims->data();
  call.result.storage.push_back(std::move(dims));
  return REGIE_OK;
}

regie_status set_content(const regie_shape_request* self, uint32_t index, const regie_dim* content,
                         uint32_t count) {
  auto& call = *static_cast<ShapeCall*>(self->sink);
  if (index >= call.result.contents.size() || (count && !content))
    return fail_on_this_thread(bad_plugin("shape function set the content of a result that is not there"));
  if (std::find(content, content + count, REGIE_DIM_UNKNOWN) != content + count)
    return REGIE_OK;  // nothing is known
  call.result.contents[index].assign(content, content + count);
  call.result.has_content[index] = true;
  return REGIE_OK;
}

// Elements of a small constant integer tensor, as dimensions.
bool constant_content(const regie_tensor& t, std::vector<regie_dim>* out) {
  if (t.rank > 1 || !t.data || t.strides) return false;
  int64_t n = element_count({t.dims, static_cast<size_t>(t.rank)});
  if (n > kContentLimit) return false;
  out->resize(static_cast<size_t>(n));
  if (t.elem == REGIE_I64) {
    if (n != 0) std::memcpy(out->data(), t.data, static_cast<size_t>(n) * 8);
  } else if (t.elem == REGIE_I32) {
    const auto* p = static_cast<const int32_t*>(t.data);
    std::copy(p, p + n, out->begin());
  } else {
    return false;
  }
  return true;
}

void fill_operand(const Graph& graph, uint32_t value, regie_operand_info* info,
                  std::vector<regie_dim>* content) {
  *info = {};
  if (value == REGIE_NONE) return;
  const regie_value& v = graph.value(value);
  info->present = 1;
  info->type = v.type;
  info->data = graph.is_constant(value) ? v.data : nullptr;
  if (v.content) {
    info->content = v.content;
    info->content_count = v.content_count;
  } else if (info->data && constant_content(*info->data, content)) {
    // A negative constant is a number here, not a handle: it cannot be told apart, so such contents stay
    // data.
    if (std::all_of(content->begin(), content->end(), [](regie_dim d) { return d >= 0; })) {
      // An empty content is still known: the pointer must not be NULL.
      static const regie_dim none = 0;
      info->content = content->empty() ? &none : content->data();
      info->content_count = static_cast<uint32_t>(content->size());
    }
  }
}

// Expressions as the numbers that they are at these sizes, in place of what `dims` points to. False if one
// has none.
bool at_sizes(const DimTable& table, const PluginOpSet::Sizes& sizes, const regie_dim** dims, size_t count,
              std::deque<std::vector<regie_dim>>* storage) {
  if (std::all_of(*dims, *dims + count, [](regie_dim d) { return d >= 0; })) return true;
  std::vector<regie_dim>& numbers = storage->emplace_back();
  for (size_t i = 0; i < count; ++i) {
    const regie_dim dim = (*dims)[i];
    const auto number = dim >= 0 ? Result<int64_t>(dim) : table.evaluate(dim, sizes);
    // A negative number would be the handle of an expression.
    if (!number.ok() || *number < 0) return false;
    numbers.push_back(*number);
  }
  *dims = numbers.data();
  return true;
}

}  // namespace

Result<std::shared_ptr<PluginOpSet>> PluginOpSet::create(std::shared_ptr<PluginHost> host) {
  std::shared_ptr<PluginOpSet> set(new PluginOpSet(std::move(host)));
  REGIE_ASSIGN(set->schemas_, SchemaSet::load(set->host_->schema_folders()));
  set_current_plugin_host(set->host_);
  set_edit_failure_sink(fail_on_this_thread);
  return set;
}

Status PluginOpSet::check(const Graph& graph, uint32_t node) const { return schemas_.check(graph, node); }

bool PluginOpSet::allows(const Graph& graph, uint32_t node, const Sizes& sizes) const {
  const auto open = [&](const regie_dim* dims, size_t count) {
    return std::any_of(dims, dims + count, [](regie_dim d) { return d < 0; });
  };
  bool any = false;
  for (uint32_t v : graph.operands(node)) {
    if (v == REGIE_NONE) continue;
    const regie_value& value = graph.value(v);
    if (value.type.rank < 0) return true;
    any |= open(value.type.dims, static_cast<size_t>(value.type.rank)) ||
           (value.content && open(value.content, value.content_count));
  }
  if (!any || graph.node(node).region_count) return true;
  const Result<Inferred> answer = ask(graph, node, &sizes);
  return answer.ok() || answer.status().code() != REGIE_INVALID_MODEL;
}

// `sizes`: the operands as they are at these, if there are any.
Result<PluginOpSet::Inferred> PluginOpSet::ask(const Graph& graph, uint32_t node, const Sizes* sizes) const {
  const regie_node& n = graph.node(node);
  auto provider = host_->op_shape(view(n.op));
  if (!provider.ok()) {
    if (provider.status().code() != REGIE_NOT_FOUND) return std::move(provider).status();
    return unsupported(
        "operator " + std::string(view(n.op)) + " is not supported: no plug-in has its shape function",
        graph.describe_node(node));
  }
  used_.insert(provider->manifest);
  ShapeCall call;
  std::deque<std::vector<regie_dim>> numbers;
  call.attrs = schemas_.with_defaults(graph, node);
  call.operands.resize(n.operand_count);
  call.contents.resize(n.operand_count);
  for (uint32_t i = 0; i < n.operand_count; ++i) {
    uint32_t v = n.operands[i];
    if (v != REGIE_NONE && graph.value(v).type.rank < 0 && graph.value(v).type.container == REGIE_TENSOR)
      return graph.value(v).kind == REGIE_VALUE_ARGUMENT && graph.value(v).owner == 0
                 ? invalid_model(
                       "the rank of " + graph.describe_value(v) + " is not known; write its dimensions",
                       graph.describe_node(node))
                 : internal_error("operand " + graph.describe_value(v) + " has no type yet",
                                  graph.describe_node(node));
    regie_operand_info& info = call.operands[i];
    fill_operand(graph, v, &info, &call.contents[i]);
    if (sizes && info.present) {
      const auto rank = static_cast<size_t>(std::max(0, info.type.rank));
      if (!at_sizes(graph.dims(), *sizes, &info.type.dims, rank, &numbers) ||
          (info.content && !at_sizes(graph.dims(), *sizes, &info.content, info.content_count, &numbers)))
        return unsupported("its sizes are not known", graph.describe_node(node));
    }
  }
  call.regions.resize(n.region_count);
  call.region_types.reserve(2 * n.region_count);
  for (uint32_t i = 0; i < n.region_count; ++i) {
    const regie_region& r = graph.region(n.regions[i]);
    for (auto [list, count] : {std::pair{r.args, r.arg_count}, std::pair{r.results, r.result_count}}) {
      call.region_types.emplace_back();
      for (uint32_t k = 0; k < count; ++k) call.region_types.back().push_back(graph.value(list[k]).type);
    }
    const auto& results = call.region_types.back();
    const auto& args = call.region_types[call.region_types.size() - 2];
    call.regions[i] = {r.arg_count, r.result_count, args.data(), results.data()};
  }
  call.result.types.resize(n.result_count, regie_type{REGIE_ELEM_UNKNOWN, REGIE_TENSOR, -1, nullptr, 0, 0});
  call.result.contents.resize(n.result_count);
  call.result.has_content.resize(n.result_count);

  regie_shape_request& q = call.request;
  q.struct_size = sizeof(q);
  q.attr_count = static_cast<uint32_t>(call.attrs.size());
  q.operand_count = n.operand_count;
  q.result_count = n.result_count;
  q.region_count = n.region_count;
  q.op = n.op;
  q.attrs = call.attrs.data();
  q.operands = call.operands.data();
  q.regions = call.regions.data();
  q.dims = graph.dims().handle();
  q.set_result = set_result;
  q.set_content = set_content;
  q.sink = &call;
  // A branch may not be taken, a loop may make no iteration: the sizes that they need are no condition of the
  // model.
  graph.dims().keep_input_ranges(n.region != 0);
  Status s = call_plugin("shape function of " + std::string(view(n.op)),
                         [&] { return provider->table->infer(provider->index, host_table(), &q); });
  graph.dims().keep_input_ranges(false);
  if (!s.ok()) {
    s.set_where(graph.describe_node(node));
    return s;
  }
  for (uint32_t i = 0; i < n.result_count; ++i)
    if (n.results[i] != REGIE_NONE && call.result.types[i].rank < 0 &&
        call.result.types[i].container == REGIE_TENSOR)
      return bad_plugin(
          "shape function of " + std::string(view(n.op)) + " did not set result " + std::to_string(i),
          graph.describe_node(node));
  return std::move(call.result);
}

namespace {
// What a text graph says of a result may be less than is inferred, but not something else.
bool contradicts(const regie_type& said, const regie_type& inferred) {
  if (said.rank < 0 || inferred.rank < 0) return false;
  if (said.elem != inferred.elem || said.rank != inferred.rank) return true;
  for (int32_t d = 0; d < said.rank; ++d)
    if (said.dims[d] >= 0 && inferred.dims[d] >= 0 && said.dims[d] != inferred.dims[d]) return true;
  return false;
}
}  // namespace

bool PluginOpSet::Inferred::late() const {
  return std::any_of(types.begin(), types.end(), [](const regie_type& t) {
    return t.rank > 0 && std::find(t.dims, t.dims + t.rank, REGIE_DIM_UNKNOWN) != t.dims + t.rank;
  });
}

Status PluginOpSet::infer(Graph& graph, uint32_t node) const {
  if (is_control_flow(graph.node(node))) REGIE_TRY(infer_captures(graph, node, *this));
  if (is_loop(graph.node(node))) return infer_loop(graph, node, *this);
  Result<Inferred> first = inferred(graph, node);
  const bool lacks = first.ok() ? first->late() : first.status().code() == REGIE_UNSUPPORTED;
  if (lacks && learn_contents(graph, node, *this)) first = inferred(graph, node);
  REGIE_ASSIGN(Inferred r, std::move(first));
  if (r.late()) perhaps_late_.insert(node);
  const regie_node& n = graph.node(node);
  for (uint32_t i = 0; i < n.result_count; ++i) {
    if (n.results[i] == REGIE_NONE) continue;
    if (contradicts(graph.value(n.results[i]).type, r.types[i]) ||
        !settle_late_dims(graph, n.results[i], r.types[i].rank, const_cast<regie_dim*>(r.types[i].dims)))
      return invalid_model(graph.describe_value(n.results[i]) + " is said to be " +
                               print_type(graph, graph.value(n.results[i]).type) + ", but is " +
                               print_type(graph, r.types[i]),
                           graph.describe_node(node));
    graph.set_type(n.results[i], with_layout_of(r.types[i], graph.value(n.results[i]).type));
    if (r.has_content[i]) graph.set_content(n.results[i], r.contents[i]);
  }
  return {};
}

Result<std::vector<PluginOpSet::LateDim>> PluginOpSet::late_dims(const Graph& graph, uint32_t node) const {
  std::vector<LateDim> late;
  if (is_loop(graph.node(node))) {
    for (const LoopDim& d : loop_dims(graph, node)) late.push_back({d.result, d.axis});
    return late;
  }
  bool perhaps = perhaps_late_.count(node) != 0;
  for (uint32_t v : graph.results(node))
    perhaps = perhaps || (v != REGIE_NONE && has_late_symbol(graph.dims(), graph.value(v).type));
  if (!perhaps) return late;
  REGIE_ASSIGN(const Inferred r, inferred(graph, node));
  for (uint32_t i = 0; i < r.types.size(); ++i)
    for (int32_t axis = 0; axis < r.types[i].rank; ++axis)
      if (r.types[i].dims[axis] == REGIE_DIM_UNKNOWN) late.push_back({i, static_cast<uint32_t>(axis)});
  return late;
}

uint32_t PluginOpSet::flags(std::string_view op) const {
  NameId id = intern(op);
  if (auto it = flags_.find(id); it != flags_.end()) return it->second;
  auto provider = host_->op_kernel(op);
  uint32_t f = provider.ok() ? provider->table->ops[provider->index].flags : 0;
  flags_.emplace(id, f);
  return f;
}

namespace {

// Results of a reference kernel whose shape depends on data: memory is made when the kernel asks.
struct Allocation {
  std::vector<Tensor>* results;
  std::vector<regie_tensor>* views;
  uint64_t budget;
  static void* allocate(void* context, uint32_t result, regie_elem elem, int32_t rank, const int64_t* dims) {
    auto& a = *static_cast<Allocation*>(context);
    if (result >= a.results->size() || rank < 0) return nullptr;
    std::span<const int64_t> d(dims, static_cast<size_t>(rank));
    uint64_t bytes = elem_bytes(elem, static_cast<uint64_t>(element_count(d)));
    if (bytes > a.budget) return nullptr;
    Result<Tensor> made = Tensor::try_zeros(elem, d, "a result");
    if (!made.ok()) return nullptr;
    (*a.results)[result] = std::move(made).value();
    (*a.views)[result] = (*a.results)[result].view();
    return (*a.results)[result].mutable_data();
  }
};

// The graph as a kernel with regions is to see it: in the nodes inside, too, all defaults are written out.
class ExplicitView {
 public:
  ExplicitView(const Graph& graph, const SchemaSet& schemas, uint32_t node) : view_(graph.view()) {
    nodes_.assign(view_.nodes, view_.nodes + view_.node_count);
    for_each_inner_node(graph, node, [&](uint32_t n) {
      attrs_.push_back(schemas.with_defaults(graph, n));
      nodes_[n].attrs = attrs_.back().data();
      nodes_[n].attr_count = static_cast<uint32_t>(attrs_.back().size());
    });
    view_.nodes = nodes_.data();
  }
  ExplicitView(const ExplicitView&) = delete;
  const regie_graph* get() const { return &view_; }

 private:
  regie_graph view_;
  std::vector<regie_node> nodes_;
  std::deque<std::vector<regie_attr>> attrs_;
};

}  // namespace

Result<std::vector<Tensor>> PluginOpSet::evaluate(const Graph& graph, uint32_t node,
                                                  const std::vector<Tensor>& operands,
                                                  uint64_t budget) const {
  const regie_node& n = graph.node(node);
  REGIE_ASSIGN(auto provider, host_->op_kernel(view(n.op)));
  used_.insert(provider.manifest);
  std::vector<regie_attr> attrs = schemas_.with_defaults(graph, node);
  std::vector<regie_tensor> ins(operands.size()), outs(n.result_count);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i]) ins[i] = operands[i].view();

  uint64_t total = 0;
  bool data_dependent = (provider.table->ops[provider.index].flags & REGIE_OP_DYNAMIC_RESULT) != 0;
  std::vector<Tensor> results(n.result_count);
  for (uint32_t i = 0; i < n.result_count && !data_dependent; ++i) {
    if (n.results[i] == REGIE_NONE) continue;
    const regie_type& t = graph.value(n.results[i]).type;
    std::vector<int64_t> dims;
    for (int32_t d = 0; d < t.rank; ++d) {
      if (t.dims[d] < 0)
        return unsupported("its result has the symbolic dimension " + graph.dims().print(t.dims[d]),
                           graph.describe_node(node));
      dims.push_back(t.dims[d]);
    }
    uint64_t bytes = elem_bytes(t.elem, static_cast<uint64_t>(element_count(dims)));
    total = bytes > budget - std::min(total, budget) ? budget + 1 : total + bytes;
    if (total > budget)
      return Status::error(REGIE_LIMIT,
                           "its result would take " + std::to_string(bytes) +
                               " bytes, more than the budget of " + std::to_string(budget),
                           graph.describe_node(node));
    if (t.elem == REGIE_STRING)
      return unsupported("strings are not computed at compile time", graph.describe_node(node));
    REGIE_ASSIGN(results[i], Tensor::try_zeros(t.elem, dims, graph.describe_value(n.results[i])));
    outs[i] = results[i].view();
  }

  regie_op_request request{};
  request.struct_size = sizeof(request);
  request.attr_count = static_cast<uint32_t>(attrs.size());
  request.operand_count = static_cast<uint32_t>(ins.size());
  request.result_count = n.result_count;
  request.region_count = n.region_count;
  request.op = n.op;
  request.attrs = attrs.data();
  request.operands = ins.data();
  request.results = outs.data();
  std::optional<ExplicitView> inside;
  if (n.region_count) request.graph = inside.emplace(graph, schemas_, node).get();
  request.regions = n.regions;
  regie_op_state* state = nullptr;
  uint64_t scratch_bytes = 0;
  const std::string what = "reference kernel of " + std::string(view(n.op));
  Status s = call_plugin(what, [&] {
    return provider.table->prepare(provider.index, host_table(), &request, &state, &scratch_bytes);
  });
  if (!s.ok()) {
    s.set_where(graph.describe_node(node));
    return s;
  }
  int64_t scratch_dim = static_cast<int64_t>(scratch_bytes);
  Result<Tensor> scratch =
      Tensor::try_zeros(REGIE_U8, {&scratch_dim, 1}, "scratch of " + graph.describe_node(node));
  if (!scratch.ok()) {
    provider.table->release(state);
    return std::move(scratch).status();
  }
  Allocation allocation{&results, &outs, budget};
  regie_op_call call{};
  call.struct_size = sizeof(call);
  call.operands = ins.data();
  call.results = outs.data();
  call.scratch = scratch->mutable_data();
  call.allocate = Allocation::allocate;
  call.context = &allocation;
  s = call_plugin(what, [&] { return provider.table->run(state, host_table(), &call); });
  provider.table->release(state);
  if (!s.ok()) {
    s.set_where(graph.describe_node(node));
    return s;
  }
  return results;
}

}  // namespace regie
