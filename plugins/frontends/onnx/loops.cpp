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

LoopRegion::LoopRegion(Builder& builder, const Scope& scope, const Body& outer, uint32_t node,
                       const Body& body)
    : builder_(builder),
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
  LoopRegion region(builder, scope, outer, index, body);
  for (int i = 0; i < carried; ++i) {
    const uint32_t initial = t.operand(static_cast<size_t>(2 + i));
    if (initial == REGIE_NONE)
      context.invalid("carried value " + std::to_string(i) + " has no initial value");
    region.carry(initial, graph.input(2 + i).name());
  }
  region.open(&graph.input(0), &graph.input(1));
  std::vector<uint32_t> results;
  do {
    for (int i = 0; i < 2 + carried; ++i)
      region.bind(graph.input(i).name(), region.argument(static_cast<size_t>(i)));
    results = region.build();
  } while (!region.settled({results.begin() + 1, results.end()}));
  results[0] = region.unwrapped(graph.output(0).name());
  region.close(results);
  LoopNode out{region.operands(t.operand(0), t.operand(1)), region.id(), carried, {}};
  out.results = results.size() - 1;
  return out;
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

  LoopRegion region(builder, scope, outer, index, body);
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
