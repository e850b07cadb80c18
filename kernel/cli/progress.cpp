#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include "regie/api/regie.h"

namespace regie::cli {

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kBetween = std::chrono::milliseconds(100);
constexpr int kColumns = 78;
}  // namespace

// The first line appears only when the work has gone on for a while.
ShowProgress::ShowProgress() : terminal_(isatty(STDERR_FILENO) == 1), last_(Clock::now() + 2 * kBetween) {
  if (!terminal_) return;
  regie_set_progress([](void* self, const char* what, uint64_t done,
                        uint64_t total) { static_cast<ShowProgress*>(self)->show(what, done, total); },
                     this);
}

ShowProgress::~ShowProgress() {
  if (!terminal_) return;
  regie_set_progress(nullptr, nullptr);
  if (shown_) std::fprintf(stderr, "\r%*s\r", kColumns, "");
}

void ShowProgress::show(const std::string& what, uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (now < last_ + kBetween) return;
  last_ = now;
  shown_ = true;
  std::string text = what;
  if (total) text += ", " + std::to_string(done) + " of " + std::to_string(total);
  std::fprintf(stderr, "\r%-*.*s", kColumns, kColumns, text.c_str());
  std::fflush(stderr);
}

}  // namespace regie::cli
