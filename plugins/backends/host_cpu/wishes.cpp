#include "wishes.h"

#include <algorithm>
#include <numeric>

#include "executable.h"
#include "native.h"
#include "operation.h"
#include "pointwise_engine.h"
#include "primitive.h"
#include "regie/graph_view.hpp"
#include "regie/op_blob.hpp"

namespace host_cpu {
namespace {

using regie::sdk::Attrs;
using regie::sdk::Failure;

constexpr regie_format kOthers[] = {kChannelsLast, kBlocked};

class Lister {
 public:
  explicit Lister(const WishRequest& r) : r_(r) {}

  std::vector<regie_format_wish> run() {
    if (r_.empty || r_.node.result_count == 0 || r_.node.results[0] == REGIE_NONE) return {};
    if (is_lowered(r_.op)) {
      if (r_.op.find("Conv") != std::string_view::npos)
        convolution();
      else if (r_.op.ends_with("Pool"))
        pooling();
    } else if (pointwise_takes_formats(r_.op)) {
      go_along(Takes::kElementwise);
    } else if (const NativeOp* native = find_native(r_.op)) {
      if (r_.op == "Transpose") {
        transpose();
      } else if (native->takes != Takes::kPlain && native->takes != Takes::kMoved) {
        go_along(native->takes);
      }
    }
    return std::move(wishes_);
  }

 private:
  const regie_type& operand_type(uint32_t i) const { return r_.graph.values[r_.node.operands[i]].type; }
  const regie_type& result_type(uint32_t i) const { return r_.graph.values[r_.node.results[i]].type; }
  bool present(uint32_t i) const { return i < r_.node.operand_count && r_.node.operands[i] != REGIE_NONE; }
  // A text graph may say of a weight no more than its type.
  bool constant(uint32_t i) const { return regie::sdk::is_constant(r_.graph.values[r_.node.operands[i]]); }

  struct Use {
    bool is_result;
    uint32_t index;
    regie_format format;
  };
  void add(const std::vector<Use>& uses, double saved_ns) {
    ++options_;
    for (const Use& u : uses) {
      wishes_.push_back({u.is_result ? 1u : 0u, u.index, u.format, options_, saved_ns});
      saved_ns = 0;
    }
  }

  Formats formats(const std::vector<Use>& uses) const {
    Formats f{std::vector<regie_format>(r_.operands.size(), kPlainFormat),
              std::vector<regie_format>(r_.results.size(), kPlainFormat)};
    for (const Use& u : uses) (u.is_result ? f.results : f.operands)[u.index] = u.format;
    return f;
  }
  Operation operation(const std::vector<Use>& uses) const {
    Operation op = describe(r_.op, Attrs(r_.node), r_.operands.data(), r_.node.operand_count,
                            r_.results.data(), r_.node.result_count);
    set_formats(op, formats(uses), r_.operands.data(), r_.results.data());
    return op;
  }

  // Is there a fast kernel, and does its result come out at the given shapes?
  bool fast(const std::vector<Use>& uses) const {
    try {
      const Operation op = operation(uses);
      const bool constant_weights = op.weights.ndims && constant(op.weights_operand);
      const Lowered& l = r_.lowered.get(r_.engine, op, Layout::kPlain, constant_weights);
      return !l.is_plain_loop();
    } catch (const Failure&) {
      return false;
    }
  }

  bool fits(const regie_type& t, regie_format f) const {
    const bool bytes = t.elem == REGIE_U8 || t.elem == REGIE_I8 || t.elem == REGIE_I32;
    return (t.elem == REGIE_F32 || (bytes && f == kChannelsLast)) && t.rank >= 3 &&
           format_fits(regie::sdk::dims_of(t), f);
  }
  double moved_ns(const regie_tensor& t, regie_format f) const {
    return conversion_ns(r_.settings, t, kPlainFormat, f);
  }

  void convolution() {
    const bool residual = residual_operand(r_.op) == 3 && present(3);
    if (constant(0)) return;
    for (regie_format f : kOthers) {
      if (!fits(result_type(0), f) || !fits(operand_type(0), f)) continue;
      std::vector<Use> uses{{false, 0, f}, {true, 0, f}};
      if (residual) {
        if (!fits(operand_type(3), f) || constant(3)) continue;
        uses.push_back({false, 3, f});
      }
      // What the row-major kernel converts on its way (primitive.h): operand, residual, result.
      double saved = moved_ns(r_.operands[0], f) + moved_ns(r_.results[0], f);
      if (residual) saved += moved_ns(r_.operands[3], f);
      if (fast(uses)) add(uses, saved + (f == kBlocked ? winograd_gain_ns(uses) : 0));
    }
  }

  // Measured on two dozen layers (docs/kernels.md): tiles of 4 x 4 halve the time, tiles of 2 x 2 save a
  // third, and little where the picture is small.
  double winograd_gain_ns(const std::vector<Use>& uses) const {
    if (r_.settings.winograd == Winograd::kOff) return 0;
    try {
      const Operation op = operation(uses);
      if (!suits_winograd(op) || !constant(op.weights_operand)) return 0;
      const Lowered& l = r_.lowered.get(r_.engine, op, Layout::kWinograd, true);
      if (r_.settings.winograd != Winograd::kAlways && !is_in_little_room(op, l)) return 0;
      const bool large_tiles = l.implementation.find("4x3") != std::string::npos;
      constexpr double kDirectFaster = 2;  // than settings.flops_per_ns, which is an average
      return (large_tiles ? 0.45 : 0.25) * op.flops / (kDirectFaster * r_.settings.flops_per_ns);
    } catch (const Failure&) {
      return 0;
    }
  }

  void pooling() {
    if (constant(0)) return;
    for (regie_format f : kOthers) {
      if (!fits(result_type(0), f) || !fits(operand_type(0), f)) continue;
      const std::vector<Use> uses{{false, 0, f}, {true, 0, f}};
      if (fast(uses)) add(uses, moved_ns(r_.results[0], f) / 2);
    }
  }

  void transpose() {
    if (constant(0) || r_.operands[0].rank < 3) return;
    const regie_type &x = operand_type(0), &y = result_type(0);
    for (const auto& [from, to] :
         {std::pair{kChannelsLast, kPlainFormat}, std::pair{kPlainFormat, kChannelsLast}}) {
      if ((from != kPlainFormat && !fits(x, from)) || (to != kPlainFormat && !fits(y, to))) continue;
      std::vector<Use> uses;
      if (from != kPlainFormat) uses.push_back({false, 0, from});
      if (to != kPlainFormat) uses.push_back({true, 0, to});
      const bool free = transposes_nothing(Attrs(r_.node), regie::sdk::dims_of(x), from, to);
      const double whole = moved_ns(r_.operands[0], kChannelsLast);
      add(uses, free ? whole : 0);
    }
  }

  // Every operand and result that is not a matter of broadcasting in one format.
  void go_along(Takes takes) {
    for (regie_format f : kOthers) {
      std::vector<Use> uses;
      bool good = true;
      for (uint32_t i = 0; good && i < r_.node.result_count; ++i) {
        if (r_.node.results[i] == REGIE_NONE) continue;
        const regie_type& y = result_type(i);
        // A reduction that drops its axes gives what has no format.
        if (takes == Takes::kPooled && y.rank != operand_type(0).rank) good = false;
        good = good && y.rank >= 3 && format_fits(regie::sdk::dims_of(y), f) && elem_size_known(y.elem);
        if (good) uses.push_back({true, i, f});
      }
      for (uint32_t i = 0; good && i < r_.node.operand_count; ++i)
        if (present(i)) good = operand(takes, i, f, &uses);
      if (!good || std::none_of(uses.begin(), uses.end(), [](const Use& u) { return !u.is_result; }))
        continue;
      if (made(uses)) add(uses, 0);
    }
  }

  bool operand(Takes takes, uint32_t i, regie_format f, std::vector<Use>* uses) const {
    const regie_type &x = operand_type(i), &y = result_type(0);
    if (takes == Takes::kElementwise) {
      // Broadcast along all but one axis: it has the same bytes in every format.
      std::vector<int64_t> dims(static_cast<size_t>(y.rank), 1);
      if (x.rank > y.rank) return false;
      std::copy(x.dims, x.dims + x.rank, dims.end() - x.rank);
      const bool parameter = x.rank <= 1 && r_.op.ends_with("BatchNormalization");
      if (parameter || same_order(dims, kPlainFormat, f)) return true;
    } else if (i > 0 && takes == Takes::kPooled) {
      return true;  // axes
    } else if (i > 0 && takes == Takes::kJoined && r_.op == "Split") {
      return true;  // sizes
    }
    if (constant(i) || x.rank != y.rank || !format_fits(regie::sdk::dims_of(x), f) ||
        !elem_size_known(x.elem))
      return false;
    uses->push_back({false, i, f});
    return true;
  }
  static bool elem_size_known(regie_elem e) { return regie::sdk::elem_bits(e) >= 8; }

  bool made(const std::vector<Use>& uses) const {
    if (pointwise_takes_formats(r_.op)) {
      std::string why;
      return lower_pointwise(r_.catcher, &r_.graph, r_.node, r_.operands.data(), r_.results.data(),
                             formats(uses), &why)
          .has_value();
    }
    try {
      make_native(
          native_request(r_.op, Attrs(r_.node), r_.operands.data(), r_.results.data(), formats(uses), 1));
      return true;
    } catch (const Failure&) {
      return false;
    }
  }

  const WishRequest& r_;
  std::vector<regie_format_wish> wishes_;
  uint32_t options_ = 0;
};

}  // namespace

bool gains_by_format(const regie_node& node) {
  const std::string_view op = regie::sdk::sv(node.op);
  return is_lowered(op) && (op.ends_with("Pool") || op.find("Conv") != std::string_view::npos);
}

std::vector<regie_format_wish> list_wishes(const WishRequest& request) { return Lister(request).run(); }

double conversion_ns(const Settings& settings, const regie_tensor& tensor, regie_format from,
                     regie_format to) {
  const std::span<const int64_t> dims = regie::sdk::dims_of(tensor);
  if (!format_fits(dims, from) || !format_fits(dims, to)) return -1;
  if (same_order(dims, from, to)) return 1;  // a view; but nothing is better still
  // Read and written once; rows of one tile each are slower than a plain copy.
  constexpr double kSlower = 2;
  return settings.overhead_ns + kSlower * 2 * static_cast<double>(tensor.bytes) / settings.bytes_per_ns;
}

bool transposes_nothing(const Attrs& attrs, std::span<const int64_t> dims, regie_format from,
                        regie_format to) {
  if (from == kBlocked || to == kBlocked) return false;
  const size_t rank = dims.size();
  std::vector<int64_t> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (auto given = attrs.integers("perm"); given && !given->empty())
    perm.assign(given->begin(), given->end());
  if (perm.size() != rank || ((from != kPlainFormat || to != kPlainFormat) && (rank < 3 || rank > 5)))
    return false;
  // The operand's axes in the order of its bytes, and the result's, each as the operand's axis.
  std::vector<int64_t> before(rank), after(rank);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int64_t>(i), n = static_cast<int64_t>(rank);
    if (perm[i] < 0 || perm[i] >= n) return false;
    before[static_cast<size_t>(physical_axis(axis, n, from))] = axis;
    after[static_cast<size_t>(physical_axis(axis, n, to))] = perm[i];
  }
  auto drop_ones = [&](std::vector<int64_t>& order) {
    std::erase_if(order, [&](int64_t a) { return dims[static_cast<size_t>(a)] == 1; });
  };
  drop_ones(before);
  drop_ones(after);
  return before == after;
}

}  // namespace host_cpu
