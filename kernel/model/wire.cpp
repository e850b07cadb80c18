#include "model/wire.h"

#include <algorithm>
#include <climits>
#include <map>
#include <string_view>

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "model.pb.h"
#include "model/file.h"
#include "model/sections.h"

namespace regie {

namespace {

void put(wire::ArgProto* to, const Arg& from) {
  to->set_kind(from.kind);
  to->set_index(from.index);
  to->set_offset(from.offset);
  to->set_type(from.type);
  to->set_constant(from.constant);
}

Status get(const wire::ArgProto& from, Arg* to) {
  if (from.kind() > Arg::kOutput)
    return corrupt("an argument has the unknown kind " + std::to_string(from.kind()));
  to->kind = static_cast<Arg::Kind>(from.kind());
  to->index = from.index();
  to->offset = from.offset();
  to->type = from.type();
  to->constant = from.constant();
  return {};
}

template <class List>
Status get_args(const List& from, std::vector<Arg>* to) {
  to->resize(static_cast<size_t>(from.size()));
  for (size_t i = 0; i < to->size(); ++i) REGIE_TRY(get(from[static_cast<int>(i)], &(*to)[i]));
  return {};
}

template <class From, class To>
void put_list(const From& from, To* to) {
  to->Reserve(static_cast<int>(from.size()));
  for (const auto& item : from) to->Add(item);
}

template <class From>
std::vector<std::string> get_strings(const From& from) {
  return {from.begin(), from.end()};
}

template <class From, class To>
void put_pairs(const From& from, To* to) {
  for (const auto& [key, value] : from) {
    auto* p = to->Add();
    p->set_key(key);
    p->set_value(value);
  }
}

template <class From>
std::vector<std::pair<std::string, std::string>> get_pairs(const From& from) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& p : from) pairs.emplace_back(p.key(), p.value());
  return pairs;
}

void put(wire::TaskProto* to, const ModelTask& from) {
  to->set_kind(static_cast<uint32_t>(from.kind));
  to->set_device(from.device);
  to->set_stream(from.stream);
  to->set_kernel(from.kernel);
  to->set_threads(from.threads);
  for (const Arg& a : from.operands) put(to->add_operands(), a);
  for (const Arg& a : from.results) put(to->add_results(), a);
  put_list(from.kernel_weights, to->mutable_kernel_weights());
  to->set_scratch(from.scratch);
  put_list(from.waits, to->mutable_waits());
  put_list(from.programs, to->mutable_programs());
  for (const std::vector<Arg>& list : from.program_results) {
    auto* args = to->add_program_results();
    for (const Arg& a : list) put(args->add_args(), a);
  }
  for (const Arg& a : from.program_arguments) put(to->add_program_arguments(), a);
  to->set_name(from.name);
  for (const std::string& o : from.origins) to->add_origins(o);
  to->set_step(from.step);
  to->set_op(from.op);
  if (!from.engine.empty()) to->set_engine(from.engine);
  to->set_predicted_ns(from.predicted_ns);
  to->set_shape_op(from.shape_op);
  for (const ModelDefine& d : from.defines) {
    auto* p = to->add_defines();
    p->set_symbol(d.symbol);
    p->set_result(d.result);
    p->set_axis(d.axis);
  }
}

// Fields of a message that nobody else reads.
std::string take(std::string* from) { return std::move(*from); }

Status get(wire::TaskProto& from, ModelTask* to) {
  const bool known = (from.kind() >= 1 && from.kind() <= static_cast<uint32_t>(TaskKind::kLoop)) ||
                     from.kind() == static_cast<uint32_t>(TaskKind::kDefine);
  if (!known) return corrupt("a task has the unknown kind " + std::to_string(from.kind()));
  to->kind = static_cast<TaskKind>(from.kind());
  to->device = from.device();
  to->stream = from.stream();
  to->kernel = from.kernel();
  to->threads = from.threads();
  REGIE_TRY(get_args(from.operands(), &to->operands));
  REGIE_TRY(get_args(from.results(), &to->results));
  to->kernel_weights.assign(from.kernel_weights().begin(), from.kernel_weights().end());
  to->scratch = from.scratch();
  to->waits.assign(from.waits().begin(), from.waits().end());
  to->programs.assign(from.programs().begin(), from.programs().end());
  for (const auto& list : from.program_results()) {
    to->program_results.emplace_back();
    REGIE_TRY(get_args(list.args(), &to->program_results.back()));
  }
  REGIE_TRY(get_args(from.program_arguments(), &to->program_arguments));
  to->name = take(from.mutable_name());
  to->origins = get_strings(from.origins());
  to->step = from.step();
  to->op = from.op();
  to->engine = from.engine();
  to->predicted_ns = from.predicted_ns();
  to->shape_op = take(from.mutable_shape_op());
  for (const auto& d : from.defines()) to->defines.push_back({d.symbol(), d.result(), d.axis()});
  return {};
}

void put_structure(wire::ModelProto* to, const Model& m) {
  for (const ModelSymbol& s : m.symbols) {
    auto* p = to->add_symbols();
    p->set_name(s.name);
    p->set_lower(s.lower);
    p->set_upper(s.upper);
    p->set_input(s.input);
    p->set_axis(s.axis);
    p->set_reference(s.reference);
  }
  for (const DimCode& e : m.expressions) put_list(e.words, to->add_expressions()->mutable_words());
  for (const ModelType& t : m.types) {
    auto* p = to->add_types();
    p->set_elem(t.elem);
    put_list(t.dims, p->mutable_dims());
  }
  for (const ModelDevice& d : m.devices) {
    auto* p = to->add_devices();
    p->set_name(d.name);
    p->set_plugin(d.plugin);
    put_pairs(d.params, p->mutable_params());
  }
  for (const ModelSpace& s : m.spaces) {
    auto* p = to->add_spaces();
    p->set_name(s.name);
    p->set_device(s.device);
    p->set_device_space(s.device_space);
    p->set_arena_bytes(s.arena_bytes);
    p->set_lower_bound(s.lower_bound);
  }
  for (const ModelBuffer& b : m.buffers) {
    auto* p = to->add_buffers();
    p->set_name(b.name);
    p->set_kind(static_cast<uint32_t>(b.kind));
    p->set_space(b.space);
    p->set_alignment(b.alignment);
    p->set_size(b.size);
    p->set_offset(b.offset);
    p->set_lower(b.lower);
    p->set_upper(b.upper);
    put_list(b.below, p->mutable_below());
  }
  put_list(m.placement_order, to->mutable_placement_order());
}

Status get_structure(wire::ModelProto& from, Model* m) {
  for (const auto& p : from.symbols())
    m->symbols.push_back({p.name(), p.lower(), p.upper(), p.input(), p.axis(), p.reference()});
  for (const auto& p : from.expressions()) m->expressions.push_back({{p.words().begin(), p.words().end()}});
  for (const auto& p : from.types()) {
    if (p.elem() > UINT16_MAX)
      return corrupt("a type has the unknown element type " + std::to_string(p.elem()));
    m->types.push_back({static_cast<regie_elem>(p.elem()), {p.dims().begin(), p.dims().end()}});
  }
  for (const auto& p : from.devices()) m->devices.push_back({p.name(), p.plugin(), get_pairs(p.params())});
  for (const auto& p : from.spaces())
    m->spaces.push_back({p.name(), p.device(), p.device_space(), p.arena_bytes(), p.lower_bound()});
  m->buffers.reserve(static_cast<size_t>(from.buffers_size()));
  for (auto& p : *from.mutable_buffers()) {
    if (p.kind() > static_cast<uint32_t>(BufferKind::kScratch))
      return corrupt("a buffer has the unknown kind " + std::to_string(p.kind()));
    ModelBuffer b;
    b.name = take(p.mutable_name());
    b.kind = static_cast<BufferKind>(p.kind());
    b.space = p.space();
    b.alignment = p.alignment();
    b.size = p.size();
    b.offset = p.offset();
    b.lower = p.lower();
    b.upper = p.upper();
    b.below.assign(p.below().begin(), p.below().end());
    m->buffers.push_back(std::move(b));
  }
  m->placement_order.assign(from.placement_order().begin(), from.placement_order().end());
  return {};
}

void put_kernels(wire::ModelProto* to, const Model& m, std::string* blobs) {
  std::map<std::string_view, uint64_t> places;
  for (const ModelKernel& k : m.kernels) {
    auto [place, is_new] = places.try_emplace(k.blob, 0);
    if (is_new) {
      blobs->resize((blobs->size() + 63) / 64 * 64);
      place->second = blobs->size();
      *blobs += k.blob;
    }
    auto* p = to->add_kernels();
    p->set_format(k.format);
    p->set_name(k.name);
    p->set_blob_offset(place->second);
    p->set_blob_size(k.blob.size());
    p->set_device(k.device);
    p->set_flags(k.flags);
    for (const std::string& r : k.requires_) p->add_capabilities(r);
  }
}

Status get_kernels(const wire::ModelProto& from, std::span<const std::byte> blobs, Model* m) {
  // Equal blobs are stored once; a hostile file must not make them grow without limit.
  uint64_t total = 0;
  m->kernels.reserve(static_cast<size_t>(from.kernels_size()));
  for (const auto& p : from.kernels()) {
    if (p.blob_offset() > blobs.size() || p.blob_size() > blobs.size() - p.blob_offset())
      return corrupt("kernel '" + p.name() + "' lies outside of section 'kernels'");
    total += p.blob_size();
    if (total > (uint64_t{1} << 32)) return corrupt("the kernels take more than 4 GiB");
    ModelKernel k;
    k.format = p.format();
    k.name = p.name();
    k.blob.assign(reinterpret_cast<const char*>(blobs.data()) + p.blob_offset(), p.blob_size());
    k.device = p.device();
    k.flags = p.flags();
    k.requires_ = get_strings(p.capabilities());
    m->kernels.push_back(std::move(k));
  }
  return {};
}

}  // namespace

Result<WireModel> to_wire(const Model& m, uint64_t read_checksum) {
  WireModel out;
  google::protobuf::Arena arena;  // a message for each task and argument: let go of at once
  wire::ModelProto& p = *google::protobuf::Arena::CreateMessage<wire::ModelProto>(&arena);
  p.set_name(m.name);
  p.set_producer(m.producer);
  p.set_target(m.target);
  p.set_pipeline(m.pipeline);
  p.set_source_digest(m.source_digest);
  for (const std::string& s : m.plugins) p.add_plugins(s);
  put_pairs(m.options, p.mutable_options());
  put_structure(&p, m);
  for (const ModelWeight& w : m.weights) {
    auto* to = p.add_weights();
    to->set_offset(w.offset);
    to->set_size(w.size);
    to->set_layout(w.layout);
    to->set_digest(w.digest);
  }
  if (read_checksum) p.set_read_checksum(read_checksum);
  put_kernels(&p, m, &out.kernels);
  for (const ModelProgram& program : m.programs) {
    auto* to = p.add_programs();
    for (const ModelTask& task : program.tasks) put(to->add_tasks(), task);
  }
  for (const ModelPort& port : m.inputs) {
    auto* to = p.add_inputs();
    to->set_name(port.name);
    to->set_type(port.type);
    if (port.default_weight == REGIE_NONE) continue;
    to->mutable_default_value()->set_weight(port.default_weight);
    to->mutable_default_value()->set_type(port.default_type);
  }
  for (const ModelPort& port : m.outputs) {
    auto* to = p.add_outputs();
    to->set_name(port.name);
    to->set_type(port.type);
    if (port.shape != REGIE_NONE) to->mutable_shape()->set_output(port.shape);
  }
  for (const Arg& a : m.output_sources) put(p.add_output_sources(), a);
  for (const auto& [digest, weight] : m.portable_constants) {
    auto* to = p.add_portable_constants();
    to->set_digest(digest);
    to->set_weight(weight);
  }
  if (p.ByteSizeLong() > INT_MAX)
    return Status::error(REGIE_LIMIT,
                         "the tasks of the model take more than 2 GiB in a model file; split the model");
  if (!p.SerializeToString(&out.model)) return internal_error("the tasks of the model could not be written");
  return out;
}

Status from_wire(std::span<const std::byte> bytes, std::span<const std::byte> kernels, Model* m) {
  google::protobuf::ArenaOptions blocks;  // few and large
  blocks.start_block_size = 64 << 10;
  blocks.max_block_size = 1 << 20;
  google::protobuf::Arena arena(blocks);
  wire::ModelProto& p = *google::protobuf::Arena::CreateMessage<wire::ModelProto>(&arena);
  if (bytes.size() > INT_MAX || !p.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return corrupt("section 'model' cannot be read");
  m->name = p.name();
  m->producer = p.producer();
  m->target = p.target();
  m->pipeline = p.pipeline();
  m->source_digest = p.source_digest();
  m->plugins = get_strings(p.plugins());
  m->options = get_pairs(p.options());
  REGIE_TRY(get_structure(p, m));
  m->weights.reserve(static_cast<size_t>(p.weights_size()));
  for (auto& w : *p.mutable_weights())
    m->weights.push_back({w.offset(), w.size(), take(w.mutable_layout()), take(w.mutable_digest())});
  m->read_checksum = p.read_checksum();
  REGIE_TRY(get_kernels(p, kernels, m));
  for (auto& program : *p.mutable_programs()) {
    m->programs.emplace_back();
    m->programs.back().tasks.resize(static_cast<size_t>(program.tasks_size()));
    for (int t = 0; t < program.tasks_size(); ++t)
      REGIE_TRY(get(*program.mutable_tasks(t), &m->programs.back().tasks[static_cast<size_t>(t)]));
  }
  for (const auto& port : p.inputs()) {
    m->inputs.push_back({port.name(), port.type()});
    if (!port.has_default_value()) continue;
    m->inputs.back().default_weight = port.default_value().weight();
    m->inputs.back().default_type = port.default_value().type();
  }
  for (const auto& port : p.outputs()) {
    m->outputs.push_back({port.name(), port.type()});
    if (port.has_shape()) m->outputs.back().shape = port.shape().output();
  }
  REGIE_TRY(get_args(p.output_sources(), &m->output_sources));
  for (const auto& c : p.portable_constants()) m->portable_constants[c.digest()] = c.weight();
  return {};
}

std::vector<std::string> device_plugins(std::span<const std::byte> file) {
  constexpr size_t kMost = 16;  // a damaged file may name any number
  using google::protobuf::internal::WireFormatLite;
  const std::span<const std::byte> bytes = glance_at_section(file, SectionKind::kModel);
  std::vector<std::string> plugins;
  if (bytes.size() > INT_MAX) return plugins;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  const uint32_t devices = WireFormatLite::MakeTag(wire::ModelProto::kDevicesFieldNumber,
                                                   WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  while (const uint32_t tag = in.ReadTag()) {
    if (plugins.size() == kMost) break;
    if (tag != devices) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    std::string text;
    wire::DeviceProto device;
    if (!WireFormatLite::ReadBytes(&in, &text) || !device.ParseFromString(text)) break;
    if (std::find(plugins.begin(), plugins.end(), device.plugin()) == plugins.end())
      plugins.push_back(device.plugin());
  }
  return plugins;
}

}  // namespace regie
