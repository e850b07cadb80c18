#include <algorithm>
#include <unordered_map>

#include "text/elements.h"
#include "text/grammar.h"
#include "text/text.h"

namespace regie {

namespace {

void print_type_to(std::string& out, const Graph& graph, const regie_type& t) {
  bool opt = t.container == REGIE_OPTIONAL || t.container == REGIE_OPTIONAL_SEQUENCE;
  bool seq = t.container == REGIE_SEQUENCE || t.container == REGIE_OPTIONAL_SEQUENCE;
  if (opt) out += "opt(";
  if (seq) out += "seq(";
  out += elem_name(t.elem);
  out += '[';
  if (t.rank < 0) out += '*';
  for (int32_t i = 0; i < t.rank; ++i) {
    if (i) out += ',';
    if (t.dims[i] >= 0) {
      out += std::to_string(t.dims[i]);
    } else if (t.dims[i] == REGIE_DIM_UNKNOWN) {
      out += '?';
    } else {
      out += graph.dims().print(t.dims[i]);
    }
  }
  out += ']';
  if (seq) out += ')';
  if (opt) out += ')';
  if (t.format == REGIE_FORMAT_ND && t.origin_format == REGIE_FORMAT_ND) return;
  out += ':' + spell_format(t.format);
  if (t.origin_format != REGIE_FORMAT_ND) out += '/' + spell_format(t.origin_format);
}

// Nothing at all is known: not printed.
bool blank(const regie_type& t) {
  return t.elem == REGIE_ELEM_UNKNOWN && t.rank < 0 && t.container == REGIE_TENSOR &&
         t.format == REGIE_FORMAT_ND && t.origin_format == REGIE_FORMAT_ND;
}

void print_elements(std::string& out, const regie_tensor& t) {
  uint64_t count =
      spelled_count(t.elem, static_cast<uint64_t>(element_count({t.dims, static_cast<size_t>(t.rank)})));
  bool list = t.rank != 0 || count != 1;
  if (list) out += '[';
  for (uint64_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    out += spell_element(t.elem, t.data, i);
  }
  if (list) out += ']';
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options) : g_(graph), options_(options) {}

  std::string graph() {
    labels_.resize(g_.value_count());
    out_ = "graph ";
    if (!g_.name().empty()) out_ += '@' + spell_name(g_.name());
    const regie_region& top = g_.region(0);
    enter(0);
    out_ += '(';
    bool first = true;
    auto parameter = [&](uint32_t v, const char* word) {
      out_ += first ? "" : ", ";
      first = false;
      out_ += label_of(v);
      out_ += ": ";
      out_ += word;
      type_and_assignments(v);
    };
    for (uint32_t i = 0; i < top.arg_count; ++i) {
      parameter(top.args[i], "");
      if (const Tensor* t = g_.default_of(top.args[i])) default_value(*t);
    }
    for (uint32_t v : frames_.back().constants)
      if (!g_.value(v).data) parameter(v, g_.value(v).kind == REGIE_VALUE_WEIGHT ? "weight " : "const ");
    out_ += ") -> (";
    std::vector<bool> told(top.result_count);  // stands beside the output that it tells the dimensions of
    for (uint32_t i = 0; i < top.result_count; ++i)
      if (const uint32_t shape = g_.output_shape(i); shape != REGIE_NONE) told[shape] = true;
    for (uint32_t i = 0; i < top.result_count; ++i) {
      if (told[i]) continue;
      result_later(i ? ", " : "", top.results[i], i);
      if (const uint32_t shape = g_.output_shape(i); shape != REGIE_NONE)
        result_later(" shaped ", top.results[shape], REGIE_NONE);
    }
    out_ += ')';
    symbols();
    engines();
    out_ += " {\n";
    body();
    out_ += "}\n";
    fill_results();
    return std::move(out_);
  }

  std::string one_node(uint32_t n) {
    enter_lone(n);
    node(n);
    const regie_node& node = g_.node(n);
    for (uint32_t k = 0; k < node.region_count; ++k) {
      const regie_region& r = g_.region(node.regions[k]);
      out_ += " region";
      if (r.name.size) out_ += " @" + spell_name(view(r.name));
      out_ += " {…}";
    }
    return std::move(out_);
  }

 private:
  struct Frame {
    uint32_t region, node;  // `node` is printed next
    uint32_t next_region;   // of the node whose regions are being printed
    uint32_t owner;
    std::vector<uint32_t> constants;
  };
  struct LaterResult {
    size_t at;
    uint32_t value, output;  // REGIE_NONE: no output name
  };

  // Values of one name are told apart by #n, in the whole graph, so that an alias may name any.
  void label(uint32_t v) {
    std::string_view name = view(g_.value(v).name);
    label_of(v) = name.empty() ? "%" + std::to_string(unnamed_++) : spell_value(name, names_[name]++);
  }

  void enter(uint32_t region) {
    const regie_region& r = g_.region(region);
    frames_.push_back({region, r.first, 0, REGIE_NONE, g_.constants(region)});
    for (uint32_t i = 0; i < r.arg_count; ++i) label(r.args[i]);
    // In the order of the text: those without data stand among the graph's parameters.
    std::vector<uint32_t>& constants = frames_.back().constants;
    if (region == 0)
      std::stable_partition(constants.begin(), constants.end(),
                            [&](uint32_t v) { return !g_.value(v).data; });
    for (uint32_t v : constants) label(v);
  }

  std::string& label_of(uint32_t v) { return lone_ ? lone_labels_[v] : labels_[v]; }

  // Labels of what one node touches, for messages.
  void enter_lone(uint32_t n) {
    lone_ = true;
    auto give = [&](uint32_t v) {
      if (v == REGIE_NONE) return;
      std::string_view name = view(g_.value(v).name);
      label_of(v) = name.empty() ? "%" + std::to_string(v) : spell_value(name);
    };
    for (uint32_t v : g_.operands(n)) give(v);
    for (uint32_t v : g_.results(n)) give(v);
    for (uint32_t k = 0; k < g_.node(n).control_count; ++k)
      for (uint32_t v : g_.results(g_.node(n).control[k])) give(v);
  }

  // Results stand before the body that makes them, so their labels are filled in at the end.
  void result_later(const char* separator, uint32_t value, uint32_t output) {
    out_ += separator;
    later_.push_back({out_.size(), value, output});
  }

  void fill_results() {
    std::string filled;
    filled.reserve(out_.size() + later_.size() * 16);
    size_t from = 0;
    for (const LaterResult& l : later_) {
      filled.append(out_, from, l.at - from);
      from = l.at;
      filled += label_of(l.value);
      if (l.output == REGIE_NONE) continue;
      std::string_view own = view(g_.value(l.value).name), name = g_.output_name(l.output);
      bool plain = own.empty() ? name == "output_" + std::to_string(l.output) : own == name;
      if (!plain) filled += " as " + quote(name);
    }
    filled.append(out_, from);
    out_ = std::move(filled);
  }

  void symbols() {
    std::vector<const DimSymbol*> shown;
    for (size_t i = 0; i < g_.dims().symbol_count(); ++i) {
      const DimSymbol& s = g_.dims().symbol_at(i);
      if (s.lower != 0 || s.upper != INT64_MAX || s.data_dependent) shown.push_back(&s);
    }
    std::sort(shown.begin(), shown.end(), [](auto* a, auto* b) { return a->name < b->name; });
    for (size_t i = 0; i < shown.size(); ++i) {
      const DimSymbol& s = *shown[i];
      out_ += i ? ", " : " where ";
      out_ += g_.dims().print(*g_.dims().find_symbol(s.name)) + " in " + std::to_string(s.lower) + "..";
      if (s.upper != INT64_MAX) out_ += std::to_string(s.upper);
      if (s.data_dependent) out_ += " data";
    }
  }

  void engines() {
    const regie_graph& v = g_.view();
    if (!options_.assignments || v.engine_count == 0) return;
    bool placed = false;
    g_.for_each_node([&](uint32_t n) { placed = placed || g_.node(n).engine != REGIE_NONE; });
    if (!placed) return;
    out_ += " on ";
    for (uint32_t i = 0; i < v.engine_count; ++i) {
      const regie_engine_ref& e = v.engines[i];
      out_ += (i ? ", " : "") + quote(view(e.name)) + " = " + quote(view(e.device)) + ' ' +
              number_or_none(e.device_index) + " space " + number_or_none(e.space);
    }
  }

  static std::string number_or_none(uint32_t n) { return n == REGIE_NONE ? "_" : std::to_string(n); }

  // Up to a depth; beyond it, spaces would outweigh the text.
  void indent() { out_.append(2 * std::min<size_t>(frames_.size(), 40), ' '); }

  void constant(uint32_t v) {
    const regie_value& value = g_.value(v);
    out_ += label_of(v);
    out_ += value.kind == REGIE_VALUE_WEIGHT ? ": weight " : ": const ";
    type_and_assignments(v);
    if (!value.data) return;
    out_ += " = ";
    const regie_tensor& t = *value.data;
    std::span<const int64_t> dims(t.dims, static_cast<size_t>(t.rank));
    bool same_dims = t.rank == value.type.rank && std::equal(dims.begin(), dims.end(), value.type.dims);
    if (same_dims && static_cast<uint64_t>(element_count(dims)) <= options_.inline_elements) {
      print_elements(out_, t);
    } else {
      out_ += "digest(\"" + g_.tensor(v).digest() + "\")";
    }
  }

  // With its own type, as the argument's may have symbols.
  void default_value(const Tensor& t) {
    const regie_tensor& view = t.view();
    regie_type type{};
    type.elem = view.elem;
    type.rank = view.rank;
    type.dims = view.dims;
    out_ += " = ";
    print_type_to(out_, g_, type);
    out_ += ' ';
    if (static_cast<uint64_t>(t.count()) <= options_.inline_elements) {
      print_elements(out_, view);
    } else {
      out_ += "digest(\"" + t.digest() + "\")";
    }
  }

  void constants() {
    const Frame& f = frames_.back();
    for (uint32_t v : f.constants) {
      if (f.region == 0 && !g_.value(v).data) continue;  // among the parameters
      indent();
      constant(v);
      out_ += '\n';
    }
  }

  // Prints the region of the top frame and all that is nested in it.
  void body() {
    constants();
    while (!frames_.empty()) {
      Frame& f = frames_.back();
      if (f.owner != REGIE_NONE) {
        const regie_node& n = g_.node(f.owner);
        if (f.next_region < n.region_count) {
          uint32_t r = n.regions[f.next_region++];
          open_region(r);
          continue;
        }
        out_ += '\n';
        f.owner = REGIE_NONE;
      }
      if (f.node == REGIE_NONE) {
        frames_.pop_back();
        if (frames_.empty()) return;
        indent();
        out_ += '}';
        continue;
      }
      uint32_t n = f.node;
      f.node = g_.node(n).next;
      for (uint32_t v : g_.results(n))
        if (v != REGIE_NONE) label(v);
      indent();
      node(n);
      f.owner = n;
      f.next_region = 0;
    }
  }

  void open_region(uint32_t region) {
    const regie_region& r = g_.region(region);
    out_ += " region";
    if (r.name.size) out_ += " @" + spell_name(view(r.name));
    out_ += '(';
    enter(region);
    for (uint32_t i = 0; i < r.arg_count; ++i) {
      out_ += (i ? ", " : "") + label_of(r.args[i]) + ": ";
      type_and_assignments(r.args[i]);
    }
    out_ += ") -> (";
    for (uint32_t i = 0; i < r.result_count; ++i) result_later(i ? ", " : "", r.results[i], REGIE_NONE);
    out_ += ") {\n";
    constants();
  }

  void type_and_assignments(uint32_t v) {
    print_type_to(out_, g_, g_.value(v).type);
    assignments(v);
  }

  void assignments(uint32_t v) {
    if (!options_.assignments) return;
    const regie_value& value = g_.value(v);
    if (value.space != REGIE_NONE) out_ += " @space(" + std::to_string(value.space) + ')';
    if (value.alias_of == REGIE_NONE) return;
    // The base may be made further down, as the results of regions are.
    out_ += " @alias(";
    if (lone_) {
      out_ += '#' + std::to_string(value.alias_of);
    } else {
      later_.push_back({out_.size(), value.alias_of, REGIE_NONE});
    }
    out_ += ", " + std::to_string(value.alias_offset) + ')';
  }

  void node(uint32_t id) {
    const regie_node& n = g_.node(id);
    for (uint32_t i = 0; i < n.result_count; ++i) {
      uint32_t v = n.results[i];
      out_ += i ? ", " : "";
      if (v == REGIE_NONE) {
        out_ += '_';
        continue;
      }
      out_ += label_of(v);
      if (!blank(g_.value(v).type)) {
        out_ += ": ";
        print_type_to(out_, g_, g_.value(v).type);
      }
      assignments(v);
    }
    if (n.result_count) out_ += " = ";
    std::string op = spell_name(view(n.op));
    out_ += op == "region" || op == "_" ? quote(op) : op;
    out_ += '(';
    for (uint32_t i = 0; i < n.operand_count; ++i) {
      out_ += i ? ", " : "";
      out_ += n.operands[i] == REGIE_NONE ? "_" : label_of(n.operands[i]);
    }
    out_ += ')';
    attributes(n);
    if (n.name.size) out_ += " @name(" + quote(view(n.name)) + ')';
    if (options_.provenance && n.origin_count) {
      // By text: their numbers differ between equal graphs.
      std::vector<std::string_view> origins;
      for (uint32_t i = 0; i < n.origin_count; ++i) origins.push_back(g_.origin(n.origins[i]));
      std::sort(origins.begin(), origins.end());
      out_ += " @from(";
      for (size_t i = 0; i < origins.size(); ++i) out_ += (i ? ", " : "") + quote(origins[i]);
      out_ += ')';
    }
    control(n);
    if (!options_.assignments) return;
    if (n.engine != REGIE_NONE) out_ += " @engine(" + quote(view(g_.view().engines[n.engine].name)) + ')';
    if (n.stream != REGIE_NONE) out_ += " @stream(" + std::to_string(n.stream) + ')';
  }

  // A node is called by one of its results; one without results gets a number when somebody waits for it.
  void control(const regie_node& n) {
    if (!g_.control_readers(n.id).empty() && !first_result(n.id)) {
      node_labels_.emplace(n.id, node_labels_.size());
      out_ += " @label(" + std::to_string(node_labels_.at(n.id)) + ')';
    }
    if (n.control_count == 0) return;
    out_ += " @after(";
    for (uint32_t k = 0; k < n.control_count; ++k) {
      out_ += k ? ", " : "";
      if (auto v = first_result(n.control[k])) {
        out_ += label_of(*v);
      } else if (auto known = node_labels_.find(n.control[k]); known != node_labels_.end()) {
        out_ += std::to_string(known->second);
      } else {
        out_ += '#' + std::to_string(n.control[k]);
      }
    }
    out_ += ')';
  }

  std::optional<uint32_t> first_result(uint32_t node) const {
    for (uint32_t v : g_.results(node))
      if (v != REGIE_NONE) return v;
    return std::nullopt;
  }

  void attributes(const regie_node& n) {
    if (n.attr_count == 0) return;
    out_ += " {";
    for (uint32_t i = 0; i < n.attr_count; ++i) {
      out_ += i ? ", " : "";
      out_ += spell_name(view(n.attrs[i].name)) + " = ";
      attribute(n.attrs[i]);
    }
    out_ += '}';
  }

  void attribute(const regie_attr& a) {
    auto list = [&](const char* when_empty, auto&& one) {
      if (a.count == 0) out_ += when_empty;
      out_ += '[';
      for (uint32_t i = 0; i < a.count; ++i) out_ += (i ? ", " : "") + one(i);
      out_ += ']';
    };
    switch (a.kind) {
      case REGIE_ATTR_INT:
        out_ += std::to_string(a.v.i);
        break;
      case REGIE_ATTR_FLOAT:
        out_ += spell_float(a.v.f);
        break;
      case REGIE_ATTR_STRING:
        out_ += quote(view(a.v.s));
        break;
      case REGIE_ATTR_INTS:
        list("", [&](uint32_t i) { return std::to_string(a.v.ints[i]); });
        break;
      case REGIE_ATTR_FLOATS:
        list("floats ", [&](uint32_t i) { return spell_float(a.v.floats[i]); });
        break;
      case REGIE_ATTR_STRINGS:
        list("strings ", [&](uint32_t i) { return quote(view(a.v.strs[i])); });
        break;
      default: {
        const regie_tensor& t = *a.v.tensor;
        regie_type type{};
        type.elem = t.elem;
        type.rank = t.rank;
        type.dims = t.dims;
        print_type_to(out_, g_, type);
        out_ += ' ';
        print_elements(out_, t);
      }
    }
  }

  const Graph& g_;
  const PrintOptions& options_;
  std::string out_;
  std::vector<std::string> labels_;                        // by value
  std::unordered_map<uint32_t, std::string> lone_labels_;  // instead, when one node is printed
  std::vector<Frame> frames_;
  std::unordered_map<std::string_view, uint32_t> names_;  // how often each was given
  std::unordered_map<uint32_t, size_t> node_labels_;
  std::vector<LaterResult> later_;
  uint64_t unnamed_ = 0;
  bool lone_ = false;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(graph, options).graph(); }

std::string print_node(const Graph& graph, uint32_t node) {
  if (!graph.live(node)) return "(removed)";
  PrintOptions options;
  return Printer(graph, options).one_node(node);
}

std::string print_type(const Graph& graph, const regie_type& type) {
  std::string out;
  print_type_to(out, graph, type);
  return out;
}

}  // namespace regie
