// Unique and NonMaxSuppression: what they pick depends on values. The shape functions find out how much,
// where they are given the data, by the same code that the kernels run.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- Unique ----

// The things that are compared: elements, or slices along an axis.
template <class T>
struct Items {
  const T* data;
  int64_t outer, count, inner;

  // Less, equal or greater, lexicographically; NaN is greater than all, and equal to itself.
  int compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const Compute<T> x = data[(o * count + a) * inner + i], y = data[(o * count + b) * inner + i];
        if (x < y) return -1;
        if (y < x) return 1;
        if (x == y) continue;
        const bool x_nan = x != x, y_nan = y != y;
        if (x_nan != y_nan) return x_nan ? 1 : -1;
      }
    return 0;
  }
};

// Which items are equal: `order` has them sorted, equal ones by position; group k begins with item
// `first[k]`, the earliest of it, and has `members[k]`. All arrays have a place an item. Gives the number of
// groups.
template <class T>
int64_t group(const Items<T>& items, int64_t* order, int64_t* first, int64_t* members) {
  std::iota(order, order + items.count, int64_t{0});
  std::sort(order, order + items.count, [&](int64_t a, int64_t b) {
    const int c = items.compare(a, b);
    return c != 0 ? c < 0 : a < b;
  });
  int64_t groups = 0;
  for (int64_t i = 0; i < items.count; ++i) {
    if (i == 0 || items.compare(order[i - 1], order[i]) != 0) {
      first[groups] = order[i];
      members[groups++] = 0;
    }
    ++members[groups - 1];
  }
  return groups;
}

// Outer, count and inner of the items of a tensor of this shape.
std::array<int64_t, 3> item_sizes(Index x, std::optional<size_t> axis) {
  std::array<int64_t, 3> sizes{1, 1, 1};
  for (size_t i = 0; i < x.size(); ++i) sizes[!axis ? 1 : i < *axis ? 0 : i == *axis ? 1 : 2] *= x[i];
  return sizes;
}

void infer_unique(const Infer& infer) {
  auto x = infer.shape(0);
  std::optional<size_t> axis;
  if (infer.attrs.has("axis")) axis = infer.axis_attribute(0);
  regie_dim groups = REGIE_DIM_UNKNOWN;
  if (const regie_tensor* t = infer.in(0).data; t && t->data) {
    const auto [outer, count, inner] = item_sizes(sdk::dims_of(*t), axis);
    std::vector<int64_t> work(3 * static_cast<size_t>(count));
    dispatch(All(), t->elem, [&]<class T>() {
      groups = group(Items<T>{static_cast<const T*>(t->data), outer, count, inner}, work.data(),
                     work.data() + count, work.data() + 2 * count);
    });
  }
  Shape y{groups};
  if (axis) {
    y.assign(x.begin(), x.end());
    y[*axis] = groups;
  }
  infer.result(0, infer.elem(0), y);
  const regie_dim items = axis ? x[*axis] : infer.dims.product(x);
  infer.result(1, REGIE_I64, {&groups, 1});
  infer.result(2, REGIE_I64, {&items, 1});
  infer.result(3, REGIE_I64, {&groups, 1});
}

KernelPtr prepare_unique(Prepare& p) {
  std::optional<size_t> axis;
  if (p.attrs.has("axis")) axis = p.axis_attribute(0);
  const auto [outer, count, inner] = item_sizes(p.shape(0), axis);
  if (!p.wants(0)) p.unsupported("its first result is omitted");
  Index y = p.out_shape(0);
  if (y.size() != (axis ? p.shape(0).size() : 1)) p.bad("the result has the shape " + print_shape(y));
  const int64_t wanted = y[axis.value_or(0)];
  const std::array<int64_t, 4> lengths{wanted, wanted, count, wanted};
  std::array<bool, 4> wants{true, false, false, false};
  for (uint32_t i = 1; i < 4; ++i)
    if ((wants[i] = p.wants(i))) p.expect_result(i, {&lengths[i], 1});
  if (wanted > count) p.bad("the result has the shape " + print_shape(y));
  const bool sorted = p.attrs.integer("sorted", 1) != 0;
  if (p.out(0).elem != p.in(0).elem) p.bad("the result has another type than the operand");
  const uint64_t block = static_cast<uint64_t>(inner) * elem_size(p.in(0).elem);
  p.scratch_bytes = 5 * static_cast<uint64_t>(count) * sizeof(int64_t);
  return p.dispatch(All(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, outer = outer, count = count, inner = inner](const Call& call) {
      int64_t *order = call.scratch<int64_t>(), *first = order + count, *members = first + count,
              *turn = members + count, *place = turn + count;
      const Items<T> items{call.in<T>(0), outer, count, inner};
      const int64_t groups = group(items, order, first, members);
      if (groups != wanted)
        throw sdk::Failure(REGIE_INVALID_INPUT, "Unique: there are " + std::to_string(groups) +
                                                    " different ones, not " + std::to_string(wanted));
      // turn[k]: which group is k-th in the result; place: the other way round.
      std::iota(turn, turn + groups, int64_t{0});
      if (!sorted) std::sort(turn, turn + groups, [&](int64_t a, int64_t b) { return first[a] < first[b]; });
      for (int64_t k = 0; k < groups; ++k) place[turn[k]] = k;
      char* to = call.out<char>(0);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < groups; ++k, to += block)
          copy_bytes(to, call.in<char>(0) + static_cast<uint64_t>(o * count + first[turn[k]]) * block, block);
      for (int64_t k = 0; k < groups; ++k) {
        if (wants[1]) call.out<int64_t>(1)[k] = first[turn[k]];
        if (wants[3]) call.out<int64_t>(3)[k] = members[turn[k]];
      }
      if (!wants[2]) return;
      for (int64_t i = 0, g = 0, left = groups ? members[0] : 0; i < count; ++i, --left) {
        if (left == 0) left = members[++g];
        call.out<int64_t>(2)[order[i]] = place[g];
      }
    });
  });
}

// ---- NonMaxSuppression ----

struct Suppression {
  int64_t batches, classes, boxes;
  bool centre;  // boxes are centre and size, not corners
  // Of the run:
  const float *at, *scores;
  int64_t most;  // of a class
  float overlap;
  std::optional<float> least_score;
};

// Sides of a box: low and high of each axis.
struct Sides {
  float low[2], high[2];
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Sides sides_of(const float* box, bool centre) {
  Sides s{};
  for (int axis = 0; axis < 2; ++axis) {
    if (centre) {
      s.low[axis] = box[axis] - box[axis + 2] / 2;
      s.high[axis] = box[axis] + box[axis + 2] / 2;
    } else {
      s.low[axis] = std::min(box[axis], box[axis + 2]);
      s.high[axis] = std::max(box[axis], box[axis + 2]);
    }
  }
  return s;
}

// Is the intersection more than this part of the union?
bool overlaps(const Sides& a, const Sides& b, float part) {
  float both = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const float side = std::min(a.high[axis], b.high[axis]) - std::max(a.low[axis], b.low[axis]);
    if (!(side > 0)) return false;
    both *= side;
  }
  const float whole = a.area() + b.area() - both;
  if (!(a.area() > 0) || !(b.area() > 0) || !(whole > 0)) return false;
  return both / whole > part;
}

// Calls f(batch, class, box) for what is kept. `work`: two places a box.
template <class F>
void suppress(const Suppression& s, int64_t* work, F&& f) {
  int64_t *order = work, *kept = work + s.boxes;
  for (int64_t b = 0; b < s.batches; ++b)
    for (int64_t c = 0; c < s.classes; ++c) {
      const float* score = s.scores + (b * s.classes + c) * s.boxes;
      const float* box = s.at + b * s.boxes * 4;
      int64_t candidates = 0, found = 0;
      for (int64_t i = 0; i < s.boxes; ++i)
        if (!s.least_score || score[i] > *s.least_score) order[candidates++] = i;
      std::sort(order, order + candidates, [&](int64_t x, int64_t y) {
        const bool x_nan = std::isnan(score[x]), y_nan = std::isnan(score[y]);
        if (x_nan != y_nan) return y_nan;
        return !x_nan && score[x] != score[y] ? score[x] > score[y] : x < y;
      });
      for (int64_t i = 0; i < candidates && found < s.most; ++i) {
        const Sides mine = sides_of(box + order[i] * 4, s.centre);
        const bool hidden = std::any_of(kept, kept + found, [&](int64_t k) {
          return overlaps(mine, sides_of(box + k * 4, s.centre), s.overlap);
        });
        if (hidden) continue;
        kept[found++] = order[i];
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
    std::vector<int64_t> work(2 * static_cast<size_t>(s.boxes));
    y[0] = 0;
    suppress(s, work.data(), [&](int64_t, int64_t, int64_t) { ++y[0]; });
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
  p.scratch_bytes = 2 * static_cast<uint64_t>(setup.boxes) * sizeof(int64_t);
  return make_kernel([=, wanted = y[0]](const Call& call) {
    Suppression s = setup;
    auto limit = [&](uint32_t i) { return given[i] ? &call.operand(i) : nullptr; };
    set_limits(&s, limit(2), limit(3), limit(4));
    s.at = call.in<float>(0), s.scores = call.in<float>(1);
    int64_t found = 0;
    auto* to = call.out<int64_t>(0);
    suppress(s, call.scratch<int64_t>(), [&](int64_t batch, int64_t one, int64_t box) {
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
    {"Unique", 0, infer_unique, prepare_unique},
    {"NonMaxSuppression", 0, infer_suppression, prepare_suppression},
};

}  // namespace

std::span<const Op> selection_ops() { return table; }

}  // namespace regie::ops
