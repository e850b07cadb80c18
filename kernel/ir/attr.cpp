#include <algorithm>

#include "ir/graph.h"

namespace regie {

AttrValue AttrValue::of(const regie_attr& a) {
  AttrValue out;
  out.name = view(a.name);
  out.kind = a.kind;
  switch (a.kind) {
    case REGIE_ATTR_INT:
      out.i = a.v.i;
      break;
    case REGIE_ATTR_FLOAT:
      out.f = a.v.f;
      break;
    case REGIE_ATTR_STRING:
      out.s = view(a.v.s);
      break;
    case REGIE_ATTR_INTS:
      out.ints.assign(a.v.ints, a.v.ints + a.count);
      break;
    case REGIE_ATTR_FLOATS:
      out.floats.assign(a.v.floats, a.v.floats + a.count);
      break;
    case REGIE_ATTR_STRINGS:
      for (uint32_t i = 0; i < a.count; ++i) out.strings.emplace_back(view(a.v.strs[i]));
      break;
    case REGIE_ATTR_TENSOR:
      out.tensor = Tensor::copy(*a.v.tensor);
      break;
    default:
      break;
  }
  return out;
}

AttrValue AttrValue::integer(std::string name, int64_t v) {
  AttrValue a;
  a.name = std::move(name);
  a.kind = REGIE_ATTR_INT;
  a.i = v;
  return a;
}

AttrValue AttrValue::number(std::string name, double v) {
  AttrValue a;
  a.name = std::move(name);
  a.kind = REGIE_ATTR_FLOAT;
  a.f = v;
  return a;
}

AttrValue AttrValue::text(std::string name, std::string v) {
  AttrValue a;
  a.name = std::move(name);
  a.kind = REGIE_ATTR_STRING;
  a.s = std::move(v);
  return a;
}

AttrValue AttrValue::integers(std::string name, std::vector<int64_t> v) {
  AttrValue a;
  a.name = std::move(name);
  a.kind = REGIE_ATTR_INTS;
  a.ints = std::move(v);
  return a;
}

void Graph::set_attrs(uint32_t node, std::span<const regie_attr> attrs) {
  regie_attr* copies = arena_.allocate<regie_attr>(attrs.size());
  for (size_t i = 0; i < attrs.size(); ++i) copies[i] = copy_attr(AttrValue::of(attrs[i]));
  nodes_[node].attrs = copies;
  nodes_[node].attr_count = static_cast<uint32_t>(attrs.size());
}

regie_attr Graph::copy_attr(const AttrValue& attr) {
  regie_attr a{};
  a.name = interned(attr.name);
  a.kind = attr.kind;
  a.count = 1;
  switch (attr.kind) {
    case REGIE_ATTR_INT:
      a.v.i = attr.i;
      break;
    case REGIE_ATTR_FLOAT:
      a.v.f = attr.f;
      break;
    case REGIE_ATTR_STRING:
      a.v.s = str(arena_.copy(std::string_view(attr.s)));
      break;
    case REGIE_ATTR_INTS:
      a.count = static_cast<uint32_t>(attr.ints.size());
      a.v.ints = arena_.copy(std::span<const int64_t>(attr.ints));
      break;
    case REGIE_ATTR_FLOATS:
      a.count = static_cast<uint32_t>(attr.floats.size());
      a.v.floats = arena_.copy(std::span<const double>(attr.floats));
      break;
    case REGIE_ATTR_STRINGS: {
      a.count = static_cast<uint32_t>(attr.strings.size());
      regie_str* copies = arena_.allocate<regie_str>(attr.strings.size());
      for (size_t i = 0; i < attr.strings.size(); ++i)
        copies[i] = str(arena_.copy(std::string_view(attr.strings[i])));
      a.v.strs = copies;
      break;
    }
    default:
      attr_tensors_.push_back(attr.tensor);
      a.v.tensor = &attr.tensor.view();
      break;
  }
  return a;
}

const regie_attr* Graph::find_attr(uint32_t node, std::string_view name) const {
  const regie_node& n = nodes_[node];
  const regie_attr* end = n.attrs + n.attr_count;
  const regie_attr* at = std::lower_bound(
      n.attrs, end, name, [](const regie_attr& a, std::string_view b) { return view_str(a.name) < b; });
  return at != end && view_str(at->name) == name ? at : nullptr;
}

}  // namespace regie
