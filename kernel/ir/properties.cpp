// Attributes, types, names, assignments: what hangs on nodes and values without changing the structure.
#include <algorithm>
#include <cassert>
#include <cstring>

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
  std::sort(copies, copies + attrs.size(),
            [](const regie_attr& a, const regie_attr& b) { return view_str(a.name) < view_str(b.name); });
  nodes_[node].attrs = copies;
  nodes_[node].attr_count = static_cast<uint32_t>(attrs.size());
  touch(node);
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

void Graph::touch(uint32_t node) {
  ++revision_;
  if (changed_flag_[node]) return;
  changed_flag_[node] = 1;
  changed_.push_back(node);
}

void Graph::touch_readers(uint32_t value) {
  for (regie_use u : uses_[value])
    if (!(u.node & REGIE_USE_REGION)) touch(u.node);
}

std::vector<uint32_t> Graph::take_changed() {
  std::vector<uint32_t> out;
  for (uint32_t n : changed_) {
    changed_flag_[n] = 0;
    if (live(n)) out.push_back(n);
  }
  changed_.clear();
  return out;
}

void Graph::set_type(uint32_t value, const regie_type& type) {
  assert(live_value(value));
  regie_type& t = values_[value].type;
  size_t bytes = type.rank > 0 ? static_cast<size_t>(type.rank) * sizeof(regie_dim) : 0;
  bool same_dims = t.rank == type.rank && (bytes == 0 || std::memcmp(t.dims, type.dims, bytes) == 0);
  if (same_dims && t.elem == type.elem && t.container == type.container && t.format == type.format &&
      t.origin_format == type.origin_format)
    return;
  const regie_dim* dims = t.dims;
  t = same_dims ? type : copy_type(type);
  if (same_dims) t.dims = dims;
  if (values_[value].kind == REGIE_VALUE_RESULT) touch(values_[value].owner);
  touch_readers(value);
}

void Graph::set_content(uint32_t value, std::span<const regie_dim> content) {
  assert(live_value(value));
  regie_value& v = values_[value];
  if (v.content_count == content.size() && (v.content != nullptr || content.empty()) &&
      std::equal(content.begin(), content.end(), v.content))
    return;
  v.content = arena_.copy(content);
  v.content_count = static_cast<uint32_t>(content.size());
  touch_readers(value);
}

void Graph::forget_type(uint32_t value) {
  assert(live_value(value));
  regie_value& v = values_[value];
  v.type = regie_type{REGIE_ELEM_UNKNOWN, REGIE_TENSOR, -1, nullptr, 0, 0};
  v.content = nullptr;
  v.content_count = 0;
  touch_readers(value);
}

void Graph::set_value_name(uint32_t value, std::string_view name) {
  assert(live_value(value));
  values_[value].name = str(arena_.copy(name));
}

void Graph::set_origins(uint32_t node, std::span<const uint32_t> origins) {
  std::vector<uint32_t> sorted(origins.begin(), origins.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  nodes_[node].origins = arena_.copy(std::span<const uint32_t>(sorted));
  nodes_[node].origin_count = static_cast<uint32_t>(sorted.size());
}

void Graph::set_control(uint32_t node, std::span<const uint32_t> control) {
  regie_node& n = nodes_[node];
  for (uint32_t k = 0; k < n.control_count; ++k) {
    auto it = control_readers_.find(n.control[k]);
    if (it != control_readers_.end()) it->second.erase(node);
  }
  std::vector<uint32_t> unique;
  std::set<uint32_t> seen;
  for (uint32_t c : control)
    if (seen.insert(c).second) unique.push_back(c);
  // A list that does not grow stays where it is: one that shrinks edge by edge would fill the arena
  // otherwise.
  if (unique.size() <= n.control_count)
    std::copy(unique.begin(), unique.end(), const_cast<uint32_t*>(n.control));
  else
    n.control = arena_.copy(std::span<const uint32_t>(unique));
  n.control_count = static_cast<uint32_t>(unique.size());
  for (uint32_t c : unique) control_readers_[c].insert(node);
}

const std::set<uint32_t>& Graph::control_readers(uint32_t node) const {
  static const std::set<uint32_t> kNone;
  auto it = control_readers_.find(node);
  return it == control_readers_.end() ? kNone : it->second;
}

void Graph::set_engines(std::vector<std::pair<std::string, regie_engine_ref>> engines) {
  engines_.clear();
  for (auto& [name, ref] : engines) {
    ref.name = str(arena_.copy(std::string_view(name)));
    ref.device = str(arena_.copy(view_str(ref.device)));
    engines_.push_back(ref);
  }
}

void Graph::set_alias(uint32_t value, uint32_t base, uint64_t offset) {
  assert(live_value(value) && (base == REGIE_NONE || live_value(base)));
  values_[value].alias_of = base;
  values_[value].alias_offset = base == REGIE_NONE ? 0 : offset;
}

}  // namespace regie
