#include "cli/inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <span>

#include "base/toml.h"
#include "cli/npy.h"

namespace regie::cli {

namespace {

std::string ports(const regie_model* model) {
  std::string text;
  for (size_t i = 0; i < regie_model_input_count(model); ++i) {
    regie_port p = regie_model_input(model, i);
    text += (i ? ", " : "") + std::string(p.name) + ": " + std::string(elem_name(p.elem)) + p.dims_text;
  }
  return text;
}

// Half precision, rounded towards zero; what is too small for its normal numbers is zero. |x| < 65504.
uint16_t half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
  if (exponent < 113) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

// Floats from a normal distribution, bools, small integers: the same for the same seed on every machine. Wide
// integers are most often indices (words, segments, positions), and the tables that they go into are not seen
// here: 0 and 1 are within nearly all of them.
Result<Tensor> random_tensor(const regie_port& port, std::span<const int64_t> dims, std::mt19937_64& random) {
  const regie_elem elem = port.elem;
  const std::string name = "input '" + std::string(port.name) + "'";
  if (elem == REGIE_STRING) return unsupported("there are no random strings", name);
  REGIE_ASSIGN(Tensor t, Tensor::try_zeros(elem, dims, name));
  auto fill = [&](auto* data, auto make) {
    for (int64_t i = 0; i < t.count(); ++i) data[i] = make();
  };
  // Box and Muller's transform by hand: std::normal_distribution differs between libraries.
  auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1.0p-53; };
  auto normal = [&] { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); };
  void* data = t.mutable_data();
  switch (elem) {
    case REGIE_F32:
      fill(static_cast<float*>(data), [&] { return static_cast<float>(normal()); });
      break;
    case REGIE_F64:
      fill(static_cast<double*>(data), normal);
      break;
    case REGIE_F16:
      fill(static_cast<uint16_t*>(data), [&] { return half(static_cast<float>(normal())); });
      break;
    case REGIE_BF16:
      fill(static_cast<uint16_t*>(data), [&] {
        return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(normal())) >> 16);
      });
      break;
    case REGIE_BOOL:
      fill(static_cast<uint8_t*>(data), [&] { return static_cast<uint8_t>(random() >> 63); });
      break;
    case REGIE_I64:
    case REGIE_U64:
      fill(static_cast<int64_t*>(data), [&] { return static_cast<int64_t>(random() % 2); });
      break;
    case REGIE_I32:
    case REGIE_U32:
      fill(static_cast<int32_t*>(data), [&] { return static_cast<int32_t>(random() % 2); });
      break;
    case REGIE_I16:
    case REGIE_U16:
      fill(static_cast<int16_t*>(data), [&] { return static_cast<int16_t>(random() % 10); });
      break;
    case REGIE_I8:
    case REGIE_U8:
      fill(static_cast<int8_t*>(data), [&] { return static_cast<int8_t>(random() % 10); });
      break;
    default:
      return unsupported(
          "there are no random numbers of type " + std::string(elem_name(elem)) + port.dims_text, name);
  }
  return t;
}

// Splits "name=value".
Result<std::pair<size_t, std::string>> named(const regie_model* model, const std::string& text,
                                             const char* option, const char* form) {
  if (const auto input = input_named_by(model, text))
    return std::pair(*input, text.substr(std::strlen(regie_model_input(model, *input).name) + 1));
  std::vector<std::string> names;
  for (size_t i = 0; i < regie_model_input_count(model); ++i)
    names.emplace_back(regie_model_input(model, i).name);
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    return invalid_input(std::string(option) + " wants " + form + ", not '" + text + "'");
  std::string hint = ".";
  if (auto near = nearest_name(text.substr(0, equals), names)) hint = "; did you mean '" + *near + "'?";
  return invalid_input(
      "the model has no input '" + text.substr(0, equals) + "'" + hint + " Its inputs: " + ports(model),
      option);
}

Result<std::vector<int64_t>> read_dims(const std::string& text, const regie_port& port) {
  std::vector<int64_t> dims;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    if (part.empty() || part.size() > 18 || part.find_first_not_of("0123456789") != std::string::npos)
      return invalid_input("the sizes of input '" + std::string(port.name) + "' must be numbers, not '" +
                               text + "'; they are written " + std::string(port.name) + "=1,3,224,224",
                           "--shape");
    dims.push_back(std::stoll(part));
    at = comma + 1;
  }
  if (dims.size() != static_cast<size_t>(port.rank))
    return invalid_input("input '" + std::string(port.name) + "' is " + port.dims_text + ", but " +
                             std::to_string(dims.size()) + " sizes were given",
                         "--shape");
  return dims;
}

}  // namespace

std::optional<size_t> input_named_by(const regie_model* model, std::string_view text) {
  std::optional<size_t> best;
  size_t longest = 0;
  for (size_t i = 0; i < regie_model_input_count(model); ++i) {
    const std::string_view name = regie_model_input(model, i).name;
    if (text.size() <= name.size() || !text.starts_with(name) || text[name.size()] != '=') continue;
    if (best && name.size() <= longest) continue;
    best = i;
    longest = name.size();
  }
  return best;
}

Result<std::vector<Tensor>> gather_inputs(const regie_model* model, const std::vector<std::string>& files,
                                          const std::vector<std::string>& shapes,
                                          std::optional<uint64_t> seed) {
  const size_t count = regie_model_input_count(model);
  std::vector<Tensor> inputs(count);
  for (const std::string& text : files) {
    REGIE_ASSIGN(auto place, named(model, text, "--input", "name=file.npy"));
    if (inputs[place.first])
      return invalid_input(
          "input '" + std::string(regie_model_input(model, place.first).name) + "' is given twice",
          "--input");
    REGIE_ASSIGN(inputs[place.first], read_npy(place.second));
  }
  std::vector<std::vector<int64_t>> dims(count);
  for (size_t i = 0; i < count; ++i) {
    const regie_port p = regie_model_input(model, i);
    dims[i].assign(p.reference_dims, p.reference_dims + p.rank);
  }
  std::vector<bool> shaped(count);  // asked for random ones
  for (const std::string& text : shapes) {
    REGIE_ASSIGN(auto place, named(model, text, "--shape", "name=16,1,8,8"));
    const regie_port port = regie_model_input(model, place.first);
    if (shaped[place.first])
      return invalid_input("the shape of input '" + std::string(port.name) + "' is given twice", "--shape");
    REGIE_ASSIGN(dims[place.first], read_dims(place.second, port));
    shaped[place.first] = true;
    const Tensor& given = inputs[place.first];
    if (given && !std::equal(given.dims().begin(), given.dims().end(), dims[place.first].begin(),
                             dims[place.first].end()))
      return invalid_input("the file for input '" + std::string(port.name) +
                               "' has another shape than --shape says; leave one of them out",
                           "--shape");
  }
  std::optional<std::mt19937_64> random;
  if (seed) random.emplace(*seed);
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]) continue;
    const regie_port p = regie_model_input(model, i);
    if (p.default_value && !shaped[i]) {
      const regie_tensor& t = *p.default_value;
      inputs[i] = Tensor::borrow(t.elem, {t.dims, static_cast<size_t>(t.rank)}, t.data, nullptr);
      continue;
    }
    const std::string name = p.name;
    if (!random)
      return invalid_input("input '" + name + "' is missing: give --input " + name +
                           "=file.npy, or --random SEED. Inputs: " + ports(model));
    REGIE_ASSIGN(inputs[i], random_tensor(p, dims[i], *random));
  }
  return inputs;
}

Result<std::pair<std::string, std::vector<int64_t>>> read_shape(const regie_model* model,
                                                                const std::string& text) {
  REGIE_ASSIGN(auto place, named(model, text, "--shape", "name=16,1,8,8"));
  const regie_port port = regie_model_input(model, place.first);
  REGIE_ASSIGN(auto dims, read_dims(place.second, port));
  return std::pair{std::string(port.name), std::move(dims)};
}

}  // namespace regie::cli
