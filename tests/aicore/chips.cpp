// The chips that tests compile for.
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include <toml++/toml.h>

#include "node.h"
#include "regie_test_paths.h"

namespace aicore::test {

Chip chip_of_target(const std::string& name) {
  const toml::table file = toml::parse_file(REGIE_TEST_SOURCE_DIR "/configs/targets/" + name + ".toml");
  regie::sdk::Accelerator a;
  for (const toml::node& device : *file["device"].as_array()) {
    const toml::table& table = *device.as_table();
    if (table["plugin"].value_or(std::string()) != "simulator") continue;
    for (const auto& [key, value] : *table["params"].as_table()) {
      if (!value.is_number()) continue;
      std::ostringstream text;
      text << std::setprecision(17) << value.value_or(0.0);
      regie::sdk::read_accelerator_key(name, key.str(), text.str(), &a);
    }
    return Chip(a);
  }
  throw std::runtime_error("the target has no simulated device: " + name);
}
Chip any_chip(Random& random) {
  static const char* const kTargets[] = {"ascend310-sim", "ascend310p3-sim", "ascend910a-sim",
                                         "ascend910b3-sim"};
  const int64_t drawn = pick(random, 0, 7);
  const char* given = std::getenv("REGIE_AICORE_TARGET");
  if (given) return chip_of_target(given);
  return drawn < 4 ? chip_of_target(kTargets[drawn]) : small_chip(pick(random, 1, 5));
}
Chip small_chip(int64_t cores) {
  regie::sdk::Accelerator a;
  a.core_count = static_cast<double>(cores);
  a.l1_bytes = 96 << 10;
  a.ub_bytes = 128 << 10;
  a.l0a_bytes = a.l0b_bytes = 8 << 10;
  a.l0c_bytes = 32 << 10;
  return Chip(a);
}

}  // namespace aicore::test
