#include "base/toml.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>

// The parser of toml++ asserts what a broken file does not keep ("[%" for one), and under NDEBUG takes it for
// granted; it reports the same mistakes a few lines on.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/file.h"

namespace regie {

namespace {

struct Document {
  std::string file;
  toml::table root;
};

const toml::node& node_at(const void* node) { return *static_cast<const toml::node*>(node); }

std::string place(const std::string& file, uint32_t line) {
  return line == 0 ? file : file + ":" + std::to_string(line);
}

std::string shown(std::string_view key) { return "'" + std::string(key) + "'"; }

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

// The shortest text that reads back as the same number, with a point so that it stays a float.
std::string number_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    if (std::strtod(text, nullptr) == v) break;
  }
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

void append_text(std::string& out, const toml::node& node) {
  if (const auto* s = node.as_string()) {
    out += s->get();
  } else if (const auto* i = node.as_integer()) {
    out += std::to_string(i->get());
  } else if (const auto* f = node.as_floating_point()) {
    out += number_text(f->get());
  } else if (const auto* b = node.as_boolean()) {
    out += b->get() ? "true" : "false";
  } else if (const auto* a = node.as_array()) {
    out += '[';
    bool first = true;
    for (const toml::node& item : *a) {
      if (!first) out += ", ";
      first = false;
      append_text(out, item);
    }
    out += ']';
  } else if (const auto* t = node.as_table()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : *t) {
      if (!first) out += ", ";
      first = false;
      out.append(key.str()).append(" = ");
      append_text(out, item);
    }
    out += '}';
  } else {
    std::ostringstream text;
    if (const auto* d = node.as_date())
      text << d->get();
    else if (const auto* c = node.as_time())
      text << c->get();
    else if (const auto* m = node.as_date_time())
      text << m->get();
    out += text.str();
  }
}

std::vector<std::string> keys_in_order(const toml::table& table) {
  std::vector<std::pair<toml::source_position, std::string>> found;
  for (const auto& [key, node] : table) found.emplace_back(key.source().begin, std::string(key.str()));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> keys;
  for (auto& entry : found) keys.push_back(std::move(entry.second));
  return keys;
}

}  // namespace

struct TomlTable::Rep {
  std::shared_ptr<const Document> document;
  const toml::table* table = nullptr;
  std::string name;  // how messages call it; empty for the document itself
  std::set<std::string, std::less<>> known;
};

bool TomlValue::is_string() const { return node_at(node_).is_string(); }
bool TomlValue::is_integer() const { return node_at(node_).is_integer(); }
bool TomlValue::is_number() const { return node_at(node_).is_number(); }
bool TomlValue::is_bool() const { return node_at(node_).is_boolean(); }
bool TomlValue::is_array() const { return node_at(node_).is_array(); }
bool TomlValue::is_table() const { return node_at(node_).is_table(); }

int TomlValue::line() const { return static_cast<int>(node_at(node_).source().begin.line); }

std::string TomlValue::where() const {
  return place(static_cast<const Document*>(document_.get())->file, node_at(node_).source().begin.line);
}

namespace {
Status wrong_type(const TomlValue& value, const std::string& key, std::string_view wanted, const void* node) {
  return invalid_input(
      shown(key) + " must be " + std::string(wanted) + ", not " + std::string(kind_of(node_at(node))),
      value.where());
}
}  // namespace

Result<std::string> TomlValue::as_string() const {
  if (const auto* v = node_at(node_).as_string()) return std::string(v->get());
  return wrong_type(*this, key_, "a string", node_);
}

Result<int64_t> TomlValue::as_integer() const {
  if (const auto* v = node_at(node_).as_integer()) return int64_t{v->get()};
  return wrong_type(*this, key_, "an integer", node_);
}

Result<double> TomlValue::as_number() const {
  if (const auto* v = node_at(node_).as_floating_point()) return double{v->get()};
  if (const auto* v = node_at(node_).as_integer()) return static_cast<double>(v->get());
  return wrong_type(*this, key_, "a number", node_);
}

Result<bool> TomlValue::as_bool() const {
  if (const auto* v = node_at(node_).as_boolean()) return bool{v->get()};
  return wrong_type(*this, key_, "true or false", node_);
}

Result<std::vector<TomlValue>> TomlValue::as_array() const {
  const auto* array = node_at(node_).as_array();
  if (!array) return wrong_type(*this, key_, "an array", node_);
  std::vector<TomlValue> values;
  values.reserve(array->size());
  for (const toml::node& item : *array) {
    TomlValue v;
    v.document_ = document_;
    v.node_ = &item;
    v.key_ = key_ + "[" + std::to_string(values.size()) + "]";
    values.push_back(std::move(v));
  }
  return values;
}

Result<std::vector<std::string>> TomlValue::as_strings() const {
  if (!is_array()) return wrong_type(*this, key_, "an array of strings", node_);
  REGIE_ASSIGN(const std::vector<TomlValue> values, as_array());
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const TomlValue& v : values) {
    REGIE_ASSIGN(std::string text, v.as_string());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<TomlTable> TomlValue::as_table() const {
  const auto* table = node_at(node_).as_table();
  if (!table) return wrong_type(*this, key_, "a table", node_);
  TomlTable t;
  t.rep_ = std::make_shared<TomlTable::Rep>();
  t.rep_->document = std::static_pointer_cast<const Document>(document_);
  t.rep_->table = table;
  t.rep_->name = key_;
  return t;
}

std::string TomlValue::to_text() const {
  std::string text;
  append_text(text, node_at(node_));
  return text;
}

Result<TomlTable> TomlTable::parse_file(const std::string& path) {
  REGIE_ASSIGN(const std::string text, read_text_file(path));
  return parse(text, path);
}

Result<TomlTable> TomlTable::parse(std::string_view text, std::string file_name) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return invalid_input("not valid TOML: " + std::string(error.description()),
                         place(file_name, error.source().begin.line));
  }
  auto document = std::make_shared<Document>();
  document->file = std::move(file_name);
  document->root = std::move(parsed).table();
  TomlTable t;
  t.rep_ = std::make_shared<Rep>();
  t.rep_->table = &document->root;
  t.rep_->document = std::move(document);
  return t;
}

std::optional<TomlValue> TomlTable::find(std::string_view key) const {
  rep_->known.emplace(key);
  const toml::node* node = rep_->table->get(key);
  if (!node) return std::nullopt;
  TomlValue v;
  v.document_ = rep_->document;
  v.node_ = node;
  v.key_ = key;
  return v;
}

Result<TomlValue> TomlTable::require(std::string_view key) const {
  if (auto v = find(key)) return *v;
  std::string text = "key " + shown(key) + " is missing";
  if (!rep_->name.empty()) text += " in " + shown(rep_->name);
  // Most often it is there, misspelt.
  std::vector<std::string> strangers;
  for (std::string& there : keys_in_order(*rep_->table))
    if (!rep_->known.count(there)) strangers.push_back(std::move(there));
  if (auto misspelt = nearest_name(key, strangers)) text += "; is " + shown(*misspelt) + " meant to be it?";
  return invalid_input(std::move(text), where());
}

Result<std::string> TomlTable::string_or(std::string_view key, std::string fallback) const {
  if (auto v = find(key)) return v->as_string();
  return fallback;
}

Result<int64_t> TomlTable::integer_or(std::string_view key, int64_t fallback) const {
  if (auto v = find(key)) return v->as_integer();
  return fallback;
}

Result<bool> TomlTable::bool_or(std::string_view key, bool fallback) const {
  if (auto v = find(key)) return v->as_bool();
  return fallback;
}

Result<std::vector<std::string>> TomlTable::strings_or(std::string_view key,
                                                       std::vector<std::string> fallback) const {
  if (auto v = find(key)) return v->as_strings();
  return fallback;
}

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> keys = keys_in_order(*rep_->table);
  rep_->known.insert(keys.begin(), keys.end());
  return keys;
}

Status TomlTable::finish() const {
  for (const std::string& key : keys_in_order(*rep_->table)) {
    if (rep_->known.count(key)) continue;
    std::string text = "unknown key " + shown(key);
    if (!rep_->name.empty()) text += " in " + shown(rep_->name);
    const std::vector<std::string> known(rep_->known.begin(), rep_->known.end());
    if (auto nearest = nearest_name(key, known)) {
      text += "; did you mean " + shown(*nearest) + "?";
    } else {
      text += "; known here:";
      for (size_t i = 0; i < known.size(); ++i) text += (i ? ", " : " ") + known[i];
    }
    for (const auto& [name, node] : *rep_->table)
      if (name.str() == key) return invalid_input(std::move(text), place(file(), name.source().begin.line));
  }
  return {};
}

Status TomlTable::check_schema(int64_t max) const {
  REGIE_ASSIGN(const TomlValue value, require("schema"));
  REGIE_ASSIGN(const int64_t schema, value.as_integer());
  if (schema >= 1 && schema <= max) return {};
  std::string text = "schema = " + std::to_string(schema) + " is not known here; this version reads 1";
  if (max > 1) text += " to " + std::to_string(max);
  if (schema > max) text += "; the file is for a newer version";
  return invalid_input(std::move(text), value.where());
}

std::string TomlTable::where() const { return place(file(), rep_->table->source().begin.line); }

const std::string& TomlTable::file() const { return rep_->document->file; }

namespace {
// Edit distance in which swapping two neighbours is one step; `limit` + 1 if it is more than that.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > limit) return limit + 1;
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      current[j] =
          std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string lower(std::string_view text) {
  std::string s(text);
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return s;
}
}  // namespace

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 200;
  if (name.empty() || name.size() > kLongest) return std::nullopt;
  const std::string wanted = lower(name);
  size_t limit = 1 + name.size() / 4, best_begins = 0;
  std::optional<std::string> best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::string known = lower(candidate);
    const size_t distance = edit_distance(wanted, known, limit);
    // A name of one or two letters is near everything.
    if (distance > limit || distance >= candidate.size()) continue;
    // Of equally near ones that which begins alike for longer: people leave the end out.
    const auto begins = static_cast<size_t>(
        std::mismatch(wanted.begin(), wanted.end(), known.begin(), known.end()).first - wanted.begin());
    if (best && distance == limit && begins <= best_begins) continue;
    best = candidate;
    if (distance == 0) break;
    limit = distance;
    best_begins = begins;
  }
  return best;
}

}  // namespace regie
