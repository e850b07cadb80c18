#include "model/task_check.h"

#include <algorithm>
#include <string>

#include "model/check.h"
#include "model/model_check.h"
#include "model/shape_op.h"

namespace regie {

namespace {

class TaskCheck : ModelCheck {
 public:
  TaskCheck(const Model& model, const ReferenceFacts& reference, regie_status code)
      : ModelCheck(model, code), late_(reference.late), shapes_(reference.shapes), bytes_(reference.bytes) {}

  Status run() {
    for (size_t p = 0; p < m_.programs.size(); ++p)
      for (size_t t = 0; t < m_.programs[p].tasks.size(); ++t) {
        const ModelTask& task = m_.programs[p].tasks[t];
        place_ = "task " + number(t) + " of program " + number(p);
        if (!task.name.empty()) place_ += " (" + task.name + ")";
        REGIE_TRY(this->task(task, static_cast<uint32_t>(t)));
      }
    return output_sources();
  }

 private:
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
      if (!late_.buffer(a.index)) room = static_cast<uint64_t>(shapes_.at(m_.buffers[a.index].size));
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

  // Of one element type, with as many dimensions.
  bool alike(const Arg& a, const Arg& b) const {
    const ModelType &x = m_.types[a.type], &y = m_.types[b.type];
    return x.elem == y.elem && x.dims.size() == y.dims.size();
  }

  // As far as it is known before the run.
  bool same_bytes(const Arg& a, const Arg& b) const {
    return late_.type(a.type) || late_.type(b.type) || bytes_[a.type] == bytes_[b.type];
  }

  bool is_scalar(const Arg& a, regie_elem elem, uint64_t bytes) const {
    return !late_.type(a.type) && m_.types[a.type].elem == elem && bytes_[a.type] == bytes;
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
      if (!is_symbol(dims[d.axis], d.symbol))
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
    if (!same_bytes(t.operands[0], t.results[0])) return bad("copies between tensors of other sizes");
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
          if (!alike(list[i], t.results[i]))
            return bad("result " + number(i) + " has another type in a branch");
        } else if (bytes_[list[i].type] != bytes_[t.results[i].type]) {
          return bad("result " + number(i) + " has another size in a branch");
        }
      }
    }
    return {};
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
        if (!alike(*other, to)) return bad(name + " has another type before or after an iteration");
        if (!same_bytes(*other, to)) return bad(name + " has another size before or after an iteration");
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

  const LateFacts& late_;
  const ShapeValues& shapes_;
  const std::vector<uint64_t>& bytes_;
};

}  // namespace

Status check_tasks(const Model& model, const ReferenceFacts& reference, regie_status code) {
  return TaskCheck(model, reference, code).run();
}

}  // namespace regie
