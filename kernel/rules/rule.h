// A rule in its compiled form: names are slots, operators are interned, defaults of the schemas are filled
// in. Made by parse.cpp and load.cpp, read by the matcher and the patch writer. Internal to kernel/rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/names.h"
#include "ir/graph.h"
#include "rules/rules.h"

namespace regie {

inline constexpr uint32_t kNoSlot = UINT32_MAX;
inline constexpr uint32_t kRuleDim = 100;  // AttrValue::kind of a symbolic dimension: `i` is its handle

enum class RuleFunction : uint8_t {
  kRank,
  kDim,
  kElem,
  kCount,
  kScalar,
  kInts,
  kRange,
  kLen,
  kAt,
  kMin,
  kMax,
  kAxes,
  kConcat,
  kDefault,
  kDims,
  kFill,
  kIfEqual,
  kSlice,
  kSplat,
  kSum,
  kSwapLast
};

struct RuleExpr {
  enum class Kind : uint8_t { kLiteral, kAttr, kValue, kList, kCall, kNegate, kAdd, kSub, kMul, kDiv };
  Kind kind = Kind::kLiteral;
  RuleFunction function = RuleFunction::kRank;
  AttrValue literal;
  uint32_t slot = kNoSlot;  // attribute or value
  std::vector<RuleExpr> args;
};

enum class PredicateKind : uint8_t {
  kConst,
  kWeight,
  kPresent,
  kAbsent,
  kSingleUse,
  kNotOutput,
  kSameShape,
  kSameElem,
  kSameType,
  kSplat,
  kStaticShape,
  kBroadcastsToChannel,
  kBroadcastsTo,
  kVariesAlong,
  kCompare,
  kIn
};
enum class CompareOp : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };

struct Predicate {
  PredicateKind kind = PredicateKind::kConst;
  CompareOp op = CompareOp::kEq;
  std::vector<uint32_t> values;  // arguments that are values, and the values inside of expressions
  std::vector<RuleExpr> exprs;   // kCompare, kIn: left, right; kBroadcastsToChannel, kVariesAlong: the axis
  double tolerance = 0;
  std::string text;
};

struct AttrPattern {
  enum class Kind : uint8_t { kLiteral, kDefault, kNone, kBind };
  std::string name;
  Kind kind = Kind::kLiteral;
  AttrValue literal;
  uint32_t slot = kNoSlot;
};

struct PatternOp {
  NameId op = 0;
  // Per AttrPattern of the node: the schema's default, kind 0 where it has none or no such attribute.
  std::vector<AttrValue> defaults;
};

struct PatternOperand {
  uint32_t value = kNoSlot;  // kNoSlot: must be absent
  bool optional = false;
};

struct PatternNode {
  std::vector<PatternOp> ops;
  std::string ops_text;  // "A|B"
  uint32_t op_slot = kNoSlot;
  std::vector<uint32_t> results;  // slots; kNoSlot: not named
  std::vector<PatternOperand> operands;
  bool commutative = false;
  bool waives = false;  // `...` among the attributes
  std::vector<AttrPattern> attrs;
  uint32_t via = kNoSlot;  // result by which the matcher gets here; kNoSlot at the root
  int line = 0;
};

struct ValueSlot {
  std::string name;
  uint32_t node = kNoSlot;  // pattern node that makes it; kNoSlot: from outside
  uint32_t index = 0;       // which result
};

struct Let {
  uint32_t slot = kNoSlot;
  RuleExpr expr;
  std::vector<uint32_t> values;
  std::string text;
};

struct AttrAssignment {
  uint32_t spread = kNoSlot;  // pattern node whose attributes are copied; else:
  std::string name;
  uint32_t kind = 0;  // REGIE_ATTR_* by the schema; 0: as it comes
  RuleExpr expr;
};

struct Statement {
  enum class Kind : uint8_t { kNode, kConstant, kAlias };
  Kind kind = Kind::kNode;
  NameId op = 0;
  uint32_t op_slot = kNoSlot;      // operator as bound by `$op: ...`
  std::vector<uint32_t> results;   // slots of the replacement
  std::vector<uint32_t> operands;  // slots of match or replacement; kNoSlot: absent
  std::vector<AttrAssignment> attrs;
  regie_elem elem = REGIE_ELEM_UNKNOWN;  // constants: this, or
  uint32_t elem_of = kNoSlot;            // that of a value
  RuleExpr expr;                         // constants
  uint32_t condition = kNoSlot;          // value slot
  bool if_present = true;
  int line = 0;
};

struct RuleTest {
  std::string before, after;  // .rg text; `after` may be empty
  std::string before_file, after_file;
  bool fires = true;
  std::vector<std::pair<std::string, std::pair<double, double>>> ranges;  // of random values, by value name
  std::string where;
};

// One pattern of a rule: a rule whose `match` lists several is several of these in a row, with one name.
struct Rule {
  std::string name, doc, where;
  uint32_t group = 0;              // index of the rule among the rules of the set
  std::vector<PatternNode> nodes;  // root last
  std::vector<uint32_t> order;  // indices in the order of matching: root first, each reached from one before
  std::vector<ValueSlot> values;  // of the match first, then those that only the replacement makes
  uint32_t match_values = 0;
  // Operands of the root that pattern nodes make, {operand, node}: by them most roots are turned down.
  std::vector<std::pair<uint32_t, uint32_t>> feeders;
  std::vector<std::string> attrs;  // names of attribute slots
  std::vector<Let> lets;
  std::vector<Predicate> when;
  // Conditions on values alone are asked as soon as these are bound, so that an attempt that fails does so
  // early: by step of `order`, indices into `when`. The rest comes last.
  std::vector<std::vector<uint32_t>> when_at;
  std::vector<uint32_t> when_last;
  std::vector<Statement> statements;
  // Slots of names that only other patterns of the rule have: absent here.
  std::vector<uint32_t> absent_values, absent_attrs;
  std::vector<std::pair<uint32_t, uint32_t>> replaced;  // root result slot, slot of the replacement
  std::vector<RuleTest> tests;                          // with the first pattern of the rule
};

struct RuleSet {
  struct Group {
    std::string name;
    uint32_t first = 0, count = 0;  // its patterns
  };
  std::vector<Rule> rules;  // patterns
  std::vector<Group> groups;
  std::unordered_map<NameId, std::vector<uint32_t>> by_root;
  std::unordered_map<NameId, bool> inner;  // operators that occur below a root
  uint32_t depth = 1;                      // nodes on the longest way from a root to the leaf of its pattern
};

}  // namespace regie
