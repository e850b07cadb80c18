// Parameters of the target file, strict: an unknown key or a value of the wrong kind is an error that says
// what is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "primitive.h"
#include "regie/c/host.h"

namespace host_cpu {

// May convolutions be computed by Winograd's algorithm? It works in room of its own, which may be most of
// what a network needs.
enum class Winograd { kOff, kInLittleRoom, kAlways };

// By which kernels pooling and convolutions are computed that are not by Winograd's algorithm: our own,
// compiled ahead, where they suit, or oneDNN's, generated when a model is loaded.
enum class Convolutions { kAhead, kGenerated };

struct Settings {
  // The cost model (docs/backends.md): ns = overhead + max(flops / flops_per_ns, bytes / bytes_per_ns).
  double flops_per_ns = 100;  // oneDNN, one thread
  double bytes_per_ns = 20;
  double reference_flops_per_ns = 0.5;  // reference kernels; an element-wise operator counts four a element
  double overhead_ns = 1000;            // of one launch
  std::optional<Layout> layout;         // nothing: what measured best for this kind of operator
  Winograd winograd = Winograd::kInLittleRoom;
  Convolutions convolutions = Convolutions::kAhead;
  uint64_t wait_timeout_ns = 60'000'000'000;
  uint32_t streams = 1;  // more than one: each is a thread, and work on them runs side by side
};

// Throws Failure(INVALID_INPUT). Engine and device get the same keys, as the engine sees its device's.
Settings read_settings(const regie_config* params);

}  // namespace host_cpu
