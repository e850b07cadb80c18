#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace regie {
namespace {

namespace fs = std::filesystem;

class BaseFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "regie-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string get(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

bool mentions(const Status& s, const std::string& text) {
  return s.message().find(text) != std::string::npos;
}

TEST_F(BaseFile, MapsAndReads) {
  put("a", "hello");
  auto mapped = MappedFile::open(path("a"));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  fs::remove(path("a"));  // the mapping outlives the name
  std::shared_ptr<const void> owner = mapped->owner();
  const auto bytes = mapped->bytes();
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "hello");
  put("empty", "");
  EXPECT_TRUE(MappedFile::open(path("empty"))->bytes().empty());
  put("text", std::string(200000, 'x'));
  EXPECT_EQ(read_text_file(path("text"))->size(), 200000u);
}

// Whatever ends a process while it writes: nothing is left beside what was there.
TEST_F(BaseFile, AKilledWriterLeavesNothing) {
  put("old", "old");
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    for (const char* name : {"old", "new"}) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        (void)write_file_atomically(path(name), [&](const AppendBytes& append) {
          const std::string much(1 << 20, 'x');
          Status s = append(much.data(), much.size());
          raise(signal);
          return s;
        });
        _exit(0);
      }
      int how = 0;
      ASSERT_EQ(waitpid(child, &how, 0), child);
      EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == signal);
      EXPECT_EQ(entries(), 1u) << "after signal " << signal << " while writing " << name;
      EXPECT_EQ(get("old"), "old");
    }
  }
}

TEST_F(BaseFile, UnreadableFilesSayPathAndReason) {
  const Status absent = MappedFile::open(path("absent")).status();
  EXPECT_EQ(absent.code(), REGIE_NOT_FOUND);
  EXPECT_TRUE(mentions(absent, path("absent")) && mentions(absent, "check the path")) << absent.message();
  EXPECT_EQ(read_text_file(path("absent")).status().code(), REGIE_NOT_FOUND);
  const Status folder = MappedFile::open(folder_.string()).status();
  EXPECT_EQ(folder.code(), REGIE_IO);
  EXPECT_TRUE(mentions(folder, "folder")) << folder.message();
  EXPECT_TRUE(mentions(read_text_file(folder_.string()).status(), "folder"));
  put("file", "");
  EXPECT_EQ(MappedFile::open(path("file/below")).status().code(), REGIE_NOT_FOUND);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(path("pipe")).status().code(), REGIE_IO);  // and does not wait for a writer
}

TEST_F(BaseFile, WritesCompletelyOrNotAtAll) {
  ASSERT_TRUE(write_file_atomically(path("a"), "one").ok());
  EXPECT_EQ(get("a"), "one");
  ASSERT_TRUE(write_file_atomically(path("a"), [](const AppendBytes& append) -> Status {
                const std::string block(100000, 'b');
                for (int i = 0; i < 10; ++i) REGIE_TRY(append(block.data(), block.size()));
                const std::string large(1000000, 'l');
                REGIE_TRY(append(large.data(), large.size()));
                return append("end", 3);
              }).ok());
  EXPECT_EQ(get("a").size(), 2000003u);
  EXPECT_EQ(get("a").substr(2000000), "end");

  const Status refused = write_file_atomically(path("a"), [](const AppendBytes& append) -> Status {
    REGIE_TRY(append("half", 4));
    return unsupported("no more");
  });
  EXPECT_EQ(refused.code(), REGIE_UNSUPPORTED);
  EXPECT_EQ(get("a").size(), 2000003u);
  EXPECT_EQ(entries(), 1u);  // no temporary left
  EXPECT_THROW((void)write_file_atomically(path("a"), [](const AppendBytes&) -> Status { throw 1; }), int);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(BaseFile, SeveralFilesOrNone) {
  put("a", "old");
  const auto text = [](const AppendBytes& append) { return append("new", 3); };
  {
    auto a = PendingFile::write(path("a"), text), b = PendingFile::write(path("b"), text);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(get("a"), "old");
    EXPECT_FALSE(fs::exists(path("b")));
  }
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(entries(), 1u);  // nothing is left of what was not put in its place
  EXPECT_FALSE(PendingFile::write(path(std::string(300, 'z')), text).ok());
  auto a = PendingFile::write(path("a"), text), b = PendingFile::write(path("b"), text);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE(a->put_in_place().ok() && b->put_in_place().ok());
  EXPECT_EQ(get("a") + get("b"), "newnew");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(BaseFile, KeepsModeAndLinks) {
  put("real", "old");
  ASSERT_EQ(chmod(path("real").c_str(), 0640), 0);
  fs::create_symlink("real", path("link"));
  ASSERT_TRUE(write_file_atomically(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("real"), "new");
  EXPECT_EQ(static_cast<int>(fs::status(path("real")).permissions()), 0640);
  fs::create_symlink("later", path("dangling"));
  ASSERT_TRUE(write_file_atomically(path("dangling"), "made").ok());
  EXPECT_EQ(get("later"), "made");
}

TEST_F(BaseFile, UnwritablePlacesSayWhy) {
  const Status absent = write_file_atomically(path("no/such/folder/x"), "text");
  EXPECT_EQ(absent.code(), REGIE_IO);
  EXPECT_TRUE(mentions(absent, path("no/such/folder/x")) && mentions(absent, "check the path"))
      << absent.message();
  EXPECT_TRUE(mentions(write_file_atomically(folder_.string(), "text"), "folder"));
  EXPECT_EQ(write_file_atomically("", "text").code(), REGIE_IO);
  EXPECT_EQ(write_file_atomically("/proc/regie-test", "text").code(), REGIE_IO);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(BaseFile, FullDeviceIsReportedAndStays) {
  const Status full = write_file_atomically("/dev/full", "text");
  EXPECT_EQ(full.code(), REGIE_IO);
  EXPECT_TRUE(mentions(full, "/dev/full") && mentions(full, "No space left") &&
              mentions(full, "free some space"))
      << full.message();
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(BaseFile, RunningOutOfSpaceHalfwayLeavesTheOldFile) {
  put("a", "old");
  // A limit of the file size fails a write in the middle, as a full disk does. In a child: the limit stays
  // for ever.
  auto child = [this] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Status s = write_file_atomically(path("a"), std::string(4 << 20, 'x'));
    const bool good = s.code() == REGIE_IO && mentions(s, path("a")) && mentions(s, "ulimit -f");
    _exit(good && get("a") == "old" && entries() == 1 ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(BaseFile, ExternalFilesStayBesideTheModel) {
  fs::create_directories(folder_ / "models/data");
  put("models/m.onnx", "");
  put("models/w.bin", "");
  put("models/data/w.bin", "");
  put("outside.bin", "");
  fs::create_symlink("../outside.bin", folder_ / "models/leak");
  fs::create_symlink("..", folder_ / "models/up");
  fs::create_symlink("data/w.bin", folder_ / "models/inner");
  const std::string model = path("models/m.onnx");
  for (const char* good : {"w.bin", "data/w.bin", "./w.bin", "inner", "absent.bin", "..w"})
    EXPECT_TRUE(resolve_beside(model, good).ok())
        << good << ": " << resolve_beside(model, good).status().to_string();
  EXPECT_EQ(*resolve_beside(model, "data/w.bin"), path("models/data/w.bin"));
  for (const std::string bad :
       {"/etc/passwd", "../outside.bin", "data/../../outside.bin", "leak", "up/outside.bin", "", "data/.."}) {
    const auto r = resolve_beside(model, bad);
    ASSERT_FALSE(r.ok()) << bad;
    EXPECT_EQ(r.status().code(), REGIE_INVALID_MODEL);
    EXPECT_TRUE(mentions(r.status(), "'" + bad + "'")) << r.status().message();
  }
  EXPECT_EQ(resolve_beside(model, std::string_view("w\0", 2)).status().code(), REGIE_INVALID_MODEL);
  const fs::path here = fs::current_path();
  fs::current_path(folder_ / "models");
  EXPECT_EQ(fs::path(*resolve_beside("m.onnx", "w.bin")).filename(), "w.bin");
  EXPECT_FALSE(resolve_beside("m.onnx", "leak").ok());
  fs::current_path(here);
}

}  // namespace
}  // namespace regie
