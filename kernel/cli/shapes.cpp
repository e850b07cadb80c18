// regie shapes advise: sizes for --shapes, from a log of shapes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "api/objects.h"
#include "cli/bucket_choice.h"
#include "cli/command.h"
#include "base/json_text.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "model/layout.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr double kLittlePadding = 0.10;  // with so much of it, more plans are not proposed
constexpr double kLittleGain = 0.02;     // nor for less of it than this

// Bytes that the plans take while they run: of a model, its arenas at each combination of sizes (as the
// dynamic plan would lay them out) and inputs and outputs; without one, only the inputs are known, and taken
// for 4 bytes an element.
class Memory {
 public:
  explicit Memory(const Model* model) : model_(model) {}

  Result<uint64_t> of(const TracedShapes& traced, const BucketChoice& choice) const {
    uint64_t sum = 0;
    std::vector<size_t> at(choice.sizes.size());
    for (;;) {
      REGIE_ASSIGN(const uint64_t one, of_one(traced, choice, at));
      sum += one;
      size_t axis = 0;
      while (axis < at.size() && ++at[axis] == choice.sizes[axis].size()) at[axis++] = 0;
      if (axis == at.size()) return sum;
    }
  }

 private:
  Result<uint64_t> of_one(const TracedShapes& traced, const BucketChoice& choice,
                          const std::vector<size_t>& at) const {
    RequestShape shape = traced.rows.front().shape;
    for (size_t a = 0; a < at.size(); ++a)
      for (const auto& [name, axis] : traced.axes[a].places) shape[name][axis] = choice.sizes[a][at[a]];
    uint64_t bytes = 0;
    if (!model_) {
      for (const auto& [name, dims] : shape) bytes += 4 * static_cast<uint64_t>(element_count(dims));
      return bytes;
    }
    std::vector<int64_t> symbols = reference_symbols(*model_);
    for (size_t s = 0; s < symbols.size(); ++s)
      if (const ModelSymbol& symbol = model_->symbols[s]; symbol.input != REGIE_NONE)
        symbols[s] = shape.at(model_->inputs[symbol.input].name)[symbol.axis];
    REGIE_ASSIGN(const ShapeValues values, evaluate_shapes(*model_, std::move(symbols)));
    REGIE_ASSIGN(const Placement places, place_buffers(*model_, values));
    for (uint64_t b : places.space_bytes) bytes += b;
    for (const std::vector<ModelPort>* list : {&model_->inputs, &model_->outputs})
      for (const ModelPort& p : *list) {
        REGIE_ASSIGN(const uint64_t own, bytes_at(*model_, p.type, values));
        bytes += own;
      }
    return bytes;
  }

  const Model* model_;
};

// The log is of this model, as far as one can see.
Status check_model_fits(const Model& m, const TracedShapes& traced) {
  const RequestShape& shape = traced.rows.front().shape;
  for (const ModelPort& p : m.inputs) {
    const auto it = shape.find(p.name);
    if (it == shape.end()) return invalid_input("the log has no input '" + p.name + "', which the model has");
    const ModelType& t = m.types[p.type];
    if (it->second.size() != t.dims.size())
      return invalid_input("input '" + p.name + "' is " + dims_text(m, t.dims) + " in the model, and has " +
                           std::to_string(it->second.size()) + " dimensions in the log");
    for (const TracedAxis& a : traced.axes)
      for (const auto& [name, axis] : a.places)
        if (name == p.name && t.dims[axis] >= 0)
          return invalid_input("axis " + std::to_string(axis) + " of input '" + name + "' is " +
                               std::to_string(t.dims[axis]) +
                               " in the model, and has several sizes in the log");
  }
  return {};
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

int advise(const po::variables_map& values) {
  const uint64_t most = values["most"].as<uint64_t>();
  const double cover = values["cover"].as<double>();
  if (most < 1 || most > 64) return report(invalid_input("--most must be from 1 to 64"));
  if (!(cover > 0 && cover <= 1)) return report(invalid_input("--cover must be above 0, and 1 at most"));
  auto trace = read_shape_trace(values["TRACE"].as<std::string>());
  if (!trace.ok()) return report(trace.status());
  const TracedShapes traced = group_shapes(*trace);
  std::unique_ptr<regie_model, Release> model;
  if (values.count("MODEL")) {
    const std::string path = values["MODEL"].as<std::string>();
    const ShowProgress progress;
    regie_model* raw = nullptr;
    if (regie_status s = regie_compile_file(path.c_str(), nullptr, 0, &raw)) return report_api(s);
    model.reset(raw);
    if (Status s = check_model_fits(*model->model, traced); !s.ok())
      return report(std::move(s.set_where(path)));
  }
  if (traced.axes.empty())
    return report(invalid_input("all " + std::to_string(traced.requests) +
                                    " requests have one shape: fix it with --shape " +
                                    to_text(traced.rows.front().shape),
                                values["TRACE"].as<std::string>()));
  const Memory memory(model ? model->model.get() : nullptr);
  std::vector<BucketChoice> choices;
  std::vector<size_t> at_most;  // plans that each was looked for with
  std::vector<uint64_t> bytes;
  for (size_t plans = 1; plans <= most; ++plans) {
    BucketChoice c = choose_buckets(traced, plans, cover);
    // With a plan more there may be nothing better: then it is the same row again.
    if (std::any_of(choices.begin(), choices.end(),
                    [&](const BucketChoice& before) { return before.sizes == c.sizes; }))
      continue;
    auto need = memory.of(traced, c);
    if (!need.ok()) return report(need.status());
    choices.push_back(std::move(c));
    at_most.push_back(plans);
    bytes.push_back(*need);
  }
  size_t proposed = 0;
  while (proposed + 1 < choices.size() && choices[proposed].padding > kLittlePadding) {
    size_t next = proposed + 1;  // some numbers of plans divide badly
    while (next + 1 < choices.size() && choices[next].padding > choices[proposed].padding - kLittleGain)
      ++next;
    if (choices[next].padding > choices[proposed].padding - kLittleGain) break;
    proposed = next;
  }
  const std::string spec = choices[proposed].spec(traced);
  if (values.count("json")) {
    Json j{{"requests", traced.requests}, {"shapes", traced.rows.size()}, {"axes", Json::array()}};
    for (const TracedAxis& a : traced.axes) {
      Json places = Json::array();
      for (const auto& [name, axis] : a.places) places.push_back(name + "." + std::to_string(axis));
      j["axes"].push_back({{"places", places}, {"sizes", a.sizes}});
    }
    j["memory_of"] = model ? "arenas, inputs and outputs" : "inputs, 4 bytes an element";
    j["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i)
      j["choices"].push_back({{"most_plans", at_most[i]},
                              {"plans", choices[i].plans},
                              {"hit_rate", choices[i].served},
                              {"exact", choices[i].exact},
                              {"padding", choices[i].padding},
                              {"memory_bytes", bytes[i]},
                              {"sizes", choices[i].sizes},
                              {"shapes", choices[i].spec(traced)}});
    j["proposed"] = spec;
    std::fputs(json_text(j).c_str(), stdout);
    return 0;
  }
  std::printf("%llu requests of %zu shapes; %zu ax%s var%s\n",
              static_cast<unsigned long long>(traced.requests), traced.rows.size(), traced.axes.size(),
              traced.axes.size() == 1 ? "is" : "es", traced.axes.size() == 1 ? "ies" : "y");
  std::printf("plans  hit rate    exact  padding  %12s  --shapes\n", model ? "memory MiB" : "inputs MiB");
  for (size_t i = 0; i < choices.size(); ++i)
    std::printf("%5zu  %8s %8s %8s  %12.2f  %s%s\n", choices[i].plans, percent(choices[i].served).c_str(),
                percent(choices[i].exact).c_str(), percent(choices[i].padding).c_str(),
                static_cast<double>(bytes[i]) / 1048576, choices[i].spec(traced).c_str(),
                i == proposed ? "  <" : "");
  std::printf("\n--shapes '%s'\n", spec.c_str());
  return 0;
}

}  // namespace

int command_shapes(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] != "advise" && arguments[0] != "-h" && arguments[0] != "--help") {
    std::fprintf(stderr, "regie: there is no 'regie shapes %s'; there is: regie shapes advise TRACE\n",
                 arguments[0].c_str());
    return 2;
  }
  po::options_description options("Options");
  options.add_options()("most", po::value<uint64_t>()->default_value(8), "plans at most")(
      "cover", po::value<double>()->default_value(1.0, "1"),
      "share of the requests that must have a plan; the largest ones are left out first")(
      "json", "print one JSON object instead of the table");
  po::variables_map values;
  Arguments rest(arguments.empty() ? arguments.begin() : arguments.begin() + (arguments[0] == "advise"),
                 arguments.end());
  if (auto code = parse(rest, options,
                        {{"TRACE", "a log of shapes: a line like {\"x\":[1,3,320,320]} for each request"},
                         {"[MODEL]", "the model, for the memory of its plans"}},
                        "shapes advise TRACE [MODEL] [--most 8] [--cover 1] [--json]",
                        "  regie run model.rgm --random 1 --shape x=3,1,8,8 --shape-log trace.jsonl\n"
                        "  regie run model.rgm --random 1 --shape x=9,1,8,8 --shape-log trace.jsonl\n"
                        "  regie shapes advise trace.jsonl model.onnx",
                        &values))
    return *code;
  return advise(values);
}

}  // namespace regie::cli
