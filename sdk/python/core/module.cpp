// regie._core: models, compiled or loaded, that run on NumPy arrays. The package's Python files give it its
// face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <optional>

#include "tensors.h"

namespace nb = nanobind;

namespace regie::python {

namespace {

nb::object* error_type = nullptr;  // regie.Error, set by the package; never freed

// The engine's failure as regie.Error(words, code).
[[noreturn]] void raise(const api::Error& e) {
  nb::object made = (*error_type)(nb::str(e.what()), static_cast<int>(e.code()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw nb::python_error();
}

// Calls f without the interpreter's lock.
template <class F>
auto unlocked(F&& f) {
  std::optional<api::Error> failed;
  {
    nb::gil_scoped_release release;
    try {
      return f();
    } catch (const api::Error& e) {
      failed.emplace(e);
    }
  }
  raise(*failed);
}

// Name, type and shape of an input or output; independent of the model that it came from.
class Port {
 public:
  explicit Port(const regie_port& port);
  const std::string& name() const { return name_; }
  std::string dtype() const { return name_of(elem_); }
  nb::object shape() const;
  bool optional() const { return optional_; }
  std::string text() const {
    return "Port(" + name_ + ": " + dtype() + dims_text_ + (optional_ ? ", optional)" : ")");
  }

 private:
  std::string name_, dims_text_;
  regie_elem elem_;
  bool optional_, any_rank_;
  std::vector<int64_t> dims_;
};

// The parts of "[N,1,floordiv(H,2)]" at its outer commas.
std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() >= 2 && text.front() == '[') text = text.substr(1, text.size() - 2);
  int depth = 0;
  std::string part;
  for (char c : text) {
    if (c == ',' && depth == 0) {
      out.push_back(std::move(part));
      part.clear();
      continue;
    }
    depth += (c == '(') - (c == ')');
    if (c != ' ' || !part.empty()) part += c;
  }
  if (!part.empty()) out.push_back(std::move(part));
  return out;
}

Port::Port(const regie_port& port)
    : name_(port.name),
      dims_text_(port.dims_text ? port.dims_text : ""),
      elem_(port.elem),
      optional_(port.default_value != nullptr) {
  any_rank_ = port.rank < 0;
  if (port.rank > 0) dims_.assign(port.dims, port.dims + port.rank);
}

nb::object Port::shape() const {
  if (any_rank_) return nb::none();
  const std::vector<std::string> texts = parts(dims_text_);
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(dims_.size())));
  for (size_t i = 0; i < dims_.size(); ++i) {
    nb::object dim;
    if (dims_[i] >= 0)
      dim = nb::int_(dims_[i]);
    else
      dim = nb::str(i < texts.size() ? texts[i].c_str() : "?");
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), dim.release().ptr());
  }
  return out;
}

using api::Options;

class Model {
 public:
  Model(api::Model model, Options of_session)
      : model_(std::move(model)),
        of_session_(std::move(of_session)),
        in_(model_.inputs()),
        out_(model_.outputs()) {
    for (const regie_port& p : in_) in_names_.push_back(nb::str(p.name));
    for (const regie_port& p : out_) {
      out_names_.push_back(nb::str(p.name));
      bool fixed = has_own_bytes(p.elem) && p.rank >= 0;
      for (int32_t k = 0; k < p.rank; ++k) fixed = fixed && p.dims[k] >= 0;
      out_fixed_.push_back(fixed);
    }
  }

  nb::dict run(nb::dict feeds, std::optional<std::vector<std::string>> wanted) {
    const Inputs given(*this, feeds);
    std::vector<regie_tensor> outputs(out_.size());
    const std::vector<bool> chosen = choose(wanted);
    api::Session& session = this->session();
    api::Context context = unlocked([&] { return session.acquire(); });
    std::vector<nb::object> arrays(out_.size());
    for (size_t i = 0; i < out_.size(); ++i)
      if (chosen[i] && out_fixed_[i])
        arrays[i] = new_array(out_[i].elem, out_[i].rank, out_[i].dims, &outputs[i]);
    unlocked([&] {
      context.run(given.tensors, outputs);
      return 0;
    });
    nb::dict results;
    for (size_t i = 0; i < out_.size(); ++i)
      if (chosen[i]) results[out_names_[i]] = arrays[i].is_valid() ? arrays[i] : to_array(outputs[i]);
    return results;
  }

  // Summary and, if it is wanted, trace of `runs` runs after `warm_ups` others (regie_profile).
  std::pair<std::string, std::string> profile(nb::dict feeds, uint64_t runs, uint64_t warm_ups, bool trace) {
    const Inputs given(*this, feeds);
    api::Session& session = this->session();
    return unlocked([&] {
      api::Context context = session.acquire();
      api::Profile profile(model_);
      std::vector<regie_tensor> outputs;
      for (uint64_t i = 0; i < warm_ups + runs; ++i) {
        outputs.assign(out_.size(), regie_tensor{});
        if (i < warm_ups)
          context.run(given.tensors, outputs);
        else
          profile.run(context, given.tensors, outputs);
      }
      return std::pair(profile.summary(), trace ? profile.trace() : std::string());
    });
  }
  std::string explain(const Options& options) const {
    return unlocked([&] { return model_.explain(options); });
  }

  std::vector<Port> inputs() const { return ports(in_); }
  std::vector<Port> outputs() const { return ports(out_); }
  std::string report() const { return model_.report(); }
  std::string statistics() { return session().statistics(); }
  void save(const std::string& path) const {
    unlocked([&] {
      model_.save(path);
      return 0;
    });
  }

 private:
  // What a caller gives, in the model's order; keeps the arrays alive.
  struct Inputs {
    Inputs(const Model& model, const nb::dict& feeds) {
      arguments.reserve(model.in_.size());
      for (size_t i = 0; i < model.in_.size(); ++i) {
        PyObject* value = PyDict_GetItemWithError(feeds.ptr(), model.in_names_[i].ptr());
        if (value) {
          tensors.push_back(arguments.emplace_back(model.in_[i], nb::handle(value)).tensor());
        } else if (model.in_[i].default_value) {
          tensors.emplace_back();
        } else {
          model.missing(model.in_[i].name);
        }
      }
      if (feeds.size() != arguments.size()) model.surplus(feeds);
    }
    std::vector<Argument> arguments;
    std::vector<regie_tensor> tensors;
  };
  static std::vector<Port> ports(const std::vector<regie_port>& from) {
    std::vector<Port> out;
    for (const regie_port& p : from) out.emplace_back(p);
    return out;
  }
  static std::string list(const std::vector<regie_port>& ports) {
    std::string out;
    for (const regie_port& p : ports) out += (out.empty() ? "'" : ", '") + std::string(p.name) + "'";
    return out;
  }
  [[noreturn]] void missing(const char* name) const {
    throw nb::key_error(("input '" + std::string(name) + "' is missing; the model has " + list(in_)).c_str());
  }
  void surplus(const nb::dict& feeds) const {
    for (auto [key, value] : feeds) {
      const std::string name = nb::cast<std::string>(nb::str(key));
      bool known = false;
      for (const regie_port& p : in_) known = known || name == p.name;
      if (!known) throw nb::key_error(("the model has no input '" + name + "'; it has " + list(in_)).c_str());
    }
  }
  std::vector<bool> choose(const std::optional<std::vector<std::string>>& wanted) const {
    if (!wanted) return std::vector<bool>(out_.size(), true);
    std::vector<bool> chosen(out_.size());
    for (const std::string& name : *wanted) {
      bool known = false;
      for (size_t i = 0; i < out_.size(); ++i)
        if (name == out_[i].name) chosen[i] = known = true;
      if (!known)
        throw nb::key_error(("the model has no output '" + name + "'; it has " + list(out_)).c_str());
    }
    return chosen;
  }
  // Made at the first run: a model that is only compiled and saved needs no device.
  api::Session& session() {
    unlocked([&] {
      std::lock_guard lock(mutex_);
      if (!session_) session_.emplace(model_, of_session_);
      return 0;
    });
    return *session_;
  }

  api::Model model_;
  Options of_session_;
  std::vector<regie_port> in_, out_;
  std::vector<nb::object> in_names_, out_names_;
  std::vector<bool> out_fixed_;  // shape known before the run, so that the run writes to the array itself
  std::mutex mutex_;
  std::optional<api::Session> session_;
};

Model* compile_file(const std::string& path, const Options& options, const Options& of_session) {
  return new Model(unlocked([&] { return api::Model::compile(path, options); }), of_session);
}
Model* compile_bytes(nb::bytes data, const std::string& name, const Options& options,
                     const Options& of_session) {
  const auto* from = static_cast<const std::byte*>(data.data());
  return new Model(unlocked([&] {
                     return api::Model::compile({from, data.size()}, name, options);
                   }),
                   of_session);
}
Model* load(const std::string& path, const Options& of_session) {
  return new Model(unlocked([&] { return api::Model::load(path); }), of_session);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::class_<Port>(m, "Port")
      .def_prop_ro("name", &Port::name)
      .def_prop_ro("dtype", &Port::dtype)
      .def_prop_ro("shape", &Port::shape)
      .def_prop_ro("optional", &Port::optional)
      .def("__repr__", &Port::text);
  nb::class_<Model>(m, "Model")
      .def("run", &Model::run, nb::arg("inputs"), nb::arg("outputs") = nb::none())
      .def("_profile", &Model::profile)
      .def("_explain", &Model::explain)
      .def("save", &Model::save, nb::arg("path"))
      .def_prop_ro("inputs", &Model::inputs)
      .def_prop_ro("outputs", &Model::outputs)
      .def_prop_ro("_report", &Model::report)
      .def("_statistics", &Model::statistics);
  m.def("compile_file", &compile_file);
  m.def("compile_bytes", &compile_bytes);
  m.def("load", &load);
  m.def("open_ahead", [](const std::string& device, const std::string& plugin_path) {
    unlocked([&] {
      api::open_ahead(device, plugin_path);
      return 0;
    });
  });
  m.def("version", [] { return std::string(regie_version()); });
  m.def("cache_statistics", [] { return std::string(regie_cache_statistics()); });
  m.def("set_log_level", [](int level) { regie_set_log_level(static_cast<regie_log_level>(level)); });
  m.def("set_error_type", [](nb::object type) { error_type = new nb::object(std::move(type)); });
}

}  // namespace regie::python
