// regie plan-memory: a raw memory problem to a plan, by a planner that is found like any other plug-in.
#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "cli/buffers_csv.h"
#include "cli/command.h"
#include "base/json_text.h"
#include "cli/memory_svg.h"
#include "model/packing_check.h"
#include "plugins/host.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHoldersShown = 8;

struct Plan {
  std::string file, planner, effort, seconds;
  BufferTable table;
  std::vector<uint64_t> offsets;
  regie_memory_answer answer{};
  uint64_t capacity = UINT64_MAX;
  bool met = true, verified = false;
  PackingFacts facts;
  std::vector<size_t> holders;  // live at facts.most_at, the largest first
  std::vector<size_t> top;      // end at the peak

  std::vector<PackedBuffer> packed() const {
    std::vector<PackedBuffer> buffers;
    buffers.reserve(offsets.size());
    for (size_t i = 0; i < offsets.size(); ++i) {
      const regie_memory_buffer& b = table.buffers[i];
      buffers.push_back({b.lower, b.upper, b.size, b.alignment, offsets[i]});
    }
    return buffers;
  }
};

Result<uint64_t> whole_option(const po::variables_map& values, const char* name, uint64_t fallback) {
  if (!values.count(name)) return fallback;
  const std::string text = values[name].as<std::string>();
  uint64_t value = 0;
  if (!parse_whole(text, &value))
    return invalid_input("--" + std::string(name) + " must be a whole number of at most 64 bits, not '" +
                         text + "'");
  return value;
}

// Fixed buffers that meet are the file's fault, so the file's lines are named.
Status check_fixed(const BufferTable& table, const std::string& path) {
  std::vector<PackedBuffer> fixed;
  std::vector<size_t> rows;
  for (size_t i = 0; i < table.buffers.size(); ++i) {
    const regie_memory_buffer& b = table.buffers[i];
    if (b.offset == REGIE_OFFSET_FREE) continue;
    fixed.push_back({b.lower, b.upper, b.size, b.alignment, b.offset});
    rows.push_back(i);
  }
  const auto fault = find_packing_fault(fixed);
  if (!fault) return {};
  const auto [a, b] = std::minmax(rows[fault->first], rows[fault->second]);
  return invalid_input("buffer '" + std::string(table.ids[b]) + "' is fixed at " +
                           std::to_string(table.buffers[b].offset) + ", where buffer '" +
                           std::string(table.ids[a]) + "' of line " + std::to_string(table.lines[a]) +
                           " is fixed at the same time",
                       path + ":" + std::to_string(table.lines[b]));
}

Status run_planner(const po::variables_map& values, Plan* plan) {
  REGIE_ASSIGN(auto plugins, plugin_host(values));
  REGIE_ASSIGN(const auto planner, plugins->memory(plan->planner));
  const regie_pass_info& info = planner.table->planners[planner.index];

  std::vector<std::pair<std::string, std::string>> options;
  for (const char* key : {"effort", "seconds"}) {
    if (!values.count(key)) continue;
    bool known = false;
    for (uint32_t i = 0; i < info.option_count; ++i)
      known |= std::string_view(info.options[i].key.data, info.options[i].key.size) == key;
    if (!known) return invalid_input("planner '" + plan->planner + "' has no --" + std::string(key));
    options.emplace_back(key, values[key].as<std::string>());
  }
  std::vector<regie_setting> settings;
  for (const auto& [k, v] : options) settings.push_back({{k.data(), k.size()}, {v.data(), v.size()}});
  const regie_config config{static_cast<uint32_t>(settings.size()), 0, settings.data()};

  regie_memory_problem problem{};
  problem.struct_size = sizeof(problem);
  problem.buffer_count = plan->table.buffers.size();
  problem.buffers = plan->table.buffers.data();
  problem.capacity = plan->capacity;
  plan->offsets.assign(plan->table.buffers.size(), 0);
  const Status status = call_plugin("planner '" + plan->planner + "'", [&] {
    return planner.table->plan(planner.index, host_table(), &config, &problem, plan->offsets.data(),
                               &plan->answer);
  });
  plan->met = status.ok();
  // Too little room is an answer, with the best plan that was found; everything else is a failure.
  if (status.ok() || (status.code() == REGIE_LIMIT && plan->answer.peak > plan->capacity)) return {};
  return Status::error(status.code(), status.message(), plan->file);
}

Status verify_plan(const Plan& plan) {
  const std::string who = "planner '" + plan.planner + "' gave a wrong plan: ";
  const auto& ids = plan.table.ids;
  for (size_t i = 0; i < plan.offsets.size(); ++i) {
    const uint64_t fixed = plan.table.buffers[i].offset;
    if (fixed != REGIE_OFFSET_FREE && plan.offsets[i] != fixed)
      return internal_error(who + "buffer '" + std::string(ids[i]) + "' is not where it is fixed");
  }
  const std::vector<PackedBuffer> packed = plan.packed();
  if (const auto fault = find_packing_fault(packed)) {
    const std::string first = "buffer '" + std::string(ids[fault->first]) + "'";
    switch (fault->kind) {
      case PackingFault::kOverlap:
        return internal_error(who + first + " and buffer '" + std::string(ids[fault->second]) +
                              "' share bytes");
      case PackingFault::kMisaligned:
        return internal_error(who + first + " is not aligned");
      case PackingFault::kEndless:
        return internal_error(who + first + " ends beyond 64 bits");
    }
  }
  if (plan.facts.peak != plan.answer.peak)
    return internal_error(who + "it says that its peak is " + std::to_string(plan.answer.peak) +
                          ", but it is " + std::to_string(plan.facts.peak));
  if (plan.facts.most_live > plan.facts.peak || (plan.met && plan.facts.peak > plan.capacity) ||
      plan.answer.lower_bound > plan.facts.peak)
    return internal_error(who + "peak, bound and capacity contradict each other");
  return {};
}

void describe(Plan* plan) {
  plan->facts = packing_facts(plan->packed());
  const auto& buffers = plan->table.buffers;
  const uint64_t at = plan->facts.most_at;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == 0) continue;
    if (buffers[i].lower <= at && at < buffers[i].upper) plan->holders.push_back(i);
    if (plan->offsets[i] + buffers[i].size == plan->facts.peak) plan->top.push_back(i);
  }
  std::stable_sort(plan->holders.begin(), plan->holders.end(),
                   [&](size_t a, size_t b) { return buffers[a].size > buffers[b].size; });
}

std::string conclusion(const Plan& plan) {
  if (!plan.met)
    return plan.answer.proven_infeasible
               ? "no plan meets the capacity (proven)"
               : "the capacity is not met; whether another plan meets it is not known";
  return plan.answer.proven_optimal ? "proven optimal" : "not proven optimal";
}

Json buffer_json(const Plan& plan, size_t i) {
  const regie_memory_buffer& b = plan.table.buffers[i];
  return {{"id", std::string(plan.table.ids[i])},
          {"lower", b.lower},
          {"upper", b.upper},
          {"size", b.size},
          {"offset", plan.offsets[i]}};
}

std::string to_json(const Plan& plan) {
  Json holders = Json::array(), top = Json::array();
  for (size_t k = 0; k < std::min(plan.holders.size(), kHoldersShown); ++k)
    holders.push_back(buffer_json(plan, plan.holders[k]));
  for (size_t k = 0; k < std::min(plan.top.size(), kHoldersShown); ++k)
    top.push_back(buffer_json(plan, plan.top[k]));
  Json all = {{"file", plan.file},
              {"planner", plan.planner},
              {"effort", plan.effort},
              {"reproducible", plan.seconds.empty()},
              {"buffers", plan.offsets.size()},
              {"peak", plan.answer.peak},
              {"lower_bound", plan.answer.lower_bound},
              {"proven_optimal", plan.answer.proven_optimal != 0},
              {"nodes", plan.answer.nodes},
              {"verified", plan.verified}};
  if (plan.capacity != UINT64_MAX) {
    all["capacity"] = plan.capacity;
    all["capacity_met"] = plan.met;
    all["proven_infeasible"] = plan.answer.proven_infeasible != 0;
  }
  all["fullest"] = {{"step", plan.facts.most_at},
                    {"bytes", plan.facts.most_live},
                    {"buffers", plan.holders.size()},
                    {"largest", holders}};
  all["topmost"] = top;
  return json_text(all);
}

std::string to_text(const Plan& plan) {
  char share[32] = "";
  if (plan.answer.lower_bound)
    std::snprintf(share, sizeof(share), " (%.4f of it)",
                  static_cast<double>(plan.answer.peak) / static_cast<double>(plan.answer.lower_bound));
  std::string out = plan.file + ": " + std::to_string(plan.offsets.size()) + " buffers, peak " +
                    std::to_string(plan.answer.peak) + " bytes, lower bound " +
                    std::to_string(plan.answer.lower_bound) + share + ", " + conclusion(plan) + "\n";
  if (plan.capacity != UINT64_MAX) out += "capacity " + std::to_string(plan.capacity) + "\n";
  if (!plan.seconds.empty()) out += "stopped by the clock (--seconds): the plan is not reproducible\n";
  if (plan.verified) out += "verified: no two buffers share bytes at one time\n";
  if (plan.holders.empty()) return out;
  out += "fullest at step " + std::to_string(plan.facts.most_at) + ", with " +
         std::to_string(plan.facts.most_live) + " bytes in " + std::to_string(plan.holders.size()) +
         " buffers:\n";
  auto line = [&](size_t i) {
    const regie_memory_buffer& b = plan.table.buffers[i];
    out += "  " + std::string(plan.table.ids[i]) + ": " + std::to_string(b.size) + " bytes at " +
           std::to_string(plan.offsets[i]) + ", steps " + std::to_string(b.lower) + " to " +
           std::to_string(b.upper) + "\n";
  };
  for (size_t k = 0; k < std::min(plan.holders.size(), kHoldersShown); ++k) line(plan.holders[k]);
  if (plan.holders.size() > kHoldersShown)
    out += "  and " + std::to_string(plan.holders.size() - kHoldersShown) + " smaller ones\n";
  out += "the peak is the end of:\n";
  for (size_t k = 0; k < std::min(plan.top.size(), kHoldersShown); ++k) line(plan.top[k]);
  return out;
}

Result<Plan> make_plan(const po::variables_map& values) {
  Plan plan;
  plan.file = values["FILE"].as<std::string>();
  plan.planner = values["planner"].as<std::string>();
  plan.effort = values.count("effort") ? values["effort"].as<std::string>() : "default";
  if (values.count("seconds")) plan.seconds = values["seconds"].as<std::string>();
  REGIE_ASSIGN(plan.capacity, whole_option(values, "capacity", UINT64_MAX));
  REGIE_ASSIGN(const uint64_t alignment, whole_option(values, "alignment", 1));
  if (alignment == 0 || (alignment & (alignment - 1)))
    return invalid_input("--alignment must be a power of two, not " + std::to_string(alignment));
  REGIE_ASSIGN(plan.table, read_buffers(plan.file, alignment));
  REGIE_TRY(check_fixed(plan.table, plan.file));
  REGIE_TRY(run_planner(values, &plan));
  describe(&plan);
  if (values.count("verify")) {
    REGIE_TRY(verify_plan(plan));
    plan.verified = true;
  }
  if (values.count("output"))
    REGIE_TRY(write_buffers(values["output"].as<std::string>(), plan.table, plan.offsets));
  if (values.count("svg"))
    REGIE_TRY(write_file_atomically(
        values["svg"].as<std::string>(),
        memory_svg(plan.table, plan.offsets, {plan.answer.peak, plan.answer.lower_bound})));
  return plan;
}

}  // namespace

int command_plan_memory(const Arguments& arguments) {
  po::options_description options("Options");
  options.add_options()("output,o", po::value<std::string>(), "write the buffers with their offsets here")(
      "capacity", po::value<std::string>(),
      "bytes that there are: stop at the first plan that needs no more (default: the less the better)")(
      "alignment", po::value<std::string>(), "at least this for buffers that are not fixed (default: 1)")(
      "effort", po::value<std::string>(), "fast, default or exhaustive")(
      "seconds", po::value<std::string>(),
      "search for at most this long instead; the plan is then not reproducible")(
      "json", "the report as one JSON object")("svg", po::value<std::string>(),
                                               "write a picture of the plan here")(
      "verify", "check the plan independently before anything is written")(
      "planner", po::value<std::string>()->default_value("plan-packed"), "the plug-in that plans")(
      "plugin-path", po::value<std::string>(), "folders with further plug-ins (colon separated)");
  po::variables_map values;
  if (auto code =
          parse(arguments, options,
                {{"FILE", "CSV with columns id, lower, upper, size and, if need be, alignment, offset"}},
                "plan-memory FILE.csv -o OUT.csv",
                "  regie plan-memory buffers.csv -o planned.csv --verify\n"
                "  regie plan-memory buffers.csv --capacity 1048576 --json --svg planned.svg",
                &values))
    return *code;
  const auto plan = make_plan(values);
  if (!plan.ok()) return report(plan.status());
  std::fputs((values.count("json") ? to_json(*plan) : to_text(*plan)).c_str(), stdout);
  if (plan->met) return 0;
  std::fprintf(
      stderr, "regie: %s: %s: the best plan needs %llu bytes, the capacity is %llu, the lower bound %llu\n",
      plan->file.c_str(), conclusion(*plan).c_str(), static_cast<unsigned long long>(plan->answer.peak),
      static_cast<unsigned long long>(plan->capacity),
      static_cast<unsigned long long>(plan->answer.lower_bound));
  return 1;
}

}  // namespace regie::cli
