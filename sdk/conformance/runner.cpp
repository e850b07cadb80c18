// From a node through an engine to a kernel, and through a device to results.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "harness.h"
#include "harness_internal.h"

namespace regie::conformance {

// ---- engine ----

EngineUnderTest::EngineUnderTest(const regie_engine_table* table, uint32_t index, const Settings& settings)
    : table_(table) {
  must(table->create(index, host(), settings.get(), &engine_), "creating the engine");
}
EngineUnderTest::~EngineUnderTest() { table_->destroy(engine_); }

EngineUnderTest::Answer EngineUnderTest::ask(const Node& node) const {
  regie_answer answer{};
  must(table_->ask(engine_, node.graph(), 0, node.shapes(), &answer), "ask");
  return {answer.can != 0, answer.reference != 0, std::string(sdk::sv(answer.reason)), answer.cost_ns};
}

Kernel EngineUnderTest::compile(const Node& node, uint32_t threads) const {
  std::optional<Kernel> made;
  regie_engine_compile request{};
  request.struct_size = sizeof request;
  request.threads = threads;
  request.graph = node.graph();
  request.shapes = *node.shapes();
  request.sink = &made;
  request.emit = [](const regie_engine_compile* self, const regie_kernel* k) -> regie_status {
    auto& kept = *static_cast<std::optional<Kernel>*>(self->sink);
    if (kept) return host()->fail(REGIE_BAD_PLUGIN, sdk::lit("emit was called twice"), {});
    kept.emplace();
    kept->format = sdk::sv(k->format);
    kept->name = sdk::sv(k->name);
    kept->blob.assign(static_cast<const char*>(k->blob), k->blob_size);
    kept->flags = k->flags;
    kept->scratch_bytes = k->scratch_bytes;
    for (uint32_t i = 0; i < k->weight_count; ++i) {
      auto* bytes = static_cast<const std::byte*>(k->weights[i].data);
      kept->weights.push_back({k->weights[i].operand,
                               {bytes, bytes + k->weights[i].size},
                               std::string(sdk::sv(k->weights[i].layout))});
    }
    for (uint32_t i = 0; i < k->requires_count; ++i) kept->needs.emplace_back(sdk::sv(k->requires_[i]));
    return REGIE_OK;
  };
  must(table_->compile(engine_, &request), "compile");
  if (!made) raise("compile gave OK and emitted nothing");
  return *std::move(made);
}

uint32_t EngineUnderTest::alias(const Node& node, uint32_t result, uint32_t operand) const {
  return table_->alias(engine_, node.graph(), 0, result, operand);
}

// ---- device ----

DeviceUnderTest::DeviceUnderTest(const regie_device_table* table, uint32_t index, const Settings& settings)
    : table_(table) {
  must(table->create(index, host(), settings.get(), &device_), "creating the device");
  regie_status code = table->stream_create(device_, &stream_);
  if (code != REGIE_OK) {
    table->destroy(device_);
    raise("creating a stream");
  }
}
DeviceUnderTest::~DeviceUnderTest() {
  table_->stream_destroy(stream_);
  table_->destroy(device_);
}

namespace {

// All that a run holds on the device, given back in the right order whatever happens.
struct Holdings {
  const regie_device_table& table;
  regie_device* device;
  std::vector<void*> buffers = {};
  regie_loaded_kernel* kernel = nullptr;
  regie_executable* executable = nullptr;
  ~Holdings() {
    if (executable) table.executable_release(executable);
    if (kernel) table.kernel_release(kernel);
    for (void* b : buffers) table.release(device, 0, b);
  }
  void* allocate(uint64_t bytes) {
    void* at = nullptr;
    must(table.allocate(device, 0, bytes, &at), "allocate");
    buffers.push_back(at);
    return at;
  }
};

regie_kernel_image image_of(const Kernel& k) {
  return {sizeof(regie_kernel_image), k.flags, sdk::str(k.format), k.blob.data(), k.blob.size()};
}

}  // namespace

std::vector<TensorData> DeviceUnderTest::run(const Kernel& k, const Node& node, const Run& how) const {
  regie_stream* stream = how.stream ? how.stream : stream_;
  Holdings held{*table_, device_};
  const regie_kernel_image image = image_of(k);
  must(table_->kernel_load(device_, &image, &held.kernel), "kernel_load");
  std::vector<regie_tensor> in, out;
  auto upload = [&](void* to, const void* from, uint64_t bytes) {
    if (bytes) must(table_->copy(stream, REGIE_COPY_TO_DEVICE, to, from, bytes), "copy to the device");
  };
  for (const TensorData& t : node.results) {
    regie_tensor v = view(t, false);
    if (t.elem != REGIE_ELEM_UNKNOWN) v.data = held.allocate(t.bytes.size());
    out.push_back(v);
  }
  for (uint32_t i = 0; i < node.operands.size(); ++i) {
    const TensorData& t = node.operands[i];
    regie_tensor v = view(t, false);
    auto packed = std::find_if(k.weights.begin(), k.weights.end(),
                               [&](const PackedWeight& w) { return w.operand == i; });
    if (packed != k.weights.end()) {
      v.data = held.allocate(packed->bytes.size());
      v.bytes = packed->bytes.size();
      upload(v.data, packed->bytes.data(), packed->bytes.size());
    } else if (t.elem != REGIE_ELEM_UNKNOWN) {
      v.data = how.alias == i ? out[0].data : held.allocate(t.bytes.size());
      upload(v.data, t.bytes.data(), t.bytes.size());
    }
    in.push_back(v);
  }
  must(table_->stream_wait(stream, UINT64_MAX), "waiting for the uploads");
  // prepare sees the addresses of constants only.
  std::vector<regie_tensor> prepare_in = in, prepare_out = out;
  for (size_t i = 0; i < in.size(); ++i)
    if (!node.operands[i].constant) prepare_in[i].data = nullptr;
  for (regie_tensor& t : prepare_out) t.data = nullptr;
  uint64_t scratch_bytes = 0;
  must(table_->prepare(held.kernel, prepare_in.data(), static_cast<uint32_t>(in.size()), prepare_out.data(),
                       static_cast<uint32_t>(out.size()), how.threads, &held.executable, &scratch_bytes),
       "prepare");
  void* scratch = scratch_bytes ? held.allocate(scratch_bytes) : nullptr;
  uint64_t begin = 0, end = 0;
  for (uint32_t n = 0; n < how.launches; ++n) {
    if (how.alias != REGIE_NONE && n)  // the last launch has written over it
      upload(in[how.alias].data, node.operands[how.alias].bytes.data(),
             node.operands[how.alias].bytes.size());
    regie_launch launch{};
    launch.struct_size = sizeof launch;
    launch.task = n;
    launch.operands = in.data();
    launch.results = out.data();
    launch.operand_count = static_cast<uint32_t>(in.size());
    launch.result_count = static_cast<uint32_t>(out.size());
    launch.scratch = scratch;
    launch.begin_ns = &begin;
    launch.end_ns = &end;
    if (how.around) how.around(true, n);
    regie_status launched = table_->launch(stream, held.executable, &launch);
    regie_status waited = launched == REGIE_OK ? table_->stream_wait(stream, UINT64_MAX) : launched;
    if (how.around) how.around(false, n);
    must(launched, "launch");
    must(waited, "stream_wait");
    if (end < begin) raise("a launch ended before it began");
  }
  std::vector<TensorData> results = node.results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].bytes.empty()) continue;
    std::fill(results[i].bytes.begin(), results[i].bytes.end(), std::byte{0xEE});
    must(table_->copy(stream, REGIE_COPY_FROM_DEVICE, results[i].bytes.data(), out[i].data,
                      results[i].bytes.size()),
         "copy from the device");
  }
  must(table_->stream_wait(stream, UINT64_MAX), "waiting for the results");
  return results;
}

regie_status DeviceUnderTest::try_load(const Kernel& kernel) const {
  const regie_kernel_image image = image_of(kernel);
  regie_loaded_kernel* loaded = nullptr;
  regie_status code = table_->kernel_load(device_, &image, &loaded);
  if (code == REGIE_OK) table_->kernel_release(loaded);
  return code;
}

double difference(const std::vector<TensorData>& a, const std::vector<TensorData>& b) {
  if (a.size() != b.size()) return -1;
  double worst = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].elem != b[i].elem || a[i].dims != b[i].dims || a[i].bytes.size() != b[i].bytes.size()) return -1;
    if (a[i].elem != REGIE_F32) {
      if (a[i].bytes != b[i].bytes) return HUGE_VAL;
      continue;
    }
    for (int64_t k = 0; k < a[i].count(); ++k) {
      const float x = a[i].as<float>()[k], y = b[i].as<float>()[k];
      scale = std::max(scale, static_cast<double>(std::fabs(x)));
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double d = std::fabs(static_cast<double>(x) - y);
      worst = std::isnan(d) ? HUGE_VAL : std::max(worst, d);
    }
  }
  return worst / scale;
}

}  // namespace regie::conformance
