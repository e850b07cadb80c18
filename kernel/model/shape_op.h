// An operator with its attributes, as a task keeps it whose result's shape depends on data: what the shape
// function is asked with when the run gets there. The bytes are those of regie/op_blob.hpp, and are as
// untrusted as the file that holds them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "regie/c/view.h"

namespace regie {

class ShapeOp {
 public:
  static Result<std::string> write(std::string_view op, std::span<const regie_attr> attrs);
  static Result<ShapeOp> read(std::string_view bytes);  // CORRUPT with the reason

  std::string_view op() const;
  std::span<const regie_attr> attrs() const;  // sorted by name, as they were written

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace regie
