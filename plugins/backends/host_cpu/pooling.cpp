#include "pooling.h"

#include <algorithm>

#include "map_kernels.h"
#include "parallel.h"
#include "simd.h"

namespace host_cpu {

const MapLoops& map_loops() {
#if defined(__x86_64__)
  static const MapLoops* const chosen = cpu_level() == CpuLevel::kAvx512 ? &map_loops_avx512
                                        : cpu_level() == CpuLevel::kAvx2 ? &map_loops_avx2
                                                                         : &map_loops_base;
  return *chosen;
#else
  return map_loops_base;
#endif
}

namespace {

// An axis of the map.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, left = 0;
  int64_t span() const { return (kernel - 1) * dilation + 1; }

  // The part of a window that lies within the map: positions from the first number up to the second.
  struct Part {
    int64_t from, to;
    bool operator==(const Part&) const = default;
    int64_t size() const { return to - from; }
  };
  Part part(int64_t position) const {
    const int64_t begin = position * stride - left;
    auto up = [&](int64_t n) { return n <= 0 ? int64_t{0} : (n + dilation - 1) / dilation; };
    const int64_t from = std::min(kernel, up(-begin));
    return {from, std::clamp(up(in - begin), from, kernel)};
  }
};

struct Plan {
  Window of = Window::kMax;
  bool counts_padding = false;
  Axis y, x;
  // Maps one after the other, each of so many channels beside each other.
  int64_t sheets = 1, channels = 1;
  int64_t pieces = 1, stretch = 1;  // of the channels: how many, how long
  uint32_t threads = 1;
  std::vector<float> counted;  // row-major maps: elements of a row that each position's window counts
  struct Strip {               // others: positions of a row whose windows have the same part within it
    int64_t first, positions;
    Axis::Part columns;
  };
  std::vector<Strip> strips;

  int64_t counted_at(const Axis& axis, const Axis::Part& part) const {
    return counts_padding ? axis.kernel : part.size();
  }
};

void run_row(const Plan& p, int64_t sheet, int64_t row, const float* from, float* to) {
  const Axis::Part rows = p.y.part(row);
  RowWork w{};
  w.row = p.y.dilation * p.x.in;
  from += sheet * p.y.in * p.x.in + (row * p.y.stride - p.y.left) * p.x.in + rows.from * w.row;
  to += (sheet * p.y.out + row) * p.x.out;
  w.stride = p.x.stride;
  w.rows = rows.size();
  w.columns = p.x.kernel, w.column = p.x.dilation;
  w.rows_counted = static_cast<float>(std::max<int64_t>(1, p.counted_at(p.y, rows)));
  const int64_t most = (kRowRoom - kRowSlack - p.x.span()) / p.x.stride + 1;
  for (int64_t at = 0; at < p.x.out; at += w.positions) {
    w.positions = std::min(most, p.x.out - at);
    const int64_t begin = at * p.x.stride - p.x.left,
                  end = begin + (w.positions - 1) * p.x.stride + p.x.span();
    const int64_t first = std::clamp<int64_t>(begin, 0, p.x.in), last = std::clamp(end, first, p.x.in);
    w.x = from + first, w.y = to + at;
    w.left = std::min(first, end) - begin, w.width = last - first;
    w.right = end - begin - w.left - w.width;
    w.counted = p.of == Window::kMean ? p.counted.data() + at : nullptr;
    map_loops().row(p.of, w);
  }
}

void run_windows(const Plan& p, int64_t sheet, int64_t row, int64_t piece, const float* from, float* to) {
  const Axis::Part rows = p.y.part(row);
  const int64_t first = piece * p.stretch, pixel = p.channels, line = p.x.in * pixel;
  WindowWork w{};
  w.channels = piece + 1 < p.pieces ? p.stretch : p.channels - first;
  w.rows = rows.size();
  w.row = p.y.dilation * line, w.column = p.x.dilation * pixel;
  w.x_step = p.x.stride * pixel, w.y_step = pixel;
  from += sheet * p.y.in * line + (row * p.y.stride - p.y.left) * line + rows.from * w.row + first;
  to += (sheet * p.y.out + row) * p.x.out * pixel + first;
  for (const auto& [at, positions, columns] : p.strips) {
    w.positions = positions;
    w.columns = columns.size();
    w.x = from + (at * p.x.stride - p.x.left) * pixel + columns.from * w.column;
    w.y = to + at * pixel;
    const int64_t counted = p.counted_at(p.y, rows) * p.counted_at(p.x, columns);
    w.factor = 1.f / static_cast<float>(std::max<int64_t>(1, counted));
    map_loops().window(p.of, w);
  }
}

// The mean of a window that is the whole map.
bool is_mean_of_all(const Operation& op) {
  for (int i = 0; i < op.src.ndims - 2; ++i)
    if (op.dst.dims[2 + i] != 1 || op.kernel[i] != op.src.dims[2 + i] || op.pad_l[i] || op.pad_r[i] ||
        op.dilates[i])
      return false;
  return op.alg != dnnl_pooling_max;
}
NativePtr mean_of_all(const Plan& p) {
  const int64_t n = p.y.in * p.x.in;
  return native_kernel([n, sheets = p.sheets, threads = p.threads](const regie_launch& l) {
    parallel(threads, sheets, n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out_data<float>(l, 0)[i] =
            simd().fold_row(Fold::kSum, in_data<float>(l, 0) + i * n, n) / static_cast<float>(n);
    });
  });
}

}  // namespace

bool suits_pooling(const Operation& op, const Formats& formats) {
  if (op.kind != Operation::kPooling || op.src.data_type != dnnl_f32 || op.dst.data_type != dnnl_f32 ||
      op.src.ndims < 3 || op.src.ndims > 4)
    return false;
  const bool row_major = op.src.dims[1] == 1 || formats.operands[0] == kPlainFormat;
  const int last = op.src.ndims - 3;
  // A row of what a window reads must have room on the stack.
  if (row_major && !is_mean_of_all(op) && (op.kernel[last] - 1) * (op.dilates[last] + 1) >= kRowRoom / 2)
    return false;
  return formats.operands[0] == formats.results[0] || op.src.dims[1] == 1;
}

NativePtr pooling(const DnnlBlob& blob, const Operation& op, uint32_t threads) {
  const Formats formats = blob.formats();
  if (!suits_pooling(op, formats)) return nullptr;
  Plan p;
  p.threads = threads;
  p.of = op.alg == dnnl_pooling_max ? Window::kMax : Window::kMean;
  p.counts_padding = op.alg == dnnl_pooling_avg_include_padding;
  const int axes = op.src.ndims - 2;
  for (int i = 0; i < axes; ++i) {
    Axis& a = axes == 1 || i == 1 ? p.x : p.y;
    a = {op.src.dims[2 + i], op.dst.dims[2 + i], op.kernel[i], op.strides[i], op.dilates[i] + 1, op.pad_l[i]};
  }
  const int64_t channels = op.src.dims[1];
  const regie_format format = channels == 1 ? kPlainFormat : formats.operands[0];
  p.channels = format == kChannelsLast ? channels : format == kBlocked ? kBlock : 1;
  if (channels % p.channels != 0) return nullptr;
  p.sheets = op.src.dims[0] * (channels / p.channels);
  if (p.channels == 1) {
    if (is_mean_of_all(op)) return mean_of_all(p);
    if (p.of == Window::kMean)
      for (int64_t i = 0; i < p.x.out; ++i)
        p.counted.push_back(static_cast<float>(std::max<int64_t>(1, p.counted_at(p.x, p.x.part(i)))));
    return native_kernel([p = std::move(p)](const regie_launch& l) {
      const int64_t cost = p.y.kernel * p.x.in + p.x.out * p.x.kernel;
      parallel(p.threads, p.sheets * p.y.out, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          run_row(p, i / p.y.out, i % p.y.out, in_data<float>(l, 0), out_data<float>(l, 0));
      });
    });
  }
  for (int64_t at = 0; at < p.x.out; ++at) {
    const Axis::Part columns = p.x.part(at);
    if (!p.strips.empty() && p.strips.back().columns == columns)
      ++p.strips.back().positions;
    else
      p.strips.push_back({at, 1, columns});
  }
  // Where there are few rows the threads share the channels, too.
  constexpr int64_t kFewest = 4, kLeast = 64;
  if (threads > 1 && p.sheets * p.y.out < kFewest * threads)
    p.pieces = std::max<int64_t>(1, p.channels / kLeast);
  p.stretch = p.pieces > 1 ? kLeast : p.channels;
  return native_kernel([p = std::move(p)](const regie_launch& l) {
    const int64_t cost = p.x.out * p.stretch * p.y.kernel * p.x.kernel / 2;
    parallel(p.threads, p.sheets * p.y.out * p.pieces, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        run_windows(p, i / p.pieces / p.y.out, i / p.pieces % p.y.out, i % p.pieces, in_data<float>(l, 0),
                    out_data<float>(l, 0));
    });
  });
}

}  // namespace host_cpu
