// How an operator treats padding at the end of an axis, as its schema declares it (`padding` in
// configs/ops/*.toml): which axes of its operands stay apart from each other, so that what was appended to
// one ends up at the end of an axis of the result and changes nothing before it. Data, so that a vendor's
// operator can say it too; docs/shapes.md has the grammar. kernel/passes/padding.h reads a graph with it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace regie {

struct PaddingPattern {
  enum Kind {
    kExact,  // _: no padding in it, nor a size of a padded axis
    kSize,   // size: may hold sizes of padded axes; the result's type says what became of them
    kAxes    // [...]
  } kind = kExact;
  // Names of axes that stay apart; "*": an axis that is needed whole; "**": any number of those, "...": any
  // number that stay apart, aligned from the right with those of the results. One of the latter at most.
  std::vector<std::string> axes;
};

struct PaddingRule {
  enum Kind {
    kPatterns,
    kLinear,    // the elements of operand 0 in the same order under another shape
    kPermuted,  // axes in the order of the attribute
    kReduced,   // axes of the attribute or operand taken away, or left at 1 if the attribute `keep` says so
    kLookup,    // an axis of operand 0 replaced by those of operand 1, which are places on it
    kSliced,    // operand 0 from .. to .. on some axes, with steps
    kBordered,  // something added before and after on some axes
    kEquation   // the letters of an equation
  } kind = kPatterns;
  std::vector<PaddingPattern> operands, results;  // the last of each stands for all that follow
  std::string name;                               // the attribute or operand that says the axes
  std::string keep;                               // kReduced
  std::string except, from;  // patterns: these axes, or all from this one, are needed whole
  bool zeros = false;        // of zeros it makes zeros, so padding with them stays such
  // Attributes (or "elem", the element type of operand 0) and the values that the rule holds for.
  std::vector<std::pair<std::string, std::vector<std::string>>> guards;
  std::string text;

  const PaddingPattern& operand(size_t i) const {
    return operands[i < operands.size() ? i : operands.size() - 1];
  }
  const PaddingPattern& result(size_t i) const {
    return results[i < results.size() ? i : results.size() - 1];
  }
};

// INVALID_INPUT with what is not understood, without a place.
Result<PaddingRule> read_padding_rule(std::string_view text);

}  // namespace regie
