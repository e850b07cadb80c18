// regie.Pointwise: its region, which works on scalars, on each element. The kernel interprets the region
// operator by operator, by the operators' own kernels on whole tensors: slow and in scratch, but by
// definition what the operators mean.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "broadcast.h"

namespace regie::ops {
namespace {

void infer_pointwise(const Infer& infer) {
  auto regions = infer.regions();
  if (regions.size() != 1) infer.bad("needs one region");
  const regie_region_info& body = regions[0];
  if (infer.operands() == 0) infer.bad("needs at least one operand");
  if (body.arg_count != infer.operands())
    infer.bad("its region takes " + std::to_string(body.arg_count) + " arguments, but there are " +
              std::to_string(infer.operands()) + " operands");
  if (body.result_count != infer.results())
    infer.bad("its region gives " + std::to_string(body.result_count) + " results, but the node has " +
              std::to_string(infer.results()));
  Shape shape;
  for (uint32_t i = 0; i < infer.operands(); ++i) {
    if (body.args[i].rank != 0 || body.args[i].elem != infer.elem(i))
      infer.bad("argument " + std::to_string(i) + " of its region must be a scalar of the operand's type");
    shape = infer.broadcast(shape, infer.shape(i));
  }
  for (uint32_t i = 0; i < infer.results(); ++i) {
    if (body.results[i].rank < 0 || body.results[i].elem == REGIE_ELEM_UNKNOWN)
      infer.unsupported("the type of result " + std::to_string(i) + " of its region is not known yet");
    if (body.results[i].rank != 0)
      infer.bad("result " + std::to_string(i) + " of its region must be a scalar");
    infer.result(i, body.results[i].elem, shape);
  }
}

// A value of the region as a tensor: of the shape to which what it is computed from is broadcast.
struct Slot {
  enum Place { kOperand, kConstant, kScratch } place = kScratch;
  uint64_t at = 0;  // which operand, or where in scratch
  const void* constant = nullptr;
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  std::vector<int64_t> dims;
  regie_tensor view() const {
    regie_tensor t{};
    t.elem = elem;
    t.rank = static_cast<int32_t>(dims.size());
    t.dims = dims.data();
    t.bytes = static_cast<uint64_t>(sdk::count_of(t)) * elem_size(elem);
    return t;
  }
};

struct Release {
  const regie_op_kernel_table* table;
  void operator()(regie_op_state* state) const { table->release(state); }
};

struct Step {
  const regie_op_kernel_table* table = nullptr;
  std::unique_ptr<regie_op_state, Release> state{nullptr, Release{nullptr}};
  std::vector<uint32_t> operands;  // slots; REGIE_NONE: absent
  uint32_t result = 0;
};

class Pointwise final : public Kernel {
 public:
  explicit Pointwise(Prepare& p) : host_(p.host()) {
    const regie_op_request& request = p.request();
    if (!request.graph || request.region_count != 1) p.unsupported("its region was not handed over");
    graph_ = request.graph;
    const regie_region& body = graph_->regions[request.regions[0]];
    if (body.arg_count != p.operands() || body.result_count != p.results())
      p.bad("operands and results must be as many as those of its region");
    for (uint32_t i = 0; i < p.operands(); ++i) {
      Slot s{Slot::kOperand, i, nullptr, p.in(i).elem, {p.shape(i).begin(), p.shape(i).end()}};
      slot_of_.emplace(body.args[i], add(p, std::move(s)));
      widen(&shape_, slots_.back().dims);
    }
    for (uint32_t n = body.first; n != REGIE_NONE; n = graph_->nodes[n].next)
      prepare_step(p, graph_->nodes[n]);
    for (uint32_t i = 0; i < body.result_count; ++i) {
      if (!p.wants(i)) continue;
      p.expect_result(i, shape_);
      const uint32_t slot = slot_for(p, body.results[i]);
      const Slot& s = slots_[slot];
      if (s.elem != p.out(i).elem) p.bad("result " + std::to_string(i) + " is of another type");
      results_.push_back({i, slot, elem_size(s.elem),
                          Walk<2>(shape_, {broadcast_strides(p.op, s.dims, shape_), dense_strides(shape_)})});
    }
    kernel_scratch_at_ = scratch_;
    p.scratch_bytes = scratch_ + kernel_scratch_;
    graph_ = nullptr;
    slot_of_.clear();
  }

  void run(const Call& call) const override {
    char* scratch = call.scratch<char>();
    auto address = [&](const Slot& s) -> void* {
      if (s.place == Slot::kOperand) return call.operand(static_cast<uint32_t>(s.at)).data;
      return s.place == Slot::kConstant ? const_cast<void*>(s.constant) : scratch + s.at;
    };
    std::array<regie_tensor, kMaxOperands> operands;
    for (const Step& step : steps_) {
      for (size_t i = 0; i < step.operands.size(); ++i) {
        operands[i] = regie_tensor{};
        if (step.operands[i] == REGIE_NONE) continue;
        operands[i] = slots_[step.operands[i]].view();
        operands[i].data = address(slots_[step.operands[i]]);
      }
      regie_tensor result = slots_[step.result].view();
      result.data = address(slots_[step.result]);
      regie_op_call inner{};
      inner.struct_size = sizeof inner;
      inner.operands = operands.data();
      inner.results = &result;
      inner.scratch = scratch + kernel_scratch_at_;
      sdk::check(step.table->run(step.state.get(), host_, &inner));
    }
    for (const Output& o : results_)
      copy_strided(o.walk, o.elem_bytes, address(slots_[o.slot]), call.out<void>(o.result));
  }

 private:
  static constexpr size_t kMaxOperands = 16;
  struct Output {
    uint32_t result, slot, elem_bytes;
    Walk<2> walk;
  };

  uint32_t add(const Prepare& p, Slot s) {
    if (elem_size(s.elem) == 0) p.no_type(s.elem);
    if (s.place == Slot::kScratch) {
      s.at = scratch_;
      scratch_ += (s.view().bytes + 63) / 64 * 64;
    }
    slots_.push_back(std::move(s));
    return static_cast<uint32_t>(slots_.size() - 1);
  }

  // The slot of a value that the region sees; constants get theirs here, with a copy of the bytes.
  uint32_t slot_for(const Prepare& p, uint32_t value) {
    if (auto known = slot_of_.find(value); known != slot_of_.end()) return known->second;
    const regie_value& v = graph_->values[value];
    if (!v.data || !v.data->data || v.data->rank != 0) p.unsupported("a constant in its region is no scalar");
    auto& bytes = constants_.emplace_back(std::make_unique<std::array<std::byte, 16>>());
    if (v.data->bytes > bytes->size()) p.no_type(v.data->elem);
    std::memcpy(bytes->data(), v.data->data, v.data->bytes);
    const uint32_t slot = add(p, {Slot::kConstant, 0, bytes->data(), v.data->elem, {}});
    slot_of_.emplace(value, slot);
    return slot;
  }

  void prepare_step(const Prepare& p, const regie_node& n) {
    const std::string op(sdk::sv(n.op));
    Step step;
    const uint32_t index = find(p, op, &step.table);
    if (!(step.table->ops[index].flags & REGIE_OP_ELEMENTWISE) || n.result_count != 1 || n.region_count != 0)
      p.unsupported(op + " is not element-wise");
    if (n.operand_count > kMaxOperands) p.unsupported(op + " has more than 16 operands");
    std::vector<int64_t> shape;
    std::vector<regie_tensor> operands(n.operand_count);
    for (uint32_t i = 0; i < n.operand_count; ++i) {
      step.operands.push_back(n.operands[i] == REGIE_NONE ? REGIE_NONE : slot_for(p, n.operands[i]));
      if (step.operands[i] == REGIE_NONE) continue;
      operands[i] = slots_[step.operands[i]].view();
      operands[i].data = const_cast<void*>(slots_[step.operands[i]].constant);
      widen(&shape, slots_[step.operands[i]].dims);
    }
    step.result =
        add(p, {Slot::kScratch, 0, nullptr, graph_->values[n.results[0]].type.elem, std::move(shape)});
    // Slots may have moved.
    for (uint32_t i = 0; i < n.operand_count; ++i)
      if (step.operands[i] != REGIE_NONE) operands[i].dims = slots_[step.operands[i]].dims.data();
    slot_of_.emplace(n.results[0], step.result);
    const regie_tensor result = slots_[step.result].view();
    regie_op_request request{};
    request.struct_size = sizeof request;
    request.attr_count = n.attr_count;
    request.operand_count = n.operand_count;
    request.result_count = 1;
    request.op = n.op;
    request.attrs = n.attrs;
    request.operands = operands.data();
    request.results = &result;
    uint64_t scratch = 0;
    regie_op_state* state = nullptr;
    sdk::check(step.table->prepare(index, host_, &request, &state, &scratch));
    step.state = {state, Release{step.table}};
    kernel_scratch_ = std::max(kernel_scratch_, scratch);
    steps_.push_back(std::move(step));
  }

  // Of this plug-in, or of another one by way of the host.
  static uint32_t find(const Prepare& p, const std::string& op, const regie_op_kernel_table** table) {
    *table = &kernel_table();
    for (uint32_t i = 0; i < (*table)->count; ++i)
      if (sdk::sv((*table)->ops[i].op) == op) return i;
    auto* ops = static_cast<const regie_host_ops*>(p.host() ? p.host()->find(REGIE_HOST_OPS_ID) : nullptr);
    uint32_t index = 0;
    *table = nullptr;
    if (!ops || ops->find_kernel(sdk::str(op), table, &index) != REGIE_OK || !*table)
      p.unsupported("no plug-in has a reference kernel for " + op);
    return index;
  }

  const regie_host* host_;
  const regie_graph* graph_ = nullptr;              // during the construction only
  std::unordered_map<uint32_t, uint32_t> slot_of_;  // of a value of the region; likewise
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<std::array<std::byte, 16>>> constants_;
  std::vector<Step> steps_;
  std::vector<Output> results_;
  std::vector<int64_t> shape_;
  uint64_t scratch_ = 0, kernel_scratch_ = 0, kernel_scratch_at_ = 0;
};

KernelPtr prepare_pointwise(Prepare& p) { return std::make_unique<Pointwise>(p); }

constexpr Op table[] = {{"regie.Pointwise", 0, infer_pointwise, prepare_pointwise}};

}  // namespace

std::span<const Op> pointwise_ops() { return table; }

}  // namespace regie::ops
