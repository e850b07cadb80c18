#include "harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>

#include "regie/op_blob.hpp"
#include "regie_digests.h"

namespace regie::conformance {
namespace {

std::string& failure() {
  static thread_local std::string words;
  return words;
}

[[noreturn]] void raise(const std::string& what) {
  std::string words = take_failure();
  throw std::runtime_error(words.empty() ? what : what + ": " + words);
}
void must(regie_status code, const std::string& what) {
  if (code != REGIE_OK) raise(what + " gave status " + std::to_string(code));
}

struct KernelPlace {
  const regie_op_kernel_table* table;
  uint32_t index;
};
std::map<std::string, KernelPlace, std::less<>>& kernels() {
  static std::map<std::string, KernelPlace, std::less<>> all;
  return all;
}

regie_status find_kernel(regie_str op, const regie_op_kernel_table** table, uint32_t* index) {
  auto at = kernels().find(sdk::sv(op));
  if (at == kernels().end()) return host()->fail(REGIE_NOT_FOUND, sdk::lit("no reference kernel"), {});
  *table = at->second.table;
  *index = at->second.index;
  return REGIE_OK;
}
constexpr regie_host_ops kHostOps = {sizeof(regie_host_ops), 0, find_kernel};

const void* find_service(const char* id) {
  return std::string_view(id) == REGIE_HOST_OPS_ID ? &kHostOps : nullptr;
}

regie_status keep_failure(regie_status code, regie_str message, regie_str where) {
  if (message.size || where.size)
    failure() = std::string(sdk::sv(where)) + (where.size ? ": " : "") + std::string(sdk::sv(message));
  return code;
}
void log(regie_log_level level, regie_str component, regie_str message) {
  if (level < REGIE_LOG_WARNING && !std::getenv("REGIE_CONFORMANCE_VERBOSE")) return;
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(component.size), component.data,
               static_cast<int>(message.size), message.data);
}

// The graphs here have no symbols; dimension arithmetic is that of numbers.
regie_dim dim_op(regie_dim_table*, uint32_t op, regie_dim a, regie_dim b) {
  if (a < 0 || b < 0) return REGIE_DIM_UNKNOWN;
  switch (op) {
    case REGIE_DIM_ADD:
      return a + b;
    case REGIE_DIM_SUB:
      return a >= b ? a - b : REGIE_DIM_UNKNOWN;
    case REGIE_DIM_MUL:
      return a * b;
    case REGIE_DIM_FLOORDIV:
      return b ? a / b : REGIE_DIM_UNKNOWN;
    case REGIE_DIM_CEILDIV:
      return b ? (a + b - 1) / b : REGIE_DIM_UNKNOWN;
    case REGIE_DIM_MOD:
      return b ? a % b : REGIE_DIM_UNKNOWN;
    case REGIE_DIM_MIN:
      return std::min(a, b);
    case REGIE_DIM_MAX:
      return std::max(a, b);
    default:
      return REGIE_DIM_UNKNOWN;
  }
}
regie_dim dim_symbol(regie_dim_table*, regie_str, int64_t, int64_t, uint32_t) { return REGIE_DIM_UNKNOWN; }
void dim_range(regie_dim_table*, regie_dim d, int64_t* lower, int64_t* upper) { *lower = *upper = d; }
size_t dim_print(regie_dim_table*, regie_dim d, char* buffer, size_t size) {
  return static_cast<size_t>(std::snprintf(buffer, size, "%lld", static_cast<long long>(d)));
}

constexpr regie_host kHost = {sizeof(regie_host), REGIE_ABI_MINOR, find_service, keep_failure, log, dim_op,
                              dim_symbol,         dim_range,       dim_print};

regie_tensor view(const TensorData& t, bool with_data) {
  regie_tensor v{};
  v.elem = t.elem;
  v.rank = static_cast<int32_t>(t.dims.size());
  v.dims = t.dims.data();
  v.bytes = t.bytes.size();
  if (with_data) v.data = const_cast<std::byte*>(t.bytes.data());
  return v;
}

template <class Table>
const Table* table_of(const regie_plugin_entry_t& entry, const char* id, const char* digest) {
  auto* table = static_cast<const Table*>(entry.find(id));
  if (!table) return nullptr;
  if (table->head.struct_size < sizeof(Table) || std::string_view(table->head.header_digest) != digest)
    throw std::runtime_error(std::string(entry.name) + ": table " + id + " was built against another header");
  return table;
}

}  // namespace

const regie_host* host() { return &kHost; }
std::string take_failure() { return std::exchange(failure(), {}); }

std::string add_reference_kernels(const std::string& path) {
  try {
    Library library(path);
    auto* table =
        table_of<regie_op_kernel_table>(library.entry(), REGIE_OP_KERNEL_ID, REGIE_DIGEST_OP_KERNEL);
    if (!table) return path + " has no reference kernels";
    for (uint32_t i = 0; i < table->count; ++i)
      kernels()[std::string(sdk::sv(table->ops[i].op))] = {table, i};
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

Library::Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) throw std::runtime_error(dlerror());
  entry_ = static_cast<const regie_plugin_entry_t*>(dlsym(handle_, "regie_plugin_entry"));
  if (!entry_ || entry_->magic != REGIE_ENTRY_MAGIC || entry_->abi_major != REGIE_ABI_MAJOR)
    throw std::runtime_error(path + " is not a plug-in of this interface");
}
const regie_engine_table* Library::engines() const {
  return table_of<regie_engine_table>(*entry_, REGIE_ENGINE_ID, REGIE_DIGEST_ENGINE);
}
const regie_device_table* Library::devices() const {
  return table_of<regie_device_table>(*entry_, REGIE_DEVICE_ID, REGIE_DIGEST_DEVICE);
}

Settings::Settings(std::initializer_list<std::pair<std::string, std::string>> pairs) : pairs_(pairs) {
  link();
}
Settings::Settings(std::vector<std::pair<std::string, std::string>> pairs) : pairs_(std::move(pairs)) {
  link();
}
void Settings::link() {
  settings_.clear();
  for (const auto& [key, value] : pairs_) settings_.push_back({sdk::str(key), sdk::str(value)});
  config_ = {static_cast<uint32_t>(settings_.size()), 0, settings_.data()};
}

// --- nodes
// -------------------------------------------------------------------------------------------------------

int64_t TensorData::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
TensorData absent() { return {}; }
TensorData zeros(regie_elem elem, std::vector<int64_t> dims) {
  TensorData t{elem, std::move(dims), {}, false};
  t.bytes.resize((static_cast<uint64_t>(t.count()) * sdk::elem_bits(elem) + 7) / 8);
  return t;
}
TensorData floats(std::vector<int64_t> dims, std::vector<float> values) {
  TensorData t = zeros(REGIE_F32, std::move(dims));
  if (values.size() * sizeof(float) != t.bytes.size())
    throw std::runtime_error("floats: wrong number of values");
  if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}
TensorData random_floats(std::vector<int64_t> dims, uint64_t seed) {
  TensorData t = zeros(REGIE_F32, std::move(dims));
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < t.count(); ++i)
    t.as<float>()[i] = static_cast<float>(static_cast<int>(random() % 128) - 64) / 64;
  return t;
}
TensorData constant(TensorData t) {
  t.constant = true;
  return t;
}

Attr attr(std::string name, int64_t value) { return {std::move(name), REGIE_ATTR_INT, value, 0, {}, {}}; }
Attr attr(std::string name, double value) { return {std::move(name), REGIE_ATTR_FLOAT, 0, value, {}, {}}; }
Attr attr(std::string name, const char* value) {
  return {std::move(name), REGIE_ATTR_STRING, 0, 0, value, {}};
}
Attr attr(std::string name, std::vector<int64_t> values) {
  return {std::move(name), REGIE_ATTR_INTS, 0, 0, {}, std::move(values)};
}

Node::Node(std::string op, std::vector<Attr> attrs, std::vector<TensorData> in, std::vector<TensorData> out)
    : operands(std::move(in)), results(std::move(out)), op_(std::move(op)), attrs_(std::move(attrs)) {
  std::sort(attrs_.begin(), attrs_.end(), [](const Attr& a, const Attr& b) { return a.name < b.name; });
  for (const Attr& a : attrs_) {
    regie_attr c{};
    c.name = sdk::str(a.name);
    c.kind = a.kind;
    c.count = 1;
    if (a.kind == REGIE_ATTR_INT) c.v.i = a.i;
    if (a.kind == REGIE_ATTR_FLOAT) c.v.f = a.f;
    if (a.kind == REGIE_ATTR_STRING) c.v.s = sdk::str(a.s);
    if (a.kind == REGIE_ATTR_INTS) {
      c.v.ints = a.ints.data();
      c.count = static_cast<uint32_t>(a.ints.size());
    }
    c_attrs_.push_back(c);
  }
  for (const TensorData& t : operands) c_operands_.push_back(view(t, t.constant));
  for (const TensorData& t : results) c_results_.push_back(view(t, false));
  auto add_value = [&](const TensorData& t, const regie_tensor* data, uint32_t kind, uint32_t index) {
    regie_value v{};
    v.id = static_cast<uint32_t>(values_.size());
    v.kind = kind;
    v.index = index;
    v.type = {t.elem,        REGIE_TENSOR,    static_cast<int32_t>(t.dims.size()),
              t.dims.data(), REGIE_FORMAT_ND, REGIE_FORMAT_ND};
    v.data = data;
    v.alias_of = REGIE_NONE;
    v.space = REGIE_NONE;
    values_.push_back(v);
    return v.id;
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool is_constant = operands[i].constant;
    operand_ids_.push_back(operands[i].elem == REGIE_ELEM_UNKNOWN
                               ? REGIE_NONE
                               : add_value(operands[i], is_constant ? &c_operands_[i] : nullptr,
                                           is_constant ? REGIE_VALUE_CONSTANT : REGIE_VALUE_ARGUMENT,
                                           static_cast<uint32_t>(i)));
  }
  for (size_t i = 0; i < results.size(); ++i)
    result_ids_.push_back(results[i].elem == REGIE_ELEM_UNKNOWN
                              ? REGIE_NONE
                              : add_value(results[i], nullptr, REGIE_VALUE_RESULT, static_cast<uint32_t>(i)));
  node_.op = sdk::str(op_);
  node_.prev = node_.next = REGIE_NONE;
  node_.operand_count = static_cast<uint32_t>(operands.size());
  node_.result_count = static_cast<uint32_t>(results.size());
  node_.attr_count = static_cast<uint32_t>(c_attrs_.size());
  node_.operands = operand_ids_.data();
  node_.results = result_ids_.data();
  node_.attrs = c_attrs_.data();
  node_.engine = node_.stream = REGIE_NONE;
  region_.parent = REGIE_NONE;
  engine_.name = engine_.device = sdk::lit("under test");
  graph_.struct_size = sizeof graph_;
  graph_.node_count = 1;
  graph_.value_count = static_cast<uint32_t>(values_.size());
  graph_.region_count = 1;
  graph_.nodes = &node_;
  graph_.values = values_.data();
  graph_.regions = &region_;
  graph_.engines = &engine_;
  graph_.engine_count = 1;
  shapes_ = {c_operands_.data(), c_results_.data()};
}

void Node::run_reference() {
  const regie_op_kernel_table* table = nullptr;
  uint32_t index = 0;
  must(find_kernel(sdk::str(op_), &table, &index), op_);
  regie_op_request request{};
  request.struct_size = sizeof request;
  request.attr_count = node_.attr_count;
  request.operand_count = node_.operand_count;
  request.result_count = node_.result_count;
  request.op = sdk::str(op_);
  request.attrs = c_attrs_.data();
  request.operands = c_operands_.data();
  request.results = c_results_.data();
  regie_op_state* state = nullptr;
  uint64_t scratch_bytes = 0;
  must(table->prepare(index, host(), &request, &state, &scratch_bytes),
       op_ + ": preparing the reference kernel");
  std::vector<regie_tensor> in, out;
  for (const TensorData& t : operands) in.push_back(view(t, true));
  for (const TensorData& t : results) out.push_back(view(t, true));
  std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(64, (scratch_bytes + 64) / 64 * 64),
                                                 std::free);
  regie_op_call call{};
  call.struct_size = sizeof call;
  call.operands = in.data();
  call.results = out.data();
  call.scratch = scratch.get();
  regie_status code = table->run(state, host(), &call);
  table->release(state);
  must(code, op_ + ": running the reference kernel");
}

// --- engine
// ------------------------------------------------------------------------------------------------------

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

// --- device
// ------------------------------------------------------------------------------------------------------

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
