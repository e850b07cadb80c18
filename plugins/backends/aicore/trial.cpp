#include "trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lower.h"
#include "regie/graph_view.hpp"
#include "regie/operator_work.hpp"
#include "widths.h"

// <omp.h> is not always there for clang.
extern "C" int omp_get_max_threads(void);
extern "C" void omp_set_num_threads(int);

namespace aicore {

namespace {

using regie::sdk::Failure;
using regie::sdk::operands_of;
using regie::sdk::results_of;
using regie::sdk::sv;

// What this computer is counted with: a product by oneDNN, plain code, bytes.
constexpr double kProductFlops = 50, kPlainFlops = 0.5, kBytes = 2;
// Of elements that are small with the inputs tried: which count, and how much of their error, as where others
// are larger they are seldom the large ones.
constexpr float kLeastSmall = 1e-6f;
constexpr double kShareOfSmall = 0.5;
constexpr double kMostNs = 6e9, kFewNs = 2e8, kMostBytes = 3e9;

// To the nearest half, without a branch: a product whose rounding cuts 13 bits off; below the least normal
// half a sum whose last place is that of all halves there.
float rounded(float x) {
  const float wide = x * 8193.0f, cut = wide - (wide - x), small = (x + 0.75f) - 0.75f, size = std::fabs(x);
  const float half = size < 0x1p-14f ? small : cut;
  return size < 65520.0f ? half : x > 0 ? INFINITY : x < 0 ? -INFINITY : x;
}

double predicted(const regie_node& n, const std::vector<regie_tensor>& operands,
                 const std::vector<regie_tensor>& results, bool product) {
  const regie::sdk::OperatorWork work = regie::sdk::operator_work(
      sv(n.op), n.attrs, n.attr_count, operands.data(), n.operand_count, results.data(), n.result_count);
  return work.flops / (product ? kProductFlops : kPlainFlops) + work.bytes() / kBytes;
}

// Does its result end in an exponential, of which only what is large counts in a norm?
bool is_exponential(const regie_graph& g, const regie_node& n) {
  const auto is = [](std::string_view op) { return op == "Sigmoid" || op == "Softmax" || op == "Exp"; };
  const std::string_view op = sv(n.op);
  if (op != "regie.Pointwise" || !n.region_count)
    return is(op) || is(regie::sdk::Attrs(n).text("activation", ""));
  const regie_region& body = g.regions[n.regions[0]];
  if (body.result_count == 0) return false;
  const regie_value& last = g.values[body.results[0]];
  return last.kind == REGIE_VALUE_RESULT && is(sv(g.nodes[last.owner].op));
}

// Relative, in the Euclidean norm.
double error_of(const float* want, const float* got, size_t count) {
  double norm = 0, off = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(want[i])) continue;
    const double w = want[i], d = static_cast<double>(got[i]) - w;
    norm += w * w;
    off += d * d;
  }
  return std::isnan(off) ? INFINITY : off == 0 ? 0 : std::sqrt(off / norm);
}

// Of what a sigmoid or a soft-max leaves small, each by itself: how far its argument is off. Inputs for which
// such elements are the large ones are as far off in the norm.
double error_of_small(const float* want, const float* got, size_t count) {
  double off = 0;
  size_t small = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(want[i] > kLeastSmall && want[i] < 0.5f)) continue;
    const double d = static_cast<double>(got[i]) / want[i] - 1;
    off += d * d;
    ++small;
  }
  return std::isnan(off) ? INFINITY : small ? kShareOfSmall * std::sqrt(off / static_cast<double>(small)) : 0;
}

// One thread: how sums are parted must not depend on how many there are.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

struct Trial::Step {
  const regie_node* node;
  std::unique_ptr<TrialProduct> product;
  std::optional<regie::sdk::ReferenceKernel> kernel;
  std::vector<size_t> rounds;  // operands that it rounds for itself
  bool copies = false;         // its result is its operand's bytes
  bool exponential = false;    // its result is an exponential of something
  double ns = 0;               // predicted
};

Trial::~Trial() = default;

Trial::Trial(const regie_host* host, const regie_graph* graph, uint32_t engine, const Widths& widths,
             bool all_rounded)
    : catcher_(host),
      graph_(graph),
      classes_(widths),
      engine_(engine),
      all_rounded_(all_rounded),
      rounded_(graph->value_count),
      exact_(graph->value_count),
      near_(graph->value_count),
      differs_(graph->value_count) {
  const OneThread one;
  if (work_of_all() > kFewNs)
    if (auto batch = one_of_batch(*graph)) one_ = std::move(*batch);
  const regie_region& top = graph->regions[0];
  for (uint32_t i = 0; i < top.arg_count; ++i) exact_[top.args[i]] = tensor_of(top.args[i]);
  for (uint32_t id = top.first; id != REGIE_NONE; id = graph->nodes[id].next) add_step(graph->nodes[id]);
}

// Predicted, of a run as the graph is.
double Trial::work_of_all() const {
  double ns = 0;
  const regie_region& top = graph_->regions[0];
  for (uint32_t id = top.first; id != REGIE_NONE; id = graph_->nodes[id].next) {
    const regie_node& n = graph_->nodes[id];
    std::vector<regie_tensor> operands, results;
    auto add = [&](uint32_t v, std::vector<regie_tensor>& to) {
      regie_tensor t{};
      if (v != REGIE_NONE) {
        const regie_type& type = graph_->values[v].type;
        t.elem = type.elem;
        t.rank = std::max(type.rank, 0);
        t.dims = type.dims;
      }
      to.push_back(t);
    };
    for (uint32_t v : operands_of(n)) add(v, operands);
    for (uint32_t v : results_of(n)) add(v, results);
    ns += predicted(n, operands, results, is_product(sv(n.op)) || sv(n.op) == "regie.Attention");
  }
  return ns;
}

Trial::Tensor Trial::tensor_of(uint32_t value) const {
  const regie_value& v = graph_->values[value];
  if (v.type.container != REGIE_TENSOR || v.type.rank < 0 || v.type.elem == REGIE_STRING)
    refuse("a value is not a tensor of numbers of known rank");
  Tensor t;
  if (!one_.dims.empty())
    t.dims = one_.dims[value];
  else
    t.dims.assign(v.type.dims, v.type.dims + v.type.rank);
  for (int64_t d : t.dims)
    if (d < 0) refuse("a shape is not known");
  t.view.elem = v.type.elem;
  t.view.rank = v.type.rank;
  t.view.dims = t.dims.data();
  t.view.bytes = regie::sdk::bytes_of(t.view).value_or(0);
  t.bytes.reset(new char[t.view.bytes + 64]);
  t.view.data = t.bytes.get();
  return t;
}

void Trial::use(TrialInputs kind) {
  const OneThread one;
  const regie_region& top = graph_->regions[0];
  for (uint32_t i = 0; i < top.arg_count; ++i)
    if (!draw_input(*graph_, i, kind, exact_[top.args[i]].view))
      refuse("an input's type is one that it has no numbers for");
  for (Step& s : steps_) compute(s, true);
}

void Trial::add_step(const regie_node& n) {
  if (regie::sdk::is_control_flow(n)) refuse("there is control flow");
  std::vector<regie_tensor> operands, results;
  for (uint32_t v : operands_of(n)) {
    regie_tensor t{};
    if (v != REGIE_NONE) {
      const regie_value& value = graph_->values[v];
      if (value.data) {
        t = *value.data;
      } else {
        if (exact_[v].view.elem == REGIE_ELEM_UNKNOWN) refuse("a value comes from outside");
        t = exact_[v].view;
        t.data = nullptr;
      }
    }
    operands.push_back(t);
  }
  for (uint32_t v : results_of(n)) {
    regie_tensor t{};
    if (v != REGIE_NONE) {
      exact_[v] = tensor_of(v);
      bytes_ += 2 * static_cast<double>(exact_[v].view.bytes);
      t = exact_[v].view;
      t.data = nullptr;
    }
    results.push_back(t);
  }
  if (bytes_ > kMostBytes) refuse("its tensors take more memory than a trial may");
  Step step{&n, nullptr, std::nullopt, {}, 0};
  const std::string_view op = sv(n.op);
  const bool here = n.engine == engine_;
  if (!n.region_count && !results.empty()) step.product = trial_product(n, operands, results[0]);
  step.copies = !one_.copied.empty() && one_.copied[n.id];
  step.ns = predicted(n, operands, results, step.product != nullptr);
  run_ns_ += step.ns;
  if (run_ns_ > kMostNs) refuse("running it takes too long");
  step.exponential = is_exponential(*graph_, n);
  if (!step.product && !step.copies) {
    const auto kernel = regie::sdk::find_reference(catcher_, op);
    if (!kernel) refuse("there is no reference kernel for " + std::string(op));
    step.kernel.emplace(catcher_, *kernel, op, std::vector<regie_attr>(n.attrs, n.attrs + n.attr_count),
                        operands.data(), n.operand_count, results.data(), n.result_count, graph_,
                        n.region_count ? n.regions[0] : REGIE_NONE);
    if (step.kernel->scratch_bytes() + 64 > scratch_.size())
      scratch_.resize(step.kernel->scratch_bytes() + 64);
  }
  // Whatever lies how, the cube rounds a matrix on the right that is computed, and its partner with it.
  auto computed = [&](size_t i) {
    return i < operands.size() && operands[i].elem == REGIE_F32 && !graph_->values[n.operands[i]].data;
  };
  if (here && is_product(op)) {
    const bool two = computed(0) && !computed(1) && !regie::sdk::Attrs(n).integer("transA", 0);
    for (size_t i : {0u, 1u})
      if (computed(i)) {
        rounded_[classes_.class_of(n.operands[i])] = true;
        if (!two) step.rounds.push_back(i);
      }
  }
  if (here && is_window(op) && computed(0)) rounded_[classes_.class_of(n.operands[0])] = true;
  if (here && op == "regie.Attention")
    for (size_t i : {0u, 1u, 2u})
      if (computed(i)) step.rounds.push_back(i);
  if (here && all_rounded_)
    for (uint32_t v : results_of(n))
      if (v != REGIE_NONE && exact_[v].view.elem == REGIE_F32) rounded_[classes_.class_of(v)] = true;
  steps_.push_back(std::move(step));
}

const regie_tensor* Trial::at(uint32_t value, bool exact) const {
  if (value == REGIE_NONE) return nullptr;
  if (graph_->values[value].data) return graph_->values[value].data;
  return !exact && differs_[value] ? &near_[value].view : &exact_[value].view;
}

void Trial::compute(Step& step, bool exact) {
  spent_ns_ += step.ns;
  const regie_node& n = *step.node;
  std::vector<regie_tensor> kept(n.operand_count);
  std::vector<const regie_tensor*> operands(n.operand_count);
  for (uint32_t i = 0; i < n.operand_count; ++i)
    if (const regie_tensor* t = at(n.operands[i], exact)) {
      kept[i] = *t;
      operands[i] = &kept[i];
    }
  if (!exact) {
    copies_.resize(std::max(copies_.size(), step.rounds.size()));
    for (size_t k = 0; k < step.rounds.size(); ++k) {
      regie_tensor& t = kept[step.rounds[k]];
      const auto* from = static_cast<const float*>(t.data);
      copies_[k].resize(static_cast<size_t>(regie::sdk::count_of(t)));
      std::transform(from, from + copies_[k].size(), copies_[k].begin(), rounded);
      t.data = copies_[k].data();
    }
  }
  std::vector<regie_tensor> results(n.result_count);
  for (uint32_t i = 0; i < n.result_count; ++i) {
    const uint32_t v = n.results[i];
    if (v == REGIE_NONE) continue;
    if (!exact && !near_[v].bytes) near_[v] = tensor_of(v);
    results[i] = exact ? exact_[v].view : near_[v].view;
  }
  if (step.product) {
    step.product->run(operands, static_cast<float*>(const_cast<void*>(results[0].data)));
    return;
  }
  if (step.copies) {
    std::memcpy(results[0].data, operands[0]->data, results[0].bytes);
    return;
  }
  std::string words;
  auto* scratch = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64);
  if (step.kernel->run(catcher_, kept.data(), results.data(), scratch, &words) != REGIE_OK) refuse(words);
}

std::vector<double> Trial::errors(const Widths& widths) {
  const OneThread one;
  std::fill(differs_.begin(), differs_.end(), false);
  auto lies_as_halves = [&](uint32_t v) {
    return graph_->values[v].type.elem == REGIE_F32 && rounded_[classes_.class_of(v)] && !widths.wide(v);
  };
  auto round = [&](uint32_t v) {
    if (!lies_as_halves(v)) return;
    if (!differs_[v]) {
      if (!near_[v].bytes) near_[v] = tensor_of(v);
      std::copy_n(exact_[v].bytes.get(), exact_[v].view.bytes, near_[v].bytes.get());
      differs_[v] = true;
    }
    auto* x = reinterpret_cast<float*>(near_[v].bytes.get());
    std::transform(x, x + regie::sdk::count_of(near_[v].view), x, rounded);
  };
  const regie_region& top = graph_->regions[0];
  for (uint32_t i = 0; i < top.arg_count; ++i) round(top.args[i]);
  std::vector<double> errors;
  for (Step& s : steps_) {
    const auto ids = operands_of(*s.node);
    if (!s.rounds.empty() ||
        std::any_of(ids.begin(), ids.end(), [&](uint32_t v) { return v != REGIE_NONE && differs_[v]; })) {
      compute(s, false);
      for (uint32_t v : results_of(*s.node))
        if (v != REGIE_NONE) differs_[v] = true;
    }
    for (uint32_t v : results_of(*s.node)) {
      if (v == REGIE_NONE) continue;
      round(v);
      if (graph_->values[v].type.elem != REGIE_F32) continue;
      const auto count = static_cast<size_t>(regie::sdk::count_of(exact_[v].view));
      const auto* want = reinterpret_cast<const float*>(exact_[v].bytes.get());
      const auto* got = reinterpret_cast<const float*>(near_[v].bytes.get());
      errors.push_back(differs_[v] ? error_of(want, got, count) : 0);
      if (s.exponential) errors.push_back(differs_[v] ? error_of_small(want, got, count) : 0);
    }
  }
  return errors;
}

}  // namespace aicore
