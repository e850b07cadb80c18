// fold-constants: computes at compile time what depends on constants alone.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "regie/c/op_kernel.h"
#include "regie/pass.hpp"
#include "regie_digests.h"

namespace {

using namespace regie::sdk;

constexpr int64_t kNodeBudget = int64_t{256} << 20;  // as kOptions says
constexpr int64_t kTotalBudget = int64_t{2} << 30;
constexpr uint64_t kGrowth = 8;        // a result may be this many times larger than what it is computed from
constexpr uint64_t kSmall = 64 << 10;  // and anything up to this size is worth having

constexpr regie_str kRequires[] = {lit("shapes-known")};
constexpr regie_option_info kOptions[] = {
    {lit("budget-bytes"), lit("268435456"), lit("greatest size of the results of one node")},
    {lit("total-bytes"), lit("2147483648"), lit("greatest size of all results together")},
    {lit("keep"), lit(""),
     lit("operators that are left as they are where operand 0 is of bytes, separated by commas")},
};
constexpr regie_pass_info kInfo = pass_info({
    .name = "fold-constants",
    .doc = "Computes at compile time what depends on constants alone, and shapes that are known",
    .requires_ = kRequires,
    .options = kOptions,
});

std::string bytes_text(uint64_t n) { return std::to_string(n) + " bytes"; }

// A small integer tensor whose elements are known although its operands are not constant (Shape of a static
// tensor).
class KnownContent {
 public:
  KnownContent(const Dims& table, const regie_value& v) {
    if (!v.content || (v.type.elem != REGIE_I64 && v.type.elem != REGIE_I32)) return;
    int64_t count = 1;
    for (regie_dim d : dims_of(v.type)) {
      if (d < 0 || d > v.content_count) return;
      dims_.push_back(d);
      count *= d;
    }
    if (v.type.rank < 0 || count != v.content_count) return;
    for (uint32_t i = 0; i < v.content_count; ++i) {
      int64_t element = v.content[i];
      if (element == REGIE_DIM_UNKNOWN) return;
      if (element < 0) {  // an expression; a negative number is one too
        const auto [least, most] = table.range(element);
        if (least != most) return;
        element = least;
      }
      wide_.push_back(element);
      if (v.type.elem == REGIE_I32 && (element > INT32_MAX || element < INT32_MIN)) return;
      narrow_.push_back(static_cast<int32_t>(element));
    }
    elem_ = v.type.elem;
  }
  bool known() const { return elem_ != REGIE_ELEM_UNKNOWN; }
  regie_tensor tensor() {
    const bool wide = elem_ == REGIE_I64;
    void* data = wide ? static_cast<void*>(wide_.data()) : narrow_.data();
    return {elem_,   0,    static_cast<int32_t>(dims_.size()), dims_.data(),
            nullptr, data, wide_.size() * (wide ? 8 : 4)};
  }

 private:
  regie_elem elem_ = REGIE_ELEM_UNKNOWN;
  std::vector<int64_t> dims_, wide_;
  std::vector<int32_t> narrow_;
};

class FoldConstants {
 public:
  explicit FoldConstants(const Config& options)
      : node_budget_(bytes_option(options, "budget-bytes", kNodeBudget)),
        total_budget_(bytes_option(options, "total-bytes", kTotalBudget)) {
    std::string_view list = options.find("keep").value_or("");
    while (!list.empty()) {
      const size_t end = std::min(list.find(','), list.size());
      if (end > 0) keep_.emplace_back(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }

  // A wave: all nodes that are ready now. The constants exist once the host has applied it; it then shows the
  // readers as changed, so that a chain costs its own length.
  void run(PassContext& c) {
    for (uint32_t id : c.graph().changed()) {
      const regie_node& n = c.graph().node(id);
      if (!c.graph().live(id) || n.region_count != 0) continue;
      if (is_kept(c.graph(), n)) continue;
      if (!fold_known(c, n)) fold_computed(c, n);
    }
  }

 private:
  bool is_kept(const GraphView& g, const regie_node& n) const {
    if (std::find(keep_.begin(), keep_.end(), sv(n.op)) == keep_.end()) return false;
    if (n.operand_count == 0 || n.operands[0] == REGIE_NONE) return false;
    const regie_elem elem = g.value(n.operands[0]).type.elem;
    return elem == REGIE_I8 || elem == REGIE_U8;
  }

  static uint64_t bytes_option(const Config& options, std::string_view key, int64_t fallback) {
    const int64_t v = options.integer(key, fallback);
    if (v < 0) throw Failure(REGIE_INVALID_INPUT, "option '" + std::string(key) + "' must not be negative");
    return static_cast<uint64_t>(v);
  }

  static bool is_read(const GraphView& g, uint32_t value) {
    return value != REGIE_NONE && g.value(value).use_count != 0;
  }

  // Replaces what is read of the results by the tensors (none where the result stays), and the node if all
  // are replaced.
  void replace(PassContext& c, const regie_node& n, std::string_view title,
               const std::vector<std::optional<regie_tensor>>& tensors) {
    const GraphView& g = c.graph();
    uint32_t kind = REGIE_VALUE_CONSTANT;
    for (uint32_t v : operands_of(n))
      if (v != REGIE_NONE && g.value(v).kind == REGIE_VALUE_WEIGHT) kind = REGIE_VALUE_WEIGHT;
    Patch patch(c, std::string(title) + " " + std::string(sv(n.op)), n.id);
    bool all = true;
    for (uint32_t r = 0; r < n.result_count; ++r) {
      if (!is_read(g, n.results[r])) continue;
      all &= tensors[r].has_value();
      if (tensors[r])
        patch.replace(n.results[r], patch.constant(kind, *tensors[r], sv(g.value(n.results[r]).name)));
    }
    if (all) patch.remove(n.id);
    patch.commit();
  }

  bool fold_known(PassContext& c, const regie_node& n) {
    std::vector<KnownContent> contents;
    contents.reserve(n.result_count);
    std::vector<std::optional<regie_tensor>> tensors(n.result_count);
    bool any = false;
    for (uint32_t r = 0; r < n.result_count; ++r) {
      if (!is_read(c.graph(), n.results[r])) continue;
      contents.emplace_back(c.dims(), c.graph().value(n.results[r]));
      if (!contents.back().known()) continue;
      tensors[r] = contents.back().tensor();
      any = true;
    }
    if (any) replace(c, n, "known content of", tensors);
    return any;
  }

  void fold_computed(PassContext& c, const regie_node& n) {
    const GraphView& g = c.graph();
    uint64_t from = 0;
    for (uint32_t v : operands_of(n)) {
      if (v == REGIE_NONE) continue;
      if (!is_constant(g.value(v)) || !g.value(v).data) return;
      from += g.value(v).data->bytes;
    }
    bool read = false;
    for (uint32_t v : results_of(n)) read |= is_read(g, v);
    if (!read) return;
    const uint32_t flags = c.op_flags(n.op);
    if (flags & REGIE_OP_NONDETERMINISTIC) return;

    const bool dynamic = (flags & REGIE_OP_DYNAMIC_RESULT) != 0;
    uint64_t to = 0;
    for (uint32_t v : results_of(n)) {
      if (v == REGIE_NONE || dynamic) continue;
      const auto bytes = bytes_of(g.value(v).type);
      if (!bytes)
        return c.note(n.id, "kept",
                      "the size of " + g.describe(g.value(v)) + " is not known at compile time");
      if (__builtin_add_overflow(to, *bytes, &to)) to = UINT64_MAX;
    }
    if (!affordable(c, n, from, to)) return;

    const uint64_t budget = std::min(node_budget_, total_budget_ - total_);
    std::vector<regie_tensor> computed;
    switch (const regie_status status = c.evaluate(n, budget, &computed)) {
      case REGIE_OK:
        break;
      case REGIE_LIMIT:
        return c.note(n.id, "kept", "its result exceeds the budget of " + bytes_text(budget));
      case REGIE_NOT_FOUND:
        return c.note(n.id, "kept", "no reference kernel for " + std::string(sv(n.op)));
      case REGIE_UNSUPPORTED:
        return c.note(n.id, "kept", "its reference kernel does not cover these operands");
      case REGIE_INVALID_MODEL:
      case REGIE_INVALID_INPUT:
        return c.note(n.id, "kept", "its reference kernel refuses these operands");
      default:
        check(status);
    }
    std::vector<std::optional<regie_tensor>> tensors(n.result_count);
    to = 0;
    for (uint32_t r = 0; r < n.result_count; ++r) {
      if (n.results[r] == REGIE_NONE) continue;
      tensors[r] = computed[r];
      to += computed[r].bytes;
    }
    if (dynamic && !affordable(c, n, from, to)) return;
    total_ += to;
    replace(c, n, "fold", tensors);
  }

  // Whether results of `to` bytes may take the place of operands of `from` bytes in the model.
  bool affordable(PassContext& c, const regie_node& n, uint64_t from, uint64_t to) const {
    std::string why;
    if (to > node_budget_)
      why = "its result of " + bytes_text(to) + " exceeds budget-bytes = " + std::to_string(node_budget_);
    else if (to > total_budget_ - total_)
      why = "its result of " + bytes_text(to) +
            " exceeds what is left of total-bytes = " + std::to_string(total_budget_);
    else if (to > kSmall && to / kGrowth > from)
      why = "its result of " + bytes_text(to) + " is more than " + std::to_string(kGrowth) +
            " times its operands' " + bytes_text(from);
    if (why.empty()) return true;
    c.note(n.id, "kept", why);
    return false;
  }

  uint64_t node_budget_, total_budget_;
  std::vector<std::string> keep_;
  uint64_t total_ = 0;  // bytes made so far
};

constexpr regie_pass_table kTable = pass_table<FoldConstants>(&kInfo, REGIE_DIGEST_PASS);

const void* find(const char* id) { return find_one(id, REGIE_PASS_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
