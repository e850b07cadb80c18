// The widths of the graph that is compiled (widths.h): looked for once, kept by the host from compile to
// compile, and told to the user and to the ledger.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "choose_widths.h"
#include "regie/c/findings.h"
#include "regie/c/host.h"

namespace aicore {

struct WidthSettings {
  double accuracy = 5e-3;
  std::vector<std::string> listed;  // nodes and operators whose operands are two halves in any case
  bool all_rounded = false;         // whatever may be halves between tasks is
};

class WidthFinder {
 public:
  // Those of the graph as it is: none but the listed ones where the model's inputs are halves. `price`: what
  // it costs that a reader's operand lies as f32, ns.
  const Widths& of(const regie_host* host, const regie_graph* graph, uint32_t engine,
                   const WidthSettings& settings, const std::function<double(const Widths::Reader&)>& price);
  // Was it asked? Before that nothing is known to be on two halves.
  bool asked() const { return widths_.has_value(); }

 private:
  std::optional<Widths> widths_;
  uint64_t revision_ = 0;  // of the graph, as the host counts
};

// What a choice and the widths that it left say, for the host to keep; and back, into widths of the same
// graph. False, and nothing changed, if it is of another one.
std::string to_text(const WidthChoice& choice, const Widths& widths);
bool from_text(std::string_view text, WidthChoice* choice, Widths* widths);

}  // namespace aicore
