#include "cache/plans_compile.h"

#include <algorithm>
#include <chrono>

#include "base/elem.h"
#include "base/log.h"
#include "base/toml.h"
#include "model/layout.h"
#include "passes/padding.h"
#include "passes/ports.h"
#include "passes/shape_words.h"
#include "passes/typical.h"
#include "text/text.h"

namespace regie {

namespace {

using Clock = std::chrono::steady_clock;

Status wrong(const ShapeSpec::Axis& axis, const std::string& why) {
  return invalid_input(axis.input + "." + std::to_string(axis.axis) + ": " + why, "--shapes");
}

std::string list_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t s : sizes) text += (text.empty() ? "" : "|") + std::to_string(s);
  return text;
}

// Which symbol an axis is, and that it may have these sizes.
Result<uint32_t> symbol_of(const Model& ports, const Graph& g, const ShapeSpec::Axis& axis) {
  std::vector<std::string> names;
  uint32_t input = REGIE_NONE;
  for (uint32_t i = 0; i < ports.inputs.size(); ++i) {
    names.push_back(ports.inputs[i].name);
    if (names.back() == axis.input) input = i;
  }
  if (input == REGIE_NONE) {
    std::string known;
    for (const std::string& n : names) known += (known.empty() ? "'" : ", '") + n + "'";
    const auto near = nearest_name(axis.input, names);
    return wrong(axis, "the model has no input '" + axis.input + "'" +
                           (near ? "; did you mean '" + *near + "'? " : "; ") + "its inputs are " + known);
  }
  const regie_type& t = g.value(g.region(0).args[input]).type;
  const std::string type = "input '" + axis.input + "' is " + print_type(g, t);
  if (axis.axis >= static_cast<uint32_t>(t.rank))
    return wrong(axis, type + ", which has no axis " + std::to_string(axis.axis));
  const regie_dim dim = t.dims[axis.axis];
  if (dim >= 0)
    return wrong(axis, type + ": this axis has one size only; export the network with one that varies");
  const auto symbol = g.dims().symbol_index(dim);
  if (!symbol)
    return wrong(axis,
                 type + ": this axis is computed from others; say the sizes of an axis that is one name");
  const DimSymbol& s = g.dims().symbol_at(*symbol);
  for (int64_t size : axis.sizes)
    if (size < s.lower || size > s.upper)
      return wrong(axis, "the size " + std::to_string(size) + " is not in the range of " + s.name + ", " +
                             std::to_string(s.lower) + ".." +
                             (s.upper == INT64_MAX ? "" : std::to_string(s.upper)));
  return static_cast<uint32_t>(*symbol);
}

Status find_axes(const Graph& g, PlanSet* set) {
  for (const ShapeSpec::Axis& axis : set->spec.axes) {
    REGIE_ASSIGN(const uint32_t symbol, symbol_of(*set->ports, g, axis));
    const std::string label = axis.input + "." + std::to_string(axis.axis);
    const auto same = std::find_if(set->axes.begin(), set->axes.end(),
                                   [&](const PlanSet::Axis& a) { return a.symbol == symbol; });
    if (same == set->axes.end()) {
      set->axes.push_back({symbol, label, axis.sizes});
      continue;
    }
    if (same->sizes != axis.sizes)
      return wrong(axis, "it is the same as " + same->label + " (both are " +
                             set->ports->symbols[symbol].name + "), whose sizes are " +
                             list_text(same->sizes) + ", not " + list_text(axis.sizes));
  }
  size_t plans = 1;
  for (const PlanSet::Axis& a : set->axes)
    if ((plans *= a.sizes.size()) > kMostPlans)
      return Status::error(
          REGIE_LIMIT,
          "these sizes make more than " + std::to_string(kMostPlans) +
              " plans, one for each combination; list fewer (regie shapes advise proposes some)",
          "--shapes");
  set->plans.resize(plans);
  return {};
}

// The axes that a request may be padded along must allow it, whatever the operators say: a string has no zero
// here, and elements of less than a byte cannot be moved one by one.
Status check_ports(const Graph& g, const PaddedSymbols& symbols) {
  auto check = [&](uint32_t value) -> Status {
    const regie_type& t = g.value(value).type;
    for (int32_t i = 0; i < t.rank; ++i) {
      if (!depends_on(g.dims(), t.dims[i], symbols)) continue;
      if (t.elem == REGIE_STRING || elem_bytes(t.elem, 8) < 8)
        return unsupported(
            g.describe_value(value) + " is " + print_type(g, t) +
                ": strings and elements of less than a byte cannot be padded; take --shapes dynamic, "
                "or --padding refuse",
            "--shapes");
      bool by_data = false;
      g.dims().visit_symbols(t.dims[i],
                             [&](size_t s) { by_data = by_data || g.dims().symbol_at(s).data_dependent; });
      if (by_data)
        return unsupported(
            g.describe_value(value) + " is " + print_type(g, t) +
                ": one of its sizes depends on data and on a padded axis; take --shapes dynamic",
            "--shapes");
    }
    return {};
  };
  const regie_region& main = g.region(0);
  for (uint32_t i = 0; i < main.arg_count; ++i) REGIE_TRY(check(main.args[i]));
  for (uint32_t i = 0; i < main.result_count; ++i) REGIE_TRY(check(main.results[i]));
  return {};
}

// Images only: f32 [n, c, height, width], with sizes for height and width that no other input has.
Status check_resize(const PlanSet& set) {
  const Model& m = *set.ports;
  auto axis = [&](ModelDim d) { return set.axis_of(d); };
  size_t images = 0, others = 0;
  for (const ModelPort& p : m.inputs) {
    const ModelType& t = m.types[p.type];
    const bool image = t.elem == REGIE_F32 && t.dims.size() == 4 && axis(t.dims[2]) && axis(t.dims[3]) &&
                       axis(t.dims[2]) != axis(t.dims[3]);
    images += image;
    for (size_t d = 0; d < t.dims.size() && !image; ++d)
      for (const ModelPort& q : m.inputs) {
        const ModelType& u = m.types[q.type];
        if (u.elem == REGIE_F32 && u.dims.size() == 4 && axis(t.dims[d]) &&
            (axis(t.dims[d]) == axis(u.dims[2]) || axis(t.dims[d]) == axis(u.dims[3])))
          ++others;
      }
  }
  if (images != 1 || others)
    return unsupported(
        "resize is for a model with one image: an input f32[n,c,height,width] of whose height and width, two "
        "different names that no other input has, --shapes lists sizes; take error or dynamic",
        "--overflow");
  return {};
}

std::shared_ptr<const Model> with_portable(Model ports, const Graph& g, const Model& plan) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  ports.producer = plan.producer;
  ports.target = plan.target;
  ports.pipeline = plan.pipeline;
  ports.plugins = plan.plugins;
  ports.portable_graph = print(g);
  for (uint32_t v = 0; v < g.value_count(); ++v) {
    const Tensor* beside = beside_text(g, v);
    if (!beside) continue;
    const Tensor& t = *beside;
    // Nearly always the first plan has it.
    const std::string digest = t.digest();
    if (plan.portable_constants.count(digest) || ports.portable_constants.count(digest)) continue;
    const uint64_t offset = (bytes->size() + 63) / 64 * 64;
    bytes->resize(offset + t.bytes());
    std::copy_n(static_cast<const std::byte*>(t.data()), t.bytes(),
                bytes->begin() + static_cast<int64_t>(offset));
    ports.portable_constants.emplace(digest, static_cast<uint32_t>(ports.weights.size()));
    ports.weights.push_back({offset, t.bytes(), std::string(kPortable), digest});
  }
  ports.weight_bytes = *bytes;
  ports.weight_owner = std::move(bytes);
  return std::make_shared<const Model>(std::move(ports));
}

// An axis whose sizes are listed has no other usual one in the plans that are made for them.
std::string without_listed(const PlanSet& set, const std::string& typical) {
  const size_t equals = typical.rfind('=');
  if (equals == std::string::npos) return typical;  // the compile says what is wrong
  std::string out = typical.substr(0, equals);
  const Model& m = *set.ports;
  const auto input =
      std::find_if(m.inputs.begin(), m.inputs.end(), [&](const ModelPort& p) { return p.name == out; });
  if (input == m.inputs.end()) return typical;
  const std::vector<ModelDim>& dims = m.types[input->type].dims;
  const auto words = axis_words(std::string_view(typical).substr(equals + 1));
  out += '=';
  for (size_t axis = 0; axis < words.size(); ++axis) {
    const bool listed = axis < dims.size() && set.axis_of(dims[axis]);
    out += (axis ? "," : "") + (listed ? "?" : std::string(words[axis]));
  }
  return out;
}

using Requests = std::vector<std::pair<std::string, CompileRequest>>;

Requests requests_of(const PlanSet& set, const CompileRequest& request) {
  Requests out;
  for (size_t p = 0; p < set.plans.size(); ++p) {
    CompileRequest one = request;
    for (std::string& typical : one.options.typical) typical = without_listed(set, typical);
    const std::vector<int64_t> sizes = set.sizes_of(p);
    for (size_t a = 0; a < sizes.size(); ++a)
      one.options.sizes.emplace_back(set.ports->symbols[set.axes[a].symbol].name, sizes[a]);
    out.emplace_back(set.plan_text(p), std::move(one));
  }
  if (set.spec.overflow == ShapeSpec::kRunDynamic) out.emplace_back("dynamic shapes", request);
  return out;
}

// With ports, axes and room for the plans.
Result<PlanSet> begin_set(const Graph& g, const ShapeSpec& spec) {
  PlanSet set;
  set.spec = spec;
  REGIE_ASSIGN(Model ports, ports_of(g));
  set.ports = std::make_shared<const Model>(std::move(ports));
  REGIE_TRY(find_axes(g, &set));
  return set;
}

}  // namespace

Result<Requests> plan_requests(const CompileRequest& request, const ShapeSpec& spec) {
  REGIE_ASSIGN(const ImportedGraph imported,
               import_graph(request.plugins, request.path, request.bytes, request.options));
  REGIE_ASSIGN(const PlanSet set, begin_set(*imported.graph, spec));
  return requests_of(set, request);
}

Result<CompiledPlans> compile_plans(const CompileRequest& request, const CacheOptions& cache,
                                    const ShapeSpec& spec) {
  if (!request.options.dump.empty())
    return invalid_input("--dump shows the stages of one compile; take --shape to fix the sizes of one plan",
                         "--shapes");
  REGIE_ASSIGN(const ImportedGraph imported,
               import_graph(request.plugins, request.path, request.bytes, request.options));
  const Graph& g = *imported.graph;
  REGIE_TRY(typical_sizes(g, request.options.typical).status());
  REGIE_ASSIGN(PlanSet begun, begin_set(g, spec));
  auto set = std::make_shared<PlanSet>(std::move(begun));
  if (spec.overflow == ShapeSpec::kResize) REGIE_TRY(check_resize(*set));
  if (spec.padding != ShapeSpec::kRefuse) {
    PaddedSymbols symbols;
    for (const PlanSet::Axis& a : set->axes) symbols.emplace(a.symbol, a.label);
    REGIE_TRY(check_ports(g, symbols));
    if (spec.padding == ShapeSpec::kAllow) {
      Status allowed = check_padding(g, *imported.ops, symbols);
      if (!allowed.ok()) return allowed.set_where(request.path);
    }
  }
  CompiledPlans out;
  for (const auto& [text, one] : requests_of(*set, request)) {
    const size_t p = out.plans.size();
    const auto start = Clock::now();
    auto compiled = compile_cached(one, cache);
    if (!compiled.ok()) return std::move(compiled).status().while_doing("compiling the plan for " + text);
    CompiledPlans::Plan& plan = out.plans.emplace_back();
    plan.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    plan.cache = std::move(compiled->cache);
    plan.compile_report = std::move(compiled->report);
    log(REGIE_LOG_INFO, "shapes",
        "the plan for " + text + (plan.cache.outcome == "hit" ? " was there" : " was compiled"));
    (p == set->plans.size() ? set->dynamic : set->plans[p]) = std::move(compiled->model);
  }
  // What a caller is told that the model is planned for.
  Model ports = *set->ports;
  for (ModelSymbol& s : ports.symbols)
    for (const ModelSymbol& planned : set->plans.back()->symbols)
      if (planned.name == s.name) s.reference = planned.reference;
  for (const PlanSet::Axis& a : set->axes) ports.symbols[a.symbol].reference = a.sizes.back();
  set->ports = with_portable(std::move(ports), g, *set->plans.front());
  REGIE_TRY(check_plan_set(*set, REGIE_INTERNAL));
  out.set = std::move(set);
  return out;
}

}  // namespace regie
