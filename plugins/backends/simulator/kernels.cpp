#include "kernels.h"

#include <algorithm>

#include "regie/op_blob.hpp"
#include "regie/c/tile.h"
#include "regie/operator_work.hpp"
#include "regie/region_blob.hpp"
#include "tile_kernel.h"

namespace regie::simulator {

namespace {

using sdk::Failure;

// Reads what is in the cache and leaves everything there; what it had not is read from the memory, as is
// written what the cache cannot hold.
uint64_t move_through(const LaunchArguments& a, uint64_t capacity, Cache& cache) {
  uint64_t far = 0;
  for (const Bytes& b : a.operands) {
    far += b.size - cache.hits(b.at, b.size);
    cache.touch(b.at, b.size);
  }
  for (const Bytes& b : a.results) {
    far += b.size > capacity ? b.size - capacity : 0;
    cache.touch(b.at, b.size);
  }
  return far;
}

class AicpuRun final : public Executable {
 public:
  AicpuRun(const sdk::WordCatcher& catcher, const sdk::OpBlob& op, const sdk::RegionBlob* region,
           const Settings& settings, const PrepareRequest& r)
      : catcher_(catcher),
        settings_(settings),
        operands_(r.operands, r.operands + r.operand_count),
        results_(r.results, r.results + r.result_count),
        work_(sdk::operator_work(op.op(), op.attrs().data(), static_cast<uint32_t>(op.attrs().size()),
                                 r.operands, r.operand_count, r.results, r.result_count,
                                 region ? std::max(region->graph()->node_count, 1u) : 1)) {
    const auto reference = sdk::find_reference(catcher, op.op());
    if (!reference) throw Failure(REGIE_NOT_FOUND, "no plug-in has a reference kernel for " + op.op());
    kernel_.emplace(catcher, *reference, op.op(), op.attrs(), r.operands, r.operand_count, r.results,
                    r.result_count, region ? region->graph() : nullptr,
                    region ? region->region() : REGIE_NONE);
    dims_.reserve(operands_.size() + results_.size());
    for (auto* list : {&operands_, &results_})
      for (regie_tensor& t : *list) {
        dims_.emplace_back(t.dims, t.dims + t.rank);
        t.dims = dims_.back().data();
      }
  }
  EngineKind engine() const override { return kAicpus; }
  uint64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }

  regie_status run(const LaunchArguments& a, std::string* words) override {
    for (size_t i = 0; i < operands_.size(); ++i)
      operands_[i].data = reinterpret_cast<void*>(a.operands[i].at);
    for (size_t i = 0; i < results_.size(); ++i) results_[i].data = reinterpret_cast<void*>(a.results[i].at);
    return kernel_->run(catcher_, operands_.data(), results_.data(), a.scratch, words);
  }

  Cost cost() const override {
    const sdk::Accelerator& h = settings_.hardware;
    Need need;
    need.before = whole(h.dispatch_ns + h.hardware_start_ns + h.aicpu_start_ns);
    need.run_ns = h.aicpu_ns(work_.flops, work_.bytes());
    need.after = whole(h.completion_ns);
    const auto capacity = static_cast<uint64_t>(h.l2_bytes);
    return [need, capacity, flops = work_.flops, flops_per_ns = h.aicpu_flops_per_ns](
               const LaunchArguments& a, Cache& cache, Traffic* traffic) {
      Need now = need;
      for (const auto* list : {&a.operands, &a.results})
        for (const Bytes& b : *list) traffic->bytes += b.size;
      traffic->far_bytes = move_through(a, capacity, cache);
      traffic->flops = flops;
      traffic->flops_per_ns = flops_per_ns;
      now.far_bytes = static_cast<double>(traffic->far_bytes);
      return now;
    };
  }

 private:
  const sdk::WordCatcher& catcher_;
  const Settings& settings_;
  std::vector<regie_tensor> operands_, results_;
  std::vector<std::vector<int64_t>> dims_;
  sdk::OperatorWork work_;
  std::optional<sdk::ReferenceKernel> kernel_;
};

class AicpuKernel final : public LoadedKernel {
 public:
  AicpuKernel(const sdk::WordCatcher& catcher, const Settings& settings, const regie_kernel_image& image)
      : catcher_(catcher), settings_(settings) {
    sdk::BlobReader in(image.blob, image.blob_size, "kernel of format " + std::string(kAicpuFormat));
    op_ = sdk::read_op(in);
    const auto regions = in.get<uint32_t>();
    if (regions > 1) in.corrupt("an operator has at most one region here");
    if (regions) region_ = std::make_unique<sdk::RegionBlob>(in);
    in.finish();
  }
  std::unique_ptr<Executable> prepare(const PrepareRequest& request) const override {
    return std::make_unique<AicpuRun>(catcher_, op_, region_.get(), settings_, request);
  }

 private:
  const sdk::WordCatcher& catcher_;
  const Settings& settings_;
  sdk::OpBlob op_;
  std::unique_ptr<sdk::RegionBlob> region_;
};

}  // namespace

std::unique_ptr<LoadedKernel> load_kernel(const sdk::WordCatcher& catcher, const Settings& settings,
                                          const regie_kernel_image& image) {
  const std::string_view format = sdk::sv(image.format);
  if (format == kAicpuFormat) return std::make_unique<AicpuKernel>(catcher, settings, image);
  if (format == REGIE_TILE_FORMAT) return load_tile_kernel(settings, image);
  throw Failure(REGIE_UNSUPPORTED, "the simulator runs kernels of the formats " + std::string(kAicpuFormat) +
                                       " and " + REGIE_TILE_FORMAT + ", not '" + std::string(format) + "'");
}

}  // namespace regie::simulator
