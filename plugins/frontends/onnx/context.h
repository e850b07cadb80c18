// What every part of the frontend shares: the import at hand, and failures that say file, node and reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regie/c/frontend.h"
#include "regie/plugin.hpp"

namespace regie::onnx {

// 'name', with bytes that would garble a terminal replaced: names come from the file.
std::string quoted(std::string_view name);

// The host refused a call and keeps the words; only the code travels on.
struct HostFailure {
  regie_status code;
};

struct Context {
  explicit Context(const regie_import* i) : import(i), file(sdk::sv(i->source->path)) {
    if (file.empty()) file = "model";
  }

  // What is being read from now on: a node with its operator, or (op empty) a place such as "initializer
  // 'w'".
  void at(std::string_view name, std::string_view op) {
    place = op.empty() ? std::string(name) : "node " + quoted(name) + " (" + std::string(op) + ")";
    import->set_origin(import, sdk::str(name), sdk::str(op));
  }
  [[noreturn]] void fail(regie_status code, std::string message) const {
    throw sdk::Failure(code, std::move(message), place.empty() ? file : file + ": " + place);
  }
  [[noreturn]] void invalid(std::string message) const { fail(REGIE_INVALID_MODEL, std::move(message)); }
  [[noreturn]] void unsupported(std::string message) const { fail(REGIE_UNSUPPORTED, std::move(message)); }
  static void check(regie_status code) {
    if (code != REGIE_OK) throw HostFailure{code};
  }

  const regie_import* import;
  std::string file, place;
};

}  // namespace regie::onnx
