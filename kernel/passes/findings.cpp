#include "passes/findings.h"

#include <algorithm>
#include <cstdlib>

#include "base/hash.h"
#include "passes/kernel_cache.h"
#include "plugins/host_interfaces.h"
#include "regie/c/findings.h"

namespace regie {

namespace {

// Kept beside the engine's kernels: it is one more thing that the engine was asked for.
constexpr std::string_view kFormat = "regie.finding";

thread_local CompileState* current = nullptr;

CompileState* state_of(const regie_graph* graph, uint32_t engine = 0) {
  if (!current || !graph || !current->graph || graph->nodes != current->graph->view().nodes ||
      engine >= current->engines.size())
    return nullptr;
  return current;
}

uint64_t revision(const regie_graph* graph) {
  const CompileState* state = state_of(graph);
  return state ? state->graph->revision() : 0;
}

std::string request_of(const CompileState& state, regie_str question) {
  return Hasher().text(kFormat).text(graph_request(state)).text(view(question)).hex();
}

void recall(const regie_graph* graph, uint32_t engine, regie_str question,
            void (*take)(void* to, const void* bytes, uint64_t size), void* to) {
  const CompileState* state = state_of(graph, engine);
  if (!state || !state->options.kernels || !take) return;
  const auto known = state->options.kernels->find(engine, [&] { return request_of(*state, question); });
  if (known && known->format == kFormat) take(to, known->blob.data(), known->blob.size());
}

void keep(const regie_graph* graph, uint32_t engine, regie_str question, const void* bytes, uint64_t size,
          uint64_t nanoseconds) {
  const CompileState* state = state_of(graph, engine);
  if (!state || !state->options.kernels || (size && !bytes)) return;
  CompiledKernel finding;
  finding.format = kFormat;
  finding.blob.assign(static_cast<const char*>(bytes), size);
  state->options.kernels->keep(
      engine, [&] { return request_of(*state, question); }, finding, nanoseconds);
}

void note(const regie_graph* graph, uint32_t engine, uint32_t node, regie_str kind, regie_str text) {
  CompileState* state = state_of(graph, engine);
  if (!state || !state->graph->live(node)) return;
  state->ledger.note(state->engines[engine].name, state->graph->describe_node(node), view(kind), view(text));
}

void tell(const regie_graph* graph, uint32_t engine, regie_str topic, regie_str text,
          const regie_config* figures) {
  CompileState* state = state_of(graph, engine);
  if (!state) return;
  FindingRecord record{state->engines[engine].name, std::string(view(topic)), std::string(view(text)), {}};
  for (uint32_t i = 0; figures && i < figures->count; ++i)
    record.figures.emplace_back(view(figures->settings[i].key),
                                std::strtod(std::string(view(figures->settings[i].value)).c_str(), nullptr));
  auto& all = state->ledger.findings;
  std::erase_if(all,
                [&](const FindingRecord& f) { return f.engine == record.engine && f.topic == record.topic; });
  all.push_back(std::move(record));
}

constexpr regie_host_findings kFindings = {
    sizeof(regie_host_findings), 0, revision, recall, keep, note, tell};

}  // namespace

FindingsCall::FindingsCall(CompileState& state) : before_(current) {
  static const bool offered = [] {
    offer_host_interface(REGIE_HOST_FINDINGS_ID, &kFindings);
    return true;
  }();
  (void)offered;
  current = &state;
}

FindingsCall::~FindingsCall() { current = before_; }

}  // namespace regie
