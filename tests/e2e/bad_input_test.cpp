// Bad input of every kind, through the command line: exit code 2, words that name the file, the node and what
// to do, and nothing half-written.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "e2e/bad_input.h"
#include "model/file.h"
#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

const std::string kImage = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digit_3.npy";

// A well-made model to spoil.
const std::string& good_rgm() {
  static Scratch scratch;
  static std::string path = [] {
    std::string p = scratch.path("good.rgm");
    ProcessResult r = run_regie("compile " + shell_word(kDigits) + " -o " + shell_word(p));
    if (r.exit_code != 0) throw std::runtime_error("the digits model does not compile: " + r.err);
    return p;
  }();
  return path;
}

std::vector<Case> cases() {
  auto model = [](std::string bytes) {
    return [bytes](Scratch& s) { return "compile " + shell_word(s.write("broken.onnx", bytes)) + " -o OUT"; };
  };
  auto text = [](std::string graph) {
    return [graph](Scratch& s) { return "compile " + shell_word(s.write("g.rg", graph)) + " -o OUT"; };
  };
  // Fusions would take the nodes that are named.
  auto plain = [text](const std::string& graph) {
    return [made = text(graph)](Scratch& s) { return made(s) + " --no-optimise"; };
  };
  std::string digits = slurp(kDigits), random;
  for (uint32_t i = 0, x = 12345; i < 4096; ++i)
    random += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  std::vector<Case> all = {
      {"random bytes", model(random), {"broken.onnx"}},
      {"empty file", model(""), {"broken.onnx"}},
      {"text", model("hello, world\n"), {"broken.onnx"}},
      {"cut in half", model(digits.substr(0, digits.size() / 2)), {"broken.onnx"}},
      {"cut at the end", model(digits.substr(0, digits.size() - 1)), {"broken.onnx"}},
      {"absent model",
       [](Scratch& s) { return "compile " + shell_word(s.path("none.onnx")) + " -o OUT"; },
       {"none.onnx"}},
      {"a folder as model", [](Scratch& s) { return "compile " + shell_word(s.path()) + " -o OUT"; }, {}},
      {"unwritable output",
       [](Scratch& s) {
         return "compile " + shell_word(kDigits) + " -o " + shell_word(s.path("no/such/folder/m.rgm"));
       },
       {"no/such/folder"}},
      {"output over input",
       [](Scratch& s) {
         return "compile " + shell_word(s.write("m.onnx", slurp(kDigits))) + " -o " +
                shell_word(s.path("m.onnx"));
       },
       {"overwrite"}},
      {"unknown target",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --target host_cpuu"; },
       {"host_cpuu", "host_cpu"}},
      {"unknown pipeline",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --pipeline defualt"; },
       {"defualt", "default"}},
      {"unknown setting",
       [](Scratch&) {
         return "compile " + shell_word(kDigits) + " -o OUT --set fold-constants.budget-byte=1";
       },
       {"budget-byte", "budget-bytes"}},
      {"setting of an unknown pass",
       [](Scratch&) {
         return "compile " + shell_word(kDigits) + " -o OUT --set fold-constant.budget-bytes=1";
       },
       {"fold-constant", "fold-constants"}},
      {"setting of no number",
       [](Scratch&) {
         return "compile " + shell_word(kDigits) + " -o OUT --set fold-constants.budget-bytes=much";
       },
       {"budget-bytes", "much"}},
      {"shape of an unknown input",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --shape image=1,1,8,8"; },
       {"image", "x"}},
      {"shape of another rank",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --shape x=1,8,8"; },
       {"x"}},
      {"shape against the model",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --shape x=1,1,9,8"; },
       {"x", "9"}},
      {"shape that is no number",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --shape x=a,b"; },
       {"x"}},
      {"threads that are no number",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --threads many"; },
       {"many"}},
      {"absent plug-in folder",
       [](Scratch& s) {
         return "compile " + shell_word(kDigits) + " -o OUT --plugin-path " + shell_word(s.path("none"));
       },
       {"none"}},
      {"opt: a type that cannot be",
       [](Scratch& s) {
         return "opt " +
                shell_word(s.write("g.rg", "graph @g(%x: f32[4]) -> (%y) {\n  %y: f32[5] = Relu(%x)\n}\n")) +
                " --passes infer-shapes";
       },
       {"f32[5]", "f32[4]"}},
      {"target: unknown key",
       [](Scratch& s) {
         return "compile " + shell_word(kDigits) + " -o OUT --target " +
                shell_word(s.write("t.toml",
                                   "schema = 1\nname = \"t\"\n[[device]]\nname = \"cpu\"\nplugin = "
                                   "\"host_cpu\"\nspeed = 9\n"));
       },
       {"t.toml:6", "speed"}},
      {"target: unknown device plug-in",
       [](Scratch& s) {
         return "compile " + shell_word(kDigits) + " -o OUT --target " +
                shell_word(s.write("t.toml",
                                   "schema = 1\nname = \"t\"\n[[device]]\nname = \"cpu\"\nplugin = "
                                   "\"host_cpu\"\n[[engine]]\nname = \"e\"\nplugin = \"host_gpu\"\ndevice = "
                                   "\"cpu\"\n[host]\ndevice = \"cpu\"\n"));
       },
       {"host_gpu", "host_cpu"}},
      {"run: unknown input",
       [](Scratch&) { return "run " + shell_word(good_rgm()) + " --input image=" + shell_word(kImage); },
       {"image", "x"}},
      {"run: absent input", [](Scratch&) { return "run " + shell_word(good_rgm()); }, {"x", "--input"}},
      {"run: absent file",
       [](Scratch& s) {
         return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(s.path("none.npy"));
       },
       {"none.npy"}},
      {"run: no .npy",
       [](Scratch&) { return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(kDigits); },
       {"digits.onnx"}},
      {"run: input given twice",
       [](Scratch&) {
         return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(kImage) +
                " --input x=" + shell_word(kImage);
       },
       {"x", "twice"}},
      {"run: shape",
       [](Scratch& s) {
         std::string npy = slurp(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digit_3.npy");
         size_t at = npy.find("(1, 1, 8, 8)");
         npy.replace(at, 12, "(1, 1, 4,16)");
         return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(s.write("x.npy", npy));
       },
       {"x", "8", "16"}},
      {"run: type",
       [](Scratch& s) {
         std::string npy = slurp(kImage);
         npy.replace(npy.find("<f4"), 3, "<i4");
         return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(s.write("x.npy", npy));
       },
       {"x", "f32", "i32"}},
      {"run: output folder is a file",
       [](Scratch& s) {
         return "run " + shell_word(good_rgm()) + " --input x=" + shell_word(kImage) + " --output-dir " +
                shell_word(s.write("file", "")) + "/below";
       },
       {"file"}},
      {"rgm: cut",
       [](Scratch& s) {
         return "run " + shell_word(s.write("m.rgm", slurp(good_rgm()).substr(0, 5000))) + " --random 1";
       },
       {"m.rgm"}},
      {"rgm: cut in the header",
       [](Scratch& s) {
         return "run " + shell_word(s.write("m.rgm", slurp(good_rgm()).substr(0, 20))) + " --random 1";
       },
       {"m.rgm"}},
      {"rgm: bytes behind its end",
       [](Scratch& s) {
         return "run " + shell_word(s.write("m.rgm", slurp(good_rgm()) + "more")) + " --random 1";
       },
       {"m.rgm"}},
      {"inspect: no model", [](Scratch&) { return "inspect " + shell_word(kImage); }, {"digit_3.npy"}},
      {"opt: no graph",
       [](Scratch& s) {
         return "opt " + shell_word(s.write("g.rg", "graph @g(%x: f32[2]) -> (%y) {\n  %y = Relu(%z)\n}\n")) +
                " --passes infer-shapes";
       },
       {"g.rg:2", "%z"}},
      {"opt: no text",
       [](Scratch&) { return "opt " + shell_word(kDigits) + " --passes infer-shapes"; },
       {"digits.onnx", "no graph in text form"}},
      {"opt: unknown pass",
       [](Scratch& s) {
         return "opt " +
                shell_word(s.write("g.rg", "graph @g(%x: f32[2]) -> (%y) {\n  %y: f32[2] = Relu(%x)\n}\n")) +
                " --passes infer-shape";
       },
       {"infer-shape", "infer-shapes"}},
      {"opt: unknown operator",
       [](Scratch& s) {
         return "opt " +
                shell_word(s.write("g.rg", "graph @g(%x: f32[2]) -> (%y) {\n  %y: f32[2] = Rleu(%x)\n}\n")) +
                " --passes infer-shapes";
       },
       {"Rleu"}},
      {"run: more than there is memory",
       [](Scratch&) { return "run " + shell_word(good_rgm()) + " --random 1 --shape x=10000000000,1,8,8"; },
       {"input 'x', f32[10000000000,1,8,8], takes 2560000000000 bytes"}},
      {"text: regions too deep",
       [](Scratch& s) {
         std::string text = "graph @g(%c: bool[], %x: f32[2]) -> (%y) {\n", end;
         for (int i = 0; i < 20000; ++i) {
           text += "%y: f32[2] = If(%c, %c, %x) region @then_branch(%c: bool[], %x: f32[2]) -> (%y) {\n";
           end += "} region @else_branch(%c: bool[], %x: f32[2]) -> (%x) {}\n";
         }
         return "compile " + shell_word(s.write("deep.rg", text + "%y: f32[2] = Relu(%x)\n" + end + "}\n")) +
                " -o OUT";
       },
       {"deep.rg:129:", "nested deeper than 128"}},
      {"text: a dimension below 0",
       text("graph @g(%x: f32[N]) -> (%y) where N in -5..2 {\n  %y: f32[N] = Relu(%x)\n}\n"),
       {"g.rg:1:", "N", "below 0"}},
      {"text: an input without rank",
       text("graph @g(%x: f32[*]) -> (%y) {\n  %y = Relu(%x)\n}\n"),
       {"g.rg", "Relu", "rank of value 'x'"}},
      {"text: a tensor beyond all addresses",
       text("graph @g(%x: f32[4611686018427387904,4]) -> (%y) {\n  %y: f32[4611686018427387904,4] = "
            "Relu(%x)\n}\n"),
       {"g.rg", "'x', f32[4611686018427387904,4], is larger than an address"}},
      {"text: a result beyond all addresses",
       text("graph @g(%x: f32[1]) -> (%y) {\n  %s: const i64[2] = [4294967296, 4294967296]\n"
            "  %y: f32[4294967296,4294967296] = Expand(%x, %s) @name(\"big\")\n}\n"),
       {"g.rg", "node 'big' (Expand)", "larger than an address"}},
      {"text: an alias of an input",
       plain("graph @g(%x: f32[2]) -> (%y, %x as \"xx\") {\n  %y: f32[2] @alias(%x, 0) = Neg(%x) "
             "@name(\"n\")\n}\n"),
       {"g.rg", "node 'n' (Neg)", "@alias"}},
      {"text: an alias of a constant",
       plain("graph @g(%x: f32[2]) -> (%c) {\n  %w: const f32[2] = [1.0, 2.0]\n"
             "  %a: f32[2] @alias(%w, 0) = Neg(%x)\n  %c: f32[2] = Add(%a, %w)\n}\n"),
       {"g.rg", "'a'"}},
      {"text: an alias that ends beyond its base",
       plain(
           "graph @g(%x: f32[4]) -> (%d) {\n  %a: f32[4] = Relu(%x)\n"
           "  %b: f32[8] @alias(%a, 0) = Concat(%a, %a) {axis=0} @name(\"n\")\n  %d: f32[8] = Neg(%b)\n}\n"),
       {"g.rg", "outside of its 16", "@alias"}},
      {"text: an alias of what is still read",
       plain(
           "graph @g(%x: f32[2]) -> (%c) {\n  %a: f32[2] = Relu(%x) @name(\"m\")\n"
           "  %b: f32[2] @alias(%a, 0) = Neg(%a) @name(\"n\")\n  %c: f32[2] = Add(%a, %b) @name(\"o\")\n}\n"),
       {"g.rg", "node 'o' (Add)", "node 'n' (Neg)", "overwritten", "@alias"}},
      {"text: an alias of an output",
       plain("graph @g(%x: f32[2]) -> (%a, %b) {\n  %a: f32[2] = Relu(%x)\n"
             "  %b: f32[2] @alias(%a, 0) = Neg(%a) @name(\"n\")\n}\n"),
       {"g.rg", "node 'n' (Neg)", "overwritten", "@alias"}},
      {"text: two live values in one place",
       plain("graph @g(%x: f32[4]) -> (%c) {\n  %a: f32[4] = Relu(%x)\n"
             "  %b: f32[4] @alias(%a, 0) = Softmax(%a) {axis = 0} @name(\"n\")\n"
             "  %t: f32[4] @alias(%a, 0) = Sigmoid(%a) @name(\"o\")\n  %c: f32[4] = Add(%b, %t)\n}\n"),
       {"g.rg", "node 'o' (Sigmoid)", "overwritten", "@alias"}},
      {"text: placed on an engine that the target does not have",
       text("graph @g(%x: f32[2]) -> (%y) on \"tpu\" = \"tpu0\" 1 space 1, \"cpu\" = \"cpu\" 0 space 0 {\n"
            "  %y: f32[2] = Relu(%x) @name(\"n\") @engine(\"tpu\")\n}\n"),
       {"g.rg", "node 'n' (Relu)", "'tpu'", "host_cpu"}},
      {"check: unknown key",
       [](Scratch& s) {
         return "check " +
                shell_word(s.write(
                    "r.toml", "schema = 1\nrevision = \"onnx-21\"\n[[rule]]\nname = \"r\"\nmach = \"\"\n"));
       },
       {"r.toml", "mach", "match"}},
      {"check: absent file",
       [](Scratch& s) { return "check " + shell_word(s.path("none.toml")); },
       {"none.toml"}},
      {"unknown command", [](Scratch&) { return "compil"; }, {"compil", "compile"}},
      {"unknown option", [](Scratch&) { return "compile " + shell_word(kDigits) + " --ouput x"; }, {"ouput"}},
      {"describe: unknown",
       [](Scratch&) { return "plugins describe fold-constant"; },
       {"fold-constant", "fold-constants"}},
  };
  std::ifstream index(std::string(REGIE_TEST_BAD_DIR) + "/bad.json");
  if (index)
    for (const auto& entry : nlohmann::json::parse(index)) {
      std::string path = std::string(REGIE_TEST_BAD_DIR) + "/" + entry["model"].get<std::string>();
      std::vector<std::string> says = entry["says"];
      says.push_back(entry["model"]);
      all.push_back({"onnx: " + entry["name"].get<std::string>(),
                     [path](Scratch&) { return "compile " + shell_word(path) + " -o OUT"; }, says});
    }
  return all;
}

TEST(BadInput, IsRefusedWithWordsThatHelp) {
  size_t from_onnx = 0;
  for (const Case& c : cases()) {
    from_onnx += c.name.starts_with("onnx: ");
    expect_refused(c);
  }
  EXPECT_GE(from_onnx, 15u) << "tests/models/bad/make.py made too few models";
}

TEST(BadInput, AnyFlippedByteOfAnOfflineModelIsNoticedOrHarmless) {
  std::string bytes = slurp(good_rgm());
  ProcessResult good = run_regie("run " + shell_word(good_rgm()) + " --input x=" + shell_word(kImage));
  ASSERT_EQ(good.exit_code, 0) << good.err;
  size_t refused = 0, tried = 0;
  for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 97) {
    Scratch scratch;
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    ProcessResult r =
        run_regie("run " + shell_word(scratch.write("m.rgm", broken)) + " --input x=" + shell_word(kImage));
    ++tried;
    if (r.exit_code == 2) {
      ++refused;
      EXPECT_NE(r.err.find("m.rgm"), std::string::npos) << r.err;
    } else {
      // Bytes between sections mean nothing; everything else has a checksum.
      EXPECT_EQ(r.exit_code, 0) << "byte " << at << ": " << r.err;
      EXPECT_EQ(r.out, good.out) << "byte " << at;
    }
  }
  EXPECT_GT(refused, tried / 2);
}

// The portable graph of a sound file against weights that are not its constants'.
TEST(BadInput, WeightsThatAreNotThePortableGraphs) {
  const std::shared_ptr<const Model> good = load_model(good_rgm()).value();
  ASSERT_GE(good->portable_constants.size(), 2u);
  const uint32_t first = good->portable_constants.begin()->second;
  using Change = std::function<void(Model*, std::vector<std::byte>*)>;
  struct Spoilt {
    const char* name;
    Change change;
    const char* says;
  };
  const Spoilt all[] = {
      {"a flipped bit",
       [&](Model* m, std::vector<std::byte>* bytes) { (*bytes)[m->weights[first].offset] ^= std::byte{1}; },
       "has other bytes there"},
      {"another constant",
       [](Model* m, std::vector<std::byte>*) {
         std::swap(m->portable_constants.begin()->second, std::next(m->portable_constants.begin())->second);
       },
       " bytes there"},
      {"too short",
       [&](Model* m, std::vector<std::byte>*) {
         m->weights.push_back({m->weights[first].offset, 4, "portable", ""});
         m->portable_constants.begin()->second = static_cast<uint32_t>(m->weights.size() - 1);
       },
       "elements, but has 4 bytes"},
      {"packed",
       [&](Model* m, std::vector<std::byte>*) {
         ModelWeight w = m->weights[first];
         w.layout = "opaque:e:1";
         m->weights.push_back(w);
         m->portable_constants.begin()->second = static_cast<uint32_t>(m->weights.size() - 1);
       },
       "elements, but has"},
      {"none",
       [](Model* m, std::vector<std::byte>*) { m->portable_constants.erase(m->portable_constants.begin()); },
       "is not in the file"},
  };
  for (const Spoilt& s : all) {
    SCOPED_TRACE(s.name);
    Scratch scratch;
    Model m = *good;
    std::vector<std::byte> bytes(good->weight_bytes.begin(), good->weight_bytes.end());
    s.change(&m, &bytes);
    m.weight_bytes = bytes;
    ASSERT_TRUE(save_model(m, scratch.path("m.rgm")).ok());
    ProcessResult r = run_regie("compile " + shell_word(scratch.path("m.rgm")) + " -o " +
                                shell_word(scratch.path("out.rgm")));
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_NE(r.err.find("m.rgm"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(s.says), std::string::npos) << r.err;
    EXPECT_FALSE(std::filesystem::exists(scratch.path("out.rgm")));
  }
}

TEST(BadInput, FullDiskLeavesNothing) {
  for (const char* room : {"0", "100", "20000"}) {
    Scratch scratch;
    ProcessResult r =
        run_shell("LD_PRELOAD=" + shell_word(REGIE_TEST_FULL_DISK) + " REGIE_TEST_DISK_BYTES=" + room + " " +
                  shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie") + " compile " +
                  shell_word(kDigits) + " -o " + shell_word(scratch.path("m.rgm")));
    EXPECT_EQ(r.exit_code, 2) << r.err;
    EXPECT_NE(r.err.find("m.rgm"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("space"), std::string::npos) << r.err;
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "something was left on the full disk";
  }
}

TEST(BadInput, FailedWriteKeepsTheOldFile) {
  Scratch scratch;
  std::string path = scratch.write("m.rgm", "the old one");
  ProcessResult r =
      run_shell("LD_PRELOAD=" + shell_word(REGIE_TEST_FULL_DISK) + " REGIE_TEST_DISK_BYTES=1000 " +
                shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie") + " compile " +
                shell_word(kDigits) + " -o " + shell_word(path));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(slurp(path), "the old one");
}

}  // namespace
}  // namespace regie::test
