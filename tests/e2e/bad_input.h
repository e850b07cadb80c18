// Bad input through the command line, case by case: exit code 2, words that name the place and what to do,
// and nothing half-written.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {

inline const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";

struct Case {
  std::string name;
  // Prepares files in the scratch folder and gives the arguments. "OUT" in them is replaced by a path that
  // must not exist afterwards.
  std::function<std::string(Scratch&)> arguments;
  std::vector<std::string> says;
};

inline void expect_refused(const Case& c) {
  SCOPED_TRACE(c.name);
  Scratch scratch;
  std::string arguments = c.arguments(scratch), out = scratch.path("out.rgm");
  size_t before = static_cast<size_t>(std::distance(std::filesystem::directory_iterator(scratch.path()), {}));
  if (size_t at = arguments.find("OUT"); at != std::string::npos) arguments.replace(at, 3, shell_word(out));
  ProcessResult r = run_regie(arguments);
  EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
  for (const std::string& word : c.says)
    EXPECT_NE(r.err.find(word), std::string::npos) << "no '" << word << "' in: " << r.err;
  EXPECT_FALSE(std::filesystem::exists(out)) << "a model was written all the same";
  EXPECT_EQ(static_cast<size_t>(std::distance(std::filesystem::directory_iterator(scratch.path()), {})),
            before)
      << "something was left behind";
  EXPECT_EQ(r.err.find("terminate called"), std::string::npos);
}

}  // namespace regie::test
