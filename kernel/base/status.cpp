#include "base/status.h"

namespace regie {

namespace {
const std::string kEmpty;
const std::vector<std::string> kNone;
}  // namespace

Status Status::error(regie_status code, std::string message, std::string where) {
  Status s;
  s.rep_ = std::make_shared<Rep>(Rep{code, std::move(message), std::move(where), {}});
  return s;
}

const std::string& Status::message() const { return rep_ ? rep_->message : kEmpty; }
const std::string& Status::where() const { return rep_ ? rep_->where : kEmpty; }
const std::vector<std::string>& Status::context() const { return rep_ ? rep_->context : kNone; }

Status&& Status::while_doing(std::string what) && {
  if (rep_) rep_->context.push_back(std::move(what));
  return std::move(*this);
}

Status& Status::set_where(std::string where) {
  if (rep_ && rep_->where.empty()) rep_->where = std::move(where);
  return *this;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text = rep_->where.empty() ? rep_->message : rep_->where + ": " + rep_->message;
  if (!rep_->context.empty()) {
    text += " (";
    for (size_t i = 0; i < rep_->context.size(); ++i) text += (i ? "; while " : "while ") + rep_->context[i];
    text += ")";
  }
  return text;
}

std::string_view status_code_name(regie_status code) {
  switch (code) {
    case REGIE_OK:
      return "ok";
    case REGIE_INVALID_MODEL:
      return "invalid model";
    case REGIE_INVALID_INPUT:
      return "invalid input";
    case REGIE_UNSUPPORTED:
      return "unsupported";
    case REGIE_NOT_FOUND:
      return "not found";
    case REGIE_IO:
      return "input/output";
    case REGIE_CORRUPT:
      return "corrupt";
    case REGIE_OUT_OF_MEMORY:
      return "out of memory";
    case REGIE_LIMIT:
      return "limit reached";
    case REGIE_BAD_PLUGIN:
      return "bad plug-in";
    case REGIE_TIMEOUT:
      return "timeout";
    case REGIE_DEVICE:
      return "device error";
    default:
      return "internal";
  }
}

}  // namespace regie
