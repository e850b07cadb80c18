// The runtime half of the embedding API: errors, options, models.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "api/hosts.h"
#include "api/objects.h"
#include "base/log.h"
#include "base/toml.h"
#include "model/file.h"
#include "model/layout.h"

namespace {

// The text of a C string is asked for on the thread that it belongs to.
std::string& last_error() {
  thread_local std::string text;
  return text;
}

regie_model::Port describe(const regie::Model& m, const regie::Result<regie::ShapeValues>& shapes,
                           const regie::ModelPort& port) {
  const regie::ModelType& type = m.types[port.type];
  regie_model::Port out{port.name, regie::dims_text(m, type.dims), type.dims, {}, type.elem, false, {}};
  if (port.shape != REGIE_NONE) return {port.name, "[*]", {}, {}, type.elem, true, {}};
  if (port.default_weight != REGIE_NONE) out.default_value = regie::default_tensor(m, port);
  if (shapes.ok())
    for (regie::ModelDim d : type.dims) out.reference_dims.push_back(shapes->at(d));
  out.reference_dims.resize(type.dims.size(), 1);
  return out;
}

regie_port view(const std::vector<regie_model::Port>* ports, size_t index) {
  if (!ports || index >= ports->size()) return {"", REGIE_ELEM_UNKNOWN, 0, nullptr, "", nullptr, nullptr};
  const regie_model::Port& p = (*ports)[index];
  return {p.name.c_str(),
          p.elem,
          p.any_rank ? -1 : static_cast<int32_t>(p.dims.size()),
          p.dims.data(),
          p.dims_text.c_str(),
          p.reference_dims.data(),
          p.default_value ? &*p.default_value : nullptr};
}

}  // namespace

regie_model::regie_model(std::shared_ptr<const regie::Model> m) : model(std::move(m)) {
  describe_ports(*model);
}

regie_model::regie_model(std::shared_ptr<const regie::PlanSet> s)
    : model(s->plans.back()), set(std::move(s)) {
  describe_ports(*set->ports);
  const regie::Model& plan =
      *set->plans.front();  // the ports have no weights; every plan has the same defaults
  for (size_t i = 0; i < inputs.size(); ++i)
    if (plan.inputs[i].default_weight != REGIE_NONE)
      inputs[i].default_value = regie::default_tensor(plan, plan.inputs[i]);
}

void regie_model::describe_ports(const regie::Model& from) {
  const auto shapes = regie::evaluate_shapes(from);
  for (const regie::ModelPort& p : from.inputs) inputs.push_back(describe(from, shapes, p));
  for (size_t o = 0; o < from.seen_outputs(); ++o) outputs.push_back(describe(from, shapes, from.outputs[o]));
}

namespace regie {

regie_status api_result(const Status& status) {
  if (status.ok()) return REGIE_OK;
  try {
    last_error() = status.to_string();
  } catch (...) {
    last_error().clear();
  }
  return status.code();
}

Result<ApiOptions> ApiOptions::read(const regie_option* options, size_t count,
                                    std::initializer_list<const char*> once,
                                    std::initializer_list<const char*> repeated) {
  if (count && !options)
    return invalid_input("options are NULL, but " + std::to_string(count) + " were announced");
  ApiOptions out;
  for (size_t i = 0; i < count; ++i) {
    if (!options[i].key || !options[i].value)
      return invalid_input("option " + std::to_string(i) + " has no " + (options[i].key ? "value" : "key"));
    const std::string key = options[i].key;
    bool known = false;
    for (const char* k : repeated) known |= key == k;
    for (const char* k : once) {
      if (key != k) continue;
      known = true;
      if (out.find(key)) return invalid_input("option '" + key + "' was given twice");
    }
    if (!known) {
      std::vector<std::string> names(once.begin(), once.end());
      names.insert(names.end(), repeated.begin(), repeated.end());
      std::string text = "unknown option '" + key + "'";
      if (std::optional<std::string> near = nearest_name(key, names))
        text += "; did you mean '" + *near + "'?";
      else if (!names.empty()) {
        text += "; known are ";
        for (size_t n = 0; n < names.size(); ++n) text += (n ? ", " : "") + names[n];
      }
      return invalid_input(std::move(text));
    }
    out.pairs_.emplace_back(key, options[i].value);
  }
  return out;
}

std::optional<std::string> ApiOptions::find(std::string_view key) const {
  for (const auto& [k, value] : pairs_)
    if (k == key) return value;
  return std::nullopt;
}

std::string ApiOptions::text(std::string_view key, std::string fallback) const {
  std::optional<std::string> value = find(key);
  return value ? *value : std::move(fallback);
}

Result<int64_t> ApiOptions::integer(std::string_view key, int64_t fallback, int64_t lower,
                                    int64_t upper) const {
  const std::optional<std::string> value = find(key);
  if (!value) return fallback;
  char* end = nullptr;
  errno = 0;
  const long long n = std::strtoll(value->c_str(), &end, 10);
  const bool plain = !value->empty() && value->find_first_not_of("-0123456789") == std::string::npos;
  if (!plain || *end || errno || n < lower || n > upper)
    return invalid_input("option '" + std::string(key) + "' must be a number from " + std::to_string(lower) +
                         " to " + std::to_string(upper) + ", not '" + *value + "'");
  return static_cast<int64_t>(n);
}

Result<bool> ApiOptions::flag(std::string_view key, bool fallback) const {
  const std::optional<std::string> value = find(key);
  if (!value) return fallback;
  if (*value == "1" || *value == "0") return *value == "1";
  return invalid_input("option '" + std::string(key) + "' must be 1 or 0, not '" + *value + "'");
}

std::vector<std::string> ApiOptions::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [k, value] : pairs_)
    if (k == key) values.push_back(value);
  return values;
}

}  // namespace regie

using regie::api_guard;
using regie::invalid_input;
using regie::Status;

const char* regie_version(void) { return REGIE_VERSION; }

const char* regie_last_error(void) { return last_error().c_str(); }

void regie_set_log_level(regie_log_level least) { regie::set_log_level(least); }

regie_status regie_model_load(const char* path, regie_model** model) {
  return api_guard([&]() -> Status {
    if (!path || !model)
      return invalid_input("regie_model_load: a path and a place for the model are needed");
    *model = nullptr;
    REGIE_ASSIGN(const regie::MappedFile file, regie::MappedFile::open(path));
    const std::future<void> opening = regie::open_devices_of(file);
    REGIE_ASSIGN(std::shared_ptr<const regie::PlanSet> set,
                 regie::load_plan_set(file, path, regie::WeightChecking::kInBackground));
    if (set) {
      *model = new regie_model(std::move(set));
      (*model)->source = path;
      return {};
    }
    REGIE_ASSIGN(std::shared_ptr<const regie::Model> loaded,
                 regie::load_model(file, path, regie::WeightChecking::kInBackground));
    *model = new regie_model(std::move(loaded));
    (*model)->source = path;
    return {};
  });
}

regie_status regie_model_save(const regie_model* model, const char* path) {
  return api_guard([&]() -> Status {
    if (!model || !path) return invalid_input("regie_model_save: a model and a path are needed");
    return model->set ? regie::save_plan_set(*model->set, path) : regie::save_model(*model->model, path);
  });
}

void regie_model_release(regie_model* model) { delete model; }

size_t regie_model_input_count(const regie_model* model) { return model ? model->inputs.size() : 0; }
size_t regie_model_output_count(const regie_model* model) { return model ? model->outputs.size() : 0; }
regie_port regie_model_input(const regie_model* model, size_t index) {
  return view(model ? &model->inputs : nullptr, index);
}
regie_port regie_model_output(const regie_model* model, size_t index) {
  return view(model ? &model->outputs : nullptr, index);
}
const char* regie_model_report(const regie_model* model) { return model ? model->report() : "{}"; }
