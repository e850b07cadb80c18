// Status and Result: how functions of the kernel fail. A failure has a code, a message, the place in the
// *user's* file (path, node, line), and a chain of "while ..." lines that callers add. Exceptions never cross
// a kernel function.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "regie/c/status.h"

namespace regie {

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  // `where` names the user's file and node or line, e.g. "model.onnx: node 'conv1'"; may be empty.
  static Status error(regie_status code, std::string message, std::string where = {});

  bool ok() const { return rep_ == nullptr; }
  regie_status code() const { return rep_ ? rep_->code : REGIE_OK; }
  const std::string& message() const;
  const std::string& where() const;
  const std::vector<std::string>& context() const;  // innermost first

  // Adds "while <what>" to a failure; nothing to a success.
  Status&& while_doing(std::string what) &&;
  Status& set_where(std::string where);  // only if none is set yet
  // "where: message (while a; while b)".
  std::string to_string() const;

 private:
  struct Rep {
    regie_status code;
    std::string message, where;
    std::vector<std::string> context;
  };
  std::shared_ptr<Rep> rep_;
};

inline Status invalid_model(std::string m, std::string where = {}) {
  return Status::error(REGIE_INVALID_MODEL, std::move(m), std::move(where));
}
inline Status invalid_input(std::string m, std::string where = {}) {
  return Status::error(REGIE_INVALID_INPUT, std::move(m), std::move(where));
}
inline Status unsupported(std::string m, std::string where = {}) {
  return Status::error(REGIE_UNSUPPORTED, std::move(m), std::move(where));
}
inline Status not_found(std::string m, std::string where = {}) {
  return Status::error(REGIE_NOT_FOUND, std::move(m), std::move(where));
}
inline Status io_error(std::string m, std::string where = {}) {
  return Status::error(REGIE_IO, std::move(m), std::move(where));
}
inline Status corrupt(std::string m, std::string where = {}) {
  return Status::error(REGIE_CORRUPT, std::move(m), std::move(where));
}
inline Status bad_plugin(std::string m, std::string where = {}) {
  return Status::error(REGIE_BAD_PLUGIN, std::move(m), std::move(where));
}
inline Status internal_error(std::string m, std::string where = {}) {
  return Status::error(REGIE_INTERNAL, std::move(m), std::move(where));
}

// "invalid model", "unsupported" ...
std::string_view status_code_name(regie_status code);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}         // NOLINT: implicit by intent
  Result(Status status) : v_(std::in_place_index<1>, std::move(status)) {}  // NOLINT: implicit by intent
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Status status() const& { return ok() ? Status() : std::get<1>(v_); }
  Status status() && { return ok() ? Status() : std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Status> v_;
};

#define REGIE_CONCAT_(a, b) a##b
#define REGIE_CONCAT(a, b) REGIE_CONCAT_(a, b)
// Returns the failure of `expr` (a Status) from the enclosing function.
#define REGIE_TRY(expr)                                   \
  do {                                                    \
    if (::regie::Status s_ = (expr); !s_.ok()) return s_; \
  } while (0)
// `REGIE_ASSIGN(auto x, f());` declares x from a Result or returns its failure.
#define REGIE_ASSIGN(decl, expr) REGIE_ASSIGN_(REGIE_CONCAT(result_, __LINE__), decl, expr)
#define REGIE_ASSIGN_(tmp, decl, expr)           \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  decl = std::move(tmp).value()

}  // namespace regie
