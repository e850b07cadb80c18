#include "runtime/shape_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/json_writer.h"
#include "base/log.h"

namespace regie {

ShapeLog::ShapeLog(int file, std::string path, std::vector<std::string> names)
    : file_(file), path_(std::move(path)), names_(std::move(names)) {}

ShapeLog::~ShapeLog() { ::close(file_); }

Result<std::shared_ptr<ShapeLog>> ShapeLog::open(const std::string& path, std::vector<std::string> names) {
  // Lines are put behind what is there: of a log, not of a model whose name was given by mistake.
  if (const int there = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); there >= 0) {
    struct stat info {};
    char first = '{';
    const bool other = ::fstat(there, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
                       ::pread(there, &first, 1, 0) == 1 && first != '{';
    ::close(there);
    if (other)
      return invalid_input(
          "it is there and no log of shapes, which has a JSON object a line; choose another file", path);
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    return io_error(
        "the log of shapes cannot be written: " + std::string(std::strerror(errno)) + "; choose another file",
        path);
  return std::shared_ptr<ShapeLog>(new ShapeLog(file, path, std::move(names)));
}

void ShapeLog::write(std::span<const regie_tensor> inputs) {
  JsonWriter j;
  j.open_object();
  for (size_t i = 0; i < inputs.size() && i < names_.size(); ++i) {
    if (inputs[i].rank < 0 || (inputs[i].rank && !inputs[i].dims))
      return;  // the run says what is wrong with it
    j.key(names_[i]).open_array();
    for (int32_t d = 0; d < inputs[i].rank; ++d) j.value(inputs[i].dims[d]);
    j.close();
  }
  const std::string line = j.close().take() + "\n";
  std::lock_guard lock(mutex_);
  if (failed_ || ::write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  failed_ = true;
  log(REGIE_LOG_WARNING, "shapes",
      "the log of shapes is given up: " + path_ + " cannot be written: " + std::strerror(errno));
}

}  // namespace regie
