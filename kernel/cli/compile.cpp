// regie compile: built on the embedding API alone.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "explain/explanation.h"
#include "cli/export_plan.h"
#include "cli/opened.h"
#include "cli/progress.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

void line(const std::string& stage, const std::string& text) {
  std::printf("%-10s %s\n", stage.c_str(), text.c_str());
}

std::string count_of(uint64_t n, const std::string& noun) {
  return grouped(n) + " " + noun + (n == 1 ? "" : "s");
}

void print_memory(const Json& report) {
  for (const Json& m : report.value("memory", Json::array())) {
    if (uint64_t n = m.value("late_buffers", uint64_t{0}))
      line("memory", m["space"].get<std::string>() + ": " + count_of(n, "buffer") +
                         " whose size only the run tells, found in memory of the context");
    if (m["buffers"].get<uint64_t>() == 0) continue;
    const auto bound = m.value("one_stream_lower_bound_bytes", uint64_t{0});
    const std::string one = bound ? "; with one stream a device " + grouped(bound) + " live at most" : "";
    line("memory", m["space"].get<std::string>() + ": peak " + grouped(m["arena_bytes"]) +
                       " bytes, lower bound " + grouped(m["lower_bound_bytes"]) +
                       (m["proven_optimal"].get<bool>() ? " (optimal)" : "") + "; " +
                       count_of(m["buffers"], "buffer") + " of " + grouped(m["sum_of_tensors_bytes"]) +
                       " bytes in all" + one);
  }
}

// What formats, engines and order were chosen for, and the peak is of: figures of a plan with symbols say
// little without.
void print_typical(const Json& report) {
  std::string sizes;
  for (const Json& s : report["model"].value("symbols", Json::array()))
    if (!s.value("late", false))
      sizes += (sizes.empty() ? "" : ", ") + s["name"].get<std::string>() + "=" +
               std::to_string(s["reference"].get<int64_t>());
  if (!sizes.empty())
    line("sizes",
         "planned for " + sizes + "; --typical INPUT=16,?,... says what is usual, and other sizes run too");
}

void print_engines(const Json& report) {
  std::string text;
  for (const Json& e : report.value("engines", Json::array())) {
    std::string part = count_of(e["operators"], "operator") + " on " + e["name"].get<std::string>(), more;
    if (uint64_t n = e["reference_operators"]) more = grouped(n) + " by reference kernels";
    if (uint64_t n = e["views"]) more += (more.empty() ? "" : ", ") + grouped(n) + " as views";
    text += (text.empty() ? "" : ", ") + part + (more.empty() ? "" : " (" + more + ")");
  }
  line("engines", text);
  // Who brought an accelerator along wants to know what keeps the model off it.
  for (const Json& e : engines_left_out(report)) {
    std::string why;
    constexpr size_t kMost = 3;
    const Json& reasons = e["not_taken"];
    for (size_t i = 0; i < reasons.size() && i < kMost; ++i)
      why += (i ? "; " : ": ") + not_taken_text(reasons[i]);
    const size_t more =
        reasons.size() - std::min(reasons.size(), kMost) + e.value("further_reasons", size_t{0});
    if (more) why += "; " + count_of(more, "further reason") + " (regie explain)";
    line("not on", e["name"].get<std::string>() + why);
  }
}

// What engines found out about the whole model: what they decided, and for what.
void print_findings(const Json& report) {
  for (const Json& f : report.value("findings", Json::array()))
    line(f["topic"].get<std::string>(), f["engine"].get<std::string>() + ": " + f["text"].get<std::string>());
}

// The plans of a model that has several; the lines above are of the greatest.
void print_plans(const Json& report) {
  const Json& shapes = report.value("shapes", Json::object());
  for (const Json& p : shapes.value("plans", Json::array())) {
    char time[32];
    std::snprintf(time, sizeof time, "%.1f ms", p.value("milliseconds", 0.0));
    const std::string outcome = p.contains("cache") ? p["cache"].value("outcome", "") : "";
    line("plan", p["sizes"].get<std::string>() + ": arena of " + grouped(p["arena_bytes"]) + " bytes, " +
                     (outcome == "hit" ? "from the cache" : "compiled") + " in " + time);
  }
}

void print_cache(const Json& report) {
  const Json& cache = report.value("cache", Json::object());
  std::string text = cache.value("outcome", "");
  if (text.empty() || text == "off") return;
  if (text == "hit") text += " in the " + cache.value("from", "");
  std::string why;
  for (const Json& w : cache.value("why", Json::array()))
    why += (why.empty() ? ": " : "; ") + w.get<std::string>();
  if (const std::string not_stored = cache.value("not_stored", ""); !not_stored.empty())
    why += "; not stored, as " + not_stored;
  line("cache", text + why);
}

void summary(const char* path, const Json& report) {
  line("import", count_of(report["operators_before"], "operator") + " from " + path);
  for (const Json& s : report.value("stages", Json::array())) {
    std::string text = grouped(s["operators_before"]) + " -> " + count_of(s["operators_after"], "operator");
    std::string what;
    for (const auto& [title, n] : s["patches_by_title"].items())
      what += (what.empty() ? ": " : ", ") + title + " x" + grouped(n);
    for (const Json& note : s.value("notes", Json::array())) what += "; " + note.get<std::string>();
    char time[32] = "";
    if (s.contains("milliseconds"))
      std::snprintf(time, sizeof time, " (%.1f ms)", s["milliseconds"].get<double>());
    line(s["name"], text + what + time);
  }
  print_typical(report);
  print_engines(report);
  print_findings(report);
  print_memory(report);
  std::string tasks = count_of(report["tasks"], "task") + " on " + count_of(report["streams"], "stream") +
                      ", " + count_of(report["events"], "event");
  if (report.contains("reuse_events"))
    tasks += ", " + grouped(report["reuse_events"]) + " of them so that buffers share bytes (" +
             grouped(report["reuse_saved_bytes"]) + " bytes fewer)";
  line("tasks", tasks);
  print_plans(report);
  print_cache(report);
}

// The report without its long lists, which a summary does not need; of the model the symbols alone.
Json figures_of(const char* report) {
  static const std::set<std::string> skipped{"placements", "patches", "rules", "notes", "event_reasons"};
  std::string key;
  return Json::parse(report, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key || depth > 2) return true;
    if (depth == 1) key = parsed.get<std::string>();
    return depth == 1 ? !skipped.count(key) : key != "model" || parsed == "symbols";
  });
}

}  // namespace

int command_compile(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output,o", po::value<std::string>(),
                        "where to write the offline model (default: MODEL with the ending .rgm)")(
      "json", "print one JSON object with everything that was decided, instead of the summary")(
      "export-plan", po::value<std::string>(),
      "write every buffer with its lifetime, size and place into this .csv file");
  add_compile_options(&options);
  po::variables_map values;
  if (auto code = parse(arguments, options,
                        {{"MODEL", "the model: .onnx, a graph in text form (.rg), or .rgm to compile again"}},
                        "compile MODEL [-o OUT.rgm] [options]",
                        "  regie compile model.onnx -o model.rgm --shape x=16,1,8,8\n"
                        "  regie compile model.onnx -o model.rgm --shapes 'buckets:x.0=1|4|16'\n"
                        "  regie compile model.onnx --target host_and_null --dump stages",
                        &values))
    return *code;
  std::string path = values["MODEL"].as<std::string>();
  std::string output = values.count("output")
                           ? values["output"].as<std::string>()
                           : std::filesystem::path(path).replace_extension(".rgm").string();
  if (std::error_code error; std::filesystem::equivalent(path, output, error) && !error)
    return report(invalid_input("the output would overwrite the input; name another with -o", output));
  auto pairs = compile_options(values);
  auto list = api_options(pairs);
  regie_model* raw = nullptr;
  {
    ShowProgress progress;
    if (regie_status s = regie_compile_file(path.c_str(), list.data(), list.size(), &raw))
      return report_api(s);
  }
  const std::unique_ptr<regie_model, Release> model(raw);
  if (values.count("export-plan"))
    if (Status s = export_plan(model.get(), values["export-plan"].as<std::string>()); !s.ok())
      return report(s);
  if (regie_status s = regie_model_save(model.get(), output.c_str())) return report_api(s);
  if (values.count("json")) {
    std::printf("%s\n", regie_model_report(model.get()));
  } else {
    summary(path.c_str(), figures_of(regie_model_report(model.get())));
    std::error_code error;  // a device has no size
    const auto size = std::filesystem::file_size(output, error);
    line("wrote", output + (error ? "" : ", " + grouped(size) + " bytes"));
  }
  return 0;
}

}  // namespace regie::cli
