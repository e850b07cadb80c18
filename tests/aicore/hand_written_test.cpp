// Programs that an overlay offers: taken where they are predicted to be quicker or the engine has none, and
// never where the verifier finds a fault, they do not fit, or they leave a part of a result unwritten.
#include "regie/tile/hand_written.h"

#include <gtest/gtest.h>

#include <cstdio>

#include <string>

#include "node.h"
#include "regie/tile/verify.h"

namespace aicore::test {
namespace {

namespace sdk = regie::sdk;
namespace tile = regie::tile;

// What the overlay answers in a test.
struct Offer {
  double cycles = 1;
  int64_t cut = 0;  // bytes that it does not write
  uint32_t cores = 1;
  bool waits = true;  // for the load
  uint64_t more = 0;  // bytes of the operand beyond what there is
  bool refuses = false;
};
Offer offer;
std::string op_offered, warning;

tile::HandWritten write(uint32_t, const regie_op_request& request) {
  if (offer.refuses) throw sdk::Failure(REGIE_UNSUPPORTED, "not on a Monday");
  const sdk::Accelerator chip = tile::chip_of(request);
  EXPECT_EQ(chip.core_count, 32);
  EXPECT_EQ(chip.ub_bytes, 262144);
  const int64_t bytes = sdk::count_of(request.operands[0]) * 4;
  tile::Builder b(offer.cores, tile::on_chip_of(chip));
  const uint32_t in = b.operand(0, static_cast<uint64_t>(bytes) + offer.more),
                 out = b.result(0, static_cast<uint64_t>(bytes));
  b.loop(clamp(0, 1, tile::Expr(1) - b.core()), [&](const tile::Expr&) {
    b.copy(tile::ub(0), tile::gm(in, 0), bytes);
    b.set(REGIE_TILE_LOAD, REGIE_TILE_STORE, 0);
    if (!offer.waits) b.copy(tile::gm(out, 0), tile::ub(0), bytes - offer.cut);
    b.wait(REGIE_TILE_LOAD, REGIE_TILE_STORE, 0);
    if (offer.waits) b.copy(tile::gm(out, 0), tile::ub(0), bytes - offer.cut);
  });
  return {b.finish(), offer.cycles, "copy"};
}

using Kernels = tile::HandWrittenKernels<write>;
const regie_op_info kInfo[] = {{sdk::lit("regie.tile.Anything"), REGIE_OP_DYNAMIC_RESULT, 0}};
const regie_op_kernel_table kTable = {{}, 1, 0, kInfo, Kernels::prepare, Kernels::run, Kernels::release};
const regie_host_ops kOps = {sizeof(regie_host_ops), 0,
                             [](regie_str op, const regie_op_kernel_table** table, uint32_t* index) {
                               if (sdk::sv(op) != op_offered) return regie_status{REGIE_NOT_FOUND};
                               *table = &kTable;
                               *index = 0;
                               return regie_status{REGIE_OK};
                             }};

regie_host host() {
  regie_host h{};
  h.struct_size = sizeof h;
  h.fail = [](regie_status code, regie_str, regie_str) { return code; };
  h.log = [](regie_log_level, regie_str, regie_str message) { warning = sdk::sv(message); };
  h.find = [](const char* id) -> const void* {
    return std::string_view(id) == REGIE_HOST_OPS_ID ? &kOps : nullptr;
  };
  return h;
}

class HandWritten : public ::testing::Test {
 protected:
  void SetUp() override {
    offer = {};
    op_offered = "regie.tile.Relu";
    warning.clear();
  }
  // Of a node of `op`; a refusal's words too.
  std::string reason(const std::string& op = "Relu") {
    Random random(3);
    Node node(op);
    node.operand(random_array(random, {1000})).result({1000});
    const regie_host h = host();
    const Chip chip = chip_of_target("ascend910a-sim");  // what writes programs refers to it
    try {
      const Choice c = node.choose(chip, &h, verdicts);
      kernel = c.lowered.name;
      const Written w = c.lowered.write();
      EXPECT_TRUE(regie::tile::verify(w.program).ok());
      return c.reason;
    } catch (const sdk::Failure& f) {
      EXPECT_EQ(f.code, REGIE_UNSUPPORTED);
      kernel.clear();
      return f.message;
    }
  }
  std::string kernel;
  Verdicts verdicts;
};

// A task that predicts so many cycles, with its start and end.
std::string took(double cycles) {
  const Chip chip = chip_of_target("ascend910a-sim");
  const auto& h = chip.hardware;
  const double ns = cycles * 1000 / h.core_mhz + h.dispatch_ns + h.hardware_start_ns + h.software_start_ns +
                    h.completion_ns;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f us", ns / 1000);
  return text;
}

TEST_F(HandWritten, IsTakenWhereItIsQuicker) {
  const std::string words = reason();
  EXPECT_EQ(kernel, "hand-written copy");
  EXPECT_TRUE(words.starts_with("hand-written copy, " + took(offer.cycles) + "; its own: vector Relu, "))
      << words;
  EXPECT_EQ(warning, "");
}

TEST_F(HandWritten, IsNotTakenWhereItIsSlower) {
  offer.cycles = 50000;
  const std::string words = reason();
  EXPECT_EQ(kernel, "vector Relu");
  EXPECT_NE(words.find("; hand-written copy: " + took(offer.cycles)), std::string::npos) << words;
}

TEST_F(HandWritten, IsTakenWhereTheEngineHasNone) {
  op_offered = "regie.tile.acme.Hann";
  EXPECT_EQ(reason("acme.Hann"),
            "hand-written copy, " + took(offer.cycles) + "; its own: there is no tile program for acme.Hann");
  op_offered.clear();
  EXPECT_EQ(reason("acme.Hann"), "there is no tile program for acme.Hann");
  EXPECT_EQ(reason(), "vector Relu");
}

TEST_F(HandWritten, SaysWhyItHasNone) {
  offer.refuses = true;
  EXPECT_TRUE(reason().starts_with("vector Relu (hand-written: ")) << reason();
  EXPECT_EQ(kernel, "vector Relu");
}

TEST_F(HandWritten, IsNeverTakenWithAFault) {
  const std::vector<std::pair<Offer, std::string>> cases{
      {{.cut = 4}, "it leaves parts of result 0 unwritten"},
      {{.cores = 33}, "it is for 33 cores"},
      {{.waits = false}, "no flag from load to store orders them"},
      {{.more = 32}, "operand 0 has fewer bytes than it is for"},
  };
  for (const auto& [bad, why] : cases) {
    offer = bad;
    warning.clear();
    const std::string words = reason();
    EXPECT_EQ(kernel, "vector Relu");
    EXPECT_NE(words.find(why), std::string::npos) << words;
    EXPECT_NE(warning.find("the hand-written program 'copy' for Relu is not used: "), std::string::npos)
        << warning;
  }
}

}  // namespace
}  // namespace aicore::test
