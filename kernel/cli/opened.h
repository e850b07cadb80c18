// A model made ready to run by the embedding API: loaded, or compiled first if it is no offline model; a
// session, a context, and an input for each port. What `run`, `bench` and `profile` begin with.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/elem.h"
#include "cli/command.h"

namespace regie::cli {

struct Release {
  void operator()(regie_model* p) const { regie_model_release(p); }
  void operator()(regie_session* p) const { regie_session_release(p); }
  void operator()(regie_context* p) const { regie_context_release(p); }
};

struct Opened {
  std::unique_ptr<regie_model, Release> model;
  std::unique_ptr<regie_session, Release> session;
  std::unique_ptr<regie_context, Release> context;
  std::vector<Tensor> inputs;
  std::vector<regie_tensor> views;  // of the inputs
  bool compiled = false;
  bool shape_is_request = false;  // --shape says what is run; else what is compiled
  bool shapes_later = false;      // set before: the caller reads --shape, `inputs` are of the planned sizes
  double model_ms = 0, session_ms = 0;  // loading or compiling; devices, kernels, weights
  // Makes the inputs: those of --input, and random numbers of these sizes ("x=16,1,8,8"), else the planned
  // ones.
  Status take_inputs(const std::vector<std::string>& shapes, const po::variables_map& values,
                     std::optional<uint64_t> seed);
  // The outputs' memory is the context's until the next run.
  regie_status run(std::span<regie_tensor> outputs) {
    for (regie_tensor& t : outputs) t = {};
    return regie_run(context.get(), views.data(), views.size(), outputs.data(), outputs.size());
  }
};

// For commands that run a model: its argument, and the options --input and those of add_compile_options.
inline constexpr std::pair<const char*, const char*> kModelToRun{
    "MODEL", "an offline model (.rgm), or a framework's model, which is compiled first"};
void add_run_options(po::options_description* options);
// The same with --seed, for those that measure.
void add_measure_options(po::options_description* options);

// Takes these options; `seed`: of the random numbers that fill inputs which no --input gives; none: they must
// be given. 0, or an exit code after the message was printed. An offline model is compiled again, from the
// portable graph in it, if an option asks for what only a compile can do; --shape says of it only which sizes
// random inputs have.
int open_model(const std::string& path, const po::variables_map& values, std::optional<uint64_t> seed,
               Opened* opened);

// Those of --shape that say the sizes of inputs, and nothing about the model.
std::vector<std::string> request_shapes(const po::variables_map& values);

// A line for inputs that nobody gave, sizes nor numbers: they have the sizes that were planned for, which
// where nobody said `--typical` are the smallest. Nothing to say: an empty text.
std::string guessed_sizes(const Opened& opened, const po::variables_map& values);

Result<bool> is_offline_model(const std::string& path);

}  // namespace regie::cli
