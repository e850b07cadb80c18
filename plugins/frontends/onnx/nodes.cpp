// Nodes and regions: each node of a body in its order, through the operator table.
#include <algorithm>

#include "builder.h"
#include "gradient.h"
#include "loops.h"

namespace regie::onnx {

namespace {

class NodeTranslation final : public Translation {
 public:
  NodeTranslation(Builder& b, Scope* s, const Body& body, uint32_t index, int64_t version)
      : Translation(b.context(), body.nodes[index], version),
        builder_(b),
        scope_(s),
        body_(body),
        index_(index) {}

  Type type(uint32_t id) const override {
    const regie_type& t = builder_.value(id).type;
    if (t.rank < 0 || t.container != REGIE_TENSOR)
      context.unsupported("the shape of operand " + quoted(sdk::sv(builder_.value(id).name)) +
                          " is not known, and this operator cannot be read without it");
    return {t.elem, t.rank, {t.dims, t.dims + t.rank}};
  }
  bool output_read(int index) const override {
    return output_wanted(index) && body_.definitions.at(ref.node->output(index)).used;
  }
  const regie_tensor* data(uint32_t id) const override {
    return builder_.is_constant(id) ? builder_.value(id).data : nullptr;
  }
  uint32_t constant(const TensorData& tensor, std::string_view suffix) override {
    return builder_.constant(REGIE_VALUE_CONSTANT, tensor,
                             builder_.fresh_name(ref.name + "_" + std::string(suffix)));
  }
  uint32_t make(std::string_view op, const std::vector<uint32_t>& in,
                const std::vector<Attribute>& attrs) override {
    return make_several(op, in, attrs, 1)[0];
  }
  std::vector<uint32_t> make_several(std::string_view op, const std::vector<uint32_t>& in,
                                     const std::vector<Attribute>& attrs, size_t count) override {
    std::vector<uint32_t> results(count, REGIE_NONE);
    std::vector<regie_str> names;
    for (size_t i = 0; i < count; ++i)
      names.push_back(sdk::str(builder_.fresh_name(ref.name + "_" + std::string(op))));
    builder_.node(op, ref, in, attrs, {}, names, std::vector<uint8_t>(count), results.data());
    return results;
  }
  Sequence& sequence(uint32_t id) override { return builder_.sequence(id); }
  uint32_t add_sequence(Sequence s) override { return builder_.add_sequence(std::move(s)); }
  void finish(std::string_view op, const std::vector<uint32_t>& in,
              const std::vector<Attribute>& attrs) override {
    finish(op, in, attrs, {}, output_count());
  }
  void finish_with(const std::vector<uint32_t>& values) override {
    const size_t count = std::min(values.size(), output_count());
    builder_.bind(scope_, ref, {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)});
  }
  void finish_if() override {
    // Of what shapes and constants decide, the other branch need not even be possible at these shapes.
    if (const std::optional<bool> taken = builder_.known_condition(operand(0)))
      return builder_.take_branch(scope_, index_, body_, *taken ? 0 : 1);
    std::vector<uint32_t> all = operands;
    const std::vector<uint32_t> regions = builder_.branches(scope_, index_, body_, &all);
    if (regions.empty()) return;
    finish(ref.node->op_type(), all, {}, regions, static_cast<size_t>(ref.node->output_size()));
  }
  void finish_loop() override {
    const LoopNode loop = loop_node(builder_, *this, *scope_, body_, index_);
    finish("Loop", loop.operands, {Attribute::integer("carried", loop.carried)}, {loop.region}, loop.results);
  }
  void finish_scan() override {
    const ScanNode scan = scan_node(builder_, *this, *scope_, body_, index_);
    const size_t count = scan.loop.results, states = static_cast<size_t>(scan.loop.carried);
    std::vector<regie_str> names(count);
    std::vector<uint8_t> omitted(count);
    std::vector<uint32_t> results(count, REGIE_NONE), last;
    for (size_t i = 0; i < count; ++i) {
      omitted[i] = !output_wanted(static_cast<int>(i));
      const bool arranged = i >= states && (scan.axes[i - states] != 0 || scan.directions[i - states] != 0);
      if (!omitted[i])
        names[i] =
            sdk::str(arranged ? builder_.fresh_name(ref.node->output(static_cast<int>(i)) + "_collected")
                              : std::string_view(ref.node->output(static_cast<int>(i))));
    }
    builder_.node("Loop", ref, scan.loop.operands, {Attribute::integer("carried", scan.loop.carried)},
                  {scan.loop.region}, names, omitted, results.data());
    for (size_t i = 0; i < count; ++i) {
      if (omitted[i]) continue;
      uint32_t value = results[i];
      const std::string& name = ref.node->output(static_cast<int>(i));
      if (i >= states)
        if (const auto last = scan.arrangement(*this, i - states, value))
          builder_.node(last->op, ref, last->in, last->attributes, {}, {sdk::str(name)}, {0}, &value);
      builder_.bind(scope_, name, value);
    }
  }
  void finish_constant() override {
    if (ref.node->output_size() != 1 || ref.node->output(0).empty())
      context.invalid("a Constant has one output");
    if (ref.node->attribute_size() != 1)
      context.invalid("a Constant has one attribute, this has " + std::to_string(ref.node->attribute_size()));
    const wire::Attribute& given = ref.node->attribute(0);
    const TensorData tensor = given.has_sparse_tensor() ? read_sparse(context, given.sparse_tensor(),
                                                                      "attribute " + quoted(given.name()))
                                                        : of_attribute(attributes.list().at(0));
    builder_.bind(scope_, ref, {builder_.constant(REGIE_VALUE_CONSTANT, tensor, ref.node->output(0))});
  }

 private:
  void finish(std::string_view op, const std::vector<uint32_t>& in, const std::vector<Attribute>& attrs,
              const std::vector<uint32_t>& regions, size_t count) {
    std::vector<regie_str> names(count);
    std::vector<uint8_t> omitted(count);
    std::vector<uint32_t> results(count, REGIE_NONE);
    const size_t named = std::min(count, static_cast<size_t>(ref.node->output_size()));
    for (size_t i = 0; i < count; ++i) {
      omitted[i] = i >= named || ref.node->output(static_cast<int>(i)).empty();
      if (!omitted[i]) names[i] = sdk::str(ref.node->output(static_cast<int>(i)));
    }
    builder_.node(op, ref, in, attrs, regions, names, omitted, results.data());
    results.resize(named);
    builder_.bind(scope_, ref, results);
  }

  static TensorData of_attribute(const Attribute& a) {
    TensorData t;
    switch (a.kind) {
      case REGIE_ATTR_TENSOR:
        return a.tensor;
      case REGIE_ATTR_INTS:
        return integers(a.ints);
      case REGIE_ATTR_INT:
        return integer(a.i);
      case REGIE_ATTR_FLOAT:
        scalar(REGIE_F32, a.f, &t);
        return t;
      case REGIE_ATTR_FLOATS:
        return floats(a.floats);
      default:
        t.elem = REGIE_STRING;
        if (a.kind == REGIE_ATTR_STRING) {
          t.strings = {sdk::str(a.s)};
        } else {
          t.dims = {static_cast<int64_t>(a.strings.size())};
          for (const std::string& s : a.strings) t.strings.push_back(sdk::str(s));
        }
        t.data = t.strings.data();
        t.bytes = t.strings.size() * sizeof(regie_str);
        return t;
    }
  }

  Builder& builder_;
  Scope* scope_;
  const Body& body_;
  uint32_t index_;
};

}  // namespace

uint32_t Builder::constant(uint32_t kind, const TensorData& tensor, std::string_view name) {
  const regie_tensor view = tensor.view();
  uint32_t value = REGIE_NONE;
  Context::check(api().constant(edit(), kind, &view, sdk::str(name), &value));
  return value;
}

void Builder::node(std::string_view op, const NodeRef& ref, const std::vector<uint32_t>& operands,
                   const std::vector<Attribute>& attributes, const std::vector<uint32_t>& regions,
                   const std::vector<regie_str>& result_names, const std::vector<uint8_t>& omitted,
                   uint32_t* results) {
  const AttributeViews views(attributes);
  regie_node_desc d{};
  d.struct_size = sizeof(d);
  d.op = sdk::str(op);
  d.name = sdk::str(ref.name);
  d.operand_count = static_cast<uint32_t>(operands.size());
  d.operands = operands.data();
  d.attr_count = views.size();
  d.attrs = views.data();
  d.region_count = static_cast<uint32_t>(regions.size());
  d.regions = regions.data();
  d.result_count = static_cast<uint32_t>(result_names.size());
  d.result_names = result_names.data();
  d.results_omitted = omitted.data();
  Context::check(api().node(edit(), &d, results));
}

uint32_t Builder::open_region(std::string_view name, const std::vector<regie_type>& types,
                              const std::vector<regie_str>& names, uint32_t* args) {
  uint32_t region = REGIE_NONE;
  Context::check(api().open_region(edit(), sdk::str(name), static_cast<uint32_t>(types.size()), types.data(),
                                   names.data(), &region, args));
  ++open_regions_;
  return region;
}

void Builder::close_region(const std::vector<uint32_t>& results) {
  --open_regions_;
  Context::check(api().close_region(edit(), static_cast<uint32_t>(results.size()), results.data()));
}

regie_dim Builder::late_dim(const std::string& wanted) {
  const regie_import* import = context_.import;
  return import->host->dim_symbol(import->dims, sdk::str(fresh_name(wanted)), 0, INT64_MAX, 1);
}

bool Builder::is_constant(uint32_t id) const {
  const uint32_t kind = value(id).kind;
  return kind == REGIE_VALUE_CONSTANT || kind == REGIE_VALUE_WEIGHT;
}

std::string_view Builder::fresh_name(const std::string& wanted) {
  std::string name = wanted;
  // A Sum of many operands wants the same name for each of its additions.
  if (value_names_.count(name))
    for (int& n = next_numbers_.try_emplace(wanted, 2).first->second; value_names_.count(name); ++n)
      name = wanted + "_" + std::to_string(n);
  const std::string& kept = made_names_.emplace_back(std::move(name));
  value_names_.insert(kept);
  return kept;
}

void Builder::bind(Scope* scope, const NodeRef& ref, const std::vector<uint32_t>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = ref.node->output(static_cast<int>(i));
    if (!name.empty()) bind(scope, name, results[i]);
  }
}

void Builder::check_new(const Scope& scope, std::string_view name) const {
  if (scope.outer && scope.outer->find(name) != REGIE_NONE)
    context_.invalid(
        "the value " + quoted(name) +
        " is in a subgraph, but a graph around it has a value of that name already; names must be unique");
}

void Builder::bind(Scope* scope, std::string_view name, uint32_t value) {
  check_new(*scope, name);
  scope->values.emplace(name, value);
}

void Builder::build(const Body& body, Scope* scope) {
  const wire::Graph& g = *body.proto;
  auto weight = [&](const std::string& name, auto&& read) {
    if (!body.definitions.at(name).used) return;
    context_.at("initializer " + quoted(name), "");
    context_.place.clear();  // the reader's messages name the tensor; the host's need the place
    bind(scope, name, constant(REGIE_VALUE_WEIGHT, read("initializer " + quoted(name)), name));
  };
  for (const wire::Tensor& t : g.initializer())
    weight(t.name(), [&](const std::string& what) { return read_tensor(context_, t, what); });
  for (const wire::SparseTensor& t : g.sparse_initializer())
    weight(t.values().name(), [&](const std::string& what) { return read_sparse(context_, t, what); });
  for (uint32_t i : body.order) translate(scope, i, body);
}

void Builder::translate(Scope* scope, uint32_t index, const Body& body) {
  const NodeRef& ref = body.nodes[index];
  const std::string name = full_name(*ref.node);
  context_.at(ref.name, name);
  const bool extension = !domain_of(ref.node->domain()).empty();
  const int64_t opset = ref.opsets->find(ref.node->domain());
  const Operator* op = extension ? nullptr : find_operator(name);
  const Form* form = op ? form_at(*op, opset) : nullptr;

  // Before the host is asked to make them: what it refuses in a branch may only mean that it is not taken.
  for (const std::string& output : ref.node->output())
    if (!output.empty()) check_new(*scope, output);

  NodeTranslation t(*this, scope, body, index, opset);
  for (const std::string& input : ref.node->input())
    t.operands.push_back(input.empty() ? REGIE_NONE : scope->find(input));
  while (!t.operands.empty() && t.operands.back() == REGIE_NONE) t.operands.pop_back();
  for (size_t i = 0; i < t.operands.size(); ++i)
    if (is_sequence(t.operands[i]) && (extension || !takes_sequences(form->translate)))
      context_.unsupported("input " + std::to_string(i) +
                           " is a sequence; those that are known when the model is read "
                           "are for the operators of sequences alone");
  if (extension) {
    t.attributes = Attributes::read(context_, *ref.node, nullptr, opset);
    if (name == kGradient) return gradient(t, *scope, body, index);
    t.finish(name, t.operands, t.attributes.list());
    return;
  }
  // The first inputs of these may be absent although they are counted.
  const bool may_lack = form->translate == loop || form->translate == scan_of_8;
  const auto count = may_lack ? ref.node->input_size() : static_cast<int64_t>(t.operands.size());
  if (count < form->least_operands || count > form->most_operands)
    context_.invalid("the operator takes " + std::to_string(form->least_operands) +
                     (form->most_operands == form->least_operands ? ""
                      : form->most_operands == kAnyNumber         ? " or more"
                                                          : " to " + std::to_string(form->most_operands)) +
                     " inputs at operator set " + std::to_string(opset) + ", and the node has " +
                     std::to_string(count));
  for (int i = 0; !may_lack && i < form->least_operands; ++i)
    if (t.operands[static_cast<size_t>(i)] == REGIE_NONE)
      context_.invalid("input " + std::to_string(i) + " is missing");
  if (t.output_count() == 0) context_.invalid("the node has no output");
  t.attributes = Attributes::read(context_, *ref.node, form->attributes, opset);
  t.attributes.take(
      "consumed_inputs");  // of operator set 1: which inputs may be overwritten, no more than a hint
  form->translate(t);
}

namespace {
constexpr const char* kBranches[2] = {"then_branch", "else_branch"};
}

std::optional<bool> Builder::known_condition(uint32_t id) const {
  if (id == REGIE_NONE) return std::nullopt;
  const regie_value& v = value(id);
  if (v.type.elem != REGIE_BOOL) return std::nullopt;
  if (is_constant(id) && v.data && v.data->data && v.data->bytes == 1)
    return *static_cast<const uint8_t*>(v.data->data) != 0;
  // An expression may still be anything.
  if (v.content && v.content_count == 1 && v.content[0] >= 0) return v.content[0] != 0;
  return std::nullopt;
}

std::array<const Body*, 2> Builder::bodies(const NodeRef& ref, uint32_t node_index, const Body& body) {
  std::array<const Body*, 2> branches{nullptr, nullptr};
  if (auto it = body.subgraphs.find(node_index); it != body.subgraphs.end()) {
    for (const auto& [name, child] : it->second) {
      const int which = name == kBranches[0] ? 0 : name == kBranches[1] ? 1 : -1;
      if (which < 0 || branches[which])
        context_.invalid("an If has the attributes then_branch and else_branch once each, this has " +
                         quoted(name) + (which < 0 ? "" : " twice"));
      branches[which] = child.get();
    }
  }
  if (ref.node->attribute_size() != 2 || !branches[0] || !branches[1])
    context_.invalid("an If has the attributes then_branch and else_branch, and no other");
  for (int which = 0; which < 2; ++which) {
    const Body& branch = *branches[static_cast<size_t>(which)];
    if (branch.proto->input_size() != 0)
      context_.invalid(std::string(kBranches[which]) + " has inputs; the branches of an If have none");
    if (branch.proto->output_size() != ref.node->output_size())
      context_.invalid(std::string(kBranches[which]) + " has " + std::to_string(branch.proto->output_size()) +
                       " outputs, the node has " + std::to_string(ref.node->output_size()));
  }
  return branches;
}

// The nodes of the branch in the place of the If.
void Builder::take_branch(Scope* scope, uint32_t node_index, const Body& body, size_t which,
                          uint32_t condition, const std::string& why) {
  const NodeRef& ref = body.nodes[node_index];
  const Body& branch = *bodies(ref, node_index, body)[which];
  Scope inner{scope, {}};
  build(branch, &inner);
  context_.at(ref.name, ref.node->op_type());
  std::vector<uint32_t> results;
  for (int i = 0; i < branch.proto->output_size(); ++i) {
    uint32_t value = inner.find(branch.proto->output(i).name());
    if (condition != REGIE_NONE && !ref.node->output(i).empty()) {
      const std::vector<Attribute> attributes{
          Attribute::integer("expected", which == 0),
          Attribute::text("message", std::string("the model was read for ") + kBranches[which] + " of " +
                                         quoted(ref.name) + ", but the run chooses " + kBranches[1 - which] +
                                         ": " + why)};
      node("regie.Require", ref, {value, condition}, attributes, {}, {sdk::str(ref.node->output(i))}, {0},
           &value);
    }
    results.push_back(value);
  }
  bind(scope, ref, results);
}

template <class F>
bool Builder::possible(F&& build) {
  const size_t open = open_regions_;
  // What the host says is of types and shapes; what the file itself has wrong is said at once.
  try {
    build();
    return true;
  } catch (const HostFailure& f) {
    if (f.code != REGIE_INVALID_MODEL && f.code != REGIE_UNSUPPORTED) throw;
    while (open_regions_ > open) abandon_region();
    return false;
  }
}

// Both branches get all captures as arguments, in one order; constants of the graphs around them are read
// directly. A branch that cannot be at these shapes need not be taken, and where branches give values of
// other ranks, of which the graph knows one, the run must choose that one.
std::vector<uint32_t> Builder::branches(Scope* scope, uint32_t node_index, const Body& body,
                                        std::vector<uint32_t>* operands) {
  const NodeRef& ref = body.nodes[node_index];
  const std::array<const Body*, 2> branches = bodies(ref, node_index, body);
  std::vector<std::string_view> captures;
  for (const Body* branch : branches)
    for (std::string_view name : branch->captures) {
      const uint32_t v = scope->find(name);
      if (is_sequence(v))
        context_.unsupported("its branch reads the sequence " + quoted(name) +
                             "; sequences do not enter branches");
      if (is_constant(v) || std::find(captures.begin(), captures.end(), name) != captures.end()) continue;
      captures.push_back(name);
      operands->push_back(v);
    }
  // Types as they stand now; the dimensions are copied, as the host's belong to it.
  std::vector<regie_type> types;
  std::vector<std::vector<regie_dim>> dims;
  std::vector<regie_str> names;
  for (size_t i = 0; i < captures.size(); ++i) {
    regie_type type = value((*operands)[i + 1]).type;
    if (type.rank < 0)
      context_.unsupported("the shape of the captured value " + quoted(captures[i]) + " is not known");
    dims.emplace_back(type.dims, type.dims + type.rank);
    type.dims = dims.back().data();
    types.push_back(type);
    names.push_back(sdk::str(captures[i]));
  }

  const uint32_t condition = operands->at(0);
  std::vector<uint32_t> regions, results[2];
  for (size_t which = 0; which < 2; ++which) {
    const bool can_be = possible([&] {
      std::vector<uint32_t> args(captures.size());
      regions.push_back(open_region(kBranches[which], types, names, args.data()));
      Scope inner{scope, {}};
      for (size_t i = 0; i < captures.size(); ++i) inner.values.emplace(captures[i], args[i]);
      build(*branches[which], &inner);
      for (const wire::ValueInfo& v : branches[which]->proto->output()) {
        results[which].push_back(inner.find(v.name()));
        if (is_sequence(results[which].back()))
          context_.unsupported("the result " + quoted(v.name()) + " of " + kBranches[which] +
                               " is a sequence; branches give tensors");
      }
      context_.at(ref.name, ref.node->op_type());
    });
    if (!can_be) {
      // What is wrong with it is said if the other one cannot be, either.
      if (!possible([&] {
            take_branch(scope, node_index, body, 1 - which, condition,
                        "that cannot be at the shapes it was compiled for");
          }))
        take_branch(scope, node_index, body, which);
      return {};
    }
    if (which == 1)
      for (size_t i = 0; i < results[0].size(); ++i) {
        const regie_type &a = value(results[0][i]).type, &b = value(results[1][i]).type;
        if (a.rank == b.rank || a.container != REGIE_TENSOR || b.container != REGIE_TENSOR) continue;
        // "Squeeze if the dimension is one" is what exporters make of a squeeze.
        const size_t lower = a.rank < b.rank ? 0 : 1;
        abandon_region();
        take_branch(scope, node_index, body, lower, condition,
                    "its output " + quoted(ref.node->output(static_cast<int>(i))) +
                        " would have another rank; compile for other shapes");
        return {};
      }
    close_region(results[which]);
  }
  return regions;
}

}  // namespace regie::onnx
