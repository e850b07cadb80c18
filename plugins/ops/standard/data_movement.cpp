// Operators that copy elements to other places: Transpose, Concat, Split, Expand, Gather.
#include <algorithm>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- Transpose ----

std::vector<size_t> permutation(std::string_view op, const sdk::Attrs& attrs, size_t rank) {
  std::vector<size_t> order(rank);
  auto given = attrs.integers("perm");
  if (!given) {
    for (size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
    return order;
  }
  std::vector<bool> seen(rank, false);
  bool fits = given->size() == rank;
  for (size_t i = 0; fits && i < rank; ++i) {
    int64_t axis = (*given)[i] < 0 ? (*given)[i] + static_cast<int64_t>(rank) : (*given)[i];
    fits = axis >= 0 && axis < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(axis)];
    if (!fits) break;
    order[i] = static_cast<size_t>(axis);
    seen[order[i]] = true;
  }
  if (!fits)
    throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": attribute 'perm' " + print_shape(*given) +
                                                " is no permutation of " + std::to_string(rank) + " axes");
  return order;
}

void infer_transpose(const Infer& infer) {
  auto x = infer.shape(0);
  Shape y;
  auto order = permutation(infer.op, infer.attrs, x.size());
  for (size_t axis : order) y.push_back(x[axis]);
  infer.result(0, infer.elem(0), y);
  auto elements = infer.elements(0);
  if (!elements || y.size() > max_rank || std::any_of(y.begin(), y.end(), [](regie_dim d) { return d < 0; }))
    return;
  Dims dense = dense_strides(x), from{};
  for (size_t i = 0; i < order.size(); ++i) from[i] = dense[order[i]];
  Shape turned;
  Walk<1>(y, {from}).rows([&](const auto& at, int64_t count, const auto& step) {
    for (int64_t i = 0; i < count; ++i)
      turned.push_back((*elements)[static_cast<size_t>(at[0] + i * step[0])]);
  });
  infer.content(0, turned);
}

KernelPtr prepare_transpose(Prepare& p) {
  Index x = p.shape(0);
  check_rank(p.op, x.size());
  Dims dense = dense_strides(x), from{};
  std::vector<int64_t> y;
  for (size_t axis : permutation(p.op, p.attrs, x.size())) {
    from[y.size()] = dense[axis];
    y.push_back(x[axis]);
  }
  p.expect_result(0, y);
  Walk<2> walk(y, {from, dense_strides(y)});
  return make_kernel([walk, size = p.moved_bytes(p.in(0))](const Call& call) {
    copy_strided(walk, size, call.in<void>(0), call.out<void>(0));
  });
}

// ---- Concat ----

void infer_concat(const Infer& infer) {
  if (infer.operands() == 0) infer.bad("needs at least one operand");
  const size_t at = infer.axis_attribute(0);
  Shape y(infer.shape(0).begin(), infer.shape(0).end());
  auto content = infer.content(0);
  for (uint32_t i = 1; i < infer.operands(); ++i) {
    auto x = infer.shape(i);
    bool fits = x.size() == y.size();
    for (size_t k = 0; fits && k < x.size(); ++k) {
      if (k == at) continue;
      fits = infer.agree(x[k], y[k]);
      if (x[k] >= 0) y[k] = x[k];
    }
    if (!fits)
      infer.bad("operand " + std::to_string(i) + " of shape " + infer.print(x) +
                " does not fit the others, " + infer.print(infer.shape(0)) + ", besides axis " +
                std::to_string(at));
    y[at] = infer.dims.add(y[at], x[at]);
    auto more = infer.content(i);
    if (content && more) {
      content->insert(content->end(), more->begin(), more->end());
    } else {
      content.reset();
    }
  }
  infer.result(0, infer.elem(0), y);
  if (content) infer.content(0, *content);
}

// Concat and Split copy blocks: `outer` times the bytes of each part, side by side in the whole.
struct Blocks {
  int64_t outer = 1;
  std::vector<uint64_t> parts;

  Blocks(Index whole, size_t axis) {
    for (size_t i = 0; i < axis; ++i) outer *= whole[i];
  }
  // Bytes of one block of a part of this shape.
  static uint64_t bytes(Index shape, size_t axis, uint32_t size) {
    uint64_t n = size;
    for (int64_t d : shape.subspan(axis)) n *= static_cast<uint64_t>(d);
    return n;
  }
};

KernelPtr prepare_concat(Prepare& p) {
  if (p.operands() == 0) p.bad("needs at least one operand");
  auto axis = p.axis_attribute(0);
  uint32_t size = p.moved_bytes(p.in(0));
  std::vector<int64_t> y(p.shape(0).begin(), p.shape(0).end());
  y[axis] = 0;
  for (uint32_t i = 0; i < p.operands(); ++i) {
    Index x = p.shape(i);
    if (x.size() != y.size() || p.in(i).elem != p.in(0).elem) p.bad("operands must have one rank and type");
    for (size_t k = 0; k < x.size(); ++k)
      if (k != axis && x[k] != y[k])
        p.bad("operand " + std::to_string(i) + " of shape " + print_shape(x) + " does not fit the others");
    y[axis] += x[axis];
  }
  p.expect_result(0, y);
  Blocks blocks(y, axis);
  for (uint32_t i = 0; i < p.operands(); ++i) blocks.parts.push_back(Blocks::bytes(p.shape(i), axis, size));
  return make_kernel([blocks](const Call& call) {
    auto* to = call.out<char>(0);
    for (int64_t o = 0; o < blocks.outer; ++o)
      for (uint32_t i = 0; i < blocks.parts.size(); ++i) {
        uint64_t bytes = blocks.parts[i];
        if (bytes == 0) continue;
        copy_bytes(to, call.in<char>(i) + static_cast<uint64_t>(o) * bytes, bytes);
        to += bytes;
      }
  });
}

// ---- Split ----

std::string not_equal(const std::string& size, uint32_t parts) {
  return "an axis of size " + size + " cannot be split into " + std::to_string(parts) + " equal parts";
}

void infer_split(const Infer& infer) {
  auto x = infer.shape(0);
  auto axis = infer.axis_attribute(0);
  uint32_t parts = infer.results();
  auto content = infer.content(0);
  Shape sizes;
  if (infer.has(1)) {
    if (infer.attrs.has("num_outputs"))
      infer.bad("operand 'split' and attribute 'num_outputs' exclude each other");
    sizes = infer.list(1);
    if (sizes.size() != parts)
      infer.bad("'split' has " + std::to_string(sizes.size()) + " sizes for " + std::to_string(parts) +
                " results");
    regie_dim sum = 0;
    for (regie_dim s : sizes) sum = infer.dims.add(sum, s);
    if (!infer.agree(sum, x[axis]))
      infer.bad("the sizes of 'split' make " + infer.dims.print(sum) + "; the axis has " +
                infer.dims.print(x[axis]));
  } else {
    int64_t count = infer.attrs.integer("num_outputs", parts);
    if (count != parts || count < 1)
      infer.bad("'num_outputs' is " + std::to_string(count) + ", but there are " + std::to_string(parts) +
                " results");
    const regie_dim each = infer.dims.ceildiv(x[axis], count);
    const regie_dim last = infer.dims.sub(x[axis], infer.dims.mul(each, count - 1));
    sizes.assign(parts, each);
    if (infer.attrs.has("num_outputs")) {
      if (infer.surely_below(last, 0))
        infer.bad("an axis of size " + infer.dims.print(x[axis]) + " is too small for " +
                  std::to_string(parts) + " parts of " + infer.dims.print(each) +
                  ", of which the last may be smaller");
      sizes.back() = last;
    } else if (infer.surely_differ(last, each)) {
      infer.bad(not_equal(infer.dims.print(x[axis]), parts));
    }
    // Else the parts are of one size, which for a symbolic axis only the run can refuse: prepare_split.
  }
  size_t begin = 0;
  for (uint32_t i = 0; i < parts; ++i) {
    Shape y(x.begin(), x.end());
    y[axis] = sizes[i];
    infer.result(i, infer.elem(0), y);
    if (!content || sizes[i] < 0 || begin + static_cast<size_t>(sizes[i]) > content->size()) {
      content.reset();
      continue;
    }
    infer.content(i, std::span(*content).subspan(begin, static_cast<size_t>(sizes[i])));
    begin += static_cast<size_t>(sizes[i]);
  }
}

KernelPtr prepare_split(Prepare& p) {
  Index x = p.shape(0);
  auto axis = p.axis_attribute(0);
  uint32_t size = p.moved_bytes(p.in(0));
  int64_t sum = 0;
  if (!p.has(1) && !p.attrs.has("num_outputs") && x[axis] % p.results() != 0)
    p.bad(not_equal(std::to_string(x[axis]), p.results()));
  Blocks blocks(x, axis);
  for (uint32_t i = 0; i < p.results(); ++i) {
    if (!p.wants(i)) p.unsupported("result " + std::to_string(i) + " is omitted; its size cannot be known");
    Index y = p.out_shape(i);
    bool fits = y.size() == x.size();
    for (size_t k = 0; fits && k < x.size(); ++k) fits = k == axis || x[k] == y[k];
    if (!fits) p.bad("result " + std::to_string(i) + " has the shape " + print_shape(y));
    sum += y[axis];
    blocks.parts.push_back(Blocks::bytes(y, axis, size));
  }
  if (sum != x[axis])
    p.bad("the parts make " + std::to_string(sum) + "; the axis has " + std::to_string(x[axis]));
  return make_kernel([blocks](const Call& call) {
    const auto* from = call.in<char>(0);
    for (int64_t o = 0; o < blocks.outer; ++o)
      for (uint32_t i = 0; i < blocks.parts.size(); ++i) {
        uint64_t bytes = blocks.parts[i];
        if (bytes == 0) continue;
        copy_bytes(call.out<char>(i) + static_cast<uint64_t>(o) * bytes, from, bytes);
        from += bytes;
      }
  });
}

// ---- Expand ----

void infer_expand(const Infer& infer) {
  if (infer.rank(1) != 1) infer.bad("the shape must be a list");
  Shape wanted = infer.list(1);
  for (regie_dim d : wanted)
    if (infer.surely_below(d, 0)) infer.bad("the shape has a negative dimension");
  Shape y = infer.broadcast(infer.shape(0), wanted);
  infer.result(0, infer.elem(0), y);
  auto content = infer.content(0);
  if (!content || content->size() != 1 || y.size() > 1) return;
  if (y.size() == 1 && y[0] < 0) return;
  if (y.size() == 1 && y[0] <= 1024) content->assign(static_cast<size_t>(y[0]), content->front());
  infer.content(0, *content);
}

KernelPtr prepare_expand(Prepare& p) {
  Index y = p.out_shape(0);
  Walk<2> walk(y, {broadcast_strides(p.op, p.shape(0), y), dense_strides(y)});
  return make_kernel([walk, size = p.moved_bytes(p.in(0))](const Call& call) {
    copy_strided(walk, size, call.in<void>(0), call.out<void>(0));
  });
}

// ---- Gather ----

void infer_gather(const Infer& infer) {
  auto x = infer.shape(0), indices = infer.shape(1);
  auto axis = infer.axis_attribute(0);
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.begin(), indices.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  infer.result(0, infer.elem(0), y);
  auto content = infer.content(0);
  auto wanted = infer.numbers(1);
  if (!content || !wanted || x.size() != 1) return;
  Shape picked;
  for (int64_t i : *wanted) {
    auto at = static_cast<size_t>(normal_axis("Gather: index", i, static_cast<int64_t>(content->size())));
    picked.push_back((*content)[at]);
  }
  infer.content(0, picked);
}

template <class I>
KernelPtr gather_kernel(int64_t outer, int64_t size, uint64_t block, int64_t count) {
  return make_kernel([=](const Call& call) {
    const I* indices = call.in<I>(1);
    auto* to = call.out<char>(0);
    for (int64_t o = 0; o < outer; ++o) {
      const char* from = call.in<char>(0) + static_cast<uint64_t>(o * size) * block;
      for (int64_t i = 0; i < count; ++i, to += block) {
        const int64_t index = normal_index("Gather", indices[i], size);
        copy_bytes(to, from + static_cast<uint64_t>(index) * block, block);
      }
    }
  });
}

KernelPtr prepare_gather(Prepare& p) {
  Index x = p.shape(0), indices = p.shape(1);
  auto axis = p.axis_attribute(0);
  std::vector<int64_t> y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), indices.begin(), indices.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  p.expect_result(0, y);
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= x[i];
  uint64_t block = Blocks::bytes(x, axis + 1, p.moved_bytes(p.in(0)));
  int64_t count = sdk::count_of(p.in(1));
  return p.dispatch(IndexTypes(), p.in(1).elem,
                    [&]<class I>() { return gather_kernel<I>(outer, x[axis], block, count); });
}

constexpr Op table[] = {
    {"Transpose", 0, infer_transpose, prepare_transpose},
    {"Concat", 0, infer_concat, prepare_concat},
    {"Split", 0, infer_split, prepare_split},
    {"Expand", 0, infer_expand, prepare_expand},
    {"Gather", 0, infer_gather, prepare_gather},
};

}  // namespace

std::span<const Op> data_movement_ops() { return table; }

}  // namespace regie::ops
