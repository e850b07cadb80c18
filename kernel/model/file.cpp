#include "model/file.h"

#include <algorithm>

#include "base/file.h"
#include "model/check.h"
#include "model/sections.h"
#include "model/wire.h"

namespace regie {

bool looks_like_model_file(std::span<const std::byte> head) {
  return head.size() >= kModelMagic.size() &&
         std::equal(kModelMagic.begin(), kModelMagic.end(), head.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

Status write_sections(std::span<const Section> sections, const std::string& path, Sync sync) {
  const Layout layout = lay_out(sections, kModelFormatVersion);
  return write_file_atomically(
      path,
      [&](const AppendBytes& append) -> Status {
        static constexpr char kZeros[kPageBytes] = {};
        REGIE_TRY(append(layout.head.data(), layout.head.size()));
        uint64_t at = layout.head.size();
        for (size_t i = 0; i < sections.size(); ++i) {
          if (layout.places[i].offset > at) REGIE_TRY(append(kZeros, layout.places[i].offset - at));
          if (!sections[i].bytes.empty())
            REGIE_TRY(append(sections[i].bytes.data(), sections[i].bytes.size()));
          at = layout.places[i].offset + layout.places[i].size;
        }
        return {};
      },
      sync);
}

Status save_model(const Model& model, const std::string& path, Sync sync) {
  if (model.weight_check) REGIE_TRY(model.weight_check->wait_for_all());
  REGIE_ASSIGN(const WireModel wire, to_wire(model, checksum_of(read_by_tasks(model))));
  const Section sections[] = {
      {static_cast<uint32_t>(SectionKind::kModel), 0, std::as_bytes(std::span(wire.model))},
      {static_cast<uint32_t>(SectionKind::kGraph), kSectionOptional,
       std::as_bytes(std::span(model.portable_graph))},
      {static_cast<uint32_t>(SectionKind::kLedger), kSectionOptional,
       std::as_bytes(std::span(model.ledger_json))},
      {static_cast<uint32_t>(SectionKind::kKernels), 0, std::as_bytes(std::span(wire.kernels))},
      {static_cast<uint32_t>(SectionKind::kWeights), 0, model.weight_bytes},
  };
  return write_sections(sections, path, sync);
}

namespace {

Result<std::shared_ptr<Model>> load(std::span<const std::byte> file, const std::shared_ptr<const void>& owner,
                                    const std::string& path, UncheckedWeights* weights) {
  REGIE_ASSIGN(const std::vector<Section> sections, read_sections(file, path, weights));
  const Section* found[6] = {};
  for (const Section& s : sections) {
    if (s.kind >= 1 && s.kind <= 5)
      found[s.kind] = &s;
    else if (s.kind == static_cast<uint32_t>(SectionKind::kPlans))
      return unsupported(
          "the file holds plans for several sizes, and one is expected here; compile without --shapes", path);
    else if (!(s.flags & kSectionOptional))
      return unsupported(
          "a section " + section_name(s.kind) +
              " is needed to run this model, and this program does not know it; use a newer Regie",
          path);
  }
  auto bytes = [&](SectionKind kind) {
    const Section* s = found[static_cast<size_t>(kind)];
    return s ? s->bytes : std::span<const std::byte>();
  };
  auto text = [&](SectionKind kind) {
    return ModelText({reinterpret_cast<const char*>(bytes(kind).data()), bytes(kind).size()}, owner);
  };
  for (SectionKind kind : {SectionKind::kModel, SectionKind::kKernels, SectionKind::kWeights})
    if (!found[static_cast<size_t>(kind)])
      return corrupt(
          "section " + section_name(static_cast<uint32_t>(kind)) + " is missing; compile the file again",
          path);

  auto model = std::make_shared<Model>();
  Status status = from_wire(bytes(SectionKind::kModel), bytes(SectionKind::kKernels), model.get());
  if (status.ok()) {
    model->portable_graph = text(SectionKind::kGraph);
    model->ledger_json = text(SectionKind::kLedger);
    model->weight_bytes = bytes(SectionKind::kWeights);
    model->weight_owner = owner;
    status = check_model_as(*model, REGIE_CORRUPT);
    model->checked = status.ok();
  }
  if (!status.ok()) {
    status.set_where(path);
    return std::move(status).while_doing("loading the model");
  }
  return model;
}

}  // namespace

std::vector<uint32_t> weights_read(const Model& model) {
  std::vector<bool> used(model.weights.size());
  const auto use = [&](const Arg& a) {
    if (a.kind == Arg::kWeight) used[a.index] = true;
  };
  for (const ModelProgram& p : model.programs)
    for (const ModelTask& t : p.tasks) {
      // Of an operand with a kernel's weight both: a shape function may look at the other.
      std::for_each(t.operands.begin(), t.operands.end(), use);
      for (uint32_t w : t.kernel_weights)
        if (w != REGIE_NONE) used[w] = true;
      for (const std::vector<Arg>& list : t.program_results) std::for_each(list.begin(), list.end(), use);
    }
  std::for_each(model.output_sources.begin(), model.output_sources.end(), use);
  for (const ModelPort& p : model.inputs)
    if (p.default_weight != REGIE_NONE) used[p.default_weight] = true;
  std::vector<uint32_t> list;
  for (uint32_t w = 0; w < used.size(); ++w)
    if (used[w]) list.push_back(w);
  return list;
}

MappedParts read_by_tasks(const Model& model) {
  MappedParts parts;
  for (uint32_t w : weights_read(model))
    parts.push_back(model.weight_bytes.subspan(model.weights[w].offset, model.weights[w].size));
  sort_parts(&parts);
  return parts;
}

void sort_parts(MappedParts* parts) {
  const auto key = [](std::span<const std::byte> s) { return std::pair(s.data(), s.size()); };
  std::sort(parts->begin(), parts->end(), [&](auto a, auto b) { return key(a) < key(b); });
  parts->erase(std::unique(parts->begin(), parts->end(), [&](auto a, auto b) { return key(a) == key(b); }),
               parts->end());
}

Result<std::shared_ptr<const Model>> load_model(const std::string& path, WeightChecking weights) {
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  return load_model(file, path, weights);
}

Result<std::shared_ptr<const Model>> load_model(const MappedFile& file, const std::string& path,
                                                WeightChecking weights) {
  UncheckedWeights unchecked;
  REGIE_ASSIGN(std::shared_ptr<Model> model, load(file.bytes(), file.owner(), path, &unchecked));
  if (weights == WeightChecking::kInBackground) {
    unchecked.read = read_by_tasks(*model);
    unchecked.read_checksum = model->read_checksum;
    model->weight_check = WeightCheck::begin(std::move(unchecked), file.owner(), path);
  } else {
    REGIE_TRY(check_weights(unchecked, path));
  }
  return std::shared_ptr<const Model>(std::move(model));
}

Result<std::shared_ptr<const Model>> load_model(std::span<const std::byte> file,
                                                const std::shared_ptr<const void>& owner,
                                                const std::string& path) {
  REGIE_ASSIGN(std::shared_ptr<Model> model, load(file, owner, path, nullptr));
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace regie
