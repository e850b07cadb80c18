// What a test of a backend needs of a host: the host table with reference kernels, a loader, one-node graphs,
// and a runner that takes a kernel from the engine to the device and back. It uses the C interfaces only, no
// part of Regie's kernel, so that a vendor can build and debug it anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regie/c/device.h"
#include "regie/c/engine.h"
#include "regie/c/op_kernel.h"
#include "regie/plugin.hpp"

namespace regie::conformance {

// ---- host ----

// One a process. Reference kernels come from the libraries given to `add_reference_kernels`.
const regie_host* host();
// The words of the calling thread's last failure, forgotten by this call.
std::string take_failure();
class Library;
// "" or why the library cannot serve.
std::string add_reference_kernels(const Library& library);

// A plug-in library; stays open for ever, like in Regie.
class Library {
 public:
  // Throws std::runtime_error with the reason.
  explicit Library(const std::string& path);
  explicit Library(const regie_plugin_entry_t& linked_in) : entry_(&linked_in) {}
  const regie_plugin_entry_t& entry() const { return *entry_; }
  const regie_engine_table* engines() const;  // NULL: has none
  const regie_device_table* devices() const;

 private:
  const regie_plugin_entry_t* entry_;
};

// Text settings as a regie_config.
class Settings {
 public:
  Settings(std::initializer_list<std::pair<std::string, std::string>> pairs = {});
  explicit Settings(std::vector<std::pair<std::string, std::string>> pairs);
  Settings(const Settings& o) : Settings(o.pairs_) {}
  Settings& operator=(const Settings& o) {
    pairs_ = o.pairs_;
    link();
    return *this;
  }
  const regie_config* get() const { return &config_; }

 private:
  void link();
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::vector<regie_setting> settings_;
  regie_config config_{};
};

// ---- nodes ----

struct TensorData {
  regie_elem elem = REGIE_ELEM_UNKNOWN;  // unknown: absent
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  bool constant = false;

  int64_t count() const;
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};
TensorData absent();
TensorData zeros(regie_elem elem, std::vector<int64_t> dims);
TensorData floats(std::vector<int64_t> dims, std::vector<float> values);
// Multiples of 1/64 in [-1, 1): sums of products of them are exact or nearly so. Same seed, same values.
TensorData random_floats(std::vector<int64_t> dims, uint64_t seed);
TensorData constant(TensorData t);

// An attribute with its storage.
struct Attr {
  std::string name;
  uint32_t kind;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
};
Attr attr(std::string name, int64_t value);
Attr attr(std::string name, double value);
Attr attr(std::string name, const char* value);
Attr attr(std::string name, std::vector<int64_t> values);

// A node with its tensors, as the graph of one node that an engine sees.
class Node {
 public:
  Node(std::string op, std::vector<Attr> attrs, std::vector<TensorData> operands,
       std::vector<TensorData> results);
  Node(const Node&) = delete;

  const regie_graph* graph() const { return &graph_; }
  const regie_engine_shapes* shapes() const { return &shapes_; }
  const std::vector<regie_attr>& attrs() const { return c_attrs_; }
  const std::string& op() const { return op_; }

  std::vector<TensorData> operands, results;  // `results` are written by run_reference

  // Gives the node's results by its reference kernel; throws std::runtime_error with the reason.
  void run_reference();

 private:
  std::string op_;
  std::vector<Attr> attrs_;
  std::vector<regie_attr> c_attrs_;
  std::vector<regie_tensor> c_operands_, c_results_;
  std::vector<regie_value> values_;
  std::vector<uint32_t> operand_ids_, result_ids_;
  regie_node node_{};
  regie_region region_{};
  regie_engine_ref engine_{};
  regie_graph graph_{};
  regie_engine_shapes shapes_{};
};

// ---- kernels ----

struct PackedWeight {
  uint32_t operand;
  std::vector<std::byte> bytes;
  std::string layout;
};

// A kernel as the host would store it.
struct Kernel {
  std::string format, name, blob;
  uint32_t flags = 0;
  std::vector<PackedWeight> weights;
  std::vector<std::string> needs;
  uint64_t scratch_bytes = 0;
};

// An engine object of a library. Throws std::runtime_error where the engine refuses.
class EngineUnderTest {
 public:
  EngineUnderTest(const regie_engine_table* table, uint32_t index, const Settings& settings);
  ~EngineUnderTest();
  EngineUnderTest(const EngineUnderTest&) = delete;
  struct Answer {
    bool can, reference;
    std::string reason;
    double cost_ns;
  };
  Answer ask(const Node& node) const;
  Kernel compile(const Node& node, uint32_t threads = 1) const;
  uint32_t alias(const Node& node, uint32_t result, uint32_t operand) const;

 private:
  const regie_engine_table* table_;
  regie_engine* engine_ = nullptr;
};

// A device object with one stream.
class DeviceUnderTest {
 public:
  DeviceUnderTest(const regie_device_table* table, uint32_t index, const Settings& settings);
  ~DeviceUnderTest();
  DeviceUnderTest(const DeviceUnderTest&) = delete;
  const regie_device_table& table() const { return *table_; }
  regie_device* device() const { return device_; }
  regie_stream* stream() const { return stream_; }
  const regie_device_description& description() const { return *table_->describe(device_); }

  // From kernel to results, through the device's memory; the results of the last launch.
  struct Run {
    uint32_t threads = 1, launches = 1;
    uint32_t alias = REGIE_NONE;                             // this operand's bytes are those of result 0
    void (*around)(bool before, uint32_t launch) = nullptr;  // called before and after each launch
    regie_stream* stream = nullptr;                          // instead of the object's own
  };
  std::vector<TensorData> run(const Kernel& kernel, const Node& node, const Run& how) const;
  std::vector<TensorData> run(const Kernel& kernel, const Node& node) const {
    return run(kernel, node, Run());
  }
  // Status of kernel_load; a kernel that was loaded is released.
  regie_status try_load(const Kernel& kernel) const;

 private:
  const regie_device_table* table_;
  regie_device* device_ = nullptr;
  regie_stream* stream_ = nullptr;
};

// Largest |a - b| over all results, relative to the largest |a| (at least 1); -1 if shapes or types differ.
double difference(const std::vector<TensorData>& a, const std::vector<TensorData>& b);

}  // namespace regie::conformance
