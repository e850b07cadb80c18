// Models with several plans at run time, through the embedding API: where outputs lie, what is refused, what
// is counted, from memory and from a file, from several threads; and what moves under it, boxes and images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "regie/api/regie.hpp"
#include "runtime/boxes.h"
#include "support/process.h"

namespace regie::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y[n,k] = max(0, x[n,k] + 1), sums[n,1] = their sum along k.
constexpr const char* kGraph = R"(
graph @plans(%x: f32[N,K,3]) -> (%y, %sums) where N in 1..64, K in 1..64 {
  %one: const f32[1] = [1.0]
  %axes: const i64[1] = [2]
  %a = Add(%x, %one)
  %y = Relu(%a)
  %sums = ReduceSum(%y, %axes)
}
)";

api::Model compile(const char* text, const api::Options& options) {
  const std::string_view view(text);
  return api::Model::compile(std::as_bytes(std::span(view.data(), view.size())), "plans.rg", options);
}

struct Request {
  std::vector<float> x, y, sums;
  std::vector<int64_t> dims;
  Request(int64_t n, int64_t k, uint32_t seed) : dims{n, k, 3} {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < n * k; ++i) {
      float sum = 0;
      for (int j = 0; j < 3; ++j) {
        x.push_back(static_cast<float>(static_cast<int>(random() % 15) - 7));
        y.push_back(std::max(0.0F, x.back() + 1));
        sum += y.back();
      }
      sums.push_back(sum);
    }
  }
  regie_tensor tensor() const { return api::tensor<float>(x, dims); }
  void check(std::span<const regie_tensor> got) const {
    ASSERT_EQ(got.size(), 2u);
    ASSERT_EQ(std::vector<int64_t>(got[0].dims, got[0].dims + got[0].rank), dims);
    ASSERT_EQ(std::vector<int64_t>(got[1].dims, got[1].dims + got[1].rank),
              (std::vector<int64_t>{dims[0], dims[1], 1}));
    EXPECT_TRUE(std::ranges::equal(api::values<float>(got[0]), y));
    EXPECT_TRUE(std::ranges::equal(api::values<float>(got[1]), sums));
  }
};

TEST(RuntimePlans, OutputsLieWhereTheCallerSays) {
  const api::Model model = compile(kGraph, {{"shapes", "buckets:x.0=2|4,x.1=3|8"}});
  api::Session session(model);
  api::Context context = session.acquire();
  std::vector<regie_tensor> outputs(2);
  uint32_t seed = 0;
  for (const auto& [n, k] : {std::pair{2, 3}, {1, 3}, {2, 2}, {4, 8}, {3, 5}, {1, 1}, {4, 3}, {2, 8}}) {
    const Request r(n, k, ++seed);
    const regie_tensor x = r.tensor();
    // The context's memory, given back as it was got from a run on another plan.
    context.run({&x, 1}, outputs);
    r.check(outputs);
    // The caller's, exactly as large as it must be.
    std::vector<float> y(r.y.size()), sums(r.sums.size());
    std::vector<regie_tensor> own(2);
    own[0].data = y.data();
    own[0].bytes = y.size() * 4;
    own[1].data = sums.data();
    own[1].bytes = sums.size() * 4;
    context.run({&x, 1}, own);
    r.check(own);
    EXPECT_EQ(own[0].data, y.data());
    EXPECT_EQ(y, r.y);
    EXPECT_EQ(sums, r.sums);
    if (r.y.size() < 2) continue;
    own[0] = {};
    own[0].data = y.data();
    own[0].bytes = (y.size() - 1) * 4;
    own[1] = {};
    try {
      context.run({&x, 1}, own);
      ADD_FAILURE() << "too little room";
    } catch (const api::Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("output 'y' takes"));
    }
  }
}

TEST(RuntimePlans, CountsWhatRunsCameTo) {
  const api::Model model = compile(kGraph, {{"shapes", "buckets:x.0=2|4"}, {"overflow", "dynamic"}});
  api::Session session(model);
  api::Context context = session.acquire();
  for (const auto& [n, k] : {std::pair{2, 3}, {1, 3}, {4, 3}, {4, 5}, {9, 5}, {9, 5}}) {
    const Request r(n, k, 1);
    const regie_tensor x = r.tensor();
    r.check(context.run({&x, 1}));
  }
  const auto told = nlohmann::json::parse(session.statistics());
  EXPECT_EQ(told["exact"], 3);
  EXPECT_EQ(told["padded"], 1);
  EXPECT_EQ(told["dynamic"], 2);
  EXPECT_EQ(told["plans_made_ready"], 3);
  EXPECT_EQ(told["shapes_prepared"], 4);  // K stays dynamic: 3 and 5 of the plan for 4
  EXPECT_EQ(told["runs"]["x.0=2"], 2);
  EXPECT_EQ(told["runs"]["dynamic"], 2);
  const auto own = nlohmann::json::parse(context.statistics());
  EXPECT_EQ(own["runs"], 6);
  EXPECT_EQ(own["plan"], "dynamic");
  EXPECT_EQ(own["last_shape_change"], "x.0=4 -> x.0=9");
}

TEST(RuntimePlans, TimesAreThoseOfTheLargestPlan) {
  const api::Model model = compile(kGraph, {{"shapes", "buckets:x.0=2|4,x.1=3"}});
  api::Session session(model);
  api::Context context = session.acquire();
  context.set_profiling(true);
  for (const int n : {2, 4}) {
    const Request r(n, 3, 1);
    const regie_tensor x = r.tensor();
    r.check(context.run({&x, 1}));
    EXPECT_EQ(context.task_times().empty(), n == 2);
    EXPECT_EQ(nlohmann::json::parse(context.device_times()), nlohmann::json::parse(R"({"streams":[]})"));
  }
}

TEST(RuntimePlans, RefusesWhatItCannotRun) {
  const api::Model model = compile(kGraph, {{"shapes", "buckets:x.0=2|4,x.1=3"}});
  api::Session session(model);
  api::Context context = session.acquire();
  auto refused = [&](regie_tensor x) -> std::string {
    try {
      context.run({&x, 1});
    } catch (const api::Error& e) {
      return e.what();
    }
    return "it ran";
  };
  const Request r(3, 2, 1);
  regie_tensor x = r.tensor();
  x.bytes -= 4;
  EXPECT_THAT(refused(x), HasSubstr("input 'x' takes 72 bytes, but only 68 were given"));
  x = r.tensor();
  x.elem = REGIE_I32;
  EXPECT_THAT(refused(x), HasSubstr("must be f32[N,K,3], but is i32"));
  x = r.tensor();
  x.rank = 2;
  EXPECT_THAT(refused(x), HasSubstr("but has 2 dimensions"));
  const int64_t other[] = {3, 3, 2}, above[] = {5, 3, 3};
  x = r.tensor();
  x.dims = other;
  EXPECT_THAT(refused(x), HasSubstr("dimension 2 must be 3, not 2"));
  x.dims = above;
  EXPECT_THAT(refused(x), HasSubstr("dimension 0 (N) is 5, and the largest that there is a plan for is 4"));
  x = r.tensor();
  r.check(context.run({&x, 1}));
  EXPECT_EQ(nlohmann::json::parse(session.statistics())["refused"], 2);
}

// A graph is followed within its symbols' ranges: what is below them must not be padded up into them.
TEST(RuntimePlans, RefusesWhatIsBelowTheRange) {
  const api::Model model = compile(R"(graph @g(%x: f32[N]) -> (%y) where N in 3..64 {
  %y = Relu(%x)
})",
                                   {{"shapes", "buckets:x.0=4"}});
  api::Session session(model);
  api::Context context = session.acquire();
  const std::vector<float> data(2);
  const int64_t dims[] = {2};
  const regie_tensor x = api::tensor<float>(data, dims);
  try {
    context.run({&x, 1});
    ADD_FAILURE() << "it ran";
  } catch (const api::Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("dimension 0 (N) is 2; the model takes N from 3"));
  }
}

TEST(RuntimePlans, ThreadsAndAFile) {
  Scratch scratch;
  compile(kGraph, {{"shapes", "buckets:x.0=2|4,x.1=3|8"}, {"overflow", "dynamic"}})
      .save(scratch.path("plans.rgm"));
  const api::Model model = api::Model::load(scratch.path("plans.rgm"));
  api::Session session(model);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (uint32_t i = 0; i < 50; ++i) {
        const Request r(1 + random() % 5, 1 + random() % 9, i);
        const regie_tensor x = r.tensor();
        api::Context context = session.acquire();
        r.check(context.run({&x, 1}));
      }
    });
  for (std::thread& t : threads) t.join();
  const auto told = nlohmann::json::parse(session.statistics());
  EXPECT_EQ(told["exact"].get<int>() + told["padded"].get<int>() + told["dynamic"].get<int>(), 200);
}

// Against one element after the other.
TEST(RuntimePlans, BoxesAreMovedWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t rank = random() % 5;
    std::vector<int64_t> small, large;
    for (size_t d = 0; d < rank; ++d) {
      large.push_back(1 + random() % 4);
      small.push_back(random() % 3 == 0 ? random() % (large.back() + 1) : large.back());
    }
    const size_t elem = size_t{1} << random() % 4;
    auto count = [](const std::vector<int64_t>& dims) {
      return static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
    };
    std::vector<std::byte> from(count(small) * elem), to(count(large) * elem, std::byte{99}),
        back(from.size());
    for (std::byte& b : from) b = static_cast<std::byte>(1 + random() % 90);
    pad_box(from.data(), small, to.data(), large, elem);
    for (size_t i = 0; i < count(large); ++i) {
      size_t rest = i, at = 0, stride = 1;
      bool inside = true;
      for (size_t d = rank; d-- > 0;) {
        const size_t x = rest % static_cast<size_t>(large[d]);
        rest /= static_cast<size_t>(large[d]);
        inside = inside && x < static_cast<size_t>(small[d]);
        at += x * stride;
        stride *= static_cast<size_t>(small[d]);
      }
      for (size_t b = 0; b < elem; ++b)
        ASSERT_EQ(to[i * elem + b], inside ? from[at * elem + b] : std::byte{0}) << round;
    }
    copy_box(to.data(), large, back.data(), small, elem);
    EXPECT_EQ(back, from) << round;
  }
}

TEST(RuntimePlans, ImagesAreMadeSmallerAndLarger) {
  const float from[] = {0, 1, 2, 3};
  float to[2];
  resize_planes(from, 1, 1, 4, to, 1, 2);  // between the centres of two and two
  EXPECT_THAT(to, ElementsAre(0.5F, 2.5F));
  float up[4];
  resize_planes(from + 1, 1, 1, 2, up, 1, 4);
  EXPECT_THAT(up, ElementsAre(1.0F, 1.25F, 1.75F, 2.0F));
  float planes[2];
  resize_planes(from, 2, 2, 1, planes, 1, 1);
  EXPECT_THAT(planes, ElementsAre(0.5F, 2.5F));
}

}  // namespace
}  // namespace regie::test
