// A plan of many tasks for the check of plans: whether it is right, and how long the check takes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/model_builder.h"

namespace regie::test {

// Two streams that read each other now and then, and one early value that everybody reads. Buffers are used
// again after eight tasks.
inline std::shared_ptr<Model> two_lanes(uint32_t tasks) {
  ModelBuilder b;
  const uint32_t d = b.device("d", "fake_async");
  b.space("host", d);
  const uint32_t t = b.f32({4});
  const Arg x = b.input("x", t), early = b.buffer("early", 0, t);
  b.launch(d, 0, "scale:2", {x}, {early});
  uint32_t last[2] = {0, 0};
  for (uint32_t i = 0; i < tasks; ++i) {
    const uint32_t l = i % 2;
    const Arg made = b.buffer("b" + std::to_string(i), 0, t);
    b.m.buffers[made.index].offset = 64 * (1 + i % 8);
    std::vector<Arg> operands{early};
    if (i >= 2) operands.push_back(b.m.programs[0].tasks[last[l]].results[0]);
    last[l] = b.launch(d, l, "add", operands, {made},
                       i < 2 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{last[1 - l]});
  }
  b.m.spaces[0].arena_bytes = 64 * 8 + 16;
  b.m.spaces[0].lower_bound = 16 * (tasks + 1);  // all are said to live throughout
  return std::make_shared<Model>(b.m);
}

}  // namespace regie::test
