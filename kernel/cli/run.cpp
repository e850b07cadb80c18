// regie run: built on the embedding API alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "base/elem.h"
#include "base/file.h"
#include "base/toml.h"
#include "cli/command.h"
#include "cli/npy.h"

namespace regie::cli {

namespace {

struct Release {
  void operator()(regie_model* p) const { regie_model_release(p); }
  void operator()(regie_session* p) const { regie_session_release(p); }
  void operator()(regie_context* p) const { regie_context_release(p); }
};

std::string ports(const regie_model* model) {
  std::string text;
  for (size_t i = 0; i < regie_model_input_count(model); ++i) {
    regie_port p = regie_model_input(model, i);
    text += (i ? ", " : "") + std::string(p.name) + ": " + std::string(elem_name(p.elem)) + p.dims_text;
  }
  return text;
}

// Floats from a normal distribution, bools, small integers, all the same for the same seed on every machine.
// Wide integers are most often indices (words, segments, positions), and the model's tables are not seen here:
// 0 and 1 are within nearly all of them.
Tensor random_tensor(const regie_port& port, std::mt19937_64& random) {
  std::vector<int64_t> dims(port.reference_dims, port.reference_dims + port.rank);
  Tensor t = Tensor::zeros(port.elem, dims);
  auto fill = [&](auto* data, auto make) {
    for (int64_t i = 0; i < t.count(); ++i) data[i] = make();
  };
  // Box and Muller's transform by hand: std::normal_distribution differs between libraries.
  auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1.0p-53; };
  auto normal = [&] { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); };
  void* data = t.mutable_data();
  switch (port.elem) {
    case REGIE_F32:
      fill(static_cast<float*>(data), [&] { return static_cast<float>(normal()); });
      break;
    case REGIE_F64:
      fill(static_cast<double*>(data), normal);
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
      return Tensor();
  }
  return t;
}

Result<std::vector<Tensor>> gather_inputs(const regie_model* model, const po::variables_map& values) {
  size_t count = regie_model_input_count(model);
  std::vector<Tensor> inputs(count);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.emplace_back(regie_model_input(model, i).name);
  if (values.count("input")) {
    for (const std::string& text : values["input"].as<std::vector<std::string>>()) {
      // The name may hold '=' itself: the longest known name that fits wins.
      size_t best = names.size();
      for (size_t i = 0; i < names.size(); ++i)
        if (text.size() > names[i].size() && text.starts_with(names[i]) && text[names[i].size()] == '=' &&
            (best == names.size() || names[i].size() > names[best].size()))
          best = i;
      if (best == names.size()) {
        size_t equals = text.find('=');
        if (equals == std::string::npos)
          return invalid_input("--input wants name=file.npy, not '" + text + "'");
        std::string hint;
        if (auto near = nearest_name(text.substr(0, equals), names)) hint = "; did you mean '" + *near + "'?";
        return invalid_input(
            "the model has no input '" + text.substr(0, equals) + "'" + hint + " Its inputs: " + ports(model),
            "--input");
      }
      if (inputs[best]) return invalid_input("input '" + names[best] + "' is given twice", "--input");
      REGIE_ASSIGN(inputs[best], read_npy(text.substr(names[best].size() + 1)));
    }
  }
  std::optional<std::mt19937_64> random;
  if (values.count("random")) random.emplace(values["random"].as<uint64_t>());
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i]) continue;
    if (!random)
      return invalid_input("input '" + names[i] + "' is missing: give --input " + names[i] +
                           "=file.npy, or --random SEED. Inputs: " + ports(model));
    inputs[i] = random_tensor(regie_model_input(model, i), *random);
    if (!inputs[i])
      return unsupported(
          "there are no random numbers of type " + std::string(elem_name(regie_model_input(model, i).elem)),
          "input '" + names[i] + "'");
  }
  return inputs;
}

// One line about a tensor: shape, and for floats the least, greatest and mean value.
void describe(const char* name, const regie_tensor& t) {
  std::string dims;
  for (int32_t i = 0; i < t.rank; ++i) dims += (i ? "," : "") + std::to_string(t.dims[i]);
  std::printf("%s: %s[%s]", name, std::string(elem_name(t.elem)).c_str(), dims.c_str());
  if (t.elem == REGIE_F32 && t.bytes) {
    const auto* p = static_cast<const float*>(t.data);
    size_t n = t.bytes / 4;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += p[i];
    std::printf("  least %g, greatest %g, mean %g", *std::min_element(p, p + n), *std::max_element(p, p + n),
                sum / static_cast<double>(n));
    size_t last = t.rank ? static_cast<size_t>(t.dims[t.rank - 1]) : 1;
    if (n == last && n > 1) std::printf("; greatest at %td", std::max_element(p, p + n) - p);
  }
  std::printf("\n");
}

std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 32) c = '_';
  return (name.empty() || name[0] == '.' ? "_" + name : name) + ".npy";
}

Status write_outputs(const regie_model* model, const std::vector<regie_tensor>& outputs,
                     const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return io_error(
        "the folder for outputs cannot be made: " + error.message() + "; choose another --output-dir",
        folder);
  std::vector<std::string> used;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = file_name(regie_model_output(model, i).name);
    while (std::find(used.begin(), used.end(), name) != used.end()) name = "_" + name;
    used.push_back(name);
    REGIE_TRY(write_npy(folder + "/" + name, outputs[i]));
  }
  return {};
}

Result<bool> is_offline_model(const std::string& path) {
  REGIE_ASSIGN(MappedFile file, MappedFile::open(path));
  return file.bytes().size() >= 8 && std::memcmp(file.bytes().data(), "REGIERGM", 8) == 0;
}

int run_model(const std::string& path, const po::variables_map& values) {
  auto pairs = compile_options(values);
  auto list = api_options(pairs);
  regie_model* raw_model = nullptr;
  auto offline = is_offline_model(path);
  if (!offline.ok()) return report(offline.status());
  bool recompile = std::any_of(pairs.begin(), pairs.end(), [](const auto& p) {
    return p.first != "threads" && p.first != "plugin-path";
  });
  regie_status s = *offline && !recompile
                       ? regie_model_load(path.c_str(), &raw_model)
                       : regie_compile_file(path.c_str(), list.data(), list.size(), &raw_model);
  if (s) return report_api(s);
  if (*offline && recompile)
    std::fprintf(stderr, "regie: compiled again from the portable graph in %s\n", path.c_str());
  std::unique_ptr<regie_model, Release> model(raw_model);

  auto inputs = gather_inputs(model.get(), values);
  if (!inputs.ok()) return report(std::move(inputs).status().set_where(path));
  std::vector<std::pair<std::string, std::string>> session_pairs;
  for (const auto& p : pairs)
    if (p.first == "threads" || p.first == "plugin-path") session_pairs.push_back(p);
  auto session_options = api_options(session_pairs);
  regie_session* raw_session = nullptr;
  if ((s = regie_session_create(model.get(), session_options.data(), session_options.size(), &raw_session)))
    return report_api(s);
  std::unique_ptr<regie_session, Release> session(raw_session);
  regie_context* raw_context = nullptr;
  if ((s = regie_context_acquire(session.get(), &raw_context))) return report_api(s);
  std::unique_ptr<regie_context, Release> context(raw_context);

  std::vector<regie_tensor> views;
  for (const Tensor& t : *inputs) views.push_back(t.view());
  std::vector<regie_tensor> outputs(regie_model_output_count(model.get()));
  if ((s = regie_run(context.get(), views.data(), views.size(), outputs.data(), outputs.size())))
    return report_api(s);
  for (size_t i = 0; i < outputs.size(); ++i) describe(regie_model_output(model.get(), i).name, outputs[i]);
  if (values.count("output-dir"))
    if (Status written = write_outputs(model.get(), outputs, values["output-dir"].as<std::string>());
        !written.ok())
      return report(written);
  return 0;
}

}  // namespace

int command_run(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("input", po::value<std::vector<std::string>>()->composing(),
                        "an input, name=file.npy; may be repeated")(
      "random", po::value<uint64_t>(),
      "fill the other inputs with random numbers of this seed; symbolic dimensions get the size that was "
      "planned for")("output-dir", po::value<std::string>(),
                     "write each output to OUTPUT.npy in this folder");
  add_compile_options(&options);
  po::variables_map values;
  if (auto code =
          parse(arguments, options,
                {{"MODEL", "an offline model (.rgm), or a framework's model, which is compiled first"}},
                "run MODEL [--input name=file.npy]... [options]",
                "  regie run model.rgm --input x=image.npy --output-dir out\n"
                "  regie run model.onnx --random 1 --target host_and_null",
                &values))
    return *code;
  return run_model(values["MODEL"].as<std::string>(), values);
}

}  // namespace regie::cli
