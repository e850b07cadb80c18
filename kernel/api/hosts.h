// The plug-in hosts of the process, and libraries of devices that are opened before anybody waits for them.
// Finding the plug-ins and opening oneDNN takes some three milliseconds, as long as everything else about the
// start of a small network; it needs nothing of the model but a device's name.
#pragma once

#include <future>
#include <string>

#include "base/status.h"
#include "base/file.h"
#include "plugins/host.h"

namespace regie {

// As api_plugin_host (objects.h), but without its effects: for hosts that nobody needs yet.
Result<std::shared_ptr<PluginHost>> find_host(const std::string& plugin_path);

// Begins to open the libraries of `device` on a thread, and returns. What fails there fails again, with its
// words, for whoever needs the device. The end of the process waits for the thread, and so does a fork.
Status open_ahead(const std::string& device, const std::string& plugin_path);

// The same for the devices of a model file, for the first one of a process: beside reading it, if
// there is a processor for that. The future waits at its end.
std::future<void> open_devices_of(const MappedFile& file);

}  // namespace regie
