// Libraries that a thread opens ahead, around what ends or doubles the process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "regie/api/regie.hpp"
#include "regie_test_paths.h"
#include "support/backends.h"
#include "support/sanitized.h"

namespace {

using namespace regie::test_backends;

// A new path each time, so that each begins with a host of its own.
std::string new_path() {
  static int number = 0;
  std::string path = REGIE_TEST_FAKE_DEVICE_DIR;
  for (int i = 0; i < 1 + number; ++i) path += "/.";
  ++number;
  return path;
}

// The thread may be anywhere in opening libraries when the process ends.
TEST(OpenAhead, TheEndOfTheProcessWaits) {
  for (int delay_us : {0, 100, 500, 2000})
    EXPECT_EXIT(
        {
          regie_open_ahead("host_cpu", new_path().c_str());
          usleep(static_cast<useconds_t>(delay_us));
          std::exit(0);
        },
        ::testing::ExitedWithCode(0), "");
}

// No lock is left held for ever in a child, which opens the same and goes on.
TEST(OpenAhead, ForksWait) {
  for (int delay_us : {0, 100, 500, 2000}) {
    const std::string path = new_path();
    ASSERT_EQ(regie_open_ahead("host_cpu", path.c_str()), REGIE_OK);
    usleep(static_cast<useconds_t>(delay_us));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // ends a child that waits for ever
      const bool good = regie_open_ahead("fake_inline", path.c_str()) == REGIE_OK;
      regie_model* model = nullptr;
      const bool said = regie_model_load("/nowhere.rgm", &model) == REGIE_NOT_FOUND;
      _exit(good && said ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

// Parts of memory that may be written and run as code, and their bytes in all.
std::pair<int, uint64_t> code_made_here() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  uint64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, rights) != 3) continue;
    if (std::string(rights) != "rwxp") continue;
    ++count;
    bytes += end - begin;
  }
  return {count, bytes};
}

// Kernels made in such numbers that their code fills more than one region of the pool: each right, and none
// damaged by those that were made and released since.
TEST(CodePool, KernelsKeepTheirCode) {
  HostCpu cpu;
  [[maybe_unused]] const auto [count_before, bytes_before] = code_made_here();
  std::mt19937_64 random(2024);
  struct Made {
    ConvCase c;
    std::unique_ptr<Node> node;
    Kernel kernel;
  };
  std::vector<Made> all;
  for (int n = 0; n < regie::test::cases(60); ++n) {
    ConvCase c{{1, random_in(random, 1, 40), random_in(random, 4, 9), random_in(random, 4, 9)},
               {3, 3},
               {1, 1},
               {1, 1},
               {1, 1, 1, 1}};
    c.out_channels = random_in(random, 1, 40);
    auto node = conv_node(c, random());
    Kernel kernel = cpu.engine.compile(*node, 1);
    ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {1, 1})), kTolerance);
    all.push_back({c, std::move(node), std::move(kernel)});
  }
#if defined(__x86_64__)
  // One mapping a region, not one a piece of code. (Regions beside each other are one.)
  const auto [count, bytes] = code_made_here();
  EXPECT_GE(bytes, uint64_t{16} << 20);
  EXPECT_LE(count - count_before, 2 + static_cast<int>((bytes - bytes_before) >> 24));
#endif
  for (const Made& m : all)
    ASSERT_LE(difference(conv_by_loops(m.c, *m.node), cpu.device.run(m.kernel, *m.node, {1, 2})), kTolerance);
}

}  // namespace
