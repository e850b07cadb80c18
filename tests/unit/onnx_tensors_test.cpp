// Tensors of ONNX files: every way to store them, external files, and lengths that do not fit.
#include <filesystem>
#include <fstream>

#include "regie_test_paths.h"
#include "onnx_support.h"
#include "onnx_writer.h"

namespace onnx_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A model whose only output is the initializer w.
std::string holding(const Message& w) {
  Graph g;
  g.inputs = {value("x", kFloat, {"1"})};
  g.initializers = {w};
  g.outputs = {Message().text(1, "w")};
  return model(g);
}

class OnnxTensors : public OnnxTest {
 protected:
  // "f32[2] [1 2]"
  std::string stored(const Message& w) {
    auto g = good(holding(w));
    if (g->region(0).result_count == 0) return "";
    const uint32_t v = g->region(0).results[0];
    return type_text(*g, v) + " " + elements(*g, v);
  }
  std::string refused(const Message& w, regie_status code = REGIE_INVALID_MODEL) {
    return bad(holding(w), code);
  }
};

// Packed numbers of a typed field.
template <class T>
Message packed(uint32_t field, const std::vector<T>& values, Message head) {
  return head.text(field, raw(values));
}
Message varints(uint32_t field, const std::vector<int64_t>& values, Message head) {
  for (int64_t v : values) head.signed_number(field, v);  // unpacked is legal too
  return head;
}

TEST_F(OnnxTensors, RawData) {
  EXPECT_EQ(stored(floats("w", {2}, {1, 2.5f})), "f32[2] [1 2.5]");
  EXPECT_EQ(stored(floats("w", {}, {7})), "f32[] [7]");
  EXPECT_EQ(stored(floats("w", {0, 3}, {})), "f32[0,3] []");
  EXPECT_EQ(stored(longs("w", {2}, {-1, INT64_MAX})), "i64[2] [-1 9.22337204e+18]");
  EXPECT_EQ(stored(tensor("w", kHalf, {2}, raw<uint16_t>({0x3c00, 0xc000}))), "f16[2] [15360 49152]");
  EXPECT_EQ(stored(tensor("w", 16, {1}, raw<uint16_t>({0x3f80}))), "bf16[1] [16256]");
  EXPECT_EQ(stored(tensor("w", kBool, {3}, std::string("\0\1\x07", 3))), "bool[3] [0 1 1]");
  // Three nibbles take two bytes, low nibble first.
  EXPECT_EQ(stored(tensor("w", 21, {3}, std::string("\x21\x03", 2))), "u4[3] [33 3]");
  // Five of two bits too.
  EXPECT_EQ(stored(tensor("w", 25, {5}, std::string("\x1b\x02", 2))), "u2[5] [27 2]");
  EXPECT_EQ(stored(varints(5, {-101, 2}, tensor_head("w", 26, {5}))), "i2[5] [155 2]");
  EXPECT_EQ(stored(tensor("w", 24, {2}, "\x7f\xff")), "f8e8m0[2] [127 255]");
}

TEST_F(OnnxTensors, TypedFields) {
  EXPECT_EQ(stored(packed<float>(4, {1, -2}, tensor_head("w", kFloat, {2}))), "f32[2] [1 -2]");
  EXPECT_EQ(stored(packed<double>(10, {0.5}, tensor_head("w", kDouble, {1}))), "f64[1] [0.5]");
  EXPECT_EQ(stored(varints(7, {-5, 6}, tensor_head("w", kInt64, {2}))), "i64[2] [-5 6]");
  EXPECT_EQ(stored(varints(11, {5, 6}, tensor_head("w", 13, {2}))), "u64[2] [5 6]");
  EXPECT_EQ(stored(varints(11, {5, 4294967295}, tensor_head("w", 12, {2}))), "u32[2] [5 4.2949673e+09]");
  EXPECT_EQ(stored(varints(5, {-7, 8}, tensor_head("w", kInt32, {2}))), "i32[2] [-7 8]");
  EXPECT_EQ(stored(varints(5, {-128, 127}, tensor_head("w", kInt8, {2}))), "i8[2] [-128 127]");
  EXPECT_EQ(stored(varints(5, {0, 255}, tensor_head("w", kUint8, {2}))), "u8[2] [0 255]");
  EXPECT_EQ(stored(varints(5, {65535}, tensor_head("w", 4, {1}))), "u16[1] [65535]");
  EXPECT_EQ(stored(varints(5, {-32768}, tensor_head("w", 5, {1}))), "i16[1] [-32768]");
  EXPECT_EQ(stored(varints(5, {0x3c00}, tensor_head("w", kHalf, {1}))), "f16[1] [15360]");
  EXPECT_EQ(stored(varints(5, {1, 0}, tensor_head("w", kBool, {2}))), "bool[2] [1 0]");
  EXPECT_EQ(stored(varints(5, {0x21, 0x3}, tensor_head("w", 22, {3}))), "i4[3] [33 3]");
  EXPECT_EQ(stored(tensor_head("w", kFloat, {0})), "f32[0] []");

  auto g = good(holding(tensor_head("w", kString, {2}).text(6, "a").text(6, "bc")));
  const regie::Tensor& t = g->tensor(g->region(0).results[0]);
  ASSERT_EQ(t.count(), 2);
  EXPECT_EQ(regie::view(static_cast<const regie_str*>(t.data())[1]), "bc");
}

TEST_F(OnnxTensors, WrongLengths) {
  EXPECT_THAT(refused(tensor("w", kFloat, {16, 3, 3, 3}, std::string(100, 'a'))),
              HasSubstr("model.onnx: initializer 'w' of f32[16,3,3,3] needs 1728 bytes, has 100"));
  EXPECT_THAT(refused(floats("w", {1}, {1, 2})), HasSubstr("needs 4 bytes, has 8"));
  EXPECT_THAT(refused(tensor_head("w", kFloat, {2})), HasSubstr("needs 8 bytes, has 0"));
  EXPECT_THAT(refused(packed<float>(4, {1}, tensor_head("w", kFloat, {2}))),
              HasSubstr("needs 8 bytes, has 4"));
  EXPECT_THAT(refused(varints(5, {1}, tensor_head("w", kHalf, {3}))), HasSubstr("needs 6 bytes, has 2"));
  EXPECT_THAT(refused(varints(11, {1}, tensor_head("w", 12, {3}))), HasSubstr("needs 12 bytes, has 4"));
  EXPECT_THAT(refused(tensor_head("w", kString, {2}).text(6, "a")), HasSubstr("needs 2 strings, has 1"));
  EXPECT_THAT(refused(floats("w", {-1}, {1})), HasSubstr("negative dimension -1"));
  EXPECT_THAT(refused(floats("w", {int64_t{1} << 40, int64_t{1} << 40}, {1})), HasSubstr("more elements"));
  EXPECT_THAT(refused(floats("w", {INT64_MAX, 2}, {1})), HasSubstr("more elements"));
  EXPECT_THAT(refused(floats("w", {1}, {1}).text(4, raw<float>({1}))), HasSubstr("twice"));
  EXPECT_THAT(refused(varints(5, {300}, tensor_head("w", kUint8, {1}))), HasSubstr("element 300"));
  EXPECT_THAT(refused(varints(5, {2}, tensor_head("w", kBool, {1}))), HasSubstr("element 2"));
  EXPECT_THAT(refused(tensor("w", 0, {1}, "abcd")), HasSubstr("element type"));
  EXPECT_THAT(refused(tensor("w", 27, {1}, "a"), REGIE_UNSUPPORTED), HasSubstr("element type 27"));
  EXPECT_THAT(refused(tensor_head("w", kString, {1}).text(9, "abc")), HasSubstr("string"));
}

Message sparse(const std::vector<int64_t>& dims, const Message& values, const Message& indices) {
  Message s;
  s.message(1, values).message(2, indices);
  for (int64_t d : dims) s.signed_number(3, d);
  return s;
}

TEST_F(OnnxTensors, SparseInitializersBecomeDense) {
  auto holding_sparse = [](const Message& s) {
    Graph g;
    g.sparse = {s};
    g.outputs = {Message().text(1, "w")};
    return model(g);
  };
  auto g = good(holding_sparse(sparse({2, 3}, floats("w", {2}, {5, 6}), longs("", {2}, {1, 5}))));
  EXPECT_EQ(elements(*g, g->region(0).results[0]), "[0 5 0 0 0 6]");
  g = good(holding_sparse(sparse({2, 3}, floats("w", {2}, {5, 6}), longs("", {2, 2}, {0, 2, 1, 0}))));
  EXPECT_EQ(elements(*g, g->region(0).results[0]), "[0 0 5 6 0 0]");
  EXPECT_THAT(
      bad(holding_sparse(sparse({2, 3}, floats("w", {1}, {5}), longs("", {1}, {6}))), REGIE_INVALID_MODEL),
      AllOf(HasSubstr("'w'"), HasSubstr("sparse"), HasSubstr("index 6")));
  EXPECT_THAT(
      bad(holding_sparse(sparse({2, 3}, floats("w", {2}, {5, 6}), longs("", {1}, {0}))), REGIE_INVALID_MODEL),
      HasSubstr("indices"));
  EXPECT_THAT(bad(holding_sparse(sparse({1 << 20, 1 << 20}, floats("w", {1}, {5}), longs("", {1}, {0}))),
                  REGIE_LIMIT),
              HasSubstr("store it dense in an external file"));
  // The limit is for all of them together: each of these is small enough alone.
  auto many = [](size_t count) {
    Graph g;
    Message concat =
        Message().text(4, "Concat").message(5, Message().text(1, "axis").number(3, 0).number(20, 2));
    for (size_t i = 0; i < count; ++i) {
      const std::string name = "w" + std::to_string(i);
      g.sparse.push_back(sparse({1 << 22}, floats(name, {1}, {5}), longs("", {1}, {3})));
      concat.text(1, name);
    }
    g.nodes = {concat.text(2, "y")};
    g.outputs = {Message().text(1, "y")};
    return model(g);
  };
  const std::string two = many(2);
  EXPECT_TRUE(regie::import_bytes(*host_, *ops_, std::as_bytes(std::span(two)), "model.onnx", {}).ok());
  EXPECT_THAT(bad(many(5), REGIE_LIMIT),
              AllOf(HasSubstr("'w4'"), HasSubstr("after 67108864 of others"), HasSubstr("16777216 bytes")));
}

class OnnxExternal : public OnnxTensors {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("regie-onnx-" + std::to_string(getpid()));
    fs::create_directories(folder_ / "inner");
    write(folder_ / "w.bin", raw<float>({1, 2, 3, 4}));
    write(folder_ / "inner/w.bin", raw<float>({5, 6}));
    write(folder_.parent_path() / (folder_.filename().string() + "-outside.bin"), raw<float>({9, 9}));
  }
  void TearDown() override {
    fs::remove_all(folder_);
    fs::remove(folder_.string() + "-outside.bin");
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string model_with(const Message& w) {
    write(folder_ / "m.onnx", holding(w));
    return (folder_ / "m.onnx").string();
  }
  std::string fails(const Message& w, regie_status code) {
    auto g = import_file(model_with(w));
    EXPECT_FALSE(g.ok());
    if (g.ok()) return "imported";
    EXPECT_EQ(regie::status_code_name(g.status().code()), regie::status_code_name(code))
        << g.status().to_string();
    EXPECT_THAT(g.status().to_string(), AllOf(HasSubstr("m.onnx"), HasSubstr("'w'")));
    return g.status().to_string();
  }
  fs::path folder_;
};

// Whether an address lies in a mapping of a file, as the operating system sees it.
bool is_mapped_from(const void* address, const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t low = 0, high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &low, &high) != 2) continue;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (at >= low && at < high) return line.find(fs::canonical(file).string()) != std::string::npos;
  }
  return false;
}

TEST_F(OnnxExternal, IsMappedAndNotCopied) {
  auto g = import_file(model_with(external("w", kFloat, {2}, "w.bin", {{"offset", "8"}, {"length", "8"}})));
  ASSERT_TRUE(g.ok()) << g.status().to_string();
  const uint32_t w = (*g)->region(0).results[0];
  EXPECT_EQ(elements(**g, w), "[3 4]");
  EXPECT_TRUE(is_mapped_from((*g)->tensor(w).data(), (folder_ / "w.bin").string()));

  auto inner = import_file(model_with(external("w", kFloat, {2}, "inner/w.bin")));
  ASSERT_TRUE(inner.ok()) << inner.status().to_string();
  EXPECT_EQ(elements(**inner, (*inner)->region(0).results[0]), "[5 6]");
}

// Raw data lies anywhere in the file: aligned for its type it stays there, otherwise it is copied.
TEST_F(OnnxExternal, RawDataStaysInTheFileWhereItIsAligned) {
  bool seen[2] = {false, false};
  for (size_t pad = 0; pad < 4; ++pad) {
    Message w = tensor_head("w", kFloat, {2}).text(12, std::string(pad, 'd')).text(9, raw<float>({1, 2}));
    const std::string path = model_with(w);
    auto g = import_file(path);
    ASSERT_TRUE(g.ok()) << g.status().to_string();
    const regie::Tensor& t = (*g)->tensor((*g)->region(0).results[0]);
    EXPECT_EQ(elements(**g, (*g)->region(0).results[0]), "[1 2]");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 4, 0u);
    seen[is_mapped_from(t.data(), path)] = true;
  }
  EXPECT_TRUE(seen[0]);
  EXPECT_TRUE(seen[1]);
}

// Protobuf itself ends at 2 GiB; only the structure of a model goes through it. The file is a hole but for
// its ends.
TEST_F(OnnxExternal, ReadsInlineWeightsBeyond2GiB) {
  const uint64_t count = 600'000'000, size = count * 4;
  auto varint = [](uint64_t v) {
    std::string text;
    for (; v >= 0x80; v >>= 7) text += static_cast<char>(v | 0x80);
    return text + static_cast<char>(v);
  };
  auto holding_hole = [&](size_t pad) {
    const std::string head =
        tensor_head("w", kFloat, {static_cast<int64_t>(count)}).text(12, std::string(pad, 'd')).bytes() +
        "\x4a" + varint(size);
    const std::string output = Message().message(12, Message().text(1, "w")).bytes();
    const std::string tensor = "\x2a" + varint(head.size() + size) + head;
    const std::string start =
        Message().number(1, 8).bytes() + "\x3a" + varint(tensor.size() + size + output.size()) + tensor;
    return std::pair(start, output + Message().message(8, import_of("", 21)).bytes());
  };
  size_t pad = 0;  // aligned, so that nothing is copied
  while (holding_hole(pad).first.size() % 4 != 0) ++pad;
  const auto [start, end] = holding_hole(pad);
  const std::string path = (folder_ / "huge.onnx").string();
  write(path, start);
  fs::resize_file(path, start.size() + size);
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(end.data(), static_cast<std::streamsize>(end.size()));
  auto g = regie::import_model(*host_, *ops_, path);
  ASSERT_TRUE(g.ok()) << g.status().to_string();
  const uint32_t w = (*g)->region(0).results[0];
  EXPECT_EQ(type_text(**g, w), "f32[600000000]");
  EXPECT_TRUE(is_mapped_from((*g)->tensor(w).data(), path));
  EXPECT_EQ((*g)->tensor(w).as<float>()[count - 1], 0.0f);
}

TEST_F(OnnxExternal, OutlivesItsFile) {
  const std::string path = model_with(external("w", kFloat, {4}, "w.bin"));
  auto g = import_file(path);
  ASSERT_TRUE(g.ok()) << g.status().to_string();
  fs::remove(folder_ / "w.bin");
  fs::remove(path);
  EXPECT_EQ(elements(**g, (*g)->region(0).results[0]), "[1 2 3 4]");
}

TEST_F(OnnxExternal, RefusesWrongLengths) {
  EXPECT_THAT(fails(external("w", kFloat, {5}, "w.bin"), REGIE_CORRUPT),
              AllOf(HasSubstr("w.bin"), HasSubstr("16"), HasSubstr("20")));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "w.bin", {{"offset", "12"}}), REGIE_CORRUPT),
              HasSubstr("byte 12"));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "w.bin", {{"offset", "9223372036854775807"}}), REGIE_CORRUPT),
              HasSubstr("w.bin"));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "w.bin", {{"length", "12"}}), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("needs 8 bytes"), HasSubstr("12")));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "w.bin", {{"offset", "-4"}}), REGIE_INVALID_MODEL),
              HasSubstr("'-4'"));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "absent.bin"), REGIE_NOT_FOUND), HasSubstr("absent.bin"));
  EXPECT_THAT(fails(external("w", kFloat, {2}, ""), REGIE_INVALID_MODEL), HasSubstr("location"));
}

TEST_F(OnnxExternal, RefusesToLeaveTheFolder) {
  const std::string outside = folder_.string() + "-outside.bin";
  EXPECT_THAT(
      fails(external("w", kFloat, {2}, "../" + fs::path(outside).filename().string()), REGIE_INVALID_MODEL),
      HasSubstr(".."));
  EXPECT_THAT(fails(external("w", kFloat, {2}, "inner/../w.bin"), REGIE_INVALID_MODEL), HasSubstr(".."));
  EXPECT_THAT(fails(external("w", kFloat, {2}, outside), REGIE_INVALID_MODEL), HasSubstr("absolute"));
  fs::create_symlink(outside, folder_ / "link.bin");
  EXPECT_THAT(fails(external("w", kFloat, {2}, "link.bin"), REGIE_INVALID_MODEL), HasSubstr("link"));
  fs::create_directory_symlink(folder_.parent_path(), folder_ / "up");
  EXPECT_THAT(
      fails(external("w", kFloat, {2}, "up/" + fs::path(outside).filename().string()), REGIE_INVALID_MODEL),
      HasSubstr("link"));
  // A link that stays inside is fine.
  fs::create_symlink(folder_ / "w.bin", folder_ / "inside.bin");
  EXPECT_TRUE(import_file(model_with(external("w", kFloat, {4}, "inside.bin"))).ok());
}

}  // namespace
}  // namespace onnx_test
