// An If: the branch that is known to be taken in its place, or both as regions.
#include <algorithm>

#include "builder.h"

namespace regie::onnx {

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
  build(branch, &inner, condition == REGIE_NONE);
  split_.reset();
  context_.at(ref.name, ref.node->op_type());
  std::vector<uint32_t> results;
  for (const wire::ValueInfo& v : branch.proto->output())
    if (unranked_.count(inner.find(v.name()))) {
      // What was read is not used: it is read again, with what follows.
      split_ = Split{which, condition, why, which};
      return;
    }
  for (int i = 0; i < branch.proto->output_size(); ++i) {
    uint32_t value = inner.find(branch.proto->output(i).name());
    if (condition != REGIE_NONE && !ref.node->output(i).empty()) {
      const std::vector<Attribute> attributes{
          Attribute::integer("expected", which == 0),
          Attribute::text("message", std::string("the model was read for ") + kBranches[which] + " of " +
                                         quoted(ref.name) + ", but the run chooses " + kBranches[1 - which] +
                                         ": " + why)};
      const auto require = [&](uint32_t* of, std::string_view name) {
        node("regie.Require", ref, {*of, condition}, attributes, {}, {sdk::str(name)}, {0}, of);
      };
      if (is_sequence(value)) {
        const Sequence given = sequence(value);
        std::vector<uint32_t> parts = parts_of(given);
        for (uint32_t& part : parts) require(&part, fresh_name(ref.node->output(i) + "_part"));
        value = add_sequence(of_parts(given, parts));
      } else {
        require(&value, ref.node->output(i));
      }
    }
    results.push_back(value);
  }
  bind(scope, ref, results);
}

// Types as they stand now.
bool Builder::capture(const Scope& scope, std::string_view name, Captures* to) const {
  const uint32_t v = scope.find(name);
  if (is_sequence(v)) return false;
  if (v == REGIE_NONE)
    context_.invalid("input " + quoted(name) + " is a value that nothing in the model makes");
  if (is_constant(v) || std::find(to->names.begin(), to->names.end(), name) != to->names.end()) return true;
  regie_type type = value(v).type;
  if (type.rank < 0)
    context_.unsupported("the shape of the captured value " + quoted(name) + " is not known");
  to->names.push_back(name);
  to->values.push_back(v);
  to->dims.emplace_back(type.dims, type.dims + type.rank);
  type.dims = to->dims.back().data();
  to->types.push_back(type);
  to->labels.push_back(sdk::str(name));
  return true;
}

void Builder::capture_sequence(Translation& t, uint32_t id, std::string_view name, Captures* to) {
  for (const CapturedSequence& s : to->sequences)
    if (s.name == name) return;
  CapturedSequence s{name, captured_sequence(t, id), {}};
  for (uint32_t part : parts_of(s.outside)) {
    s.places.push_back(is_constant(part) ? CapturedSequence::kDirect : to->values.size());
    if (is_constant(part)) continue;
    regie_type type = value(part).type;
    to->names.push_back({});
    to->values.push_back(part);
    to->dims.emplace_back(type.dims, type.dims + type.rank);
    type.dims = to->dims.back().data();
    to->types.push_back(type);
    to->labels.push_back(sdk::str(name));
  }
  to->sequences.push_back(std::move(s));
}

void Builder::bind_captures(const Captures& captures, const std::vector<uint32_t>& args, Scope* inner) {
  for (size_t i = 0; i < args.size(); ++i)
    if (!captures.names[i].empty()) inner->values.emplace(captures.names[i], args[i]);
  for (const CapturedSequence& s : captures.sequences)
    inner->values.emplace(s.name, add_sequence(s.inside(args)));
}

// Both branches get all captures as arguments, in one order; constants of the graphs around them are read
// directly. A branch that cannot be at these shapes need not be taken; where branches give values of other
// ranks, the If is to be split. Sequences that they give become stacks.
std::vector<uint32_t> Builder::branches(Translation& t, Scope* scope, uint32_t node_index, const Body& body,
                                        std::vector<uint32_t>* operands, std::vector<bool>* sequences) {
  const NodeRef& ref = body.nodes[node_index];
  const std::array<const Body*, 2> branches = bodies(ref, node_index, body);
  Captures captures;
  for (const Body* branch : branches)
    for (std::string_view name : branch->captures)
      if (!capture(*scope, name, &captures)) capture_sequence(t, scope->find(name), name, &captures);
  operands->insert(operands->end(), captures.values.begin(), captures.values.end());

  const uint32_t condition = operands->at(0);
  std::vector<uint32_t> regions, results[2];
  // In a region that stays open: the values of the branch's outputs, sequences among them.
  const auto read = [&](size_t which) {
    std::vector<uint32_t> args(captures.names.size()), given;
    regions.push_back(open_region(kBranches[which], captures.types, captures.labels, args.data()));
    Scope inner{scope, {}};
    bind_captures(captures, args, &inner);
    build(*branches[which], &inner);
    for (const wire::ValueInfo& v : branches[which]->proto->output()) given.push_back(inner.find(v.name()));
    context_.at(ref.name, ref.node->op_type());
    return given;
  };
  // Of a sequence without elements: the type of those that the other branch has.
  const auto type_in_other = [&](size_t which, size_t i) {
    std::optional<ElementType> type;
    if (possible([&] {
          const uint32_t id = read(1 - which)[i];
          if (is_sequence(id)) type = type_of_elements(t, sequence(id));
        }))
      abandon_region();
    regions.pop_back();
    return type;
  };
  for (size_t which = 0; which < 2; ++which) {
    std::vector<std::optional<ElementType>> types(static_cast<size_t>(ref.node->output_size()));
    const bool can_be = possible([&] {
      results[which] = read(which);
      for (size_t i = 0; i < types.size(); ++i) {
        uint32_t& id = results[which][i];
        if (which == 1 && is_sequence(id) != sequences->at(i))
          context_.invalid("output " + std::to_string(i) +
                           " is a sequence in one branch, and a tensor in the other");
        if (which == 0) sequences->push_back(is_sequence(id));
        if (!is_sequence(id)) continue;
        Sequence given = captured_sequence(t, id);
        types[i] = type_of_elements(t, given);
        if (!types[i]) {
          types[i] = which == 1 ? type_of_elements(t, from_stack(results[0][i])) : type_in_other(which, i);
          if (!types[i]) types[i] = ElementType{given.elem, {}};
        }
        id = stack_of(t, given, types[i]);
      }
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
        const bool open[2] = {unranked_.count(results[0][i]) != 0, unranked_.count(results[1][i]) != 0};
        if (a.rank == b.rank && !open[0] && !open[1]) continue;
        if (a.container != REGIE_TENSOR || b.container != REGIE_TENSOR) continue;
        if (sequences->at(i))
          context_.unsupported("its output " + quoted(ref.node->output(static_cast<int>(i))) +
                               " is a sequence of tensors of one rank or another, as the run tells");
        const size_t lower = open[0] != open[1] ? (open[0] ? 1 : 0) : a.rank < b.rank ? 0 : 1;
        abandon_region();
        split_ = Split{lower,
                       condition,
                       "its output " + quoted(ref.node->output(static_cast<int>(i))) +
                           " would have another rank; compile for other shapes",
                       {}};
        return {};
      }
    close_region(results[which]);
  }
  return regions;
}

}  // namespace regie::onnx
