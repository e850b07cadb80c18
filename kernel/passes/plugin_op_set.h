// The operators as plug-ins and schemas describe them: the OpSet of every real compile. Schemas come from
// configs/ops and overlay folders; shapes and reference kernels from whichever plug-in's manifest names the
// operator.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/op_set.h"
#include "ir/schema.h"
#include "plugins/host.h"

namespace regie {

class PluginOpSet : public OpSet {
 public:
  static Result<std::shared_ptr<PluginOpSet>> create(std::shared_ptr<PluginHost> host);

  Status check(const Graph& graph, uint32_t node) const override;
  Status infer(Graph& graph, uint32_t node) const override;
  uint32_t flags(std::string_view op) const override;
  Result<std::vector<Tensor>> evaluate(const Graph& graph, uint32_t node, const std::vector<Tensor>& operands,
                                       uint64_t budget) const override;
  const SchemaSet& schemas() const { return schemas_; }
  // The plug-ins that have answered so far.
  const std::set<const Manifest*>& used() const { return used_; }

  // Types and contents of all results of `node`, as its shape function gives them now; sets nothing.
  // `types[i].rank` is -1 for results that were not asked for. Dims point into `storage`; REGIE_DIM_UNKNOWN
  // for those that only the run will tell.
  struct Inferred {
    std::vector<regie_type> types;
    std::vector<std::vector<regie_dim>> contents;  // empty and has_content false: not known
    std::vector<bool> has_content;
    std::vector<std::unique_ptr<std::vector<regie_dim>>> storage;
    bool late() const;  // some dimension is not known
  };
  Result<Inferred> inferred(const Graph& graph, uint32_t node) const { return ask(graph, node, nullptr); }

  // By symbol index.
  using Sizes = std::vector<std::optional<int64_t>>;
  // Whether the shape function takes operands of these sizes: false if it calls them INVALID_MODEL ("an axis
  // of size 5 cannot be split into 2 equal parts"). True of a node that has no open sizes, or some that no
  // value is given for.
  bool allows(const Graph& graph, uint32_t node, const Sizes& sizes) const;

  // The dimensions of the results of `node` that only the run will tell, as shape functions see it now. Such
  // a node makes the symbols that stand there known; whatever else has them comes after it.
  struct LateDim {
    uint32_t result, axis;
  };
  Result<std::vector<LateDim>> late_dims(const Graph& graph, uint32_t node) const;

 private:
  Result<Inferred> ask(const Graph& graph, uint32_t node, const Sizes* sizes) const;
  explicit PluginOpSet(std::shared_ptr<PluginHost> host) : host_(std::move(host)) {}
  std::shared_ptr<PluginHost> host_;
  SchemaSet schemas_;
  // One compile, one thread.
  mutable std::unordered_map<NameId, uint32_t> flags_;
  mutable std::set<const Manifest*> used_;
  mutable std::set<uint32_t> perhaps_late_;  // nodes that had unknown dimensions at some time
};

}  // namespace regie
