// Any bytes as a tile program: an error, or a program that is written back to the same bytes, as text too;
// and what the verifier accepts runs without touching anything that is not its own.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "regie/plugin.hpp"
#include "regie/tile/codec.h"
#include "tile_machine.h"

namespace {

void need(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

uint32_t crc(std::string_view bytes) {
  uint32_t c = ~0u;
  for (char b : bytes) {
    c ^= static_cast<uint8_t>(b);
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regie;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size >= sizeof(regie_tile_header)) {  // else the checksum would hide all behind it
    std::memset(bytes.data() + 8, 0, 4);
    uint32_t sum = crc(bytes);
    std::memcpy(bytes.data() + 8, &sum, 4);
  }
  tile::Program p;
  try {
    p = tile::decode(bytes);
  } catch (const sdk::Failure&) {
    return 0;
  }
  need(tile::encode(p) == bytes, "other bytes");
  need(tile::encode(tile::assemble(tile::disassemble(p))) == bytes, "other bytes by way of text");
  tile::VerifyOptions few;
  few.instruction_budget = 2000;
  if (!tile::verify(p, few).ok()) return 0;
  uint64_t total = 0;
  for (const auto& g : p.gm) total += g.bytes;
  for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place) total += p.chip.size(place);
  if (total > (1u << 24)) return 0;
  std::vector<std::vector<char>> memory;
  std::vector<simulator::TileBuffer> buffers;
  for (const auto& g : p.gm) {
    memory.emplace_back(g.bytes + 1);
    simulator::TileBuffer b;
    b.data = memory.back().data();
    b.bytes = g.bytes;
    buffers.push_back(b);
  }
  simulator::TileMachine machine;
  machine.cores = p.cores;
  machine.chip = p.chip;
  simulator::TileTask::prepare(bytes, machine, "fuzz")->run(buffers);
  return 0;
}
