// The file of a model with several plans: the container of any model file, with the weights of all plans in
// one section, equal ones once.
#include <algorithm>
#include <climits>
#include <cstring>
#include <map>

#include "model.pb.h"
#include "model/check.h"
#include "model/plan_set.h"
#include "model/sections.h"
#include "model/wire.h"

namespace regie {

namespace {

// Weights of several models, each once.
class Weights {
 public:
  uint32_t add(Model* to, const Model& from, const ModelWeight& w) {
    auto [it, fresh] = places_.try_emplace({w.digest, w.size}, 0);
    if (fresh) {
      it->second = (bytes_.size() + 63) / 64 * 64;
      bytes_.resize(it->second + w.size);
      if (w.size) std::memcpy(bytes_.data() + it->second, from.weight_bytes.data() + w.offset, w.size);
    }
    to->weights.push_back({it->second, w.size, w.layout, w.digest});
    return static_cast<uint32_t>(to->weights.size() - 1);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::map<std::pair<std::string, uint64_t>, uint64_t> places_;
  std::vector<std::byte> bytes_;
};

// Of the section of the weights.
struct FilePart {
  uint64_t offset, size;
};

Status put_plan(const Model& from, Weights* weights, std::string* kernels, wire::PlanProto* to,
                std::vector<FilePart>* read) {
  if (from.weight_check) REGIE_TRY(from.weight_check->wait_for_all());
  Model m = from;
  m.weights.clear();
  m.portable_constants.clear();  // the ports have them
  for (const ModelWeight& w : from.weights) weights->add(&m, from, w);
  for (uint32_t w : weights_read(m)) read->push_back({m.weights[w].offset, m.weights[w].size});
  REGIE_ASSIGN(const WireModel wire, to_wire(m));
  kernels->resize((kernels->size() + 63) / 64 * 64);
  to->set_model(wire.model);
  to->set_kernels_offset(kernels->size());
  to->set_kernels_size(wire.kernels.size());
  to->set_ledger(from.ledger_json.data(), from.ledger_json.size());
  *kernels += wire.kernels;
  return {};
}

Model ports_for_file(const PlanSet& set, Weights* weights) {
  Model ports = *set.ports;
  ports.weights.clear();
  ports.portable_constants.clear();
  for (const Model* from : {set.ports.get(), set.plans.front().get()})
    for (const auto& [digest, weight] : from->portable_constants)
      if (!ports.portable_constants.count(digest))
        ports.portable_constants.emplace(digest, weights->add(&ports, *from, from->weights[weight]));
  return ports;
}

struct Loaded {
  std::map<uint32_t, std::span<const std::byte>> sections;
  std::span<const std::byte> of(SectionKind kind) const {
    const auto it = sections.find(static_cast<uint32_t>(kind));
    return it == sections.end() ? std::span<const std::byte>() : it->second;
  }
};

Result<std::shared_ptr<Model>> get_plan(const wire::PlanProto& from, const Loaded& file,
                                        const std::shared_ptr<const void>& owner) {
  const std::span<const std::byte> kernels = file.of(SectionKind::kKernels);
  if (from.kernels_offset() > kernels.size() || from.kernels_size() > kernels.size() - from.kernels_offset())
    return corrupt("the kernels of a plan lie outside of section 'kernels'");
  auto model = std::make_shared<Model>();
  REGIE_TRY(from_wire(std::as_bytes(std::span(from.model())),
                      kernels.subspan(from.kernels_offset(), from.kernels_size()), model.get()));
  model->ledger_json = from.ledger();
  model->weight_bytes = file.of(SectionKind::kWeights);
  model->weight_owner = owner;
  REGIE_TRY(check_model_as(*model, REGIE_CORRUPT));
  model->checked = true;
  return model;
}

struct Parts {  // not const yet: the check of the weights comes last
  uint64_t read_checksum = 0;
  std::shared_ptr<PlanSet> set;
  std::vector<std::shared_ptr<Model>> models;
};

Result<Parts> read_set(const Loaded& file, const std::shared_ptr<const void>& owner) {
  wire::PlanSetProto p;
  const std::span<const std::byte> bytes = file.of(SectionKind::kPlans);
  if (bytes.size() > INT_MAX || !p.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return corrupt("section 'plans' cannot be read");
  Parts out{p.read_checksum(), std::make_shared<PlanSet>(), {}};
  PlanSet& set = *out.set;
  auto spec = read_shape_spec(p.shapes(), p.padding(), p.overflow());
  if (!spec.ok() || spec->mode != ShapeSpec::kBuckets) return corrupt("section 'plans' names no sizes");
  set.spec = std::move(spec).value();
  auto ports = std::make_shared<Model>();
  REGIE_TRY(from_wire(file.of(SectionKind::kModel), {}, ports.get()));
  const std::span<const std::byte> graph = file.of(SectionKind::kGraph);
  ports->portable_graph = {{reinterpret_cast<const char*>(graph.data()), graph.size()}, owner};
  ports->weight_bytes = file.of(SectionKind::kWeights);
  ports->weight_owner = owner;
  set.ports = std::move(ports);
  for (const auto& a : p.axes())
    set.axes.push_back({a.symbol(), a.label(), {a.sizes().begin(), a.sizes().end()}});
  for (const auto& plan : p.plans()) {
    REGIE_ASSIGN(std::shared_ptr<Model> m, get_plan(plan, file, owner));
    out.models.push_back(m);
    set.plans.push_back(std::move(m));
  }
  if (p.has_dynamic()) {
    REGIE_ASSIGN(std::shared_ptr<Model> m, get_plan(p.dynamic(), file, owner));
    out.models.push_back(m);
    set.dynamic = std::move(m);
  }
  if ((set.dynamic != nullptr) != (set.spec.overflow == ShapeSpec::kRunDynamic))
    return corrupt("section 'plans' lacks the dynamic plan, or has one that nobody asked for");
  REGIE_TRY(check_plan_set(set, REGIE_CORRUPT));
  return out;
}

}  // namespace

Status save_plan_set(const PlanSet& set, const std::string& path) {
  if (set.ports->weight_check) REGIE_TRY(set.ports->weight_check->wait_for_all());
  Weights weights;
  std::string kernels;
  wire::PlanSetProto p;
  p.set_shapes(to_text(set.spec));
  p.set_padding(to_text(set.spec.padding));
  p.set_overflow(to_text(set.spec.overflow));
  for (const PlanSet::Axis& a : set.axes) {
    auto* to = p.add_axes();
    to->set_symbol(a.symbol);
    to->set_label(a.label);
    for (int64_t s : a.sizes) to->add_sizes(s);
  }
  std::vector<FilePart> read;
  for (const auto& plan : set.plans) REGIE_TRY(put_plan(*plan, &weights, &kernels, p.add_plans(), &read));
  if (set.dynamic) REGIE_TRY(put_plan(*set.dynamic, &weights, &kernels, p.mutable_dynamic(), &read));
  const Model ports = ports_for_file(set, &weights);
  MappedParts parts;
  for (const FilePart& r : read) parts.push_back(weights.bytes().subspan(r.offset, r.size));
  sort_parts(&parts);
  p.set_read_checksum(checksum_of(parts));
  REGIE_ASSIGN(const WireModel wire, to_wire(ports));
  if (p.ByteSizeLong() > INT_MAX)
    return Status::error(REGIE_LIMIT, "the tasks of all plans take more than 2 GiB; list fewer sizes",
                         "--shapes");
  const std::string plans = p.SerializeAsString();
  auto section = [](SectionKind kind, uint32_t flags, std::string_view bytes) {
    return Section{static_cast<uint32_t>(kind), flags, std::as_bytes(std::span(bytes))};
  };
  const Section sections[] = {
      section(SectionKind::kModel, 0, wire.model),
      section(SectionKind::kGraph, kSectionOptional, ports.portable_graph),
      section(SectionKind::kPlans, 0, plans),
      section(SectionKind::kKernels, 0, kernels),
      {static_cast<uint32_t>(SectionKind::kWeights), 0, weights.bytes()},
  };
  return write_sections(sections, path, Sync::kYes);
}

Result<std::shared_ptr<const PlanSet>> load_plan_set(const std::string& path, WeightChecking weights) {
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  return load_plan_set(file, path, weights);
}

Result<std::shared_ptr<const PlanSet>> load_plan_set(const MappedFile& file, const std::string& path,
                                                     WeightChecking weights) {
  if (!names_section(file.bytes(), SectionKind::kPlans)) return std::shared_ptr<const PlanSet>();
  UncheckedWeights unchecked;
  REGIE_ASSIGN(const std::vector<Section> sections, read_sections(file.bytes(), path, &unchecked));
  Loaded loaded;
  for (const Section& s : sections) loaded.sections.emplace(s.kind, s.bytes);
  if (!loaded.sections.count(static_cast<uint32_t>(SectionKind::kPlans)))
    return std::shared_ptr<const PlanSet>();
  auto parts = read_set(loaded, file.owner());
  if (!parts.ok()) {
    Status s = std::move(parts).status();
    if (s.code() != REGIE_CORRUPT) s = corrupt(s.message());
    s.set_where(path);
    return std::move(s).while_doing("loading the model");
  }
  if (weights == WeightChecking::kAtOnce) {
    REGIE_TRY(check_weights(unchecked, path));
    return std::shared_ptr<const PlanSet>(parts->set);
  }
  for (const auto& m : parts->models)
    for (std::span<const std::byte> part : read_by_tasks(*m)) unchecked.read.push_back(part);
  sort_parts(&unchecked.read);
  unchecked.read_checksum = parts->read_checksum;
  const auto check = WeightCheck::begin(std::move(unchecked), file.owner(), path);
  for (const auto& m : parts->models) m->weight_check = check;
  return std::shared_ptr<const PlanSet>(parts->set);
}

Result<std::shared_ptr<const Model>> load_portable(const std::string& path) {
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  REGIE_ASSIGN(const std::shared_ptr<const PlanSet> set, load_plan_set(file, path));
  return set ? set->ports : load_model(file, path);
}

}  // namespace regie
