#include "trial.h"

#include <algorithm>
#include <cmath>

#include "half.h"
#include "lower.h"
#include "regie/graph_view.hpp"
#include "regie/operator_work.hpp"

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
constexpr double kMostNs = 4e9, kMostBytes = 1.5e9;

// The same numbers everywhere: no library's generator.
class Random {
 public:
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  // Mean 0, variance 1: the sum of twelve that are even.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_ = 7;
};

float rounded(float x) { return from_half(to_half(x)); }

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
  double ns = 0;               // predicted
};

Trial::~Trial() = default;

Trial::Trial(const regie_host* host, const regie_graph* graph, uint32_t engine, const Widths& widths)
    : catcher_(host),
      graph_(graph),
      classes_(widths),
      engine_(engine),
      rounded_(graph->value_count),
      exact_(graph->value_count),
      near_(graph->value_count),
      differs_(graph->value_count) {
  const OneThread one;
  draw_inputs();
  const regie_region& top = graph->regions[0];
  for (uint32_t id = top.first; id != REGIE_NONE; id = graph->nodes[id].next) add_step(graph->nodes[id]);
  for (Step& s : steps_) compute(s, true);
}

Trial::Tensor Trial::tensor_of(uint32_t value) const {
  const regie_value& v = graph_->values[value];
  if (v.type.container != REGIE_TENSOR || v.type.rank < 0 || v.type.elem == REGIE_STRING)
    refuse("a value is not a tensor of numbers of known rank");
  Tensor t;
  for (regie_dim d : regie::sdk::dims_of(v.type)) {
    if (d < 0) refuse("a shape is not known");
    t.dims.push_back(d);
  }
  t.view.elem = v.type.elem;
  t.view.rank = v.type.rank;
  t.view.dims = t.dims.data();
  t.view.bytes = regie::sdk::bytes_of(t.view).value_or(0);
  t.bytes.reset(new char[t.view.bytes + 64]);
  t.view.data = t.bytes.get();
  return t;
}

void Trial::draw_inputs() {
  const regie_region& top = graph_->regions[0];
  Random random;
  for (uint32_t i = 0; i < top.arg_count; ++i) {
    const uint32_t id = top.args[i];
    const regie_value& v = graph_->values[id];
    Tensor& t = exact_[id] = tensor_of(id);
    const auto n = static_cast<int64_t>(regie::sdk::count_of(t.view));
    char* to = t.bytes.get();
    // Numbers that pick from a table are rows of it; others are a mask's.
    int64_t rows = 2;
    for (uint32_t u = 0; u < v.use_count; ++u)
      if (!(v.uses[u].node & REGIE_USE_REGION) && v.uses[u].operand == 1) {
        const regie_node& n = graph_->nodes[v.uses[u].node];
        const regie_type& table = graph_->values[n.operands[0]].type;
        const int64_t axis = regie::sdk::Attrs(n).integer("axis", 0);
        if (sv(n.op) == "Gather" && axis >= 0 && axis < table.rank && table.dims[axis] > 0)
          rows = table.dims[axis];
      }
    for (int64_t k = 0; k < n; ++k) {
      const auto whole = static_cast<int64_t>(random.next() % static_cast<uint64_t>(rows));
      switch (t.view.elem) {
        case REGIE_F32:
          reinterpret_cast<float*>(to)[k] = random.normal();
          break;
        case REGIE_F16:
          reinterpret_cast<uint16_t*>(to)[k] = to_half(random.normal());
          break;
        case REGIE_I64:
          reinterpret_cast<int64_t*>(to)[k] = whole;
          break;
        case REGIE_I32:
          reinterpret_cast<int32_t*>(to)[k] = static_cast<int32_t>(whole);
          break;
        case REGIE_BOOL:
          to[k] = static_cast<char>(random.next() & 1);
          break;
        case REGIE_I8:
        case REGIE_U8:
          to[k] = static_cast<char>(random.next());
          break;
        default:
          refuse("an input's type is one that it has no numbers for");
      }
    }
  }
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
  const regie::sdk::OperatorWork work = regie::sdk::operator_work(
      op, n.attrs, n.attr_count, operands.data(), n.operand_count, results.data(), n.result_count);
  step.ns = work.flops / (step.product ? kProductFlops : kPlainFlops) + work.bytes() / kBytes;
  run_ns_ += step.ns;
  if (run_ns_ > kMostNs) refuse("running it takes too long");
  if (!step.product) {
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
      double norm = 0, off = 0;
      if (differs_[v]) {
        const auto* want = reinterpret_cast<const float*>(exact_[v].bytes.get());
        const auto* got = reinterpret_cast<const float*>(near_[v].bytes.get());
        const auto count = static_cast<int64_t>(regie::sdk::count_of(exact_[v].view));
        for (int64_t i = 0; i < count; ++i) {
          if (!std::isfinite(want[i])) continue;
          const double w = want[i], d = static_cast<double>(got[i]) - w;
          norm += w * w;
          off += d * d;
        }
        if (std::isnan(off)) off = INFINITY;
      }
      errors.push_back(off == 0 ? 0 : std::sqrt(off / norm));
    }
  }
  return errors;
}

}  // namespace aicore
