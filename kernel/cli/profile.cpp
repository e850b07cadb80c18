// regie profile: built on the embedding API and what its profiles are made of.
#include <cstdio>
#include <memory>
#include <set>

#include "base/file.h"
#include "cli/command.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "profile/profile.h"

namespace regie::cli {

namespace {

regie_status profile(Opened& opened, uint64_t warm_ups, uint64_t runs, regie_profile* to) {
  std::vector<regie_tensor> outputs(regie_model_output_count(opened.model.get()));
  ShowProgress progress;
  for (uint64_t i = 0; i < warm_ups; ++i) {
    if (regie_status s = opened.run(outputs)) return s;
    progress.show("warming up", i + 1, warm_ups);
  }
  for (uint64_t i = 0; i < runs; ++i) {
    for (regie_tensor& t : outputs) t = {};
    if (regie_status s = regie_profile_run(to, opened.context.get(), opened.views.data(), opened.views.size(),
                                           outputs.data(), outputs.size()))
      return s;
    progress.show("profiling", i + 1, runs);
  }
  return REGIE_OK;
}

void print_table(const char* title, const std::map<std::string, TimeShares::Share>& shares,
                 const TimeShares& all, double runs) {
  constexpr size_t kMost = 12;
  std::printf("\nby %s\n", title);
  const auto list = ranked(shares);
  for (size_t i = 0; i < list.size() && i < kMost; ++i) {
    const auto& [name, share] = list[i];
    std::printf("  %5.1f %%  %12s  x%-5.0f %s\n", 100 * share.ns / all.all.ns,
                time_text(share.ns / 1e6 / runs).c_str(), static_cast<double>(share.calls) / runs,
                name.c_str());
  }
  if (list.size() > kMost) std::printf("  and %zu more\n", list.size() - kMost);
}

}  // namespace

int command_profile(const Arguments& arguments) {
  uint64_t runs = 5, warm_ups = 3;
  po::options_description options("Options");
  options.add_options()("output,o", po::value<std::string>(),
                        "write a trace that Perfetto (ui.perfetto.dev) and chrome://tracing load")(
      "runs", po::value<uint64_t>(&runs)->default_value(runs), "how many runs to profile")(
      "warm-ups", po::value<uint64_t>(&warm_ups)->default_value(warm_ups), "how many to make before")(
      "json", "print the summary as one JSON object");
  add_measure_options(&options);
  po::variables_map values;
  if (auto code =
          parse(arguments, options, {kModelToRun}, "profile MODEL [-o TRACE.json] [options]",
                "  regie profile model.rgm -o trace.json\n  regie profile model.onnx --target host_and_null "
                "--runs 2",
                &values))
    return *code;
  if (runs == 0 || runs > 10000 || warm_ups > 10000)
    return report(invalid_input("--runs must be from 1 to 10000, --warm-ups at most 10000"));
  const std::string path = values["MODEL"].as<std::string>();
  Opened opened;
  if (int code = open_model(path, values, values["seed"].as<uint64_t>(), &opened)) return code;
  regie_profile* made = nullptr;
  if (regie_status s = regie_profile_create(opened.model.get(), &made)) return report_api(s);
  const std::unique_ptr<regie_profile, decltype(&regie_profile_release)> owner(made, regie_profile_release);
  if (regie_status s = profile(opened, warm_ups, runs, made)) return report_api(s);
  if (values.count("output")) {
    Status written = write_file_atomically(values["output"].as<std::string>(), made->profile.trace());
    if (!written.ok()) return report(written);
  }
  if (values.count("json")) {
    std::fputs(regie_profile_summary(made), stdout);
    return 0;
  }
  const ProfileSums sums = made->profile.sums();
  const auto& [tasks, ms, shares, devices] = sums;
  const Summary summary = summarise(ms);
  const double count = sums.runs();
  std::fputs(guessed_sizes(opened, values).c_str(), stdout);
  // Beside simulated times, which clock a time is of has to be said.
  const char* clock = devices.empty() ? "" : " of this computer";
  std::printf("runs       %llu, %s%s each (median; least %s, most %s), timing included\n",
              static_cast<unsigned long long>(runs), time_text(summary.median).c_str(), clock,
              time_text(summary.min).c_str(), time_text(summary.max).c_str());
  if (shares.all.calls || devices.empty()) {
    std::printf("kernels    %s%s a run in %.0f tasks\n", time_text(shares.all.ns / 1e6 / count).c_str(),
                clock, static_cast<double>(shares.all.calls) / count);
    std::printf("reference  %.2f %% of that in reference kernels\n", 100 * shares.reference_share());
    print_table("operator", shares.by_op, shares, count);
    print_table("kernel", shares.by_kernel, shares, count);
  }
  if (shares.reference.calls)
    print_table("operator, in reference kernels", shares.reference_by_op, shares, count);
  if (!devices.empty()) std::fputs(devices.text(count).c_str(), stdout);
  std::set<uint32_t> used;
  for (const auto& program : tasks.programs)
    for (const TaskInfo& t : program) used.insert(t.device);
  for (uint32_t d = 0; devices.empty() && d < tasks.devices.size(); ++d)
    if (!used.count(d))
      std::printf("\nnothing ran on %s of the target; regie explain says why\n", tasks.devices[d].c_str());
  if (values.count("output")) std::printf("\nwrote      %s\n", values["output"].as<std::string>().c_str());
  return 0;
}

}  // namespace regie::cli
