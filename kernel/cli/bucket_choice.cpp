#include "cli/bucket_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regie::cli {

namespace {

// Sizes of an axis that are tried, if it is the only one and otherwise; of more, such that as many requests
// lie between any two.
constexpr size_t kMostAlone = 400, kMostBeside = 96;
constexpr double kNever = std::numeric_limits<double>::infinity();

using Sizes = std::vector<std::vector<int64_t>>;

int64_t rounded(const std::vector<int64_t>& sizes, int64_t size) {
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), size);
  return at == sizes.end() ? -1 : *at;
}

class Chooser {
 public:
  Chooser(const TracedShapes& traced, double cover) : t_(traced) {
    for (const TracedShapes::Row& row : t_.rows) {
      std::vector<Input>& inputs = inputs_.emplace_back();
      for (const auto& [name, dims] : row.shape) {
        Input& in = inputs.emplace_back();
        for (uint32_t d = 0; d < dims.size(); ++d) {
          const size_t axis = axis_of(name, d);
          if (axis == t_.axes.size())
            in.fixed *= static_cast<double>(dims[d]);
          else
            in.axes.push_back(axis);
        }
      }
    }
    limits(cover);
  }

  double volume(size_t row, const std::vector<int64_t>& at) const {
    double sum = 0;
    for (const Input& in : inputs_[row]) {
      double v = in.fixed;
      for (size_t a : in.axes) v *= static_cast<double>(at[a]);
      sum += v;
    }
    return sum;
  }

  // By element count of everything that is served.
  double cost(const Sizes& sizes) const {
    double sum = 0;
    for (size_t r = 0; r < t_.rows.size(); ++r) {
      if (!served_[r]) continue;
      std::vector<int64_t> at(sizes.size());
      for (size_t a = 0; a < at.size(); ++a) at[a] = rounded(sizes[a], t_.rows[r].at[a]);
      sum += volume(r, at) * static_cast<double>(t_.rows[r].count);
    }
    return sum;
  }

  // The best `count` sizes of one axis, the others as they are. Exact among the candidates.
  std::vector<int64_t> solve(size_t axis, size_t count, const Sizes& others) const {
    const std::vector<int64_t>& sizes = candidates_[axis];
    const size_t n = sizes.size();
    // what[j][b]: cost of the requests of candidate j (above the one before) when they are rounded up to b.
    std::vector<std::vector<double>> sums(n, std::vector<double>(n + 1));
    for (size_t r = 0; r < t_.rows.size(); ++r) {
      if (!served_[r]) continue;
      std::vector<int64_t> at(t_.axes.size());
      for (size_t a = 0; a < at.size(); ++a) at[a] = a == axis ? 0 : rounded(others[a], t_.rows[r].at[a]);
      const auto j = static_cast<size_t>(std::lower_bound(sizes.begin(), sizes.end(), t_.rows[r].at[axis]) -
                                         sizes.begin());
      for (size_t b = j; b < n; ++b) {
        at[axis] = sizes[b];
        sums[b][j + 1] += volume(r, at) * static_cast<double>(t_.rows[r].count);
      }
    }
    for (size_t b = 0; b < n; ++b)
      for (size_t j = 0; j < n; ++j) sums[b][j + 1] += sums[b][j];
    // best[k][b]: all up to candidate b, which is the k-th size.
    count = std::min(count, n);
    std::vector<std::vector<double>> best(count, std::vector<double>(n, kNever));
    std::vector<std::vector<size_t>> before(count, std::vector<size_t>(n, n));
    for (size_t b = 0; b < n; ++b) best[0][b] = sums[b][b + 1];
    for (size_t k = 1; k < count; ++k)
      for (size_t b = k; b < n; ++b)
        for (size_t p = k - 1; p < b; ++p) {
          const double c = best[k - 1][p] + sums[b][b + 1] - sums[b][p + 1];
          if (c < best[k][b]) {
            best[k][b] = c;
            before[k][b] = p;
          }
        }
    size_t k = 0;
    for (size_t i = 1; i < count; ++i)
      if (best[i][n - 1] < best[k][n - 1]) k = i;
    std::vector<int64_t> out;
    for (size_t b = n - 1;; b = before[k--][b]) {
      out.push_back(sizes[b]);
      if (k == 0) break;
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  Sizes improve(const std::vector<size_t>& counts) const {
    Sizes sizes;
    for (const auto& c : candidates_) sizes.push_back(c);  // no padding at all on the others, to begin with
    double last = kNever;
    for (int round = 0; round < 20; ++round) {
      for (size_t a = 0; a < sizes.size(); ++a) sizes[a] = solve(a, counts[a], sizes);
      const double now = cost(sizes);
      if (now >= last) break;
      last = now;
    }
    return sizes;
  }

  BucketChoice choose(size_t plans) const {
    Sizes best;
    double least = kNever;
    std::vector<size_t> counts(t_.axes.size(), 1);
    // Every way to divide them.
    auto each = [&](auto&& self, size_t axis, size_t left) -> void {
      if (axis == counts.size()) {
        Sizes sizes = improve(counts);
        if (const double c = cost(sizes); c < least) {
          least = c;
          best = std::move(sizes);
        }
        return;
      }
      for (size_t k = 1; k <= left; ++k) {
        counts[axis] = k;
        self(self, axis + 1, left / k);
      }
    };
    each(each, 0, plans);
    return describe(best, least);
  }

 private:
  struct Input {
    double fixed = 1;
    std::vector<size_t> axes;
  };

  size_t axis_of(const std::string& name, uint32_t d) const {
    for (size_t a = 0; a < t_.axes.size(); ++a)
      for (const auto& [input, axis] : t_.axes[a].places)
        if (input == name && axis == d) return a;
    return t_.axes.size();
  }

  // Leaves out the largest requests while the others are enough.
  void limits(double cover) {
    served_.assign(t_.rows.size(), true);
    std::vector<size_t> order(t_.rows.size());
    for (size_t r = 0; r < order.size(); ++r) order[r] = r;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return volume(a, t_.rows[a].at) > volume(b, t_.rows[b].at); });
    uint64_t left = t_.requests;
    const double need = cover * static_cast<double>(t_.requests);
    for (size_t r : order) {
      if (static_cast<double>(left - t_.rows[r].count) < need) break;
      left -= t_.rows[r].count;
      served_[r] = false;
    }
    for (size_t a = 0; a < t_.axes.size(); ++a) {
      std::map<int64_t, uint64_t> counts;
      for (size_t r = 0; r < t_.rows.size(); ++r)
        if (served_[r]) counts[t_.rows[r].at[a]] += t_.rows[r].count;
      std::vector<int64_t>& to = candidates_.emplace_back();
      const size_t most = t_.axes.size() == 1 ? kMostAlone : kMostBeside;
      const uint64_t step = counts.size() > most ? std::max<uint64_t>(1, left / most) : 0;
      uint64_t since = 0;
      for (auto it = counts.begin(); it != counts.end(); ++it) {
        since += it->second;
        if (since < step && std::next(it) != counts.end()) continue;
        to.push_back(it->first);
        since = 0;
      }
    }
  }

  BucketChoice describe(const Sizes& sizes, double computed) const {
    BucketChoice c;
    c.sizes = sizes;
    double real = 0;
    uint64_t served = 0, exact = 0;
    for (const auto& s : sizes) c.plans *= s.size();
    for (size_t r = 0; r < t_.rows.size(); ++r) {
      const TracedShapes::Row& row = t_.rows[r];
      bool fits = true, same = true;
      for (size_t a = 0; a < sizes.size(); ++a) {
        const int64_t to = rounded(sizes[a], row.at[a]);
        fits = fits && to >= 0;
        same = same && to == row.at[a];
      }
      served += fits ? row.count : 0;
      exact += same ? row.count : 0;
      if (served_[r]) real += volume(r, row.at) * static_cast<double>(row.count);
    }
    c.served = static_cast<double>(served) / static_cast<double>(t_.requests);
    c.exact = static_cast<double>(exact) / static_cast<double>(t_.requests);
    c.padding = computed > 0 ? 1 - real / computed : 0;
    return c;
  }

  const TracedShapes& t_;
  std::vector<std::vector<Input>> inputs_;  // by row
  std::vector<bool> served_;                // by row
  Sizes candidates_;                        // by axis
};

}  // namespace

TracedShapes group_shapes(const std::vector<RequestShape>& trace) {
  TracedShapes out;
  out.requests = trace.size();
  std::map<RequestShape, uint64_t> counts;
  for (const RequestShape& s : trace) ++counts[s];
  std::vector<std::vector<int64_t>> columns;  // sizes of each axis in all distinct shapes
  for (const auto& [name, dims] : trace.front())
    for (uint32_t d = 0; d < dims.size(); ++d) {
      std::vector<int64_t> column;
      for (const auto& [shape, count] : counts) column.push_back(shape.at(name)[d]);
      if (std::all_of(column.begin(), column.end(), [&](int64_t v) { return v == column.front(); })) continue;
      const auto same = std::find(columns.begin(), columns.end(), column);
      if (same != columns.end()) {
        out.axes[static_cast<size_t>(same - columns.begin())].places.emplace_back(name, d);
        continue;
      }
      out.axes.push_back({{{name, d}}, {}});
      std::vector<int64_t>& sizes = out.axes.back().sizes;
      sizes = column;
      std::sort(sizes.begin(), sizes.end());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
      columns.push_back(std::move(column));
    }
  size_t r = 0;
  for (const auto& [shape, count] : counts) {
    TracedShapes::Row row{shape, {}, count};
    for (const auto& column : columns) row.at.push_back(column[r]);
    out.rows.push_back(std::move(row));
    ++r;
  }
  return out;
}

std::string BucketChoice::spec(const TracedShapes& traced) const {
  std::string text = "buckets:";
  bool first = true;
  for (size_t a = 0; a < sizes.size(); ++a)
    for (const auto& [name, axis] : traced.axes[a].places) {
      text += (first ? "" : ",") + name + "." + std::to_string(axis) + "=";
      first = false;
      for (size_t i = 0; i < sizes[a].size(); ++i) text += (i ? "|" : "") + std::to_string(sizes[a][i]);
    }
  return text;
}

BucketChoice choose_buckets(const TracedShapes& traced, size_t plans, double cover) {
  return Chooser(traced, cover).choose(plans);
}

}  // namespace regie::cli
