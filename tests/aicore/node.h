// One node of a graph, made by hand: its operands with their values, lowered by the engine, run on the
// machine of the simulator. Values are those of the type: f16 tensors hold halves.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hand_written.h"
#include "lower.h"

namespace aicore::test {

// Row-major; values as doubles, rounded to what the device computes with.
struct Array {
  std::vector<int64_t> dims;
  std::vector<double> values;
  int64_t count() const;
};

using Random = std::mt19937_64;
int64_t pick(Random& random, int64_t low, int64_t high);
// Halves between -bound and bound.
Array random_array(Random& random, std::vector<int64_t> dims, double bound = 1);
// The same number of f32 numbers that no half is near.
Array fine_array(Random& random, std::vector<int64_t> dims);

class Node {
 public:
  explicit Node(std::string op, regie_elem elem = REGIE_F32);

  Node& operand(const Array& array, bool constant = false);
  Node& operand(const Array& array, bool constant, regie_elem elem);
  Node& integers(std::vector<int64_t> values);  // a constant i64 vector
  Node& absent();
  Node& result(std::vector<int64_t> dims);
  Node& result(std::vector<int64_t> dims, regie_elem elem);
  Node& late_result(std::vector<int64_t> dims);  // -1: known only when the model runs
  Node& symbolic();                              // the first dimension of the result is a symbol
  // How the last operand, or the last result, lies; values are given and read row-major all the same.
  Node& operand_in(regie_format format);
  Node& result_in(regie_format format);
  Node& attr(const char* name, int64_t value);
  Node& attr(const char* name, double value);
  Node& attr(const char* name, std::vector<int64_t> values);
  Node& attr(const char* name, const char* value);

  // The body of a regie.Pointwise; values are numbered: operands first, then steps.
  Node& body(const std::string& op, std::vector<uint32_t> operands, regie_elem elem = REGIE_ELEM_UNKNOWN);

  // What the engine says; throws as it does.
  Lowered lower(const Chip& chip);
  Choice choose(const Chip& chip, const regie_host* host, Verdicts& verdicts);
  // Verifies and runs the program; adds a failure to the test where the verifier finds a fault. Gives result
  // 0.
  std::optional<std::vector<double>> run(const Chip& chip);
  // The formats that the engine offers for it, by option from 1 on; and the node in those of one option (0:
  // row-major).
  uint32_t options(const Chip& chip);
  void take(uint32_t option);
  std::vector<double> value_of(size_t result) const;  // of the last run
  // As if both were of one compile: plans that were found for the other one serve this one as well.
  Node& with_plans_of(const Node& other) {
    plans_ = other.plans_;
    return *this;
  }
  // Of the last run.
  double cycles = 0, predicted = 0;
  std::string name;

 private:
  struct Value {
    std::vector<int64_t> dims;
    regie_elem elem;
    std::vector<char> bytes;
    bool constant = false, present = true;
    regie_format format = REGIE_FORMAT_ND;
    std::vector<double> values = {};  // row-major
    regie_elem stored() const { return is_half(format) ? static_cast<regie_elem>(REGIE_F16) : elem; }
  };
  struct Step {
    std::string op;
    std::vector<uint32_t> operands, values;  // by number, by id
    uint32_t result = 0;
    regie_elem elem = REGIE_ELEM_UNKNOWN;  // of its value; else the node's
  };
  static bool padding_is_zero(const Value& v);
  void build();
  Request request(const Chip& chip);
  regie_attr& add(const char* name, uint32_t kind);

  std::string op_;
  regie_elem elem_;
  std::vector<Value> operands_, results_;
  bool symbolic_ = false;
  std::vector<Step> steps_;
  std::vector<int64_t> symbolic_dims_;
  std::deque<std::vector<int64_t>> lists_;
  std::deque<std::string> texts_;
  std::vector<regie_attr> attrs_;
  // What the graph points to.
  std::vector<regie_value> values_;
  std::vector<regie_format> operand_formats_, result_formats_;
  std::vector<regie_tensor> operand_tensors_, result_tensors_;
  std::vector<regie_node> nodes_;
  std::vector<regie_region> regions_;
  std::vector<uint32_t> operand_ids_, result_ids_, argument_ids_, body_results_, node_regions_;
  regie_graph graph_{};
  PlanCache plans_;
  std::vector<regie_format_wish> wishes_;
};

// The chips that tests compile for: those of the target files, and one so small that everything is cut.
Chip chip_of_target(const std::string& name);
Chip small_chip(int64_t cores);
// The target that REGIE_AICORE_TARGET names; without it any of them, or a small chip.
Chip any_chip(Random& random);

// How many shapes of a kind: REGIE_AICORE_SHAPES, else `quick`.
int64_t shapes(int64_t quick);
// The body with so many seeds from `first` on, until one has failed.
void for_seeds(int64_t quick, uint64_t first, const std::function<void(uint64_t seed, Random& random)>& body);

// Relative error in the Euclidean norm, and the largest against the largest element.
void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                  const std::string& what);
// Runs the node, row-major and in some of the formats that the engine offers; that the engine refuses it is a
// failure too.
void check(Node& node, const Chip& chip, const std::vector<double>& expected, double tolerance);

// Shapes that the engine may refuse, as the buffers of some chips are small: counted, with the reasons, and
// bounded.
class Tally {
 public:
  void check(Node& node, const Chip& chip, const std::vector<double>& expected, double tolerance);
  // The result, row-major and in two of the formats that the engine offers, is for `judge`.
  void check(Node& node, const Chip& chip,
             const std::function<void(const std::vector<double>& got, const std::string& name)>& judge);
  // One line of counts; a failure where a target refuses more than 1 % of them, or small chips more than 6 %.
  void finish(const char* what) const;

 private:
  int64_t done_ = 0, refused_ = 0;
  std::string last_;
};

}  // namespace aicore::test
