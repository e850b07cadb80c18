// Loop and Scan. A Loop's body becomes a region that takes iteration number, condition, carried values and
// captures; a Scan becomes a Loop that cuts its slices itself.
#include "loops.h"

#include <algorithm>

namespace regie::onnx {

namespace {

constexpr const char* kBody = "body";

// Iteration number or condition, of the rank that the body declares: some exporters write [1].
regie_type one_element(regie_elem elem, const wire::ValueInfo& declared, const regie_dim* one) {
  const bool list =
      declared.type().tensor_type().has_shape() && declared.type().tensor_type().shape().dim_size() == 1;
  return {elem, REGIE_TENSOR, list ? 1 : 0, list ? one : nullptr, REGIE_FORMAT_ND, REGIE_FORMAT_ND};
}

}  // namespace

// ---- LoopRegion ----

LoopRegion::LoopRegion(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t node,
                       const Body& body)
    : builder_(builder),
      t_(t),
      context_(builder.context()),
      ref_(outer.nodes[node]),
      body_(body),
      inner_{&scope, {}} {}

const Body& LoopRegion::body_of(Context& context, const Body& outer, uint32_t node) {
  const auto it = outer.subgraphs.find(node);
  if (it == outer.subgraphs.end() || it->second.size() != 1 || it->second[0].first != kBody)
    context.invalid("the node has one graph, its attribute body");
  return *it->second[0].second;
}

void LoopRegion::carry(uint32_t value, const std::string& name) {
  add(value, name);
  carried_ = arguments_.size();
}

void LoopRegion::loosen(size_t axis) {
  Argument& a = arguments_.back();
  a.dims[axis] = builder_.late_dim(std::string(a.name) + "." + std::to_string(axis));
}

void LoopRegion::add(uint32_t value, std::string_view name) {
  const regie_type& type = builder_.value(value).type;
  if (type.container != REGIE_TENSOR)
    context_.unsupported(quoted(name) + " is a sequence or an optional; only tensors go into a loop");
  if (type.rank < 0)
    context_.unsupported("the shape of " + quoted(name) + ", which goes into a loop, is not known");
  arguments_.push_back({value, name, {type.dims, type.dims + type.rank}});
}

size_t LoopRegion::capture(uint32_t value, std::string_view name) {
  if (builder_.is_constant(value)) return kDirect;
  add(value, name);
  return arguments_.size() - 1;
}

// The body's first two inputs, where they are its own.
void LoopRegion::open(const wire::ValueInfo* number, const wire::ValueInfo* condition) {
  number_ = number;
  condition_ = condition;
  // Captures by name, and constants of the graphs around it read directly.
  for (std::string_view name : body_.captures) {
    const uint32_t v = inner_.outer->find(name);
    if (v == REGIE_NONE)
      context_.invalid("input " + quoted(name) + " is a value that nothing in the model makes");
    if (is_sequence(v)) {
      CapturedSequence s{name, builder_.captured_sequence(t_, v), {}};
      for (uint32_t part : parts_of(s.outside)) s.places.push_back(capture(part, name));
      sequences_.push_back(std::move(s));
      continue;
    }
    if (!builder_.is_constant(v)) {
      by_name_.emplace_back(name, arguments_.size());
      add(v, name);
    }
  }
  open_now();
}

void LoopRegion::open_now() {
  static constexpr regie_dim kOne = 1;
  static const wire::ValueInfo none;
  std::vector<regie_type> types{one_element(REGIE_I64, number_ ? *number_ : none, &kOne),
                                one_element(REGIE_BOOL, condition_ ? *condition_ : none, &kOne)};
  std::vector<std::string> texts{number_ ? number_->name() : "iteration",
                                 condition_ ? condition_->name() : "goes_on"};
  for (const Argument& a : arguments_) {
    regie_type type = builder_.value(a.value).type;
    type.dims = a.dims.data();
    types.push_back(type);
    texts.emplace_back(a.name);
  }
  std::vector<regie_str> names;
  for (const std::string& text : texts) names.push_back(sdk::str(text));
  args_.resize(types.size());
  region_ = builder_.open_region(kBody, types, names, args_.data());
  inner_.values.clear();
  for (const auto& [name, place] : by_name_) inner_.values.emplace(name, args_[2 + place]);
  for (const CapturedSequence& s : sequences_)
    inner_.values.emplace(s.name, builder_.add_sequence(s.inside(std::span(args_).subspan(2))));
}

bool LoopRegion::settled(const std::vector<uint32_t>& carried_results) {
  bool settled = true;
  for (size_t i = 0; i < carried_; ++i) {
    Argument& a = arguments_[i];
    const regie_type& after = builder_.value(carried_results[i]).type;
    // What cannot be is said where the Loop itself is made.
    if (after.container != REGIE_TENSOR || after.rank != static_cast<int32_t>(a.dims.size())) continue;
    for (size_t d = 0; d < a.dims.size(); ++d) {
      const bool open = a.dims[d] != builder_.value(a.value).type.dims[d];
      if (open || after.dims[d] == a.dims[d]) continue;
      a.dims[d] = builder_.late_dim(std::string(a.name) + "." + std::to_string(d));
      settled = false;
    }
  }
  if (settled) return true;
  builder_.abandon_region();
  open_now();
  return false;
}

void LoopRegion::bind(const std::string& name, uint32_t value) {
  inner_.values.insert_or_assign(name, value);
}

std::vector<uint32_t> LoopRegion::build() {
  builder_.build(body_, &inner_, false);
  context_.at(ref_.name, ref_.node->op_type());
  std::vector<uint32_t> results;
  for (const wire::ValueInfo& v : body_.proto->output()) {
    results.push_back(inner_.find(v.name()));
    if (results.back() == REGIE_NONE)
      context_.invalid("output " + quoted(v.name()) + " of its body is a value that nothing makes");
  }
  return results;
}

// What the body says of going on, past operators that hand it through: so it shows that it always does.
uint32_t LoopRegion::unwrapped(std::string_view name) const {
  for (;;) {
    const auto it = body_.definitions.find(name);
    if (it == body_.definitions.end() || it->second.kind != Definition::kNode) break;
    const wire::Node& node = *body_.nodes[it->second.index].node;
    if (node.op_type() != "Identity" || !domain_of(node.domain()).empty()) break;
    name = node.input(0);
  }
  return inner_.find(name);
}

std::vector<uint32_t> LoopRegion::operands(uint32_t trips, uint32_t condition) const {
  std::vector<uint32_t> all{trips, condition};
  for (const Argument& a : arguments_) all.push_back(a.value);
  return all;
}

// ---- Loop ----

namespace {

struct Carried {
  enum As {
    kTensor,
    kAdded,    // a sequence: elements are added at its ends and it is not looked at
    kSought,   // to find the type of its elements
    kStacked,  // as a stack
  };
  As as = kTensor;
  uint32_t initial = REGIE_NONE;
  std::optional<ElementType> type;  // of elements
  uint32_t growth = REGIE_NONE;     // kAdded, kSought: tells it from others
};

// Reads the body with carried sequences as `values` say. GrowthSeen: it has to be read once more, as one of
// them is something else.
LoopNode read_loop(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t index,
                   const Body& body, std::vector<Carried>& values) {
  Context& context = t.context;
  const wire::Graph& graph = *body.proto;
  LoopRegion region(builder, t, scope, outer, index, body);
  std::vector<size_t> place(values.size(), SIZE_MAX);  // among what the region carries
  size_t carried = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    Carried& c = values[i];
    const std::string& name = graph.input(static_cast<int>(2 + i)).name();
    if (c.as == Carried::kAdded || c.as == Carried::kSought) {
      c.growth = builder.new_growth();
      continue;
    }
    uint32_t initial = c.initial;
    if (c.as == Carried::kStacked) initial = stack_of(t, builder.sequence(c.initial), c.type);
    region.carry(initial, name);
    // With no elements at first, what the run tells of their shape is not that of the initial value.
    for (size_t d = 0; c.as == Carried::kStacked && d < c.type->dims.size(); ++d)
      if (c.type->dims[d] < 0) region.loosen(d + 1);
    place[i] = carried++;
  }
  region.open(&graph.input(0), &graph.input(1));
  std::vector<uint32_t> results;
  do {
    for (int i = 0; i < 2; ++i) region.bind(graph.input(i).name(), region.argument(static_cast<size_t>(i)));
    for (size_t i = 0; i < values.size(); ++i) {
      const Carried& c = values[i];
      const std::string& name = graph.input(static_cast<int>(2 + i)).name();
      if (place[i] == SIZE_MAX) {
        Sequence s;
        s.growth = c.growth;
        s.sought = c.as == Carried::kSought;
        region.bind(name, builder.add_sequence(std::move(s)));
      } else {
        const uint32_t argument = region.argument(2 + place[i]);
        region.bind(name, c.as == Carried::kStacked ? builder.add_sequence(from_stack(argument)) : argument);
      }
    }
    const std::vector<uint32_t> given = region.build();
    results.assign(1, given[0]);
    for (size_t i = 0; i < values.size(); ++i) {
      const Carried& c = values[i];
      const uint32_t value = given[1 + i];
      const std::string what = "carried value " + std::to_string(i) + " is a ";
      if (is_sequence(value) != (c.as != Carried::kTensor))
        context.invalid(what + (c.as == Carried::kTensor
                                    ? "tensor before an iteration and a sequence after it"
                                    : "sequence before an iteration and a tensor after it"));
      if (c.as == Carried::kTensor) {
        results.push_back(value);
        continue;
      }
      Sequence& s = builder.sequence(value);
      if (c.as == Carried::kSought) {
        // Nothing was put into it: it is another one in the end, or stays empty, whatever its type.
        const auto type = s.growth == REGIE_NONE ? type_of_elements(t, s) : std::nullopt;
        throw GrowthSeen{c.growth, GrowthSeen::kElement,
                         type ? *type : ElementType{builder.sequence(c.initial).elem, {}}};
      }
      if (s.growth != REGIE_NONE && s.growth != c.growth)
        throw GrowthSeen{s.growth, GrowthSeen::kOtherUse, {}};
      if (c.as == Carried::kAdded) {
        if (s.growth != c.growth) throw GrowthSeen{c.growth, GrowthSeen::kOtherUse, {}};
        continue;
      }
      results.push_back(stack_of(t, s, c.type));
    }
    for (size_t i = 1 + values.size(); i < given.size(); ++i) {
      if (is_sequence(given[i])) context.invalid("a sequence is collected; only tensors can be");
      results.push_back(given[i]);
    }
    LoopNode out;
    out.carried = static_cast<int64_t>(carried);
    for (size_t i = 0; i < values.size(); ++i) {
      const Carried& c = values[i];
      LoopNode::Output o;
      o.result = place[i];
      o.sequence = c.as != Carried::kTensor;
      out.sequences = out.sequences || o.sequence;
      if (c.as == Carried::kAdded) {
        const Sequence& s = builder.sequence(given[1 + i]);
        o.before = c.initial;
        for (const auto& [from, to] : {std::pair(&s.front, &o.front), std::pair(&s.back, &o.back)})
          for (uint32_t v : *from) {
            to->push_back(results.size() - 1);
            results.push_back(v);
          }
      }
      out.outputs.push_back(std::move(o));
    }
    for (size_t i = 1 + values.size(); i < given.size(); ++i) {
      LoopNode::Output o;
      o.result = carried + (i - 1 - values.size());
      out.outputs.push_back(std::move(o));
    }
    if (!region.settled({results.begin() + 1, results.end()})) continue;
    results[0] = region.unwrapped(graph.output(0).name());
    region.close(results);
    out.operands = region.operands(t.operand(0), t.operand(1));
    out.region = region.id();
    out.results = results.size() - 1;
    return out;
  } while (true);
}

}  // namespace

LoopNode loop_node(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t index) {
  Context& context = t.context;
  const wire::Node& node = *t.ref.node;
  const Body& body = LoopRegion::body_of(context, outer, index);
  const wire::Graph& graph = *body.proto;
  const int carried = std::max(0, node.input_size() - 2);
  if (graph.input_size() != 2 + carried)
    context.invalid("its body has " + std::to_string(graph.input_size()) +
                    " inputs, not an iteration number, a "
                    "condition and " +
                    std::to_string(carried) + " carried values");
  if (graph.output_size() < 1 + carried || node.output_size() > graph.output_size() - 1)
    context.invalid("its body has " + std::to_string(graph.output_size()) + " outputs, not a condition, " +
                    std::to_string(carried) + " carried values and what is collected; the node has " +
                    std::to_string(node.output_size()));
  for (int i = 0; i < carried; ++i)
    if (t.operand(static_cast<size_t>(2 + i)) == REGIE_NONE)
      context.invalid("carried value " + std::to_string(i) + " has no initial value");
  std::vector<Carried> values(static_cast<size_t>(carried));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].initial = t.operand(2 + i);
    if (!is_sequence(values[i].initial)) continue;
    values[i].as = Carried::kAdded;
    values[i].initial = builder.add_sequence(builder.captured_sequence(t, values[i].initial));
    values[i].type = type_of_elements(t, builder.sequence(values[i].initial));
  }
  // How a sequence is carried is known when the body has been read, which is read again then.
  for (;;) {
    LoopNode made;
    const std::optional<GrowthSeen> seen =
        builder.watched([&] { made = read_loop(builder, t, scope, outer, index, body, values); });
    if (!seen) return made;
    context.at(t.ref.name, node.op_type());
    const auto it = std::find_if(values.begin(), values.end(),
                                 [&](const Carried& c) { return c.growth == seen->growth; });
    if (it == values.end()) throw *seen;  // of a Loop around this one
    if (seen->kind == GrowthSeen::kElement) it->type = seen->type;
    it->as = it->type ? Carried::kStacked : Carried::kSought;
  }
}

// ---- Scan ----

namespace {

std::vector<int64_t> list_of(Translation& t, const char* name, size_t count) {
  std::optional<std::vector<int64_t>> given = t.attributes.take_integers(name);
  if (!given) return std::vector<int64_t>(count, 0);
  if (given->size() != count)
    t.context.invalid(std::string("attribute ") + name + " has " + std::to_string(given->size()) +
                      " elements, not " + std::to_string(count));
  return *given;
}

// The length of a scanned operand's axis.
uint32_t length_of(Translation& t, uint32_t value, int64_t axis) {
  const Translation::Type type = t.type(value);
  if (const regie_dim d = type.dims[static_cast<size_t>(axis)]; d >= 0)
    return t.constant(integer(d), "length");
  const uint32_t shape = t.make("Shape", {value});
  return t.make("Gather", {shape, t.constant(integer(axis), "axis")}, {Attribute::integer("axis", 0)});
}

}  // namespace

ScanNode scan_node(Builder& builder, Translation& t, const Scope& scope, const Body& outer, uint32_t index,
                   const std::vector<uint32_t>& operands) {
  Context& context = t.context;
  const wire::Node& node = *t.ref.node;
  const Body& body = LoopRegion::body_of(context, outer, index);
  const wire::Graph& graph = *body.proto;
  const int64_t given = t.attributes.take_integer("num_scan_inputs", 0);
  if (given < 1 || given > static_cast<int64_t>(operands.size()))
    context.invalid("num_scan_inputs is " + std::to_string(given) + ", and the node has " +
                    std::to_string(node.input_size()) + " inputs");
  const auto scanned = static_cast<size_t>(given), states = operands.size() - scanned;
  if (static_cast<size_t>(graph.input_size()) != states + scanned)
    context.invalid("its body has " + std::to_string(graph.input_size()) + " inputs, the node " +
                    std::to_string(node.input_size()));
  if (static_cast<size_t>(graph.output_size()) < states || node.output_size() > graph.output_size())
    context.invalid("its body has " + std::to_string(graph.output_size()) + " outputs, the node has " +
                    std::to_string(states) + " states and " + std::to_string(node.output_size()) +
                    " outputs");
  const size_t collected = static_cast<size_t>(graph.output_size()) - states;
  std::vector<int64_t> axes = list_of(t, "scan_input_axes", scanned);
  const std::vector<int64_t> directions = list_of(t, "scan_input_directions", scanned);
  ScanNode out;
  out.axes = list_of(t, "scan_output_axes", collected);
  out.directions = list_of(t, "scan_output_directions", collected);

  LoopRegion region(builder, t, scope, outer, index, body);
  for (size_t i = 0; i < states + scanned; ++i)
    if (operands[i] == REGIE_NONE) context.invalid("input " + std::to_string(i) + " is missing");
  for (size_t i = 0; i < states; ++i) region.carry(operands[i], graph.input(static_cast<int>(i)).name());
  uint32_t trips = REGIE_NONE, last = REGIE_NONE;
  int64_t length = -1;
  std::vector<size_t> places;
  for (size_t k = 0; k < scanned; ++k) {
    const uint32_t value = operands[states + k];
    const Translation::Type type = t.type(value);
    axes[k] = normal_axis(t, axes[k], type.rank, "scan_input_axes:");
    if (k == 0) trips = length_of(t, value, axes[0]);
    if (const regie_dim d = type.dims[static_cast<size_t>(axes[k])]; d >= 0) {
      if (length >= 0 && length != d)
        context.invalid("its scanned inputs have " + std::to_string(length) + " and " + std::to_string(d) +
                        " slices");
      length = d;
    }
    places.push_back(region.capture(value, node.input(node.input_size() - static_cast<int>(scanned - k))));
    if (directions[k] != 0 && last == REGIE_NONE)
      last = t.make("Sub", {trips, t.constant(integer(1), "one")});
  }
  const size_t last_place = last == REGIE_NONE ? LoopRegion::kDirect : region.capture(last, "last");

  region.open(nullptr, nullptr);
  std::vector<uint32_t> results;
  do {
    for (size_t i = 0; i < states; ++i)
      region.bind(graph.input(static_cast<int>(i)).name(), region.argument(2 + i));
    uint32_t backwards = REGIE_NONE;
    for (size_t k = 0; k < scanned; ++k) {
      uint32_t at = region.argument(0);
      if (directions[k] != 0) {
        if (backwards == REGIE_NONE)
          backwards =
              t.make("Sub", {last_place == LoopRegion::kDirect ? last : region.argument(2 + last_place), at});
        at = backwards;
      }
      const uint32_t whole =
          places[k] == LoopRegion::kDirect ? operands[states + k] : region.argument(2 + places[k]);
      region.bind(graph.input(static_cast<int>(states + k)).name(),
                  t.make("Gather", {whole, at}, {Attribute::integer("axis", axes[k])}));
    }
    results = region.build();
  } while (!region.settled(results));
  results.insert(results.begin(), region.argument(1));
  region.close(results);
  out.loop = {region.operands(trips, REGIE_NONE), region.id(), static_cast<int64_t>(states),
              results.size() - 1};
  return out;
}

std::optional<ScanNode::Arrangement> ScanNode::arrangement(Translation& t, size_t which,
                                                           uint32_t value) const {
  const int64_t rank = t.type(value).rank;
  const int64_t axis = normal_axis(t, axes[which], rank, "scan_output_axes:");
  std::optional<Arrangement> last;
  if (directions[which] != 0)
    last = {"Slice",
            {value, t.constant(integers({-1}), "starts"), t.constant(integers({INT64_MIN}), "ends"),
             t.constant(integers({0}), "axes"), t.constant(integers({-1}), "steps")},
            {}};
  if (axis == 0) return last;
  if (last) value = t.make(last->op, last->in);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return Arrangement{"Transpose", {value}, {Attribute::list("perm", perm)}};
}

}  // namespace regie::onnx
