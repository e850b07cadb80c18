// A model made ready to run by the embedding API: loaded, or compiled first if it is no offline model; a
// session, a context, and an input for each port. What `run`, `bench` and `profile` begin with.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/elem.h"
#include "cli/command.h"

namespace regie::cli {

struct Release {
  void operator()(regie_model* p) const { regie_model_release(p); }
  void operator()(regie_session* p) const { regie_session_release(p); }
  void operator()(regie_context* p) const { regie_context_release(p); }
};

struct InputChoice {
  // Inputs that no --input gives are filled with random numbers of this seed; none: they must be given.
  std::optional<uint64_t> seed;
};

struct Opened {
  std::unique_ptr<regie_model, Release> model;
  std::unique_ptr<regie_session, Release> session;
  std::unique_ptr<regie_context, Release> context;
  std::vector<Tensor> inputs;
  std::vector<regie_tensor> views;  // of the inputs
  bool compiled = false;
  double model_ms = 0, session_ms = 0;  // loading or compiling; devices, kernels, weights
  // The outputs' memory is the context's until the next run.
  regie_status run(std::span<regie_tensor> outputs) {
    for (regie_tensor& t : outputs) t = {};
    return regie_run(context.get(), views.data(), views.size(), outputs.data(), outputs.size());
  }
};

// Options: those of add_compile_options and --input. 0, or an exit code after the message was printed. An
// offline model is compiled again, from the portable graph in it, if an option asks for what only a compile
// can do; --shape then says only which sizes random inputs have.
int open_model(const std::string& path, const po::variables_map& values, const InputChoice& choice,
               Opened* opened);

// --input, for commands that run.
void add_input_option(po::options_description* options);

Result<bool> is_offline_model(const std::string& path);

}  // namespace regie::cli
