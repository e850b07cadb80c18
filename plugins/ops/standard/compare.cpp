// Comparisons, logic on bool, and Where.
#include "broadcast.h"

namespace regie::ops {
namespace {

void infer_compare(const Infer& infer) { infer.result(0, REGIE_BOOL, broadcast_operands(infer, 0, 2)); }

// Comparisons of shapes are known if they come out the same for all sizes.
enum class Order { kEqual, kLess, kLessOrEqual };

regie_dim known_order(const Infer& infer, Order order, regie_dim a, regie_dim b) {
  if (a == REGIE_DIM_UNKNOWN || b == REGIE_DIM_UNKNOWN) return REGIE_DIM_UNKNOWN;
  if (a == b) return order == Order::kLess ? 0 : 1;
  auto [a_low, a_high] = a >= 0 ? std::pair(a, a) : infer.dims.range(a);
  auto [b_low, b_high] = b >= 0 ? std::pair(b, b) : infer.dims.range(b);
  if (order == Order::kEqual) {
    if (a_low == a_high && b_low == b_high) return a_low == b_low ? 1 : 0;
    return a_high < b_low || b_high < a_low ? 0 : REGIE_DIM_UNKNOWN;
  }
  if (order == Order::kLess) return a_high < b_low ? 1 : b_high <= a_low ? 0 : REGIE_DIM_UNKNOWN;
  return a_high <= b_low ? 1 : b_high < a_low ? 0 : REGIE_DIM_UNKNOWN;
}

template <Order order, bool swapped>
void infer_order(const Infer& infer) {
  infer_compare(infer);
  auto a = infer.content(swapped ? 1 : 0), b = infer.content(swapped ? 0 : 1);
  if (!a || !b || a->empty() || b->empty()) return;
  Shape content(std::max(a->size(), b->size()));
  for (const Shape& side : {*a, *b})
    if (side.size() != 1 && side.size() != content.size()) return;
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = known_order(infer, order, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
  infer.content(0, content);
}

// And, Or: one side may be enough.
template <bool deciding>
void infer_junction(const Infer& infer) {
  infer_compare(infer);
  auto a = infer.content(0), b = infer.content(1);
  if ((a && a->size() != 1) || (b && b->size() != 1)) return;
  auto is = [&](const std::optional<Shape>& side, bool value) {
    const auto number = side ? infer.number((*side)[0]) : std::nullopt;
    return number && (*number != 0) == value;
  };
  regie_dim content = deciding;
  if (is(a, !deciding) && is(b, !deciding))
    content = !deciding;
  else if (!is(a, deciding) && !is(b, deciding))
    return;
  for (uint32_t i = 0; i < 2; ++i)  // of one element whatever the other side is
    for (regie_dim d : infer.shape(i))
      if (d != 1) return;
  infer.content(0, {&content, 1});
}

struct IsEqual {
  template <class A>
  bool operator()(A a, A b) const {
    return a == b;
  }
  bool operator()(const regie_str& a, const regie_str& b) const { return sdk::sv(a) == sdk::sv(b); }
};
struct IsLess {
  template <class A>
  bool operator()(A a, A b) const {
    return a < b;
  }
};
struct IsGreater {
  template <class A>
  bool operator()(A a, A b) const {
    return a > b;
  }
};
struct IsLessOrEqual {
  template <class A>
  bool operator()(A a, A b) const {
    return a <= b;
  }
};
struct IsGreaterOrEqual {
  template <class A>
  bool operator()(A a, A b) const {
    return a >= b;
  }
};
struct Both {
  bool operator()(bool a, bool b) const { return a && b; }
};
struct Either {
  bool operator()(bool a, bool b) const { return a || b; }
};
struct Different {
  bool operator()(bool a, bool b) const { return a != b; }
};

template <class F, class List>
KernelPtr prepare_compare(Prepare& p) {
  return prepare_binary<F, List, Bool>(p);
}

void infer_where(const Infer& infer) {
  Shape shape = broadcast_operands(infer, 0, 3);
  infer.result(0, infer.elem(1), shape);
  auto c = infer.content(0), x = infer.content(1), y = infer.content(2);
  if (!c || !x || !y || shape.size() > 1) return;
  Shape content(std::max({c->size(), x->size(), y->size()}));
  for (const Shape& side : {*c, *x, *y})
    if (side.size() != 1 && side.size() != content.size()) return;
  for (size_t i = 0; i < content.size(); ++i) {
    auto condition = infer.number((*c)[c->size() == 1 ? 0 : i]);
    if (!condition) return;
    const Shape& side = *condition != 0 ? *x : *y;
    content[i] = side[side.size() == 1 ? 0 : i];
  }
  infer.content(0, content);
}

template <class T>
KernelPtr where_kernel(Prepare& p) {
  auto shape = broadcast_operands(p, 0, 3);
  p.expect_result(0, shape);
  Walk<4> walk(shape, {broadcast_strides(p.op, p.shape(0), shape), broadcast_strides(p.op, p.shape(1), shape),
                       broadcast_strides(p.op, p.shape(2), shape), dense_strides(shape)});
  return make_kernel([=](const Call& call) {
    walk.rows([&](const auto& at, int64_t count, const auto& step) {
      const Bool* condition = call.in<Bool>(0) + at[0];
      const T *x = call.in<T>(1) + at[1], *y = call.in<T>(2) + at[2];
      T* result = call.out<T>(0) + at[3];
      for (int64_t i = 0; i < count; ++i)
        result[i * step[3]] = condition[i * step[0]] ? x[i * step[1]] : y[i * step[2]];
    });
  });
}

KernelPtr prepare_where(Prepare& p) {
  if (p.in(0).elem != REGIE_BOOL || p.in(1).elem != p.in(2).elem)
    p.bad("needs a bool and two tensors of one type");
  switch (elem_size(p.in(1).elem)) {
    case 1:
      return where_kernel<uint8_t>(p);
    case 2:
      return where_kernel<uint16_t>(p);
    case 4:
      return where_kernel<uint32_t>(p);
    case 8:
      return where_kernel<uint64_t>(p);
    default:
      p.no_type(p.in(1).elem);
  }
}

constexpr uint32_t flags = REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE;
constexpr Op table[] = {
    {"Equal", flags, infer_order<Order::kEqual, false>,
     prepare_compare<IsEqual, Join<All, Types<regie_str>>>},
    {"Less", REGIE_OP_ELEMENTWISE, infer_order<Order::kLess, false>, prepare_compare<IsLess, Numbers>},
    {"Greater", REGIE_OP_ELEMENTWISE, infer_order<Order::kLess, true>, prepare_compare<IsGreater, Numbers>},
    {"LessOrEqual", REGIE_OP_ELEMENTWISE, infer_order<Order::kLessOrEqual, false>,
     prepare_compare<IsLessOrEqual, Numbers>},
    {"GreaterOrEqual", REGIE_OP_ELEMENTWISE, infer_order<Order::kLessOrEqual, true>,
     prepare_compare<IsGreaterOrEqual, Numbers>},
    {"And", flags, infer_junction<false>, prepare_compare<Both, Types<Bool>>},
    {"Or", flags, infer_junction<true>, prepare_compare<Either, Types<Bool>>},
    {"Xor", flags, infer_compare, prepare_compare<Different, Types<Bool>>},
    {"Where", flags, infer_where, prepare_where},
};

}  // namespace

std::span<const Op> compare_ops() { return table; }

}  // namespace regie::ops
