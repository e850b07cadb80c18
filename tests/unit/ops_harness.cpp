#include "unit/ops_harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <deque>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/names.h"
#include "plugins/static_plugins.h"
#include "regie/c/entry.h"
#include "regie_test_paths.h"

namespace regie::ops_test {

namespace {

thread_local std::string failure;

regie_status keep_failure(regie_status code, regie_str message, regie_str) {
  failure.assign(message.data ? message.data : "", message.size);
  return code;
}

const regie_plugin_entry_t* open_plugin() {
  for (size_t i = 0; i < regie_static_plugin_count; ++i)
    if (std::string_view(regie_static_plugins[i].manifest_toml).find("\"ops-standard\"") !=
        std::string_view::npos)
      return static_cast<const regie_plugin_entry_t*>(regie_static_plugins[i].entry);
  void* library = dlopen(REGIE_TEST_PLUGIN_DIR "/ops-standard.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "ops-standard.so: %s\n", dlerror());
    std::abort();
  }
  return static_cast<const regie_plugin_entry_t*>(dlsym(library, "regie_plugin_entry"));
}

// Attributes as the interface has them, sorted by name.
struct AttrViews {
  explicit AttrViews(Attrs given) : attrs(std::move(given)) {
    std::sort(attrs.begin(), attrs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const AttrValue& a : attrs) {
      regie_attr v{};
      v.name = str(a.name);
      v.kind = a.kind;
      v.count = 1;
      switch (a.kind) {
        case REGIE_ATTR_INT:
          v.v.i = a.i;
          break;
        case REGIE_ATTR_FLOAT:
          v.v.f = a.f;
          break;
        case REGIE_ATTR_STRING:
          v.v.s = str(a.s);
          break;
        case REGIE_ATTR_INTS:
          v.v.ints = a.ints.data();
          v.count = static_cast<uint32_t>(a.ints.size());
          break;
        case REGIE_ATTR_FLOATS:
          v.v.floats = a.floats.data();
          v.count = static_cast<uint32_t>(a.floats.size());
          break;
        case REGIE_ATTR_STRINGS:
          lists.emplace_back();
          for (const std::string& text : a.strings) lists.back().push_back(str(text));
          v.v.strs = lists.back().data();
          v.count = static_cast<uint32_t>(a.strings.size());
          break;
        case REGIE_ATTR_TENSOR:
          v.v.tensor = &a.tensor.view();
          break;
        default:
          std::abort();
      }
      views.push_back(v);
    }
  }
  Attrs attrs;
  std::vector<regie_attr> views;
  std::deque<std::vector<regie_str>> lists;
};

regie_type type_of(regie_elem elem, const std::vector<regie_dim>& dims) {
  return {elem,        REGIE_TENSOR,    static_cast<int32_t>(dims.size()),
          dims.data(), REGIE_FORMAT_ND, REGIE_FORMAT_ND};
}

regie_status set_result(const regie_shape_request* self, uint32_t i, const regie_type* type) {
  auto& inferred = *static_cast<Inferred*>(self->sink);
  if (i >= inferred.results.size() || inferred.results[i].set) std::abort();
  Result& r = inferred.results[i];
  r.set = true;
  r.elem = type->elem;
  r.dims.assign(type->dims, type->dims + type->rank);
  return REGIE_OK;
}

regie_status set_content(const regie_shape_request* self, uint32_t i, const regie_dim* content,
                         uint32_t count) {
  auto& inferred = *static_cast<Inferred*>(self->sink);
  if (i >= inferred.results.size()) std::abort();
  inferred.results[i].content.emplace(content, content + count);
  return REGIE_OK;
}

// Exactly `bytes` bytes, aligned to 64, filled with a pattern that is no plausible answer.
struct Block {
  explicit Block(uint64_t bytes) : size(bytes) {
    data = nullptr;
    if (bytes != 0 && posix_memalign(&data, 64, bytes) != 0) std::abort();
    if (bytes != 0) std::memset(data, 0xa5, bytes);
  }
  Block(Block&& other) noexcept : size(other.size), data(std::exchange(other.data, nullptr)) {}
  ~Block() { std::free(data); }
  uint64_t size;
  void* data;
};

}  // namespace

const regie_host* test_host() {
  static const regie_host host = {
      sizeof(regie_host),
      0,
      [](const char*) -> const void* { return nullptr; },
      keep_failure,
      [](regie_log_level, regie_str, regie_str) {},
      [](regie_dim_table* t, uint32_t op, regie_dim a, regie_dim b) {
        return DimTable::from(t).op(op, a, b);
      },
      [](regie_dim_table* t, regie_str name, int64_t lower, int64_t upper, uint32_t flags) {
        return DimTable::from(t).symbol(view(name), lower, upper, flags != 0);
      },
      [](regie_dim_table* t, regie_dim d, int64_t* lower, int64_t* upper) {
        std::tie(*lower, *upper) = DimTable::from(t).range(d);
      },
      [](regie_dim_table* t, regie_dim d, char* buffer, size_t size) {
        std::string text = DimTable::from(t).print(d);
        if (size > 0) std::snprintf(buffer, size, "%s", text.c_str());
        return text.size();
      },
  };
  return &host;
}

std::string last_failure() { return failure; }

const Plugin& Plugin::get() {
  static const Plugin plugin = [] {
    Plugin p;
    const regie_plugin_entry_t* entry = open_plugin();
    p.shapes = static_cast<const regie_op_shape_table*>(entry->find(REGIE_OP_SHAPE_ID));
    p.kernels = static_cast<const regie_op_kernel_table*>(entry->find(REGIE_OP_KERNEL_ID));
    for (uint32_t i = 0; i < p.shapes->count; ++i) p.shape_index[std::string(view(p.shapes->ops[i]))] = i;
    for (uint32_t i = 0; i < p.kernels->count; ++i)
      p.kernel_index[std::string(view(p.kernels->ops[i].op))] = i;
    return p;
  }();
  return plugin;
}

Operand Operand::constant(Tensor tensor) {
  std::vector<regie_dim> dims(tensor.dims().begin(), tensor.dims().end());
  regie_elem elem = tensor.elem();
  return {true, elem, std::move(dims), std::move(tensor), {}};
}
Operand Operand::numbers(std::vector<int64_t> values) {
  return constant(integers({static_cast<int64_t>(values.size())}, values));
}
Operand Operand::with_content(std::vector<regie_dim> content) {
  return {true, REGIE_I64, {static_cast<regie_dim>(content.size())}, {}, std::move(content)};
}

Inferred infer(const std::string& op, const Attrs& attrs, const std::vector<Operand>& operands,
               uint32_t results, DimTable& dims, const std::vector<Region>& regions) {
  AttrViews views(attrs);
  std::vector<regie_operand_info> infos;
  for (const Operand& o : operands) {
    regie_operand_info info{};
    if (o.present) {
      info.present = 1;
      info.type = type_of(o.elem, o.dims);
      info.data = o.data ? &o.data.view() : nullptr;
      if (o.content) {
        info.content = o.content->data();
        info.content_count = static_cast<uint32_t>(o.content->size());
      }
    }
    infos.push_back(info);
  }
  std::vector<std::vector<regie_type>> region_types;
  std::vector<regie_region_info> region_infos;
  for (const Region& r : regions)
    for (const auto* list : {&r.args, &r.results}) {
      region_types.emplace_back();
      for (const Operand& o : *list) region_types.back().push_back(type_of(o.elem, o.dims));
    }
  for (size_t i = 0; i < regions.size(); ++i)
    region_infos.push_back({static_cast<uint32_t>(regions[i].args.size()),
                            static_cast<uint32_t>(regions[i].results.size()), region_types[2 * i].data(),
                            region_types[2 * i + 1].data()});

  Inferred inferred;
  inferred.results.resize(results);
  regie_shape_request request{};
  request.struct_size = sizeof(request);
  request.attr_count = static_cast<uint32_t>(views.views.size());
  request.operand_count = static_cast<uint32_t>(infos.size());
  request.result_count = results;
  request.region_count = static_cast<uint32_t>(region_infos.size());
  request.op = str(op);
  request.attrs = views.views.data();
  request.operands = infos.data();
  request.regions = region_infos.data();
  request.dims = dims.handle();
  request.set_result = set_result;
  request.set_content = set_content;
  request.sink = &inferred;
  const Plugin& plugin = Plugin::get();
  auto it = plugin.shape_index.find(op);
  if (it == plugin.shape_index.end()) std::abort();
  inferred.code = plugin.shapes->infer(it->second, test_host(), &request);
  if (!inferred.ok()) inferred.message = last_failure();
  return inferred;
}

Ran run(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& operands,
        const std::vector<Result>& types, const RunOptions& options) {
  Ran ran;
  const Plugin& plugin = Plugin::get();
  auto it = plugin.kernel_index.find(op);
  if (it == plugin.kernel_index.end()) std::abort();
  AttrViews views(attrs);

  std::vector<Block> blocks;
  std::vector<regie_tensor> inputs(operands.size()), outputs(types.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    blocks.emplace_back(operands[i].bytes());
    if (operands[i].bytes() != 0) std::memcpy(blocks.back().data, operands[i].data(), operands[i].bytes());
    inputs[i] = operands[i].view();
    inputs[i].data = blocks.back().data;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (i < options.omitted.size() && options.omitted[i]) continue;
    outputs[i].elem = types[i].elem;
    outputs[i].rank = static_cast<int32_t>(types[i].dims.size());
    outputs[i].dims = types[i].dims.data();
    outputs[i].bytes = elem_bytes(types[i].elem, static_cast<uint64_t>(element_count(types[i].dims)));
    if (i == 0 && options.in_place) {
      outputs[i].data = inputs[*options.in_place].data;
    } else {
      blocks.emplace_back(outputs[i].bytes);
      outputs[i].data = blocks.back().data;
    }
  }

  // prepare sees the data of constants only.
  std::vector<regie_tensor> known = inputs, promised = outputs;
  for (size_t i = 0; i < known.size(); ++i)
    if (i >= options.constant.size() || !options.constant[i]) known[i].data = nullptr;
  for (regie_tensor& t : promised) t.data = nullptr;
  regie_op_request request{};
  request.struct_size = sizeof(request);
  request.attr_count = static_cast<uint32_t>(views.views.size());
  request.operand_count = static_cast<uint32_t>(known.size());
  request.result_count = static_cast<uint32_t>(promised.size());
  request.op = str(op);
  request.attrs = views.views.data();
  request.operands = known.data();
  request.results = promised.data();
  regie_op_state* state = nullptr;
  uint64_t scratch_bytes = 0;
  ran.code = plugin.kernels->prepare(it->second, test_host(), &request, &state, &scratch_bytes);
  if (ran.ok()) {
    Block scratch(scratch_bytes);
    regie_op_call call{};
    call.struct_size = sizeof(call);
    call.operands = inputs.data();
    call.results = outputs.data();
    call.scratch = scratch.data;
    if (options.counter) options.counter->start();
    ran.code = plugin.kernels->run(state, test_host(), &call);
    if (options.counter) options.counter->stop();
    plugin.kernels->release(state);
  }
  if (!ran.ok()) {
    ran.message = last_failure();
    return ran;
  }
  for (const regie_tensor& t : outputs) {
    ran.results.push_back(t.elem == REGIE_ELEM_UNKNOWN ? Tensor() : Tensor::copy(t));
  }
  return ran;
}

Ran evaluate(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& operands,
             uint32_t results) {
  DimTable dims;
  std::vector<Operand> infos;
  for (const Tensor& t : operands) infos.push_back(t ? Operand::constant(t) : Operand::absent());
  Inferred inferred = infer(op, attrs, infos, results, dims);
  if (!inferred.ok()) {
    Ran ran;
    static_cast<Failed&>(ran) = inferred;
    return ran;
  }
  RunOptions options;
  options.constant.assign(operands.size(), true);
  return run(op, attrs, operands, inferred.results, options);
}

}  // namespace regie::ops_test
