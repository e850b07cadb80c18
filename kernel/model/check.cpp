#include "model/check.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/file.h"
#include "model/model_check.h"
#include "model/strings.h"
#include "model/task_check.h"

namespace regie {

namespace {

// The tables: one check a model.
class TableCheck : ModelCheck {
 public:
  TableCheck(const Model& model, regie_status code)
      : ModelCheck(model, code), reference_(model), late_(reference_.late) {}

  Status run() {
    REGIE_TRY(counts());
    REGIE_TRY(expressions());
    REGIE_TRY(types());
    REGIE_TRY(symbols());
    REGIE_TRY(ports());
    REGIE_TRY(spaces());
    REGIE_TRY(weights());
    REGIE_TRY(buffers());
    REGIE_TRY(placement_order());
    REGIE_TRY(kernels());
    REGIE_TRY(program_tree());
    REGIE_TRY(check_tasks(m_, reference_, code_));
    return check_strings(m_, code_);
  }

 private:
  Status counts() {
    const size_t limit = std::numeric_limits<int32_t>::max();
    if (m_.devices.empty()) return bad("the model names no device");
    if (m_.spaces.empty()) return bad("the model has no memory space; space 0 must be the host's");
    if (m_.programs.empty()) return bad("the model has no program");
    for (size_t n : {m_.symbols.size(), m_.expressions.size(), m_.types.size(), m_.devices.size(),
                     m_.spaces.size(), m_.buffers.size(), m_.weights.size(), m_.kernels.size(),
                     m_.programs.size(), m_.inputs.size(), m_.outputs.size()})
      if (n > limit) return bad("a list is too long");
    return {};
  }

  Status expressions() {
    loaded_.resize(m_.symbols.size());
    for (size_t e = 0; e < m_.expressions.size(); ++e) {
      place_ = "expression " + number(e);
      const std::vector<int64_t>& words = m_.expressions[e].words;
      if (words.empty() || words.size() % 2) return bad("a program is pairs of instruction and argument");
      size_t depth = 0;
      for (size_t i = 0; i < words.size(); i += 2) {
        if (words[i] == DimCode::kPush) {
          ++depth;
        } else if (words[i] == DimCode::kLoad) {
          if (words[i + 1] < 0) return bad("loads a negative symbol");
          REGIE_TRY(index("symbol", static_cast<uint64_t>(words[i + 1]), m_.symbols.size()));
          loaded_[static_cast<size_t>(words[i + 1])] = true;
          ++depth;
        } else if (words[i] >= REGIE_DIM_ADD && words[i] <= REGIE_DIM_MAX) {
          if (words[i + 1] != 0) return bad("an operator has no argument");
          if (depth < 2) return bad("an operator lacks operands");
          --depth;
        } else {
          return bad("unknown instruction " + std::to_string(words[i]));
        }
      }
      if (depth != 1) return bad("leaves " + number(depth) + " values instead of one");
    }
    place_.clear();
    return {};
  }

  Status dim(ModelDim d) const {
    return d >= 0 ? Status() : index("expression", static_cast<uint64_t>(-(d + 1)), m_.expressions.size());
  }

  Status types() {
    for (size_t t = 0; t < m_.types.size(); ++t) {
      place_ = "type " + number(t);
      const ModelType& type = m_.types[t];
      if (elem_bits(type.elem) == 0 && type.elem != REGIE_STRING)
        return bad("unknown element type " + number(type.elem));
      for (ModelDim d : type.dims) REGIE_TRY(dim(d));
    }
    place_.clear();
    for (const ModelSymbol& s : m_.symbols) {
      place_ = "symbol '" + s.name + "'";
      if (s.lower < 0 || s.lower > s.upper || s.reference < s.lower || s.reference > s.upper)
        return bad("its range or reference value is wrong");
    }
    place_.clear();
    Result<ShapeValues> shapes = evaluate_shapes(m_);
    if (!shapes) return bad(shapes.status().message());
    reference_.shapes = std::move(shapes).value();
    for (size_t t = 0; t < m_.types.size(); ++t) {
      if (late_.type(static_cast<uint32_t>(t))) {  // checked when the run knows it
        reference_.bytes.push_back(0);
        continue;
      }
      Result<uint64_t> bytes = bytes_at(m_, static_cast<uint32_t>(t), reference_.shapes);
      if (!bytes) return bad("type " + number(t) + ": " + bytes.status().message());
      reference_.bytes.push_back(*bytes);
    }
    return {};
  }

  Status symbols() {
    for (size_t s = 0; s < m_.symbols.size(); ++s) {
      const ModelSymbol& symbol = m_.symbols[s];
      place_ = "symbol '" + symbol.name + "'";
      if (symbol.input == REGIE_NONE) {
        if (!loaded_[s] || late_.symbols[s]) continue;
        return unsupported("the dimension '" + symbol.name +
                           "' depends on computed data, but no task says its value; compile the model again");
      }
      if (late_.symbols[s]) return bad("both an input and a task say its value");
      REGIE_TRY(index("input", symbol.input, m_.inputs.size()));
      REGIE_TRY(index("type", m_.inputs[symbol.input].type, m_.types.size()));
      const std::vector<ModelDim>& dims = m_.types[m_.inputs[symbol.input].type].dims;
      REGIE_TRY(index("axis", symbol.axis, dims.size()));
      if (!is_symbol(dims[symbol.axis], s))
        return bad("the dimension that it is read from is not this symbol");
    }
    place_.clear();
    return {};
  }

  Status ports() {
    for (const auto* list : {&m_.inputs, &m_.outputs})
      for (const ModelPort& port : *list) {
        place_ = "port '" + port.name + "'";
        REGIE_TRY(index("type", port.type, m_.types.size()));
        if (list == &m_.inputs && late_.type(port.type))
          return bad("has a dimension that only a task makes known");
        if (list == &m_.inputs && port.default_weight != REGIE_NONE) REGIE_TRY(default_of(port));
      }
    std::vector<bool> tells(m_.outputs.size());
    for (const ModelPort& port : m_.outputs) {
      if (port.shape == REGIE_NONE) continue;
      place_ = "port '" + port.name + "'";
      REGIE_TRY(index("output", port.shape, m_.outputs.size()));
      const ModelPort& shape = m_.outputs[port.shape];
      const ModelType& type = m_.types[shape.type];
      if (shape.shape != REGIE_NONE || type.elem != REGIE_I64 || type.dims.size() != 1 || tells[port.shape] ||
          m_.types[port.type].elem == REGIE_STRING)
        return bad("the output of its dimensions is none");
      tells[port.shape] = true;
    }
    place_.clear();
    if (std::find(tells.begin(), tells.end(), true) - tells.begin() !=
            static_cast<std::ptrdiff_t>(m_.seen_outputs()) &&
        m_.seen_outputs() != m_.outputs.size())
      return bad("outputs that are dimensions of others do not stand last");
    return {};
  }

  Status default_of(const ModelPort& port) {
    REGIE_TRY(index("weight", port.default_weight, m_.weights.size()));
    REGIE_TRY(index("type", port.default_type, m_.types.size()));
    const ModelType &type = m_.types[port.type], &own = m_.types[port.default_type];
    const ModelWeight& weight = m_.weights[port.default_weight];
    if (own.elem != type.elem || own.elem == REGIE_STRING || own.dims.size() != type.dims.size() ||
        std::any_of(own.dims.begin(), own.dims.end(), [](ModelDim d) { return d < 0; }))
      return bad("its default is of another type");
    if (weight.layout != kPortable || weight.size < reference_.bytes[port.default_type])
      return bad("its default is not a weight of its type");
    return {};
  }

  Status spaces() {
    for (size_t s = 0; s < m_.spaces.size(); ++s) {
      place_ = "memory space '" + m_.spaces[s].name + "'";
      REGIE_TRY(index("device", m_.spaces[s].device, m_.devices.size()));
    }
    place_.clear();
    return {};
  }

  Status weights() {
    for (size_t w = 0; w < m_.weights.size(); ++w) {
      place_ = "weight " + number(w);
      const ModelWeight& weight = m_.weights[w];
      if (weight.offset % 64) return bad("its offset is not a multiple of 64");
      if (weight.offset > m_.weight_bytes.size() || weight.size > m_.weight_bytes.size() - weight.offset)
        return bad("lies outside of the weights: " + number(weight.size) + " bytes at " +
                   number(weight.offset) + " of " + number(m_.weight_bytes.size()));
    }
    place_.clear();
    for (const auto& [digest, weight] : m_.portable_constants)
      REGIE_TRY(index("weight", weight, m_.weights.size()));
    return {};
  }

  Status buffers() {
    for (const ModelBuffer& b : m_.buffers) {
      place_ = "buffer '" + b.name + "'";
      if (b.kind != BufferKind::kTensor && b.kind != BufferKind::kScratch) return bad("unknown kind");
      REGIE_TRY(index("memory space", b.space, m_.spaces.size()));
      if (!std::has_single_bit(b.alignment) || b.alignment > kMaxAlignment)
        return bad("alignment " + number(b.alignment) + " is not a power of two up to " +
                   number(kMaxAlignment));
      if (b.offset % b.alignment)
        return bad("offset " + number(b.offset) + " is not aligned to " + number(b.alignment));
      if (b.lower >= b.upper) return bad("is live in no step");
      REGIE_TRY(dim(b.size));
      if (late_.dim(b.size)) {
        if (b.kind != BufferKind::kTensor || !b.below.empty() || b.offset != 0)
          return bad("only the run tells its size, but it has a place in the plan");
        continue;
      }
      const int64_t size = reference_.shapes.at(b.size);
      if (size < 0) return bad("its size is negative");
      const uint64_t arena = m_.spaces[b.space].arena_bytes;
      if (arena > static_cast<uint64_t>(INT64_MAX) || b.offset > arena ||
          static_cast<uint64_t>(size) > arena - b.offset)
        return bad(std::to_string(size) + " bytes at " + number(b.offset) + " are outside of the arena of " +
                   number(arena) + " bytes");
      for (uint32_t i : b.below) {
        REGIE_TRY(index("buffer", i, m_.buffers.size()));
        if (m_.buffers[i].space != b.space) return bad("lies above a buffer of another memory space");
      }
    }
    place_.clear();
    return {};
  }

  Status placement_order() {
    if (m_.placement_order.empty()) {
      for (const ModelBuffer& b : m_.buffers)
        if (b.size < 0)
          return bad("buffer '" + b.name + "' changes its size, but nothing says how to place it");
      return {};
    }
    if (m_.placement_order.size() != m_.buffers.size())
      return bad("the placement order does not list every buffer once");
    std::vector<bool> placed(m_.buffers.size());
    for (uint32_t b : m_.placement_order) {
      REGIE_TRY(index("buffer", b, m_.buffers.size()));
      if (placed[b]) return bad("buffer '" + m_.buffers[b].name + "' is placed twice");
      for (uint32_t below : m_.buffers[b].below)
        if (!placed[below])
          return bad("buffer '" + m_.buffers[b].name + "' is placed before '" + m_.buffers[below].name +
                     "' beneath it");
      placed[b] = true;
    }
    return {};
  }

  Status kernels() {
    for (const ModelKernel& k : m_.kernels) {
      place_ = "kernel '" + k.name + "'";
      REGIE_TRY(index("device", k.device, m_.devices.size()));
      if (k.format.empty()) return bad("has no format");
    }
    place_.clear();
    return {};
  }

  // Programs other than the first are run by exactly one task, of a program nearer to the first.
  Status program_tree() {
    std::vector<uint32_t> parent(m_.programs.size(), REGIE_NONE);
    for (size_t p = 0; p < m_.programs.size(); ++p)
      for (const ModelTask& task : m_.programs[p].tasks)
        for (uint32_t child : task.programs) {
          REGIE_TRY(index("program", child, m_.programs.size()));
          if (child == 0 || parent[child] != REGIE_NONE)
            return bad("program " + number(child) + " is run by two tasks");
          parent[child] = static_cast<uint32_t>(p);
        }
    std::vector<uint32_t> depth(m_.programs.size());  // 0: not known yet
    std::vector<uint32_t> chain;
    depth[0] = 1;
    for (uint32_t p = 1; p < m_.programs.size(); ++p) {
      chain.clear();
      uint32_t at = p;
      for (; depth[at] == 0; at = parent[at]) {
        if (parent[at] == REGIE_NONE) return bad("program " + number(at) + " is run by no task");
        if (chain.size() > m_.programs.size()) return bad("programs run each other in a circle");
        chain.push_back(at);
      }
      for (uint32_t d = depth[at]; !chain.empty(); chain.pop_back()) depth[chain.back()] = ++d;
      if (depth[p] > kMaxProgramDepth)
        return unsupported("control flow is nested deeper than " + number(kMaxProgramDepth) +
                           "; split the model");
    }
    return {};
  }

  ReferenceFacts reference_;
  const LateFacts& late_;
  std::vector<bool> loaded_;  // by symbol: an expression uses it
};

}  // namespace

Status check_model_as(const Model& model, regie_status code) { return TableCheck(model, code).run(); }

Status check_model(const Model& model) { return check_model_as(model, REGIE_INTERNAL); }

}  // namespace regie
