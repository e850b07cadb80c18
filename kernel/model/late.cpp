#include "model/late.h"

#include <algorithm>

namespace regie {

// Called before a file's indices are checked, too: what is out of range is not late.
LateFacts::LateFacts(const Model& m)
    : symbols(m.symbols.size()),
      expressions(m.expressions.size()),
      types(m.types.size()),
      buffers(m.buffers.size()),
      outputs(m.outputs.size()) {
  for (const ModelProgram& p : m.programs)
    for (const ModelTask& t : p.tasks) {
      any_ = any_ || !t.shape_op.empty();
      for (const ModelDefine& d : t.defines)
        if (d.symbol < symbols.size()) any_ = symbols[d.symbol] = true;
    }
  if (!any_) return;
  for (size_t e = 0; e < expressions.size(); ++e) {
    const std::vector<int64_t>& words = m.expressions[e].words;
    for (size_t w = 0; w + 1 < words.size(); w += 2)
      if (words[w] == DimCode::kLoad && words[w + 1] >= 0 &&
          static_cast<size_t>(words[w + 1]) < symbols.size() && symbols[static_cast<size_t>(words[w + 1])])
        expressions[e] = true;
  }
  auto late = [&](ModelDim d) {
    return d < 0 && static_cast<size_t>(-(d + 1)) < expressions.size() && dim(d);
  };
  for (size_t t = 0; t < types.size(); ++t)
    types[t] = std::any_of(m.types[t].dims.begin(), m.types[t].dims.end(), late);
  for (size_t b = 0; b < buffers.size(); ++b) buffers[b] = late(m.buffers[b].size);
  for (size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = m.outputs[o].type < types.size() && types[m.outputs[o].type];
}

bool LateFacts::place(const Arg& a) const {
  return (a.kind == Arg::kBuffer && buffers[a.index]) || (a.kind == Arg::kOutput && outputs[a.index]);
}

bool LateFacts::task(const ModelTask& t) const {
  if (!any_) return false;
  auto some = [&](const std::vector<Arg>& list) {
    return std::any_of(list.begin(), list.end(), [&](const Arg& a) { return arg(a); });
  };
  return !t.shape_op.empty() || !t.defines.empty() || some(t.operands) || some(t.results) ||
         some(t.program_arguments) || std::any_of(t.program_results.begin(), t.program_results.end(), some);
}

}  // namespace regie
