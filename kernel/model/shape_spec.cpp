#include "model/shape_spec.h"

#include <algorithm>

#include "base/toml.h"

namespace regie {

namespace {

constexpr const char* kPaddings[] = {"allow", "refuse", "force"};
constexpr const char* kOverflows[] = {"error", "dynamic", "resize"};
const std::string kForm =
    "write dynamic, buckets:x.0=1|4|16,x.2=320|640 or max:x.0=16, where x.0 is axis 0 of input x";

Status wrong(std::string_view text, const std::string& why) {
  return invalid_input("'" + std::string(text) + "': " + why, "--shapes");
}

Result<int64_t> number(std::string_view whole, std::string_view text, const char* what) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string_view::npos)
    return wrong(whole, std::string(what) + " must be a number, not '" + std::string(text) + "'; " + kForm);
  return std::stoll(std::string(text));
}

// Cuts off what stands before the next `separator`.
std::string_view next(std::string_view* rest, char separator) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return part;
}

Result<ShapeSpec::Axis> read_axis(std::string_view whole, std::string_view text, bool one) {
  const size_t equals = text.rfind('=');
  const size_t dot = text.substr(0, std::min(equals, text.size())).rfind('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot == 0)
    return wrong(whole, "'" + std::string(text) + "' is no input.axis=sizes; " + kForm);
  ShapeSpec::Axis out;
  out.input = std::string(text.substr(0, dot));
  const std::string name(text.substr(0, equals));
  REGIE_ASSIGN(const int64_t axis, number(whole, text.substr(dot + 1, equals - dot - 1), "an axis"));
  if (axis > 63) return wrong(whole, "there is no axis " + std::to_string(axis));
  out.axis = static_cast<uint32_t>(axis);
  std::string_view rest = text.substr(equals + 1);
  if (rest.empty()) return wrong(whole, name + " has no sizes");
  if (rest.back() == '|') return wrong(whole, name + " has an empty size at the end of its list");
  while (!rest.empty()) {
    REGIE_ASSIGN(const int64_t size, number(whole, next(&rest, '|'), "a size"));
    if (size < 1) return wrong(whole, name + " has a size of 0; the least is 1");
    if (!out.sizes.empty() && size == out.sizes.back())
      return wrong(whole, name + " has the size " + std::to_string(size) + " twice");
    if (!out.sizes.empty() && size < out.sizes.back())
      return wrong(whole, "the sizes of " + name + " must ascend, but " + std::to_string(size) +
                              " comes after " + std::to_string(out.sizes.back()));
    out.sizes.push_back(size);
  }
  if (one && out.sizes.size() > 1)
    return wrong(whole, "max: takes one size an axis, and " + name + " has " +
                            std::to_string(out.sizes.size()) + "; take buckets: for several");
  return out;
}

template <class T, size_t N>
Status choose(const char* option, std::string_view text, const char* const (&names)[N], T* to) {
  if (text.empty()) return {};
  std::string known;
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) return *to = static_cast<T>(i), Status();
    known += (i ? ", " : "") + std::string(names[i]);
  }
  return invalid_input("'" + std::string(text) + "' is not one of " + known, option);
}

}  // namespace

const char* to_text(ShapeSpec::Padding padding) { return kPaddings[padding]; }
const char* to_text(ShapeSpec::Overflow overflow) { return kOverflows[overflow]; }

Result<ShapeSpec> read_shape_spec(std::string_view text, std::string_view padding,
                                  std::string_view overflow) {
  ShapeSpec spec;
  REGIE_TRY(choose("--padding", padding, kPaddings, &spec.padding));
  REGIE_TRY(choose("--overflow", overflow, kOverflows, &spec.overflow));
  const std::string_view whole = text;
  if (text.empty() || text == "dynamic") {
    for (auto [option, given] : {std::pair{"--padding", padding}, std::pair{"--overflow", overflow}})
      if (!given.empty())
        return invalid_input("this is for --shapes buckets:... or max:...; dynamic shapes have no need of it",
                             option);
    return spec;
  }
  const bool max = text.starts_with("max:");
  if (!max && !text.starts_with("buckets:")) {
    const std::string_view word = text.substr(0, text.find(':'));
    const auto near = nearest_name(word, {"dynamic", "buckets", "max"});
    return wrong(whole, (near && *near != word ? "did you mean '" + *near + "'? " : "") + kForm);
  }
  spec.mode = ShapeSpec::kBuckets;
  std::string_view rest = text.substr(max ? 4 : 8);
  if (rest.empty()) return wrong(whole, "no axis is named; " + kForm);
  while (!rest.empty()) {
    REGIE_ASSIGN(ShapeSpec::Axis axis, read_axis(whole, next(&rest, ','), max));
    for (const ShapeSpec::Axis& a : spec.axes)
      if (a.input == axis.input && a.axis == axis.axis)
        return wrong(whole, axis.input + "." + std::to_string(axis.axis) + " is there twice");
    spec.axes.push_back(std::move(axis));
  }
  if (spec.overflow == ShapeSpec::kResize && spec.padding == ShapeSpec::kRefuse)
    return invalid_input(
        "resize keeps the proportions of an image and pads what is left over, which --padding refuse forbids",
        "--overflow");
  return spec;
}

std::string to_text(const ShapeSpec& spec) {
  if (spec.mode == ShapeSpec::kDynamic) return "dynamic";
  std::string text = "buckets:";
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    text += (i ? "," : "") + spec.axes[i].input + "." + std::to_string(spec.axes[i].axis) + "=";
    for (size_t k = 0; k < spec.axes[i].sizes.size(); ++k)
      text += (k ? "|" : "") + std::to_string(spec.axes[i].sizes[k]);
  }
  return text;
}

}  // namespace regie
