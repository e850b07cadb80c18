#include "runtime/device.h"

namespace regie {

Result<std::unique_ptr<Device>> Device::open(const ModelDevice& device, PluginHost& plugins) {
  std::unique_ptr<Device> d(new Device);
  d->title_ = "device '" + device.name + "' (" + device.plugin + ")";
  Result<Provider<regie_device_table>> provider = plugins.device(device.plugin);
  if (!provider) return std::move(provider).status().while_doing("opening " + d->title_);
  d->table_ = provider->table;
  auto trace = plugins.device_trace(device.plugin);
  if (!trace.ok()) return std::move(trace).status().while_doing("opening " + d->title_);
  d->trace_ = *trace;
  const ConfigText params(device.params);
  Status status =
      d->call([&] { return d->table_->create(provider->index, host_table(), params.get(), &d->handle_); });
  if (!status.ok()) return std::move(status).while_doing("opening " + d->title_);
  if (!d->handle_) return bad_plugin(d->title_ + " was created, but the plug-in gave nothing");
  d->about_ = d->table_->describe(d->handle_);
  if (!d->about_ || d->about_->struct_size < sizeof(regie_device_description))
    return bad_plugin(d->title_ + " does not describe itself");
  return d;
}

Device::~Device() {
  if (handle_) table_->destroy(handle_);
}

bool Device::accepts(std::string_view format) const {
  for (uint32_t i = 0; i < about_->format_count; ++i)
    if (format == std::string_view(about_->formats[i].data, about_->formats[i].size)) return true;
  return false;
}

bool Device::has(std::string_view capability) const {
  for (uint32_t i = 0; i < about_->capability_count; ++i)
    if (capability == std::string_view(about_->capabilities[i].data, about_->capabilities[i].size))
      return true;
  return false;
}

Result<LoadedKernel> LoadedKernel::load(const Device& device, const ModelKernel& kernel) {
  regie_kernel_image image{};
  image.struct_size = sizeof image;
  image.flags = kernel.flags;
  image.format = {kernel.format.data(), kernel.format.size()};
  image.blob = kernel.blob.data();
  image.blob_size = kernel.blob.size();
  regie_loaded_kernel* handle = nullptr;
  REGIE_TRY(device.call([&] { return device.table().kernel_load(device.handle(), &image, &handle); }));
  if (!handle) return bad_plugin(device.title() + " loaded a kernel, but gave nothing");
  return LoadedKernel(device, handle);
}

Result<Fence> Fence::create(const Device& device) {
  regie_fence* handle = nullptr;
  REGIE_TRY(device.call([&] { return device.table().fence_create(device.handle(), &handle); }));
  if (!handle) return bad_plugin(device.title() + " created a fence, but gave nothing");
  return Fence(device, handle);
}

Result<Stream> Stream::create(const Device& device) {
  regie_stream* handle = nullptr;
  REGIE_TRY(device.call([&] { return device.table().stream_create(device.handle(), &handle); }));
  if (!handle) return bad_plugin(device.title() + " created a stream, but gave nothing");
  return Stream(device, handle);
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& o) noexcept {
  if (this == &o) return *this;
  reset();
  device_ = o.device_;
  space_ = o.space_;
  address_ = std::exchange(o.address_, nullptr);
  bytes_ = std::exchange(o.bytes_, 0);
  return *this;
}

void DeviceMemory::reset() {
  if (address_) device_->table().release(device_->handle(), space_, address_);
  address_ = nullptr;
  bytes_ = 0;
}

Result<DeviceMemory> DeviceMemory::allocate(const Device& device, uint32_t space, uint64_t bytes) {
  DeviceMemory memory;
  memory.device_ = &device;
  memory.space_ = space;
  if (bytes == 0) return memory;
  REGIE_TRY(
      device.call([&] { return device.table().allocate(device.handle(), space, bytes, &memory.address_); }));
  if (!memory.address_)
    return bad_plugin(device.title() + " gave no memory for " + std::to_string(bytes) + " bytes");
  memory.bytes_ = bytes;
  return memory;
}

}  // namespace regie
