#include "model/strings.h"

#include <algorithm>
#include <vector>

#include "model/model_check.h"

namespace regie {

namespace {

class StringCheck : ModelCheck {
 public:
  StringCheck(const Model& model, regie_status code)
      : ModelCheck(model, code), holds_(model.buffers.size()) {}

  Status run() {
    if (std::none_of(m_.types.begin(), m_.types.end(),
                     [](const ModelType& t) { return t.elem == REGIE_STRING; }))
      return {};
    for (const ModelProgram& program : m_.programs)
      for (const ModelTask& task : program.tasks) {
        place_ = task.name;
        for (const auto* list : {&task.operands, &task.results, &task.program_arguments})
          for (const Arg& a : *list) REGIE_TRY(place(a));
        for (const std::vector<Arg>& list : task.program_results)
          for (const Arg& a : list) REGIE_TRY(place(a));
        if (task.kind == TaskKind::kLoop) REGIE_TRY(loop(task));
      }
    for (size_t o = 0; o < m_.outputs.size(); ++o) {
      place_ = "output '" + m_.outputs[o].name + "'";
      REGIE_TRY(place(m_.output_sources[o]));
      if (is_string(m_.output_sources[o].type) != is_string(m_.outputs[o].type))
        return bad("strings and other elements are taken for each other");
    }
    std::vector<bool> written(m_.buffers.size());
    std::vector<bool> given(m_.outputs.size());
    REGIE_TRY(program(0, &written, &given));
    for (size_t o = 0; o < m_.outputs.size(); ++o) {
      const Arg& source = m_.output_sources[o];
      if (!is_string(source.type)) continue;
      place_ = "output '" + m_.outputs[o].name + "'";
      REGIE_TRY(read(source, written, given));
    }
    return {};
  }

 private:
  enum Holding : uint8_t { kNothing, kStrings, kOthers };

  bool is_string(uint32_t type) const { return m_.types[type].elem == REGIE_STRING; }

  // What an argument takes for strings is strings for all others too.
  Status place(const Arg& a) {
    const bool strings = a.kind != Arg::kNone && is_string(a.type);
    switch (a.kind) {
      case Arg::kNone:
        return {};
      case Arg::kWeight:
        return strings ? Status::error(REGIE_UNSUPPORTED, "constants of type string cannot be stored", place_)
                       : Status();
      case Arg::kInput:
      case Arg::kOutput:
        if (strings == is_string((a.kind == Arg::kInput ? m_.inputs : m_.outputs)[a.index].type) &&
            (!strings || a.offset == 0))
          return {};
        break;
      case Arg::kBuffer: {
        const uint8_t holding = strings ? kStrings : kOthers;
        uint8_t& known = holds_[a.index];
        if (known == kNothing) known = holding;
        if (known == holding &&
            (!strings || (a.offset == 0 && m_.buffers[a.index].alignment >= alignof(regie_str))))
          return {};
        break;
      }
    }
    return bad("strings and other elements are taken for each other");
  }

  Status loop(const ModelTask& task) const {
    for (const auto* list : {&task.operands, &task.results, &task.program_arguments})
      for (const Arg& a : *list)
        if (a.kind != Arg::kNone && is_string(a.type))
          return Status::error(REGIE_UNSUPPORTED, "strings are not carried from one iteration to the next",
                               place_);
    return {};
  }

  Status read(const Arg& a, const std::vector<bool>& written, const std::vector<bool>& given) const {
    if (a.kind == Arg::kNone || !is_string(a.type)) return {};
    if ((a.kind == Arg::kBuffer && !written[a.index]) || (a.kind == Arg::kOutput && !given[a.index]))
      return bad("reads strings that nothing has written");
    return {};
  }

  // In issue order, which is the order of the work wherever one task reads what another wrote. What a branch
  // writes is its own: its results are handed over by the task that runs it.
  Status program(uint32_t index, std::vector<bool>* written, std::vector<bool>* given) {
    for (const ModelTask& task : m_.programs[index].tasks) {
      place_ = task.name;
      for (const Arg& a : task.operands) REGIE_TRY(read(a, *written, *given));
      for (size_t p = 0; p < task.programs.size(); ++p) {
        std::vector<bool> inner = *written, outputs = *given;
        REGIE_TRY(program(task.programs[p], &inner, &outputs));
        place_ = task.name;
        for (const Arg& a : task.program_results[p]) REGIE_TRY(read(a, inner, outputs));
      }
      for (const Arg& a : task.results) {
        if (a.kind == Arg::kBuffer) (*written)[a.index] = true;
        if (a.kind == Arg::kOutput) (*given)[a.index] = true;
      }
    }
    return {};
  }

  std::vector<uint8_t> holds_;  // by buffer: Holding
};

}  // namespace

Status check_strings(const Model& model, regie_status code) { return StringCheck(model, code).run(); }

}  // namespace regie
