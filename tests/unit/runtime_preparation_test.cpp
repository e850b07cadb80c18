// Kernels that are made ready while the first run is on its way: each once, whoever makes it; the same values
// and the same failures as when all are ready before; scratch that the model did not plan.
#include "runtime/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/session.h"
#include "support/run_model.h"

namespace regie {
namespace {

using test::Answer;
using test::ModelBuilder;
using test::open;
using test::row;
using test::run;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RuntimePreparation, EachIsMadeOnceAndReadAfterIt) {
  constexpr size_t kCount = 500;
  for (const size_t threads : {0, 1, 3}) {
    std::vector<int> made(kCount);
    Preparation p(kCount, [&](size_t i) { ++made[i]; });
    p.start(threads);
    for (size_t i = 0; i < kCount; ++i) {
      p.need(i);
      EXPECT_EQ(made[i], 1);
    }
    p.need(0);
    EXPECT_THAT(made, Each(1));
  }
}

TEST(RuntimePreparation, WhoWaitsMakesTheNextOnesMeanwhile) {
  std::atomic<bool> begun{false}, last_made{false};
  std::vector<std::thread::id> by(8);
  Preparation p(8, [&](size_t i) {
    by[i] = std::this_thread::get_id();
    if (i == 7) last_made = true;
    if (i != 0) return;
    begun = true;
    while (!last_made) std::this_thread::yield();
  });
  p.start(1);
  while (!begun) std::this_thread::yield();
  p.need(0);  // the other thread is at it until this one has made the rest
  EXPECT_NE(by[0], std::this_thread::get_id());
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(by[i], std::this_thread::get_id()) << i;
}

TEST(RuntimePreparation, WhatNobodyNeedsIsNotBegunAfterTheEnd) {
  std::atomic<int> made{0};
  {
    Preparation p(1000, [&](size_t) {
      ++made;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    p.start(2);
    p.need(3);
  }
  EXPECT_GE(made, 4);
  EXPECT_LT(made, 500);
}

constexpr int kLaunches = 40;

// y = 2^20 x, by launches that wait for nothing but each other; scratch that grows beyond what was planned.
// `refused`: of that number, which its device cannot make ready.
std::shared_ptr<Model> chain(int refused = -1, const char* plugin = "fake_inline") {
  ModelBuilder b;
  const uint32_t d = b.device("d", plugin, {{"visible", "1"}});
  b.space("host", d);
  const uint32_t t = b.f32({2});
  Arg last = b.input("x", t);
  const uint32_t planned = b.scratch("scratch", 0, 64);
  for (int i = 0; i < kLaunches; ++i) {
    const Arg next = i + 1 == kLaunches ? b.output("y", t) : b.buffer("h" + std::to_string(i), 0, t);
    const std::string moves = i % 8 == 1 ? "scratch:64" : "scratch:" + std::to_string(64 * i);
    const uint32_t task = b.launch(d, 0, i == refused ? "refuse" : i % 2 ? moves : "scale:2", {last}, {next});
    if (i % 4 == 1) b.m.programs[0].tasks[task].scratch = planned;
    last = next;
  }
  return b.finish();
}

std::vector<SessionOptions> ways() {
  std::vector<SessionOptions> list(1);
  for (const uint32_t threads : {0, 1, 3}) list.emplace_back().preparing_threads = threads;
  return list;
}

TEST(RuntimePreparation, TheFirstRunIsAsTheOthers) {
  const std::shared_ptr<Model> model = chain();
  for (const SessionOptions& way : ways()) {
    std::shared_ptr<Session> session = open(model, way).value();
    // Contexts prepare for themselves, at one time.
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        std::shared_ptr<Context> context = session->acquire().value();
        for (int turn = 0; turn < 3; ++turn) {
          const Answer a = run(*context, {row({1, 3})}, 1);
          ASSERT_TRUE(a.status.ok()) << a.status.to_string();
          EXPECT_THAT(a.outputs[0].values, ElementsAre(1 << 20, 3 << 20));
        }
      });
    for (std::thread& t : threads) t.join();
  }
}

TEST(RuntimePreparation, AKernelThatCannotBeFailsEachRunByName) {
  for (const char* plugin : {"fake_inline", "fake_async"})  // before the run, for the latter
    for (const int refused : {0, 20, kLaunches - 1})
      for (const SessionOptions& way : ways()) {
        std::shared_ptr<Session> session = open(chain(refused, plugin), way).value();
        std::shared_ptr<Context> context = session->acquire().value();
        for (int turn = 0; turn < 3; ++turn) {
          const Answer a = run(*context, {row({1, 3})}, 1);
          EXPECT_EQ(a.status.code(), REGIE_UNSUPPORTED);
          EXPECT_EQ(a.status.where(), "node 't" + std::to_string(refused) + "'");
          EXPECT_THAT(a.status.to_string(), HasSubstr("the fake kernel cannot be made ready"));
          EXPECT_THAT(a.status.to_string(), HasSubstr("preparing kernel 'refuse'"));
          EXPECT_THAT(a.status.to_string(), HasSubstr("made from origin" + std::to_string(refused)));
        }
      }
}

// A kernel of a branch that cannot be at these shapes is an error when the branch is taken, and not before.
TEST(RuntimePreparation, ABranchThatCannotBeMayBeLeft) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  const uint32_t t = b.f32({2}), flag = b.type(REGIE_BOOL, {});
  const Arg x = b.input("x", t), y = b.output("y", t), small = b.buffer("small", 0, flag);
  for (int i = 0; i < 3; ++i) b.program();
  b.launch(cpu, 0, "less:3", {x}, {small});
  b.launch(cpu, 0, "scale:2", {x}, {y}, {}, 1);
  b.launch(cpu, 0, "refuse", {x}, {y}, {}, 2);
  b.branch(cpu, 0, small, {y}, 1, {y}, 2, {y}, {0});
  const std::shared_ptr<Model> model = b.finish();
  for (const SessionOptions& way : ways()) {
    std::shared_ptr<Session> session = open(model, way).value();
    std::shared_ptr<Context> context = session->acquire().value();
    for (int turn = 0; turn < 2; ++turn) {
      Answer a = run(*context, {row({1, 2})}, 1);
      ASSERT_TRUE(a.status.ok()) << a.status.to_string();
      EXPECT_THAT(a.outputs[0].values, ElementsAre(2, 4));
      a = run(*context, {row({4, 5})}, 1);
      EXPECT_EQ(a.status.code(), REGIE_UNSUPPORTED);
      EXPECT_THAT(a.status.to_string(), HasSubstr("preparing kernel 'refuse'"));
    }
  }
}

}  // namespace
}  // namespace regie
