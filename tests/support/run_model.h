// Runs a hand-made model on the fake device, for tests of the runtime: tensors of floats in and out by name
// of nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugins/host.h"
#include "regie_test_paths.h"
#include "runtime/session.h"
#include "support/model_builder.h"

namespace regie::test {

inline std::shared_ptr<PluginHost> fake_plugins() {
  static const std::shared_ptr<PluginHost> host = PluginHost::create({REGIE_TEST_FAKE_DEVICE_DIR}).value();
  return host;
}

// Floats with dimensions; keeps what a regie_tensor points to.
struct Floats {
  std::vector<int64_t> dims;
  std::vector<float> values;
  regie_tensor view() const {
    regie_tensor t{};
    t.elem = REGIE_F32;
    t.rank = static_cast<int32_t>(dims.size());
    t.dims = dims.data();
    t.data = const_cast<float*>(values.data());
    t.bytes = values.size() * 4;
    return t;
  }
};

inline Floats row(std::vector<float> values) {
  return {{static_cast<int64_t>(values.size())}, std::move(values)};
}

struct Answer {
  Status status;
  std::vector<Floats> outputs;
};

inline Floats copy_of(const regie_tensor& t) {
  Floats f;
  f.dims.assign(t.dims, t.dims + t.rank);
  const float* data = static_cast<const float*>(t.data);
  f.values.assign(data, data + t.bytes / 4);
  return f;
}

inline Answer run(Context& context, const std::vector<Floats>& inputs, size_t output_count) {
  std::vector<regie_tensor> in, out(output_count);
  for (const Floats& f : inputs) in.push_back(f.view());
  Answer a;
  a.status = context.run(in, out);
  if (a.status.ok())
    for (const regie_tensor& t : out) a.outputs.push_back(copy_of(t));
  return a;
}

inline Result<std::shared_ptr<Session>> open(std::shared_ptr<const Model> model,
                                             const SessionOptions& options = {}) {
  return Session::create(std::move(model), fake_plugins(), options);
}

inline Answer run_once(std::shared_ptr<const Model> model, const std::vector<Floats>& inputs) {
  const size_t outputs = model->outputs.size();
  Result<std::shared_ptr<Session>> session = open(std::move(model));
  if (!session) return {session.status(), {}};
  Result<std::shared_ptr<Context>> context = (*session)->acquire();
  if (!context) return {context.status(), {}};
  return run(**context, inputs, outputs);
}

}  // namespace regie::test
