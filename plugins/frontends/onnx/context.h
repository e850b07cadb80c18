// What every part of the frontend shares: the import at hand, and failures that say file, node and reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regie/c/frontend.h"
#include "regie/plugin.hpp"

namespace regie::onnx {

// Names come from the file: control characters and bytes that are not UTF-8 become '?', as terminals, JSON
// and the text form do not take them.
std::string printable(std::string_view name);
inline std::string quoted(std::string_view name) { return "'" + printable(name) + "'"; }

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
    const std::string shown = printable(name), shown_op = printable(op);
    place = op.empty() ? shown : "node '" + shown + "' (" + shown_op + ")";
    import->set_origin(import, sdk::str(shown), sdk::str(shown_op));
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
  std::string_view producer;  // the tool that wrote the model, as it calls itself
  uint64_t dense_bytes = 0;   // of sparse tensors so far
};

}  // namespace regie::onnx
