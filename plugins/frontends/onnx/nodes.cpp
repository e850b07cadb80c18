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
    std::vector<bool> sequences;
    const std::vector<uint32_t> regions = builder_.branches(*this, scope_, index_, body_, &all, &sequences);
    if (regions.empty()) return;
    const auto count = static_cast<size_t>(ref.node->output_size());
    if (std::find(sequences.begin(), sequences.end(), true) == sequences.end())
      return finish(ref.node->op_type(), all, {}, regions, count);
    std::vector<regie_str> names(count);
    std::vector<uint8_t> omitted(count);
    std::vector<uint32_t> results(count, REGIE_NONE);
    for (size_t i = 0; i < count; ++i) {
      const std::string& name = ref.node->output(static_cast<int>(i));
      omitted[i] = name.empty();
      if (!name.empty())
        names[i] = sdk::str(sequences[i] ? builder_.fresh_name(name + "_stack") : std::string_view(name));
    }
    builder_.node(ref.node->op_type(), ref, all, {}, regions, names, omitted, results.data());
    for (size_t i = 0; i < count; ++i)
      if (sequences[i] && !omitted[i]) results[i] = add_sequence(from_stack(results[i]));
    builder_.bind(scope_, ref, results);
  }
  void finish_loop() override {
    const LoopNode loop = loop_node(builder_, *this, *scope_, body_, index_);
    const std::vector<Attribute> attributes{Attribute::integer("carried", loop.carried)};
    if (!loop.sequences) return finish("Loop", loop.operands, attributes, {loop.region}, loop.results);
    std::vector<regie_str> names(loop.results, regie_str{});
    std::vector<uint8_t> omitted(loop.results, 1);
    std::vector<uint32_t> results(loop.results, REGIE_NONE);
    const auto want = [&](size_t result, std::string_view name) {
      names[result] = sdk::str(name);
      omitted[result] = 0;
    };
    const auto output = [&](size_t i) {
      return output_wanted(static_cast<int>(i)) ? std::string_view(ref.node->output(static_cast<int>(i)))
                                                : std::string_view();
    };
    for (size_t i = 0; i < loop.outputs.size(); ++i) {
      const LoopNode::Output& o = loop.outputs[i];
      if (output(i).empty()) continue;
      if (o.result != SIZE_MAX)
        want(o.result, o.sequence ? builder_.fresh_name(std::string(output(i)) + "_stack") : output(i));
      for (const std::vector<size_t>* list : {&o.front, &o.back})
        for (size_t result : *list) want(result, builder_.fresh_name(std::string(output(i)) + "_added"));
    }
    builder_.node("Loop", ref, loop.operands, attributes, {loop.region}, names, omitted, results.data());
    for (size_t i = 0; i < loop.outputs.size(); ++i) {
      const LoopNode::Output& o = loop.outputs[i];
      if (output(i).empty()) continue;
      const auto of = [&](const std::vector<size_t>& list) {
        std::vector<uint32_t> values;
        for (size_t result : list) values.push_back(results[result]);
        return values;
      };
      uint32_t value = o.before;
      if (o.result != SIZE_MAX)
        value = o.sequence ? add_sequence(from_stack(results[o.result])) : results[o.result];
      else if (!o.front.empty() || !o.back.empty())
        value = add_sequence(grown(*this, sequence(o.before), of(o.front), of(o.back)));
      builder_.bind(scope_, output(i), value);
    }
  }
  void finish_scan() override {
    const std::vector<uint32_t> results = scan_results(operands, true);
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i] != REGIE_NONE) builder_.bind(scope_, ref.node->output(static_cast<int>(i)), results[i]);
  }
  // Everything has an axis of batches in front, and each batch is scanned on its own.
  void finish_scan_of_8() override {
    constexpr int64_t kMostBatches = 64;
    if (operand(0) != REGIE_NONE)
      context.unsupported(
          "a Scan of operator set 8 with lengths of sequences is not supported; convert the model to "
          "operator set 9 or later");
    if (operands.size() < 2) context.invalid("nothing is scanned");
    const Type first = type(operands.back());
    const int64_t batches = first.rank > 0 ? first.dims[0] : -1;
    if (batches < 1 || batches > kMostBatches)
      context.unsupported("a Scan of operator set 8 needs a known number of batches, up to " +
                          std::to_string(kMostBatches) + "; convert the model to operator set 9 or later");
    if (auto directions = attributes.take_integers("directions"))
      attributes.add(Attribute::list("scan_input_directions", *directions));
    const Attributes kept = attributes;
    std::vector<std::vector<uint32_t>> parts;  // by output
    for (int64_t batch = 0; batch < batches; ++batch) {
      attributes = kept;
      std::vector<uint32_t> in;
      for (size_t i = 1; i < operands.size(); ++i)
        in.push_back(make("Gather", {operands[i], constant(integer(batch), "batch")},
                          {Attribute::integer("axis", 0)}));
      const std::vector<uint32_t> results = scan_results(in, false);
      parts.resize(results.size());
      for (size_t i = 0; i < results.size(); ++i)
        if (results[i] != REGIE_NONE)
          parts[i].push_back(make("Unsqueeze", {results[i], constant(integers({0}), "batches")}, {}));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      const std::string& name = ref.node->output(static_cast<int>(i));
      uint32_t whole = REGIE_NONE;
      builder_.node("Concat", ref, parts[i], {Attribute::integer("axis", 0)}, {}, {sdk::str(name)}, {0},
                    &whole);
      builder_.bind(scope_, name, whole);
    }
  }
  void finish_sequence_map() override {
    builder_.bind(scope_, ref, map_sequences(builder_, *this, *scope_, body_, index_));
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
  // A value for each output of a Scan, REGIE_NONE for those that nobody wants; `named` after the node's
  // outputs.
  std::vector<uint32_t> scan_results(const std::vector<uint32_t>& in, bool named) {
    const ScanNode scan = scan_node(builder_, *this, *scope_, body_, index_, in);
    const size_t count = scan.loop.results, states = static_cast<size_t>(scan.loop.carried);
    std::vector<regie_str> names(count);
    std::vector<uint8_t> omitted(count);
    std::vector<uint32_t> results(count, REGIE_NONE);
    for (size_t i = 0; i < count; ++i) {
      omitted[i] = !output_wanted(static_cast<int>(i));
      if (omitted[i]) continue;
      const std::string& name = ref.node->output(static_cast<int>(i));
      const bool arranged = i >= states && (scan.axes[i - states] != 0 || scan.directions[i - states] != 0);
      names[i] =
          sdk::str(arranged || !named ? builder_.fresh_name(name + "_collected") : std::string_view(name));
    }
    builder_.node("Loop", ref, scan.loop.operands, {Attribute::integer("carried", scan.loop.carried)},
                  {scan.loop.region}, names, omitted, results.data());
    for (size_t i = states; i < count; ++i) {
      if (omitted[i]) continue;
      const auto last = scan.arrangement(*this, i - states, results[i]);
      if (!last) continue;
      const std::string& name = ref.node->output(static_cast<int>(i));
      const regie_str given =
          sdk::str(named ? std::string_view(name) : builder_.fresh_name(name + "_arranged"));
      builder_.node(last->op, ref, last->in, last->attributes, {}, {given}, {0}, &results[i]);
    }
    return results;
  }

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

Sequence Builder::captured_sequence(Translation& t, uint32_t id) {
  Sequence& s = sequence(id);
  complete(t, s);
  if (s.growth != REGIE_NONE && !s.sought) throw GrowthSeen{s.growth, GrowthSeen::kOtherUse, {}};
  return s;
}

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

void Builder::initializers(const Body& body, Scope* scope) {
  const wire::Graph& g = *body.proto;
  auto weight = [&](const std::string& name, auto&& read) {
    const Definition& definition = body.definitions.at(name);
    const bool is_default = definition.kind == Definition::kInput;
    if (!definition.used && !is_default) return;
    context_.at("initializer " + quoted(name), "");
    context_.place.clear();  // the reader's messages name the tensor; the host's need the place
    // One of an input's name is that input's default: the input itself comes back.
    const uint32_t made = constant(REGIE_VALUE_WEIGHT, read("initializer " + quoted(name)), name);
    if (!is_default) bind(scope, name, made);
  };
  for (const wire::Tensor& t : g.initializer())
    weight(t.name(), [&](const std::string& what) { return read_tensor(context_, t, what); });
  for (const wire::SparseTensor& t : g.sparse_initializer())
    weight(t.values().name(), [&](const std::string& what) { return read_sparse(context_, t, what); });
}

void Builder::build(const Body& body, Scope* scope, bool any_rank) {
  struct Restore {
    bool& to;
    bool was;
    ~Restore() { to = was; }
  } restore{any_rank_, any_rank_};
  any_rank_ = any_rank;
  initializers(body, scope);
  read_all(body, scope);
}

void Builder::translate(Scope* scope, uint32_t index, const Body& body) {
  const NodeRef& ref = body.nodes[index];
  const std::string name = full_name(*ref.node);
  context_.at(ref.name, name);
  bool extension = !domain_of(ref.node->domain()).empty();
  const int64_t opset = ref.opsets->find(ref.node->domain());
  const Operator* op = extension ? nullptr : find_operator(name);
  if (extension && !known_extension(*ref.node)) op = find_operator_of_microsoft(name);
  extension = !op;
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

}  // namespace regie::onnx
