#include "passes/import_build.h"

#include <algorithm>

#include "base/elem.h"
#include "ir/verify.h"

namespace regie {

Status said_of(const Status& status, const std::string& where) {
  Status out = Status::error(status.code(), status.message(), where);
  if (status.code() != REGIE_BAD_PLUGIN && status.code() != REGIE_INTERNAL) return out;
  for (const std::string& c : status.context()) out = std::move(out).while_doing(c);
  return out;
}

Importer::Importer(const OpSet& ops, std::string path, std::span<const std::byte> bytes,
                   std::shared_ptr<const void> owner, const ImportSettings& settings)
    : regie_import{}, ops_(ops), path_(std::move(path)), options_(settings.options) {
  for (const auto& [name, value] : settings.sizes) graph_->dims().fix_symbol(name, value);
  source_.struct_size = sizeof(regie_source);
  source_.path = str(path_);
  source_.data = bytes.data();
  source_.size = bytes.size();
  source_.external = [](const regie_source* self, regie_str relative, uint64_t offset, uint64_t length,
                        const void** to, uint64_t* to_size) {
    Importer& i = *static_cast<const Source*>(self)->importer;
    return i.give(i.open_external(relative, offset, length, to, to_size));
  };
  source_.importer = this;
  if (owner) mappings_.push_back({bytes.data(), bytes.data() + bytes.size(), std::move(owner)});

  struct_size = sizeof(regie_import);
  host = host_table();
  source = &source_;
  regie_import::options = options_.get();
  edit = reinterpret_cast<regie_edit*>(this);
  edit_api = &edit_functions();
  dims = graph_->dims().handle();
  argument = [](const regie_import* self, regie_str name, const regie_type* type, uint32_t* to) {
    Importer& i = of(self);
    return i.give(i.add_argument(name, *type, to));
  };
  results = [](const regie_import* self, uint32_t count, const uint32_t* values, const regie_str* names) {
    Importer& i = of(self);
    return i.give(i.set_results({values, count}, names));
  };
  value = [](const regie_import* self, uint32_t id) -> const regie_value* {
    Importer& i = of(self);
    return i.graph_->live_value(id) ? &i.graph_->value(id) : nullptr;
  };
  set_graph_name = [](const regie_import* self, regie_str name) { of(self).graph_->set_name(view(name)); };
  set_origin = [](const regie_import* self, regie_str name, regie_str op) {
    of(self).set_origin_text(name, op);
  };
}

namespace {
// What only patches can do.
regie_status not_in_import(const char* what) {
  return fail_on_this_thread(
      bad_plugin(std::string("the frontend called '") + what + "', which is for passes only"));
}
}  // namespace

const regie_edit_api& Importer::edit_functions() {
  static const regie_edit_api api = [] {
    regie_edit_api a{};
    a.struct_size = sizeof(a);
    a.begin = [](regie_edit*, regie_str, uint32_t) { return not_in_import("begin"); };
    a.commit = [](regie_edit*) { return not_in_import("commit"); };
    a.abandon = [](regie_edit* e) {
      Importer& i = of(e);
      return i.give(i.abandon_region());
    };
    a.constant = [](regie_edit* e, uint32_t kind, const regie_tensor* tensor, regie_str name,
                    uint32_t* value) {
      Importer& i = of(e);
      return i.give(i.add_constant(kind, *tensor, name, value));
    };
    a.node = [](regie_edit* e, const regie_node_desc* desc, uint32_t* results) {
      Importer& i = of(e);
      return i.give(i.add_node(*desc, results));
    };
    a.open_region = [](regie_edit* e, regie_str name, uint32_t count, const regie_type* types,
                       const regie_str* names, uint32_t* region, uint32_t* args) {
      Importer& i = of(e);
      return i.give(i.open_region(name, {types, count}, names, region, args));
    };
    a.close_region = [](regie_edit* e, uint32_t count, const uint32_t* results) {
      Importer& i = of(e);
      return i.give(i.close_region({results, count}));
    };
    a.replace = [](regie_edit*, uint32_t, uint32_t) { return not_in_import("replace"); };
    a.remove = [](regie_edit*, uint32_t) { return not_in_import("remove"); };
    a.set_operand = [](regie_edit*, uint32_t, uint32_t, uint32_t) { return not_in_import("set_operand"); };
    a.inline_region = [](regie_edit*, uint32_t, uint32_t, const uint32_t*, uint32_t*) {
      return not_in_import("inline_region");
    };
    a.set_type = [](regie_edit*, uint32_t, const regie_type*) { return not_in_import("set_type"); };
    a.set_alias = [](regie_edit*, uint32_t, uint32_t, uint64_t, regie_str) {
      return not_in_import("set_alias");
    };
    a.set_engine = [](regie_edit*, uint32_t, uint32_t, regie_str) { return not_in_import("set_engine"); };
    a.set_space = [](regie_edit*, uint32_t, uint32_t) { return not_in_import("set_space"); };
    a.note = [](regie_edit*, uint32_t, regie_str, regie_str) { return not_in_import("note"); };
    return a;
  }();
  return api;
}

void Importer::set_origin_text(regie_str name, regie_str op) {
  if (op.size == 0) {
    place_ = view(name);
    origin_.clear();
  } else {
    place_ = "node '" + std::string(view(name)) + "' (" + std::string(view(op)) + ")";
    origin_ = std::string(view(name)) + " (" + std::string(view(op)) + ")";
  }
}

// Says the user's file and node; what the status itself names is one of ours.
Status Importer::placed(Status status) const { return status.ok() ? status : said_of(status, place()); }

Status Importer::open_external(regie_str relative, uint64_t offset, uint64_t length, const void** data,
                               uint64_t* size) {
  auto resolved = resolve_beside(path_, view(relative));
  if (!resolved.ok()) return placed(resolved.status());
  external_names_.emplace(view(relative));
  auto it = files_.find(*resolved);
  if (it == files_.end()) {
    auto file = MappedFile::open(*resolved);
    if (!file.ok()) return placed(file.status());
    it = files_.emplace(*resolved, std::move(file).value()).first;
    auto bytes = it->second.bytes();
    mappings_.push_back({bytes.data(), bytes.data() + bytes.size(), it->second.owner()});
  }
  auto bytes = it->second.bytes();
  if (offset > bytes.size() || length > bytes.size() - offset)
    return corrupt("external file '" + std::string(view(relative)) + "' has " + std::to_string(bytes.size()) +
                       " bytes; " + std::to_string(length) + " are needed from byte " +
                       std::to_string(offset) + " on: the file is truncated or belongs to another model",
                   place());
  *data = bytes.data() + offset;
  *size = length ? length : bytes.size() - offset;
  return {};
}

Status Importer::check_type(const regie_type& type, std::string_view what) const {
  if (type.container != REGIE_TENSOR) return unsupported(std::string(what) + " is not a tensor", place());
  if (type.rank < 0 || (type.rank > 0 && !type.dims)) return broken("gave " + std::string(what) + " no rank");
  if (elem_name(type.elem) == "?") return broken("gave " + std::string(what) + " an unknown element type");
  for (int32_t i = 0; i < type.rank; ++i)
    if (type.dims[i] == REGIE_DIM_UNKNOWN)
      return broken("gave " + std::string(what) + " an unknown dimension");
  return {};
}

Status Importer::add_argument(regie_str name, const regie_type& type, uint32_t* value) {
  if (open_.size() != 1) return broken("made an argument while a region was open");
  const std::string what = "input '" + std::string(view(name)) + "'";
  REGIE_TRY(check_type(type, what));
  if (name.size == 0 || arguments_.count(view(name)))
    return invalid_model("there are two inputs '" + std::string(view(name)) + "', or one has no name",
                         place());
  *value = graph_->add_argument(0, graph_->copy_type(type), view(name));
  arguments_.emplace(view(name), *value);
  return {};
}

// A node reads values of its own region, and constants and weights of the ones around it.
bool Importer::visible(uint32_t value) const {
  if (!graph_->live_value(value)) return false;
  const regie_value& v = graph_->value(value);
  const uint32_t region = v.kind == REGIE_VALUE_RESULT ? graph_->node(v.owner).region : v.owner;
  if (region == here()) return true;
  return graph_->is_constant(value) && std::find(open_.begin(), open_.end(), region) != open_.end();
}

Status Importer::set_results(std::span<const uint32_t> values, const regie_str* names) {
  if (open_.size() != 1 || has_results_) return broken("set the results twice or inside a region");
  std::set<std::string_view> seen;
  std::vector<std::string> names_of, told_names;
  std::vector<uint32_t> all, told, shapes;
  bool renamed = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string name(view(names[i]));
    if (!visible(values[i]))
      return broken("names value " + std::to_string(values[i]) + " as output '" + name + "'");
    if (name.empty() && !all.empty() && shapes.back() == REGIE_NONE) {
      // The dimensions of the output before, of which the run alone tells how many there are.
      const regie_type& type = graph_->value(values[i]).type;
      if (type.elem != REGIE_I64 || type.rank != 1)
        return broken("gave output '" + names_of.back() + "' dimensions that are no list of i64");
      shapes.back() = static_cast<uint32_t>(told.size());
      told.push_back(values[i]);
      // Nobody outside sees it: it is called as its value, as in text.
      if (view(graph_->value(values[i]).name).empty())
        graph_->set_value_name(values[i], names_of.back() + " dimensions");
      told_names.emplace_back(view(graph_->value(values[i]).name));
      renamed = true;
      continue;
    }
    if (name.empty() || !seen.insert(view(names[i])).second)
      return invalid_model("there are two outputs '" + name + "', or one has no name", place());
    all.push_back(values[i]);
    names_of.push_back(name);
    shapes.push_back(REGIE_NONE);
    // A graph's results are named by their values, unless one value has several names.
    const std::string_view has = view(graph_->value(values[i]).name);
    if (has.empty()) {
      graph_->set_value_name(values[i], name);
    } else if (has != name) {
      renamed = true;
    }
  }
  for (uint32_t& s : shapes)
    if (s != REGIE_NONE) s += static_cast<uint32_t>(all.size());
  all.insert(all.end(), told.begin(), told.end());
  for (std::string& name : told_names) {
    while (seen.count(name)) name += '_';
    seen.insert(name);
    names_of.push_back(name);
  }
  graph_->set_region_results(0, all);
  if (renamed) graph_->set_output_names(names_of);
  if (!told.empty()) {
    shapes.resize(all.size(), REGIE_NONE);
    graph_->set_output_shapes(std::move(shapes));
  }
  has_results_ = true;
  return {};
}

Status Importer::add_constant(uint32_t kind, const regie_tensor& t, regie_str name, uint32_t* value) {
  if (kind != REGIE_VALUE_CONSTANT && kind != REGIE_VALUE_WEIGHT)
    return broken("made a constant of unknown kind");
  const std::string what = "constant '" + std::string(view(name)) + "'";
  if (t.rank < 0 || elem_name(t.elem) == "?" || t.strides) return broken("gave " + what + " no dense type");
  const std::span<const int64_t> dims(t.dims, static_cast<size_t>(t.rank));
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    return broken("gave " + what + " a negative dimension");
  const uint64_t bytes = elem_bytes(t.elem, static_cast<uint64_t>(element_count(dims)));
  if (t.bytes != bytes || (bytes && !t.data))
    return broken("gave " + what + " " + std::to_string(t.bytes) + " bytes where " + std::to_string(bytes) +
                  " belong");
  const auto* data = static_cast<const std::byte*>(t.data);
  const uint64_t alignment = std::max<uint64_t>(1, std::min<uint64_t>(8, elem_bits(t.elem) / 8));
  Tensor tensor;
  if (t.elem != REGIE_STRING && bytes != 0 && reinterpret_cast<uintptr_t>(data) % alignment == 0)
    for (const Mapping& m : mappings_)
      if (data >= m.begin && data + bytes <= m.end) {
        tensor = Tensor::borrow(t.elem, dims, data, m.owner);
        break;
      }
  if (!tensor) {
    Result<Tensor> copied = Tensor::try_copy(t, what);
    if (!copied.ok()) return Status::error(copied.status().code(), copied.status().message(), place());
    tensor = std::move(copied).value();
  }
  // A weight of an input's name is what a run computes with that does not give the input.
  if (const auto input = arguments_.find(view(name));
      kind == REGIE_VALUE_WEIGHT && here() == 0 && input != arguments_.end()) {
    *value = input->second;
    return placed(graph_->set_default(input->second, std::move(tensor)));
  }
  *value = graph_->add_constant(here(), kind, std::move(tensor), view(name));
  return {};
}

Status Importer::add_node(const regie_node_desc& d, uint32_t* results) {
  if (d.op.size == 0) return broken("made a node without operator");
  NodeSpec spec;
  spec.op = view(d.op);
  spec.name = view(d.name);
  for (uint32_t i = 0; i < d.operand_count; ++i) {
    if (d.operands[i] != REGIE_NONE && !visible(d.operands[i]))
      return broken("made a node that reads value " + std::to_string(d.operands[i]) +
                    ", which is not visible here");
    spec.operands.push_back(d.operands[i]);
  }
  for (uint32_t i = 0; i < d.attr_count; ++i) spec.attrs.push_back(AttrValue::of(d.attrs[i]));
  for (uint32_t i = 0; i < d.region_count; ++i) {
    if (detached_.erase(d.regions[i]) == 0)
      return broken("gave a node a region that is open, taken or not there");
    spec.regions.push_back(d.regions[i]);
  }
  for (uint32_t i = 0; i < d.control_count; ++i) {
    if (!graph_->live(d.control[i]) || graph_->node(d.control[i]).region != here())
      return broken("made a control edge from a node that is not in this region");
    spec.control.push_back(d.control[i]);
  }
  spec.result_count = d.result_count;
  for (uint32_t i = 0; i < d.result_count; ++i) {
    spec.result_names.emplace_back(d.result_names ? view(d.result_names[i]) : std::string_view());
    spec.omitted.push_back(d.results_omitted && d.results_omitted[i]);
  }
  std::string origin = origin_;
  if (origin.empty()) origin = (spec.name.empty() ? "" : spec.name + " ") + "(" + spec.op + ")";
  spec.origins = {graph_->add_origin(origin)};
  const uint32_t node = graph_->add_node(here(), spec);
  if (place_.empty()) place_ = graph_->describe_node(node);
  REGIE_TRY(placed(ops_.check(*graph_, node)));
  REGIE_TRY(placed(ops_.infer(*graph_, node)));
  auto made = graph_->results(node);
  std::copy(made.begin(), made.end(), results);
  if (origin_.empty()) place_.clear();
  return {};
}

Status Importer::open_region(regie_str name, std::span<const regie_type> types, const regie_str* names,
                             uint32_t* region, uint32_t* args) {
  for (const regie_type& t : types)
    REGIE_TRY(check_type(t, "an argument of region '" + std::string(view(name)) + "'"));
  *region = graph_->add_region(view(name), here());
  for (size_t i = 0; i < types.size(); ++i)
    args[i] = graph_->add_argument(*region, graph_->copy_type(types[i]),
                                   names ? view(names[i]) : std::string_view());
  open_.push_back(*region);
  return {};
}

Status Importer::close_region(std::span<const uint32_t> values) {
  if (open_.size() == 1) return broken("closed a region that is not open");
  for (uint32_t v : values)
    if (!visible(v))
      return broken("gave a region value " + std::to_string(v) + " as result, which is not visible there");
  graph_->set_region_results(here(), values);
  detached_.insert(here());
  open_.pop_back();
  return {};
}

// A region that turned out not to be what is wanted goes, with all that is in it, and with it those that were
// closed beside it and that no node has taken.
Status Importer::abandon_region() {
  if (open_.size() == 1) return broken("abandoned a region that is not open");
  const uint32_t outer = graph_->scope(here());
  auto inside = [&](uint32_t region) {
    for (; region != REGIE_NONE; region = graph_->scope(region))
      if (region == here()) return true;
    return false;
  };
  std::vector<uint32_t> gone;
  for (uint32_t r : detached_)
    if (graph_->scope(r) == outer || inside(r)) gone.push_back(r);
  gone.push_back(here());
  for (uint32_t r : gone) {
    detached_.erase(r);
    graph_->remove_region(r);
  }
  open_.pop_back();
  return {};
}

std::string_view Importer::input_with_default() const {
  for (uint32_t i = 0; i < graph_->region(0).arg_count; ++i)
    if (const uint32_t v = graph_->region(0).args[i]; graph_->default_of(v))
      return view(graph_->value(v).name);
  return {};
}

Result<std::unique_ptr<Graph>> Importer::finish(const std::string& frontend) {
  place_.clear();
  if (!has_results_ || open_.size() != 1 || !detached_.empty())
    return bad_plugin("frontend '" + frontend + "' stopped before the graph was complete", path_);
  VerifyOptions options;
  options.ops = &ops_;
  Status s = verify(*graph_, options);
  if (!s.ok()) return bad_plugin("frontend '" + frontend + "' built a wrong graph: " + s.to_string(), path_);
  return std::move(graph_);
}

}  // namespace regie
