#include <algorithm>
#include <cstdio>

#include "base/elem.h"
#include "base/file.h"
#include "model/file.h"
#include "regie/c/engine.h"
#include "model/late.h"
#include "model/layout.h"
#include "model/plan_set.h"
#include "model/sections.h"

namespace regie {

namespace {

std::string port_line(const Model& m, const ModelPort& port) {
  const ModelType& type = m.types[port.type];
  std::string text = "  " + port.name + ": " + std::string(elem_name(type.elem)) + dims_text(m, type.dims);
  if (port.default_weight != REGIE_NONE) {
    const ModelType& own = m.types[port.default_type];
    text += "; if not given, weight " + std::to_string(port.default_weight) + ": " +
            std::string(elem_name(own.elem)) + dims_text(m, own.dims);
  }
  if (port.shape != REGIE_NONE) text += ", of the dimensions in " + m.outputs[port.shape].name;
  return text + "\n";
}

std::string arg_text(const Model& m, const Arg& a) {
  if (a.kind == Arg::kNone) return "-";
  const ModelType& type = m.types[a.type];
  std::string text;
  switch (a.kind) {
    case Arg::kBuffer:
      text = "%" + m.buffers[a.index].name;
      break;
    case Arg::kWeight:
      text = "weight " + std::to_string(a.index);
      break;
    case Arg::kInput:
      text = "input " + m.inputs[a.index].name;
      break;
    default:
      text = "output " + m.outputs[a.index].name;
      break;
  }
  if (a.offset) text += "+" + std::to_string(a.offset);
  return text + ": " + std::string(elem_name(type.elem)) + dims_text(m, type.dims);
}

std::string args_text(const Model& m, const std::vector<Arg>& args) {
  std::string text;
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + arg_text(m, args[i]);
  return text;
}

std::string task_text(const Model& m, const ModelTask& t, size_t index) {
  std::string text = "  " + std::to_string(index) + " ";
  switch (t.kind) {
    case TaskKind::kLaunch:
      text += m.kernels[t.kernel].name + " (" + m.kernels[t.kernel].format + ")";
      break;
    case TaskKind::kCopy:
      text += "copy";
      break;
    case TaskKind::kDefine:
      text += "shape of a view";
      break;
    case TaskKind::kIf:
      text += "if, programs " + std::to_string(t.programs[0]) + " and " + std::to_string(t.programs[1]);
      break;
    case TaskKind::kLoop:
      text += "loop, program " + std::to_string(t.programs[0]);
      break;
  }
  text += " on " + m.devices[t.device].name + "/" + std::to_string(t.stream);
  if (t.threads > 1) text += " x" + std::to_string(t.threads);
  if (!t.name.empty()) text += "  # " + t.name;
  text += "\n      (" + args_text(m, t.operands) + ") -> (" + args_text(m, t.results) + ")";
  if (t.kind == TaskKind::kLoop)
    text += "\n      each time (" + args_text(m, t.program_arguments) + ") -> (" +
            args_text(m, t.program_results[0]) + ")";
  for (size_t i = 0; i < t.defines.size(); ++i)
    text += (i ? ", " : " defines ") + m.symbols[t.defines[i].symbol].name;
  if (t.scratch != REGIE_NONE) text += " scratch %" + m.buffers[t.scratch].name;
  for (size_t i = 0; i < t.waits.size(); ++i) text += (i ? ", " : " waits for ") + std::to_string(t.waits[i]);
  return text + "\n";
}

std::string model_text(const Model& m, const std::string& path, std::span<const std::byte> file,
                       const std::vector<Section>& sections) {
  std::string text = "model " + (m.name.empty() ? path : m.name) + "\n";
  auto line = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += std::string(key) + ": " + value + "\n";
  };
  line("format version", std::to_string(kModelFormatVersion));
  line("producer", m.producer);
  line("target", m.target);
  line("pipeline", m.pipeline);
  line("source", m.source_digest);
  for (const std::string& p : m.plugins) line("plug-in", p);
  for (const auto& [key, value] : m.options) line("option", key + "=" + value);
  text += "sections:\n";
  for (const Section& s : sections) {
    std::string name = section_name(s.kind);
    std::erase(name, '\'');
    text += "  " + name + ": " + std::to_string(s.bytes.size()) + " bytes at " +
            std::to_string(s.bytes.data() - file.data()) + "\n";
  }
  if (!m.symbols.empty()) text += "symbols:\n";
  const LateFacts late(m);
  for (size_t i = 0; i < m.symbols.size(); ++i) {
    const ModelSymbol& s = m.symbols[i];
    text +=
        "  " + s.name + " in " + std::to_string(s.lower) + ".." +
        (s.upper == INT64_MAX ? "" : std::to_string(s.upper)) +
        (late.symbols[i] ? ", known when a task has run" : ", planned for " + std::to_string(s.reference)) +
        "\n";
  }
  text += "inputs:\n";
  for (const ModelPort& p : m.inputs) text += port_line(m, p);
  text += "outputs:\n";
  for (const ModelPort& p : m.outputs) text += port_line(m, p);
  text += "memory:\n";
  for (const ModelSpace& s : m.spaces) {
    char share[32] = "";
    if (s.lower_bound)
      std::snprintf(share, sizeof share, " (x%.3f)",
                    static_cast<double>(s.arena_bytes) / static_cast<double>(s.lower_bound));
    text += "  " + s.name + " of " + m.devices[s.device].name + ": " + std::to_string(s.arena_bytes) +
            " bytes, lower bound " + std::to_string(s.lower_bound) + share + "\n";
  }
  if (const auto count = std::count(late.buffers.begin(), late.buffers.end(), true))
    text +=
        "  " + std::to_string(count) + " buffers of sizes that only the run tells, outside of the arenas\n";
  uint64_t weight_bytes = 0;
  for (const ModelWeight& w : m.weights) weight_bytes += w.size;
  text += "weights: " + std::to_string(m.weights.size()) + ", " + std::to_string(weight_bytes) + " bytes\n";
  size_t reference = 0;
  for (const ModelKernel& k : m.kernels) reference += (k.flags & REGIE_KERNEL_REFERENCE) != 0;
  text += "kernels: " + std::to_string(m.kernels.size()) + ", " + std::to_string(reference) +
          " of them reference kernels\n";
  for (size_t p = 0; p < m.programs.size(); ++p) {
    text += "program " + std::to_string(p) + ": " + std::to_string(m.programs[p].tasks.size()) + " tasks\n";
    for (size_t t = 0; t < m.programs[p].tasks.size(); ++t) text += task_text(m, m.programs[p].tasks[t], t);
  }
  return text;
}

}  // namespace

Result<std::string> inspect_model(const std::string& path) {
  REGIE_ASSIGN(const std::shared_ptr<const PlanSet> set, load_plan_set(path));
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  REGIE_ASSIGN(const std::vector<Section> sections, read_sections(file.bytes(), path));
  if (!set) {
    REGIE_ASSIGN(const std::shared_ptr<const Model> model, load_model(path));
    return model_text(*model, path, file.bytes(), sections);
  }
  std::string text = "plans for several sizes: " + to_text(set->spec) + ", padding " +
                     to_text(set->spec.padding) + ", overflow " + to_text(set->spec.overflow) + "\n";
  for (size_t p = 0; p < set->plans.size(); ++p)
    text += "\nplan " + set->plan_text(p) + ":\n" + model_text(*set->plans[p], path, file.bytes(), sections);
  if (set->dynamic) text += "\ndynamic plan:\n" + model_text(*set->dynamic, path, file.bytes(), sections);
  return text;
}

}  // namespace regie
