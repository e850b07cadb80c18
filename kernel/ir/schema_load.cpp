// Reading operator schemas. A line such as "pads: ints = [0, 0] " is small enough that it is cut up by hand.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/file.h"
#include "base/toml.h"
#include "ir/schema.h"

namespace regie {

namespace {

using Groups = std::map<std::string, std::vector<regie_elem>>;

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t i = s.find(at);
    parts.push_back(trim(s.substr(0, i)));
    if (i == std::string_view::npos) return parts;
    s.remove_prefix(i + 1);
  }
}

bool is_name(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(),
                                   [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

Result<std::vector<regie_elem>> read_elems(const TomlValue& v, const Groups& groups) {
  std::vector<regie_elem> out;
  std::vector<std::string> names;
  if (v.is_string()) {
    REGIE_ASSIGN(std::string one, v.as_string());
    names.push_back(std::move(one));
  } else {
    REGIE_ASSIGN(names, v.as_strings());
  }
  for (const std::string& name : names) {
    if (auto g = groups.find(name); g != groups.end()) {
      out.insert(out.end(), g->second.begin(), g->second.end());
    } else if (auto e = elem_from_name(name)) {
      out.push_back(*e);
    } else {
      return invalid_input("'" + name + "' is neither an element type nor a group of [types] in this file",
                           v.where());
    }
  }
  if (out.empty()) return invalid_input("a list of element types must not be empty", v.where());
  return out;
}

Result<Groups> read_types(const TomlTable& table, const Groups& groups) {
  Groups out;
  for (const std::string& key : table.keys()) {
    REGIE_ASSIGN(TomlValue v, table.require(key));
    REGIE_ASSIGN(out[key], read_elems(v, groups));
  }
  return out;
}

Result<std::vector<SchemaOperand>> read_operands(const std::vector<std::string>& lines, const OpSchema& op,
                                                 const char* what) {
  std::vector<SchemaOperand> out;
  for (const std::string& line : lines) {
    auto wrong = [&](const std::string& why) {
      return invalid_input(std::string(what) + " \"" + line + "\" of " + op.name + ": " + why +
                               "; write \"X: T\", \"B: T?\" (optional) or \"X: T*\" (any number)",
                           op.where);
    };
    std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() != 2 || !is_name(parts[0])) return wrong("a name and a type are needed");
    SchemaOperand o;
    o.name = parts[0];
    std::string_view type = parts[1];
    if (type.ends_with('?')) o.optional = true;
    if (type.ends_with('*')) o.variadic = true;
    if (o.optional || o.variadic) type = trim(type.substr(0, type.size() - 1));
    o.type = type;
    if (!op.types.count(o.type) && !elem_from_name(type) && o.type != kAnyType)
      return wrong("'" + o.type + "' is neither a key of `types` nor an element type");
    if (!out.empty() && out.back().variadic) return wrong("nothing may follow what takes any number");
    for (const SchemaOperand& other : out)
      if (other.name == o.name) return wrong("this name is there twice");
    out.push_back(std::move(o));
  }
  return out;
}

const std::map<std::string_view, uint32_t>& attr_kinds() {
  static const std::map<std::string_view, uint32_t> kinds = {
      {"int", REGIE_ATTR_INT},      {"float", REGIE_ATTR_FLOAT},   {"string", REGIE_ATTR_STRING},
      {"ints", REGIE_ATTR_INTS},    {"floats", REGIE_ATTR_FLOATS}, {"strings", REGIE_ATTR_STRINGS},
      {"tensor", REGIE_ATTR_TENSOR}};
  return kinds;
}

template <class T>
bool read_number(std::string_view text, T* v) {
  text = trim(text);
  auto r = std::from_chars(text.data(), text.data() + text.size(), *v);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

// Frameworks keep float attributes in single precision.
bool read_single(std::string_view text, double* v) {
  float f = 0;
  if (!read_number(text, &f)) return false;
  *v = static_cast<double>(f);
  return true;
}

template <class T, class F>
bool read_list(std::string_view text, std::vector<T>* out, F&& read) {
  if (!text.starts_with('[') || !text.ends_with(']')) return false;
  text = trim(text.substr(1, text.size() - 2));
  if (text.empty()) return true;
  for (std::string_view part : split(text, ',')) {
    T v{};
    if (!read(part, &v)) return false;
    out->push_back(v);
  }
  return true;
}

bool read_default(std::string_view text, AttrValue* a) {
  switch (a->kind) {
    case REGIE_ATTR_INT:
      return read_number(text, &a->i);
    case REGIE_ATTR_FLOAT:
      return read_single(text, &a->f);
    case REGIE_ATTR_INTS:
      return read_list(text, &a->ints, read_number<int64_t>);
    case REGIE_ATTR_FLOATS:
      return read_list(text, &a->floats, read_single);
    case REGIE_ATTR_STRING:
      if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') return false;
      a->s = text.substr(1, text.size() - 2);
      return true;
    default:
      return false;
  }
}

// name ':' kind ['!'] ['=' default] ['in' word ('|' word)*]
Result<SchemaAttr> read_attr(const std::string& line, const OpSchema& op) {
  auto wrong = [&](const std::string& why) {
    return invalid_input("attribute \"" + line + "\" of " + op.name + ": " + why +
                             "; write e.g. \"group: int = 1\", \"axis: int!\" (required), \"pads: ints\", "
                             "\"mode: string = 'a' in a|b\"",
                         op.where);
  };
  SchemaAttr a;
  std::string_view rest = line;
  size_t colon = rest.find(':');
  if (colon == std::string_view::npos || !is_name(trim(rest.substr(0, colon))))
    return wrong("a name and a kind are needed");
  a.name = trim(rest.substr(0, colon));
  rest = trim(rest.substr(colon + 1));
  size_t end = 0;
  while (end < rest.size() && std::isalpha(static_cast<unsigned char>(rest[end]))) ++end;
  auto kind = attr_kinds().find(rest.substr(0, end));
  if (kind == attr_kinds().end())
    return wrong("unknown kind '" + std::string(rest.substr(0, end)) +
                 "'; known: int, float, string, ints, floats, strings, tensor");
  a.kind = kind->second;
  rest = trim(rest.substr(end));
  if (rest.starts_with('!')) {
    a.required = true;
    rest = trim(rest.substr(1));
  }
  std::string_view choices;
  if (rest.starts_with("in ")) {
    choices = rest.substr(3);
    rest = {};
  } else if (size_t in = rest.rfind(" in ");
             in != std::string_view::npos && rest.find('\'', in) == std::string_view::npos) {
    choices = rest.substr(in + 4);
    rest = trim(rest.substr(0, in));
  }
  if (!trim(choices).empty()) {
    if (a.kind != REGIE_ATTR_STRING) return wrong("only strings can have a list of choices");
    for (std::string_view c : split(choices, '|')) a.one_of.emplace_back(c);
  }
  if (rest.empty()) return a;
  if (!rest.starts_with('=')) return wrong("'" + std::string(rest) + "' is not understood");
  if (a.required) return wrong("a required attribute has no default");
  a.has_default = true;
  a.default_value.name = a.name;
  a.default_value.kind = a.kind;
  if (!read_default(trim(rest.substr(1)), &a.default_value))
    return wrong("the default does not fit the kind");
  if (!a.one_of.empty() && std::find(a.one_of.begin(), a.one_of.end(), a.default_value.s) == a.one_of.end())
    return wrong("the default is not one of the choices");
  return a;
}

Result<OpSchema> read_op(const TomlTable& table, const Groups& groups) {
  OpSchema op;
  op.where = table.where();
  REGIE_ASSIGN(TomlValue name, table.require("name"));
  REGIE_ASSIGN(op.name, name.as_string());
  if (!is_name(op.name)) return invalid_input("'" + op.name + "' is not an operator name", name.where());
  REGIE_ASSIGN(op.doc, table.string_or("doc", ""));
  if (auto types = table.find("types")) {
    REGIE_ASSIGN(TomlTable keys, types->as_table());
    REGIE_ASSIGN(op.types, read_types(keys, groups));
  }
  REGIE_ASSIGN(auto operands, table.strings_or("operands", {}));
  REGIE_ASSIGN(auto results, table.strings_or("results", {}));
  REGIE_ASSIGN(op.operands, read_operands(operands, op, "operand"));
  REGIE_ASSIGN(op.results, read_operands(results, op, "result"));
  REGIE_ASSIGN(auto attrs, table.strings_or("attributes", {}));
  for (const std::string& line : attrs) {
    REGIE_ASSIGN(SchemaAttr a, read_attr(line, op));
    if (op.find_attr(a.name))
      return invalid_input("attribute '" + a.name + "' of " + op.name + " is there twice", op.where);
    op.attrs.push_back(std::move(a));
  }
  if (auto regions = table.find("regions")) {
    REGIE_ASSIGN(auto ends, regions->as_array());
    std::vector<int64_t> numbers;
    for (const TomlValue& e : ends) {
      REGIE_ASSIGN(int64_t n, e.as_integer());
      numbers.push_back(n);
    }
    if (numbers.size() != 2 || numbers[0] < 0 || numbers[1] < numbers[0] || numbers[1] > UINT32_MAX)
      return invalid_input("regions must be [least, most]", regions->where());
    op.min_regions = static_cast<uint32_t>(numbers[0]);
    op.max_regions = static_cast<uint32_t>(numbers[1]);
  }
  REGIE_ASSIGN(op.open_attrs, table.bool_or("open_attributes", false));
  REGIE_ASSIGN(auto padding, table.strings_or("padding", {}));
  for (const std::string& line : padding) {
    auto rule = read_padding_rule(line);
    if (!rule.ok()) return invalid_input(rule.status().message(), op.where);
    op.padding.push_back(std::move(rule).value());
  }
  REGIE_TRY(table.finish());
  return op;
}

}  // namespace

Status SchemaSet::add_file(const std::string& path) {
  REGIE_ASSIGN(TomlTable file, TomlTable::parse_file(path));
  return add(file);
}

Status SchemaSet::add_text(std::string_view toml, std::string file_name) {
  REGIE_ASSIGN(TomlTable file, TomlTable::parse(toml, std::move(file_name)));
  return add(file);
}

Status SchemaSet::add(const TomlTable& file) {
  REGIE_TRY(file.check_schema(1));
  if (auto revision = file.find("revision")) {
    REGIE_ASSIGN(std::string name, revision->as_string());
    if (!revision_.empty() && name != revision_)
      return invalid_input("these schemas are for revision '" + name + "', those read before for '" +
                               revision_ + "'; one product has one revision",
                           revision->where());
    revision_ = name;
  }
  Groups groups;
  if (auto types = file.find("types")) {
    REGIE_ASSIGN(TomlTable table, types->as_table());
    REGIE_ASSIGN(groups, read_types(table, {}));
  }
  if (auto written = file.find("written_out")) {
    REGIE_ASSIGN(TomlTable table, written->as_table());
    for (const std::string& key : table.keys()) {
      REGIE_ASSIGN(TomlValue v, table.require(key));
      REGIE_ASSIGN(written_out_[key], v.as_string());
    }
  }
  if (auto ops = file.find("op")) {
    REGIE_ASSIGN(auto list, ops->as_array());
    for (const TomlValue& one : list) {
      REGIE_ASSIGN(TomlTable table, one.as_table());
      REGIE_ASSIGN(OpSchema op, read_op(table, groups));
      auto [at, added] = ops_.emplace(intern(op.name), op);
      if (!added)
        return invalid_input(
            "operator '" + op.name + "' is defined here and at " + at->second.where + "; remove one",
            op.where);
    }
  }
  return file.finish();
}

Result<SchemaSet> SchemaSet::load(const std::vector<std::string>& folders) {
  SchemaSet set;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::vector<std::string> files = files_in(folder, ".toml", &error);
    if (error) return io_error("the folder of operator schemas cannot be read: " + error.message(), folder);
    for (const std::string& f : files) REGIE_TRY(set.add_file(f));
  }
  return set;
}

}  // namespace regie
