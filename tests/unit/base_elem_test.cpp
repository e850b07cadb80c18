#include "base/elem.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <new>
#include <set>
#include <thread>

#include "base/hash.h"
#include "base/log.h"

namespace regie {
namespace {

TEST(BaseElem, NamesAndSizes) {
  std::set<std::string_view> names;
  for (regie_elem e = REGIE_F32; e <= REGIE_I2; ++e) {
    EXPECT_TRUE(names.insert(elem_name(e)).second) << elem_name(e);
    EXPECT_EQ(elem_from_name(elem_name(e)), e);
  }
  EXPECT_EQ(elem_name(REGIE_ELEM_UNKNOWN), "?");
  EXPECT_EQ(elem_name(999), "?");
  EXPECT_FALSE(elem_from_name("?").has_value());
  EXPECT_FALSE(elem_from_name("float32").has_value());
  const std::pair<regie_elem, uint32_t> bits[] = {
      {REGIE_F32, 32},       {REGIE_F64, 64},   {REGIE_F16, 16},        {REGIE_BF16, 16},  {REGIE_I64, 64},
      {REGIE_U8, 8},         {REGIE_BOOL, 8},   {REGIE_C64, 64},        {REGIE_C128, 128}, {REGIE_U4, 4},
      {REGIE_F8E5M2FNUZ, 8}, {REGIE_F4E2M1, 4}, {REGIE_I4, 4},          {REGIE_U2, 2},     {REGIE_I2, 2},
      {REGIE_F8E8M0, 8},     {REGIE_STRING, 0}, {REGIE_ELEM_UNKNOWN, 0}};
  for (auto [elem, expected] : bits) EXPECT_EQ(elem_bits(elem), expected) << elem_name(elem);
  EXPECT_EQ(elem_bytes(REGIE_I4, 5), 3u);
  EXPECT_EQ(elem_bytes(REGIE_U2, 5), 2u);
  EXPECT_EQ(elem_bytes(REGIE_U2, 4), 1u);
  EXPECT_EQ(elem_bytes(REGIE_I2, UINT64_MAX), uint64_t{1} << 62);
  EXPECT_EQ(elem_bytes(REGIE_I4, UINT64_MAX), uint64_t{1} << 63);
  EXPECT_EQ(elem_bytes(REGIE_F32, 5), 20u);
  EXPECT_EQ(elem_bytes(REGIE_F32, UINT64_MAX / 2), UINT64_MAX);
  EXPECT_EQ(elem_bytes(REGIE_STRING, 2), 2 * sizeof(regie_str));
}

TEST(BaseElem, CountSaturates) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count(std::vector<int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<int64_t>{INT64_MAX, 2}), INT64_MAX);
  EXPECT_EQ(element_count(std::vector<int64_t>{INT64_MAX, 2, 0}), 0);
  EXPECT_EQ(element_count(std::vector<int64_t>{INT64_MAX, 2, 3}), INT64_MAX);
}

TEST(BaseElem, ZerosAreAlignedAndZero) {
  const std::vector<int64_t> dims = {3, 5};
  Tensor t = Tensor::zeros(REGIE_F32, dims);
  ASSERT_TRUE(t);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_EQ(t.bytes(), 60u);
  for (float v : t.as<float>()) EXPECT_EQ(v, 0.0f);
  static_cast<float*>(t.mutable_data())[14] = 2.5f;
  EXPECT_EQ(t.as<float>()[14], 2.5f);
  EXPECT_NE(Tensor::zeros(REGIE_F32, std::vector<int64_t>{0, 4}).data(), nullptr);
  EXPECT_EQ(Tensor::zeros(REGIE_F32, {}).count(), 1);
  EXPECT_EQ(Tensor().bytes(), 0u);
}

// More than there is: said with a name and the bytes, or thrown; never a tensor without data.
TEST(BaseElem, NoMemoryCannotBeOverlooked) {
  const std::vector<int64_t> beyond = {INT64_MAX, 8}, large = {int64_t{1} << 40, 8};
  const std::pair<std::vector<int64_t>, const char*> cases[] = {
      {beyond, "weight 'w', f64[9223372036854775807,8], takes 18446744073709551615 bytes"},
      {large, "weight 'w', f64[1099511627776,8], takes 70368744177664 bytes"}};
  for (const auto& [dims, says] : cases) {
    const Result<Tensor> made = Tensor::try_zeros(REGIE_F64, dims, "weight 'w'");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), REGIE_OUT_OF_MEMORY);
    EXPECT_EQ(made.status().message().find(says), 0u) << made.status().message();
    EXPECT_THROW(Tensor::zeros(REGIE_F64, dims), std::bad_alloc);
    double some = 0;
    const regie_tensor view{REGIE_F64, 0, 2, dims.data(), nullptr, &some, 8};
    EXPECT_EQ(Tensor::try_copy(view, "weight 'w'").status().code(), REGIE_OUT_OF_MEMORY);
    EXPECT_THROW(Tensor::copy(view), std::bad_alloc);
  }
}

TEST(BaseElem, CopiesFollowStridesAndOwnStrings) {
  const int32_t data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2}, transposed[] = {1, 3};
  regie_tensor view{};
  view.elem = REGIE_I32;
  view.rank = 2;
  view.dims = dims;
  view.strides = transposed;
  view.data = const_cast<int32_t*>(data);
  const Tensor t = Tensor::copy(view);
  const auto values = t.as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(values.begin(), values.end()), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(t.view().strides, nullptr);

  std::string a = "first", b;
  const regie_str texts[] = {{a.data(), a.size()}, {b.data(), b.size()}};
  const int64_t two[] = {2};
  regie_tensor strings{};
  strings.elem = REGIE_STRING;
  strings.rank = 1;
  strings.dims = two;
  strings.data = const_cast<regie_str*>(texts);
  const Tensor s = Tensor::copy(strings);
  a = "XXXXX";
  const auto copied = s.as<regie_str>();
  EXPECT_EQ(std::string_view(copied[0].data, copied[0].size), "first");
  EXPECT_EQ(copied[1].size, 0u);
  strings.data = nullptr;
  EXPECT_FALSE(Tensor::copy(strings));
}

TEST(BaseElem, BorrowKeepsTheOwnerAlive) {
  auto owner = std::make_shared<std::vector<float>>(4, 1.5f);
  std::weak_ptr<std::vector<float>> watch = owner;
  Tensor t = Tensor::borrow(REGIE_F32, std::vector<int64_t>{4}, owner->data(), owner);
  owner.reset();
  Tensor second = t;
  t = Tensor();
  ASSERT_FALSE(watch.expired());
  EXPECT_EQ(second.as<float>()[3], 1.5f);
  second = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(BaseElem, DigestCoversTypeShapeAndBytes) {
  const std::vector<float> data(6, 1.0f);
  auto make = [&](regie_elem elem, std::vector<int64_t> dims) {
    return Tensor::borrow(elem, dims, data.data(), nullptr);
  };
  const std::string base = make(REGIE_F32, {2, 3}).digest();
  EXPECT_EQ(base.size(), 32u);
  EXPECT_EQ(base, make(REGIE_F32, {2, 3}).digest());
  EXPECT_NE(base, make(REGIE_I32, {2, 3}).digest());
  EXPECT_NE(base, make(REGIE_F32, {3, 2}).digest());
  Tensor changed = Tensor::zeros(REGIE_F32, std::vector<int64_t>{2, 3});
  EXPECT_NE(base, changed.digest());
  const Tensor shared = make(REGIE_F32, {2, 3});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(shared.digest(), base); });
  for (std::thread& t : threads) t.join();
}

// XXH3 of the empty input is published with the algorithm: 2d06800538d394c2 (64 bits) and
// 99aa06d3014798d86001c324468d497f (128 bits).
TEST(BaseHash, AgreesWithXxh3AndSeparatesFields) {
  EXPECT_EQ(hash64("", 0), 0x2d06800538d394c2u);
  EXPECT_EQ(Hasher().hex(), "99aa06d3014798d86001c324468d497f");
  Hasher parts, whole;
  parts.bytes("ab", 2).bytes("c", 1);
  whole.bytes("abc", 3);
  EXPECT_EQ(parts.hex(), whole.hex());
  Hasher first, second;
  first.text("a").text("bc");
  second.text("ab").text("c");
  EXPECT_NE(first.hex(), second.hex());
}

// libxxhash's own loops are the expectation; ours ask for memory ahead, in blocks.
TEST(BaseHash, OfManyBytesIsTheLibrarys) {
  std::vector<unsigned char> bytes((size_t{1} << 20) + 9000);
  uint32_t state = 7;
  for (unsigned char& b : bytes)
    b = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
  for (const size_t size : {size_t{1}, size_t{240}, size_t{241}, size_t{4096}, size_t{8191}, size_t{8192},
                            size_t{8193}, size_t{12288}, size_t{12289}, size_t{65536}, size_t{1} << 20,
                            (size_t{1} << 20) + 1, bytes.size() - 3})
    for (const size_t at : {size_t{0}, size_t{1}, size_t{3}})
      EXPECT_EQ(hash64(bytes.data() + at, size), XXH3_64bits(bytes.data() + at, size))
          << size << " from " << at;
}

TEST(BaseLog, LevelsDecideWhatIsShown) {
  set_log_level(REGIE_LOG_INFO);
  EXPECT_TRUE(log_enabled(REGIE_LOG_INFO));
  EXPECT_FALSE(log_enabled(REGIE_LOG_DEBUG));
  ::testing::internal::CaptureStderr();
  log(REGIE_LOG_INFO, "fuse", "12 {fusions}");
  log(REGIE_LOG_DEBUG, "fuse", "hidden");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "regie info: fuse: 12 {fusions}\n");
  set_log_level(REGIE_LOG_WARNING);
  EXPECT_FALSE(log_enabled(REGIE_LOG_INFO));
}

}  // namespace
}  // namespace regie
