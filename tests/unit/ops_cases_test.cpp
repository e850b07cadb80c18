// Thousands of random nodes with expectations by ONNX Runtime (tests/ops/generate.py), through shape function
// and kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "regie_test_paths.h"
#include "unit/ops_harness.h"

namespace regie::ops_test {
namespace {

struct Case {
  std::string op, text;  // text: for messages
  Attrs attrs;
  std::vector<Tensor> operands, results;  // empty: absent, omitted
  double tolerance;
  bool summing;
};

// Operands that say what to do (axes, shapes, pads) and not on what: shape functions need to know them.
bool is_parameter(const std::string& op, size_t operand) {
  if (op == "ConstantOfShape") return operand == 0;
  if (op == "Dropout") return operand == 2;
  if (op == "Pad") return operand == 1 || operand == 3;
  static const std::map<std::string, std::vector<size_t>> parameters = {
      {"Resize", {1, 2, 3}},
      {"OneHot", {1}},
      {"Range", {0, 1, 2}},
      {"Tile", {1}},
      {"TopK", {1}},
      {"NonZero", {0}},
      {"Unique", {0}},
      {"NonMaxSuppression", {0, 1, 2, 3, 4}},
      {"Compress", {1}},
      {"MaxUnpool", {2}},
      {"Col2Im", {1, 2}},
      {"CenterCropPad", {1}},
      {"AffineGrid", {1}},
      {"DFT", {1, 2}},
      {"STFT", {1, 3}},
      {"HannWindow", {0}},
      {"HammingWindow", {0}},
      {"BlackmanWindow", {0}},
      {"MelWeightMatrix", {0, 1, 2, 3, 4}}};
  if (auto it = parameters.find(op); it != parameters.end())
    return std::find(it->second.begin(), it->second.end(), operand) != it->second.end();
  return operand >= 1 && (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Split" ||
                          op == "Slice" || op == "Expand" || op.starts_with("Reduce"));
}

// Kernels that make tables of these numbers when they are prepared; without them they refuse.
bool prepared_with_parameters(const std::string& op) {
  return op == "Resize" || op == "Col2Im" || op == "DFT" || op == "STFT" || op == "MelWeightMatrix";
}

class OpsCases : public testing::Test {
 public:
  static void SetUpTestSuite() {
    namespace fs = std::filesystem;
    fs::path folder = fs::path(REGIE_TEST_BUILD_DIR) / "tests" / ("ops-cases-" + std::to_string(getpid()));
    std::string command = "'" REGIE_TEST_PYTHON "' -B '" REGIE_TEST_SOURCE_DIR "/tests/ops/generate.py' '" +
                          folder.string() + "' >'" + folder.string() + ".log' 2>&1";
    fs::create_directories(folder);
    ASSERT_EQ(std::system(command.c_str()), 0) << command << "\n(./bootstrap test makes the tests' Python)\n"
                                               << read(folder.string() + ".log");
    load(folder);
    fs::remove_all(folder);
    fs::remove(folder.string() + ".log");
  }
  static void TearDownTestSuite() { cases().clear(); }

 protected:
  static std::vector<Case>& cases() {
    static std::vector<Case> list;
    return list;
  }
  void SetUp() override { ASSERT_GT(cases().size(), 3000u); }

 private:
  static std::string read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static Tensor tensor(const nlohmann::json& j, const std::string& blob) {
    if (j.is_null()) return {};
    Tensor t = Tensor::zeros(j.at("elem").get<regie_elem>(), j.at("dims").get<std::vector<int64_t>>());
    if (t.bytes() != 0) std::memcpy(t.mutable_data(), blob.data() + j.at("offset").get<size_t>(), t.bytes());
    return t;
  }

  static AttrValue attribute(const nlohmann::json& j, const std::string& blob) {
    AttrValue a;
    a.name = j.at("name");
    const auto& value = j.at("value");
    std::string kind = j.at("kind");
    if (kind == "int") return AttrValue::integer(a.name, value);
    if (kind == "float") return AttrValue::number(a.name, value);
    if (kind == "string") return AttrValue::text(a.name, value);
    if (kind == "ints") return AttrValue::integers(a.name, value);
    if (kind == "floats") {
      a.kind = REGIE_ATTR_FLOATS;
      a.floats = value.get<std::vector<double>>();
      return a;
    }
    if (kind == "strings") {
      a.kind = REGIE_ATTR_STRINGS;
      a.strings = value.get<std::vector<std::string>>();
      return a;
    }
    a.kind = REGIE_ATTR_TENSOR;
    a.tensor = tensor(value, blob);
    return a;
  }

  static void load(const std::filesystem::path& folder) {
    std::string blob = read(folder / "cases.bin");
    for (const auto& j : nlohmann::json::parse(read(folder / "cases.json"))) {
      Case c;
      c.op = j.at("op");
      c.text = j.dump();
      for (const auto& a : j.at("attrs")) c.attrs.push_back(attribute(a, blob));
      for (const auto& t : j.at("operands")) c.operands.push_back(tensor(t, blob));
      for (const auto& t : j.at("results")) c.results.push_back(tensor(t, blob));
      c.tolerance = j.at("tolerance");
      c.summing = j.at("summing");
      cases().push_back(std::move(c));
    }
  }
};

float half_to_float(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  float magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                    : exponent     ? std::ldexp(1.0f + static_cast<float>(mantissa) / 1024, exponent - 15)
                                   : std::ldexp(static_cast<float>(mantissa), -24);
  return h & 0x8000 ? -magnitude : magnitude;
}

bool is_float(regie_elem elem) {
  return elem == REGIE_F32 || elem == REGIE_F64 || elem == REGIE_F16 || elem == REGIE_BF16;
}

std::vector<double> floats_of(const Tensor& t) {
  std::vector<double> out;
  auto convert = [&](auto span, auto f) {
    for (auto x : span) out.push_back(f(x));
  };
  switch (t.elem()) {
    case REGIE_F32:
      convert(t.as<float>(), [](float x) { return x; });
      break;
    case REGIE_F64:
      convert(t.as<double>(), [](double x) { return x; });
      break;
    case REGIE_F16:
      convert(t.as<uint16_t>(), half_to_float);
      break;
    default:
      convert(t.as<uint16_t>(), [](uint16_t x) {
        uint32_t bits = static_cast<uint32_t>(x) << 16;
        float f;
        std::memcpy(&f, &bits, sizeof(f));
        return f;
      });
  }
  return out;
}

// Empty if `got` is what the case expects as result `index`.
std::string difference(const Case& c, size_t index, const Tensor& got) {
  const Tensor& want = c.results[index];
  if (!want) return got ? "an omitted result came" : "";
  if (!got) return "result " + std::to_string(index) + " is missing";
  if (got.elem() != want.elem() ||
      !std::equal(got.dims().begin(), got.dims().end(), want.dims().begin(), want.dims().end()))
    return "type or shape differs";
  if (!is_float(want.elem()))
    return want.bytes() == 0 || std::memcmp(got.data(), want.data(), want.bytes()) == 0 ? ""
                                                                                        : "the values differ";
  std::vector<double> a = floats_of(got), b = floats_of(want);
  double scale = 0;
  for (double x : b)
    if (std::isfinite(x)) scale = std::max(scale, std::fabs(x));
  double absolute = c.tolerance == 0 ? 0 : c.summing ? c.tolerance * scale : 1e-6;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i] || std::fabs(a[i] - b[i]) <= c.tolerance * std::fabs(b[i]) + absolute) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " +
           std::to_string(b[i]);
  }
  return "";
}

std::vector<Operand> concrete(const Case& c) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Tensor& t = c.operands[i];
    if (!t) {
      operands.push_back(Operand::absent());
    } else if (is_parameter(c.op, i)) {
      operands.push_back(Operand::constant(t));
    } else {
      operands.push_back(Operand::of(t.elem(), {t.dims().begin(), t.dims().end()}));
    }
  }
  return operands;
}

RunOptions options_for(const Case& c) {
  RunOptions options;
  for (const Tensor& t : c.results) options.omitted.push_back(!t);
  options.constant.assign(c.operands.size(), prepared_with_parameters(c.op));
  return options;
}

// A few messages of each operator are enough.
class Report {
 public:
  void add(const Case& c, const std::string& what) {
    if (++count_[c.op] <= 3) ADD_FAILURE() << c.op << ": " << what << "\n" << c.text;
  }
  ~Report() {
    for (const auto& [op, count] : count_)
      if (count > 3) ADD_FAILURE() << op << ": " << count << " cases fail";
  }

 private:
  std::map<std::string, int> count_;
};

TEST_F(OpsCases, ResultsAreThoseOfOnnxRuntime) {
  Report report;
  size_t number = 0;
  for (const Case& c : cases()) {
    DimTable dims;
    Inferred inferred = infer(c.op, c.attrs, concrete(c), static_cast<uint32_t>(c.results.size()), dims);
    if (!inferred.ok()) {
      report.add(c, "infer: " + inferred.message);
      continue;
    }
    bool shapes = true;
    for (size_t i = 0; i < c.results.size(); ++i) {
      const Tensor& want = c.results[i];
      const Result& got = inferred.results[i];
      shapes =
          shapes &&
          (!want || (got.set && got.elem == want.elem() &&
                     std::equal(got.dims.begin(), got.dims.end(), want.dims().begin(), want.dims().end())));
      if (want && got.content && want.elem() == REGIE_I64) {
        // A number below zero is an expression like any other.
        shapes = shapes && std::equal(got.content->begin(), got.content->end(), want.as<int64_t>().begin(),
                                      want.as<int64_t>().end(), [&](regie_dim is, int64_t should) {
                                        auto value = dims.evaluate(is, {});
                                        return value.ok() && *value == should;
                                      });
      }
    }
    if (!shapes) {
      report.add(c, "inferred types differ");
      continue;
    }
    // Kernels must not depend on seeing parameters when they are prepared: every other time they do not.
    RunOptions options = options_for(c);
    options.constant.assign(c.operands.size(), number++ % 2 == 0 || prepared_with_parameters(c.op));
    Ran ran = run(c.op, c.attrs, c.operands, inferred.results, options);
    if (!ran.ok()) {
      report.add(c, "kernel: " + ran.message);
      continue;
    }
    for (size_t i = 0; i < c.results.size(); ++i)
      if (std::string what = difference(c, i, ran.results[i]); !what.empty()) report.add(c, what);
  }
}

TEST_F(OpsCases, KernelsAllocateNothingWhenTheyRun) {
  test::AllocCounter counter;
  Report report;
  for (const Case& c : cases()) {
    DimTable dims;
    Inferred inferred = infer(c.op, c.attrs, concrete(c), static_cast<uint32_t>(c.results.size()), dims);
    if (!inferred.ok()) continue;  // reported above
    RunOptions options = options_for(c);
    options.counter = &counter;
    counter.reset();
    run(c.op, c.attrs, c.operands, inferred.results, options);
    if (counter.count() != 0) report.add(c, counter.places().front());
  }
}

// Operators that say so may write over an operand of the result's type and shape; views over operand 0.
TEST_F(OpsCases, SameResultsInPlace) {
  Report report;
  std::map<std::string, int> tried;
  const Plugin& plugin = Plugin::get();
  for (const Case& c : cases()) {
    uint32_t flags = plugin.kernels->ops[plugin.kernel_index.at(c.op)].flags;
    if ((flags & (REGIE_OP_INPLACE | REGIE_OP_VIEW)) == 0) continue;
    DimTable dims;
    Inferred inferred = infer(c.op, c.attrs, concrete(c), static_cast<uint32_t>(c.results.size()), dims);
    if (!inferred.ok()) continue;  // reported above
    for (uint32_t k = 0; k < c.operands.size(); ++k) {
      const Tensor& t = c.operands[k];
      bool same = t && t.elem() == c.results[0].elem() &&
                  std::equal(t.dims().begin(), t.dims().end(), c.results[0].dims().begin(),
                             c.results[0].dims().end());
      if (!((flags & REGIE_OP_INPLACE) && same) && !((flags & REGIE_OP_VIEW) && k == 0)) continue;
      ++tried[c.op];
      RunOptions options = options_for(c);
      options.in_place = k;
      Ran ran = run(c.op, c.attrs, c.operands, inferred.results, options);
      std::string what = ran.ok() ? difference(c, 0, ran.results[0]) : ran.message;
      if (!what.empty()) report.add(c, "in place of operand " + std::to_string(k) + ": " + what);
    }
  }
  for (uint32_t i = 0; i < plugin.kernels->count; ++i) {
    const regie_op_info& info = plugin.kernels->ops[i];
    if (info.flags & (REGIE_OP_INPLACE | REGIE_OP_VIEW)) {
      EXPECT_GT(tried[std::string(info.op.data, info.op.size)], 0) << std::string(info.op.data, info.op.size);
    }
  }
}

// Every size becomes a symbol; what comes out, evaluated at those sizes, must be the concrete answer.
void check_symbolic(const std::vector<Case>& cases, bool narrow) {
  Report report;
  std::map<std::string, int> undecided;
  int resized = 0, left_to_the_run = 0;
  for (const Case& c : cases) {
    DimTable dims;
    std::vector<std::optional<int64_t>> values;
    std::map<int64_t, regie_dim> symbols;
    std::vector<Operand> operands = concrete(c);
    for (Operand& o : operands) {
      if (o.data) continue;
      for (regie_dim& d : o.dims) {
        if (d == 1) continue;
        auto [it, is_new] = symbols.try_emplace(d, 0);
        if (is_new) {
          it->second = narrow ? dims.symbol("s" + std::to_string(d), d == 0 ? 0 : 2, 1000)
                              : dims.symbol("s" + std::to_string(d));
          values.push_back(d);
        }
        d = it->second;
      }
    }
    Inferred inferred = infer(c.op, c.attrs, operands, static_cast<uint32_t>(c.results.size()), dims);
    if (!inferred.ok()) {
      // How deep index tuples are.
      const bool open =
          c.op == "GatherND" || c.op == "ScatterND" || (c.op == "Squeeze" && operands.size() == 1);
      if (inferred.code == REGIE_UNSUPPORTED && open) {
        ++undecided[c.op];
      } else {
        report.add(c, "infer with symbols: " + inferred.message);
      }
      continue;
    }
    auto value_of = [&](regie_dim d) {
      auto v = dims.evaluate(d, values);
      return v.ok() ? *v : -1000;
    };
    for (size_t i = 0; i < c.results.size(); ++i) {
      if (!c.results[i]) continue;
      // A scale that is no fraction of a symbol is left to the run.
      const bool open = c.op == "Resize";
      std::vector<int64_t> got;
      for (size_t d = 0; d < inferred.results[i].dims.size(); ++d) {
        const regie_dim dim = inferred.results[i].dims[d];
        const bool skip = open && dim == REGIE_DIM_UNKNOWN && d < c.results[i].dims().size();
        got.push_back(skip ? c.results[i].dims()[d] : value_of(dim));
        resized += open;
        left_to_the_run += skip;
      }
      if (!std::equal(got.begin(), got.end(), c.results[i].dims().begin(), c.results[i].dims().end())) {
        std::string text;
        for (regie_dim d : inferred.results[i].dims) text += dims.print(d) + ", ";
        report.add(c, "with symbols the shape is " + text);
      }
      if (inferred.results[i].content && c.results[i].elem() == REGIE_I64) {
        std::vector<int64_t> content;
        for (regie_dim d : *inferred.results[i].content) content.push_back(value_of(d));
        auto want = c.results[i].as<int64_t>();
        if (!std::equal(content.begin(), content.end(), want.begin(), want.end()))
          report.add(c, "content differs");
      }
    }
  }
  // Without axes the rank is open wherever a size may be 1, which few may be with narrow ranges.
  if (narrow) {
    EXPECT_LT(undecided["Squeeze"], 2);
  }
  EXPECT_LT(left_to_the_run, resized / 2);
}

// Without any data the rank is still known, and what is known of the sizes is right.
TEST_F(OpsCases, WhatIsKnownWithoutDataIsRight) {
  Report report;
  std::map<std::string, int> open;
  for (const Case& c : cases()) {
    DimTable dims;
    std::vector<Operand> operands = concrete(c);
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].data)
        operands[i] =
            Operand::of(c.operands[i].elem(), {c.operands[i].dims().begin(), c.operands[i].dims().end()});
    Inferred inferred = infer(c.op, c.attrs, operands, static_cast<uint32_t>(c.results.size()), dims);
    if (!inferred.ok()) {
      // What shape functions take for a constant still, and is no size.
      const bool constant = c.op == "Dropout";
      if (!constant || inferred.code != REGIE_UNSUPPORTED) report.add(c, "infer: " + inferred.message);
      continue;
    }
    for (size_t i = 0; i < c.results.size(); ++i) {
      if (!c.results[i]) continue;
      const std::vector<regie_dim>& got = inferred.results[i].dims;
      bool right = got.size() == c.results[i].dims().size();
      for (size_t d = 0; right && d < got.size(); ++d) {
        right = got[d] == REGIE_DIM_UNKNOWN || got[d] == c.results[i].dims()[d];
        open[c.op] += got[d] == REGIE_DIM_UNKNOWN;
      }
      if (!right) report.add(c, "result " + std::to_string(i) + " is another");
    }
  }
  for (const char* op : {"Expand", "NonZero", "Unique", "NonMaxSuppression", "Compress", "Reshape", "TopK",
                         "Slice", "Pad", "Range", "ReduceSum"})
    EXPECT_GT(open[op], 0) << op;
}

TEST_F(OpsCases, SymbolicShapesMeanTheSame) { check_symbolic(cases(), false); }
TEST_F(OpsCases, SymbolicShapesMeanTheSameWithNarrowRanges) { check_symbolic(cases(), true); }

}  // namespace
}  // namespace regie::ops_test
