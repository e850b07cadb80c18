// Tile programs that somebody wrote for nodes of their own choice, in an overlay: what an engine of AI Cores
// would otherwise search for or refuse. They come by the interface of op-kernels (op_kernel.h), under the
// name "regie.tile.<operator>": such a kernel computes no operator, it writes the program of one.
//
// `prepare` gets the node as it is: attributes, operands (constants with data) and results with concrete
// shapes, all row-major; and the chip, as attributes "chip.<key>" with the keys of a target file
// (accelerator.hpp). UNSUPPORTED with the reason where there is no program for it.
//
// `run` asks for three results: the encoded program, u8[n]; the cycles that its slowest core is predicted to
// take, f64[1]; its name for profiles, u8[n].
//
// The engine verifies the program and takes it where it is predicted to be quicker than its own. Both sides
// are here: `HandWrittenKernels` makes the table of a function, `ask_hand_written` is the engine's question.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regie/accelerator.hpp"
#include "regie/reference_kernel.hpp"
#include "regie/tile/codec.h"

namespace regie::tile {

inline constexpr std::string_view kHandWritten = "regie.tile.";

struct HandWritten {
  Program program;
  double cycles = 0;  // of the slowest core
  std::string name;
};

// What a request says of the chip.
inline sdk::Accelerator chip_of(const regie_op_request& request) {
  sdk::Accelerator chip;
  constexpr std::string_view kPrefix = "chip.";
  for (uint32_t i = 0; i < request.attr_count; ++i) {
    const std::string_view name = sdk::sv(request.attrs[i].name);
    if (!name.starts_with(kPrefix)) continue;
    for (const sdk::AcceleratorKey& key : sdk::kAcceleratorKeys)
      if (name.substr(kPrefix.size()) == key.name) chip.*key.field = request.attrs[i].v.f;
  }
  return chip;
}

// In whole KiB, as the engine plans with.
inline OnChip on_chip_of(const sdk::Accelerator& chip) {
  const auto size = [](double bytes) {
    return static_cast<uint32_t>(std::min(bytes, 1073741824.0)) / 1024 * 1024;
  };
  OnChip out;
  out.l1 = size(chip.l1_bytes);
  out.l0a = size(chip.l0a_bytes);
  out.l0b = size(chip.l0b_bytes);
  out.l0c = size(chip.l0c_bytes);
  out.ub = size(chip.ub_bytes);
  return out;
}

// The functions of a regie_op_kernel_table around `write`, which throws sdk::Failure(UNSUPPORTED) with the
// reason where it has no program.
template <HandWritten (*write)(uint32_t op, const regie_op_request& request)>
struct HandWrittenKernels {
  struct State {
    std::string blob, name;
    double cycles;
  };
  static regie_status prepare(uint32_t op, const regie_host* host, const regie_op_request* request,
                              regie_op_state** state, uint64_t* scratch_bytes) {
    return sdk::guard(host, [&] {
      HandWritten w = write(op, *request);
      *state = reinterpret_cast<regie_op_state*>(new State{encode(w.program), std::move(w.name), w.cycles});
      *scratch_bytes = 0;
    });
  }
  static regie_status run(const regie_op_state* state, const regie_host* host, const regie_op_call* call) {
    return sdk::guard(host, [&] {
      const State& s = *reinterpret_cast<const State*>(state);
      auto give = [&](uint32_t result, regie_elem elem, const void* data, size_t bytes, size_t count) {
        const int64_t dims[] = {static_cast<int64_t>(count)};
        void* to = call->allocate ? call->allocate(call->context, result, elem, 1, dims) : nullptr;
        if (!to) throw sdk::Failure(REGIE_OUT_OF_MEMORY, "there is no room for a tile program");
        std::memcpy(to, data, bytes);
      };
      give(0, REGIE_U8, s.blob.data(), s.blob.size(), s.blob.size());
      give(1, REGIE_F64, &s.cycles, sizeof s.cycles, 1);
      give(2, REGIE_U8, s.name.data(), s.name.size(), s.name.size());
    });
  }
  static void release(regie_op_state* state) { delete reinterpret_cast<State*>(state); }
};

// Nothing where no plug-in has one for the operator. Throws as the kernel does, and CORRUPT for bytes that
// are no tile program.
inline std::optional<HandWritten> ask_hand_written(const regie_host* host, std::string_view op,
                                                   std::span<const regie_attr> attrs,
                                                   std::span<const regie_tensor> operands,
                                                   std::span<const regie_tensor> results,
                                                   const sdk::Accelerator& chip) {
  const sdk::WordCatcher catcher(host);
  const auto found = sdk::find_reference(catcher, std::string(kHandWritten) + std::string(op));
  if (!found) return std::nullopt;
  std::vector<regie_attr> all(attrs.begin(), attrs.end());
  std::deque<std::string> names;
  for (const sdk::AcceleratorKey& key : sdk::kAcceleratorKeys) {
    regie_attr a{};
    a.name = sdk::str(names.emplace_back("chip." + std::string(key.name)));
    a.kind = REGIE_ATTR_FLOAT;
    a.count = 1;
    a.v.f = chip.*key.field;
    all.push_back(a);
  }
  regie_op_request request{};
  request.struct_size = sizeof request;
  request.attr_count = static_cast<uint32_t>(all.size());
  request.operand_count = static_cast<uint32_t>(operands.size());
  request.result_count = static_cast<uint32_t>(results.size());
  request.op = sdk::str(op);
  request.attrs = all.data();
  request.operands = operands.data();
  request.results = results.data();
  regie_op_state* state = nullptr;
  uint64_t scratch = 0;
  if (const regie_status code =
          found->table->prepare(found->index, catcher.host(), &request, &state, &scratch);
      code != REGIE_OK)
    throw sdk::Failure(code, sdk::WordCatcher::take());
  struct Given {
    std::string bytes[3];
  } given;
  regie_op_call call{};
  call.struct_size = sizeof call;
  call.context = &given;
  call.allocate = [](void* context, uint32_t result, regie_elem elem, int32_t rank,
                     const int64_t* dims) -> void* {
    const regie_elem expected = result == 1 ? REGIE_F64 : REGIE_U8;
    if (result > 2 || elem != expected || rank != 1 || dims[0] < 0 || dims[0] > int64_t{1} << 28)
      return nullptr;
    std::string& to = static_cast<Given*>(context)->bytes[result];
    to.assign(static_cast<size_t>(dims[0]) * (elem == REGIE_F64 ? 8 : 1), '\0');
    return to.data();
  };
  const regie_status code = found->table->run(state, catcher.host(), &call);
  found->table->release(state);
  if (code != REGIE_OK) throw sdk::Failure(code, sdk::WordCatcher::take());
  HandWritten w;
  w.program = decode(given.bytes[0]);
  if (given.bytes[1].size() != sizeof w.cycles)
    throw sdk::Failure(REGIE_CORRUPT, "a hand-written tile program came without its cycles");
  std::memcpy(&w.cycles, given.bytes[1].data(), sizeof w.cycles);
  if (!(w.cycles > 0))
    throw sdk::Failure(REGIE_CORRUPT, "a hand-written tile program says that it takes no time");
  w.name = given.bytes[2];
  return w;
}

}  // namespace regie::tile
