// Models by hand, for tests of the model file, the plan check and the runtime: no compiler takes part. Names
// its parts by index, as the model does. Every buffer gets bytes of its own unless a place is given.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/layout.h"
#include "model/model.h"
#include "regie/c/engine.h"

namespace regie::test {

struct ModelBuilder {
  Model m;
  std::shared_ptr<std::vector<std::byte>> bytes = std::make_shared<std::vector<std::byte>>();

  uint32_t device(std::string name, std::string plugin,
                  std::vector<std::pair<std::string, std::string>> params = {}) {
    m.devices.push_back({std::move(name), std::move(plugin), std::move(params)});
    return static_cast<uint32_t>(m.devices.size() - 1);
  }
  uint32_t space(std::string name, uint32_t device) {
    m.spaces.push_back({std::move(name), device, 0, 0, 0});
    return static_cast<uint32_t>(m.spaces.size() - 1);
  }
  ModelDim code(std::vector<int64_t> words) {
    m.expressions.push_back({std::move(words)});
    return -static_cast<ModelDim>(m.expressions.size());
  }
  // A symbol that is read from `axis` of input `input`.
  ModelDim symbol(std::string name, uint32_t input, uint32_t axis, int64_t lower, int64_t upper,
                  int64_t reference) {
    m.symbols.push_back({std::move(name), lower, upper, input, axis, reference});
    return code({DimCode::kLoad, static_cast<int64_t>(m.symbols.size() - 1)});
  }
  ModelDim times(ModelDim symbol_dim, int64_t factor) {
    std::vector<int64_t> words = m.expressions[static_cast<size_t>(-(symbol_dim + 1))].words;
    words.insert(words.end(), {DimCode::kPush, factor, REGIE_DIM_MUL, 0});
    return code(words);
  }
  uint32_t type(regie_elem elem, std::vector<ModelDim> dims) {
    ModelType t{elem, std::move(dims)};
    for (uint32_t i = 0; i < m.types.size(); ++i)
      if (m.types[i] == t) return i;
    m.types.push_back(std::move(t));
    return static_cast<uint32_t>(m.types.size() - 1);
  }
  uint32_t f32(std::vector<ModelDim> dims) { return type(REGIE_F32, std::move(dims)); }
  Arg input(std::string name, uint32_t type) {
    m.inputs.push_back({std::move(name), type});
    return {Arg::kInput, static_cast<uint32_t>(m.inputs.size() - 1), 0, type, false};
  }
  Arg output(std::string name, uint32_t type) {
    m.outputs.push_back({std::move(name), type});
    const Arg a{Arg::kOutput, static_cast<uint32_t>(m.outputs.size() - 1), 0, type, false};
    m.output_sources.push_back(a);
    return a;
  }
  // Bytes of its own; in models with symbols above all earlier buffers of the space.
  Arg buffer(std::string name, uint32_t space, uint32_t type, ModelDim size) {
    ModelBuffer b;
    b.name = std::move(name);
    b.space = space;
    b.size = size;
    b.lower = 0;
    b.upper = 1u << 20;
    m.buffers.push_back(std::move(b));
    return {Arg::kBuffer, static_cast<uint32_t>(m.buffers.size() - 1), 0, type, false};
  }
  Arg buffer(std::string name, uint32_t space, uint32_t type) {
    int64_t size = static_cast<int64_t>(elem_bits(m.types[type].elem)) / 8;
    for (ModelDim d : m.types[type].dims) size *= d;
    return buffer(std::move(name), space, type, size);
  }
  uint32_t scratch(std::string name, uint32_t space, ModelDim size) {
    const Arg a = buffer(std::move(name), space, 0, size);
    m.buffers[a.index].kind = BufferKind::kScratch;
    return a.index;
  }
  Arg weight(const std::vector<float>& values, uint32_t type, std::string layout = "portable") {
    const size_t at = (bytes->size() + 63) / 64 * 64;
    bytes->resize(at + values.size() * 4);
    std::memcpy(bytes->data() + at, values.data(), values.size() * 4);
    m.weights.push_back(
        {at, values.size() * 4, std::move(layout), "digest" + std::to_string(m.weights.size())});
    return {Arg::kWeight, static_cast<uint32_t>(m.weights.size() - 1), 0, type, true};
  }
  uint32_t program() {
    m.programs.emplace_back();
    return static_cast<uint32_t>(m.programs.size() - 1);
  }
  uint32_t kernel(uint32_t device, std::string blob, std::string format = "fake/1") {
    ModelKernel k;
    k.flags = REGIE_KERNEL_ANY_SHAPE;
    k.format = std::move(format);
    k.name = blob;
    k.blob = std::move(blob);
    k.device = device;
    for (uint32_t i = 0; i < m.kernels.size(); ++i)
      if (m.kernels[i] == k) return i;
    m.kernels.push_back(std::move(k));
    return static_cast<uint32_t>(m.kernels.size() - 1);
  }
  // Appends to `in_program`; gives the task's index there. Named "node 'tN'".
  uint32_t launch(uint32_t device, uint32_t stream, std::string blob, std::vector<Arg> operands,
                  std::vector<Arg> results, std::vector<uint32_t> waits = {}, uint32_t in_program = 0) {
    ModelTask t;
    t.kind = TaskKind::kLaunch;
    t.device = device;
    t.stream = stream;
    t.kernel = kernel(device, std::move(blob));
    t.operands = std::move(operands);
    t.results = std::move(results);
    t.waits = std::move(waits);
    return add(std::move(t), in_program);
  }
  uint32_t copy(uint32_t device, uint32_t stream, Arg from, Arg to, std::vector<uint32_t> waits = {},
                uint32_t in_program = 0) {
    ModelTask t;
    t.kind = TaskKind::kCopy;
    t.device = device;
    t.stream = stream;
    t.operands = {from};
    t.results = {to};
    t.waits = std::move(waits);
    return add(std::move(t), in_program);
  }
  uint32_t branch(uint32_t device, uint32_t stream, Arg condition, std::vector<Arg> results,
                  uint32_t then_program, std::vector<Arg> then_results, uint32_t else_program,
                  std::vector<Arg> else_results, std::vector<uint32_t> waits = {}, uint32_t in_program = 0) {
    ModelTask t;
    t.kind = TaskKind::kIf;
    t.device = device;
    t.stream = stream;
    t.operands = {condition};
    t.results = std::move(results);
    t.programs = {then_program, else_program};
    t.program_results = {std::move(then_results), std::move(else_results)};
    t.waits = std::move(waits);
    return add(std::move(t), in_program);
  }
  // `operands`: trip count, condition, initial values; `arguments`: of the program, one for each of them.
  uint32_t loop(uint32_t device, uint32_t stream, std::vector<Arg> operands, std::vector<Arg> arguments,
                std::vector<Arg> results, uint32_t body, std::vector<Arg> body_results,
                std::vector<uint32_t> waits = {}, uint32_t in_program = 0) {
    ModelTask t;
    t.kind = TaskKind::kLoop;
    t.device = device;
    t.stream = stream;
    t.operands = std::move(operands);
    t.program_arguments = std::move(arguments);
    t.results = std::move(results);
    t.programs = {body};
    t.program_results = {std::move(body_results)};
    t.waits = std::move(waits);
    return add(std::move(t), in_program);
  }
  uint32_t add(ModelTask t, uint32_t in_program = 0) {
    if (m.programs.empty()) program();
    std::vector<ModelTask>& tasks = m.programs[in_program].tasks;
    t.name = "node 't" + std::to_string(tasks.size()) + "'";
    t.origins = {"origin" + std::to_string(tasks.size())};
    t.step = ++steps;
    tasks.push_back(std::move(t));
    return static_cast<uint32_t>(tasks.size() - 1);
  }
  uint64_t steps = 0;

  // Places the buffers one above the other and fills in what follows from them.
  std::shared_ptr<Model> finish(bool place = true) {
    if (m.programs.empty()) program();
    m.weight_bytes = *bytes;
    m.weight_owner = bytes;
    ShapeValues shapes = evaluate_shapes(m).value();
    std::vector<uint64_t> ends(m.spaces.size());
    std::vector<std::vector<uint32_t>> beneath(m.spaces.size());
    for (uint32_t b = 0; b < m.buffers.size(); ++b) {
      ModelBuffer& buffer = m.buffers[b];
      uint64_t& end = ends[buffer.space];
      if (place) buffer.offset = (end + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
      const uint64_t size = static_cast<uint64_t>(shapes.at(buffer.size));
      end = std::max(end, buffer.offset + size);
      if (!m.symbols.empty() && place) {
        if (!beneath[buffer.space].empty()) buffer.below = {beneath[buffer.space].back()};
        beneath[buffer.space].push_back(b);
        m.placement_order.push_back(b);
      }
    }
    for (size_t s = 0; s < m.spaces.size(); ++s) {
      m.spaces[s].arena_bytes = ends[s];
      uint64_t most = 0;
      for (const ModelBuffer& at : m.buffers) {
        uint64_t live = 0;
        for (const ModelBuffer& b : m.buffers)
          if (b.space == s && b.lower <= at.lower && at.lower < b.upper)
            live += static_cast<uint64_t>(shapes.at(b.size));
        most = std::max(most, live);
      }
      m.spaces[s].lower_bound = most;
    }
    return std::make_shared<Model>(m);
  }
};

}  // namespace regie::test
