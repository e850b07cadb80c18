// Einsum, for up to three operands, and Det.
#include <algorithm>
#include <cmath>
#include <map>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// Labels of one operand, or of the result: letters, and '0', '1', ... for the dimensions behind "...",
// counted from the last.
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

[[noreturn]] void wrong(std::string_view equation, const std::string& why) {
  throw sdk::Failure(REGIE_INVALID_MODEL, "Einsum: the equation '" + std::string(equation) + "' " + why);
}

Labels read_term(std::string_view equation, std::string_view term, int64_t rank, size_t* hidden) {
  Labels labels;
  size_t letters = 0;
  for (char c : term) letters += std::isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(static_cast<unsigned char>(term[i]));
    } else if (term.substr(i, 3) == "...") {
      const size_t count =
          rank >= 0 ? static_cast<size_t>(std::max<int64_t>(0, rank - static_cast<int64_t>(letters)))
                    : *hidden;
      *hidden = std::max(*hidden, count);
      for (size_t k = count; k-- > 0;) labels.push_back(-1 - static_cast<int>(k));
      i += 2;
    } else {
      wrong(equation, "has a character that is neither a letter nor '...'");
    }
  }
  return labels;
}

Equation read_equation(std::string_view equation, const std::vector<int64_t>& ranks) {
  Equation e;
  const size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  size_t hidden = 0;
  std::vector<std::string_view> terms;
  for (;;) {
    const size_t comma = left.find(',');
    terms.push_back(left.substr(0, comma));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != ranks.size())
    wrong(equation,
          "is for " + std::to_string(terms.size()) + " operands; there are " + std::to_string(ranks.size()));
  for (size_t i = 0; i < terms.size(); ++i) {
    e.operands.push_back(read_term(equation, terms[i], ranks[i], &hidden));
    if (static_cast<int64_t>(e.operands.back().size()) != ranks[i])
      wrong(equation, "does not fit operand " + std::to_string(i) + " of rank " + std::to_string(ranks[i]));
  }
  if (arrow != std::string_view::npos) {
    e.result = read_term(equation, equation.substr(arrow + 2), -1, &hidden);
    return e;
  }
  // Without an arrow: what is hidden, then the letters that occur once, in their order.
  std::map<int, int> times;
  for (const Labels& labels : e.operands)
    for (int label : labels) ++times[label];
  for (size_t k = hidden; k-- > 0;) e.result.push_back(-1 - static_cast<int>(k));
  for (auto [label, count] : times)
    if (label > 0 && count == 1) e.result.push_back(label);
  return e;
}

void infer_einsum(const Infer& infer) {
  std::string_view text = infer.attrs.text("equation", "");
  std::vector<int64_t> ranks;
  for (uint32_t i = 0; i < infer.operands(); ++i) ranks.push_back(infer.rank(i));
  if (ranks.size() > 3) infer.unsupported("more than three operands");
  const Equation e = read_equation(text, ranks);
  std::map<int, regie_dim> sizes;
  for (uint32_t i = 0; i < infer.operands(); ++i)
    for (size_t k = 0; k < e.operands[i].size(); ++k) {
      const regie_dim d = infer.shape(i)[k];
      auto [it, fresh] = sizes.emplace(e.operands[i][k], d);
      if (fresh || it->second == d || d == 1) continue;
      if (it->second == 1 || d >= 0) {
        if (it->second != 1 && infer.surely_differ(it->second, d))
          infer.bad("the equation '" + std::string(text) + "' gives one label the sizes " +
                    infer.dims.print(it->second) + " and " + infer.dims.print(d));
        it->second = d;
      } else if (!infer.agree(it->second, d)) {
        infer.bad("the equation '" + std::string(text) + "' gives one label two sizes");
      }
    }
  Shape y;
  for (int label : e.result) {
    auto it = sizes.find(label);
    if (it == sizes.end())
      infer.bad("the equation '" + std::string(text) + "' has a label in the result only");
    y.push_back(it->second);
  }
  infer.result(0, infer.elem(0), y);
}

template <class T, size_t n>
KernelPtr einsum_kernel(Prepare& p, Index shape, const std::array<Dims, n + 1>& strides) {
  using A = Sum<T>;
  Walk<n + 1> walk(shape, strides);
  const int64_t count = sdk::count_of(p.out(0));
  p.scratch_bytes = static_cast<uint64_t>(count) * sizeof(A);
  return make_kernel([=](const Call& call) {
    A* sums = call.scratch<A>();
    std::fill_n(sums, count, A(0));
    walk.rows([&](const auto& at, int64_t length, const auto& step) {
      std::array<const T*, n> from;
      for (size_t k = 0; k < n; ++k) from[k] = call.in<T>(static_cast<uint32_t>(k)) + at[k];
      A* to = sums + at[n];
      for (int64_t i = 0; i < length; ++i) {
        A product = static_cast<A>(Compute<T>(from[0][i * step[0]]));
        for (size_t k = 1; k < n; ++k) product *= static_cast<A>(Compute<T>(from[k][i * step[k]]));
        to[i * step[n]] += product;
      }
    });
    for (int64_t i = 0; i < count; ++i) call.out<T>(0)[i] = T(static_cast<Compute<T>>(sums[i]));
  });
}

template <size_t n>
KernelPtr prepare_terms(Prepare& p, const Equation& e) {
  // Axes of the walk: the result's, then those that are summed over.
  std::vector<int> order = e.result;
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < e.operands[i].size(); ++k) {
      const int label = e.operands[i][k];
      const int64_t size = p.shape(static_cast<uint32_t>(i))[k];
      if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
      auto [it, fresh] = sizes.emplace(label, size);
      if (!fresh && it->second == 1) it->second = size;
      if (size != 1 && it->second != size) p.bad("one label has two sizes");
    }
  check_rank(p.op, order.size());
  std::vector<int64_t> shape, result;
  for (int label : order) shape.push_back(sizes[label]);
  result.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(e.result.size()));
  p.expect_result(0, result);
  std::array<Dims, n + 1> strides{};
  for (size_t i = 0; i < n; ++i) {
    Index s = p.shape(static_cast<uint32_t>(i));
    Dims dense = dense_strides(s);
    for (size_t k = 0; k < s.size(); ++k) {
      const auto axis =
          static_cast<size_t>(std::find(order.begin(), order.end(), e.operands[i][k]) - order.begin());
      if (s[k] != 1) strides[i][axis] += dense[k];  // a label twice: the diagonal
    }
  }
  Dims dense = dense_strides(result);
  std::copy_n(dense.begin(), result.size(), strides[n].begin());
  return p.dispatch(Join<Floats, WideInts>(), p.in(0).elem,
                    [&]<class T>() { return einsum_kernel<T, n>(p, shape, strides); });
}

KernelPtr prepare_einsum(Prepare& p) {
  std::vector<int64_t> ranks;
  for (uint32_t i = 0; i < p.operands(); ++i) {
    if (p.in(i).elem != p.in(0).elem) p.bad("all operands must have one type");
    ranks.push_back(static_cast<int64_t>(p.shape(i).size()));
  }
  const Equation e = read_equation(p.attrs.text("equation", ""), ranks);
  switch (ranks.size()) {
    case 1:
      return prepare_terms<1>(p, e);
    case 2:
      return prepare_terms<2>(p, e);
    case 3:
      return prepare_terms<3>(p, e);
    default:
      p.unsupported("more than three operands");
  }
}

// ---- Det: by elimination with pivots ----

void infer_det(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() < 2 || !infer.agree(x[x.size() - 1], x[x.size() - 2]))
    infer.bad("needs square matrices, not " + infer.print(x));
  infer.result(0, infer.elem(0), x.first(x.size() - 2));
}

KernelPtr prepare_det(Prepare& p) {
  Index x = p.shape(0);
  if (x.size() < 2 || x.back() != x[x.size() - 2]) p.bad("needs square matrices");
  p.expect_result(0, x.first(x.size() - 2));
  const int64_t n = x.back(), matrices = sdk::count_of(p.out(0));
  p.scratch_bytes = static_cast<uint64_t>(n * n) * sizeof(double);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      auto* a = call.scratch<double>();
      for (int64_t m = 0; m < matrices; ++m) {
        for (int64_t i = 0; i < n * n; ++i)
          a[i] = static_cast<double>(Compute<T>(call.in<T>(0)[m * n * n + i]));
        double det = 1;
        for (int64_t c = 0; c < n && det != 0; ++c) {
          int64_t pivot = c;
          for (int64_t r = c + 1; r < n; ++r)
            if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
          if (pivot != c) {
            std::swap_ranges(a + c * n, a + (c + 1) * n, a + pivot * n);
            det = -det;
          }
          det *= a[c * n + c];
          if (a[c * n + c] == 0) break;
          for (int64_t r = c + 1; r < n; ++r) {
            const double factor = a[r * n + c] / a[c * n + c];
            for (int64_t k = c; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
          }
        }
        call.out<T>(0)[m] = T(static_cast<Compute<T>>(det));
      }
    });
  });
}

constexpr Op table[] = {
    {"Einsum", 0, infer_einsum, prepare_einsum},
    {"Det", 0, infer_det, prepare_det},
};

}  // namespace

std::span<const Op> einsum_ops() { return table; }

}  // namespace regie::ops
