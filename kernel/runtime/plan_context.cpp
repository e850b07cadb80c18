// A run of a model with several plans.
#include <algorithm>
#include <cstring>

#include "base/elem.h"
#include "base/log.h"
#include "runtime/boxes.h"
#include "runtime/input_defaults.h"
#include "runtime/plan_choice.h"
#include "runtime/plan_session.h"
#include "runtime/run_state.h"

namespace regie {

namespace {

uint64_t bytes_of(regie_elem elem, std::span<const int64_t> dims) {
  return elem_bytes(elem, static_cast<uint64_t>(element_count(dims)));
}

}  // namespace

struct PlanContext::Rep {
  explicit Rep(PlanSession* s)
      : session(s),
        set(session->set()),
        contexts(set.plans.size() + 1),
        padded(set.ports->inputs.size()),
        resized(set.ports->inputs.size()),
        cropped(set.ports->outputs.size()),
        cropped_dims(set.ports->outputs.size()),
        views(set.ports->inputs.size()),
        results(set.ports->outputs.size()),
        defaults(*set.plans.front()) {}

  PlanSession* session;
  const PlanSet& set;
  std::vector<std::shared_ptr<Context>> contexts;  // by plan
  Context* last = nullptr;
  bool profiling = false;
  std::vector<int64_t> request;  // dimensions of all inputs, when `choice` was made
  PlanChoice choice;
  std::string last_change;
  std::vector<OutputMemory> padded, resized, cropped;
  std::vector<std::vector<int64_t>> cropped_dims;
  std::vector<regie_tensor> views, results;
  std::vector<int64_t> resized_dims;
  InputDefaults defaults;  // every plan has the same

  bool owns(size_t output, const void* data) const {
    return data && (cropped[output].data.get() == data ||
                    std::any_of(contexts.begin(), contexts.end(),
                                [&](const auto& c) { return c && c->owns_output(output, data); }));
  }
  bool crops(size_t output) const {
    return choice.padded && std::any_of(choice.output_dims[output].begin(), choice.output_dims[output].end(),
                                        [](int64_t d) { return d >= 0; });
  }
  Status choose(std::span<const regie_tensor> inputs);
  Status find_context();
  Status prepare(size_t input, const regie_tensor& t);
  Status crop(size_t output, regie_tensor* to);
};

PlanContext::PlanContext(PlanSession* session) : rep_(std::make_unique<Rep>(session)) {}
PlanContext::~PlanContext() = default;

Status PlanContext::Rep::choose(std::span<const regie_tensor> inputs) {
  size_t at = 0;
  bool same = true;
  for (const regie_tensor& t : inputs)
    for (int32_t d = 0; d < t.rank; ++d, ++at) same = same && at < request.size() && request[at] == t.dims[d];
  if (same && at == request.size() && last) return {};
  const std::string before = last ? choice.request : "";
  last = nullptr;
  auto chosen = choose_plan(set, inputs);
  if (!chosen.ok()) {
    ++session->refused_;
    return std::move(chosen).status();
  }
  choice = std::move(chosen).value();
  request.clear();
  for (const regie_tensor& t : inputs) request.insert(request.end(), t.dims, t.dims + t.rank);
  last_change = before.empty() ? choice.request : before + " -> " + choice.request;
  return {};
}

Status PlanContext::Rep::find_context() {
  std::shared_ptr<Context>& context = contexts[choice.plan];
  if (!context) {
    log(REGIE_LOG_INFO, "shapes",
        set.ports->name + ": a request of " + choice.request + " is the first here for " +
            (choice.plan == set.plans.size() ? "dynamic shapes"
                                             : "the plan of " + set.plan_text(choice.plan)));
    REGIE_ASSIGN(Session* const of, session->session(choice.plan));
    REGIE_ASSIGN(context, of->acquire());
  }
  last = context.get();
  last->set_profiling(profiling);
  return {};
}

// The input as the plan wants it: made smaller, padded, or as it is.
Status PlanContext::Rep::prepare(size_t i, const regie_tensor& t) {
  regie_tensor& v = views[i];
  v = t;
  const bool resize = choice.resize && choice.resize->input == i;
  if (!resize && !choice.padded) return {};
  const std::string& name = set.ports->inputs[i].name;
  const uint64_t bytes = bytes_of(t.elem, {t.dims, static_cast<size_t>(t.rank)});
  if (!is_dense(t))
    return invalid_input("input '" + name + "' has strides; copy it into a dense row-major tensor first");
  if (t.bytes < bytes || (!t.data && bytes))
    return invalid_input("input '" + name + "' takes " + std::to_string(bytes) + " bytes, but " +
                         (t.data ? "only " + std::to_string(t.bytes) + " were given" : "has no data"));
  if (resize) {
    resized_dims = {t.dims[0], t.dims[1], choice.resize->height, choice.resize->width};
    v.bytes = bytes_of(t.elem, resized_dims);
    REGIE_TRY(resized[i].fit(v.bytes, "input", name));
    std::byte* const to = resized[i].data.get();
    resize_planes(static_cast<const float*>(t.data), t.dims[0] * t.dims[1], t.dims[2], t.dims[3],
                  reinterpret_cast<float*>(to), choice.resize->height, choice.resize->width);
    v.dims = resized_dims.data();
    v.data = to;
    v.strides = nullptr;
  }
  if (!choice.padded) return {};
  const std::vector<int64_t>& large = choice.input_dims[i];
  const std::span<const int64_t> small{v.dims, large.size()};
  if (std::equal(small.begin(), small.end(), large.begin())) return {};
  const uint64_t elem = elem_bytes(t.elem, 1);
  const uint64_t need = bytes_of(t.elem, large);
  REGIE_TRY(padded[i].fit(need, "input", name));
  std::byte* const to = padded[i].data.get();
  pad_box(static_cast<const std::byte*>(v.data), small, to, large, elem);
  v.dims = large.data();
  v.data = to;
  v.bytes = need;
  v.strides = nullptr;
  return {};
}

// `results[o]` is what the plan gave.
Status PlanContext::Rep::crop(size_t o, regie_tensor* to) {
  const regie_tensor& whole = results[o];
  const std::string& name = set.ports->outputs[o].name;
  std::vector<int64_t>& dims = cropped_dims[o];
  dims.assign(whole.dims, whole.dims + whole.rank);
  size_t first = dims.size();  // cropped axis
  bool only_outermost = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t size = choice.output_dims[o][d];
    if (size < 0 || size == dims[d]) continue;
    if (size > dims[d])
      return invalid_input("output '" + name + "' would have " + std::to_string(size) + " on axis " +
                           std::to_string(d) + ", and the plan gives " + std::to_string(dims[d]) +
                           ": it does not grow with the input");
    if (first != dims.size()) only_outermost = false;
    first = std::min(first, d);
    dims[d] = size;
  }
  const std::span<const int64_t> large{whole.dims, dims.size()};
  for (size_t d = 0; d < first && d < dims.size(); ++d) only_outermost = only_outermost && dims[d] == 1;
  const uint64_t bytes = bytes_of(whole.elem, dims);
  if (to->data && to->bytes < bytes)
    return invalid_input("output '" + name + "' takes " + std::to_string(bytes) +
                         " bytes, but there is room for " + std::to_string(to->bytes));
  std::byte* data = static_cast<std::byte*>(to->data);
  if (!data && (first == dims.size() || only_outermost)) {
    data = static_cast<std::byte*>(whole.data);  // the start of it
  } else {
    if (!data) {
      REGIE_TRY(cropped[o].fit(bytes, "output", name));
      data = cropped[o].data.get();
    }
    copy_box(static_cast<const std::byte*>(whole.data), large, data, dims, elem_bytes(whole.elem, 1));
  }
  *to = whole;
  to->dims = dims.data();
  to->data = data;
  to->bytes = bytes;
  return {};
}

Status PlanContext::run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
  Rep& r = *rep_;
  inputs = r.defaults.with(inputs);
  REGIE_TRY(check_kinds(*r.set.ports, inputs));
  if (outputs.size() != r.results.size())
    return invalid_input("the model has " + std::to_string(r.results.size()) + " outputs, but room for " +
                         std::to_string(outputs.size()) + " was given");
  REGIE_TRY(r.choose(inputs));
  REGIE_TRY(r.find_context());
  for (size_t i = 0; i < inputs.size(); ++i) REGIE_TRY(r.prepare(i, inputs[i]));
  for (size_t o = 0; o < outputs.size(); ++o) {
    // A caller who passes back what any former run gave means the context's memory.
    if (r.owns(o, outputs[o].data)) outputs[o].data = nullptr;
    r.results[o] = outputs[o];
    if (r.crops(o)) r.results[o].data = nullptr;
  }
  ++r.session->runs_[r.choice.plan];
  ++(r.choice.plan == r.set.plans.size() ? r.session->dynamic_
     : r.choice.padded                   ? r.session->padded_
                                         : r.session->exact_);
  if (r.choice.resize) ++r.session->resized_;
  REGIE_TRY(r.last->run(r.views, r.results));
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (r.crops(o))
      REGIE_TRY(r.crop(o, &outputs[o]));
    else
      outputs[o] = r.results[o];
  }
  return {};
}

void PlanContext::set_profiling(bool on) { rep_->profiling = on; }

std::span<const TaskTime> PlanContext::times() const {
  // Of another plan than the one whose tasks a caller can ask for they would mean nothing.
  const bool known = rep_->last && rep_->choice.plan + 1 == rep_->set.plans.size();
  return known ? rep_->last->times() : std::span<const TaskTime>();
}

std::span<const DeviceRecord> PlanContext::records() const {
  return times().empty() ? std::span<const DeviceRecord>() : rep_->last->records();
}

RunStatistics PlanContext::statistics() const {
  RunStatistics sum;
  for (const auto& c : rep_->contexts)
    if (c) {
      const RunStatistics& s = c->statistics();
      sum.runs += s.runs;
      sum.shapes_prepared += s.shapes_prepared;
      sum.late_prepared += s.late_prepared;
    }
  sum.last_shape_change = rep_->last_change;
  return sum;
}

std::string PlanContext::last_plan() const {
  const Rep& r = *rep_;
  return r.last ? r.set.plan_text(r.choice.plan) : "";
}

}  // namespace regie
