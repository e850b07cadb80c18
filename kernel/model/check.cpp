#include "model/check.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/file.h"
#include "model/late.h"
#include "model/layout.h"
#include "model/shape_op.h"
#include "model/strings.h"

namespace regie {

namespace {

std::string number(uint64_t n) { return std::to_string(n); }

// One check a model: keeps the place for messages, and the bytes of each type at the reference shapes.
class Checker {
 public:
  Checker(const Model& model, regie_status code) : m_(model), code_(code), late_(model) {}

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
    for (size_t p = 0; p < m_.programs.size(); ++p)
      for (size_t t = 0; t < m_.programs[p].tasks.size(); ++t) {
        const ModelTask& task = m_.programs[p].tasks[t];
        place_ = "task " + number(t) + " of program " + number(p);
        if (!task.name.empty()) place_ += " (" + task.name + ")";
        REGIE_TRY(this->task(task, static_cast<uint32_t>(t)));
      }
    REGIE_TRY(output_sources());
    return check_strings(m_, code_);
  }

 private:
  Status bad(std::string message) const {
    return Status::error(code_, (place_.empty() ? "" : place_ + ": ") + std::move(message));
  }
  Status index(const char* what, uint64_t i, size_t count) const {
    if (i < count) return {};
    return bad(std::string(what) + " " + number(i) + " does not exist; there are " + number(count));
  }

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
    reference_ = std::move(shapes).value();
    for (size_t t = 0; t < m_.types.size(); ++t) {
      if (late_.type(static_cast<uint32_t>(t))) {  // checked when the run knows it
        bytes_.push_back(0);
        continue;
      }
      Result<uint64_t> bytes = bytes_at(m_, static_cast<uint32_t>(t), reference_);
      if (!bytes) return bad("type " + number(t) + ": " + bytes.status().message());
      bytes_.push_back(*bytes);
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
      const ModelDim d = dims[symbol.axis];
      if (d >= 0 || m_.expressions[static_cast<size_t>(-(d + 1))].words !=
                        std::vector<int64_t>{DimCode::kLoad, static_cast<int64_t>(s)})
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
      }
    place_.clear();
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
      const int64_t size = reference_.at(b.size);
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

  // The memory space of an argument; REGIE_NONE for weights, which every device can have.
  uint32_t space_of(const Arg& a) const {
    if (a.kind == Arg::kBuffer) return m_.buffers[a.index].space;
    return a.kind == Arg::kWeight ? REGIE_NONE : 0;
  }

  Status arg(const Arg& a, const char* what, size_t i) const {
    const std::string name = std::string(what) + " " + number(i);
    if (a.kind == Arg::kNone) return {};
    if (a.type >= m_.types.size()) return bad(name + ": type " + number(a.type) + " does not exist");
    uint64_t room = 0;
    size_t count = 0;
    switch (a.kind) {
      case Arg::kBuffer:
        count = m_.buffers.size();
        break;
      case Arg::kWeight:
        count = m_.weights.size();
        break;
      case Arg::kInput:
        count = m_.inputs.size();
        break;
      case Arg::kOutput:
        count = m_.outputs.size();
        break;
      default:
        return bad(name + ": unknown kind " + number(a.kind));
    }
    if (a.index >= count) return bad(name + ": index " + number(a.index) + " of " + number(count));
    if (a.kind == Arg::kBuffer) {
      if (m_.buffers[a.index].kind != BufferKind::kTensor) return bad(name + " is scratch memory");
      if (!late_.buffer(a.index)) room = static_cast<uint64_t>(reference_.at(m_.buffers[a.index].size));
    } else if (a.kind == Arg::kWeight) {
      // The bytes of another layout mean something to the kernel alone that they were packed for.
      if (m_.weights[a.index].layout != kPortable)
        return bad(name + " is a packed weight, which nothing but a kernel's packed operand can read");
      room = m_.weights[a.index].size;
    } else {
      room = bytes_[(a.kind == Arg::kInput ? m_.inputs : m_.outputs)[a.index].type];
    }
    if (late_.arg(a)) return {};  // the run checks it
    const uint64_t need = bytes_[a.type];
    if (a.offset > room || need > room - a.offset)
      return bad(name + ": " + number(need) + " bytes at " + number(a.offset) + " are outside of its " +
                 number(room));
    return {};
  }

  Status args(const std::vector<Arg>& list, const char* what, bool written) const {
    for (size_t i = 0; i < list.size(); ++i) {
      REGIE_TRY(arg(list[i], what, i));
      if (written && (list[i].kind == Arg::kInput || list[i].kind == Arg::kWeight))
        return bad(std::string(what) + " " + number(i) + " is written, but is an input or a weight");
    }
    return {};
  }

  // A packed weight takes the place of a constant. In a layout of its own its bytes are for the device to
  // compare with what the kernel needs; in the portable one it is read as the operand's type.
  Status packed(const Arg& a, uint32_t weight, size_t i) const {
    const std::string name = "operand " + number(i);
    REGIE_TRY(index("weight", weight, m_.weights.size()));
    if (a.kind != Arg::kWeight) return bad(name + ": a packed weight takes the place of what is no constant");
    if (a.index != weight) REGIE_TRY(arg(a, "operand", i));
    if (a.type >= m_.types.size()) return bad(name + ": type " + number(a.type) + " does not exist");
    const ModelWeight& w = m_.weights[weight];
    if (w.layout == kPortable && w.size < bytes_[a.type])
      return bad(name + ": its weight has " + number(w.size) + " bytes, its type takes " +
                 number(bytes_[a.type]));
    return {};
  }

  Status task(const ModelTask& t, uint32_t position) const {
    REGIE_TRY(index("device", t.device, m_.devices.size()));
    REGIE_TRY(index("stream", t.stream, kMaxStreams));
    if (!t.kernel_weights.empty() && t.kernel_weights.size() != t.operands.size())
      return bad("kernel weights do not go with the operands");
    for (size_t i = 0; i < t.operands.size(); ++i)
      if (t.kernel_weights.empty() || t.kernel_weights[i] == REGIE_NONE)
        REGIE_TRY(arg(t.operands[i], "operand", i));
      else
        REGIE_TRY(packed(t.operands[i], t.kernel_weights[i], i));
    REGIE_TRY(args(t.results, "result", true));
    for (uint32_t w : t.waits)
      if (w >= position) return bad("waits for task " + number(w) + ", which is issued later");
    if (t.kind != TaskKind::kLaunch && (t.kernel != REGIE_NONE || t.scratch != REGIE_NONE ||
                                        std::any_of(t.kernel_weights.begin(), t.kernel_weights.end(),
                                                    [](uint32_t w) { return w != REGIE_NONE; })))
      return bad("only a launch has a kernel, weights or scratch");
    if (t.kind != TaskKind::kIf && t.kind != TaskKind::kLoop &&
        (!t.programs.empty() || !t.program_results.empty()))
      return bad("only control flow runs programs");
    if (t.kind != TaskKind::kLoop && !t.program_arguments.empty())
      return bad("only a loop hands arguments to a program");
    REGIE_TRY(defines(t));
    switch (t.kind) {
      case TaskKind::kDefine:
        return t.operands.empty() || t.operands[0].kind == Arg::kNone
                   ? bad("there is nothing that its results could be views of")
                   : Status();
      case TaskKind::kLaunch:
        return launch(t);
      case TaskKind::kCopy:
        return copy(t);
      case TaskKind::kIf:
        return branch(t);
      case TaskKind::kLoop:
        return loop(t);
    }
    return bad("unknown kind of task " + number(static_cast<uint64_t>(t.kind)));
  }

  // What it makes known, and by which operator's shape function.
  Status defines(const ModelTask& t) const {
    if (t.kind == TaskKind::kDefine && t.shape_op.empty()) return bad("no operator tells the shape");
    if (t.kind == TaskKind::kLaunch || t.kind == TaskKind::kDefine) {
      if (!t.shape_op.empty()) {
        Result<ShapeOp> read = ShapeOp::read(t.shape_op);
        if (!read) return bad(read.status().message());
      } else if (!t.defines.empty()) {
        return bad("makes dimensions known, but no operator tells them");
      }
    } else if (!t.shape_op.empty()) {
      return bad("only a launch asks an operator for its shape");
    }
    if (t.kind == TaskKind::kCopy && !t.defines.empty()) return bad("a copy makes no dimension known");
    for (const ModelDefine& d : t.defines) {
      REGIE_TRY(index("symbol", d.symbol, m_.symbols.size()));
      REGIE_TRY(index("result", d.result, t.results.size()));
      const bool carried = t.kind == TaskKind::kLoop && d.result + 2 < t.program_arguments.size();
      const Arg& a = carried ? t.program_arguments[d.result + 2] : t.results[d.result];
      if (a.kind == Arg::kNone) return bad("makes a dimension of an absent result known");
      REGIE_TRY(index("type", a.type, m_.types.size()));
      const std::vector<ModelDim>& dims = m_.types[a.type].dims;
      REGIE_TRY(index("axis", d.axis, dims.size()));
      const ModelDim dim = dims[d.axis];
      if (dim >= 0 || m_.expressions[static_cast<size_t>(-(dim + 1))].words !=
                          std::vector<int64_t>{DimCode::kLoad, static_cast<int64_t>(d.symbol)})
        return bad("the dimension that it makes known is not the symbol '" + m_.symbols[d.symbol].name + "'");
    }
    return {};
  }

  Status launch(const ModelTask& t) const {
    REGIE_TRY(index("kernel", t.kernel, m_.kernels.size()));
    if (m_.kernels[t.kernel].device != t.device)
      return bad("kernel '" + m_.kernels[t.kernel].name + "' is for another device");
    if (t.threads == 0 || t.threads > 65536) return bad("a width of " + number(t.threads) + " threads");
    if (t.scratch != REGIE_NONE) {
      REGIE_TRY(index("buffer", t.scratch, m_.buffers.size()));
      if (m_.buffers[t.scratch].kind != BufferKind::kScratch) return bad("its scratch is a tensor's buffer");
      REGIE_TRY(reachable(m_.buffers[t.scratch].space, t.device));
    }
    for (size_t i = 0; i < t.operands.size(); ++i)
      if (t.operands[i].kind != Arg::kNone) REGIE_TRY(reachable(space_of(t.operands[i]), t.device));
    for (const Arg& a : t.results)
      if (a.kind != Arg::kNone) REGIE_TRY(reachable(space_of(a), t.device));
    return {};
  }

  Status reachable(uint32_t space, uint32_t device) const {
    if (space == REGIE_NONE || m_.spaces[space].device == device) return {};
    return bad("runs on device '" + m_.devices[device].name + "', but touches memory space '" +
               m_.spaces[space].name + "' of device '" + m_.devices[m_.spaces[space].device].name +
               "'; a copy must stand between");
  }

  Status copy(const ModelTask& t) const {
    if (t.operands.size() != 1 || t.results.size() != 1 || t.operands[0].kind == Arg::kNone ||
        t.results[0].kind == Arg::kNone)
      return bad("a copy has one operand and one result");
    if (!late_.type(t.operands[0].type) && !late_.type(t.results[0].type) &&
        bytes_[t.operands[0].type] != bytes_[t.results[0].type])
      return bad("copies between tensors of other sizes");
    // Weights are read in the host's memory.
    const uint32_t host = m_.spaces[0].device;
    const uint32_t from =
        t.operands[0].kind == Arg::kWeight ? host : m_.spaces[space_of(t.operands[0])].device;
    const uint32_t to = m_.spaces[space_of(t.results[0])].device;
    const uint32_t owner = from == host ? to : from;
    if (from != host && to != host && from != to)
      return unsupported(place_ + ": a direct copy from device '" + m_.devices[from].name + "' to '" +
                         m_.devices[to].name + "'; copy through the host's memory");
    if (t.device != owner)
      return bad("is on device '" + m_.devices[t.device].name + "', but the memory is that of '" +
                 m_.devices[owner].name + "'");
    return {};
  }

  Status branch(const ModelTask& t) const {
    if (t.operands.empty() || t.operands[0].kind == Arg::kNone ||
        m_.types[t.operands[0].type].elem != REGIE_BOOL ||
        (!late_.type(t.operands[0].type) && bytes_[t.operands[0].type] != 1))
      return bad("its condition is not one bool");
    if (t.programs.size() != 2 || t.program_results.size() != 2)
      return bad("must have two programs and their results");
    for (const std::vector<Arg>& list : t.program_results) {
      REGIE_TRY(args(list, "program result", false));
      if (list.size() != t.results.size()) return bad("its programs give another number of results");
      for (size_t i = 0; i < list.size(); ++i) {
        if (t.results[i].kind == Arg::kNone) continue;
        if (list[i].kind == Arg::kNone) return bad("result " + number(i) + " is absent in a branch");
        if (late_.type(list[i].type) || late_.type(t.results[i].type)) {
          if (m_.types[list[i].type].elem != m_.types[t.results[i].type].elem ||
              m_.types[list[i].type].dims.size() != m_.types[t.results[i].type].dims.size())
            return bad("result " + number(i) + " has another type in a branch");
          continue;
        }
        if (bytes_[list[i].type] != bytes_[t.results[i].type])
          return bad("result " + number(i) + " has another size in a branch");
      }
    }
    return {};
  }

  bool is_scalar(const Arg& a, regie_elem elem, uint64_t bytes) const {
    return !late_.type(a.type) && m_.types[a.type].elem == elem && bytes_[a.type] == bytes;
  }

  Status loop(const ModelTask& t) const {
    if (t.programs.size() != 1 || t.program_results.size() != 1)
      return bad("a loop must have one program and its results");
    const std::vector<Arg>& given = t.program_results[0];
    const std::vector<Arg>& state = t.program_arguments;
    if (t.operands.size() < 2 || state.size() != t.operands.size())
      return bad("a loop has a trip count, a condition and initial values, and an argument for each");
    const size_t carried = t.operands.size() - 2;
    if (t.results.size() < carried || given.size() != t.results.size() + 1)
      return bad("its program gives another number of results");
    REGIE_TRY(args(given, "program result", false));
    REGIE_TRY(args(state, "program argument", true));
    if (t.operands[0].kind != Arg::kNone && !is_scalar(t.operands[0], REGIE_I64, 8))
      return bad("its trip count is not one i64");
    if (t.operands[1].kind != Arg::kNone && !is_scalar(t.operands[1], REGIE_BOOL, 1))
      return bad("its condition is not one bool");
    if (given[0].kind == Arg::kNone || !is_scalar(given[0], REGIE_BOOL, 1))
      return bad("the condition that its program gives is not one bool");
    // The host writes them itself.
    if (state[0].kind != Arg::kNone && (!is_scalar(state[0], REGIE_I64, 8) || space_of(state[0]) != 0))
      return bad("its iteration number is not one i64 in the host's memory");
    if (state[1].kind != Arg::kNone && (!is_scalar(state[1], REGIE_BOOL, 1) || space_of(state[1]) != 0))
      return bad("its program's condition is not one bool in the host's memory");
    for (size_t i = 0; i < carried; ++i) {
      const std::string name = "carried value " + number(i);
      const Arg &to = state[2 + i], &result = t.results[i];
      if (result.kind != Arg::kNone && (result.kind != to.kind || result.index != to.index ||
                                        result.offset != to.offset || result.type != to.type))
        return bad(name + " is handed over in another place than it is carried in");
      if (to.kind == Arg::kNone) continue;
      if (t.operands[2 + i].kind == Arg::kNone || given[1 + i].kind == Arg::kNone)
        return bad(name + " is absent before or after an iteration");
      for (const Arg* other : {&t.operands[2 + i], &given[1 + i]}) {
        if (m_.types[other->type].elem != m_.types[to.type].elem ||
            m_.types[other->type].dims.size() != m_.types[to.type].dims.size())
          return bad(name + " has another type before or after an iteration");
        if (!late_.type(to.type) && !late_.type(other->type) && bytes_[other->type] != bytes_[to.type])
          return bad(name + " has another size before or after an iteration");
      }
      if (late_.arg(to) && to.kind != Arg::kBuffer) return bad(name + " varies in size, but not in a buffer");
    }
    for (size_t i = carried; i < t.results.size(); ++i) {
      if (t.results[i].kind == Arg::kNone) continue;
      const std::string name = "collected value " + number(i - carried);
      if (given[1 + i].kind == Arg::kNone) return bad(name + " is not given by its program");
      const ModelType &whole = m_.types[t.results[i].type], &part = m_.types[given[1 + i].type];
      if (elem_bits(part.elem) < 8)
        return unsupported(place_ + ": elements of less than a byte are collected");
      const bool late = late_.arg(t.results[i]) || late_.type(given[1 + i].type);
      if (whole.elem != part.elem || whole.dims.size() != part.dims.size() + 1 ||
          (!late &&
           !std::equal(whole.dims.begin() + 1, whole.dims.end(), part.dims.begin(), part.dims.end())))
        return bad(name + " is not made of what its program gives");
      if (late && (t.results[i].kind != Arg::kBuffer || t.results[i].offset != 0 ||
                   !late_.buffer(t.results[i].index) || space_of(t.results[i]) != 0))
        return bad(name + " varies in size, but has no buffer of its own in the host's memory for that");
    }
    return {};
  }

  Status output_sources() {
    place_.clear();
    if (m_.output_sources.size() != m_.outputs.size())
      return bad("the outputs' sources do not go with the outputs");
    for (size_t o = 0; o < m_.outputs.size(); ++o) {
      place_ = "output '" + m_.outputs[o].name + "'";
      const Arg& source = m_.output_sources[o];
      if (source.kind == Arg::kNone) return bad("comes from nowhere");
      REGIE_TRY(arg(source, "source", 0));
      if (bytes_[source.type] != bytes_[m_.outputs[o].type]) return bad("its source has another size");
      if (source.kind != Arg::kOutput) continue;
      const Arg& origin = m_.output_sources[source.index];
      if (origin.kind != Arg::kOutput || origin.index != source.index)
        return bad("is a copy of an output that is itself a copy");
      if (source.index == o && source.offset != 0) return bad("is a part of itself");
    }
    place_.clear();
    return {};
  }

  const Model& m_;
  regie_status code_;
  std::string place_;
  LateFacts late_;
  ShapeValues reference_;
  std::vector<uint64_t> bytes_;  // by type, at the reference
  std::vector<bool> loaded_;     // by symbol: an expression uses it
};

}  // namespace

Status check_model_as(const Model& model, regie_status code) { return Checker(model, code).run(); }

Status check_model(const Model& model) { return check_model_as(model, REGIE_INTERNAL); }

}  // namespace regie
