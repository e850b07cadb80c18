// Pipelines: which passes run in which stage, read from TOML (configs/pipelines, overlays, or a path). See
// docs/pipeline.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plugins/host.h"

namespace regie {

struct PassUse {
  std::string name;
  // Where the pipeline offers several passes for this place: what the choice is called, and {value, pass}.
  std::string choice;
  std::vector<std::pair<std::string, std::string>> alternatives;
  std::vector<std::pair<std::string, std::string>> options;  // text; lists are comma separated
  std::string where;                                         // file:line
};

struct Stage {
  std::string name;
  bool until_stable = false;
  int64_t max_rounds = 8;
  std::vector<PassUse> passes;
};

// The user's word on which engine computes a node: one with this name, or that came from one, or all of an
// operator.
struct ForcedEngine {
  std::string engine, node, op;  // one of node and op is empty
  std::string where;
};

struct Pipeline {
  std::string name;
  std::vector<Stage> stages;
  std::vector<std::string> choices;  // names of them
  std::vector<ForcedEngine> forced;
  std::vector<std::pair<std::string, std::string>> short_names;  // {"streams", "schedule-on-streams.streams"}
  std::string digest_text;                                       // canonical text: part of a model's identity
};

// `name_or_path`: a name in configs/pipelines or a path that ends in .toml. Follows `extends` (cycles are an
// error). `settings`: those without a dot, {"placement", "greedy"}, choose among the alternatives of a place.
Result<Pipeline> load_pipeline(const PluginHost& host, std::string_view name_or_path,
                               const std::vector<std::pair<std::string, std::string>>& settings);
// One stage called "opt" with these passes, comma separated.
Result<Pipeline> pipeline_from_list(std::string_view passes);

}  // namespace regie
