// The timeline: by hand, overlap, bytes, without data.

#include <gtest/gtest.h>

#include "programs.h"

namespace regie::tile_test {
namespace {

constexpr const char* kChain =
    "tile 1\ncores 1\nchip l1 4096 l0a 2048 l0b 2048 l0c 4096 ub 4096\n"
    "gm 0 operand 0 1024 read\ngm 1 result 0 1024 write\n"
    "copy ub gm0 to=0 from=0 bytes=1024\nset load vector id=0\nwait load vector id=0\n"
    "unary abs f16 to=0 a=0 n=512\nset vector store id=0\nwait vector store id=0\ncopy gm1 ub to=0 from=0 "
    "bytes=1024\n";

simulator::TileResult time_of(const Program& p, const simulator::TileMachine& m, double rate = 64,
                              double latency = 0) {
  std::vector<simulator::TileBuffer> buffers;
  for (const auto& g : p.gm) {
    simulator::TileBuffer b;
    b.bytes = g.bytes;
    b.read_rate = b.write_rate = rate;
    b.latency = latency;
    buffers.push_back(b);
  }
  return simulator::TileTask::prepare(tile::encode(p), m, "timed")->run(buffers, {false, true, true});
}

TEST(TileTiming, AChainByHand) {
  simulator::TileMachine m = machine();
  simulator::TileResult r = time_of(tile::assemble(kChain), m, 64, 100);
  // load 32 + 100 + 1024/64; set 4; wait 4; vector 16 + 1024/256; set 4; wait 4; store as load
  EXPECT_EQ(r.cycles, 148 + 4 + 4 + 20 + 4 + 4 + 148);
  EXPECT_EQ(r.nanoseconds, r.cycles);
  const auto& lanes = r.timeline.at(0);
  ASSERT_EQ(lanes[LOAD].size(), 1u);
  EXPECT_EQ(lanes[LOAD][0].begin, 0);
  EXPECT_EQ(lanes[LOAD][0].end, 148);
  ASSERT_EQ(lanes[VECTOR].size(), 1u);
  EXPECT_EQ(lanes[VECTOR][0].begin, 156);
  EXPECT_EQ(lanes[VECTOR][0].end, 176);
  EXPECT_EQ(lanes[VECTOR][0].instruction, 3u);
  EXPECT_EQ(r.cores[0].busy[STORE], 148);
  EXPECT_EQ(r.cores[0].last[STORE], 332);
  EXPECT_EQ(r.read_bytes, (std::vector<uint64_t>{1024, 0}));
  EXPECT_EQ(r.written_bytes, (std::vector<uint64_t>{0, 1024}));
}

TEST(TileTiming, RequestsOverlapTheirLatency) {
  const std::string text =
      "tile 1\ncores 1\nchip l1 65536 l0a 65536 l0b 65536 l0c 262144 ub 4096\ngm 0 operand 0 2048 read\n"
      "copy ub gm0 to=0 from=0 bytes=1024\ncopy ub gm0 to=1024 from=1024 bytes=1024\n"
      "set load vector id=0\nwait load vector id=0\n";
  const simulator::TileResult r = time_of(tile::assemble(text), machine(), 64, 100);
  // The first: 32 + 100 + 16, and the pipe is free at 48; the second from there; the flag when that is done.
  EXPECT_EQ(r.cycles, 48 + 148 + 4 + 4);
  EXPECT_EQ(r.timeline.at(0)[LOAD][1].begin, 148);
  EXPECT_EQ(r.timeline.at(0)[LOAD][1].end, 196);
  EXPECT_EQ(r.cores[0].busy[LOAD], 196);
}

TEST(TileTiming, CoresThatReadTheSame) {
  // Buffer 0: both cores read all of it; 1: each reads a half; 2: a quarter of the rows in common, of every
  // row.
  const Program p = tile::assemble(
      "tile 1\ncores 2\nchip l1 1048576 l0a 65536 l0b 65536 l0c 262144 ub 4096\n"
      "gm 0 operand 0 65536 read\ngm 1 operand 1 65536 read\ngm 2 operand 2 131072 read\n"
      "loop i = 2\ncopy l1 gm0 to=0 from=i*32768 bytes=32768\nend\n"
      "copy l1 gm1 to=65536 from=core*32768 bytes=32768\n"
      "copy l1 gm2 to=131072 from=core*12288 bytes=32 n1=5 to1=32 from1=4096\n");
  EXPECT_EQ(simulator::readers_in_common(p, {true, true, true}), (std::vector<double>{2, 1, 10.0 / 8}));
  EXPECT_EQ(simulator::readers_in_common(p, {false, true, false}), (std::vector<double>{1, 1, 1}));
}

TEST(TileTiming, CubeAndMoveByHand) {
  simulator::TileMachine m = machine();
  m.cube_efficiency = 0.5;
  m.clock_ghz = 2;
  simulator::TileResult r = time_of(
      tile::assemble("tile 1\ncores 1\nchip l1 65536 l0a 65536 l0b 65536 l0c 262144 ub 4096\n"
                     "fill l1 f16 to=0 value=0 n=16384\nset load move id=0\nwait load move id=0\n"
                     "fractal l0a plain to=0 from=0 n1=64 to1=512 from1=512\nfractal l0b plain to=0 from=0 "
                     "n1=64 to1=512 from1=512\n"
                     "set move cube id=0\nwait move cube id=0\n"
                     "mmad f16 to=0 a=0 b=0 m=120 n=128 k=128 accumulate=0 to1=8192 a1=4096 b1=4096\n"),
      m);
  // fill 32 + 32768/256, 4, 4, fractals 16 + 64 and 16 + 128, 4, 4, cube 16 + 8*8*8/0.5
  EXPECT_EQ(r.cycles, 160 + 8 + 80 + 144 + 8 + 1040);
  EXPECT_EQ(r.nanoseconds * 2, r.cycles);
  EXPECT_EQ(r.cores[0].macs, 120u * 128 * 128);
}

TEST(TileTiming, DoubleBufferingOverlaps) {
  simulator::TileResult r = time_of(vector_add(64 * 2048, 2048, 1).program, machine(), 32);
  double sum = 0, most = 0;
  for (double busy : r.cores[0].busy) {
    sum += busy;
    most = std::max(most, busy);
  }
  EXPECT_LT(r.cycles, 0.75 * sum);
  EXPECT_LT(r.cycles, 1.15 * most);
  EXPECT_GE(r.cycles, most);
  // Spans of a pipe follow each other.
  for (const auto& lane : r.timeline[0])
    for (size_t i = 1; i < lane.size(); ++i) EXPECT_GE(lane[i].begin, lane[i - 1].end);
}

TEST(TileTiming, CoresDivideTheWorkAndRatesMatter) {
  simulator::TileMachine m = machine();
  double one = time_of(vector_add(64 * 2048, 2048, 1).program, m).cycles;
  simulator::TileResult eight = time_of(vector_add(64 * 2048, 2048, 8).program, m);
  EXPECT_LT(eight.cycles, one / 6);
  EXPECT_EQ(eight.read_bytes[0], 64u * 4096);
  ASSERT_EQ(eight.cores.size(), 8u);
  for (const auto& core : eight.cores) EXPECT_EQ(core.cycles, eight.cycles);
  double slow = time_of(vector_add(64 * 2048, 2048, 8).program, m, 8).cycles;
  EXPECT_GT(slow, 4 * eight.cycles);
  // The last cores have nothing to do; equal cores are timed once, all are reported.
  simulator::TileResult ragged = time_of(vector_add(9 * 2048, 2048, 4).program, m);
  EXPECT_EQ(ragged.cores[0].cycles, ragged.cores[1].cycles);
  EXPECT_EQ(ragged.cores[3].busy[VECTOR], 0);
  EXPECT_GT(ragged.cores[2].cycles, 0);
}

TEST(TileTiming, ABarrierWaitsForTheSlowest) {
  simulator::TileResult r =
      time_of(tile::assemble(
                  "tile 1\ncores 2\nchip l1 65536 l0a 512 l0b 512 l0c 1024 ub 65536\n"
                  "fill ub f16 to=0 value=1 n=128 + core*12800\nbarrier\nfill ub f16 to=0 value=1 n=128\n"),
              machine());
  // 16 + 101 cycles on core 1; 200 of the barrier; 17
  EXPECT_EQ(r.cycles, 117 + 200 + 17);
  EXPECT_EQ(r.timeline[0][VECTOR][0].end, 17);
  EXPECT_EQ(r.timeline[0][VECTOR][1].begin, 317);
}

TEST(TileTiming, SameEachTimeWithAndWithoutNumbers) {
  Case c = conv({}, 32, 4, 2);
  simulator::TileResult a = run(c, machine(), true), b = time_of(c.program, machine());
  EXPECT_EQ(a.cycles, b.cycles);
  ASSERT_EQ(a.timeline.size(), b.timeline.size());
  for (size_t k = 0; k < a.timeline.size(); ++k)
    for (size_t p = 0; p < REGIE_TILE_PIPES; ++p) {
      ASSERT_EQ(a.timeline[k][p].size(), b.timeline[k][p].size());
      for (size_t s = 0; s < a.timeline[k][p].size(); ++s)
        EXPECT_EQ(a.timeline[k][p][s].end, b.timeline[k][p][s].end);
    }
}

}  // namespace
}  // namespace regie::tile_test
