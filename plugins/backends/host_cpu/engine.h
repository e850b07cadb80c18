// What the files of the compile-time half share: the engine, a node at its reference shapes, and what oneDNN
// would do with it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "dnnl_handles.h"
#include "formats.h"
#include "lowered_memo.h"
#include "native.h"
#include "operation.h"
#include "primitive.h"
#include "regie/c/engine.h"
#include "regie/c/pass.h"
#include "regie/reference_kernel.hpp"
#include "settings.h"

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h), catcher(h), settings(host_cpu::read_settings(params)), dnnl(host_cpu::make_engine()) {}
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  host_cpu::Settings settings;
  host_cpu::Engine dnnl;
  host_cpu::LoweredMemo lowered;
  std::string reason;  // of the last answer
  // Of the graph that was last asked about: its size, and whether any node gains by a format.
  uint32_t known_nodes = 0;
  bool gains = false;
};

namespace host_cpu {

// A node at its reference shapes.
class Work {
 public:
  Work(const regie_graph* graph, uint32_t id, const regie_engine_shapes& shapes);
  regie::sdk::Attrs attributes() const { return regie::sdk::Attrs(node); }
  // Both throw UNSUPPORTED, with the reason.
  Operation describe() const;
  NativePtr native(uint32_t threads) const;

  const regie_node& node;
  std::string_view op;
  std::vector<regie_attr> attrs;
  std::vector<regie_tensor> operands, results;
  Formats formats;
  double bytes = 0, elements = 0;
  bool empty = false;
  // A dimension (-1) is known only when the model runs: there is nothing to try. Where it is one of the
  // result alone, the device gets the operands' data when it prepares the kernel.
  bool untried = false;

 private:
  void need_elements() const;
  std::deque<std::vector<int64_t>> kept_dims_;
};

struct Choice {
  Operation op;
  Layout layout;
  const Lowered* lowered;  // of the engine
  bool pack = false;       // the weights are constant and oneDNN wants them otherwise than they are
  const Lowered* winograd = nullptr;  // instead, where there is one
};
// Throws UNSUPPORTED, with the reason.
Choice choose(regie_engine& e, const Work& work);
// "own direct convolution", "oneDNN brgconv:avx512_core": whose kernel it is, for explanations. `open`:
// values that are row-major may be given the format that the kernel likes.
std::string kernel_name(const regie_engine& e, const Work& work, const Choice& choice, bool open = false);

// Nothing where it cannot take the node; `why` says why then.
std::optional<regie::sdk::ReferenceKernel> reference_kernel(const regie_engine& e, const Work& work,
                                                            std::string* why);
std::string no_reference_for(std::string_view op);

// Entry of the engine's table.
regie_status compile(regie_engine* e, const regie_engine_compile* request);

}  // namespace host_cpu
