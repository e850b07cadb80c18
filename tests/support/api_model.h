// The embedding API with owners, for tests: compile or load, run, compare.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/elem.h"
#include "cli/npy.h"
#include "regie/api/regie.h"

namespace regie::test {

using Options = std::vector<std::pair<std::string, std::string>>;

inline std::vector<regie_option> api(const Options& options) {
  std::vector<regie_option> list;
  for (const auto& [k, v] : options) list.push_back({k.c_str(), v.c_str()});
  return list;
}

using ModelPtr = std::shared_ptr<regie_model>;

// NULL on failure; the words are in regie_last_error().
inline ModelPtr compile_file(const std::string& path, const Options& options = {}) {
  auto list = api(options);
  regie_model* m = nullptr;
  return regie_compile_file(path.c_str(), list.data(), list.size(), &m) ? nullptr
                                                                        : ModelPtr(m, regie_model_release);
}

inline ModelPtr load_file(const std::string& path) {
  regie_model* m = nullptr;
  return regie_model_load(path.c_str(), &m) ? nullptr : ModelPtr(m, regie_model_release);
}

class Runner {
 public:
  explicit Runner(ModelPtr model, const Options& options = {}) : model_(std::move(model)) {
    auto list = api(options);
    regie_session* s = nullptr;
    if (regie_session_create(model_.get(), list.data(), list.size(), &s)) return;
    session_.reset(s, regie_session_release);
    acquire();
  }
  // Another context of the same session.
  Runner sibling() const {
    Runner r = *this;
    r.acquire();
    return r;
  }
  bool ready() const { return context_ != nullptr; }
  // Outputs by name, copied; empty and a test failure if the run failed.
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) {
    std::vector<regie_tensor> ins, outs(regie_model_output_count(model_.get()));
    for (size_t i = 0; i < regie_model_input_count(model_.get()); ++i) {
      auto it = inputs.find(regie_model_input(model_.get(), i).name);
      if (it == inputs.end()) {
        ADD_FAILURE() << "no value for input " << regie_model_input(model_.get(), i).name;
        return {};
      }
      ins.push_back(it->second.view());
    }
    status_ = regie_run(context_.get(), ins.data(), ins.size(), outs.data(), outs.size());
    if (status_) return {};
    std::map<std::string, Tensor> result;
    for (size_t i = 0; i < outs.size(); ++i)
      result.emplace(regie_model_output(model_.get(), i).name, Tensor::copy(outs[i]));
    return result;
  }
  regie_status status() const { return status_; }
  regie_context* context() { return context_.get(); }

 private:
  void acquire() {
    regie_context* c = nullptr;
    context_.reset();
    if (!regie_context_acquire(session_.get(), &c)) context_.reset(c, regie_context_release);
  }

  ModelPtr model_;
  std::shared_ptr<regie_session> session_;
  std::shared_ptr<regie_context> context_;
  regie_status status_ = REGIE_OK;
};

inline Tensor load_npy(const std::string& path) {
  auto t = cli::read_npy(path);
  if (!t.ok()) ADD_FAILURE() << t.status().to_string();
  return t.ok() ? *t : Tensor();
}

// Rows [first, first + count) of axis 0.
inline Tensor rows(const Tensor& t, int64_t first, int64_t count) {
  std::vector<int64_t> dims(t.dims().begin(), t.dims().end());
  uint64_t row = dims[0] ? t.bytes() / static_cast<uint64_t>(dims[0]) : 0;
  dims[0] = count;
  Tensor out = Tensor::zeros(t.elem(), dims);
  std::memcpy(out.mutable_data(), static_cast<const char*>(t.data()) + static_cast<uint64_t>(first) * row,
              row * static_cast<uint64_t>(count));
  return out;
}

inline double element(const Tensor& t, size_t i) {
  switch (t.elem()) {
    case REGIE_F32:
      return t.as<float>()[i];
    case REGIE_F64:
      return t.as<double>()[i];
    case REGIE_I64:
      return static_cast<double>(t.as<int64_t>()[i]);
    case REGIE_I32:
      return t.as<int32_t>()[i];
    case REGIE_U8:
    case REGIE_BOOL:
      return t.as<uint8_t>()[i];
    case REGIE_I8:
      return t.as<int8_t>()[i];
    default:
      ADD_FAILURE() << "no comparison for " << elem_name(t.elem());
      return 0;
  }
}

// Same type and shape, and max|a - b| <= 1e-4 max|b| + 1e-5, with b the reference; integers exactly; NaN
// equals NaN.
inline ::testing::AssertionResult close(const Tensor& a, const Tensor& b) {
  if (!a || !b) return ::testing::AssertionFailure() << "a tensor is missing";
  if (a.elem() != b.elem())
    return ::testing::AssertionFailure() << elem_name(a.elem()) << " instead of " << elem_name(b.elem());
  if (!std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()))
    return ::testing::AssertionFailure()
           << "shapes differ: "
           << ::testing::PrintToString(std::vector<int64_t>(a.dims().begin(), a.dims().end()))
           << " instead of "
           << ::testing::PrintToString(std::vector<int64_t>(b.dims().begin(), b.dims().end()));
  bool real = a.elem() == REGIE_F32 || a.elem() == REGIE_F64;
  double greatest = 0, worst = 0;
  size_t at = 0, n = static_cast<size_t>(a.count());
  for (size_t i = 0; i < n; ++i)
    if (std::isfinite(element(b, i))) greatest = std::max(greatest, std::fabs(element(b, i)));
  for (size_t i = 0; i < n; ++i) {
    double x = element(a, i), y = element(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    double d = std::fabs(x - y);
    if (std::isnan(d) || d > worst) worst = std::isnan(d) ? INFINITY : d, at = i;
  }
  double bound = real ? 1e-4 * greatest + 1e-5 : 0;
  if (worst <= bound) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "element " << at << " is " << element(a, at) << " instead of " << element(b, at) << " (greatest "
         << greatest << ", bound " << bound << ")";
}

}  // namespace regie::test
