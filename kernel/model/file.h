// The offline model file, .rgm: magic, format version, section table with checksums; protobuf for tasks and
// graph; weights on page boundaries so that they can be mapped. See docs/model-file.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "model/model.h"

namespace regie {

inline constexpr uint32_t kModelFormatVersion = 1;

// Complete or not there at all. The same model gives the same bytes.
Status save_model(const Model& model, const std::string& path, Sync sync = Sync::kYes);
// Maps the file. CORRUPT names the section whose checksum or length is wrong; INVALID_MODEL if it is no .rgm;
// UNSUPPORTED for a newer format, with both versions and what to do. Every index and range in it is checked,
// so that a well-checksummed but hostile file cannot make the runtime read outside.
// `kInBackground`: the model's `weight_check` tells later whether the weights' checksum is right, and must be
// asked before anything that was made from them is given out.
enum class WeightChecking : uint8_t { kAtOnce, kInBackground };
Result<std::shared_ptr<const Model>> load_model(const std::string& path,
                                                WeightChecking weights = WeightChecking::kAtOnce);
// The same of a file that is mapped already.
Result<std::shared_ptr<const Model>> load_model(const MappedFile& file, const std::string& path,
                                                WeightChecking weights = WeightChecking::kAtOnce);
// The same from bytes that `owner` keeps alive; `name` for messages.
Result<std::shared_ptr<const Model>> load_model(std::span<const std::byte> bytes,
                                                const std::shared_ptr<const void>& owner,
                                                const std::string& name);
bool looks_like_model_file(std::span<const std::byte> head);
// The plug-ins of the devices that a model file names, by a quick look: those that can be read if it is
// damaged.
std::vector<std::string> device_plugins(std::span<const std::byte> file);

// Text for `regie inspect`: identity, sections with sizes, memory spaces, inputs and outputs, tasks.
Result<std::string> inspect_model(const std::string& path);

// Checks every index, range and type reference of a model in memory (also run on load). INTERNAL or CORRUPT
// with the place.
Status check_model(const Model& model);

}  // namespace regie
