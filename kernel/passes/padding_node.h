// One node of the check of padding: what each kind of rule says of its operands and results.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/schema.h"
#include "passes/padding.h"

namespace regie {

// What is known of a value that is computed at sizes larger than the request's.
struct PaddingMark {
  enum State {
    kExact,   // as it is without padding
    kSized,   // made of sizes, and known to the shape functions: the larger sizes where it should be smaller
    kPadded,  // what it should be, with something at the end of the padded axes
    kBad      // `why`
  } state = kExact;
  bool zeros = false;  // kPadded: that something is zero
  std::string why;
};

class PaddingNode {
 public:
  // `marks` by value.
  PaddingNode(const Graph& graph, const PluginOpSet& ops, const PaddedSymbols& symbols,
              const std::vector<PaddingMark>& marks, uint32_t node);

  // Empty: the results are padded as the operands are. Otherwise why not, as the end of a sentence that
  // begins with the node: "mixes ...".
  std::string refused() const;
  // The padding of the results is zero, if they are padded.
  bool keeps_zeros() const { return zeros_; }

 private:
  using Dims = std::span<const regie_dim>;
  Dims dims(uint32_t value) const;
  bool padded(regie_dim d) const { return depends_on(g_.dims(), d, symbols_); }
  bool any_padded(Dims d) const;
  bool grows(regie_dim d) const;  // with each symbol, if at all
  std::string name_of(regie_dim d) const;
  std::string value_name(uint32_t value) const;
  const PaddingMark& mark(uint32_t value) const;
  const regie_attr* attr(std::string_view name) const;
  std::optional<std::vector<int64_t>> integers(
      std::string_view name) const;  // attribute, or constant operand
  std::optional<std::vector<regie_dim>> contents(uint32_t operand) const;
  uint32_t operand(size_t i) const { return i < n_.operand_count ? n_.operands[i] : REGIE_NONE; }
  std::optional<size_t> operand_named(std::string_view name) const;

  std::string mixes(uint32_t value, size_t axis) const;
  std::string only_first(
      size_t sizes_from) const;  // nothing padded but operand 0; sizes allowed from there on
  bool guarded(const PaddingRule& rule) const;
  std::string apply(const PaddingRule& rule) const;
  std::string patterns(const PaddingRule& rule) const;
  std::string linear() const;
  std::string reduced(const PaddingRule& rule) const;
  std::string lookup(const PaddingRule& rule) const;
  std::string sliced() const;
  std::string bordered(const PaddingRule& rule) const;
  std::string equation(const PaddingRule& rule) const;

  const Graph& g_;
  const PaddedSymbols& symbols_;
  const std::vector<PaddingMark>& marks_;
  const regie_node& n_;
  const OpSchema* schema_;
  std::vector<regie_attr> attrs_;
  bool elementwise_;
  mutable bool zeros_ = false;
};

}  // namespace regie
