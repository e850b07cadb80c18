#include "direct_convolution.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "after.h"
#include "direct_kernels.h"
#include "parallel.h"

namespace host_cpu {

const Direct* direct() {
#if defined(__x86_64__)
  return cpu_level() == CpuLevel::kAvx512 ? &direct_avx512
         : cpu_level() == CpuLevel::kAvx2 ? &direct_avx2
                                          : nullptr;
#else
  return nullptr;
#endif
}

namespace {

constexpr int64_t kMostTaps = 128;
// Operations of one that runs about as long as its code takes to generate. Of longer ones that is a small
// part, and the code a little faster. Products of one shape, of which networks have many, share their code.
constexpr double kMostOfConvolution = 100e6, kMostOfProduct = 30e6;
constexpr int64_t kDepthwiseVectors = 16;  // of one piece

int64_t blocks_of(int64_t n, int64_t block) { return (n + block - 1) / block; }

// Where a map's elements lie, in floats.
struct Places {
  int64_t channel = 1, block = 16;  // to the next channel within 16; to the next 16
  int64_t pixel = 1, row = 1, picture = 1;
};

std::optional<Places> places(const dnnl_memory_desc_t& desc, regie_format format, int64_t height,
                             int64_t width) {
  const int64_t channels = desc.dims[1];
  Places p;
  if (format == kChannelsLast || height * width == 1) {
    p.pixel = channels;
  } else if (format == kBlocked) {
    if (channels % kBlock != 0) return std::nullopt;
    p.pixel = kBlock;
    p.block = height * width * kBlock;
  } else {
    p.channel = height * width;
    p.block = 16 * p.channel;
  }
  p.row = width * p.pixel;
  p.picture = channels * height * width;
  return p;
}

// All that a run has to know, in sizes and distances.
struct Plan {
  int64_t pictures, in, in_height, in_width, out, height, width;
  int64_t kernel[2], stride[2], dilation[2], pad[2];
  bool depthwise = false;
  Places src, dst;
  DirectShape shape{};
  int64_t src_taps[kMostTaps], w_taps[kMostTaps];
  bool flat;          // positions of all rows, one after the other, read at the same distance
  int64_t inside[2];  // positions of a row, from one up to another, whose windows lie between its ends
  int64_t w_group = 0, w_in_group = 1;  // from a block of output channels to the next; channels in one
  int64_t channels_at_once;             // of the input, so that the weights stay in the second-level cache
  int64_t pixels_at_once;               // of the result
  uint32_t src_operand, w_operand, bias_operand = REGIE_NONE, residual = REGIE_NONE;
  std::vector<After> after;
  std::vector<std::pair<int64_t, int64_t>>
      groups;  // of vectors that are computed together: the first, how many
  uint32_t threads;

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t vectors(const Direct& d) const { return blocks_of(out, d.lanes); }
};

// The spatial axes of maps of one axis or two, as two. A matrix is a map of one row, its columns the
// channels.
void set_axes(const Operation& op, Plan* p) {
  if (op.kind == Operation::kMatMul) {
    p->pictures = p->in_height = p->height = 1;
    p->in_width = p->width = op.src.dims[0];
    p->in = op.src.dims[1], p->out = op.dst.dims[1];
    for (int a = 0; a < 2; ++a) p->kernel[a] = p->stride[a] = p->dilation[a] = 1, p->pad[a] = 0;
    return;
  }
  p->pictures = op.src.dims[0], p->in = op.src.dims[1], p->out = op.dst.dims[1];
  const int axes = op.src.ndims - 2;
  auto size = [&](const dnnl_memory_desc_t& d, int axis) {
    return axis < 2 - axes ? int64_t{1} : d.dims[d.ndims - 2 + axis];
  };
  p->in_height = size(op.src, 0), p->in_width = size(op.src, 1);
  p->height = size(op.dst, 0), p->width = size(op.dst, 1);
  for (int a = 0; a < 2; ++a) {
    const bool absent = a < 2 - axes;
    const int i = a - (2 - axes);
    p->kernel[a] = size(op.weights, a);
    p->stride[a] = absent ? 1 : op.strides[i];
    p->dilation[a] = absent ? 1 : op.dilates[i] + 1;
    p->pad[a] = absent ? 0 : op.pad_l[i];
  }
}

// Blocks of outputs innermost, before them one input after the other, or blocks of 16 or 8.
bool set_weights(const dnnl_memory_desc_t& w, const Operation& op, int lanes, Plan* p) {
  const auto& lie = w.format_desc.blocking;
  if (w.format_kind != dnnl_blocked || w.data_type != dnnl_f32 || w.extra.flags != 0 ||
      w.ndims != op.weights.ndims || !std::equal(w.dims, w.dims + w.ndims, op.weights.dims))
    return false;
  const int last = w.ndims - 1;
  const int in_axis = op.kind == Operation::kMatMul ? 0 : 1, out_axis = 1 - in_axis;
  for (int64_t y = 0; y < p->kernel[0]; ++y)
    for (int64_t x = 0; x < p->kernel[1]; ++x)
      p->w_taps[y * p->kernel[1] + x] =
          (y > 0 ? y * lie.strides[last - 1] : 0) + (x > 0 ? x * lie.strides[last] : 0);
  if (p->depthwise) {
    if (lie.inner_nblks != 1 || lie.inner_idxs[0] != 0 || lie.inner_blks[0] != lanes) return false;
    p->w_in_group = lanes;
    p->w_group = p->shape.w_vector = lie.strides[0];
    return true;
  }
  DirectShape& s = p->shape;
  if (lie.inner_nblks == 1 && lie.inner_idxs[0] == out_axis) {
    s.in_block = 16;
    s.w_step = lie.strides[in_axis];
    s.w_block = 16 * s.w_step;
  } else if (lie.inner_nblks == 2 && lie.inner_idxs[0] == in_axis && lie.inner_idxs[1] == out_axis &&
             (lie.inner_blks[0] == 16 || lie.inner_blks[0] == 8)) {
    s.in_block = lie.inner_blks[0];
    s.w_step = lie.inner_blks[1];
    s.w_block = lie.strides[in_axis];
  } else {
    return false;
  }
  p->w_in_group = lie.inner_blks[lie.inner_nblks - 1];
  p->w_group = lie.strides[out_axis];
  if (p->w_in_group % lanes != 0) return false;
  s.w_vector = p->w_in_group > lanes ? lanes : p->w_group;
  return true;
}

// Which windows lie within the map, and where their taps do.
void set_windows(Plan* p) {
  for (int64_t y = 0; y < p->kernel[0]; ++y)
    for (int64_t x = 0; x < p->kernel[1]; ++x)
      p->src_taps[y * p->kernel[1] + x] = y * p->dilation[0] * p->src.row + x * p->dilation[1] * p->src.pixel;
  auto begin = [&](int a) { return blocks_of(p->pad[a], p->stride[a]); };
  auto end = [&](int a, int64_t size, int64_t positions) {
    const int64_t last = size - 1 + p->pad[a] - (p->kernel[a] - 1) * p->dilation[a];
    return last < 0 ? int64_t{0} : std::min(positions, last / p->stride[a] + 1);
  };
  p->inside[0] = begin(1), p->inside[1] = end(1, p->in_width, p->width);
  p->flat = begin(0) == 0 && begin(1) == 0 && p->inside[1] == p->width &&
            end(0, p->in_height, p->height) == p->height &&
            p->stride[0] * p->src.row == p->width * p->stride[1] * p->src.pixel;
}

// A part of the work: positions `from`..`to` - 1 of a picture, so many vectors of channels from one on.
struct Piece {
  int64_t picture, from, to, vector, vectors;
};

// Vectors that are computed together, from vector `first` on.
int64_t vectors_at(const Plan& p, const Direct& d, int64_t first) {
  const int64_t rest = p.vectors(d) - first, in_group = p.w_in_group / d.lanes;
  if (p.depthwise) return p.src.block == 16 ? std::min(rest, kDepthwiseVectors) : 1;
  const int64_t most = std::min(rest, in_group > 1 ? in_group - first % in_group : rest);
  // Five are three and two, as one alone waits for its own sums.
  return most == d.vectors + 1 && d.vectors > 2 ? d.vectors - 1 : std::min<int64_t>(d.vectors, most);
}

class Runner {
 public:
  Runner(const Plan& plan, const Direct& d, const regie_launch& l)
      : p_(plan),
        d_(d),
        shape_(plan.shape),
        src_(in_data<float>(l, plan.src_operand)),
        w_(in_data<float>(l, plan.w_operand)),
        bias_(plan.bias_operand == REGIE_NONE ? nullptr : in_data<float>(l, plan.bias_operand)),
        residual_(plan.residual == REGIE_NONE ? nullptr : in_data<float>(l, plan.residual)),
        dst_(out_data<float>(l, 0)) {
    shape_.w_taps = plan.w_taps;
    shape_.src_taps = plan.src_taps;
    shape_.what = &plan;
  }

  void run(const Piece& piece) const {
    const int64_t step = p_.depthwise ? p_.in : p_.channels_at_once;
    for (int64_t begin = 0; begin < p_.in; begin += step) {
      DirectWork work{};
      work.begin = begin;
      work.end = std::min(p_.in, begin + step);
      work.last = work.end == p_.in;
      run_positions(piece, work);
    }
  }

 private:
  static constexpr int64_t kMostPixels = 8;

  int64_t in_src(const Piece& piece, int64_t y, int64_t x) const {
    return piece.picture * p_.src.picture + (y * p_.stride[0] - p_.pad[0]) * p_.src.row +
           (x * p_.stride[1] - p_.pad[1]) * p_.src.pixel;
  }
  int64_t in_dst(const Piece& piece, int64_t position) const {
    return piece.picture * p_.dst.picture + position * p_.dst.pixel;
  }

  // A window's part within the map, along an axis: from the first number up to the second. Of `kernel`
  // positions.
  void part(int axis, int64_t begin, int64_t size, int64_t (&range)[2]) const {
    part(axis, begin, size, p_.kernel[axis], range);
  }
  void part(int axis, int64_t begin, int64_t size, int64_t kernel, int64_t (&range)[2]) const {
    const int64_t dilation = p_.dilation[axis];
    range[0] = begin >= 0 ? 0 : std::min(kernel, blocks_of(-begin, dilation));
    range[1] = begin >= size ? range[0] : std::clamp(blocks_of(size - begin, dilation), range[0], kernel);
  }

  void run_positions(const Piece& piece, DirectWork& work) const {
    work.rows[0] = work.columns[0] = 0;
    work.rows[1] = p_.kernel[0], work.columns[1] = p_.kernel[1];
    if (p_.flat && !shape_.rows_at_once) return run_strip(piece, work, piece.from, piece.to - piece.from);
    int64_t edges[kMostPixels], edge_count = 0;
    auto add_edges = [&](int64_t from, int64_t to) {
      for (int64_t at = from; at < to; ++at) {
        if (p_.depthwise) {
          part(1, at % p_.width * p_.stride[1] - p_.pad[1], p_.in_width, work.columns);
          run_strip(piece, work, at, 1);
          continue;
        }
        edges[edge_count++] = at;
        if (edge_count == d_.pixels) run_edges(piece, work, edges, std::exchange(edge_count, 0));
      }
    };
    for (int64_t at = piece.from; at < piece.to;) {
      const int64_t y = at / p_.width, row = y * p_.width, end = std::min(piece.to, row + p_.width);
      part(0, y * p_.stride[0] - p_.pad[0], p_.in_height, work.rows);
      if (shape_.rows_at_once) {
        const int64_t columns = (end - at) * p_.stride[1] / p_.dilation[1] + p_.kernel[1];
        part(1, (at - row) * p_.stride[1] - p_.pad[1], p_.in_width, columns, work.columns);
        run_strip(piece, work, at, end - at);
        at = end;
        continue;
      }
      const int64_t first = std::clamp(row + p_.inside[0], at, end);
      const int64_t last = std::clamp(row + p_.inside[1], first, end);
      add_edges(at, first);
      if (first < last) {
        work.columns[0] = 0, work.columns[1] = p_.kernel[1];
        run_strip(piece, work, first, last - first);
      }
      add_edges(last, end);
      at = end;
    }
    if (edge_count) run_edges(piece, work, edges, edge_count);
  }

  // Calls `run` for the vectors of the piece, those that are computed together at once.
  template <class F>
  void each_vectors(const Piece& piece, DirectWork& work, F&& run) const {
    const int64_t together = p_.depthwise && p_.shape.src_vector == 0 ? 1 : piece.vectors;
    work.vectors = static_cast<int>(together);
    for (int64_t v = piece.vector; v < piece.vector + piece.vectors; v += together) {
      const int64_t first = v * d_.lanes;
      work.tail = static_cast<int>(std::min<int64_t>(d_.lanes, p_.out - first - (together - 1) * d_.lanes));
      work.w = w_ + first / p_.w_in_group * p_.w_group + first % p_.w_in_group;
      work.bias = bias_ ? bias_ + first : nullptr;
      const int64_t at = first / 16 * p_.dst.block + first % 16;
      work.dst = dst_ + at;
      work.residual = residual_ ? residual_ + at : nullptr;
      run(p_.depthwise ? first / 16 * p_.src.block + first % 16 : 0);
    }
  }

  void run_strip(const Piece& piece, DirectWork& work, int64_t at, int64_t count) const {
    work.count = count;
    work.dst_at = in_dst(piece, at);
    const float* src = src_ + in_src(piece, at / p_.width, at % p_.width);
    each_vectors(piece, work, [&](int64_t channel) {
      work.src = src + channel;
      (p_.depthwise ? d_.depthwise : d_.strip)(shape_, work);
    });
  }

  void run_edges(const Piece& piece, DirectWork& work, const int64_t* at, int64_t count) const {
    const float* table[kMostTaps * kMostPixels];
    int64_t dst[kMostPixels];
    for (int64_t u = 0; u < count; ++u) {
      const int64_t y = at[u] / p_.width, x = at[u] % p_.width;
      dst[u] = in_dst(piece, at[u]);
      const int64_t corner = in_src(piece, y, x);
      int64_t row = y * p_.stride[0] - p_.pad[0], tap = 0;
      for (int64_t a = 0; a < p_.kernel[0]; ++a, row += p_.dilation[0]) {
        int64_t column = x * p_.stride[1] - p_.pad[1];
        for (int64_t b = 0; b < p_.kernel[1]; ++b, ++tap, column += p_.dilation[1])
          table[tap * count + u] = row >= 0 && row < p_.in_height && column >= 0 && column < p_.in_width
                                       ? src_ + corner + p_.src_taps[tap]
                                       : nullptr;
      }
    }
    work.count = count;
    work.table = table;
    work.window = p_.taps();
    work.dst_ats = dst;
    each_vectors(piece, work, [&](int64_t) { d_.scattered(shape_, work); });
  }

  const Plan& p_;
  const Direct& d_;
  DirectShape shape_;
  const float *src_, *w_, *bias_, *residual_;
  float* dst_;
};

void set_distances(const Direct& d, Plan* p) {
  DirectShape& s = p->shape;
  s.kernel_width = p->kernel[1];
  s.src_right = p->dilation[1] * p->src.pixel;
  s.src_pixel = p->stride[1] * p->src.pixel, s.dst_pixel = p->dst.pixel;
  s.src_step = p->src.channel, s.src_block = p->src.block;
  const auto vector = [&](const Places& at) {
    return d.lanes == 16 || at.block == 16 ? at.block * d.lanes / 16 : 0;
  };
  s.dst_vector = vector(p->dst) ? vector(p->dst) : d.lanes;  // two in a block
  if (p->depthwise && vector(p->dst)) s.src_vector = vector(p->src);
  const int64_t stride = p->stride[1], dilation = p->dilation[1];
  s.rows_at_once = p->depthwise && (p->kernel[1] == 3 || p->kernel[1] == 5) &&
                   (stride == dilation || stride == 2 * dilation);
}

void run_steps(const void* plan, float* y, int64_t n) {
  for (const After& a : static_cast<const Plan*>(plan)->after) a.run(y, n);
}

// False where something follows that these kernels do not do.
bool set_post_ops(const Operation& op, Plan* p) {
  DirectShape& s = p->shape;
  for (const PostOp& post : op.post) {
    if (post.kind == PostOp::kSum) {
      if (op.residual_operand == REGIE_NONE || post.alpha != 1 || !p->after.empty() || s.ending) return false;
      continue;
    }
    const std::optional<After> step = after(post);
    if (!step) return false;
    const bool first = p->after.empty() && s.ending == DirectShape::kNone && !step->affine;
    if (first && step->op == Unary::kRelu) {
      s.ending = DirectShape::kClip;
      s.low = 0, s.high = INFINITY;
    } else if (first && step->op == Unary::kClip) {
      s.ending = DirectShape::kClip;
      s.low = step->a, s.high = step->b;
    } else if (first && step->op == Unary::kHardSwish) {
      s.ending = DirectShape::kHardSwish;
      s.low = 1.f / 6, s.high = 0.5f;
    } else {
      p->after.push_back(*step);
    }
  }
  if (p->after.empty()) return true;
  // One thing ends a sum: what was to is the first of the steps.
  if (s.ending == DirectShape::kClip)
    p->after.insert(p->after.begin(), After{false, Unary::kClip, s.low, s.high});
  else if (s.ending == DirectShape::kHardSwish)
    p->after.insert(p->after.begin(), After{false, Unary::kHardSwish, 0, 0});
  s.ending = DirectShape::kSteps;
  s.steps = run_steps;
  return true;
}

// Pieces so that what a piece reads of the input stays in the first-level cache while the outputs go by, and
// that every thread has a few.
int64_t choose_pixels(const Plan& p, const Direct& d, int64_t groups) {
  constexpr int64_t kNear = int64_t{96} << 10, kLittle = int64_t{256} << 10, kFewest = 4;
  const int64_t all = p.height * p.width, tile = d.pixels;
  const int64_t a_pixel = 4 * (p.in * p.in_height * p.in_width / std::max<int64_t>(1, all) + p.out);
  int64_t pixels =
      a_pixel * all <= kLittle ? all : std::max<int64_t>(4 * tile, kNear / a_pixel / tile * tile);
  if (p.threads > 1) {
    const int64_t wanted = blocks_of(kFewest * p.threads, p.pictures * groups);
    pixels = std::min(pixels, std::max<int64_t>(2 * tile, blocks_of(all, wanted)));
  }
  // As many for each thread, all alike.
  int64_t chunks = blocks_of(all, std::min(pixels, all));
  if (chunks > 1 || p.pictures * groups < kFewest * p.threads)
    chunks = std::min(blocks_of(chunks, p.threads) * p.threads, blocks_of(all, tile));
  return blocks_of(all, chunks);
}

// The plan for any number of threads; null where it is none for these kernels.
std::shared_ptr<Plan> make_plan(const Direct& d, const Operation& op, const dnnl_memory_desc_t& packed,
                                const Formats& formats) {
  const bool matrix = op.kind == Operation::kMatMul;
  if ((!matrix && op.kind != Operation::kConvolution) || op.quantised() || op.src.data_type != dnnl_f32 ||
      op.dst.data_type != dnnl_f32 || op.weights.data_type != dnnl_f32 || op.scale != 1 ||
      !op.scales.empty() || !op.bias_values.empty())
    return nullptr;
  if (matrix ? op.src.ndims != 2 : op.src.ndims < 3 || op.src.ndims > 4) return nullptr;
  if (matrix && op.src.format_desc.blocking.strides[1] != 1 && op.src.dims[1] != 1)
    return nullptr;  // transposed
  if (op.flops > (matrix ? kMostOfProduct : kMostOfConvolution)) return nullptr;
  auto p = std::make_shared<Plan>();
  set_axes(op, p.get());
  if (p->taps() > kMostTaps) return nullptr;
  if (op.weights.ndims != op.src.ndims) {  // in groups
    if (op.weights.dims[1] != 1 || op.weights.dims[2] != 1 || op.weights.dims[0] != p->out || p->in != p->out)
      return nullptr;
    p->depthwise = true;
  }
  if (!set_weights(packed, op, d.lanes, p.get())) return nullptr;
  const auto src =
      places(op.src, matrix ? kChannelsLast : formats.operands[op.src_operand], p->in_height, p->in_width);
  const auto dst = places(op.dst, matrix ? kChannelsLast : formats.results[0], p->height, p->width);
  if (!src || !dst || dst->channel != 1 || (p->depthwise && src->channel != 1)) return nullptr;
  // Vectors of one tile lie evenly in a blocked result.
  if (dst->block != 16 && d.lanes < 16 && p->w_in_group > d.lanes && p->w_in_group % 16 != 0) return nullptr;
  p->src = *src, p->dst = *dst;
  set_windows(p.get());
  p->src_operand = op.src_operand, p->w_operand = op.weights_operand, p->residual = op.residual_operand;
  if (op.bias.ndims) p->bias_operand = op.bias_operand;
  set_distances(d, p.get());
  if (!set_post_ops(op, p.get())) return nullptr;
  for (int64_t v = 0, n = 0; v < p->vectors(d); v += n) {
    n = vectors_at(*p, d, v);
    p->groups.push_back({v, n});
  }
  return p;
}

// Into pieces for so many threads.
void divide(const Direct& d, uint32_t threads, Plan* p) {
  p->threads = threads;
  p->pixels_at_once = choose_pixels(*p, d, static_cast<int64_t>(p->groups.size()));
  constexpr int64_t kWeightsNear = int64_t{384} << 10;
  const int64_t a_channel = p->taps() * d.vectors * d.lanes * 4;
  const int64_t parts = p->pixels_at_once <= d.pixels ? 1 : blocks_of(p->in * a_channel, kWeightsNear);
  p->channels_at_once = std::min(p->in, blocks_of(blocks_of(p->in, parts), 16) * 16);
}

}  // namespace

bool suits_direct(const Operation& op, const dnnl_memory_desc_t& packed, const Formats& formats) {
  const Direct* d = direct();
  return d && make_plan(*d, op, packed, formats);
}

NativePtr direct_convolution(const DnnlBlob& blob, const Operation& op, const PrepareRequest& request,
                             uint32_t threads) {
  const Direct* d = direct();
  if (!d || blob.layout == Layout::kWinograd || blob.packed_operand == REGIE_NONE ||
      blob.packed_operand != op.weights_operand)
    return nullptr;
  const uint64_t bytes = std::min(blob.packed_bytes, request.operands[op.weights_operand].bytes);
  if (dnnl_memory_desc_get_size(&blob.packed) > bytes) return nullptr;
  auto p = make_plan(*d, op, blob.packed, blob.formats());
  if (!p) return nullptr;
  divide(*d, threads, p.get());
  return native_kernel([p = std::move(p), d](const regie_launch& l) {
    const Runner runner(*p, *d, l);
    const auto groups = static_cast<int64_t>(p->groups.size());
    const int64_t all = p->height * p->width, chunks = blocks_of(all, p->pixels_at_once);
    // A step's multiplications, of which registers take some twenty while loops over elements touch one; six
    // where each is of an input of its own.
    const int64_t channels = std::min(p->out, p->groups[0].second * d->lanes);
    const int64_t cost =
        p->pixels_at_once * p->taps() * channels * (p->depthwise ? 1 : p->in) / (p->depthwise ? 6 : 20);
    parallel(p->threads, p->pictures * chunks * groups, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [vector, vectors] = p->groups[static_cast<size_t>(i % groups)];
        const int64_t from = i / groups % chunks * p->pixels_at_once;
        runner.run({i / groups / chunks, from, std::min(all, from + p->pixels_at_once), vector, vectors});
      }
    });
  });
}

}  // namespace host_cpu
