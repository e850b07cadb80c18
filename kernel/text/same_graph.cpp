#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "text/text.h"

namespace regie {

namespace {

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  Status run() {
    if (a_.name() != b_.name()) return differ("graph names", std::string(a_.name()), std::string(b_.name()));
    std::vector<std::pair<uint32_t, uint32_t>> regions{{0, 0}};
    REGIE_TRY(enter(0, 0));
    // A region's nodes are compared when its owner has been; regions only read outer constants, which are
    // known then.
    for (size_t i = 0; i < regions.size(); ++i) {
      auto [ra, rb] = regions[i];
      uint32_t na = a_.region(ra).first, nb = b_.region(rb).first;
      for (; na != REGIE_NONE && nb != REGIE_NONE; na = a_.node(na).next, nb = b_.node(nb).next) {
        REGIE_TRY(node(na, nb));
        for (uint32_t k = 0; k < a_.node(na).region_count; ++k) {
          regions.emplace_back(a_.node(na).regions[k], b_.node(nb).regions[k]);
          REGIE_TRY(enter(a_.node(na).regions[k], b_.node(nb).regions[k]));
        }
      }
      if (na != nb)  // one of them is REGIE_NONE
        return na != REGIE_NONE ? wrong(a_.describe_node(na) + " is in the first graph only")
                                : wrong(b_.describe_node(nb) + " is in the second graph only");
      REGIE_TRY(region_results(ra, rb));
    }
    for (auto [ra, rb] : regions) REGIE_TRY(unread_constants(ra, rb));
    REGIE_TRY(aliases());
    return symbols();
  }

 private:
  static Status wrong(std::string message) { return invalid_input("the graphs differ: " + message); }
  static Status differ(const std::string& what, const std::string& a, const std::string& b) {
    return wrong(what + ": '" + a + "' and '" + b + "'");
  }
  static Status differ(const std::string& what, uint64_t a, uint64_t b) {
    return differ(what, std::to_string(a), std::to_string(b));
  }

  Status enter(uint32_t ra, uint32_t rb) {
    const regie_region &x = a_.region(ra), &y = b_.region(rb);
    if (view(x.name) != view(y.name))
      return differ("names of regions", std::string(view(x.name)), std::string(view(y.name)));
    if (x.arg_count != y.arg_count) return differ("numbers of arguments", x.arg_count, y.arg_count);
    for (uint32_t i = 0; i < x.arg_count; ++i) {
      REGIE_TRY(pair(x.args[i], y.args[i]));
      const Tensor *s = a_.default_of(x.args[i]), *t = b_.default_of(y.args[i]);
      if (!s != !t || (s && s->digest() != t->digest()))
        return wrong("the defaults of " + a_.describe_value(x.args[i]));
    }
    return {};
  }

  // Two values that must be each other's counterparts; their definitions are compared the first time.
  Status pair(uint32_t va, uint32_t vb) {
    if (va == REGIE_NONE && vb == REGIE_NONE) return {};
    if (va == REGIE_NONE || vb == REGIE_NONE)
      return wrong((va != REGIE_NONE ? a_.describe_value(va) : b_.describe_value(vb)) +
                   " is absent in the other graph");
    auto to = to_b_.find(va), from = to_a_.find(vb);
    if (to != to_b_.end() || from != to_a_.end()) {
      if (to != to_b_.end() && from != to_a_.end() && to->second == vb) return {};
      return wrong(a_.describe_value(va) + " stands where " + b_.describe_value(vb) + " does");
    }
    to_b_.emplace(va, vb);
    to_a_.emplace(vb, va);
    pairs_.emplace_back(va, vb);
    const regie_value &x = a_.value(va), &y = b_.value(vb);
    std::string what = a_.describe_value(va);
    if (x.kind != y.kind) return wrong(what + " and " + b_.describe_value(vb) + " are of different kinds");
    if (view(x.name) != view(y.name))
      return differ("names of values", std::string(view(x.name)), std::string(view(y.name)));
    if (!same_type(x.type, y.type))
      return differ("types of " + what, print_type(a_, x.type), print_type(b_, y.type));
    if (x.space != y.space) return differ("memory spaces of " + what, x.space, y.space);
    return data(x, y, what);
  }

  bool same_dim(regie_dim x, regie_dim y) {
    if (x >= 0 || y >= 0 || x == REGIE_DIM_UNKNOWN || y == REGIE_DIM_UNKNOWN) return x == y;
    auto known = dims_.find(x);
    if (known != dims_.end()) return known->second == y;
    if (a_.dims().print(x) != b_.dims().print(y)) return false;
    dims_.emplace(x, y);
    return true;
  }

  bool same_type(const regie_type& x, const regie_type& y) {
    if (x.elem != y.elem || x.container != y.container || x.rank != y.rank || x.format != y.format ||
        x.origin_format != y.origin_format)
      return false;
    for (int32_t i = 0; i < x.rank; ++i)
      if (!same_dim(x.dims[i], y.dims[i])) return false;
    return true;
  }

  Status data(const regie_value& x, const regie_value& y, const std::string& what) {
    if (!x.data != !y.data) return wrong("the bytes of " + what + " are known in one graph only");
    if (!x.data || a_.tensor(x.id).digest() == b_.tensor(y.id).digest()) return {};
    return wrong("bytes of " + what);
  }

  Status node(uint32_t na, uint32_t nb) {
    const regie_node &x = a_.node(na), &y = b_.node(nb);
    std::string what = a_.describe_node(na);
    auto text = [](regie_str s) { return std::string(view(s)); };
    if (x.op_id != y.op_id) return differ("operators of " + what, text(x.op), text(y.op));
    if (view(x.name) != view(y.name)) return differ("names of " + what, text(x.name), text(y.name));
    if (x.operand_count != y.operand_count)
      return differ("numbers of operands of " + what, x.operand_count, y.operand_count);
    for (uint32_t i = 0; i < x.operand_count; ++i) {
      Status s = pair(x.operands[i], y.operands[i]);
      if (!s.ok()) return std::move(s).while_doing("comparing operand " + std::to_string(i) + " of " + what);
    }
    if (x.result_count != y.result_count)
      return differ("numbers of results of " + what, x.result_count, y.result_count);
    for (uint32_t i = 0; i < x.result_count; ++i) REGIE_TRY(pair(x.results[i], y.results[i]));
    if (x.attr_count != y.attr_count)
      return differ("numbers of attributes of " + what, x.attr_count, y.attr_count);
    for (uint32_t i = 0; i < x.attr_count; ++i)
      if (!same_attr(x.attrs[i], y.attrs[i]))
        return wrong("attribute '" + text(x.attrs[i].name) + "' of " + what + ", or '" +
                     text(y.attrs[i].name) + "' in its place");
    if (x.region_count != y.region_count)
      return differ("numbers of regions of " + what, x.region_count, y.region_count);
    if (x.origin_count != y.origin_count)
      return differ("numbers of origins of " + what, x.origin_count, y.origin_count);
    REGIE_TRY(origins(x, y, what));
    nodes_.emplace(na, nb);
    if (x.control_count != y.control_count)
      return differ("control edges of " + what, x.control_count, y.control_count);
    for (uint32_t k = 0; k < x.control_count; ++k) {
      auto at = nodes_.find(x.control[k]);
      if (at == nodes_.end() || at->second != y.control[k]) return wrong("control edges of " + what);
    }
    if (engine(a_, x) != engine(b_, y)) return differ("engines of " + what, engine(a_, x), engine(b_, y));
    if (x.stream != y.stream) return differ("streams of " + what, x.stream, y.stream);
    return {};
  }

  static std::string engine(const Graph& g, const regie_node& n) {
    return n.engine == REGIE_NONE ? "" : std::string(view(g.view().engines[n.engine].name));
  }

  // As sets: the numbers of origins, by which they are sorted, mean nothing.
  Status origins(const regie_node& x, const regie_node& y, const std::string& what) {
    std::vector<std::string_view> s, t;
    for (uint32_t k = 0; k < x.origin_count; ++k) s.push_back(a_.origin(x.origins[k]));
    for (uint32_t k = 0; k < y.origin_count; ++k) t.push_back(b_.origin(y.origins[k]));
    std::sort(s.begin(), s.end());
    std::sort(t.begin(), t.end());
    return s == t ? Status() : wrong("origins of " + what);
  }

  static bool same_float(double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  }

  static bool same_attr(const regie_attr& x, const regie_attr& y) {
    if (view(x.name) != view(y.name) || x.kind != y.kind || x.count != y.count) return false;
    switch (x.kind) {
      case REGIE_ATTR_INT:
        return x.v.i == y.v.i;
      case REGIE_ATTR_FLOAT:
        return same_float(x.v.f, y.v.f);
      case REGIE_ATTR_STRING:
        return view(x.v.s) == view(y.v.s);
      case REGIE_ATTR_INTS:
        return std::equal(x.v.ints, x.v.ints + x.count, y.v.ints);
      case REGIE_ATTR_FLOATS:
        return std::equal(x.v.floats, x.v.floats + x.count, y.v.floats, same_float);
      case REGIE_ATTR_STRINGS:
        return std::equal(x.v.strs, x.v.strs + x.count, y.v.strs,
                          [](regie_str s, regie_str t) { return view(s) == view(t); });
      default:
        return Tensor::copy(*x.v.tensor).digest() == Tensor::copy(*y.v.tensor).digest();
    }
  }

  Status region_results(uint32_t ra, uint32_t rb) {
    const regie_region &x = a_.region(ra), &y = b_.region(rb);
    if (x.result_count != y.result_count) return differ("numbers of results", x.result_count, y.result_count);
    for (uint32_t i = 0; i < x.result_count; ++i) {
      REGIE_TRY(pair(x.results[i], y.results[i]));
      if (ra == 0 && a_.output_shape(i) != b_.output_shape(i))
        return wrong("what tells the shape of output '" + std::string(a_.output_name(i)) + "'");
      if (ra == 0 && a_.output_name(i) != b_.output_name(i))
        return differ("names of outputs", std::string(a_.output_name(i)), std::string(b_.output_name(i)));
    }
    return {};
  }

  Status unread_constants(uint32_t ra, uint32_t rb) {
    std::vector<uint32_t> x, y;
    for (uint32_t v : a_.constants(ra))
      if (!to_b_.count(v)) x.push_back(v);
    for (uint32_t v : b_.constants(rb))
      if (!to_a_.count(v)) y.push_back(v);
    if (x.size() != y.size()) return differ("numbers of constants that nothing reads", x.size(), y.size());
    // Those without data stand among the parameters in text, so their place among the others means nothing.
    std::stable_partition(x.begin(), x.end(), [&](uint32_t v) { return !a_.value(v).data; });
    std::stable_partition(y.begin(), y.end(), [&](uint32_t v) { return !b_.value(v).data; });
    for (size_t i = 0; i < x.size(); ++i) REGIE_TRY(pair(x[i], y[i]));
    return {};
  }

  Status aliases() {
    for (auto [va, vb] : pairs_) {
      const regie_value &x = a_.value(va), &y = b_.value(vb);
      bool none = x.alias_of == REGIE_NONE && y.alias_of == REGIE_NONE;
      auto base = to_b_.find(x.alias_of);
      if (!none && (base == to_b_.end() || base->second != y.alias_of || x.alias_offset != y.alias_offset))
        return wrong("aliases of " + a_.describe_value(va));
    }
    return {};
  }

  Status symbols() {
    for (auto [x, y] : dims_) {
      std::unordered_map<std::string_view, const DimSymbol*> of_b;
      b_.dims().visit_symbols(
          y, [&](size_t i) { of_b.emplace(b_.dims().symbol_at(i).name, &b_.dims().symbol_at(i)); });
      std::string differs;
      a_.dims().visit_symbols(x, [&](size_t i) {
        const DimSymbol& s = a_.dims().symbol_at(i);
        auto at = of_b.find(s.name);
        bool same = at != of_b.end() && s.lower == at->second->lower && s.upper == at->second->upper &&
                    s.data_dependent == at->second->data_dependent;
        if (!same) differs = s.name;
      });
      if (!differs.empty()) return wrong("the range of " + differs);
    }
    return {};
  }

  const Graph &a_, &b_;
  std::unordered_map<uint32_t, uint32_t> to_b_, to_a_, nodes_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
  std::unordered_map<regie_dim, regie_dim> dims_;
};

}  // namespace

Status same_graph(const Graph& a, const Graph& b) { return Comparison(a, b).run(); }

}  // namespace regie
