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

#include "harness_internal.h"
#include "regie/op_blob.hpp"
#include "regie_digests.h"

namespace regie::conformance {
namespace {

std::string& failure() {
  static thread_local std::string words;
  return words;
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

template <class Table>
const Table* table_of(const regie_plugin_entry_t& entry, const char* id, const char* digest) {
  auto* table = static_cast<const Table*>(entry.find(id));
  if (!table) return nullptr;
  if (table->head.struct_size < sizeof(Table) || std::string_view(table->head.header_digest) != digest)
    throw std::runtime_error(std::string(entry.name) + ": table " + id + " was built against another header");
  return table;
}

}  // namespace

void raise(const std::string& what) {
  std::string words = take_failure();
  throw std::runtime_error(words.empty() ? what : what + ": " + words);
}
void must(regie_status code, const std::string& what) {
  if (code != REGIE_OK) raise(what + " gave status " + std::to_string(code));
}

regie_tensor view(const TensorData& t, bool with_data) {
  regie_tensor v{};
  v.elem = t.elem;
  v.rank = static_cast<int32_t>(t.dims.size());
  v.dims = t.dims.data();
  v.bytes = t.bytes.size();
  if (with_data) v.data = const_cast<std::byte*>(t.bytes.data());
  return v;
}

const regie_host* host() { return &kHost; }
std::string take_failure() { return std::exchange(failure(), {}); }

std::string add_reference_kernels(const Library& library) {
  try {
    auto* table =
        table_of<regie_op_kernel_table>(library.entry(), REGIE_OP_KERNEL_ID, REGIE_DIGEST_OP_KERNEL);
    if (!table) return std::string(library.entry().name) + " has no reference kernels";
    for (uint32_t i = 0; i < table->count; ++i)
      kernels()[std::string(sdk::sv(table->ops[i].op))] = {table, i};
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

Library::Library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  entry_ = static_cast<const regie_plugin_entry_t*>(dlsym(handle, "regie_plugin_entry"));
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

// ---- nodes ----

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

}  // namespace regie::conformance
