// What an entry of the cache is worth when it is sound, damaged, old or another's.
#include "unit/cache_support.h"

#include <chrono>
#include <fstream>
#include <set>

#include "model/file.h"

namespace regie::cache_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Cache, AHitIsTheModelThatACompileGives) {
  const CachedCompile first = compile(kDigits);
  EXPECT_EQ(first.cache.outcome, "miss");
  EXPECT_TRUE(first.cache.stored) << first.cache.not_stored;
  EXPECT_EQ(compile(kDigits).model, first.model) << "shared with whoever has it";
  forget();
  const CachedCompile second = compile(kDigits);
  EXPECT_EQ(second.cache.outcome, "hit");
  EXPECT_EQ(second.cache.from, "folder");
  EXPECT_EQ(second.cache.key, first.cache.key);
  ASSERT_TRUE(save_model(*first.model, s.path("a.rgm")).ok());
  ASSERT_TRUE(save_model(*second.model, s.path("b.rgm")).ok());
  EXPECT_EQ(test::slurp(s.path("a.rgm")), test::slurp(s.path("b.rgm")));
}

TEST_F(Cache, NobodyGetsAnothersEntry) {
  // Equal structure and other weights; equal names and other shapes; one option at a time. All in one folder.
  std::set<std::string> keys;
  std::vector<std::pair<std::string, CompileOptions>> all;
  for (const char* weight : {"2", "3"})
    for (const char* dim : {"4", "5"})
      all.emplace_back(s.write(std::string(weight) + dim + ".rg", graph(weight, dim)), CompileOptions());
  CompileOptions o;
  o.threads = 2;
  all.emplace_back(all[0].first, o);
  o = {};
  o.optimise = false;
  all.emplace_back(all[0].first, o);
  o = {};
  o.target = "host_and_null";
  all.emplace_back(all[0].first, o);
  o = {};
  o.settings = {{"fold-constants.budget-bytes", "0"}};
  all.emplace_back(all[0].first, o);
  std::vector<std::string> bytes;
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < all.size(); ++i) {
      const CachedCompile made = compile(all[i].first, all[i].second);
      EXPECT_EQ(made.cache.outcome, turn ? "hit" : "miss") << i;
      keys.insert(made.cache.key);
      ASSERT_TRUE(save_model(*made.model, s.path("m.rgm")).ok());
      if (turn == 0)
        bytes.push_back(test::slurp(s.path("m.rgm")));
      else
        EXPECT_EQ(test::slurp(s.path("m.rgm")), bytes[i]) << i;
    }
    forget();
  }
  EXPECT_EQ(keys.size(), all.size());
}

TEST_F(Cache, DamagedEntriesAreNotServed) {
  const std::string path = s.write("g.rg", graph());
  const CachedCompile first = compile(path);
  for (const char* ending : {".rgm", ".key"}) {
    const std::string file = only(ending), whole = test::slurp(file);
    ASSERT_FALSE(whole.empty());
    int refused = 0;
    for (size_t at : {size_t{0}, size_t{28}, whole.size() / 3, whole.size() / 2, whole.size() - 2}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ 0x21);
      std::ofstream(file, std::ios::binary) << bad;
      ModelMemory::forget();
      auto got = ModelStore(CacheFolder::open(options.folder)).load(first.cache.key, key(path));
      if (!got.ok()) {
        ++refused;
        continue;
      }
      // Between sections lie zeros that no checksum covers and nobody reads.
      EXPECT_STREQ(ending, ".rgm") << at;
      EXPECT_EQ(whole[at], 0) << at;
      ASSERT_TRUE(save_model(**got, s.path("read.rgm")).ok());
      EXPECT_EQ(test::slurp(s.path("read.rgm")), whole) << at;
    }
    EXPECT_GE(refused, 3) << ending;
    std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2);
    ModelMemory::forget();
    const CachedCompile again = compile(path);
    EXPECT_EQ(again.cache.outcome, "miss") << ending;
    EXPECT_TRUE(again.cache.stored);
    ModelMemory::forget();
    EXPECT_EQ(compile(path).cache.from, "folder") << "made again in its place";
  }
  // A sound model in the place of another.
  const std::string other = s.write("other.rg", graph("7"));
  const CachedCompile second = compile(other);
  const std::string models = options.folder + "/1/models/";
  fs::copy_file(models + second.cache.key + ".rgm", models + first.cache.key + ".rgm",
                fs::copy_options::overwrite_existing);
  ModelMemory::forget();
  EXPECT_THAT(compile(path).cache.why, ElementsAre(HasSubstr("another model than its record says")));
}

TEST_F(Cache, VerifyRemovesWhatIsDamaged) {
  const CachedCompile a = compile(s.write("a.rg", graph("1"))), b = compile(s.write("b.rg", graph("2")));
  const ModelStore store(CacheFolder::open(options.folder));
  EXPECT_THAT(store.verify(), IsEmpty());
  const std::string file = options.folder + "/1/models/" + a.cache.key + ".rgm";
  std::string bytes = test::slurp(file);
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_THAT(store.verify(), ElementsAre(HasSubstr(a.cache.key)));
  EXPECT_FALSE(fs::exists(file));
  ASSERT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.list()[0].digest, b.cache.key);
}

TEST_F(Cache, TheLeastRecentlyUsedGoFirst) {
  std::vector<std::string> keys;
  auto age = [&](const std::string& key, int hours) {
    for (const char* ending : {".rgm", ".key"}) {
      const std::string file = options.folder + "/1/models/" + key + ending;
      fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
    }
  };
  for (int i = 0; i < 6; ++i) {
    keys.push_back(compile(s.write(std::to_string(i) + ".rg", graph(std::to_string(i)))).cache.key);
    age(keys.back(), 10 - i);
  }
  ModelMemory::forget();
  EXPECT_EQ(compile(s.path("0.rg")).cache.from, "folder");  // used now
  auto folder = CacheFolder::open(options.folder);
  const uint64_t all = folder->bytes();
  uint64_t one = 0;
  for (const CacheFile& f : folder->list("models")) one += f.name.starts_with(keys[5]) ? f.bytes : 0;
  folder->shrink(all - one);  // room for all but one, or two
  std::set<std::string> left;
  for (const EntryInfo& e : ModelStore(folder).list()) left.insert(e.digest);
  EXPECT_EQ(left.count(keys[1]), 0u) << "the oldest";
  EXPECT_EQ(left.count(keys[0]), 1u) << "used last";
  EXPECT_EQ(left.count(keys[5]), 1u);
  EXPECT_LE(folder->bytes(), all - one);
  // What another process is writing is not taken from it; what one left behind is.
  const std::string young = options.folder + "/1/models/.regie-1-0.tmp",
                    old = options.folder + "/1/files/.regie-1-1.tmp";
  for (const std::string& f : {young, old}) {
    fs::create_directories(fs::path(f).parent_path());
    std::ofstream(f) << "part";
  }
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(100));
  folder->shrink(0);
  EXPECT_TRUE(fs::exists(young));
  EXPECT_FALSE(fs::exists(old));
  fs::remove(young);
  // The limit holds by itself.
  options.limit = 3 * one;
  for (int i = 10; i < 20; ++i) compile(s.write(std::to_string(i) + ".rg", graph(std::to_string(i))));
  EXPECT_LE(folder->bytes(), options.limit);
  EXPECT_GE(ModelStore(folder).list().size(), 1u);
  options.limit = 100;  // smaller than any entry
  const CachedCompile large = compile(kDigits);
  EXPECT_FALSE(large.cache.stored);
  EXPECT_THAT(large.cache.not_stored, HasSubstr("half of the cache's limit"));
  EXPECT_EQ(compile(kDigits).cache.from, "process");
}

}  // namespace
}  // namespace regie::cache_test
