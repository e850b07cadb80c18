// Operators whose result is their first operand's bytes under another shape: Reshape, Flatten, Squeeze,
// Unsqueeze, Identity, Dropout (inference).
#include <algorithm>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// Operand 0 under another shape.
void result_with_content(const Infer& infer, std::span<const regie_dim> shape) {
  infer.result(0, infer.elem(0), shape);
  if (auto elements = infer.elements(0)) infer.content(0, *elements);
}

void infer_identity(const Infer& infer) { result_with_content(infer, infer.shape(0)); }

void infer_dropout(const Infer& infer) {
  if (infer.has(2)) {
    const regie_tensor* training = infer.in(2).data;
    if (!training || !training->data || *static_cast<const uint8_t*>(training->data) != 0)
      infer.unsupported("training_mode must be a constant false; export the model for inference");
  }
  infer_identity(infer);
  infer.result(1, REGIE_BOOL, infer.shape(0));
}

void infer_flatten(const Infer& infer) {
  auto x = infer.shape(0);
  int64_t axis = infer.attrs.integer("axis", 1), rank = infer.rank(0);
  if (axis != rank) axis = infer.axis(axis, std::max<int64_t>(rank, 1));
  auto split = static_cast<size_t>(std::min(axis, rank));
  Shape y{infer.dims.product(x.first(split)), infer.dims.product(x.subspan(split))};
  result_with_content(infer, y);
}

// N * 4 elements that are to be 8 make N two. False if no size of the only unknown dimension does.
bool fix_last_symbol(const Infer& infer, std::span<const regie_dim> dims, regie_dim total) {
  regie_dim unknown = REGIE_DIM_UNKNOWN;
  int64_t others = 1;
  for (regie_dim d : dims) {
    if (d >= 0) {
      others *= d;
    } else if (unknown != REGIE_DIM_UNKNOWN) {
      return true;
    } else {
      unknown = d;
    }
  }
  if (unknown == REGIE_DIM_UNKNOWN || total < 0 || others <= 0) return true;
  return total % others == 0 && infer.agree(unknown, total / others);
}

void infer_reshape(const Infer& infer) {
  auto x = infer.shape(0);
  if (infer.rank(1) != 1) infer.bad("the shape must be a list");
  Shape wanted = infer.list(1);
  if (!Infer::known(wanted)) return infer.result(0, infer.elem(0), wanted);
  bool allow_zero = infer.attrs.integer("allowzero", 0) != 0;
  std::optional<size_t> open;
  bool zero = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto n = infer.number(wanted[i]);
    if (n && *n == -1) {
      if (open) infer.bad("the shape has more than one -1");
      open = i;
      wanted[i] = 1;
    } else if (n && *n < -1) {
      infer.bad("the shape has the dimension " + std::to_string(*n));
    } else if (n && *n == 0 && !allow_zero) {
      if (i >= x.size())
        infer.bad("dimension " + std::to_string(i) + " is to be kept, but the input has rank " +
                  std::to_string(x.size()));
      wanted[i] = x[i];
    } else if (n && *n == 0) {
      zero = true;
    }
  }
  if (open && zero) infer.bad("a shape with 0 cannot have -1 as well");
  // Dimensions on both sides cancel: expressions do not divide as well, and a kept 0 leaves -1 with a
  // meaning.
  Shape left(x.begin(), x.end()), right = wanted;
  for (regie_dim& r : right) {
    auto l = r == 0 && !open ? left.end() : std::find(left.begin(), left.end(), r);
    if (l == left.end()) continue;
    *l = r = 1;
  }
  regie_dim total = infer.dims.product(left), known = infer.dims.product(right);
  if (open) {
    if (known == 0) infer.bad("-1 cannot be found out beside a dimension of 0");
    if (total >= 0 && known > 0 && total % known != 0)
      infer.bad("a tensor of shape " + infer.print(x) + " cannot be split into rows of " +
                std::to_string(known));
    wanted[*open] = infer.dims.floordiv(total, known);
  } else if (infer.surely_differ(total, known) || !fix_last_symbol(infer, left, known)) {
    infer.bad("a tensor of shape " + infer.print(x) + " cannot have the shape " + infer.print(wanted));
  }
  result_with_content(infer, wanted);
}

void infer_squeeze(const Infer& infer) {
  auto x = infer.shape(0);
  std::vector<bool> drop(x.size(), false);
  if (infer.has(1)) {
    const auto axes = infer.numbers(1);
    if (!axes) {
      const size_t gone = infer.length(1);
      if (gone > x.size()) infer.bad("there are more axes than the input has");
      return infer.result(0, infer.elem(0), Infer::unknown(x.size() - gone));
    }
    for (int64_t given : *axes) {
      auto axis = static_cast<size_t>(infer.axis(given, infer.rank(0)));
      if (!infer.agree(x[axis], 1))
        infer.bad("axis " + std::to_string(given) + " of " + infer.print(x) + " does not have the size 1");
      drop[axis] = true;
    }
  } else {
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != 1 && !infer.surely_differ(x[i], 1))
        infer.unsupported("the shape " + infer.print(x) + " may or may not have size 1 on axis " +
                          std::to_string(i) + "; give the axes");
      drop[i] = x[i] == 1;
    }
  }
  Shape y;
  for (size_t i = 0; i < x.size(); ++i)
    if (!drop[i]) y.push_back(x[i]);
  result_with_content(infer, y);
}

void infer_unsqueeze(const Infer& infer) {
  auto x = infer.shape(0);
  const auto given_axes = infer.numbers(1);
  if (!given_axes) return infer.result(0, infer.elem(0), Infer::unknown(x.size() + infer.length(1)));
  const std::vector<int64_t>& axes = *given_axes;
  std::vector<bool> added(x.size() + axes.size(), false);
  for (int64_t given : axes) {
    auto axis = static_cast<size_t>(infer.axis(given, static_cast<int64_t>(added.size())));
    if (added[axis]) infer.bad("axis " + std::to_string(given) + " is given twice");
    added[axis] = true;
  }
  Shape y;
  size_t next = 0;
  for (bool is_new : added) y.push_back(is_new ? 1 : x[next++]);
  result_with_content(infer, y);
}

KernelPtr prepare_view(Prepare& p) {
  const regie_tensor &x = p.in(0), &y = p.out(0);
  uint32_t size = elem_size(x.elem);
  if (size == 0) p.no_type(x.elem);
  if (sdk::count_of(x) != sdk::count_of(y) || x.elem != y.elem)
    p.bad("a tensor of shape " + print_shape(p.shape(0)) + " cannot become " + print_shape(p.out_shape(0)));
  int64_t masks = p.wants(1) ? sdk::count_of(p.out(1)) : 0;  // Dropout keeps everything
  return make_kernel([masks, bytes = static_cast<uint64_t>(sdk::count_of(x)) * size](const Call& call) {
    copy_bytes(call.out<void>(0), call.in<void>(0), bytes);
    if (masks > 0) std::fill_n(call.out<uint8_t>(1), masks, uint8_t{1});
  });
}

constexpr uint32_t flags = REGIE_OP_VIEW;
constexpr Op table[] = {
    {"Identity", flags, infer_identity, prepare_view}, {"Dropout", flags, infer_dropout, prepare_view},
    {"Flatten", flags, infer_flatten, prepare_view},   {"Reshape", flags, infer_reshape, prepare_view},
    {"Squeeze", flags, infer_squeeze, prepare_view},   {"Unsqueeze", flags, infer_unsqueeze, prepare_view},
};

}  // namespace

std::span<const Op> view_ops() { return table; }

}  // namespace regie::ops
