// Owners of what a device plug-in gives: the device, its memory, streams, fences, kernels and executables.
// Each frees what it holds through the table that it came from, and turns return codes into Status. Nothing
// here knows a model's tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "model/model.h"
#include "plugins/host.h"
#include "regie/c/device.h"
#include "regie/c/device_trace.h"

namespace regie {

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const ModelDevice& device, PluginHost& plugins);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const regie_device_table& table() const { return *table_; }
  const regie_device_trace_table* trace() const { return trace_; }  // NULL: it has none
  regie_device* handle() const { return handle_; }
  const regie_device_description& about() const { return *about_; }
  const std::string& title() const { return title_; }  // "device 'acc' (null)"
  bool runs_inline() const { return about_->limits.inline_streams != 0; }
  bool accepts(std::string_view format) const;
  bool has(std::string_view capability) const;
  template <class F>
  Status call(F&& f) const {
    return call_plugin(title_, std::forward<F>(f));
  }

 private:
  Device() = default;
  const regie_device_table* table_ = nullptr;
  const regie_device_trace_table* trace_ = nullptr;
  regie_device* handle_ = nullptr;
  const regie_device_description* about_ = nullptr;
  std::string title_;
};

// Base of the owners below: a handle of a device, freed once.
template <class Handle, class Derived>
class DeviceOwned {
 public:
  DeviceOwned() = default;
  DeviceOwned(DeviceOwned&& o) noexcept : device_(o.device_), handle_(std::exchange(o.handle_, nullptr)) {}
  DeviceOwned& operator=(DeviceOwned&& o) noexcept {
    if (this != &o) {
      reset();
      device_ = o.device_;
      handle_ = std::exchange(o.handle_, nullptr);
    }
    return *this;
  }
  ~DeviceOwned() { reset(); }
  void reset() {
    if (handle_) Derived::free(*device_, std::exchange(handle_, nullptr));
  }
  Handle* get() const { return handle_; }
  const Device& device() const { return *device_; }
  explicit operator bool() const { return handle_ != nullptr; }

 protected:
  DeviceOwned(const Device& device, Handle* handle) : device_(&device), handle_(handle) {}
  const Device* device_ = nullptr;
  Handle* handle_ = nullptr;
};

class LoadedKernel : public DeviceOwned<regie_loaded_kernel, LoadedKernel> {
 public:
  using DeviceOwned::DeviceOwned;
  static Result<LoadedKernel> load(const Device& device, const ModelKernel& kernel);
  static void free(const Device& d, regie_loaded_kernel* k) { d.table().kernel_release(k); }
};

class Executable : public DeviceOwned<regie_executable, Executable> {
 public:
  using DeviceOwned::DeviceOwned;
  Executable(const Device& d, regie_executable* e) : DeviceOwned(d, e) {}
  static void free(const Device& d, regie_executable* e) { d.table().executable_release(e); }
};

class Fence : public DeviceOwned<regie_fence, Fence> {
 public:
  using DeviceOwned::DeviceOwned;
  static Result<Fence> create(const Device& device);
  static void free(const Device& d, regie_fence* f) { d.table().fence_destroy(f); }
};

class Stream : public DeviceOwned<regie_stream, Stream> {
 public:
  using DeviceOwned::DeviceOwned;
  static Result<Stream> create(const Device& device);
  static void free(const Device& d, regie_stream* s) { d.table().stream_destroy(s); }
};

// A range of one of a device's memory spaces.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& o) noexcept { *this = std::move(o); }
  DeviceMemory& operator=(DeviceMemory&& o) noexcept;
  ~DeviceMemory() { reset(); }
  void reset();
  // Contents undefined. 0 bytes: holds nothing.
  static Result<DeviceMemory> allocate(const Device& device, uint32_t space, uint64_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(address_); }
  uint64_t bytes() const { return bytes_; }

 private:
  const Device* device_ = nullptr;
  uint32_t space_ = 0;
  void* address_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace regie
