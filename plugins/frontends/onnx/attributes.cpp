#include "attributes.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace regie::onnx {

namespace {

using Kind = wire::Attribute::Kind;

struct KindName {
  char letter;
  const char* text;
};

KindName name_of(Kind kind) {
  switch (kind) {
    case wire::Attribute::FLOAT:
      return {'f', "a float"};
    case wire::Attribute::INT:
      return {'i', "an integer"};
    case wire::Attribute::STRING:
      return {'s', "a string"};
    case wire::Attribute::TENSOR:
      return {'t', "a tensor"};
    case wire::Attribute::GRAPH:
      return {'g', "a graph"};
    case wire::Attribute::FLOATS:
      return {'F', "a list of floats"};
    case wire::Attribute::INTS:
      return {'I', "a list of integers"};
    case wire::Attribute::STRINGS:
      return {'S', "a list of strings"};
    case wire::Attribute::SPARSE_TENSOR:
      return {'p', "a sparse tensor"};
    default:
      return {'?', "of a kind that no operator has"};
  }
}

const char* name_of(char letter) {
  for (Kind k : {wire::Attribute::FLOAT, wire::Attribute::INT, wire::Attribute::STRING,
                 wire::Attribute::TENSOR, wire::Attribute::GRAPH, wire::Attribute::FLOATS,
                 wire::Attribute::INTS, wire::Attribute::STRINGS, wire::Attribute::SPARSE_TENSOR})
    if (name_of(k).letter == letter) return name_of(k).text;
  return "?";
}

// The letter of `name` in "axis:i pads:I"; 0 if it is not there.
char letter_of(std::string_view known, std::string_view name) {
  for (size_t at = 0; at < known.size();) {
    size_t colon = known.find(':', at);
    if (known.substr(at, colon - at) == name) return known[colon + 1];
    at = colon + 3;
  }
  return 0;
}

std::string names_in(std::string_view known) {
  std::string text;
  for (size_t at = 0; at < known.size();) {
    size_t colon = known.find(':', at);
    text += (text.empty() ? "" : ", ") + std::string(known.substr(at, colon - at));
    at = colon + 3;
  }
  return text.empty() ? "none" : text;
}

uint32_t kind_number(char letter) {
  switch (letter) {
    case 'i':
      return REGIE_ATTR_INT;
    case 'f':
      return REGIE_ATTR_FLOAT;
    case 's':
      return REGIE_ATTR_STRING;
    case 'I':
      return REGIE_ATTR_INTS;
    case 'F':
      return REGIE_ATTR_FLOATS;
    case 'S':
      return REGIE_ATTR_STRINGS;
    default:
      return REGIE_ATTR_TENSOR;
  }
}

Attribute named(std::string name, uint32_t kind) {
  Attribute a;
  a.name = std::move(name);
  a.kind = kind;
  return a;
}

}  // namespace

double shortest(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof(text) - 1, value);
  if (error != std::errc()) return value;
  double decimal = value;
  std::from_chars(text, end, decimal);
  return static_cast<float>(decimal) == value ? decimal : value;
}

Kind kind_of(const wire::Attribute& a) {
  if (a.has_type() && a.type() != wire::Attribute::UNDEFINED) return a.type();
  if (a.has_f()) return wire::Attribute::FLOAT;
  if (a.has_i()) return wire::Attribute::INT;
  if (a.has_s()) return wire::Attribute::STRING;
  if (a.has_t()) return wire::Attribute::TENSOR;
  if (a.has_g()) return wire::Attribute::GRAPH;
  if (a.has_sparse_tensor()) return wire::Attribute::SPARSE_TENSOR;
  if (a.floats_size()) return wire::Attribute::FLOATS;
  if (a.strings_size()) return wire::Attribute::STRINGS;
  return a.ints_size() ? wire::Attribute::INTS : wire::Attribute::UNDEFINED;
}

Attribute Attribute::integer(std::string name, int64_t value) {
  Attribute a = named(std::move(name), REGIE_ATTR_INT);
  a.i = value;
  return a;
}

Attribute Attribute::number(std::string name, double value) {
  Attribute a = named(std::move(name), REGIE_ATTR_FLOAT);
  a.f = value;
  return a;
}

Attribute Attribute::text(std::string name, std::string value) {
  Attribute a = named(std::move(name), REGIE_ATTR_STRING);
  a.s = std::move(value);
  return a;
}

Attribute Attribute::list(std::string name, std::vector<int64_t> values) {
  Attribute a = named(std::move(name), REGIE_ATTR_INTS);
  a.ints = std::move(values);
  return a;
}

Attributes Attributes::read(const Context& context, const wire::Node& node, const char* known,
                            int64_t opset) {
  Attributes out;
  for (const wire::Attribute& from : node.attribute()) {
    const std::string& name = from.name();
    if (name.empty()) context.invalid("an attribute has no name");
    for (const Attribute& other : out.list_)
      if (other.name == name) context.invalid("attribute " + quoted(name) + " is there twice");
    if (from.has_ref_attr_name() && !from.ref_attr_name().empty())
      context.invalid("attribute " + quoted(name) + " refers to " + quoted(from.ref_attr_name()) +
                      ", an attribute of a function, but the node is not in one");
    Kind kind = kind_of(from);
    const char letter = known ? letter_of(known, name) : name_of(kind).letter;
    if (letter == 0)
      context.invalid("the operator has no attribute " + quoted(name) + " at operator set " +
                      std::to_string(opset) + "; it has: " + names_in(known));
    // An empty list of an old file shows nothing.
    const bool empty_list =
        kind == wire::Attribute::UNDEFINED && (letter == 'I' || letter == 'F' || letter == 'S');
    if (name_of(kind).letter != letter && !empty_list)
      context.invalid("attribute " + quoted(name) + " must be " + name_of(letter) + ", but is " +
                      name_of(kind).text);
    if ((letter == 'g' || letter == 'p') && known) continue;
    if (letter == '?' || letter == 'g' || letter == 'p')
      context.unsupported("attribute " + quoted(name) + " is " + name_of(kind).text);
    Attribute to;
    to.name = name;
    to.kind = kind_number(letter);
    switch (letter) {
      case 'i':
        to.i = from.i();
        break;
      case 'f':
        to.f = shortest(from.f());
        break;
      case 's':
        to.s = from.s();
        break;
      case 'I':
        to.ints.assign(from.ints().begin(), from.ints().end());
        break;
      case 'F':
        for (float f : from.floats()) to.floats.push_back(shortest(f));
        break;
      case 'S':
        to.strings.assign(from.strings().begin(), from.strings().end());
        break;
      default:
        to.tensor = read_tensor(context, from.t(), "attribute " + quoted(name));
        break;
    }
    out.list_.push_back(std::move(to));
  }
  return out;
}

std::optional<Attribute> Attributes::take(std::string_view name) {
  for (auto it = list_.begin(); it != list_.end(); ++it) {
    if (it->name != name) continue;
    Attribute a = std::move(*it);
    list_.erase(it);
    return a;
  }
  return std::nullopt;
}

int64_t Attributes::take_integer(std::string_view name, int64_t fallback) {
  auto a = take(name);
  return a ? a->i : fallback;
}

double Attributes::take_number(std::string_view name, double fallback) {
  auto a = take(name);
  return a ? a->f : fallback;
}

std::string Attributes::take_text(std::string_view name, std::string fallback) {
  auto a = take(name);
  return a ? std::move(a->s) : std::move(fallback);
}

std::optional<std::vector<int64_t>> Attributes::take_integers(std::string_view name) {
  auto a = take(name);
  if (!a) return std::nullopt;
  return std::move(a->ints);
}

AttributeViews::AttributeViews(const std::vector<Attribute>& list) {
  // Neither may move once pointed to.
  tensors_.reserve(list.size());
  strings_.reserve(list.size());
  for (const Attribute& a : list) {
    regie_attr v{};
    v.name = sdk::str(a.name);
    v.kind = a.kind;
    v.count = 1;
    switch (a.kind) {
      case REGIE_ATTR_INT:
        v.v.i = a.i;
        break;
      case REGIE_ATTR_FLOAT:
        v.v.f = a.f;
        break;
      case REGIE_ATTR_STRING:
        v.v.s = sdk::str(a.s);
        break;
      case REGIE_ATTR_INTS:
        v.v.ints = a.ints.data();
        v.count = static_cast<uint32_t>(a.ints.size());
        break;
      case REGIE_ATTR_FLOATS:
        v.v.floats = a.floats.data();
        v.count = static_cast<uint32_t>(a.floats.size());
        break;
      case REGIE_ATTR_STRINGS: {
        auto& strs = strings_.emplace_back();
        for (const std::string& s : a.strings) strs.push_back(sdk::str(s));
        v.v.strs = strs.data();
        v.count = static_cast<uint32_t>(strs.size());
        break;
      }
      default:
        tensors_.push_back(a.tensor.view());
        v.v.tensor = &tensors_.back();
        break;
    }
    views_.push_back(v);
  }
}

}  // namespace regie::onnx
