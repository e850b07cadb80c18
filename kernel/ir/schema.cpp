#include "ir/schema.h"

#include <algorithm>

#include "base/toml.h"

namespace regie {

namespace {

std::string kind_name(uint32_t kind) {
  switch (kind) {
    case REGIE_ATTR_INT:
      return "an integer";
    case REGIE_ATTR_FLOAT:
      return "a float";
    case REGIE_ATTR_STRING:
      return "a string";
    case REGIE_ATTR_INTS:
      return "a list of integers";
    case REGIE_ATTR_FLOATS:
      return "a list of floats";
    case REGIE_ATTR_STRINGS:
      return "a list of strings";
    case REGIE_ATTR_TENSOR:
      return "a tensor";
    default:
      return "of an unknown kind";
  }
}

template <class T>
std::string list(const std::vector<T>& items, std::string (*text)(const T&)) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
  return out.empty() ? "none" : out;
}

std::string elems(const std::vector<regie_elem>& allowed) {
  return list<regie_elem>(allowed, [](const regie_elem& e) { return std::string(elem_name(e)); });
}

std::string describe_count(const std::vector<SchemaOperand>& operands) {
  size_t least = 0;
  for (const SchemaOperand& o : operands) least += !o.optional && !o.variadic;
  if (!operands.empty() && operands.back().variadic) return "at least " + std::to_string(least);
  if (least == operands.size()) return std::to_string(least);
  return std::to_string(least) + " to " + std::to_string(operands.size());
}

// Checks one side of a node against the schema, binding type keys. Every node comes here after each stage:
// words are made only for what is wrong.
struct SideCheck {
  struct Place {
    const char* what;  // "operand", "result"
    size_t index;
    const SchemaOperand* schema;
    std::string text() const {
      return std::string(what) + " " + std::to_string(index) + " (" + schema->name + ")";
    }
  };
  struct Bound {
    regie_elem elem;
    Place by;  // who fixed the key of its schema's type
  };
  const Graph& graph;
  uint32_t node;
  const OpSchema& op;
  std::vector<Bound> bound;

  Status wrong(const std::string& message) const {
    return invalid_model(graph.describe_node(node) + ": " + message);
  }

  Status check(std::span<const uint32_t> values, const std::vector<SchemaOperand>& schema, const char* what) {
    bool variadic = !schema.empty() && schema.back().variadic;
    if (values.size() > schema.size() && !variadic)
      return wrong("takes " + describe_count(schema) + " " + what + "s, not " +
                   std::to_string(values.size()));
    for (size_t i = 0; i < std::max(values.size(), schema.size()); ++i) {
      const SchemaOperand& s = schema[std::min(i, schema.size() - 1)];
      uint32_t v = i < values.size() ? values[i] : REGIE_NONE;
      if (v == REGIE_NONE) {
        // A result that nobody asked for is never missing.
        bool missing = !s.optional && !s.variadic && std::string_view(what) == "operand";
        if (missing || (s.variadic && i < values.size()))
          return wrong(Place{what, i, &s}.text() + " is missing");
        continue;
      }
      REGIE_TRY(check_type(v, {what, i, &s}));
    }
    return {};
  }

  Status check_type(uint32_t value, const Place& place) {
    const SchemaOperand& s = *place.schema;
    regie_elem elem = graph.value(value).type.elem;
    if (elem == REGIE_ELEM_UNKNOWN || s.type == kAnyType) return {};
    auto key = op.types.find(s.type);
    if (key == op.types.end()) {
      if (elem_from_name(s.type) == elem) return {};
      return wrong(place.text() + " is " + std::string(elem_name(elem)) + "; it must be " + s.type);
    }
    const std::vector<regie_elem>& allowed = key->second;
    if (std::find(allowed.begin(), allowed.end(), elem) == allowed.end())
      return wrong(place.text() + " is " + std::string(elem_name(elem)) + "; it may be " + elems(allowed));
    for (const Bound& b : bound) {
      if (b.by.schema->type != s.type) continue;
      if (b.elem == elem) return {};
      return wrong(place.text() + " is " + std::string(elem_name(elem)) + ", but " + b.by.text() + " is " +
                   std::string(elem_name(b.elem)) + "; both must be the same");
    }
    bound.push_back({elem, place});
    return {};
  }
};

regie_attr view_of(const AttrValue& a) {
  regie_attr v{};
  v.name = str(std::string_view(a.name));
  v.kind = a.kind;
  v.count = 1;
  switch (a.kind) {
    case REGIE_ATTR_INT:
      v.v.i = a.i;
      break;
    case REGIE_ATTR_FLOAT:
      v.v.f = a.f;
      break;
    case REGIE_ATTR_STRING:
      v.v.s = str(std::string_view(a.s));
      break;
    case REGIE_ATTR_INTS:
      v.count = static_cast<uint32_t>(a.ints.size());
      v.v.ints = a.ints.data();
      break;
    default:  // the only other kind that a schema can give a default for
      v.count = static_cast<uint32_t>(a.floats.size());
      v.v.floats = a.floats.data();
      break;
  }
  return v;
}

}  // namespace

const SchemaAttr* OpSchema::find_attr(std::string_view attr) const {
  for (const SchemaAttr& a : attrs)
    if (a.name == attr) return &a;
  return nullptr;
}

const OpSchema* SchemaSet::find(NameId op) const {
  auto it = ops_.find(op);
  return it == ops_.end() ? nullptr : &it->second;
}

std::vector<std::string> SchemaSet::names() const {
  std::vector<std::string> out;
  for (const auto& [id, op] : ops_) out.push_back(op.name);
  std::sort(out.begin(), out.end());
  return out;
}

std::string SchemaSet::written_out(std::string_view op) const {
  const auto it = written_out_.find(std::string(op));
  return it == written_out_.end() ? std::string() : it->second;
}

Status SchemaSet::check(const Graph& graph, uint32_t node) const {
  const regie_node& n = graph.node(node);
  const OpSchema* op = find(n.op_id);
  if (!op) {
    std::string name(view(n.op));
    auto near = nearest_name(name, names());
    return unsupported(graph.describe_node(node) + ": operator '" + name + "' is not known" +
                       (near ? " (is '" + *near + "' meant?)" : "") +
                       "; add a schema in configs/ops or on REGIE_PLUGIN_PATH, and a plug-in that knows it");
  }
  SideCheck side{graph, node, *op, {}};
  REGIE_TRY(side.check(graph.operands(node), op->operands, "operand"));
  REGIE_TRY(side.check(graph.results(node), op->results, "result"));
  for (uint32_t i = 0; i < n.attr_count; ++i) {
    const regie_attr& a = n.attrs[i];
    std::string name(view(a.name));
    const SchemaAttr* s = op->find_attr(name);
    if (!s && op->open_attrs) continue;
    if (!s) {
      std::vector<std::string> known;
      for (const SchemaAttr& k : op->attrs) known.push_back(k.name);
      return side.wrong("unknown attribute '" + name +
                        "'; known: " + list<std::string>(known, [](const std::string& k) { return k; }));
    }
    if (s->kind != a.kind)
      return side.wrong("attribute '" + name + "' is " + kind_name(a.kind) + "; it must be " +
                        kind_name(s->kind));
    if (!s->one_of.empty() && std::find(s->one_of.begin(), s->one_of.end(), view(a.v.s)) == s->one_of.end())
      return side.wrong("attribute '" + name + "' is '" + std::string(view(a.v.s)) + "'; it may be " +
                        list<std::string>(s->one_of, [](const std::string& k) { return k; }));
  }
  for (const SchemaAttr& s : op->attrs)
    if (s.required && !graph.find_attr(node, s.name))
      return side.wrong("attribute '" + s.name + "' is missing");
  if (n.region_count < op->min_regions || n.region_count > op->max_regions)
    return side.wrong("has " + std::to_string(n.region_count) + " regions; it must have " +
                      std::to_string(op->min_regions) +
                      (op->max_regions > op->min_regions ? " to " + std::to_string(op->max_regions) : ""));
  return {};
}

std::vector<regie_attr> SchemaSet::with_defaults(const Graph& graph, uint32_t node) const {
  const regie_node& n = graph.node(node);
  std::vector<regie_attr> out(n.attrs, n.attrs + n.attr_count);
  if (const OpSchema* op = find(n.op_id))
    for (const SchemaAttr& s : op->attrs)
      if (s.has_default && !graph.find_attr(node, s.name)) out.push_back(view_of(s.default_value));
  std::sort(out.begin(), out.end(),
            [](const regie_attr& a, const regie_attr& b) { return view(a.name) < view(b.name); });
  return out;
}

}  // namespace regie
