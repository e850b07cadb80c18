#include "base/json_writer.h"

#include <cmath>
#include <cstdio>

namespace regie {

namespace {

// Length of the UTF-8 sequence at `at`, 0 if there is none. Overlong forms and surrogates are none.
size_t sequence(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned a = byte(at), b = byte(at + 1);
  if (a >= 0xc2 && a <= 0xdf && follows(at + 1)) return 2;
  if (a >= 0xe0 && a <= 0xef && follows(at + 1) && follows(at + 2))
    return (a == 0xe0 && b < 0xa0) || (a == 0xed && b >= 0xa0) ? 0 : 3;
  if (a >= 0xf0 && a <= 0xf4 && follows(at + 1) && follows(at + 2) && follows(at + 3))
    return (a == 0xf0 && b < 0x90) || (a == 0xf4 && b >= 0x90) ? 0 : 4;
  return 0;
}

}  // namespace

JsonWriter& JsonWriter::open(char bracket, bool lines) {
  before();
  out_ += bracket;
  open_ += bracket == '{' ? (lines ? 'O' : 'o') : (lines ? 'A' : 'a');
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close() {
  const char level = open_.back();
  open_.pop_back();
  if ((level == 'O' || level == 'A') && !first_) out_ += "\n" + std::string(open_.size(), ' ');
  out_ += level == 'O' || level == 'o' ? '}' : ']';
  first_ = false;
  return *this;
}

void JsonWriter::before() {
  if (keyed_) {
    keyed_ = false;
    return;
  }
  if (open_.empty()) return;
  const char level = open_.back();
  if (!first_) out_ += level == 'O' || level == 'A' ? "," : ", ";
  if (level == 'O' || level == 'A') {
    out_ += '\n';
    out_.append(open_.size(), ' ');
  }
  first_ = false;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before();
  quoted(name);
  out_ += ": ";
  keyed_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before();
  quoted(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool yes) {
  before();
  out_ += yes ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  before();
  char text[40] = "null";
  if (std::isfinite(number)) std::snprintf(text, sizeof text, "%.9g", number);
  out_ += text;
  return *this;
}

// Bytes that are no UTF-8 become U+FFFD, as names of files and models may hold any.
void JsonWriter::quoted(std::string_view text) {
  out_ += '"';
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      const size_t length = sequence(text, i);
      if (length)
        out_.append(text, i, length);
      else
        out_ += "\xef\xbf\xbd";
      i += length ? length : 1;
      continue;
    }
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += text[i];
    } else if (c == '\n') {
      out_ += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out_ += escaped;
    } else {
      out_ += text[i];
    }
    ++i;
  }
  out_ += '"';
}

}  // namespace regie
