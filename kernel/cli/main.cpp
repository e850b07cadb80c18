#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "base/log.h"
#include "base/toml.h"
#include "cli/command.h"

namespace {

using namespace regie::cli;

constexpr Command kCommands[] = {
    {"compile", "a framework's model to an offline model (.rgm)", command_compile},
    {"run", "run a model on inputs from .npy files", command_run},
    {"bench", "measure how fast a model runs", command_bench},
    {"profile", "where the time of a run goes, task by task", command_profile},
    {"explain", "why a graph became what it is: fusions, engines, memory", command_explain},
    {"opt", "run passes over a graph in text form", command_opt},
    {"check", "test a file of fusion rules", command_check},
    {"plugins", "list and describe plug-ins", command_plugins},
    {"inspect", "what is in an offline model", command_inspect},
    {"cache", "what was compiled before and is kept", command_cache},
    {"shapes", "which sizes of inputs deserve plans of their own", command_shapes},
    {"plan-memory", "pack buffers with lifetimes into one arena", command_plan_memory},
};

void usage(std::FILE* out) {
  std::fprintf(out, "Usage: regie COMMAND [options]\n\n");
  for (const Command& c : kCommands) std::fprintf(out, "  %-11s %s\n", c.name, c.summary);
  std::fprintf(
      out,
      "\nregie COMMAND --help says more; -v before the command shows a line a stage, -vv everything.\n"
      "\nExample:\n  regie compile model.onnx -o model.rgm\n  regie run model.rgm --input x=image.npy "
      "--output-dir out\n");
}

int run(int argc, char** argv) {
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    std::string flag = argv[at];
    if (flag == "-v" || flag == "--verbose") {
      regie::set_log_level(REGIE_LOG_INFO);
    } else if (flag == "-vv") {
      regie::set_log_level(REGIE_LOG_DEBUG);
    } else if (flag == "--version") {
      std::printf("regie %s\n", regie_version());
      return 0;
    } else if (flag == "-h" || flag == "--help") {
      usage(stdout);
      return 0;
    } else {
      std::fprintf(stderr, "regie: unknown option '%s'\n", argv[at]);
      usage(stderr);
      return 2;
    }
  }
  if (at == argc) {
    usage(stderr);
    return 2;
  }
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (std::strcmp(argv[at], c.name) == 0) return c.run(Arguments(argv + at + 1, argv + argc));
    names.emplace_back(c.name);
  }
  if (std::strcmp(argv[at], "help") == 0) {
    usage(stdout);
    return 0;
  }
  auto near = regie::nearest_name(argv[at], names);
  std::fprintf(stderr, "regie: there is no command '%s'%s\n", argv[at],
               near ? ("; did you mean '" + *near + "'?").c_str() : "");
  usage(stderr);
  return 2;
}

// What was printed must have arrived: a full disk or a closed output is a failure like that of any other
// file.
int finish(int code) {
  std::cout.flush();
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout) return code;
  std::fprintf(stderr, "regie: cannot write to standard output: %s\n",
               errno ? std::strerror(errno) : "an earlier write failed");
  return code ? code : 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return finish(run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "regie: out of memory\n");
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "regie: unexpected failure, please report it: %s\n", e.what());
  }
  return 1;
}
