// Tile programs as kernels of the simulated device: their results, and that the device's time is the
// machine's at the rates that cache and memory give.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "regie/c/device_trace.h"
#include "support/backends.h"
#include "tile/programs.h"

namespace {

using namespace regie::test_backends;
namespace tile = regie::tile;
namespace tile_test = regie::tile_test;

constexpr int64_t kCount = 5008;  // whole blocks of 32 bytes

// The device of ascend910a-sim's defaults, with the program of a case in its memory.
struct TileBench {
  explicit TileBench(tile_test::Case& c, const Settings& settings = {})
      : device(library("simulator").devices(), 0, settings) {
    trace = static_cast<const regie_device_trace_table*>(
        library("simulator").entry().find(REGIE_DEVICE_TRACE_ID));
    const std::string blob = tile::encode(c.program);
    const regie_kernel_image image{sizeof(regie_kernel_image), 0, regie::sdk::str(REGIE_TILE_FORMAT),
                                   blob.data(), blob.size()};
    expect(table().kernel_load(device.device(), &image, &kernel));
    dims.reserve(c.buffers.size());
    for (size_t i = 0; i < c.buffers.size(); ++i) {
      void* at = nullptr;
      expect(table().allocate(device.device(), 0, c.buffers[i].bytes.size(), &at));
      memory.push_back(at);
      dims.push_back(static_cast<int64_t>(c.buffers[i].bytes.size() / 2));
      regie_tensor t{REGIE_F16, 0, 1, &dims.back(), nullptr, at, c.buffers[i].bytes.size()};
      const bool operand = c.program.gm[i].kind == REGIE_TILE_OPERAND;
      (operand ? operands : results).push_back(t);
      if (operand)
        expect(table().copy(device.stream(), REGIE_COPY_TO_DEVICE, at, c.buffers[i].bytes.data(), t.bytes));
    }
    expect(table().stream_wait(device.stream(), UINT64_MAX));
    uint64_t scratch = 0;
    expect(table().prepare(kernel, operands.data(), static_cast<uint32_t>(operands.size()), results.data(),
                           static_cast<uint32_t>(results.size()), 1, &executable, &scratch));
    EXPECT_EQ(scratch, 0u);
  }
  ~TileBench() {
    table().stream_wait(device.stream(), UINT64_MAX);
    if (executable) table().executable_release(executable);
    if (kernel) table().kernel_release(kernel);
    for (void* at : memory) table().release(device.device(), 0, at);
  }
  // The record of a launch.
  regie_trace_task launch(std::vector<regie_trace_slice>* slices = nullptr) {
    trace->record(device.stream(), 1);
    trace->tag(device.stream(), 77);
    regie_launch l{};
    l.struct_size = sizeof l;
    l.operands = operands.data();
    l.results = results.data();
    l.operand_count = static_cast<uint32_t>(operands.size());
    l.result_count = static_cast<uint32_t>(results.size());
    expect(table().launch(device.stream(), executable, &l));
    expect(table().stream_wait(device.stream(), UINT64_MAX));
    regie_trace told{};
    expect(trace->collect(device.stream(), &told));
    EXPECT_EQ(told.task_count, 1u);
    if (told.task_count != 1) return {};
    EXPECT_EQ(told.tasks[0].tag, 77u);
    EXPECT_EQ(regie::sdk::sv(told.lanes[told.tasks[0].lane].name), "AI Core");
    if (slices) slices->assign(told.slices, told.slices + told.slice_count);
    return told.tasks[0];
  }
  void read_back(tile_test::Case* c) {
    for (size_t i = 0; i < memory.size(); ++i)
      expect(table().copy(device.stream(), REGIE_COPY_FROM_DEVICE, c->buffers[i].bytes.data(), memory[i],
                          c->buffers[i].bytes.size()));
    expect(table().stream_wait(device.stream(), UINT64_MAX));
  }
  static void expect(regie_status code) { EXPECT_EQ(code, REGIE_OK) << take_failure(); }
  const regie_device_table& table() const { return device.table(); }

  DeviceUnderTest device;
  const regie_device_trace_table* trace = nullptr;
  regie_loaded_kernel* kernel = nullptr;
  regie_executable* executable = nullptr;
  std::vector<int64_t> dims;
  std::vector<void*> memory;
  std::vector<regie_tensor> operands, results;
};

TEST(SimulatorTile, ComputesAndTakesTheMachinesTime) {
  tile_test::Case c = tile_test::vector_add(kCount, 256, 4);
  TileBench bench(c);
  const regie_trace_task cold = bench.launch(), warm = bench.launch();
  bench.read_back(&c);
  tile_test::check_add(c, kCount);

  // 4 of the cores share 1024 bytes a cycle of the memory: 256 each, more than the 110 that the cache gives.
  // So the operands, which lay in the memory at first, came no slower, but 300 cycles late instead of 100.
  regie::simulator::TileMachine m;
  m.cores = 32;
  m.chip = c.program.chip;
  m.cube_efficiency = 0.82;
  m.vector_efficiency = 0.83;
  const auto task = regie::simulator::TileTask::prepare(tile::encode(c.program), m, "add");
  for (const bool hit : {false, true}) {
    std::vector<regie::simulator::TileBuffer> buffers = tile_test::bind(c);
    for (size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].read_rate = 110;
      buffers[i].write_rate = 86;
      buffers[i].latency = !hit && i < 2 ? 300 : 100;
    }
    const double ns = task->run(buffers, {false, true, false}).nanoseconds;
    const regie_trace_task& told = hit ? warm : cold;
    EXPECT_EQ(told.run_ns - told.begin_ns, 2400u) << "dispatch, hardware and software start";
    EXPECT_EQ(told.ran_ns - told.run_ns, static_cast<uint64_t>(std::ceil(ns - 1e-6)))
        << (hit ? "warm" : "cold");
    EXPECT_EQ(told.end_ns - told.ran_ns, 500u);
    EXPECT_EQ(told.far_bytes, hit ? 0u : 4u * kCount);
  }
  EXPECT_GE(warm.bytes, 6u * kCount);
  EXPECT_GT(cold.ran_ns - cold.run_ns, warm.ran_ns - warm.run_ns);
}

TEST(SimulatorTile, TimeAloneIsTheSameTime) {
  tile_test::Case c = tile_test::vector_add(kCount, 256, 4);
  TileBench with(c), without(c, Settings({{"numerics", "off"}}));
  const regie_trace_task a = with.launch(), b = without.launch();
  EXPECT_EQ(a.end_ns, b.end_ns);
  EXPECT_EQ(a.far_bytes, b.far_bytes);
}

TEST(SimulatorTile, ThePipesLieWithinTheTask) {
  tile_test::Case c = tile_test::matmul(96, 64, 128, 32, 64, 3);
  TileBench bench(c);
  std::vector<regie_trace_slice> slices;
  const regie_trace_task told = bench.launch(&slices);
  bench.read_back(&c);
  tile_test::check_matmul(c, 96, 64, 128);
  EXPECT_EQ(told.flops, 2.0 * 96 * 64 * 128);
  std::vector<std::string> names;
  for (const regie_trace_slice& s : slices) {
    EXPECT_GE(s.begin_ns, told.run_ns);
    EXPECT_LE(s.begin_ns, s.end_ns);
    EXPECT_LE(s.end_ns, told.ran_ns);
    names.emplace_back(regie::sdk::sv(s.name));
  }
  for (const char* pipe : {"load", "move", "cube", "vector", "store"})
    EXPECT_NE(std::find(names.begin(), names.end(), pipe), names.end()) << pipe;
}

TEST(SimulatorTile, RefusesWhatTheTargetHasNot) {
  tile_test::Case c = tile_test::vector_add(kCount, 256, 4);
  const std::string blob = tile::encode(c.program);
  Kernel kernel;
  kernel.format = REGIE_TILE_FORMAT;
  kernel.blob = blob;
  DeviceUnderTest few(library("simulator").devices(), 0, {{"core_count", "2"}}),
      small(library("simulator").devices(), 0, {{"ub_bytes", "4096"}}),
      fine(library("simulator").devices(), 0, {});
  EXPECT_EQ(few.try_load(kernel), REGIE_UNSUPPORTED);
  EXPECT_NE(take_failure().find("cores"), std::string::npos);
  EXPECT_EQ(small.try_load(kernel), REGIE_UNSUPPORTED);
  EXPECT_NE(take_failure().find("4096"), std::string::npos);
  EXPECT_EQ(fine.try_load(kernel), REGIE_OK);
  kernel.blob[kernel.blob.size() / 2] = static_cast<char>(kernel.blob[kernel.blob.size() / 2] ^ 1);
  EXPECT_EQ(fine.try_load(kernel), REGIE_CORRUPT);
}

}  // namespace
