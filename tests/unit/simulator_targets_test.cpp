// The targets of simulated accelerators: every parameter of the hardware stands there, with where it comes
// from.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "regie/accelerator.hpp"
#include "regie_test_paths.h"

namespace {

using regie::sdk::Accelerator;
using regie::sdk::kAcceleratorKeys;

struct Line {
  std::string value, source;
};

std::map<std::string, Line> parameters(const std::string& target) {
  std::map<std::string, Line> found;
  std::ifstream file(std::string(REGIE_TEST_SOURCE_DIR) + "/configs/targets/" + target + ".toml");
  EXPECT_TRUE(file) << target;
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find(" = ");
    if (line.starts_with("#") || equals == std::string::npos) continue;
    const size_t hash = line.find('#');
    std::string value = line.substr(equals + 3, hash == std::string::npos ? hash : hash - equals - 3);
    value.erase(value.find_last_not_of(' ') + 1);
    std::string source = hash == std::string::npos ? "" : line.substr(hash + 1);
    source.erase(0, source.find_first_not_of(' '));
    found.emplace(line.substr(0, equals), Line{value, source});
  }
  return found;
}

TEST(SimulatorTargets, EveryParameterIsThereWithItsSource) {
  for (const char* target : {"ascend310-sim", "ascend310p3-sim", "ascend910a-sim", "ascend910b3-sim"}) {
    SCOPED_TRACE(target);
    const auto lines = parameters(target);
    Accelerator read;
    for (const auto& key : kAcceleratorKeys) {
      const auto line = lines.find(key.name);
      ASSERT_NE(line, lines.end()) << key.name;
      EXPECT_GE(line->second.source.size(), 7u) << key.name << ": where is it from?";
      EXPECT_TRUE(regie::sdk::read_accelerator_key(target, key.name, line->second.value, &read)) << key.name;
    }
    // A derived figure of the published tables: 16 x 16 x 16 a cycle and core, two operations each.
    const std::map<std::string, double> teraflops = {{"ascend310-sim", 11.1},
                                                     {"ascend310p3-sim", 69.5},
                                                     {"ascend910a-sim", 262.1},
                                                     {"ascend910b3-sim", 294.9}};
    EXPECT_NEAR(read.core_count * read.core_mhz * 8192 / 1e6, teraflops.at(target), 0.06);
  }
}

TEST(SimulatorTargets, WithoutParametersItIsA910A) {
  const auto lines = parameters("ascend910a-sim");
  const Accelerator standard;
  for (const auto& key : kAcceleratorKeys) {
    Accelerator read;
    read.*key.field = -1;
    ASSERT_TRUE(regie::sdk::read_accelerator_key("test", key.name, lines.at(key.name).value, &read));
    EXPECT_EQ(read.*key.field, standard.*key.field) << key.name;
  }
}

}  // namespace
