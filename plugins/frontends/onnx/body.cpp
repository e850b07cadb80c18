#include "body.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "attributes.h"

namespace regie::onnx {

namespace {

class Analysis {
 public:
  Analysis(Context& context, Functions& functions, bool overridable,
           std::unordered_set<std::string_view>* names)
      : context_(context), functions_(functions), overridable_(overridable), names_(names) {}

  // Recursion over nested subgraphs only: the reader bounds their depth.
  std::unique_ptr<Body> graph(const wire::Graph& proto, const Opsets& opsets, const std::string& prefix,
                              bool outermost) {
    auto body = std::make_unique<Body>();
    body->proto = &proto;
    body->nodes = functions_.expand(proto.node(), opsets, prefix);
    definitions(body.get(), prefix, outermost);
    uses(body.get(), prefix, outermost);
    return body;
  }

 private:
  void place(const std::string& prefix, const std::string& what) {
    context_.at(prefix.empty() ? what : "subgraph '" + prefix.substr(0, prefix.size() - 1) + "': " + what,
                "");
  }

  bool define(Body* body, std::string_view name, Definition::Kind kind, size_t index) {
    if (printable(name) != name)
      context_.invalid("the name " + quoted(name) + " of a value has control characters or is not UTF-8");
    names_->insert(name);
    return body->definitions.emplace(name, Definition{kind, static_cast<uint32_t>(index)}).second;
  }

  void definitions(Body* body, const std::string& prefix, bool outermost) {
    const wire::Graph& g = *body->proto;
    auto initializer = [&](const std::string& name, Definition::Kind kind, int index) {
      place(prefix, "initializer " + quoted(name));
      if (name.empty()) context_.invalid("an initializer has no name");
      if (!define(body, name, kind, static_cast<size_t>(index)))
        context_.invalid("there are two initializers of that name");
    };
    for (int i = 0; i < g.initializer_size(); ++i)
      initializer(g.initializer(i).name(), Definition::kInitializer, i);
    for (int i = 0; i < g.sparse_initializer_size(); ++i)
      initializer(g.sparse_initializer(i).values().name(), Definition::kSparse, i);
    std::unordered_set<std::string_view> inputs;
    for (int i = 0; i < g.input_size(); ++i) {
      const std::string& name = g.input(i).name();
      place(prefix, "input " + quoted(name));
      if (name.empty()) context_.invalid("an input has no name");
      if (!inputs.insert(name).second) context_.invalid("there are two inputs of that name");
      if (define(body, name, Definition::kInput, static_cast<size_t>(i)) || !overridable_ || !outermost)
        continue;
      Definition& of_name = body->definitions.at(name);
      body->defaults.emplace(name, of_name);
      of_name = {Definition::kInput, static_cast<uint32_t>(i)};
    }
    for (size_t i = 0; i < body->nodes.size(); ++i) {
      const NodeRef& ref = body->nodes[i];
      for (const std::string& name : ref.node->output()) {
        if (name.empty()) continue;
        context_.at(ref.name, ref.node->op_type());
        if (define(body, name, Definition::kNode, i)) continue;
        context_.invalid("its output " + quoted(name) + " is a value that " + maker(*body, name) +
                         " already makes");
      }
    }
  }

  static std::string maker(const Body& body, std::string_view name) {
    const Definition& d = body.definitions.at(name);
    if (d.kind == Definition::kNode) {
      const NodeRef& ref = body.nodes[d.index];
      return "node " + quoted(ref.name) + " (" + ref.node->op_type() + ")";
    }
    return d.kind == Definition::kInput ? "an input" : "an initializer";
  }

  // Edges, captures and order.
  void uses(Body* body, const std::string& prefix, bool outermost) {
    const size_t count = body->nodes.size();
    std::vector<std::vector<uint32_t>> readers(count);
    std::vector<uint32_t> waiting(count, 0);
    std::unordered_set<std::string_view> captured;
    auto use = [&](std::string_view name, uint32_t reader) {
      auto it = body->definitions.find(name);
      if (it == body->definitions.end()) {
        if (outermost)
          context_.invalid("input " + quoted(name) + " is a value that nothing in the model makes");
        if (captured.insert(name).second) body->captures.push_back(name);
        return;
      }
      it->second.used = true;
      if (it->second.kind != Definition::kNode || reader == REGIE_NONE) return;
      readers[it->second.index].push_back(reader);
      ++waiting[reader];
    };

    for (uint32_t i = 0; i < count; ++i) {
      const NodeRef& ref = body->nodes[i];
      context_.at(ref.name, ref.node->op_type());
      for (const std::string& name : ref.node->input())
        if (!name.empty()) use(name, i);
      for (const wire::Attribute& a : ref.node->attribute()) {
        if (kind_of(a) == wire::Attribute::GRAPH) subgraph(body, i, a.name(), a.g());
        if (kind_of(a) == wire::Attribute::GRAPHS)
          for (const wire::Graph& g : a.graphs()) subgraph(body, i, a.name(), g);
      }
      auto it = body->subgraphs.find(i);
      if (it == body->subgraphs.end()) continue;
      context_.at(ref.name, ref.node->op_type());
      for (const auto& [name, child] : it->second)
        for (std::string_view capture : child->captures) use(capture, i);
    }
    for (const wire::ValueInfo& v : body->proto->output()) {
      place(prefix, "output " + quoted(v.name()));
      if (v.name().empty()) context_.invalid("an output has no name");
      if (outermost && !body->definitions.count(v.name())) context_.invalid("nothing in the model makes it");
      use(v.name(), REGIE_NONE);
    }
    sort(body, readers, std::move(waiting));
  }

  void subgraph(Body* body, uint32_t node, const std::string& attribute, const wire::Graph& g) {
    const NodeRef& ref = body->nodes[node];
    body->subgraphs[node].emplace_back(attribute,
                                       graph(g, *ref.opsets, ref.name + "/" + attribute + "/", false));
  }

  void sort(Body* body, const std::vector<std::vector<uint32_t>>& readers, std::vector<uint32_t> waiting) {
    // The ready node that comes first in the file: a file in order stays as it is.
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] == 0) ready.push(i);
    body->order.reserve(waiting.size());
    while (!ready.empty()) {
      const uint32_t i = ready.top();
      ready.pop();
      body->order.push_back(i);
      for (uint32_t r : readers[i])
        if (--waiting[r] == 0) ready.push(r);
    }
    if (body->order.size() < waiting.size()) cycle(*body, readers, waiting);
  }

  // Each node left waits for one that is left too; going back as many steps as there are nodes ends on a
  // cycle.
  [[noreturn]] void cycle(const Body& body, const std::vector<std::vector<uint32_t>>& readers,
                          const std::vector<uint32_t>& waiting) {
    std::vector<uint32_t> before(waiting.size(), REGIE_NONE);
    uint32_t at = REGIE_NONE;
    for (uint32_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i] == 0) continue;
      at = i;
      for (uint32_t r : readers[i]) before[r] = i;
    }
    for (size_t step = 0; step < waiting.size(); ++step) at = before[at];
    const NodeRef& ref = body.nodes[at];
    context_.at(ref.name, ref.node->op_type());
    context_.invalid("the node is on a cycle: it needs " + maker_of_input(body, at, before[at]) +
                     ", which needs this node's output");
  }

  static std::string maker_of_input(const Body& body, uint32_t node, uint32_t maker) {
    const NodeRef& from = body.nodes[maker];
    for (const std::string& output : from.node->output())
      for (const std::string& input : body.nodes[node].node->input())
        if (input == output && !input.empty())
          return "the value " + quoted(input) + " of node " + quoted(from.name);
    return "node " + quoted(from.name);
  }

  Context& context_;
  Functions& functions_;
  bool overridable_;
  std::unordered_set<std::string_view>* names_;
};

}  // namespace

std::unique_ptr<Body> analyse(Context& context, Functions& functions, const wire::Model& model,
                              bool overridable, std::unordered_set<std::string_view>* names) {
  return Analysis(context, functions, overridable, names)
      .graph(model.graph(), functions.model_opsets(), "", true);
}

}  // namespace regie::onnx
