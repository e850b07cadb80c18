// place-by-cost: the placement of least predicted time, transfers and synchronisation included.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "choice_network.h"
#include "regie/pass.hpp"
#include "regie/placer.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;
using placing::ChoiceNetwork;
using placing::kNever;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kEstablishes[] = {lit("placed")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "place-by-cost",
    .doc = "Places every node so that predicted time, transfers and waits between engines included, is least",
    .requires_ = kRequires,
    .establishes = kEstablishes,
});

constexpr uint32_t kMostEngines = 8;

class PlaceByCost : public Placer {
 public:
  PlaceByCost(const regie_host* host, const regie_placement_problem* problem)
      : Placer(host, problem), host_(host) {}

  void run() {
    start();
    finish();
    if (engines() > kMostEngines)
      throw Failure(REGIE_UNSUPPORTED, "the target has " + std::to_string(engines()) +
                                           " engines; place-by-cost takes " + std::to_string(kMostEngines) +
                                           ", place-by-priority any number");
    if (engines() > 1) {
      find_transfers();
      improve();
    }
    for (uint32_t i = 0; i < count(); ++i)
      if (!assign_forced(i)) assign(i, engine_[i], reason(i));
    finish();  // of what was asked for where it cannot be
  }

 private:
  // A value that several may read: brought once to each memory space, waited for once by each engine.
  struct Transfer {
    uint32_t producer = REGIE_NONE;  // index of a node; REGIE_NONE: it lies on the host
    uint64_t bytes = 0;
    bool host_reads = false;
    std::vector<uint32_t> readers;               // indices, each once
    std::array<uint32_t, kMostEngines> on = {};  // readers by engine, as they are now
  };

  bool decided(uint32_t index) const { return options_[index].size() == 1; }

  // What each node may be, and where place-by-priority puts it.
  void start() {
    std::vector<uint32_t> engine_of(graph().node_count(), REGIE_NONE);
    options_.resize(count());
    engine_.resize(count());
    for (uint32_t i = 0; i < count(); ++i) {
      const uint32_t forced = at(i).forced_engine;
      engine_[i] = forced != REGIE_NONE ? forced : by_priority(i, engine_of).engine;
      engine_of[at(i).node] = engine_[i];
      if (forced != REGIE_NONE)
        options_[i] = {forced};
      else
        for (uint32_t e = 0; e < engines(); ++e)
          if (at(i).answers[e].can) options_[i].push_back(e);
    }
  }

  void find_transfers() {
    std::vector<uint32_t> index_of(graph().node_count(), REGIE_NONE);
    for (uint32_t i = 0; i < count(); ++i) index_of[at(i).node] = i;
    std::map<uint32_t, size_t> known;  // by value
    auto transfer_of = [&](uint32_t operand) -> Transfer* {
      const uint32_t v = storage_of(operand);
      if (v == REGIE_NONE) return nullptr;
      const auto [at, fresh] = known.emplace(v, transfers_.size());
      if (fresh) {
        Transfer t;
        const regie_node* producer = graph().producer(graph().value(v));
        // What control flow gives lies on the host, whatever runs inside.
        if (producer && !is_control_flow(*producer)) t.producer = index_of[producer->id];
        t.bytes = bytes(v);
        transfers_.push_back(std::move(t));
      }
      return &transfers_[at->second];
    };
    for (uint32_t i = 0; i < count(); ++i) {
      const regie_node& n = node(i);
      const bool control = is_control_flow(n);
      const uint32_t reads =
          control ? graph().own_operands(n) : n.operand_count;  // captures stay where they are
      for (uint32_t o = 0; o < reads; ++o) {
        Transfer* t = transfer_of(n.operands[o]);
        if (!t) continue;
        if (control)
          t->host_reads = true;
        else if (t->readers.empty() || t->readers.back() != i)
          t->readers.push_back(i);
      }
    }
    for (uint32_t region : graph().task_regions())
      for (uint32_t v : results_of(graph().region(region)))
        if (Transfer* t = transfer_of(v)) t->host_reads = true;
    reads_.resize(count());
    makes_.resize(count());
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      for (uint32_t r : transfers_[t].readers) {
        reads_[r].push_back(t);
        ++transfers_[t].on[engine_[r]];
      }
      if (transfers_[t].producer != REGIE_NONE) makes_[transfers_[t].producer].push_back(t);
    }
  }

  void move(uint32_t index, uint32_t engine) {
    for (uint32_t t : reads_[index]) {
      --transfers_[t].on[engine_[index]];
      ++transfers_[t].on[engine];
    }
    engine_[index] = engine;
  }

  // `from`: the producer's engine; `readers`: a bit an engine.
  double cost(const Transfer& t, uint32_t from, uint32_t readers) const {
    const uint32_t home = from == REGIE_NONE ? kHostSpace : space(from);
    double ns = t.host_reads ? transfer_ns(home, kHostSpace, t.bytes) : 0;
    for (uint32_t e = 0; e < engines(); ++e) {
      if (!(readers >> e & 1)) continue;
      bool brought = t.host_reads && space(e) == kHostSpace;
      for (uint32_t before = 0; before < e; ++before)
        brought = brought || ((readers >> before & 1) && space(before) == space(e));
      if (!brought) ns += transfer_ns(home, space(e), t.bytes);
      if (from != REGIE_NONE) ns += sync_ns(from, e);
    }
    return ns;
  }

  uint32_t engine_of_producer(const Transfer& t) const {
    return t.producer == REGIE_NONE ? REGIE_NONE : engine_[t.producer];
  }
  uint32_t readers_of(const Transfer& t) const {
    uint32_t mask = 0;
    for (uint32_t e = 0; e < engines(); ++e)
      if (t.on[e]) mask |= 1u << e;
    return mask;
  }
  double cost_now(const Transfer& t) const { return cost(t, engine_of_producer(t), readers_of(t)); }

  double own_cost(uint32_t index, uint32_t engine) const {
    return is_control_flow(node(index)) ? 0 : at(index).answers[engine].cost_ns;
  }
  double total() const {
    double ns = 0;
    for (uint32_t i = 0; i < count(); ++i) ns += own_cost(i, engine_[i]);
    for (const Transfer& t : transfers_) ns += cost_now(t);
    return ns;
  }

  // The network has a choice a node, and one a value with several undecided readers: the set of engines that
  // get it.
  void improve() {
    ChoiceNetwork network;
    std::vector<uint32_t> assignment;
    for (uint32_t i = 0; i < count(); ++i) {
      std::vector<double> costs;
      for (uint32_t e : options_[i]) costs.push_back(own_cost(i, e));
      network.add(std::move(costs));
      assignment.push_back(static_cast<uint32_t>(
          std::find(options_[i].begin(), options_[i].end(), engine_[i]) - options_[i].begin()));
    }
    for (const Transfer& t : transfers_) add(t, &network, &assignment);
    const double before = total();
    const ChoiceNetwork::Answer answer = network.solve(assignment);
    for (uint32_t i = 0; i < count(); ++i) move(i, options_[i][answer.assignment[i]]);
    if (!answer.exact) descend();
    const double after = total();
    const std::string text = "predicted " + microseconds(after) + ", by priority " + microseconds(before) +
                             (answer.exact ? "; no placement is faster" : "; found by improvement");
    host_->log(REGIE_LOG_INFO, str("place-by-cost"), str(text));
  }

  // Single nodes to where they cost less, until none does.
  void descend() {
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t i = 0; i < count(); ++i)
        for (uint32_t e : options_[i]) {
          const uint32_t was = engine_[i];
          const double least = around(i) * (1 - 1e-12);
          move(i, e);
          if (around(i) < least)
            moved = true;
          else
            move(i, was);
        }
    }
  }

  void add(const Transfer& t, ChoiceNetwork* network, std::vector<uint32_t>* assignment) const {
    std::vector<uint32_t> open;
    uint32_t settled = 0, possible = 0;  // engines of readers
    for (uint32_t r : t.readers) {
      if (decided(r)) {
        settled |= 1u << options_[r][0];
        continue;
      }
      open.push_back(r);
      for (uint32_t e : options_[r]) possible |= 1u << e;
    }
    std::vector<uint32_t> from{engine_of_producer(t)};
    const bool producer_open = t.producer != REGIE_NONE && !decided(t.producer);
    if (producer_open) from = options_[t.producer];
    if (open.empty() && !producer_open) return;  // whatever is chosen, it costs the same

    // The choice that stands for the readers, and which engines read at each of its possibilities.
    uint32_t readers = REGIE_NONE;
    std::vector<uint32_t> masks{settled};
    if (open.size() == 1) {
      readers = open[0];
      masks.clear();
      for (uint32_t e : options_[readers]) masks.push_back(settled | 1u << e);
    } else if (open.size() > 1) {
      masks.clear();
      for (uint32_t subset = possible;; subset = (subset - 1) & possible) {
        masks.push_back(settled | subset);
        if (subset == 0) break;
      }
      readers = network->add(std::vector<double>(masks.size(), 0));
      const uint32_t now = readers_of(t);
      assignment->push_back(
          static_cast<uint32_t>(std::find(masks.begin(), masks.end(), now | settled) - masks.begin()));
      for (uint32_t r : open) {
        std::vector<double> table;
        for (uint32_t mask : masks)
          for (uint32_t e : options_[r]) table.push_back(mask >> e & 1 ? 0 : kNever);
        network->add_pair(readers, r, std::move(table));
      }
    }
    std::vector<double> table;
    for (uint32_t f : from)
      for (uint32_t mask : masks) table.push_back(cost(t, f, mask));
    if (producer_open && readers != REGIE_NONE)
      network->add_pair(t.producer, readers, std::move(table));
    else
      network->add_cost(producer_open ? t.producer : readers, table);
  }

  // What the node's engine says, and, a line each, what the whole would cost more with each other one.
  std::string reason(uint32_t index) {
    std::string text = kernel(at(index).answers[engine_[index]]);
    if (engines() == 1) return text;
    const uint32_t chosen = engine_[index];
    const double now = around(index);
    for (uint32_t e = 0; e < engines(); ++e) {
      if (e == chosen) continue;
      text += "\n" + answer(index, e);
      if (!at(index).answers[e].can) continue;
      move(index, e);
      text += ", with transfers " + microseconds(std::max(0.0, around(index) - now)) + " more";
    }
    move(index, chosen);
    return text;
  }
  double around(uint32_t index) const {
    double ns = own_cost(index, engine_[index]);
    for (uint32_t t : reads_[index]) ns += cost_now(transfers_[t]);
    for (uint32_t t : makes_[index]) ns += cost_now(transfers_[t]);
    return ns;
  }

  const regie_host* host_;
  std::vector<std::vector<uint32_t>> options_;  // by index: engines that it may be on
  std::vector<uint32_t> engine_;                // by index
  std::vector<Transfer> transfers_;
  std::vector<std::vector<uint32_t>> reads_, makes_;  // by index: transfers
};

regie_status place(uint32_t, const regie_host* host, const regie_config*,
                   const regie_placement_problem* problem) {
  return guard(host, [&] { PlaceByCost(host, problem).run(); });
}

constexpr regie_placer_table kTable = {head(sizeof(regie_placer_table), REGIE_DIGEST_PLACER), 1, 0, &kInfo,
                                       place};

const void* find(const char* id) { return find_one(id, REGIE_PLACER_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
