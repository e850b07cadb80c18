// SequenceMap: its body written out for each element of a list, or a Loop over those of a stack.
#include "loops.h"

namespace regie::onnx {

std::vector<uint32_t> map_sequences(Builder& builder, Translation& t, const Scope& scope, const Body& outer,
                                    uint32_t index) {
  Context& context = t.context;
  const wire::Node& node = *t.ref.node;
  const Body& body = LoopRegion::body_of(context, outer, index);
  const wire::Graph& graph = *body.proto;
  if (graph.input_size() != static_cast<int>(t.operands.size()))
    context.invalid("its body has " + std::to_string(graph.input_size()) + " inputs, the node " +
                    std::to_string(t.operands.size()));
  if (graph.output_size() != node.output_size())
    context.invalid("its body has " + std::to_string(graph.output_size()) + " outputs, the node " +
                    std::to_string(node.output_size()));
  if (!is_sequence(t.operand(0))) context.invalid("input 0 must be a sequence, and is a tensor");
  const auto count = static_cast<size_t>(graph.output_size());
  std::vector<std::optional<Sequence>> given;  // by operand; nothing: a tensor, the same for all
  bool lists = true;
  for (uint32_t v : t.operands) {
    given.emplace_back();
    if (!is_sequence(v)) continue;
    given.back() = builder.captured_sequence(t, v);
    if (given.back()->growth != REGIE_NONE)
      context.unsupported("the sequence is empty before a Loop, and the type of its elements is not known");
    lists = lists && given.back()->stack == REGIE_NONE && given.back()->order == REGIE_NONE;
  }
  if (lists) {
    std::vector<Sequence> made(count);
    const int64_t length = given[0]->length;
    for (int64_t k = 0; k < length; ++k) {
      Scope inner{&scope, {}};
      for (size_t i = 0; i < given.size(); ++i) {
        if (given[i] && k >= given[i]->length)
          context.invalid("input " + std::to_string(i) + " is a sequence of fewer elements than input 0");
        inner.values.emplace(graph.input(static_cast<int>(i)).name(),
                             given[i] ? given[i]->tensors[static_cast<size_t>(k)] : t.operands[i]);
      }
      builder.build(body, &inner, false);
      context.at(t.ref.name, node.op_type());
      for (size_t i = 0; i < count; ++i) {
        const uint32_t value = inner.find(graph.output(static_cast<int>(i)).name());
        if (value == REGIE_NONE || is_sequence(value)) context.invalid("its body gives no tensor");
        made[i].tensors.push_back(value);
        ++made[i].length;
      }
    }
    std::vector<uint32_t> out;
    for (Sequence& s : made) out.push_back(builder.add_sequence(std::move(s)));
    return out;
  }
  LoopRegion region(builder, t, scope, outer, index, body);
  std::vector<uint32_t> whole;
  std::vector<size_t> places;
  for (size_t i = 0; i < given.size(); ++i) {
    whole.push_back(given[i] ? stack_of(t, *given[i]) : t.operands[i]);
    places.push_back(region.capture(whole[i], graph.input(static_cast<int>(i)).name()));
  }
  const uint32_t trips = stack_length(t, from_stack(whole[0]));
  region.open(nullptr, nullptr);
  for (size_t i = 0; i < given.size(); ++i) {
    uint32_t value = places[i] == LoopRegion::kDirect ? whole[i] : region.argument(2 + places[i]);
    if (given[i]) value = t.make("Gather", {value, region.argument(0)}, {Attribute::integer("axis", 0)});
    region.bind(graph.input(static_cast<int>(i)).name(), value);
  }
  std::vector<uint32_t> results = region.build();
  for (uint32_t v : results)
    if (is_sequence(v)) context.invalid("its body gives no tensor");
  results.insert(results.begin(), region.argument(1));
  region.close(results);
  std::vector<regie_str> names;
  for (int i = 0; i < node.output_size(); ++i)
    names.push_back(sdk::str(builder.fresh_name(node.output(i) + "_stack")));
  std::vector<uint32_t> out(count, REGIE_NONE);
  builder.node("Loop", t.ref, region.operands(trips, REGIE_NONE), {Attribute::integer("carried", 0)},
               {region.id()}, names, std::vector<uint8_t>(count), out.data());
  for (uint32_t& v : out) v = builder.add_sequence(from_stack(v));
  return out;
}

}  // namespace regie::onnx
