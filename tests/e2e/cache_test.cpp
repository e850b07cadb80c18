// The caches through the command line: what a user sees of hits and misses, processes that race, folders that
// are full, read-only or another user's, and what `regie cache` says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kRegie = shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie");
const std::string kDigits = shell_word(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx");

class CacheCommand : public ::testing::Test {
 protected:
  std::string environment(const std::string& more = "") const {
    return "REGIE_CACHE=on REGIE_CACHE_DIR=" + shell_word(s.path("cache")) + " " + more + " ";
  }
  ProcessResult regie(const std::string& arguments, const std::string& more = "") const {
    return run_shell(environment(more) + kRegie + " " + arguments);
  }
  // What the report of a compile says of the cache.
  Json compile(const std::string& arguments, const std::string& more = "") const {
    const ProcessResult r =
        regie("compile " + arguments + " -o " + shell_word(s.path("o.rgm")) + " --json", more);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const Json j = Json::parse(r.out, nullptr, false);
    EXPECT_TRUE(j.is_object()) << r.out.substr(0, 200);
    return j;
  }
  Scratch s;
};

TEST_F(CacheCommand, SaysHitOrMissAndWhy) {
  ProcessResult r = regie("-v run " + kDigits + " --random 1");
  EXPECT_THAT(r.err, HasSubstr("cache: miss: there is no cache folder yet"));
  const std::string first = r.out;
  r = regie("-v run " + kDigits + " --random 1");
  EXPECT_THAT(r.err, HasSubstr("cache: hit in the folder"));
  EXPECT_EQ(r.out, first);
  r = regie("-v run " + kDigits + " --random 1 --threads 2");
  EXPECT_THAT(r.err, HasSubstr("cache: miss: the option threads: 2 here, 1 there"));
  r = regie("cache why " + kDigits);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("hit: "));
  r = regie("cache why " + kDigits + " --shape x=2,1,8,8");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("miss: "));
  EXPECT_THAT(r.out, HasSubstr("  the option shape: x=2,1,8,8 here, not given there\n"));
  r = regie("cache list");
  EXPECT_THAT(r.out, HasSubstr("2 models"));
  EXPECT_THAT(r.out, HasSubstr("digits.onnx"));
  EXPECT_EQ(Json::parse(regie("cache list --json").out)["models"].size(), 2u);
  r = regie("cache verify");
  EXPECT_EQ(r.exit_code, 0) << r.out;
  r = regie("cache gc --max-size 1GB");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("nothing to remove: "));
  EXPECT_THAT(r.out, HasSubstr("limit 1000000000\n"));
  r = regie("cache gc --max-size 1Kx");
  EXPECT_EQ(r.exit_code, 2);
  r = regie("cache gc --max-size 1K");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("least recently used entries of "));
  EXPECT_THAT(regie("cache list").out, HasSubstr("0 models"));
}

// Every option that `regie compile` says it has, one at a time: an entry of its own, or none that differs. An
// option that is not in the table fails the test.
TEST_F(CacheCommand, EachOptionAloneHasItsOwnEntry) {
  // kOwnPlans, kSamePlans: each plan of a model of several has an entry, which is that of its sizes.
  enum What { kOwnEntry, kSameEntry, kNoCache, kOwnPlans, kSamePlans };
  fs::create_directories(s.path("overlay/rules"));
  std::ofstream(s.path("overlay/rules/conv.toml"))
      << slurp(std::string(REGIE_TEST_SOURCE_DIR) + "/configs/rules/conv.toml") << "# another line\n";
  const std::map<std::string, std::pair<std::string, What>> known = {
      {"target", {"host_and_null", kOwnEntry}},
      {"pipeline", {"unoptimised", kOwnEntry}},
      {"shape", {"x=2,1,8,8", kOwnEntry}},
      {"typical", {"x=2,?,?,?", kOwnEntry}},
      {"set", {"fold-constants.budget-bytes=4096", kOwnEntry}},
      {"threads", {"2", kOwnEntry}},
      {"fold-defaults", {"", kOwnEntry}},
      {"memory-limit", {"1GiB", kOwnEntry}},
      {"shapes", {"'buckets:x.0=3|5'", kOwnPlans}},
      {"padding", {"refuse --shapes 'buckets:x.0=3|5'", kSamePlans}},
      {"overflow", {"dynamic --shapes 'buckets:x.0=3|5'", kSamePlans}},
      {"no-optimise", {"", kOwnEntry}},
      {"no-verify", {"", kOwnEntry}},
      {"plugin-path", {shell_word(s.path("overlay")), kOwnEntry}},
      {"cache", {"on", kSameEntry}},
      {"cache-dir", {shell_word(s.path("cache")), kSameEntry}},
      {"cache-size", {"1G", kSameEntry}},
      {"output", {shell_word(s.path("other.rgm")), kSameEntry}},
      {"export-plan", {shell_word(s.path("plan.csv")), kSameEntry}},
      {"json", {"", kSameEntry}},
      {"dump", {shell_word(s.path("dump")), kNoCache}},
  };
  const std::string help = regie("compile --help").out;
  const std::regex pattern("--([a-z][a-z-]*)(?: \\])?( arg)?");
  std::map<std::string, std::string> entries;  // key -> option
  std::map<std::string, std::string> models;   // option -> bytes
  auto compile_with = [&](const std::string& name, const std::string& words) {
    const ProcessResult r = regie("compile " + kDigits + " " + words +
                                  (name == "output" ? "" : " -o " + shell_word(s.path("o.rgm"))) +
                                  (name == "json" ? "" : " --json"));
    EXPECT_EQ(r.exit_code, 0) << name << r.err;
    const Json j = Json::parse(r.out, nullptr, false);
    EXPECT_TRUE(j.is_object()) << name;
    models[name] = slurp(s.path(name == "output" ? "other.rgm" : "o.rgm"));
    return j["cache"];
  };
  const Json base = compile_with("", "");
  ASSERT_EQ(base["outcome"], "miss");
  entries[base["key"]] = "nothing";
  size_t seen = 0;
  for (std::sregex_iterator it(help.begin(), help.end(), pattern), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (name == "help" || !models.emplace(name, "").second) continue;
    ASSERT_TRUE(known.count(name)) << "say here what --" << name << " does to the entry of a compile";
    ++seen;
    const auto& [value, what] = known.at(name);
    const std::string words = "--" + name + (value.empty() ? "" : " " + value);
    const Json first = compile_with(name, words);
    const std::string bytes = models[name];
    if (what == kNoCache) {
      EXPECT_EQ(first["outcome"], "off") << name;
      continue;
    }
    EXPECT_EQ(first["outcome"], what == kOwnEntry || what == kOwnPlans ? "miss" : "hit") << name;
    if (what == kOwnPlans || what == kSamePlans)
      EXPECT_GE(first["plans"], 2) << name;
    else if (what == kOwnEntry)
      EXPECT_TRUE(entries.emplace(first["key"], name).second) << name << " and " << entries[first["key"]];
    else
      EXPECT_EQ(first["key"], base["key"]) << name;
    EXPECT_EQ(compile_with(name, words)["outcome"], "hit") << name;
    EXPECT_EQ(models[name], bytes) << name;
    EXPECT_EQ(compile_with("", "")["key"], base["key"]) << "after " << name;
  }
  EXPECT_EQ(seen, known.size()) << help;
}

TEST_F(CacheCommand, ReportsOfHitsAreWhole) {
  const Json miss = compile(kDigits), hit = compile(kDigits);
  EXPECT_EQ(miss["cache"]["outcome"], "miss");
  EXPECT_EQ(miss["cache"]["stored"], true);
  EXPECT_EQ(hit["cache"]["outcome"], "hit");
  EXPECT_EQ(hit["cache"]["key"], miss["cache"]["key"]);
  for (const char* key :
       {"fusions", "engines", "memory", "arena_bytes", "tasks", "placements", "operators_before"})
    EXPECT_EQ(hit[key], miss[key]) << key;
  EXPECT_TRUE(hit["compile_ms"].is_number());
  EXPECT_EQ(compile(kDigits + " --dump " + shell_word(s.path("dump")))["cache"]["outcome"], "off");
  EXPECT_FALSE(fs::is_empty(s.path("dump")));
  EXPECT_EQ(compile(kDigits + " --cache off")["cache"]["outcome"], "off");
  const ProcessResult wrong = regie("run " + kDigits + " --random 1 --cache maybe");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("off, read or on"));
}

TEST_F(CacheCommand, AFolderByARelativeName) {
  for (const char* want : {"\"miss\"", "\"hit\""}) {
    const ProcessResult r = run_shell("cd " + shell_word(s.path("")) + " && " + kRegie + " compile " +
                                      kDigits + " -o o.rgm --json --cache on --cache-dir cc");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    EXPECT_THAT(r.out, HasSubstr(std::string("\"outcome\": ") + want));
  }
}

TEST_F(CacheCommand, AHitWritesTheBytesOfACompile) {
  compile(kDigits + " --cache off");
  const std::string fresh = slurp(s.path("o.rgm"));
  compile(kDigits);
  EXPECT_EQ(slurp(s.path("o.rgm")), fresh);
  EXPECT_EQ(compile(kDigits)["cache"]["from"], "folder");
  EXPECT_EQ(slurp(s.path("o.rgm")), fresh);
}

TEST_F(CacheCommand, AnExternalFileThatChangesIsAMiss) {
  const std::string make =
      s.write("make.py",
              "import sys, numpy as np, onnx\nfrom onnx import helper, numpy_helper, TensorProto\n"
              "w = numpy_helper.from_array(np.full((4, 4), float(sys.argv[2]), np.float32), 'w')\n"
              "g = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'g',\n"
              "  [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 4])], "
              "[helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 4])], [w])\n"
              "onnx.save(helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid('', 13)]), "
              "sys.argv[1] + '/m.onnx',\n"
              "  save_as_external_data=True, location='w.bin', size_threshold=0, convert_attribute=False)\n");
  auto write = [&](const char* value) {
    fs::remove(s.path("w.bin"));
    const ProcessResult r = run_shell(shell_word(REGIE_TEST_PYTHON) + " " + shell_word(make) + " " +
                                      shell_word(s.path()) + " " + value);
    ASSERT_EQ(r.exit_code, 0) << r.err;
  };
  const std::string model = shell_word(s.path("m.onnx"));
  write("1");
  EXPECT_EQ(compile(model)["cache"]["outcome"], "miss");
  EXPECT_EQ(compile(model)["cache"]["outcome"], "hit");
  const ProcessResult one = regie("run " + model + " --random 1");
  write("2");  // the model's own bytes are the same
  const Json changed = compile(model);
  EXPECT_EQ(changed["cache"]["outcome"], "miss");
  EXPECT_EQ(changed["cache"]["why"], Json::array({"the model's file w.bin: other bytes"}));
  EXPECT_NE(regie("run " + model + " --random 1").out, one.out);
  write("1");
  EXPECT_EQ(compile(model)["cache"]["outcome"], "hit");
  EXPECT_EQ(regie("run " + model + " --random 1").out, one.out);
}

TEST_F(CacheCommand, APlugInThatIsRebuiltIsAMiss) {
  const std::string from = std::string(REGIE_TEST_BUILD_DIR) + "/tests/frontends/extension/plugins";
  ASSERT_TRUE(fs::exists(from)) << from;
  fs::copy(from, s.path("plugins"), fs::copy_options::recursive);
  std::string library;
  for (const auto& f : fs::directory_iterator(s.path("plugins")))
    if (f.path().extension() == ".so") library = f.path().string();
  ASSERT_NE(library, "");
  const std::string arguments = kDigits + " --plugin-path " + shell_word(s.path("plugins"));
  EXPECT_EQ(compile(arguments)["cache"]["outcome"], "miss");
  EXPECT_EQ(compile(arguments)["cache"]["outcome"], "hit");
  std::ofstream(library, std::ios::app | std::ios::binary) << '\0';
  const Json rebuilt = compile(arguments);
  EXPECT_EQ(rebuilt["cache"]["outcome"], "miss");
  EXPECT_EQ(rebuilt["cache"]["why"],
            Json::array({"plug-in " + fs::path(library).stem().string() + ": other digest"}));
}

TEST_F(CacheCommand, FlippedBytesAreFoundAndMadeGood) {
  const std::string first = regie("run " + kDigits + " --random 1").out;
  for (const auto& f : fs::directory_iterator(s.path("cache/1/models")))
    if (f.path().extension() == ".rgm") {
      std::string bytes = slurp(f.path());
      for (size_t i = bytes.size() / 2; i < bytes.size(); i += 64)
        bytes[i] = static_cast<char>(bytes[i] ^ 0x40);
      std::ofstream(f.path(), std::ios::binary) << bytes;
    }
  ProcessResult r = regie("cache why " + kDigits);
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, HasSubstr("damaged"));
  r = regie("-v run " + kDigits + " --random 1");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.out, first);
  EXPECT_THAT(r.err, HasSubstr("miss: the entry is damaged"));
  EXPECT_EQ(compile(kDigits)["cache"]["outcome"], "hit");
}

TEST_F(CacheCommand, ProcessesMayRace) {
  // Compiles of the same models at once, while another process empties the folder again and again.
  const std::string loop = "for i in 1 2 3 4 5 6; do for n in 1 2 3; do " + kRegie + " run " + kDigits +
                           " --random 1 --shape x=$n,1,8,8 || exit 9; done; done >>";
  std::string all = "export REGIE_CACHE=on REGIE_CACHE_DIR=" + shell_word(s.path("cache")) + "; ";
  for (const char* name : {"a", "b", "c"})
    all += "( " + loop + shell_word(s.path(name)) + " ) & p" + name + "=$!; ";
  all += "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do " + kRegie +
         " cache gc --max-size 1K || exit 8; done; ";
  all += "wait $pa && wait $pb && wait $pc";
  const ProcessResult r = run_shell(all);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, Not(HasSubstr("cannot be used")));
  EXPECT_EQ(slurp(s.path("a")), slurp(s.path("b")));
  EXPECT_EQ(slurp(s.path("a")), slurp(s.path("c")));
  const ProcessResult verified = regie("cache verify");
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
}

// One warning that says what to do, and the answer all the same.
void expect_one_warning(const ProcessResult& r, const std::string& why) {
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr(why));
  EXPECT_THAT(r.err, HasSubstr("REGIE_CACHE_DIR"));
  const size_t at = r.err.find("cannot be used");
  ASSERT_NE(at, std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("cannot be used", at + 1), std::string::npos) << r.err;
}

TEST_F(CacheCommand, WithoutAUsableFolderWorkGoesOn) {
  const std::string want = run_shell("REGIE_CACHE=off " + kRegie + " run " + kDigits + " --random 1").out;
  s.write("cache", "a file");
  ProcessResult r = regie("run " + kDigits + " --random 1");
  EXPECT_EQ(r.out, want);
  expect_one_warning(r, "it is a file, not a folder");
  fs::remove(s.path("cache"));
  r = regie("run " + kDigits + " --random 1",
            "LD_PRELOAD=" + shell_word(REGIE_TEST_FULL_DISK) + " REGIE_TEST_DISK_BYTES=20000");
  EXPECT_EQ(r.out, want);
  expect_one_warning(r, "No space left on device");
  EXPECT_THAT(regie("cache list").out, HasSubstr("0 models"));
  auto in_folder = [](const std::string& folder) {
    return run_shell("REGIE_CACHE=on REGIE_CACHE_DIR=" + shell_word(folder) + " " + kRegie + " run " +
                     kDigits + " --random 1");
  };
  // Root can give its folder away; to anybody else "/" is another user's.
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(s.path("cache").c_str(), 12345, 12345), 0);
  }
  r = in_folder(root ? s.path("cache") : "/");
  EXPECT_EQ(r.out, want);
  expect_one_warning(r, root ? "belongs to another user (12345)" : "belongs to another user (0)");
  r = in_folder("/proc/regie");
  EXPECT_EQ(r.out, want);
  expect_one_warning(r, "it cannot be made");
  r = run_shell("env -u HOME -u XDG_CACHE_HOME -u REGIE_CACHE_DIR REGIE_CACHE=on " + kRegie + " run " +
                kDigits + " --random 1");
  EXPECT_EQ(r.out, want);
  expect_one_warning(r, "HOME");
}

TEST_F(CacheCommand, AReadOnlyFolderServesWhatItHas) {
  compile(kDigits);
  const std::string cache = shell_word(s.path("cache"));
  // Read-only for root too: a mount of its own where that is allowed, else by the mode, for other users.
  const std::string in_mount = "unshare -m sh -c \"mount --bind " + cache + " " + cache +
                               " && mount -o remount,bind,ro " + cache + " && ";
  const bool mounts = ::geteuid() == 0 && run_shell(in_mount + "true\"").exit_code == 0;
  auto read_only = [&](const std::string& arguments) {
    if (mounts) return run_shell(environment() + in_mount + kRegie + " " + arguments + "\"");
    run_shell("chmod -R a-w " + cache);
    // Root is stopped by nothing but a mount: it becomes somebody else.
    const std::string as = ::geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups env " : "env ";
    run_shell("chmod -R a+rX " + shell_word(s.path()));
    return run_shell(as + environment() + kRegie + " " + arguments);
  };
  ProcessResult r = read_only("-v run " + kDigits + " --random 1");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("hit in the folder"));
  EXPECT_THAT(r.err, Not(HasSubstr("cannot be used")));
  r = read_only("-v run " + kDigits + " --random 1 --threads 2");
  const std::string refused = ::geteuid() == 0 ? "belongs to another user (0)" : "Permission denied";
  expect_one_warning(r, mounts ? "Read-only file system" : refused);
  EXPECT_THAT(r.err, HasSubstr("miss: the option threads"));
  run_shell("chmod -R u+w " + cache);
}

TEST_F(CacheCommand, KernelsAreSharedByModels) {
  const std::string all = "REGIE_CACHE_KERNEL_MS=0";
  const Json cold = compile(kDigits, all);
  const auto count = cold["kernels_compiled"].get<uint64_t>();
  ASSERT_GT(count, 0u);
  // Another key, the same kernels.
  const Json warm = compile(kDigits + " --no-verify", all);
  EXPECT_EQ(warm["cache"]["outcome"], "miss");
  EXPECT_EQ(warm["kernels_compiled"], 0u);
  EXPECT_EQ(warm["kernels_known"].get<uint64_t>(), count + cold["kernels_known"].get<uint64_t>());
  const std::string from_kernels = slurp(s.path("o.rgm"));
  compile(kDigits + " --no-verify --cache off");
  EXPECT_EQ(slurp(s.path("o.rgm")), from_kernels);
  // Other widths and shapes ask for other kernels.
  EXPECT_GT(compile(kDigits + " --threads 2", all)["kernels_compiled"].get<uint64_t>(), 0u);
  const std::string wide = kDigits + " --threads 2 --shape x=7,1,8,8 --no-verify";
  compile(wide, all);
  const std::string cached = slurp(s.path("o.rgm"));
  compile(wide + " --cache off");
  EXPECT_EQ(slurp(s.path("o.rgm")), cached);
}

}  // namespace
}  // namespace regie::test
