// Each kind of fault is found, by name and with the instruction.

#include <gtest/gtest.h>

#include "programs.h"
#include "regie/plugin.hpp"
#include "regie/tile/stream.h"

namespace regie::tile_test {
namespace {

constexpr const char* kHead =
    "tile 1\ncores 2\nchip l1 4096 l0a 2048 l0b 2048 l0c 4096 ub 4096\n"
    "gm 0 operand 0 4096 read\ngm 1 result 0 4096 write\ngm 2 scratch 0 4096 read write\n";

struct Wrong {
  const char* fault;
  const char* words;  // in the message
  const char* code;
};

class TileVerifier : public testing::TestWithParam<Wrong> {};

TEST_P(TileVerifier, FindsTheFault) {
  tile::VerifyOptions options;
  options.report_unused = std::string(GetParam().fault) == "unused-write";
  options.instruction_budget = 100000;  // which the loops below do not reach by themselves
  tile::VerifyResult r = tile::verify(tile::assemble(std::string(kHead) + GetParam().code), options);
  EXPECT_STREQ(tile::fault_name(r.fault), GetParam().fault) << r.message;
  EXPECT_NE(r.message.find(GetParam().words), std::string::npos) << r.message;
}

INSTANTIATE_TEST_SUITE_P(
    All, TileVerifier,
    testing::Values(
        Wrong{"none", "", "copy ub gm0 to=0 from=core*64 bytes=64\n"},
        Wrong{"budget", "more than 100000", "loop i = 1000\nloop j = 1000\nend\nend\n"},
        Wrong{"budget", "moves more",
              "loop i = 2000\ncopy ub gm0 to=0 from=0 bytes=1 n1=2000 to1=2 from1=2 n2=96 to2=1 "
              "from2=1\nend\n"},
        Wrong{"operand", "turns", "loop i = 0 - 3 + core\nend\n"},
        Wrong{"operand", "n = -1 is negative", "fill ub f16 to=0 value=1 n=-1\n"},
        Wrong{"operand", "id = 16 is no flag", "set load vector id=16\n"},
        Wrong{"operand", "accumulate = 2", "mmad f16 to=0 a=0 b=0 m=16 n=16 k=16 accumulate=2\n"},
        Wrong{"operand", "stride_h = 0 is below 1",
              "im2col l0a f16 to=0 from=0 height=1 width=1 out_width=1 rows=1 k1=1 stride_h=0\n"},
        Wrong{"operand", "too many", "copy ub gm0 to=0 from=0 bytes=1 n1=100000 n2=100000\n"},
        Wrong{"operand", "would overlap", "mmad f16 to=0 a=0 b=0 m=32 n=16 k=16 accumulate=0 a1=0\n"},
        Wrong{"operand", "overlaps its source",
              "fill ub f16 to=0 value=1 n=64\nunary abs f16 to=2 a=0 n=8\n"},
        Wrong{"operand", "overlaps its source",
              "fill ub f32 to=0 value=1 n=64\ncast f32 f16 rint to=0 a=0 n=8\n"},
        Wrong{"operand", "write the same bytes", "copy ub gm0 to=0 from=0 bytes=32 n1=2 from1=32\n"},
        Wrong{"operand", "write the same bytes",
              "fill ub f16 to=0 value=1 n=64\nbinary add f16 vector to=64 a=0 b=32 n=16 n1=2\n"},
        Wrong{"none", "",
              "fill ub f16 to=0 value=1 n=64\nbinary max f16 vector to=0 a=0 b=32 n=16 n1=3 b1=32\n"},
        Wrong{"alignment", "to = 256 is no multiple of 512", "fractal l0a plain to=256 from=0\n"},
        Wrong{"alignment", "a = 3 is no multiple of 4", "unary abs f32 to=0 a=3 n=8\n"},
        Wrong{"alignment", "n = 7 is no multiple of 8", "compare lt f16 scalar to=0 a=64 b=1 n=7\n"},
        Wrong{"out-of-buffer", "writes up to byte 4100 of ub, which has 4096",
              "copy ub gm0 to=4090 from=0 bytes=10\n"},
        Wrong{"out-of-buffer", "l0a",
              "im2col l0a f16 to=0 from=0 height=1 width=1 out_width=1 rows=1 k1=5\n"},
        Wrong{"out-of-buffer", "core 1, instruction 0", "copy ub gm0 to=core*4000 from=0 bytes=100\n"},
        Wrong{"out-of-gm", "reads up to byte 4097 of gm0", "copy ub gm0 to=0 from=4000 bytes=97\n"},
        Wrong{"gm-access", "writes gm0",
              "fill ub f16 to=0 value=1 n=64\nset vector store id=0\nwait vector store id=0\n"
              "copy gm0 ub to=0 from=0 bytes=64\n"},
        Wrong{"uninitialised", "byte 64 was never written",
              "fill ub f16 to=0 value=1 n=32\nunary abs f16 to=256 a=0 n=33\n"},
        Wrong{"uninitialised", "of l1", "fractal l0a plain to=0 from=0\n"},
        Wrong{"race", "instruction 0 on pipe load",
              "copy ub gm0 to=0 from=0 bytes=64\nunary abs f16 to=256 a=0 n=32\n"},
        Wrong{"race", "no flag from vector to load",
              "copy ub gm0 to=0 from=0 bytes=64\nset load vector id=0\nwait load vector id=0\nunary abs f16 "
              "to=256 a=0 n=32\n"
              "copy ub gm0 to=0 from=0 bytes=64\n"},
        Wrong{"gm-race", "that core 0",
              "fill ub f16 to=0 value=1 n=32\nset vector store id=0\nwait vector store id=0\n"
              "copy gm1 ub to=0 from=0 bytes=64\n"},
        Wrong{"gm-race", "reads",
              "fill ub f16 to=0 value=1 n=32\nset vector store id=0\nwait vector store id=0\n"
              "copy gm2 ub to=core*64 from=0 bytes=64\ncopy ub gm2 to=64 from=core*64 bytes=64\n"},
        Wrong{"gm-race", "that core 0",
              "fill ub f16 to=0 value=1 n=32\nset vector store id=0\nwait vector store id=0\n"
              "copy gm2 ub to=core*64 from=0 bytes=64\nset store load id=0\nwait store load id=0\n"
              "copy ub gm2 to=64 from=64 - core*64 bytes=64\n"},
        Wrong{"set-twice", "still set by instruction 0", "set load vector id=1\nset load vector id=1\n"},
        Wrong{"set-twice", "may still be set",
              "set load vector id=1\nwait load vector id=1\nset load vector id=1\nwait load vector id=1\n"},
        Wrong{"dead-lock", "not set by an earlier", "wait load vector id=1\nset load vector id=1\n"},
        Wrong{"left-set", "flag 1 from load to vector", "set load vector id=1\n"},
        Wrong{"barrier", "core 1", "loop i = core\nbarrier\nend\n"},
        Wrong{"unused-write", "64 bytes", "copy ub gm0 to=0 from=0 bytes=64\n"}));

TEST(TileVerifier, AcceptsTheHandWrittenPrograms) {
  for (Case c : {vector_add(1000, 128, 3), matmul(50, 48, 100, 32, 48, 2), softmax(37, 100, 8, 3),
                 conv({}, 32, 4, 2)}) {
    tile::VerifyResult r = tile::verify(c.program);
    EXPECT_TRUE(r.ok()) << c.name << ": " << r.message;
    for (size_t g = 0; g < c.program.gm.size(); ++g) {
      // Every byte of every operand is read, of the result written.
      const auto& ranges = c.program.gm[g].kind == REGIE_TILE_RESULT ? r.writes[g] : r.reads[g];
      ASSERT_EQ(ranges.size(), 1u) << c.name;
      EXPECT_EQ(ranges[0], (tile::ByteRange{0, c.program.gm[g].bytes})) << c.name << " gm" << g;
    }
  }
}

TEST(TileVerifier, TellsWhatIsReadBeforeItIsWritten) {
  tile::VerifyResult r = tile::verify(
      tile::assemble(std::string(kHead) + "fill ub f16 to=0 value=1 n=32\nset vector store id=0\nwait vector "
                                          "store id=0\ncopy gm2 ub to=core*64 from=0 bytes=64\n"
                                          "barrier\ncopy ub gm2 to=1024 from=core*64 bytes=96\n"));
  ASSERT_TRUE(r.ok()) << r.message;
  EXPECT_EQ(r.writes[2], (std::vector<tile::ByteRange>{{0, 128}}));
  EXPECT_EQ(r.reads[2], (std::vector<tile::ByteRange>{{128, 160}}));
}

// Cores with one signature have streams that differ in nothing else.
TEST(TileVerifier, SignaturesTellEqualCores) {
  size_t equal = 0, different = 0;
  for (Case c : {vector_add(5000, 64, 16), vector_add(4096, 128, 8), matmul(129, 80, 77, 16, 32, 7),
                 softmax(100, 33, 4, 9), conv({}, 16, 4, 3)}) {
    tile::Plan plan(c.program);
    for (uint32_t x = 0; x < c.program.cores; ++x)
      for (uint32_t y = 0; y < x; ++y) {
        for (auto what : {tile::Plan::Same::on_chip, tile::Plan::Same::time}) {
          bool same = plan.signature(x, what) == plan.signature(y, what);
          ++(same ? equal : different);
          if (!same) continue;
          tile::Stream s(plan, x), t(plan, y);
          tile::Concrete p, q;
          for (;;) {
            auto got = s.next(p);
            ASSERT_EQ(got, t.next(q));
            if (got != tile::Stream::Result::instruction) break;
            ASSERT_EQ(p.index, q.index);
            const auto& args = tile::instruction_info(p.op)->args;
            for (size_t k = 0; k < args.size(); ++k) {
              bool global = p.op == REGIE_TILE_OP_COPY && k < 2 && p.mode[k] >= REGIE_TILE_GM;
              bool time = what == tile::Plan::Same::time;
              if (args[k].kind == tile::ArgKind::address && (global || time)) {
                if (time) {
                  ASSERT_EQ(p.arg[k] % 32, q.arg[k] % 32);
                }
              } else {
                ASSERT_EQ(p.arg[k], q.arg[k])
                    << c.name << ", instruction " << p.index << ", " << args[k].name;
              }
            }
          }
        }
      }
  }
  EXPECT_GT(equal, 100u);
  EXPECT_GT(different, 10u);
}

}  // namespace
}  // namespace regie::tile_test
