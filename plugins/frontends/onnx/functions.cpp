#include "functions.h"

#include <algorithm>

#include "attributes.h"

namespace regie::onnx {

namespace {

// Calls of calls multiply: a file of a few hundred bytes could ask for any number of nodes.
constexpr uint64_t kMostExpanded = 1'000'000;
constexpr int kDeepestCall = 100;

std::string key_of(std::string_view domain, std::string_view name, std::string_view overload) {
  std::string key(domain_of(domain));
  key += '\n';
  key += name;
  key += '\n';
  key += overload;
  return key;
}

template <class Imports>
void read_opsets(Context& context, const Imports& imports, Opsets* out) {
  for (const wire::OpsetImport& i : imports) {
    auto [it, is_new] = out->versions.emplace(domain_of(i.domain()), i.version());
    if (!is_new && it->second != i.version())
      context.invalid(out->owner + " imports operator set " + quoted(i.domain()) + " twice, as " +
                      std::to_string(it->second) + " and " + std::to_string(i.version()));
    if (i.version() <= 0)
      context.invalid(out->owner + " imports operator set " + quoted(i.domain()) + " in version " +
                      std::to_string(i.version()));
  }
}

// Names of all values in nodes and their subgraphs; the depth is bounded by the reader.
void collect_names(const WireNodes& nodes, std::unordered_set<std::string>* out) {
  for (const wire::Node& n : nodes) {
    out->insert(n.input().begin(), n.input().end());
    out->insert(n.output().begin(), n.output().end());
    for (const wire::Attribute& a : n.attribute()) {
      if (a.has_g()) collect_names(a.g().node(), out);
      for (const wire::Graph& g : a.graphs()) collect_names(g.node(), out);
    }
  }
}

// Puts a call's values and attributes into a copy of a function's node.
class Substitution {
 public:
  Substitution(const Context& context, const wire::Node& call, const wire::Function& function)
      : context_(context), call_(call), function_(function) {}

  std::unordered_map<std::string, std::string> values;  // the function's name of a value -> the caller's
  std::function<std::string(const std::string&)> fresh;

  void node(wire::Node* n) {
    for (std::string& name : *n->mutable_input()) name = value(name);
    for (std::string& name : *n->mutable_output()) name = value(name);
    auto* attributes = n->mutable_attribute();
    for (int i = 0; i < attributes->size();) {
      if (attribute(attributes->Mutable(i))) {
        ++i;
      } else {
        attributes->DeleteSubrange(i, 1);
      }
    }
  }

 private:
  std::string value(const std::string& name) {
    if (name.empty()) return name;
    auto it = values.find(name);
    if (it == values.end()) it = values.emplace(name, fresh(name)).first;
    return it->second;
  }

  // False: the attribute refers to one that the call leaves out and that has no default.
  bool attribute(wire::Attribute* a) {
    if (!a->ref_attr_name().empty()) {
      const wire::Attribute* given = find(call_.attribute(), a->ref_attr_name());
      if (!given) given = find(function_.attribute_proto(), a->ref_attr_name());
      if (!given) {
        const auto& listed = function_.attribute();
        if (std::find(listed.begin(), listed.end(), a->ref_attr_name()) == listed.end())
          context_.invalid("attribute " + quoted(a->name()) + " refers to " + quoted(a->ref_attr_name()) +
                           ", which is not an attribute of the function");
        return false;
      }
      if (a->has_type() && a->type() != wire::Attribute::UNDEFINED && kind_of(*given) != a->type())
        context_.invalid("attribute " + quoted(a->ref_attr_name()) +
                         " of the call has another type than the function uses");
      std::string name = a->name();
      *a = *given;
      a->set_name(name);
      return true;
    }
    if (a->has_g()) graph(a->mutable_g());
    for (wire::Graph& g : *a->mutable_graphs()) graph(&g);
    return true;
  }

  void graph(wire::Graph* g) {
    for (wire::ValueInfo& v : *g->mutable_input()) v.set_name(value(v.name()));
    for (wire::ValueInfo& v : *g->mutable_output()) v.set_name(value(v.name()));
    for (wire::Tensor& t : *g->mutable_initializer()) t.set_name(value(t.name()));
    for (wire::SparseTensor& t : *g->mutable_sparse_initializer())
      t.mutable_values()->set_name(value(t.values().name()));
    for (wire::Node& n : *g->mutable_node()) node(&n);
  }

  template <class List>
  static const wire::Attribute* find(const List& list, const std::string& name) {
    for (const wire::Attribute& a : list)
      if (a.name() == name) return &a;
    return nullptr;
  }

  const Context& context_;
  const wire::Node& call_;
  const wire::Function& function_;
};

}  // namespace

std::string_view domain_of(std::string_view written) {
  return written == "ai.onnx" ? std::string_view() : written;
}

int64_t Opsets::find(std::string_view domain) const {
  auto it = versions.find(domain_of(domain));
  return it == versions.end() ? 0 : it->second;
}

Functions::Functions(Context& context, const wire::Model& model) : context_(context) {
  model_opsets_.owner = "the model";
  canonical_.versions.emplace("", 21);
  read_opsets(context, model.opset_import(), &model_opsets_);
  for (const wire::Function& f : model.functions()) {
    Function to{&f, std::string(domain_of(f.domain())), {}, false, 0};
    to.name = printable(to.name + (to.name.empty() ? "" : ".") + f.name());
    to.opsets.owner = "function " + quoted(to.name);
    read_opsets(context, f.opset_import(), &to.opsets);
    if (!functions_.emplace(key_of(f.domain(), f.name(), f.overload()), to).second)
      context.invalid("function " + quoted(to.name) + " is defined twice");
  }
  if (functions_.empty()) return;
  collect_names(model.graph().node(), &names_);
  for (const wire::Function& f : model.functions()) collect_names(f.node(), &names_);
  for (const wire::ValueInfo& v : model.graph().input()) names_.insert(v.name());
  for (const wire::Tensor& t : model.graph().initializer()) names_.insert(t.name());
  for (const wire::SparseTensor& t : model.graph().sparse_initializer()) names_.insert(t.values().name());
}

Functions::Function* Functions::find(const wire::Node& node) {
  if (functions_.empty()) return nullptr;
  auto it = functions_.find(key_of(node.domain(), node.op_type(), node.overload()));
  return it == functions_.end() ? nullptr : &it->second;
}

std::string Functions::fresh(const std::string& wanted) {
  std::string name = wanted;
  for (int n = 2; !names_.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

std::vector<NodeRef> Functions::expand(const WireNodes& nodes, const Opsets& opsets,
                                       const std::string& prefix) {
  std::vector<NodeRef> out;
  out.reserve(static_cast<size_t>(nodes.size()));
  std::vector<NodeRef> stack, body;
  for (int i = 0; i < nodes.size(); ++i) {
    const wire::Node& n = nodes.Get(i);
    NodeRef ref{&n, &opsets,
                printable(n.name().empty() ? prefix + n.op_type() + "_" + std::to_string(i) : n.name())};
    Function* called = find(n);
    if (!called) {
      out.push_back(std::move(ref));
      continue;
    }
    context_.at(ref.name, called->name);
    expanded_ += size_of(called, 0);
    if (expanded_ > kMostExpanded)
      context_.fail(REGIE_LIMIT,
                    "the model's functions expand to more than " + std::to_string(kMostExpanded) + " nodes");
    stack.push_back(std::move(ref));
    while (!stack.empty()) {
      NodeRef next = std::move(stack.back());
      stack.pop_back();
      const Function* f = find(*next.node);
      if (!f) {
        out.push_back(std::move(next));
        continue;
      }
      body.clear();
      inline_call(next, *f, &body);
      std::move(body.rbegin(), body.rend(), std::back_inserter(stack));
    }
  }
  return out;
}

// Counted before anything is copied: twenty functions that call each other twice are a million nodes.
uint64_t Functions::count(const WireNodes& nodes, int depth) {
  uint64_t total = 0;
  for (const wire::Node& n : nodes) {
    ++total;
    if (Function* called = find(n)) total += size_of(called, depth + 1);
    for (const wire::Attribute& a : n.attribute()) {
      if (a.has_g()) total += count(a.g().node(), depth);
      for (const wire::Graph& g : a.graphs()) total += count(g.node(), depth);
    }
    if (total > kMostExpanded) return kMostExpanded + 1;
  }
  return total;
}

uint64_t Functions::size_of(Function* function, int depth) {
  if (function->counting) context_.invalid("function " + quoted(function->name) + " calls itself");
  if (depth >= kDeepestCall)
    context_.fail(REGIE_LIMIT,
                  "functions call each other more than " + std::to_string(kDeepestCall) + " deep");
  if (function->size != 0) return function->size;
  function->counting = true;
  function->size = 1 + count(function->proto->node(), depth);
  function->counting = false;
  return function->size;
}

void Functions::inline_call(const NodeRef& call, const Function& function, std::vector<NodeRef>* out) {
  const wire::Node& node = *call.node;
  const wire::Function& f = *function.proto;
  context_.at(call.name, function.name);
  if (node.input_size() > f.input_size() || node.output_size() > f.output_size())
    context_.invalid("the call has " + std::to_string(node.input_size()) + " inputs and " +
                     std::to_string(node.output_size()) + " outputs, function " + quoted(function.name) +
                     " has " + std::to_string(f.input_size()) + " and " + std::to_string(f.output_size()));

  Substitution put(context_, node, f);
  put.fresh = [&](const std::string& name) { return fresh(call.name + "/" + name); };
  for (int i = 0; i < f.input_size(); ++i)
    if (!put.values.emplace(f.input(i), i < node.input_size() ? node.input(i) : std::string()).second)
      context_.invalid("function " + quoted(function.name) + " has two inputs " + quoted(f.input(i)));
  std::vector<std::pair<std::string, std::string>> passed;  // an input that is an output too
  for (int i = 0; i < f.output_size(); ++i) {
    const std::string to = i < node.output_size() ? node.output(i) : std::string();
    if (to.empty()) continue;
    auto [it, is_new] = put.values.emplace(f.output(i), to);
    if (!is_new) passed.emplace_back(it->second, to);
  }

  for (int i = 0; i < f.node_size(); ++i) {
    wire::Node& copy = made_.emplace_back(f.node(i));
    std::string name =
        call.name + "/" +
        printable(copy.name().empty() ? copy.op_type() + "_" + std::to_string(i) : copy.name());
    context_.at(name, copy.op_type());
    put.node(&copy);
    out->push_back({&copy, &function.opsets, std::move(name)});
  }
  for (const auto& [from, to] : passed) {
    wire::Node& copy = made_.emplace_back();
    copy.set_op_type("Identity");
    copy.add_input(from);
    copy.add_output(to);
    out->push_back({&copy, &canonical_, call.name + "/" + to});
  }
}

}  // namespace regie::onnx
