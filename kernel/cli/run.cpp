// regie run: built on the embedding API alone.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/elem.h"
#include "cli/command.h"
#include "cli/npy.h"
#include "cli/opened.h"

namespace regie::cli {

namespace {

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
  // All or none. Each is an open file until all are written.
  if (rlimit files; ::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  std::set<std::string> used;
  std::vector<PendingFile> written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string output = regie_model_output(model, i).name;
    std::string name = file_name(output);
    while (!used.insert(name).second) name = "_" + name;
    auto file = pending_npy(folder + "/" + name, outputs[i]);
    if (!file.ok()) return std::move(file).status().while_doing("writing output '" + output + "'");
    written.push_back(std::move(file).value());
  }
  for (PendingFile& file : written) REGIE_TRY(file.put_in_place());
  return {};
}

int run_model(const std::string& path, const po::variables_map& values) {
  std::optional<uint64_t> seed;
  if (values.count("random")) seed = values["random"].as<uint64_t>();
  Opened opened;
  if (int code = open_model(path, values, seed, &opened)) return code;
  const regie_model* model = opened.model.get();
  std::vector<regie_tensor> outputs(regie_model_output_count(model));
  if (regie_status s = opened.run(outputs)) return report_api(s);
  for (size_t i = 0; i < outputs.size(); ++i) describe(regie_model_output(model, i).name, outputs[i]);
  if (values.count("output-dir"))
    if (Status written = write_outputs(model, outputs, values["output-dir"].as<std::string>()); !written.ok())
      return report(written);
  return 0;
}

}  // namespace

int command_run(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()(
      "random", po::value<uint64_t>(),
      "fill the other inputs with random numbers of this seed; symbolic dimensions get the size that was "
      "planned for")("output-dir", po::value<std::string>(),
                     "write each output to OUTPUT.npy in this folder");
  add_run_options(&options);
  po::variables_map values;
  if (auto code = parse(arguments, options, {kModelToRun}, "run MODEL [--input name=file.npy]... [options]",
                        "  regie run model.rgm --input x=image.npy --output-dir out\n"
                        "  regie run model.onnx --random 1 --target host_and_null",
                        &values))
    return *code;
  return run_model(values["MODEL"].as<std::string>(), values);
}

}  // namespace regie::cli
