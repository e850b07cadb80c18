// NonMaxSuppression: what it keeps depends on values. The shape function finds out how many boxes, where it
// is given the data, by the same code that the kernel runs; detectors bring tens of thousands of boxes, so a
// candidate is compared with the kept boxes near it only.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "op.h"

namespace regie::ops {
namespace {

struct Suppression {
  int64_t batches, classes, boxes;
  bool centre;  // boxes are centre and size, not corners
  // Of the run:
  const float *at, *scores;
  int64_t most;  // of a class
  float overlap;
  std::optional<float> least_score;
};

// Low and high of each axis.
struct Box {
  std::array<float, 2> low, high;
  float area;

  // Without an area, or with one that is not finite, there is no part of a union that it could share.
  bool real() const { return low[0] < high[0] && low[1] < high[1] && area > 0 && std::isfinite(area); }
};

Box box_of(const float* sides, bool centre) {
  Box b{};
  for (size_t axis = 0; axis < 2; ++axis) {
    const float one = sides[axis], two = sides[axis + 2];
    b.low[axis] = centre ? one - two / 2 : std::min(one, two);
    b.high[axis] = centre ? one + two / 2 : std::max(one, two);
  }
  b.area = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
  return b;
}

// Is the intersection of these real boxes more than this part of the union?
bool overlaps(const Box& a, const Box& b, float part) {
  const float first = std::min(a.high[0], b.high[0]) - std::max(a.low[0], b.low[0]);
  if (!(first > 0)) return false;
  const float second = std::min(a.high[1], b.high[1]) - std::max(a.low[1], b.low[1]);
  if (!(second > 0)) return false;
  const float both = first * second, whole = a.area + b.area - both;
  return whole > 0 && both / whole > part;
}

// The boxes that were kept, in the cells of a grid. A coordinate's cell never falls as the coordinate grows,
// so boxes that share no cell are apart on an axis: which boxes are found to overlap does not depend on the
// grid.
class Kept {
 public:
  // Bytes of room for so many boxes: a kernel has all its memory before it runs.
  static uint64_t room(int64_t boxes) {
    return static_cast<uint64_t>(boxes) * (sizeof(Placed) + sizeof(int32_t) + kWide * sizeof(Entry)) +
           static_cast<uint64_t>(most_cells(boxes)) * sizeof(int32_t);
  }
  Kept(char* room, int64_t boxes)
      : boxes_(reinterpret_cast<Placed*>(room)),
        entries_(reinterpret_cast<Entry*>(boxes_ + boxes)),
        wide_(reinterpret_cast<int32_t*>(entries_ + kWide * boxes)),
        first_(wide_ + boxes) {}

  void begin(const Box* candidates, int64_t number) {
    box_count_ = entry_count_ = wide_count_ = 0;
    choose_grid({candidates, static_cast<size_t>(number)});
    std::fill_n(first_, int64_t{count_[0]} * count_[1], kNone);
  }

  void add(const Box& b) {
    const Cells cells = cells_of(b);
    const int32_t index = box_count_++;
    boxes_[index] = {b, cells};
    if (cells.number() > kWide) {
      wide_[wide_count_++] = index;
      return;
    }
    cells.each([&](int32_t i, int32_t j) {
      int32_t& head = first_[place(i, j)];
      entries_[entry_count_] = {index, head};
      head = entry_count_++;
      return false;
    });
  }

  // Does one of them overlap this box?
  bool hide(const Box& b, float part) const {
    const Cells cells = cells_of(b);
    if (cells.number() > kWide)
      return std::any_of(boxes_, boxes_ + box_count_,
                         [&](const Placed& k) { return overlaps(b, k.box, part); });
    auto meets = [&](int32_t k) { return overlaps(b, boxes_[k].box, part); };
    if (std::any_of(wide_, wide_ + wide_count_, meets)) return true;
    return cells.each([&](int32_t i, int32_t j) {
      for (int32_t e = first_[place(i, j)]; e != kNone; e = entries_[e].next) {
        const int32_t k = entries_[e].box;
        const Cells& other = boxes_[k].cells;
        // Boxes that share several cells are compared in the first of them.
        if (i == std::max(cells.from[0], other.from[0]) && j == std::max(cells.from[1], other.from[1]) &&
            meets(k))
          return true;
      }
      return false;
    });
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int64_t kWide = 16;    // a box in more cells than this is compared with all
  static constexpr int32_t kMost = 1024;  // cells along an axis

  struct Cells {
    std::array<int32_t, 2> from, to;  // both included
    int64_t number() const { return int64_t{to[0] - from[0] + 1} * (to[1] - from[1] + 1); }
    // Until f gives true; whether it did.
    template <class F>
    bool each(F&& f) const {
      for (int32_t i = from[0]; i <= to[0]; ++i)
        for (int32_t j = from[1]; j <= to[1]; ++j)
          if (f(i, j)) return true;
      return false;
    }
  };
  struct Placed {
    Box box;
    Cells cells;
  };
  struct Entry {
    int32_t box, next;
  };

  static int64_t most_cells(int64_t boxes) { return 4 * boxes + 1; }

  // Cells about as large as a box.
  void choose_grid(std::span<const Box> candidates) {
    std::array<float, 2> extent{};
    for (size_t axis = 0; axis < 2; ++axis) {
      float low = INFINITY, high = -INFINITY;
      double sides = 0;
      for (const Box& b : candidates) {
        low = std::min(low, b.low[axis]);
        high = std::max(high, b.high[axis]);
        sides += static_cast<double>(b.high[axis]) - b.low[axis];
      }
      low_[axis] = low;
      extent[axis] = high - low;
      count_[axis] = 1;
      if (candidates.size() < 32 || !(extent[axis] > 0) || !std::isfinite(extent[axis])) continue;
      const double boxes = static_cast<double>(candidates.size());
      count_[axis] = static_cast<int32_t>(std::clamp(extent[axis] * boxes / sides, 1.0, double{kMost}));
    }
    while (int64_t{count_[0]} * count_[1] > most_cells(static_cast<int64_t>(candidates.size()))) {
      int32_t& larger = count_[0] > count_[1] ? count_[0] : count_[1];
      larger = (larger + 1) / 2;
    }
    for (size_t axis = 0; axis < 2; ++axis)
      scale_[axis] = count_[axis] > 1 ? static_cast<float>(count_[axis]) / extent[axis] : 0.0f;
  }

  Cells cells_of(const Box& b) const {
    Cells c{};
    for (size_t axis = 0; axis < 2; ++axis) {
      auto cell = [&](float at) {
        if (count_[axis] == 1) return 0;
        return static_cast<int32_t>(
            std::clamp((at - low_[axis]) * scale_[axis], 0.0f, static_cast<float>(count_[axis] - 1)));
      };
      c.from[axis] = cell(b.low[axis]);
      c.to[axis] = cell(b.high[axis]);
    }
    return c;
  }

  int64_t place(int32_t i, int32_t j) const { return int64_t{i} * count_[1] + j; }

  std::array<int32_t, 2> count_{};
  std::array<float, 2> low_{}, scale_{};
  Placed* boxes_;
  Entry* entries_;
  int32_t* wide_;   // of boxes_
  int32_t* first_;  // a cell: of entries_
  int32_t box_count_ = 0, entry_count_ = 0, wide_count_ = 0;
};

// Bytes that `suppress` works in.
uint64_t suppression_room(int64_t boxes) {
  return static_cast<uint64_t>(boxes) * (sizeof(int64_t) + 2 * sizeof(Box)) + Kept::room(boxes);
}

// Calls f(batch, class, box) for what is kept. `room` is aligned for int64_t.
template <class F>
void suppress(const Suppression& s, char* room, F&& f) {
  auto* order = reinterpret_cast<int64_t*>(room);
  auto *boxes = reinterpret_cast<Box*>(order + s.boxes), *real = boxes + s.boxes;
  Kept kept(reinterpret_cast<char*>(real + s.boxes), s.boxes);
  for (int64_t b = 0; b < s.batches; ++b)
    for (int64_t c = 0; c < s.classes; ++c) {
      const float* score = s.scores + (b * s.classes + c) * s.boxes;
      const float* sides = s.at + b * s.boxes * 4;
      int64_t candidates = 0, found = 0;
      for (int64_t i = 0; i < s.boxes; ++i)
        if (!s.least_score || score[i] > *s.least_score) order[candidates++] = i;
      std::sort(order, order + candidates, [&](int64_t x, int64_t y) {
        const bool x_nan = std::isnan(score[x]), y_nan = std::isnan(score[y]);
        if (x_nan != y_nan) return y_nan;
        return !x_nan && score[x] != score[y] ? score[x] > score[y] : x < y;
      });
      int64_t reals = 0;
      for (int64_t i = 0; i < candidates; ++i) {
        boxes[i] = box_of(sides + order[i] * 4, s.centre);
        if (boxes[i].real()) real[reals++] = boxes[i];
      }
      kept.begin(real, reals);
      for (int64_t i = 0; i < candidates && found < s.most; ++i) {
        const Box& mine = boxes[i];
        if (mine.real()) {
          if (kept.hide(mine, s.overlap)) continue;
          kept.add(mine);
        }
        ++found;
        f(b, c, order[i]);
      }
    }
}

// The numbers that a run brings; absent ones have their meaning of old.
void set_limits(Suppression* s, const regie_tensor* most, const regie_tensor* overlap,
                const regie_tensor* score) {
  auto number = [](const regie_tensor* t, double fallback) {
    if (!t) return fallback;
    const auto value = scalar_of<double>(t);
    if (!value) throw sdk::Failure(REGIE_INVALID_INPUT, "NonMaxSuppression: a limit is no single number");
    return *value;
  };
  s->most = static_cast<int64_t>(std::clamp(number(most, 0), 0.0, 1e15));
  s->overlap = static_cast<float>(number(overlap, 0));
  if (!(s->overlap >= 0 && s->overlap <= 1))
    throw sdk::Failure(REGIE_INVALID_INPUT, "NonMaxSuppression: the iou_threshold is not from 0 to 1");
  s->least_score.reset();
  if (score) s->least_score = static_cast<float>(number(score, 0));
}

void infer_suppression(const Infer& infer) {
  auto boxes = infer.shape(0), scores = infer.shape(1);
  if (boxes.size() != 3 || scores.size() != 3 || !infer.agree(boxes[2], 4) ||
      !infer.agree(boxes[0], scores[0]) || !infer.agree(boxes[1], scores[2]))
    infer.bad("boxes " + infer.print(boxes) + " and scores " + infer.print(scores) + " do not fit");
  auto data = [&](uint32_t i) { return infer.has(i) ? infer.in(i).data : nullptr; };
  bool all = true;
  for (uint32_t i = 0; i < infer.operands(); ++i) all = all && (!infer.has(i) || (data(i) && data(i)->data));
  Shape y{REGIE_DIM_UNKNOWN, 3};
  if (!infer.has(2)) {
    y[0] = 0;
  } else if (all) {
    Suppression s{};
    const regie_tensor &at = *data(0), &score = *data(1);
    if (at.elem != REGIE_F32 || score.elem != REGIE_F32) infer.bad("boxes and scores must be f32");
    s.batches = score.dims[0], s.classes = score.dims[1], s.boxes = score.dims[2];
    s.centre = infer.attrs.integer("center_point_box", 0) != 0;
    s.at = static_cast<const float*>(at.data), s.scores = static_cast<const float*>(score.data);
    set_limits(&s, data(2), data(3), data(4));
    std::vector<int64_t> work(suppression_room(s.boxes) / sizeof(int64_t) + 1);
    y[0] = 0;
    suppress(s, reinterpret_cast<char*>(work.data()), [&](int64_t, int64_t, int64_t) { ++y[0]; });
  }
  infer.result(0, REGIE_I64, y);
}

KernelPtr prepare_suppression(Prepare& p) {
  Index boxes = p.shape(0), scores = p.shape(1), y = p.out_shape(0);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2] || y.size() != 2 || y[1] != 3)
    p.bad("boxes " + print_shape(boxes) + " and scores " + print_shape(scores) + " do not fit");
  if (p.in(0).elem != REGIE_F32 || p.in(1).elem != REGIE_F32) p.bad("boxes and scores must be f32");
  Suppression setup{};
  setup.batches = scores[0], setup.classes = scores[1], setup.boxes = scores[2];
  setup.centre = p.attrs.integer("center_point_box", 0) != 0;
  std::array<bool, 5> given{};
  for (uint32_t i = 0; i < 5; ++i) given[i] = p.has(i);
  p.scratch_bytes = suppression_room(setup.boxes);
  return make_kernel([=, wanted = y[0]](const Call& call) {
    Suppression s = setup;
    auto limit = [&](uint32_t i) { return given[i] ? &call.operand(i) : nullptr; };
    set_limits(&s, limit(2), limit(3), limit(4));
    s.at = call.in<float>(0), s.scores = call.in<float>(1);
    int64_t found = 0;
    auto* to = call.out<int64_t>(0);
    suppress(s, call.scratch<char>(), [&](int64_t batch, int64_t one, int64_t box) {
      if (found++ >= wanted) return;
      *to++ = batch;
      *to++ = one;
      *to++ = box;
    });
    if (found != wanted)
      throw sdk::Failure(REGIE_INVALID_INPUT,
                         "NonMaxSuppression: the number of boxes that are kept has changed");
  });
}

constexpr Op table[] = {
    {"NonMaxSuppression", 0, infer_suppression, prepare_suppression},
};

}  // namespace

std::span<const Op> suppression_ops() { return table; }

}  // namespace regie::ops
