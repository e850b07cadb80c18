#include "passes/typical.h"

#include "passes/shape_words.h"

namespace regie {

namespace {

Status bad(const std::string& text, const std::string& why) {
  return invalid_input("option 'typical': '" + text + "': " + why);
}

// "16,?,224": nothing for a question mark.
Result<std::vector<std::optional<int64_t>>> sizes_of(const std::string& text, std::string_view list) {
  std::vector<std::optional<int64_t>> out;
  for (const std::string_view word : axis_words(list)) {
    out.push_back(axis_size(word));
    if (!out.back() && word != "?")
      return bad(text, "must be like x=16,3,224,224 or x=16,?,?,? (input=dimensions)");
  }
  return out;
}

}  // namespace

Result<std::vector<std::optional<int64_t>>> typical_sizes(const Graph& g,
                                                          std::span<const std::string> texts) {
  const DimTable& dims = g.dims();
  std::vector<std::optional<int64_t>> out(dims.symbol_count());
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return bad(text, "must be like x=16,3,224,224 or x=16,?,?,? (input=dimensions)");
    REGIE_ASSIGN(const auto sizes, sizes_of(text, std::string_view(text).substr(equals + 1)));
    const std::string name = text.substr(0, equals);
    const regie_value* input = nullptr;
    std::string names;
    for (uint32_t i = 0; i < g.region(0).arg_count; ++i) {
      const regie_value& v = g.value(g.region(0).args[i]);
      if (view(v.name) == name) input = &v;
      names += (i ? ", " : "") + std::string(view(v.name));
    }
    if (!input) return bad(text, "there is no input '" + name + "'; there are: " + names);
    const regie_type& type = input->type;
    if (static_cast<int32_t>(sizes.size()) != type.rank)
      return bad(text, std::to_string(sizes.size()) + " dimensions for an input of rank " +
                           std::to_string(type.rank));
    for (int32_t d = 0; d < type.rank; ++d) {
      const auto size = sizes[static_cast<size_t>(d)];
      if (!size) continue;
      const auto symbol = dims.symbol_index(type.dims[d]);
      const auto [lower, upper] = dims.range(type.dims[d]);
      if (*size < lower || *size > upper)
        return bad(text, "axis " + std::to_string(d) + " is " + dims.print(type.dims[d]) + " and cannot be " +
                             std::to_string(*size));
      if (!symbol) continue;
      if (out[*symbol] && *out[*symbol] != *size)
        return bad(text, dims.print(type.dims[d]) + " cannot be " + std::to_string(*out[*symbol]) + " and " +
                             std::to_string(*size));
      out[*symbol] = size;
    }
  }
  return out;
}

}  // namespace regie
