// Exact search for a plan of a core within a capacity.
//
// Among all plans there is one of least sum of offsets: each item rests on the floor or on another. Such a
// plan is built from the bottom to the top. The lowest item that may still be placed is either placed where
// it rests, or *passed*: then it has to be lifted later by another one that comes under it, which must begin
// below the place where it could have ended; if no such item is left, the branch is dead. What is placed at
// one offset or higher than all before makes the lower bound of a section: the lowest place that is left in
// it, plus what it still has to hold. Where no item that is left crosses a moment, both sides are solved
// apart, and a side that fails sends the search back to where the sides came apart.
//
// The order in which items of one height are tried is the heuristic; it is made anew for each side.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "core.h"

namespace packed {

enum class Key : uint8_t { kLife, kArea, kLoad, kSize };
using Keys = std::array<Key, 3>;

enum class Found : uint8_t { kPlan, kNoPlan, kLimit };

class Search {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Search(const Core& core);

  // Stops after `limit` placements or at `deadline`. `noise` (0..1) shakes the order, differently for each
  // `seed`.
  Found run(int64_t capacity, const Keys& keys, uint64_t limit, double noise, uint64_t seed,
            std::optional<Clock::time_point> deadline);
  const std::vector<int64_t>& offsets() const { return offset_; }  // by item, if a plan was found
  uint64_t nodes() const { return nodes_; }                        // of the last run

 private:
  static constexpr int64_t kNever = INT64_MAX / 4;
  enum class State : uint8_t { kOpen, kPassed, kPlaced };
  enum class Kind : uint8_t { kState, kPlace, kSection, kLoad };
  struct Change {  // to be taken back
    Kind kind;
    uint32_t index;
    int64_t first, second;
  };
  // Items of one side: a stretch of lists_, best first.
  struct Side {
    uint32_t begin, end, first_section, end_section;
    int32_t parent;  // frame that made it
    int32_t next;    // side to be solved after it
  };
  struct Frame {
    Side side;
    int32_t agenda;                // what is to be solved after this side
    size_t changes, lists, sides;  // how long they were before the last placement
    uint32_t item;                 // the last placement
    int64_t offset;
  };
  enum class Step : uint8_t { kPlaced, kDead, kLimit };

  void reset();
  bool out_of_budget();
  Step advance(int32_t frame);
  bool retry(int32_t frame);
  void open(int32_t frame);
  std::vector<std::vector<uint32_t>> split(const std::vector<uint32_t>& items);
  void add_side(const std::vector<uint32_t>& items, int32_t parent);
  void add_sides(const std::vector<uint32_t>& items, int32_t parent);
  void rank(std::vector<uint32_t>* items) const;
  double key(Key key, uint32_t item) const;
  int64_t tightness(const std::vector<uint32_t>& items) const;

  bool place(uint32_t item, int64_t offset);
  bool pass(const Side& side, uint32_t item, int64_t offset);
  bool settle(const Side& side, int64_t offset);
  bool has_blocker(uint32_t item);
  bool lift(uint32_t item, int64_t offset);
  bool check_sections(uint32_t begin, uint32_t end);
  bool barred_by_fixed(uint32_t item) const;
  void undo(size_t length);
  void set_state(uint32_t item, State state);
  void set_place(uint32_t item, int64_t rest, int64_t low);

  const Core& core_;
  int64_t capacity_ = 0;
  uint64_t limit_ = 0, nodes_ = 0;
  Keys keys_{};
  std::optional<Clock::time_point> deadline_;
  std::vector<int64_t> rest_;  // where an item lies if it is placed now
  std::vector<int64_t> low_;   // below this it cannot end up
  std::vector<int64_t> offset_;
  std::vector<State> state_;
  std::vector<uint32_t> blocker_;   // arc to an item that may still come under a passed one
  std::vector<int64_t> left_;       // by section: sizes of what is not placed
  std::vector<int64_t> floor_;      // by section: least low_ of what is not placed
  std::vector<uint32_t> lowest_;    // by section: whose low_ that is
  std::vector<uint32_t> count_;     // by section: not placed
  std::vector<uint32_t> crossing_;  // by section: not placed and in the next one, too
  std::vector<double> shake_;       // by item: factor of its keys
  std::vector<Change> changes_;
  std::vector<uint32_t> lists_;
  std::vector<Side> sides_;
  std::vector<Frame> frames_;
  int32_t agenda_ = -1;  // next side to be solved
  bool parted_ = false;  // the last placement may have cut its side in two
};

}  // namespace packed
