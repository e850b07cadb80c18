// The C table over Edit. Nothing thrown here leaves it; every failure goes through the sink of the plug-in
// host.
#include <atomic>
#include <new>

#include "ir/edit.h"

namespace regie {

namespace {
std::atomic<regie_status (*)(const Status&)> failure_sink{nullptr};

regie_status report(const Status& status) {
  if (status.ok()) return REGIE_OK;
  auto* sink = failure_sink.load();
  return sink ? sink(status) : status.code();
}

template <class F>
regie_status guarded(regie_edit* edit, F&& body) noexcept {
  try {
    if (!edit) return report(bad_plugin("an edit function was called without its edit"));
    return report(body(Edit::from(edit)));
  } catch (const std::bad_alloc&) {
    return report(Status::error(REGIE_OUT_OF_MEMORY, "out of memory while recording a patch"));
  } catch (const std::exception& e) {
    return report(internal_error(e.what()));
  }
}

std::string_view sv(regie_str s) { return s.data ? std::string_view(s.data, s.size) : std::string_view(); }

Status need(bool ok, const char* what) { return ok ? Status() : bad_plugin(what); }

std::string text(regie_str s) { return std::string(sv(s)); }

Status check_attr(const regie_attr& a) {
  bool list = a.kind == REGIE_ATTR_INTS || a.kind == REGIE_ATTR_FLOATS || a.kind == REGIE_ATTR_STRINGS;
  if (list && a.count && !a.v.ints)
    return bad_plugin("attribute '" + text(a.name) + "' is a list without data");
  if (a.kind == REGIE_ATTR_TENSOR) {
    const regie_tensor* t = a.v.tensor;
    bool sound = t && t->rank >= 0 && (t->rank == 0 || t->dims) && (t->bytes == 0 || t->data);
    if (!sound) return bad_plugin("attribute '" + text(a.name) + "' is a tensor without dimensions or data");
  }
  return {};
}

Result<NodeSpec> to_spec(const regie_node_desc& d) {
  bool sound = d.struct_size >= sizeof(regie_node_desc) && (!d.operand_count || d.operands) &&
               (!d.attr_count || d.attrs) && (!d.region_count || d.regions) &&
               (!d.control_count || d.control);
  if (!sound) return bad_plugin("a node description has a count without its list, or is of another version");
  NodeSpec spec;
  spec.op = sv(d.op);
  spec.name = sv(d.name);
  spec.operands.assign(d.operands, d.operands + d.operand_count);
  for (uint32_t i = 0; i < d.attr_count; ++i) {
    REGIE_TRY(check_attr(d.attrs[i]));
    spec.attrs.push_back(AttrValue::of(d.attrs[i]));
  }
  spec.regions.assign(d.regions, d.regions + d.region_count);
  spec.control.assign(d.control, d.control + d.control_count);
  spec.result_count = d.result_count;
  for (uint32_t i = 0; d.result_names && i < d.result_count; ++i)
    spec.result_names.push_back(text(d.result_names[i]));
  for (uint32_t i = 0; d.results_omitted && i < d.result_count; ++i)
    spec.omitted.push_back(d.results_omitted[i] != 0);
  return spec;
}

regie_status api_begin(regie_edit* e, regie_str title, uint32_t anchor) {
  return guarded(e, [&](Edit& edit) { return edit.begin(sv(title), anchor); });
}
regie_status api_commit(regie_edit* e) {
  return guarded(e, [](Edit& edit) { return edit.commit(); });
}
regie_status api_abandon(regie_edit* e) {
  return guarded(e, [](Edit& edit) { return edit.abandon(); });
}
regie_status api_constant(regie_edit* e, uint32_t kind, const regie_tensor* tensor, regie_str name,
                          uint32_t* value) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_TRY(need(tensor && value, "constant() without a tensor or a place for its id"));
    REGIE_ASSIGN(*value, edit.constant(kind, *tensor, sv(name)));
    return {};
  });
}
regie_status api_node(regie_edit* e, const regie_node_desc* desc, uint32_t* results) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_TRY(need(desc && (results || desc->result_count == 0),
                   "node() without a description or a place for its results"));
    REGIE_ASSIGN(NodeSpec spec, to_spec(*desc));
    REGIE_ASSIGN(std::vector<uint32_t> ids, edit.node(std::move(spec)));
    std::copy(ids.begin(), ids.end(), results);
    return {};
  });
}
regie_status api_open_region(regie_edit* e, regie_str name, uint32_t arg_count, const regie_type* types,
                             const regie_str* names, uint32_t* region, uint32_t* args) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_TRY(need(region && (arg_count == 0 || (types && args)),
                   "open_region() without types or a place for its ids"));
    std::vector<std::string> texts;
    for (uint32_t i = 0; names && i < arg_count; ++i) texts.push_back(text(names[i]));
    for (uint32_t i = 0; i < arg_count; ++i)
      REGIE_TRY(need(types[i].rank <= 0 || types[i].dims, "open_region() with a type without dimensions"));
    std::vector<uint32_t> ids;
    REGIE_ASSIGN(*region, edit.open_region(sv(name), {types, arg_count}, texts, &ids));
    std::copy(ids.begin(), ids.end(), args);
    return {};
  });
}
regie_status api_close_region(regie_edit* e, uint32_t count, const uint32_t* results) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_TRY(need(results || count == 0, "close_region() without results"));
    return edit.close_region({results, count});
  });
}
regie_status api_replace(regie_edit* e, uint32_t old_value, uint32_t new_value) {
  return guarded(e, [&](Edit& edit) { return edit.replace(old_value, new_value); });
}
regie_status api_remove(regie_edit* e, uint32_t node) {
  return guarded(e, [&](Edit& edit) { return edit.remove(node); });
}
regie_status api_set_operand(regie_edit* e, uint32_t node, uint32_t operand, uint32_t value) {
  return guarded(e, [&](Edit& edit) { return edit.set_operand(node, operand, value); });
}
regie_status api_inline_region(regie_edit* e, uint32_t node, uint32_t which, const uint32_t* args,
                               uint32_t* results) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_ASSIGN(uint32_t count, edit.region_arg_count(node, which));
    REGIE_TRY(need(args || count == 0, "inline_region() without arguments"));
    REGIE_ASSIGN(std::vector<uint32_t> ids, edit.inline_region(node, which, {args, count}));
    REGIE_TRY(need(results || ids.empty(), "inline_region() without a place for its results"));
    std::copy(ids.begin(), ids.end(), results);
    return {};
  });
}
regie_status api_set_type(regie_edit* e, uint32_t value, const regie_type* type) {
  return guarded(e, [&](Edit& edit) -> Status {
    REGIE_TRY(need(type && (type->rank <= 0 || type->dims), "set_type() without a type"));
    return edit.set_type(value, *type);
  });
}
regie_status api_set_alias(regie_edit* e, uint32_t value, uint32_t base, uint64_t offset, regie_str reason) {
  return guarded(e, [&](Edit& edit) { return edit.set_alias(value, base, offset, sv(reason)); });
}
regie_status api_set_engine(regie_edit* e, uint32_t node, uint32_t engine, regie_str reason) {
  return guarded(e, [&](Edit& edit) { return edit.set_engine(node, engine, sv(reason)); });
}
regie_status api_set_space(regie_edit* e, uint32_t value, uint32_t space) {
  return guarded(e, [&](Edit& edit) { return edit.set_space(value, space); });
}
regie_status api_note(regie_edit* e, uint32_t node, regie_str kind, regie_str words) {
  return guarded(e, [&](Edit& edit) {
    edit.note(node, sv(kind), sv(words));
    return Status();
  });
}
}  // namespace

const regie_edit_api* edit_api() {
  static const regie_edit_api api = {sizeof(regie_edit_api),
                                     0,
                                     api_begin,
                                     api_commit,
                                     api_abandon,
                                     api_constant,
                                     api_node,
                                     api_open_region,
                                     api_close_region,
                                     api_replace,
                                     api_remove,
                                     api_set_operand,
                                     api_inline_region,
                                     api_set_type,
                                     api_set_alias,
                                     api_set_engine,
                                     api_set_space,
                                     api_note};
  return &api;
}

void set_edit_failure_sink(regie_status (*sink)(const Status& status)) { failure_sink = sink; }

}  // namespace regie
