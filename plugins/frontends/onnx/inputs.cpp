#include "inputs.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "regie/plugin.hpp"
#include "tensors.h"

namespace regie::onnx {

namespace {

constexpr std::string_view kDefaults = "defaults";

// A dimension: a number, or a symbol by the name that the file or the option gives it.
struct Dimension {
  std::optional<int64_t> number;
  std::string symbol;
};

struct Setting {
  std::string input;
  std::vector<std::optional<Dimension>> dims;  // nothing: "?", as the model has it
};

[[noreturn]] void bad_option(const Context& context, const std::string& message) {
  throw sdk::Failure(REGIE_INVALID_INPUT, message, context.file);
}

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// "?", "-1" and their like are how some exporters write "not known": two of them need not be equal.
bool has_letter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) || c >= 0x80; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "x=16,1,8,8", "x=N,?,8,8", "x=" for a scalar.
Setting parse_setting(const Context& context, std::string_view text) {
  const std::string whole = "option 'shape': " + quoted(text);
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos)
    bad_option(context, whole + " must be like x=16,1,8,8 (input=dimensions)");
  Setting out{std::string(trimmed(text.substr(0, equals))), {}};
  std::string_view rest = trimmed(text.substr(equals + 1));
  for (bool more = !rest.empty(); more;) {
    const size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = trimmed(rest.substr(0, comma));
    rest = more ? rest.substr(comma + 1) : std::string_view();
    int64_t n = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (part == "?") {
      out.dims.emplace_back();
    } else if (error == std::errc() && end == part.data() + part.size() && n >= 0) {
      out.dims.push_back(Dimension{n, {}});
    } else if (is_name(part)) {
      out.dims.push_back(Dimension{{}, std::string(part)});
    } else {
      bad_option(context, whole + ": " + quoted(part) +
                              " is not a dimension; use a number from 0, a name, or ? to leave it");
    }
  }
  return out;
}

class Reader {
 public:
  Reader(Context& context, const Body& body) : context_(context), body_(body) {}

  std::vector<Input> read() {
    for (const wire::ValueInfo& v : body_.proto->input())
      if (body_.definitions.at(v.name()).kind == Definition::kInput) declare(v);
    const regie_config* options = context_.import->options;
    for (uint32_t i = 0; options && i < options->count; ++i) {
      if (sdk::sv(options->settings[i].key) == kDefaults) continue;
      if (sdk::sv(options->settings[i].key) != "shape")
        bad_option(context_, "option " + quoted(sdk::sv(options->settings[i].key)) +
                                 " is not one of ONNX models; known: shape, defaults");
      apply(parse_setting(context_, sdk::sv(options->settings[i].value)));
    }
    std::vector<Input> out;
    for (Declared& d : inputs_) out.push_back(finish(d));
    return out;
  }

 private:
  struct Declared {
    std::string_view name;
    regie_elem elem;
    bool ranked;
    std::vector<Dimension> dims;
  };

  void declare(const wire::ValueInfo& v) {
    context_.at("input " + quoted(v.name()), "");
    // An optional that is an input has its content: a run without it is refused.
    const bool optional =
        v.type().has_optional_type() && v.type().optional_type().elem_type().has_tensor_type();
    const wire::Type& type = optional ? v.type().optional_type().elem_type() : v.type();
    if (type.has_sequence_type() || type.has_map_type() || type.has_opaque_type() ||
        type.has_sparse_tensor_type() || type.has_optional_type())
      context_.unsupported("only tensors can be inputs; this is a sequence, a map, or sparse");
    if (!type.has_tensor_type()) context_.invalid("the input has no type");
    Declared d{
        v.name(), element_type(context_, type.tensor_type().elem_type()), type.tensor_type().has_shape(), {}};
    for (const wire::Shape::Dimension& from : type.tensor_type().shape().dim()) {
      Dimension dim;
      // Negative numbers are how some exporters write "not known".
      if (from.has_value() && from.value() >= 0) {
        dim.number = from.value();
      } else if (has_letter(from.param())) {
        dim.symbol = from.param();
      } else {
        dim.symbol = v.name() + "_" + std::to_string(d.dims.size());
      }
      d.dims.push_back(std::move(dim));
    }
    if (auto it = body_.defaults.find(v.name()); it != body_.defaults.end()) agree(it->second, &d);
    inputs_.push_back(std::move(d));
  }

  // The initializer of an input is what counts: exporters leave other sizes behind.
  void agree(const Definition& initializer, Declared* d) {
    const wire::Graph& g = *body_.proto;
    const int at = static_cast<int>(initializer.index);
    const bool sparse = initializer.kind == Definition::kSparse;
    const auto& dims = sparse ? g.sparse_initializer(at).dims() : g.initializer(at).dims();
    if (!d->ranked || static_cast<int>(d->dims.size()) != dims.size()) {
      d->dims.clear();
      for (int i = 0; i < dims.size(); ++i)
        d->dims.push_back(d->ranked ? Dimension{dims[i], {}}
                                    : Dimension{{}, std::string(d->name) + "_" + std::to_string(i)});
      d->ranked = true;
    }
    for (int i = 0; i < dims.size(); ++i)
      if (auto& number = d->dims[static_cast<size_t>(i)].number) number = dims[i];
  }

  void apply(const Setting& setting) {
    auto it = std::find_if(inputs_.begin(), inputs_.end(),
                           [&](const Declared& d) { return d.name == setting.input; });
    if (it == inputs_.end()) {
      std::string names;
      for (const Declared& d : inputs_) names += (names.empty() ? "" : ", ") + quoted(d.name);
      bad_option(context_, "option 'shape': the model has no input " + quoted(setting.input) +
                               (names.empty() ? "; it has none" : "; its inputs are " + names));
    }
    if (!it->ranked) {
      it->ranked = true;
      for (size_t i = 0; i < setting.dims.size(); ++i)
        it->dims.push_back({{}, std::string(it->name) + "_" + std::to_string(i)});
    }
    if (it->dims.size() != setting.dims.size())
      bad_option(context_, "option 'shape': input " + quoted(it->name) + " has " +
                               std::to_string(it->dims.size()) + " dimensions, not " +
                               std::to_string(setting.dims.size()));
    for (size_t i = 0; i < setting.dims.size(); ++i) {
      if (!setting.dims[i]) continue;
      const Dimension& wanted = *setting.dims[i];
      const Dimension& has = it->dims[i];
      const std::string where =
          "option 'shape': dimension " + std::to_string(i) + " of input " + quoted(it->name);
      if (has.number) {
        if (wanted.number != has.number)
          bad_option(context_, where + " is " + std::to_string(*has.number) +
                                   " in the model and cannot be made " +
                                   (wanted.number ? std::to_string(*wanted.number) : quoted(wanted.symbol)));
        continue;
      }
      auto [fixed, is_new] = fixed_.emplace(has.symbol, wanted);
      if (!is_new && (fixed->second.number != wanted.number || fixed->second.symbol != wanted.symbol))
        bad_option(context_, where + " is " + quoted(has.symbol) + ", which was set to " +
                                 text_of(fixed->second) + " already, not to " + text_of(wanted));
    }
  }

  static std::string text_of(const Dimension& d) {
    return d.number ? std::to_string(*d.number) : quoted(d.symbol);
  }

  Input finish(const Declared& d) {
    context_.at("input " + quoted(d.name), "");
    if (!d.ranked)
      context_.fail(REGIE_INVALID_INPUT,
                    "the model does not say how many dimensions the input has; give them with the option "
                    "shape, like " +
                        std::string(d.name) + "=1,3,224,224");
    Input out{d.name, d.elem, {}};
    for (const Dimension& dim : d.dims) {
      auto fixed = dim.number ? fixed_.end() : fixed_.find(dim.symbol);
      const Dimension& final_dim = fixed == fixed_.end() ? dim : fixed->second;
      out.dims.push_back(final_dim.number ? *final_dim.number : symbol(final_dim.symbol));
    }
    return out;
  }

  // Files name symbols as they like ("batch size", "2*n"); the text form wants identifiers.
  regie_dim symbol(const std::string& written) {
    auto [it, is_new] = symbols_.emplace(written, std::string());
    if (is_new) {
      std::string name;
      for (char c : written) name += is_name(std::string_view(&c, 1)) || (c >= '0' && c <= '9') ? c : '_';
      if (!is_name(name)) name = "_" + name;
      while (!taken_.insert(name).second) name += '_';
      it->second = name;
    }
    return context_.import->host->dim_symbol(context_.import->dims, sdk::str(it->second), 0, INT64_MAX, 0);
  }

  Context& context_;
  const Body& body_;
  std::vector<Declared> inputs_;
  std::map<std::string, Dimension> fixed_;
  std::map<std::string, std::string> symbols_;
  std::unordered_set<std::string> taken_;
};

}  // namespace

bool constant_defaults(const Context& context) {
  const regie_config* options = context.import->options;
  bool constant = false;
  for (uint32_t i = 0; options && i < options->count; ++i) {
    if (sdk::sv(options->settings[i].key) != kDefaults) continue;
    constant = sdk::sv(options->settings[i].value) == "constant";
    if (!constant && sdk::sv(options->settings[i].value) != "input")
      bad_option(context, "option 'defaults' is constant or input");
  }
  return constant;
}

std::vector<Input> read_inputs(Context& context, const Body& body) { return Reader(context, body).read(); }

}  // namespace regie::onnx
