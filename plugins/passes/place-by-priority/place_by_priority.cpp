// place-by-priority: the first engine of the target that can computes the node, unless it has nothing better
// than the reference kernel and a later one has.
#include <string>
#include <vector>

#include "regie/pass.hpp"
#include "regie/placer.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_str kEstablishes[] = {lit("placed")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "place-by-priority",
    .doc = "Takes the first engine in the target's order that can; its reference kernel only if nobody has a "
           "faster one",
    .requires_ = kRequires,
    .establishes = kEstablishes,
});

class PlaceByPriority : public Placer {
 public:
  using Placer::Placer;

  void run() {
    std::vector<uint32_t> engine_of(graph().node_count(), REGIE_NONE);
    for (uint32_t i = 0; i < count(); ++i) {
      uint32_t& engine = engine_of[at(i).node];
      if (assign_forced(i)) {
        engine = at(i).forced_engine;
        continue;
      }
      const Choice choice = by_priority(i, engine_of);
      if (choice.engine == REGIE_NONE) continue;
      engine = choice.engine;
      const std::string reason = choice.gave_way
                                     ? "own kernel, " + microseconds(choice.ns) + " with transfers"
                                     : kernel(at(i).answers[engine]);
      assign(i, engine, reason + other_lines(i, engine));
    }
    finish();
  }
};

regie_status place(uint32_t, const regie_host* host, const regie_config*,
                   const regie_placement_problem* problem) {
  return guard(host, [&] { PlaceByPriority(host, problem).run(); });
}

constexpr regie_placer_table kTable = {head(sizeof(regie_placer_table), REGIE_DIGEST_PLACER), 1, 0, &kInfo,
                                       place};

const void* find(const char* id) { return find_one(id, REGIE_PLACER_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
