// Branches of an If that give values of other ranks ("squeeze if the dimension is one" is what exporters make
// of a squeeze). The graph knows the rank of every value, so all that waits for such an If is read once in
// each branch, behind the branch's own nodes, where the rank is known: the If then gives what the model or
// the outer body has as outputs. One whose rank still depends on the branch becomes a list of its elements,
// with its dimensions beside it.
#include <algorithm>

#include "builder.h"

namespace regie::onnx {

namespace {

// Nodes that may be read again in branches, of branches within branches, before only one rank is read.
constexpr uint64_t kMostAgain = 20000;

const std::string kElements = "_elements", kDims = "_dims";

}  // namespace

// What follows when the body of a branch has been read: those nodes of the body with the If that wait for it.
struct Builder::Rest {
  const Body& body;
  uint32_t node;
  const std::vector<uint32_t>& nodes;
  const Rest* next;  // of the body around that one, if the If there is split, too
};

// Where the reading of a body has come to.
struct Builder::Place {
  const Rest* rest = nullptr;
  const std::vector<std::string_view>* wanted =
      nullptr;                   // what is to be given in the end; NULL: the body's outputs
  const Scope* floor = nullptr;  // of the region that is open; NULL: nothing is split
};

namespace {

// All names that node `i` of the body reads, those of its subgraphs included.
template <class F>
void for_each_read(const Body& body, uint32_t i, F&& f) {
  for (const std::string& name : body.nodes[i].node->input())
    if (!name.empty()) f(std::string_view(name));
  if (auto it = body.subgraphs.find(i); it != body.subgraphs.end())
    for (const auto& [attribute, child] : it->second)
      for (std::string_view name : child->captures) f(name);
}

void add_outputs(const Body& body, uint32_t i, std::unordered_set<std::string_view>* names) {
  for (const std::string& name : body.nodes[i].node->output())
    if (!name.empty()) names->insert(name);
}

}  // namespace

std::vector<uint32_t> Builder::read_nodes(const Body& body, Scope* scope, std::span<const uint32_t> nodes,
                                          const Place& place) {
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (place.floor) ++again_;
    split_.reset();
    translate(scope, nodes[k], body);
    if (split_) return split(body, scope, nodes[k], nodes.subspan(k + 1), place);
  }
  if (!place.rest) {
    std::vector<uint32_t> values;
    if (place.wanted)
      for (std::string_view name : *place.wanted) values.push_back(scope->find(name));
    else
      for (const wire::ValueInfo& v : body.proto->output()) values.push_back(scope->find(v.name()));
    return values;
  }
  const Rest& rest = *place.rest;
  const wire::Node& owner = *rest.body.nodes[rest.node].node;
  Scope tail{place.floor, {}};
  for (int i = 0; i < owner.output_size(); ++i)
    if (!owner.output(i).empty())
      tail.values.emplace(owner.output(i), scope->find(body.proto->output(i).name()));
  return read_nodes(rest.body, &tail, rest.nodes, {rest.next, place.wanted, place.floor});
}

void Builder::read_all(const Body& body, Scope* scope) { read_nodes(body, scope, body.order, {}); }

// The elements of a value as a list, and its dimensions.
std::pair<uint32_t, uint32_t> Builder::without_rank(const NodeRef& ref, std::string_view name,
                                                    uint32_t value) {
  if (auto it = unranked_.find(value); it != unranked_.end()) return *it;
  const uint32_t flat =
      constant(REGIE_VALUE_CONSTANT, integers({-1}), fresh_name(std::string(name) + "_flat"));
  uint32_t elements = REGIE_NONE, dims = REGIE_NONE;
  node("Reshape", ref, {value, flat}, {}, {}, {sdk::str(fresh_name(std::string(name) + kElements))}, {0},
       &elements);
  node("Shape", ref, {value}, {}, {}, {sdk::str(fresh_name(std::string(name) + kDims))}, {0}, &dims);
  return {elements, dims};
}

// The If cannot be split: of the ranks the lower one is read, and the run must choose it.
std::vector<uint32_t> Builder::read_lower(const Body& body, Scope* scope, uint32_t node_index,
                                          std::span<const uint32_t> after, const Split& split,
                                          const Place& place) {
  take_branch(scope, node_index, body, split.lower, split.condition, split.why);
  split_.reset();
  return read_nodes(body, scope, after, place);
}

std::vector<uint32_t> Builder::split(const Body& body, Scope* scope, uint32_t node_index,
                                     std::span<const uint32_t> after, const Place& place) {
  const Split split = *std::exchange(split_, std::nullopt);
  const NodeRef& ref = body.nodes[node_index];
  if (again_ > kMostAgain) return read_lower(body, scope, node_index, after, split, place);
  // What does not wait for the If stands before it.
  std::unordered_set<std::string_view> made;
  add_outputs(body, node_index, &made);
  std::vector<uint32_t> waiting;
  for (uint32_t i : after) {
    bool waits = false;
    for_each_read(body, i, [&](std::string_view name) { waits = waits || made.count(name); });
    if (!waits) {
      translate(scope, i, body);
      if (!split_) continue;
      split_.reset();  // it is split in the branches of this one
    }
    add_outputs(body, i, &made);
    waiting.push_back(i);
  }
  std::vector<std::string_view> own;
  if (!place.wanted)
    for (const wire::ValueInfo& v : body.proto->output())
      if (made.count(v.name()) && std::find(own.begin(), own.end(), v.name()) == own.end())
        own.push_back(v.name());
  const std::vector<std::string_view>& wanted = place.wanted ? *place.wanted : own;
  const Rest rest{body, node_index, waiting, place.rest};
  auto give = [&](const std::vector<uint32_t>& values) {
    if (place.wanted) return values;
    for (size_t i = 0; i < wanted.size(); ++i) scope->values.insert_or_assign(wanted[i], values[i]);
    return read_nodes(body, scope, {}, {});
  };
  const std::array<const Body*, 2> branches = bodies(ref, node_index, body);
  if (split.taken) {  // the branch is known, and an If within it is to be split
    Scope inner{scope, {}};
    initializers(*branches[*split.taken], &inner);
    return give(
        read_nodes(*branches[*split.taken], &inner, branches[*split.taken]->order, {&rest, &wanted, scope}));
  }

  context_.at(ref.name, ref.node->op_type());
  Captures captures;
  bool can = true;
  for (const Body* branch : branches)
    for (std::string_view name : branch->captures) can = can && capture(*scope, name, &captures);
  for (const Rest* r = &rest; r && can; r = r->next) {
    std::unordered_set<std::string_view> inside;
    add_outputs(r->body, r->node, &inside);
    for (uint32_t i : r->nodes) add_outputs(r->body, i, &inside);
    const auto read_there = [&](std::string_view name) {
      if (can && !inside.count(name)) can = capture(*scope, name, &captures);
    };
    for (uint32_t i : r->nodes) for_each_read(r->body, i, read_there);
    // What does not wait for the If, but is an output of the branch that it is in.
    if (r->next)
      for (const wire::ValueInfo& v : r->body.proto->output()) read_there(v.name());
  }
  if (!can) return read_lower(body, scope, node_index, waiting, split, place);

  std::vector<uint32_t> results[2], regions(2, REGIE_NONE);
  std::vector<bool> open(wanted.size());  // its rank depends on the branch
  std::vector<int32_t> ranks(wanted.size());
  // Leaves the region open.
  auto read = [&](size_t which) {
    return possible(
        [&] {
          std::vector<uint32_t> args(captures.names.size());
          regions[which] = open_region(kBranches[which], captures.types, captures.labels, args.data());
          Scope bound{scope, {}};
          for (size_t i = 0; i < args.size(); ++i) bound.values.emplace(captures.names[i], args[i]);
          Scope inner{&bound, {}};
          initializers(*branches[which], &inner);
          results[which] =
              read_nodes(*branches[which], &inner, branches[which]->order, {&rest, &wanted, &bound});
          context_.at(ref.name, ref.node->op_type());
        },
        true);
  };
  auto close = [&](size_t which) {
    std::vector<uint32_t> all, dims;
    for (size_t i = 0; i < wanted.size(); ++i) {
      all.push_back(results[which][i]);
      if (!open[i]) continue;
      const auto [elements, shape] = without_rank(ref, wanted[i], results[which][i]);
      all.back() = elements;
      dims.push_back(shape);
    }
    all.insert(all.end(), dims.begin(), dims.end());
    close_region(all);
  };
  auto other_only = [&](size_t which) {
    return read_lower(body, scope, node_index, waiting,
                      {which, split.condition, "what follows cannot be at the rank that it gives", {}},
                      place);
  };
  // Once for its ranks alone: what follows may be impossible, most often at the higher one.
  const size_t first = 1 - split.lower, second = split.lower;
  if (!read(first)) return other_only(second);
  for (size_t i = 0; i < wanted.size(); ++i) {
    open[i] = unranked_.count(results[first][i]) != 0;
    ranks[i] = value(results[first][i]).type.rank;
  }
  abandon_region();
  if (!read(second)) return other_only(first);
  for (size_t i = 0; i < wanted.size(); ++i)
    open[i] =
        open[i] || unranked_.count(results[second][i]) || ranks[i] != value(results[second][i]).type.rank;
  const bool any = std::find(open.begin(), open.end(), true) != open.end();
  if (any && !place.wanted && !any_rank_) {
    abandon_region();
    return read_lower(body, scope, node_index, waiting, split, place);
  }
  close(second);
  if (!read(first)) context_.invalid("a branch cannot be read a second time");
  close(first);

  std::vector<uint32_t> operands{split.condition};
  operands.insert(operands.end(), captures.values.begin(), captures.values.end());
  std::vector<regie_str> names;
  for (std::string_view name : wanted)
    names.push_back(sdk::str(place.wanted ? fresh_name(std::string(name)) : name));
  for (size_t i = 0; i < wanted.size(); ++i)
    if (open[i]) names.push_back(sdk::str(fresh_name(std::string(wanted[i]) + kDims)));
  std::vector<uint32_t> made_values(names.size(), REGIE_NONE);
  node("If", ref, operands, {}, regions, names, std::vector<uint8_t>(names.size()), made_values.data());
  size_t next = wanted.size();
  for (size_t i = 0; i < wanted.size(); ++i)
    if (open[i]) unranked_.emplace(made_values[i], made_values[next++]);
  made_values.resize(wanted.size());
  return give(made_values);
}

}  // namespace regie::onnx
