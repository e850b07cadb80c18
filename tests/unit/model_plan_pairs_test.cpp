// The plan check against a slow check of every pair and byte.
#include <algorithm>
#include <map>
#include <random>

#include "model_plan_support.h"
#include "support/lanes_model.h"

namespace regie::plan_test {
namespace {

// Right if all tasks that touch the same byte, one of them writing, are ordered, and every byte that is read
// was last written for the buffer that it is read as.
bool slow_check(const Model& m) {
  const std::vector<ModelTask>& tasks = m.programs[0].tasks;
  const size_t n = tasks.size();
  std::vector<std::vector<bool>> after(n, std::vector<bool>(n));  // after[i][j]: i starts when j has ended
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) {
      const bool direct = tasks[i].stream == tasks[j].stream ||
                          std::find(tasks[i].waits.begin(), tasks[i].waits.end(), j) != tasks[i].waits.end();
      if (!direct) continue;
      after[i][j] = true;
      for (size_t k = 0; k < j; ++k)
        if (after[j][k]) after[i][k] = true;
    }
  struct Access {
    size_t task;
    bool write;
    uint32_t buffer;
  };
  std::map<uint64_t, std::vector<Access>> bytes;
  for (size_t i = 0; i < n; ++i)
    for (const bool write : {false, true})
      for (const Arg& a : write ? tasks[i].results : tasks[i].operands) {
        if (a.kind != Arg::kBuffer) continue;
        const ModelBuffer& b = m.buffers[a.index];
        for (uint64_t at = b.offset; at < b.offset + static_cast<uint64_t>(b.size); ++at)
          bytes[at].push_back({i, write, a.index});
      }
  for (const auto& [at, list] : bytes) {
    for (const Access& a : list)
      for (const Access& b : list)
        if (a.task < b.task && (a.write || b.write) && !after[b.task][a.task]) return false;
    uint32_t holds = REGIE_NONE;
    for (const Access& a : list) {  // in the order of the tasks, reads before writes
      if (a.write)
        holds = a.buffer;
      else if (holds != a.buffer)
        return false;
    }
  }
  // In one task a result may lie on an operand's beginning, and nowhere else on it.
  for (const ModelTask& t : tasks)
    for (const Arg& o : t.operands)
      for (const Arg& r : t.results) {
        if (o.kind != Arg::kBuffer || r.kind != Arg::kBuffer) continue;
        const ModelBuffer &a = m.buffers[o.index], &b = m.buffers[r.index];
        const uint64_t a_end = a.offset + static_cast<uint64_t>(a.size),
                       b_end = b.offset + static_cast<uint64_t>(b.size);
        if (a.offset < b_end && b.offset < a_end && (a.offset != b.offset || b_end > a_end)) return false;
      }
  return true;
}

TEST(ModelPlan, AgreesWithTheSlowCheck) {
  std::minstd_rand random(7);
  int right = 0, wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    Plan p;
    const size_t count = 3 + random() % 8;
    std::vector<Arg> made;
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t floats = 1 + static_cast<int64_t>(random() % 3);
      const Arg b = p.ModelBuilder::buffer("b" + std::to_string(i), 0, p.f32({floats}), 4 * floats);
      p.m.buffers[b.index].alignment = 4;
      p.m.buffers[b.index].offset = 4 * (random() % (8 + 4 * (static_cast<uint32_t>(round) % 4)));
      std::vector<Arg> operands;
      for (const Arg& a : made)
        if (random() % 3 == 0 && operands.size() < 2) operands.push_back(a);
      std::vector<uint32_t> waits;
      for (uint32_t w = 0; w < i; ++w)
        if (random() % 2 == 0) waits.push_back(w);
      p.launch(p.d, random() % 2, "add", operands, {b}, waits);
      made.push_back(b);
      if (random() % 6 == 0) made.clear();
    }
    const std::shared_ptr<Model> m = p.finish(false);
    ASSERT_TRUE(check_model(*m).ok()) << check_model(*m).to_string();
    const Status s = check_plan(*m);
    const bool expected = slow_check(*m);
    ASSERT_EQ(s.ok(), expected) << "round " << round << ": " << s.to_string();
    ++(expected ? right : wrong);
  }
  EXPECT_GT(right, 200);
  EXPECT_GT(wrong, 200);
}

TEST(ModelPlan, TenThousandTasks) {
  const Status s = check_plan(*test::two_lanes(10000));
  EXPECT_TRUE(s.ok()) << s.to_string();
}

}  // namespace
}  // namespace regie::plan_test
