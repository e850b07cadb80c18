// Decides which events are added so that buffers may share bytes, by what the user gives for a byte, and says
// why.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bytes.h"
#include "regie/pass.hpp"

namespace streams {

// Of the options: what may be given for bytes.
struct Rates {
  bool on = true;
  double time = 0.01;  // share of the predicted time that all such events may take
  double worth = 2;    // times as large must the share of the bytes be
};
Rates rates_of(const regie::sdk::Config& config);

// A way to lay the tasks on streams.
struct Way {
  Schedule schedule;
  std::vector<Event> events;
  double ns = 0;
};

class Share {
 public:
  using Allowed = std::function<bool(const Schedule&, const std::vector<Event>&)>;
  Share(const Network& network, const Bytes& bytes, Rates rates, Allowed allowed)
      : n_(network), bytes_(bytes), rates_(rates), allowed_(std::move(allowed)) {}

  // Adds events to `chosen`, of which a run may take `most_ns` then. Where the memory limit is not met by
  // those that are worth it: whatever meets it at the least time, also by the `others`, in no more than
  // `one_ns`.
  void decide(Way* chosen, const std::vector<Way>& others, double most_ns, double one_ns);

  // Why an event is there that no task needs.
  std::string reason(const Event& event) const;
  bool for_bytes(const Event& event) const;
  std::vector<std::string> notes(uint32_t* events, uint64_t* saved, double* ns) const;  // and the sums
  std::vector<std::string> refused() const;

 private:
  Reuse weigh(const Way& way, const ReuseGoal& goal) const;
  std::string turn(const Turn& t) const;

  const Network& n_;
  const Bytes& bytes_;
  const Rates rates_;
  const Allowed allowed_;
  std::optional<Reuse> made_;
  std::string limit_;  // what became of it
};

std::string us(double ns);  // "1.0 us"

}  // namespace streams
