// C++ veneer over the embedding API (regie.h): handles that free themselves, failures as exceptions, spans in
// place of pointers and counts. Header-only; adds nothing that the C functions cannot do.
//
//   regie::api::Model model = regie::api::Model::load("digits.rgm");
//   regie::api::Session session(model);
//   regie::api::Context context = session.acquire();
//   std::vector<float> image(64);
//   const int64_t dims[] = {1, 1, 8, 8};
//   regie_tensor x = regie::api::tensor<float>(image, dims);
//   std::vector<regie_tensor> scores = context.run({&x, 1});  // valid until the context's next run
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "regie/api/regie.h"

namespace regie::api {

// What a function that failed says: its code, and place and words as of regie_last_error().
class Error : public std::exception {
 public:
  Error(regie_status code, std::string words) : code_(code), words_(std::move(words)) {}
  const char* what() const noexcept override { return words_.c_str(); }
  regie_status code() const noexcept { return code_; }

 private:
  regie_status code_;
  std::string words_;
};

inline void check(regie_status code) {
  if (code != REGIE_OK) throw Error(code, regie_last_error());
}

// regie_open_ahead: for a program that will load a model and has something else to do first.
inline void open_ahead(const std::string& device = "host_cpu", const std::string& plugin_path = {}) {
  check(regie_open_ahead(device.c_str(), plugin_path.c_str()));
}

using Options = std::vector<std::pair<std::string, std::string>>;

namespace detail {
inline std::vector<regie_option> views(const Options& options) {
  std::vector<regie_option> out;
  for (const auto& [key, value] : options) out.push_back({key.c_str(), value.c_str()});
  return out;
}
template <class T>
constexpr regie_elem elem_of() {
  if constexpr (std::is_same_v<T, float>)
    return REGIE_F32;
  else if constexpr (std::is_same_v<T, double>)
    return REGIE_F64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return REGIE_I8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return REGIE_U8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return REGIE_I16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return REGIE_U16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return REGIE_I32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return REGIE_U32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return REGIE_I64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return REGIE_U64;
  else if constexpr (std::is_same_v<T, bool>)
    return REGIE_BOOL;
  else
    static_assert(sizeof(T) == 0, "no element type of Regie");
}
}  // namespace detail

// A view of the caller's dense row-major data; data and dims must outlive it.
template <class T>
regie_tensor tensor(std::span<const T> data, std::span<const int64_t> dims) {
  regie_tensor t{};
  t.elem = detail::elem_of<T>();
  t.rank = static_cast<int32_t>(dims.size());
  t.dims = dims.data();
  t.data = const_cast<T*>(data.data());
  t.bytes = data.size_bytes();
  return t;
}

template <class T>
std::span<const T> values(const regie_tensor& t) {
  if (t.elem != detail::elem_of<T>()) throw Error(REGIE_INVALID_INPUT, "the tensor has another element type");
  return {static_cast<const T*>(t.data), static_cast<size_t>(t.bytes / sizeof(T))};
}

class Model {
 public:
  explicit Model(regie_model* model) : model_(model, regie_model_release) {}
  static Model load(const std::string& path) {
    regie_model* m = nullptr;
    check(regie_model_load(path.c_str(), &m));
    return Model(m);
  }
  // These two need libregie-compiler.
  static Model compile(const std::string& path, const Options& options = {}) {
    regie_model* m = nullptr;
    const std::vector<regie_option> views = detail::views(options);
    check(regie_compile_file(path.c_str(), views.data(), views.size(), &m));
    return Model(m);
  }
  static Model compile(std::span<const std::byte> bytes, const std::string& name,
                       const Options& options = {}) {
    regie_model* m = nullptr;
    const std::vector<regie_option> views = detail::views(options);
    check(regie_compile_bytes(bytes.data(), bytes.size(), name.c_str(), views.data(), views.size(), &m));
    return Model(m);
  }
  void save(const std::string& path) const { check(regie_model_save(get(), path.c_str())); }
  std::vector<regie_port> inputs() const {
    std::vector<regie_port> out;
    for (size_t i = 0; i < regie_model_input_count(get()); ++i) out.push_back(regie_model_input(get(), i));
    return out;
  }
  std::vector<regie_port> outputs() const {
    std::vector<regie_port> out;
    for (size_t i = 0; i < regie_model_output_count(get()); ++i) out.push_back(regie_model_output(get(), i));
    return out;
  }
  std::string report() const { return regie_model_report(get()); }
  std::string plan() const { return regie_model_plan(get()); }
  // Needs libregie-compiler. See regie_model_explain.
  std::string explain(const Options& options = {}) const {
    const char* text = nullptr;
    const std::vector<regie_option> views = detail::views(options);
    check(regie_model_explain(get(), views.data(), views.size(), &text));
    return text;
  }
  regie_model* get() const { return model_.get(); }

 private:
  std::unique_ptr<regie_model, decltype(&regie_model_release)> model_;
};

// One run at a time. Goes back to its session's pool when it is destroyed.
class Context {
 public:
  Context(regie_context* context, size_t outputs)
      : context_(context, regie_context_release), outputs_(outputs) {}
  // The outputs' memory is the context's, valid until its next run.
  std::vector<regie_tensor> run(std::span<const regie_tensor> inputs) {
    std::vector<regie_tensor> outputs(outputs_, regie_tensor{});
    run(inputs, outputs);
    return outputs;
  }
  // Where `outputs[i].data` is set, the caller's memory of `outputs[i].bytes` is written. Allocates nothing.
  void run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
    check(regie_run(get(), inputs.data(), inputs.size(), outputs.data(), outputs.size()));
  }
  std::string statistics() { return regie_context_statistics(get()); }
  void set_profiling(bool on) { check(regie_context_set_profiling(get(), on)); }
  // Valid until the next run.
  std::span<const regie_task_time> task_times() {
    const regie_task_time* times = nullptr;
    const size_t count = regie_context_task_times(get(), &times);
    return {times, count};
  }
  // JSON, see regie_context_device_times.
  std::string device_times() { return regie_context_device_times(get()); }
  regie_context* get() const { return context_.get(); }

 private:
  std::unique_ptr<regie_context, decltype(&regie_context_release)> context_;
  size_t outputs_;
};

class Session {
 public:
  explicit Session(const Model& model, const Options& options = {})
      : session_(nullptr, regie_session_release), outputs_(regie_model_output_count(model.get())) {
    regie_session* s = nullptr;
    const std::vector<regie_option> views = detail::views(options);
    check(regie_session_create(model.get(), views.data(), views.size(), &s));
    session_.reset(s);
  }
  Context acquire() {
    regie_context* c = nullptr;
    check(regie_context_acquire(get(), &c));
    return Context(c, outputs_);
  }
  std::string statistics() const { return regie_session_statistics(get()); }
  regie_session* get() const { return session_.get(); }

 private:
  std::unique_ptr<regie_session, decltype(&regie_session_release)> session_;
  size_t outputs_;
};

// Timed runs and what they add up to; see regie_profile.
class Profile {
 public:
  explicit Profile(const Model& model) : profile_(nullptr, regie_profile_release) {
    regie_profile* p = nullptr;
    check(regie_profile_create(model.get(), &p));
    profile_.reset(p);
  }
  void run(Context& context, std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
    check(regie_profile_run(get(), context.get(), inputs.data(), inputs.size(), outputs.data(),
                            outputs.size()));
  }
  std::string summary() { return regie_profile_summary(get()); }
  std::string trace() { return regie_profile_trace(get()); }
  regie_profile* get() const { return profile_.get(); }

 private:
  std::unique_ptr<regie_profile, decltype(&regie_profile_release)> profile_;
};

}  // namespace regie::api
