#include "passes/portable_shapes.h"

#include <optional>

#include "base/toml.h"
#include "passes/shape_words.h"
#include "text/text.h"

namespace regie {

namespace {

Status wrong(const std::string& why) { return invalid_input(why, "--shape"); }

class Reader {
 public:
  explicit Reader(const Graph& g) : g_(g), values_(g.dims().symbol_count()) {
    for (uint32_t i = 0; i < g.region(0).arg_count; ++i)
      names_.emplace_back(view(g.value(g.region(0).args[i]).name));
  }

  Status read(const std::string& text) {
    // The longest name that fits: a name may hold '=' itself.
    size_t input = names_.size();
    for (size_t i = 0; i < names_.size(); ++i)
      if (text.size() > names_[i].size() && text.starts_with(names_[i]) && text[names_[i].size()] == '=' &&
          (input == names_.size() || names_[i].size() > names_[input].size()))
        input = i;
    if (input == names_.size()) return no_input(text);
    const std::string sizes = text.substr(names_[input].size() + 1);
    const regie_type& type = g_.value(g_.region(0).args[input]).type;
    const std::string who = "input '" + names_[input] + "' is " + print_type(g_, type);
    const std::vector<std::string_view> words = axis_words(sizes);
    const std::vector<std::string> parts(words.begin(), words.end());
    for (const std::string& part : parts) REGIE_TRY(check_form(names_[input], sizes, part));
    if (static_cast<int64_t>(parts.size()) != type.rank)
      return wrong(who + ", but " + std::to_string(parts.size()) +
                   (parts.size() == 1 ? " size was given" : " sizes were given"));
    for (size_t axis = 0; axis < parts.size(); ++axis)
      REGIE_TRY(take(who + ": axis " + std::to_string(axis), type.dims[axis], parts[axis]));
    return {};
  }

  // Axes that are computed from others must come to what was said.
  Result<SymbolSizes> finish() const {
    for (const auto& [who, dim, size] : computed_) {
      const auto value = g_.dims().evaluate(dim, values_);
      if (!value.ok())
        return wrong(who + " is computed from others; say the sizes of the axes that are one name");
      if (*value != size)
        return wrong(who + " is computed from others, which make it " + std::to_string(*value) + ", not " +
                     std::to_string(size));
    }
    SymbolSizes out;
    for (size_t s = 0; s < values_.size(); ++s)
      if (values_[s]) out.emplace_back(g_.dims().symbol_at(s).name, *values_[s]);
    return out;
  }

 private:
  Status no_input(const std::string& text) const {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return wrong("a shape is written NAME=1,3,224,224, not '" + text + "'");
    const std::string name = text.substr(0, equals);
    std::string known;
    for (const std::string& n : names_) known += (known.empty() ? "'" : ", '") + n + "'";
    const auto near = nearest_name(name, names_);
    return wrong("the model has no input '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : "") +
                 (near ? " Its" : "; its") + " inputs are " + known);
  }

  Status check_form(const std::string& name, const std::string& sizes, const std::string& part) const {
    if (part == "?" || axis_size(part)) return {};
    for (size_t s = 0; s < values_.size(); ++s)
      if (g_.dims().symbol_at(s).name == part) return {};
    return wrong(
        "the shape '" + sizes + "' of input '" + name + "' is malformed at '" + part + "': it is written " +
        name +
        "=1,3,224,224, one number an axis, or ? for one that stays as it is (other names for axes need "
        "the framework's file)");
  }

  Status take(const std::string& who, regie_dim dim, const std::string& part) {
    if (part == "?") return {};
    const auto symbol = dim < 0 ? g_.dims().symbol_index(dim) : std::nullopt;
    const auto size = axis_size(part);
    if (!size) {
      if (symbol && g_.dims().symbol_at(*symbol).name == part) return {};
      return wrong(who + " has another name than '" + part + "'; write ? to leave it as it is");
    }
    if (dim >= 0) {
      if (dim == *size) return {};
      return wrong(who + " has the size " + std::to_string(dim) + " in the model file, not " + part +
                   "; another one needs the framework's file");
    }
    if (!symbol) {
      computed_.push_back({who, dim, *size});
      return {};
    }
    const DimSymbol& s = g_.dims().symbol_at(*symbol);
    if (*size < s.lower || *size > s.upper)
      return wrong(who + ": the size " + part + " is not in the range of " + s.name + ", " +
                   std::to_string(s.lower) + ".." + (s.upper == INT64_MAX ? "" : std::to_string(s.upper)));
    std::optional<int64_t>& value = values_[*symbol];
    if (value && *value != *size)
      return wrong(who + " is " + s.name + ", which was said to be " + std::to_string(*value) + ", not " +
                   part);
    value = *size;
    return {};
  }

  struct Computed {
    std::string who;
    regie_dim dim;
    int64_t size;
  };
  const Graph& g_;
  std::vector<std::string> names_;
  std::vector<std::optional<int64_t>> values_;  // by symbol
  std::vector<Computed> computed_;
};

}  // namespace

Result<SymbolSizes> sizes_of_shapes(const Graph& graph, const std::vector<std::string>& shapes) {
  Reader reader(graph);
  for (const std::string& text : shapes) REGIE_TRY(reader.read(text));
  return reader.finish();
}

}  // namespace regie
