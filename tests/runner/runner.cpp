// Text in, text out: a .rg file begins with "// RUN: pass,pass [| pass.option=value target=name ...]", then
// graphs, then
// "// EXPECT:" and the graphs as they should come out, or "// FAIL: words" for an error that should come.
// Besides the text, the graphs before and after are evaluated on random inputs with the reference kernels and
// must agree: REGIE_BLESS=1 rewrites expectations, but never over a numeric mismatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/file.h"
#include "passes/compiler.h"
#include "passes/plugin_op_set.h"
#include "regie_test_paths.h"
#include "rules/evaluate.h"
#include "text/text.h"

namespace regie {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(REGIE_TEST_SOURCE_DIR) + "/plugins/passes"))
    if (entry.path().extension() == ".rg") found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

struct Case {
  std::string passes, head, graphs, expected, failure;
  std::vector<std::pair<std::string, std::string>> settings;
};

Case read_case(const std::string& text) {
  Case c;
  size_t at = 0;
  bool expecting = false;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    auto rest = [&](std::string_view prefix) { return line.substr(prefix.size()); };
    if (line.starts_with("// RUN: ")) {
      std::string run = rest("// RUN: ");
      size_t bar = run.find(" | ");
      c.passes = run.substr(0, bar);
      std::erase(c.passes, ' ');
      std::string settings = bar == std::string::npos ? "" : run.substr(bar + 3);
      for (size_t i = 0; i < settings.size();) {
        size_t space = std::min(settings.find(' ', i), settings.size()), equals = settings.find('=', i);
        if (equals < space)
          c.settings.emplace_back(settings.substr(i, equals - i),
                                  settings.substr(equals + 1, space - equals - 1));
        i = space + 1;
      }
    } else if (line.starts_with("// EXPECT:")) {
      expecting = true;
      continue;
    } else if (line.starts_with("// FAIL: ")) {
      c.failure = rest("// FAIL: ");
    }
    if (!expecting) c.head += line + "\n";
    (expecting ? c.expected : c.graphs) += line + "\n";
  }
  return c;
}

// Sets numbers for all symbols, by name, so that both graphs get the same, and infers the types of all values
// from there: they may have been left out by hand, and kernels need them concrete. What is inside a region
// comes before its owner.
Status make_concrete(Graph& g, const OpSet& ops, uint64_t seed) {
  std::vector<std::optional<int64_t>> symbols(g.dims().symbol_count());
  for (size_t i = 0; i < symbols.size(); ++i) {
    const DimSymbol& s = g.dims().symbol_at(i);
    uint64_t h = seed;
    for (char c : s.name) h = h * 131 + static_cast<unsigned char>(c);
    symbols[i] = std::clamp<int64_t>(1 + static_cast<int64_t>(h % 4), s.lower, s.upper);
  }
  for (uint32_t v = 0; v < g.value_count(); ++v) {
    if (!g.live_value(v) || g.value(v).type.rank < 0) continue;
    regie_type type = g.value(v).type;
    std::vector<regie_dim> dims(type.dims, type.dims + type.rank);
    for (regie_dim& d : dims) {
      if (d == REGIE_DIM_UNKNOWN) continue;
      REGIE_ASSIGN(d, g.dims().evaluate(d, symbols));
    }
    type.dims = dims.data();
    g.set_type(v, type);
  }
  std::vector<std::pair<uint32_t, uint32_t>> stack{
      {g.region(0).first, REGIE_NONE}};  // next node, owner that follows
  while (!stack.empty()) {
    auto [n, owner] = stack.back();
    if (n == REGIE_NONE) {
      stack.pop_back();
      if (owner != REGIE_NONE) REGIE_TRY(ops.infer(g, owner));
      continue;
    }
    stack.back().first = g.node(n).next;
    if (g.node(n).region_count == 0) REGIE_TRY(ops.infer(g, n));
    for (uint32_t r = g.node(n).region_count; r-- > 0;)
      stack.emplace_back(g.region(g.node(n).regions[r]).first,
                         r + 1 == g.node(n).region_count ? n : REGIE_NONE);
  }
  return {};
}

// Random values for the arguments and the abstract constants, by name, so that both graphs get the same.
Result<std::vector<Tensor>> outputs_of(const Graph& g, const OpSet& ops, uint64_t seed) {
  ValueBindings bindings;
  for (uint32_t v = 0; v < g.value_count(); ++v) {
    bool argument = g.live_value(v) && g.value(v).kind == REGIE_VALUE_ARGUMENT && g.value(v).owner == 0;
    bool abstract = g.is_constant(v) && !g.tensor(v);
    if (!argument && !abstract) continue;
    std::vector<int64_t> dims;
    for (int32_t d = 0; d < g.value(v).type.rank; ++d) {
      dims.push_back(g.value(v).type.dims[d]);
    }
    uint64_t h = seed;
    for (char c : view(g.value(v).name)) h = h * 131 + static_cast<unsigned char>(c);
    std::mt19937_64 random(h);
    Tensor t = Tensor::zeros(g.value(v).type.elem, dims);
    for (int64_t i = 0; i < t.count(); ++i) {
      double x = static_cast<double>(random() >> 11) * 0x1.0p-53 + 0.25;
      switch (t.elem()) {
        case REGIE_F32:
          static_cast<float*>(t.mutable_data())[i] = static_cast<float>(x);
          break;
        case REGIE_F64:
          static_cast<double*>(t.mutable_data())[i] = x;
          break;
        case REGIE_I64:
          static_cast<int64_t*>(t.mutable_data())[i] = static_cast<int64_t>(random() % 2);
          break;
        case REGIE_I32:
          static_cast<int32_t*>(t.mutable_data())[i] = static_cast<int32_t>(random() % 2);
          break;
        case REGIE_BOOL:
        case REGIE_U8:
          static_cast<uint8_t*>(t.mutable_data())[i] = static_cast<uint8_t>(random() % 2);
          break;
        default:
          return unsupported("no random values of this type");
      }
    }
    bindings.emplace(v, std::move(t));
  }
  return evaluate_graph(g, ops, bindings);
}

void expect_same_meaning(const std::string& before, const std::string& after, const std::string& file,
                         const OpSet& ops) {
  for (uint64_t seed : {1, 2}) {
    auto a = parse_all(before, file), b = parse_all(after, file + " (result)");
    ASSERT_TRUE(a.ok()) << a.status().to_string();
    ASSERT_TRUE(b.ok()) << b.status().to_string();
    ASSERT_EQ(a->size(), b->size());
    for (size_t i = 0; i < a->size(); ++i) {
      for (Graph* g : {(*a)[i].get(), (*b)[i].get()}) {
        Status concrete = make_concrete(*g, ops, seed);
        ASSERT_TRUE(concrete.ok()) << concrete.to_string();
      }
      auto x = outputs_of(*(*a)[i], ops, seed), y = outputs_of(*(*b)[i], ops, seed);
      ASSERT_TRUE(x.ok()) << "before: " << x.status().to_string();
      ASSERT_TRUE(y.ok()) << "after: " << y.status().to_string();
      ASSERT_EQ(x->size(), y->size());
      for (size_t k = 0; k < x->size(); ++k) {
        const Tensor &p = (*x)[k], &q = (*y)[k];
        ASSERT_EQ(p.elem(), q.elem());
        ASSERT_TRUE(std::equal(p.dims().begin(), p.dims().end(), q.dims().begin(), q.dims().end()))
            << "output " << k;
        if (p.elem() == REGIE_F32) {
          for (size_t e = 0; e < p.as<float>().size(); ++e)
            ASSERT_NEAR(p.as<float>()[e], q.as<float>()[e], 1e-4 * std::fabs(p.as<float>()[e]) + 1e-5)
                << "output " << k << " element " << e;
        } else {
          ASSERT_EQ(std::memcmp(p.data(), q.data(), p.bytes()), 0) << "output " << k;
        }
      }
    }
  }
}

class PassText : public ::testing::TestWithParam<std::string> {};

TEST_P(PassText, TextInTextOut) {
  auto text = read_text_file(GetParam());
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  Case c = read_case(*text);
  ASSERT_FALSE(c.passes.empty()) << "the file has no // RUN: line";
  ASSERT_TRUE(c.failure.empty() != c.expected.empty() || c.failure.empty())
      << "give // EXPECT: or // FAIL:, not both";
  auto host = PluginHost::create();
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  auto ops = PluginOpSet::create(*host);
  ASSERT_TRUE(ops.ok()) << ops.status().to_string();
  auto pipeline = pipeline_from_list(c.passes);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().to_string();
  CompileOptions options;
  options.settings = c.settings;
  if (GetParam().find("insert-copies") != std::string::npos || c.passes.find("place") != std::string::npos)
    options.target = "host_and_null";
  for (const auto& [key, value] : c.settings)
    if (key == "target") options.target = value;
  std::erase_if(options.settings, [](const auto& setting) { return setting.first == "target"; });
  auto result = optimise_text(*host, c.graphs, GetParam(), *pipeline, options);
  if (!c.failure.empty()) {
    ASSERT_FALSE(result.ok()) << "it should have failed with: " << c.failure;
    EXPECT_NE(result.status().to_string().find(c.failure), std::string::npos) << result.status().to_string();
    return;
  }
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  ASSERT_NO_FATAL_FAILURE(expect_same_meaning(c.graphs, *result, GetParam(), **ops));
  if (std::getenv("REGIE_BLESS")) {
    ASSERT_TRUE(write_file_atomically(GetParam(), c.head + "// EXPECT:\n" + *result).ok());
    return;
  }
  EXPECT_EQ(c.expected, *result) << "in " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, ::testing::ValuesIn(files()), [](const auto& info) {
  std::filesystem::path p(info.param);
  std::string name = p.parent_path().parent_path().filename().string() + "_" + p.stem().string();
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
});

TEST(PassFolders, EveryPassHasTextTests) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(REGIE_TEST_SOURCE_DIR) + "/plugins/passes")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(std::filesystem::exists(entry.path() / "README.md")) << entry.path();
    size_t tests = 0;
    if (std::filesystem::exists(entry.path() / "tests"))
      for (const auto& t : std::filesystem::directory_iterator(entry.path() / "tests"))
        tests += t.path().extension() == ".rg";
    EXPECT_GE(tests, 2u) << entry.path() << ": one that fires and one that does not";
  }
}

}  // namespace
}  // namespace regie
