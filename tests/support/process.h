// Runs the command line as a user does, in a process of its own, and gives what it printed and its exit code.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "regie_test_paths.h"
#include "support/scratch.h"

namespace regie::test {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal if it was killed by one
  std::string out, err;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string shell_word(const std::string& s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// `command` is a line for sh.
inline ProcessResult run_shell(const std::string& command) {
  Scratch scratch;
  std::string out = scratch.path("out"), err = scratch.path("err");
  int code = std::system(
      ("( " + command + "\n ) >" + shell_word(out) + " 2>" + shell_word(err) + " </dev/null").c_str());
  ProcessResult r;
  r.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
  r.out = slurp(out);
  r.err = slurp(err);
  return r;
}

// `arguments`: as one types them after "regie".
inline ProcessResult run_regie(const std::string& arguments) {
  return run_shell(shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie") + " " + arguments);
}

}  // namespace regie::test
