// TfIdfVectorizer: how often each n-gram of a pool occurs in a row, with gaps of up to max_skip_count. The
// weight of an n-gram is that of its column.
#include <algorithm>
#include <compare>

#include "op.h"

namespace regie::ops {
namespace {

struct Pool {
  std::vector<int64_t> items;
  struct Gram {
    int64_t first, column;  // into items; of the result
  };
  std::vector<std::vector<Gram>> by_size;  // sorted by their items; [0] is empty
  int64_t shortest, longest, skips, columns = 0;
};

std::span<const int64_t> list(const sdk::Attrs& attrs, std::string_view name) {
  return attrs.integers(name).value_or(std::span<const int64_t>());
}

int64_t columns_of(std::string_view op, std::span<const int64_t> indexes) {
  int64_t columns = 0;
  for (int64_t i : indexes) {
    if (i < 0)
      throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": ngram_indexes has a negative number");
    columns = std::max(columns, i + 1);
  }
  return columns;
}

void infer_ngrams(const Infer& infer) {
  if (infer.attrs.has("pool_strings")) infer.unsupported("pools of strings are not covered");
  auto x = infer.shape(0);
  if (x.size() > 2) infer.bad("the operand must be a row or a batch of rows, not " + infer.print(x));
  const int64_t columns = columns_of(infer.op, list(infer.attrs, "ngram_indexes"));
  infer.result(0, REGIE_F32, x.size() == 2 ? Shape{x[0], columns} : Shape{columns});
}

Pool pool_of(Prepare& p) {
  Pool pool;
  auto items = list(p.attrs, "pool_int64s"), starts = list(p.attrs, "ngram_counts"),
       indexes = list(p.attrs, "ngram_indexes");
  pool.items.assign(items.begin(), items.end());
  pool.shortest = p.attrs.integer("min_gram_length", 1);
  pool.longest = p.attrs.integer("max_gram_length", 1);
  pool.skips = p.attrs.integer("max_skip_count", 0);
  pool.columns = columns_of(p.op, indexes);
  if (pool.shortest < 1 || pool.longest < pool.shortest || pool.skips < 0)
    p.bad("the lengths of n-grams must be 1 or more, in order, and skips not negative");
  const auto total = static_cast<int64_t>(items.size());
  size_t number = 0;
  pool.by_size.emplace_back();
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t size = static_cast<int64_t>(i) + 1, end = i + 1 < starts.size() ? starts[i + 1] : total;
    if (starts[i] < 0 || starts[i] > end || end > total || (end - starts[i]) % size != 0)
      p.bad("ngram_counts do not fit the pool");
    auto& grams = pool.by_size.emplace_back();
    for (int64_t at = starts[i]; at < end; at += size, ++number) {
      if (number >= indexes.size()) p.bad("ngram_indexes has fewer numbers than the pool has n-grams");
      grams.push_back({at, indexes[number]});
    }
    std::stable_sort(grams.begin(), grams.end(), [&](const Pool::Gram& a, const Pool::Gram& b) {
      const int64_t* from = pool.items.data();
      return std::lexicographical_compare(from + a.first, from + a.first + size, from + b.first,
                                          from + b.first + size);
    });
  }
  return pool;
}

// The column of the n-gram at from[0], from[step], ...; -1 if the pool lacks it. Of equal ones the last
// counts.
template <class T>
int64_t find(const Pool& pool, int64_t size, const T* from, int64_t step) {
  const auto& grams = pool.by_size[static_cast<size_t>(size)];
  auto order = [&](const Pool::Gram& gram) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t item = pool.items[static_cast<size_t>(gram.first + i)], here = from[i * step];
      if (item != here) return item <=> here;
    }
    return std::strong_ordering::equal;
  };
  auto end =
      std::partition_point(grams.begin(), grams.end(), [&](const Pool::Gram& g) { return order(g) <= 0; });
  return end != grams.begin() && order(*(end - 1)) == 0 ? (end - 1)->column : -1;
}

KernelPtr prepare_ngrams(Prepare& p) {
  static constexpr std::string_view kModes[] = {"TF", "IDF", "TFIDF"};
  const size_t mode = choice(p.op, p.attrs, "mode", kModes);
  Index x = p.shape(0);
  if (x.size() > 2) p.bad("the operand must be a row or a batch of rows");
  if (p.attrs.has("pool_strings")) p.unsupported("pools of strings are not covered");
  const Pool pool = pool_of(p);
  const int64_t rows = x.size() == 2 ? x[0] : 1, width = x.empty() ? 1 : x.back();
  p.expect_result(
      0, x.size() == 2 ? std::vector<int64_t>{rows, pool.columns} : std::vector<int64_t>{pool.columns});
  auto given = p.attrs.numbers("weights");
  auto indexes = list(p.attrs, "ngram_indexes");
  if (given && given->size() != indexes.size()) p.bad("needs one weight an n-gram");
  std::vector<float> weights(static_cast<size_t>(pool.columns), 1.0f);
  for (size_t i = 0; given && i < indexes.size(); ++i)
    weights[static_cast<size_t>(indexes[i])] = static_cast<float>((*given)[i]);
  const int64_t known = static_cast<int64_t>(pool.by_size.size()) - 1;
  return p.dispatch(IndexTypes(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      for (int64_t row = 0; row < rows; ++row) {
        const T* from = call.in<T>(0) + row * width;
        float* to = call.out<float>(0) + row * pool.columns;
        std::fill_n(to, pool.columns, 0.0f);
        for (int64_t size = pool.shortest; size <= std::min(pool.longest, known); ++size)
          for (int64_t step = 1; step <= (size == 1 ? 1 : pool.skips + 1); ++step)  // one item has no gaps
            for (int64_t at = 0; at + (size - 1) * step < width; ++at)
              if (const int64_t column = find(pool, size, from + at, step); column >= 0) to[column] += 1;
        for (int64_t i = 0; mode != 0 && i < pool.columns; ++i) {
          const float weight = weights[static_cast<size_t>(i)];
          to[i] = weight * (mode == 1 ? (to[i] > 0 ? 1.0f : 0.0f) : to[i]);
        }
      }
    });
  });
}

constexpr Op table[] = {{"TfIdfVectorizer", 0, infer_ngrams, prepare_ngrams}};

}  // namespace

std::span<const Op> ngram_ops() { return table; }

}  // namespace regie::ops
