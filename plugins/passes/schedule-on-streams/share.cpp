#include "share.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "regie/plugin.hpp"

namespace streams {

using namespace regie::sdk;

namespace {

constexpr size_t kWays = 4;  // that are tried for a memory limit

double number(const char* key, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    throw Failure(REGIE_INVALID_INPUT, "option '" + std::string(key) +
                                           "' must be a number that is not negative" +
                                           (std::string_view(key) == "reuse" ? ", or off" : "") + ", not '" +
                                           std::string(text) + "'");
  return value;
}

std::string bytes_text(int64_t bytes) {
  return std::to_string(bytes < 0 ? -bytes : bytes) + (bytes < 0 ? " bytes more" : " bytes fewer");
}

std::string time_text(double ns) {
  return ns > 0 ? "for " + us(ns) : ns < 0 ? us(-ns) + " sooner" : std::string("at no predicted time");
}

std::string gain_text(const Reuse::Weighed& w) {
  return w.known ? ": " + bytes_text(w.bytes) + ", " + time_text(w.ns) : ", together with others";
}

bool touches(const Buffer& buffer, uint32_t task) {
  return std::binary_search(buffer.touching.begin(), buffer.touching.end(), task);
}

}  // namespace

std::string us(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
  return text;
}

Rates rates_of(const Config& config) {
  Rates rates;
  if (const auto text = config.find("reuse")) {
    rates.on = *text != "off";
    if (rates.on) rates.time = number("reuse", *text);
  }
  if (const auto text = config.find("reuse-worth")) rates.worth = number("reuse-worth", *text);
  return rates;
}

Reuse Share::weigh(const Way& way, const ReuseGoal& goal) const {
  return weigh_reuse(n_, way.schedule, bytes_.buffers(), bytes_.planner(), goal);
}

void Share::decide(Way* chosen, const std::vector<Way>& others, double most_ns, double one_ns) {
  if (!rates_.on || bytes_.buffers().empty()) return;
  ReuseGoal goal;
  goal.worth = rates_.worth;
  goal.allowed = allowed_;
  goal.most_ns = std::max(chosen->ns, std::min(most_ns, chosen->ns * (1 + rates_.time)));
  made_ = weigh(*chosen, goal);
  const uint64_t limit = bytes_.limit();
  const Planner plan = bytes_.planner();
  const auto thorough = [&](const auto& way) { return plan(way.schedule, way.events, true).bytes; };
  const uint64_t now = limit ? thorough(*made_) : 0;
  if (now > limit) {
    goal.limit = limit;
    goal.most_ns = one_ns;
    std::optional<Reuse> best;
    uint64_t least = now;
    std::vector<Way> ways{*chosen};
    ways.insert(ways.end(), others.begin(), others.end());
    for (size_t k = 0; k < ways.size() && k < kWays; ++k) {
      if (best && best->ns <= ways[k].ns) continue;
      Reuse made = weigh(ways[k], goal);
      made.bytes = thorough(made);
      least = std::min(least, made.bytes);
      if (made.bytes <= limit && (!best || made.ns < best->ns)) {
        made.bytes_before = thorough(ways[k]);
        best = std::move(made);
      }
    }
    if (best)
      made_ = std::move(best);
    else
      limit_ = "no events make several streams meet the memory limit of " + std::to_string(limit) +
               " bytes before one stream is as fast: the best plan takes " + std::to_string(least);
  }
  chosen->schedule = made_->schedule;
  chosen->events = made_->events;
  chosen->ns = made_->ns;
}

bool Share::for_bytes(const Event& e) const {
  const std::vector<uint32_t>& after = n_.tasks[e.to].after;
  return !std::binary_search(after.begin(), after.end(), e.from);
}

std::string Share::turn(const Turn& t) const {
  return bytes_.name(t.second) + " may lie where " + bytes_.name(t.first) + " lay";
}

std::string Share::reason(const Event& e) const {
  std::string text;
  size_t more = 0;
  for (const Reuse::Weighed& w : made_->taken) {
    if (!touches(bytes_.buffers()[w.turn.first], e.from) || !touches(bytes_.buffers()[w.turn.second], e.to))
      continue;
    if (text.empty())
      text = "so that " + turn(w.turn) + gain_text(w);
    else
      ++more;
  }
  if (more)
    text += ", and the same for " + std::to_string(more) + (more == 1 ? " other pair" : " other pairs");
  return text;
}

std::vector<std::string> Share::notes(uint32_t* events, uint64_t* saved, double* ns) const {
  *events = 0;
  *saved = 0;
  *ns = 0;
  std::vector<std::string> lines;
  if (!made_) return lines;
  if (!limit_.empty()) lines.push_back(limit_);
  if (made_->taken.empty()) return lines;
  for (const Event& e : made_->events) *events += for_bytes(e);
  *saved = made_->bytes_before - std::min(made_->bytes, made_->bytes_before);
  *ns = made_->ns - made_->ns_before;
  lines.push_back(std::to_string(*events) + (*events == 1 ? " event is" : " events are") +
                  " there so that buffers share bytes: all arenas take " + std::to_string(made_->bytes) +
                  " bytes instead of " + std::to_string(made_->bytes_before) + ", a run " + us(made_->ns) +
                  " instead of " + us(made_->ns_before) + "; " + std::to_string(made_->weighed) +
                  " plans were compared" + (made_->every ? ", of every set of such events" : ""));
  for (const Reuse::Weighed& w : made_->taken) lines.push_back(turn(w.turn) + gain_text(w));
  return lines;
}

std::vector<std::string> Share::refused() const {
  std::vector<std::string> lines;
  if (!made_) return lines;
  for (const Reuse::Weighed& w : made_->refused)
    lines.push_back("not worth it: " + turn(w.turn) + ": by itself " + bytes_text(w.bytes) + ", " +
                    time_text(w.ns));
  return lines;
}

}  // namespace streams
