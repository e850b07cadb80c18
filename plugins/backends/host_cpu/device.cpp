// The run-time half: the computer's memory as one space, and streams that compute on the calling thread
// before they return or, where the model lays tasks on several, on a thread each. With a launch goes the
// width of its parallel regions, which libgomp opens on threads of its own.

#include "regie/c/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "direct_convolution.h"
#include "executable.h"
#include "kernel_blob.h"
#include "pointwise_run.h"
#include "pooling.h"
#include "regie/timeline.hpp"
#include "regie_digests.h"
#include "settings.h"
#include "small_kernels.h"
#include "tables.h"
#include "worker.h"

using regie::sdk::Failure;
using namespace host_cpu;

struct regie_device {
  regie_device(const regie_host* h, const regie_config* params);
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  Settings settings;
  Engine dnnl;
  SharedPrimitives primitives;
  std::vector<regie_str> capabilities;
  regie_device_description description{};
  std::atomic<uint64_t> repacked{0};

  void log(uint32_t level, const std::string& text) const {
    host->log(level, regie::sdk::lit("host_cpu"), regie::sdk::str(text));
  }
  void log_reference(const regie::sdk::OpBlob& op, const std::string& reason) const {
    log(REGIE_LOG_INFO, op.op() + " runs by its reference kernel at these shapes: " + reason);
  }
};

struct regie_fence {
  regie_device* device;
  regie::sdk::Timeline timeline;
};

struct regie_loaded_kernel {
  regie_device* device;
  std::variant<regie::sdk::OpBlob, NativeBlob, DnnlBlob, PointwiseProgram> content;
  RepackedWeights repacked{};
};

struct regie_executable {
  struct Nothing {};  // every result is empty
  uint32_t threads;
  // Launches set addresses in it (executable.h).
  mutable std::variant<Nothing, ReferenceRun, NativeRun, DnnlRun, std::unique_ptr<PointwiseRun>> run;
};

struct regie_stream {
  regie_device* device;
  Stream dnnl;
  regie_status code = REGIE_OK;  // the first failure; it stays
  std::string words;
  std::mutex mutex;  // of the failure
  std::unique_ptr<Worker>
      worker;  // NULL: work is done before the call returns; last, as it uses all of the above

  regie_status fail(regie_status c, std::string w) {
    {
      std::lock_guard lock(mutex);
      if (code == REGIE_OK) {
        code = c;
        words = std::move(w);
      }
    }
    return state();
  }
  regie_status state() {
    std::lock_guard lock(mutex);
    return code == REGIE_OK ? REGIE_OK : regie::sdk::fail(device->host, code, words);
  }
  bool failed() {
    std::lock_guard lock(mutex);
    return code != REGIE_OK;
  }
  // Now, or when the thread gets there.
  template <class F>
  regie_status run(F&& work) {
    if (!worker) return work();
    return regie::sdk::guard(device->host, [&] { worker->enqueue([f = std::forward<F>(work)] { f(); }); });
  }
};

namespace {

constexpr regie_space_info kSpaces[] = {{regie::sdk::lit("host"), 1, 64, 0}};
constexpr regie_str kFormats[] = {regie::sdk::lit(kDnnlFormat), regie::sdk::lit(kNativeFormat),
                                  regie::sdk::lit(kPointwiseFormat), regie::sdk::lit(kReferenceFormat)};

std::vector<regie_str> list_capabilities() {
  std::vector<regie_str> list;
#define REGIE_CPU(feature, name) \
  if (__builtin_cpu_supports(feature)) list.push_back(regie::sdk::lit(name))
  REGIE_CPU("sse4.1", "sse41");
  REGIE_CPU("avx2", "avx2");
  REGIE_CPU("fma", "fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) list.push_back(regie::sdk::lit("avx512_core"));
  REGIE_CPU("avx512vnni", "avx512_core_vnni");
#undef REGIE_CPU
  return list;
}

uint64_t clock_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_device** device) {
  return regie::sdk::guard(host, [&] { *device = new regie_device(host, params); });
}
void destroy(regie_device* device) {
  if (!device) return;
  if (uint64_t n = device->repacked; n > 0)
    device->log(REGIE_LOG_INFO,
                std::to_string(n) + " packed weights were packed again, as oneDNN wanted another layout");
  delete device;
}
const regie_device_description* describe_device(regie_device* device) { return &device->description; }

// Large ones lie on large pages where the system has them: there are fewer faults, and later runs miss fewer
// translations.
Bytes make_arena(uint64_t bytes) {
  constexpr uint64_t kLarge = uint64_t{2} << 20;
  if (bytes < kLarge) return make_bytes(bytes);
  if (bytes % kLarge > kLarge / 4 * 3) bytes = (bytes + kLarge - 1) / kLarge * kLarge;
  void* p = nullptr;
  // Not aligned_alloc, which would have the size rounded up to large pages, too.
  if (::posix_memalign(&p, kLarge, bytes) != 0) return Bytes();
  ::madvise(p, bytes / kLarge * kLarge, MADV_HUGEPAGE);  // advice: nothing is lost if it is not taken
  return Bytes(p);
}

regie_status allocate(regie_device* device, uint32_t space, uint64_t bytes, void** address) {
  return regie::sdk::guard(device->host, [&] {
    if (space != 0)
      throw Failure(REGIE_INVALID_INPUT, "host_cpu has one memory space, not " + std::to_string(space));
    // More than there is would be granted by an overcommitting system, and end the process when it is used.
    const auto physical =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    *address = bytes > physical ? nullptr : make_arena(bytes).release();
    if (!*address)
      throw Failure(REGIE_OUT_OF_MEMORY, "host_cpu: " + std::to_string(bytes) +
                                             " bytes asked for; this computer has " +
                                             std::to_string(physical));
  });
}
void release(regie_device*, uint32_t, void* address) { std::free(address); }

regie_status stream_create(regie_device* device, regie_stream** stream) {
  return regie::sdk::guard(device->host, [&] {
    *stream = new regie_stream{device, make_stream(device->dnnl.get()), REGIE_OK, {}, {}, nullptr};
    if (device->settings.streams > 1) (*stream)->worker = std::make_unique<Worker>();
  });
}
void stream_destroy(regie_stream* stream) { delete stream; }
regie_status stream_wait(regie_stream* stream, uint64_t timeout_ns) {
  if (stream->worker && !stream->worker->wait(timeout_ns))
    return regie::sdk::fail(
        stream->device->host, REGIE_TIMEOUT,
        "a stream of host_cpu is at work after " + std::to_string(timeout_ns / 1'000'000) + " ms");
  return stream->state();
}

regie_status kernel_load(regie_device* device, const regie_kernel_image* image,
                         regie_loaded_kernel** kernel) {
  return regie::sdk::guard(device->host, [&] {
    const std::string_view format = regie::sdk::sv(image->format);
    if (format == kDnnlFormat) {
      *kernel = new regie_loaded_kernel{device, read_dnnl_blob(image->blob, image->blob_size)};
    } else if (format == kNativeFormat) {
      *kernel = new regie_loaded_kernel{device, read_native_blob(image->blob, image->blob_size)};
    } else if (format == kReferenceFormat) {
      regie::sdk::BlobReader in(image->blob, image->blob_size, "kernel of format host_cpu.reference/1");
      regie::sdk::OpBlob op = regie::sdk::read_op(in);
      in.finish();
      *kernel = new regie_loaded_kernel{device, std::move(op)};
    } else if (format == kPointwiseFormat) {
      *kernel = new regie_loaded_kernel{device, read_pointwise(image->blob, image->blob_size)};
    } else {
      throw Failure(REGIE_UNSUPPORTED, "host_cpu runs kernels of the formats " + std::string(kDnnlFormat) +
                                           ", " + kNativeFormat + ", " + kPointwiseFormat + " and " +
                                           kReferenceFormat + ", not '" + std::string(format) + "'");
    }
  });
}
void kernel_release(regie_loaded_kernel* kernel) { delete kernel; }

void check_tensors(const DnnlBlob& blob, const PrepareRequest& r) {
  auto fits = [](const std::vector<TensorNote>& notes, const regie_tensor* tensors, uint32_t count) {
    if (notes.size() != count) return false;
    for (uint32_t i = 0; i < count; ++i)
      if (notes[i].elem != tensors[i].elem) return false;
    return true;
  };
  if (!fits(blob.operands, r.operands, r.operand_count) || !fits(blob.results, r.results, r.result_count))
    throw Failure(REGIE_INVALID_INPUT, "kernel for " + blob.op.op() +
                                           ": operands and results are not of the types that it "
                                           "was compiled for");
}

regie_executable* prepare_dnnl(regie_loaded_kernel& kernel, const DnnlBlob& blob, const PrepareRequest& r,
                               uint32_t threads) {
  regie_device& device = *kernel.device;
  check_tensors(blob, r);
  std::string reason = "a tensor has no element";
  if (std::none_of(r.operands, r.operands + r.operand_count, is_empty)) {
    try {
      Operation op = describe_request(blob, r);
      if (NativePtr own = small_kernel(blob, op, r, threads))
        return new regie_executable{threads, NativeRun(std::move(own))};
      if (device.settings.convolutions == Convolutions::kAhead) {
        NativePtr own = op.kind == Operation::kPooling ? pooling(blob, op, threads)
                                                       : direct_convolution(blob, op, r, threads);
        if (own) return new regie_executable{threads, NativeRun(std::move(own))};
      }
      auto* made = new regie_executable{
          threads, DnnlRun(device.dnnl.get(), blob, std::move(op), r, device.primitives, kernel.repacked)};
      if (std::get<DnnlRun>(made->run).repacked()) {
        ++device.repacked;
        device.log(REGIE_LOG_DEBUG, "a weight of " + blob.op.op() + " was packed again for these shapes");
      }
      return made;
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
      reason = f.message;
    }
  }
  device.log_reference(blob.op, reason);
  Bytes plain = blob.packed_operand == REGIE_NONE ? Bytes() : unpack(device.dnnl.get(), blob, r);
  const Formats formats = blob.formats();
  return new regie_executable{
      threads, ReferenceRun(device.catcher, blob.op, r, blob.packed_operand, std::move(plain), &formats)};
}

regie_executable* prepare_native(regie_loaded_kernel& kernel, const NativeBlob& blob, const PrepareRequest& r,
                                 uint32_t threads) {
  regie_device& device = *kernel.device;
  try {
    return new regie_executable{threads, NativeRun(blob, r, threads)};
  } catch (const Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    device.log_reference(blob.op, f.message);
  }
  return new regie_executable{threads,
                              ReferenceRun(device.catcher, blob.op, r, REGIE_NONE, Bytes(), &blob.formats)};
}

struct ScratchOf {
  uint64_t operator()(const regie_executable::Nothing&) const { return 0; }
  uint64_t operator()(const std::unique_ptr<PointwiseRun>& run) const { return run->scratch_bytes(); }
  template <class Run>
  uint64_t operator()(const Run& run) const {
    return run.scratch_bytes();
  }
};

regie_status prepare(regie_loaded_kernel* kernel, const regie_tensor* operands, uint32_t operand_count,
                     const regie_tensor* results, uint32_t result_count, uint32_t threads,
                     regie_executable** executable, uint64_t* scratch_bytes) {
  return regie::sdk::guard(kernel->device->host, [&] {
    const PrepareRequest request{operands, operand_count, results, result_count};
    Width width(threads);
    const bool nothing =
        result_count > 0 && std::all_of(results, results + result_count, [](const regie_tensor& t) {
          return t.elem == REGIE_ELEM_UNKNOWN || is_empty(t);
        });
    const auto* dnnl = std::get_if<DnnlBlob>(&kernel->content);
    if (!nothing) {
      regie::sdk::check_bytes(operands, operand_count, "operand", dnnl ? dnnl->packed_operand : REGIE_NONE);
      regie::sdk::check_bytes(results, result_count, "result");
    }
    regie_executable* made = nullptr;
    if (nothing)
      made = new regie_executable{threads, regie_executable::Nothing{}};
    else if (dnnl)
      made = prepare_dnnl(*kernel, *dnnl, request, threads);
    else if (auto* program = std::get_if<PointwiseProgram>(&kernel->content))
      made = new regie_executable{
          threads, std::make_unique<PointwiseRun>(kernel->device->catcher, *program, request, threads)};
    else if (auto* native = std::get_if<NativeBlob>(&kernel->content))
      made = prepare_native(*kernel, *native, request, threads);
    else
      made = new regie_executable{
          threads,
          ReferenceRun(kernel->device->catcher, std::get<regie::sdk::OpBlob>(kernel->content), request)};
    *scratch_bytes = std::visit(ScratchOf{}, made->run);
    *executable = made;
  });
}
void executable_release(regie_executable* executable) { delete executable; }

struct Launcher {
  const regie_launch& launch;
  dnnl_stream_t stream;
  std::string* words;
  regie_status operator()(regie_executable::Nothing&) const { return REGIE_OK; }
  regie_status operator()(ReferenceRun& run) const { return run.run(launch, words); }
  regie_status operator()(NativeRun& run) const { return run.run(launch, words); }
  regie_status operator()(DnnlRun& run) const { return run.run(launch, stream, words); }
  regie_status operator()(std::unique_ptr<PointwiseRun>& run) const { return run->run(launch, words); }
};

regie_status run_launch(regie_stream* stream, const regie_executable* executable,
                        const regie_launch& request) {
  if (stream->failed()) return stream->state();
  if (request.begin_ns) *request.begin_ns = clock_ns();
  std::string words;
  regie_status code;
  {
    Width width(executable->threads);
    code = std::visit(Launcher{request, stream->dnnl.get(), &words}, executable->run);
  }
  // A task of a thread that failed has no end: so the host knows which one it was.
  if (request.end_ns && (code == REGIE_OK || !stream->worker)) *request.end_ns = clock_ns();
  if (code == REGIE_OK) return REGIE_OK;
  return stream->fail(code, "task " + std::to_string(request.task) + ": " + words);
}

regie_status launch(regie_stream* stream, const regie_executable* executable, const regie_launch* request) {
  if (!stream->worker) return run_launch(stream, executable, *request);
  return regie::sdk::guard(stream->device->host, [&] {
    stream->worker->enqueue([stream, executable, copy = std::make_shared<LaunchCopy>(*request)] {
      run_launch(stream, executable, copy->launch());
    });
  });
}

regie_status copy(regie_stream* stream, uint32_t, void* to, const void* from, uint64_t bytes) {
  return stream->run([=] {
    if (stream->failed()) return stream->state();
    if (bytes && to != from) std::memmove(to, from, bytes);
    return regie_status(REGIE_OK);
  });
}
regie_status call_host(regie_stream* stream, void (*function)(void*), void* context) {
  return stream->run([=] {
    if (stream->failed()) return stream->state();
    function(context);
    return regie_status(REGIE_OK);
  });
}

regie_status fence_create(regie_device* device, regie_fence** fence) {
  return regie::sdk::guard(device->host, [&] { *fence = new regie_fence{device, {}}; });
}
void fence_destroy(regie_fence* fence) { delete fence; }
regie_status fence_signal(regie_stream* stream, regie_fence* fence, uint64_t value) {
  return stream->run([=] {
    if (stream->failed()) {
      fence->timeline.fail(stream->words);
      return stream->state();
    }
    fence->timeline.signal(value);
    return regie_status(REGIE_OK);
  });
}
regie_status fence_wait(regie_stream* stream, regie_fence* fence, uint64_t value) {
  return stream->run([=] {
    if (stream->failed()) return stream->state();
    std::string words;
    const regie_status code = fence->timeline.wait(value, stream->device->settings.wait_timeout_ns, &words);
    return code == REGIE_OK ? regie_status(REGIE_OK) : stream->fail(code, std::move(words));
  });
}
regie_status host_wait(regie_fence* fence, uint64_t value, uint64_t timeout_ns) {
  std::string words;
  regie_status code = fence->timeline.wait(value, timeout_ns, &words);
  return code == REGIE_OK ? REGIE_OK : regie::sdk::fail(fence->device->host, code, words);
}

uint64_t now(regie_device*) { return clock_ns(); }

constexpr regie_device_info kDevices[] = {
    {regie::sdk::lit("host_cpu"), regie::sdk::lit("this computer's processor")}};

}  // namespace

regie_device::regie_device(const regie_host* h, const regie_config* params)
    : host(h),
      catcher(h),
      settings(read_settings(params)),
      dnnl(make_engine()),
      capabilities(list_capabilities()) {
  set_up_dnnl();
  description.struct_size = sizeof description;
  description.space_count = 1;
  description.spaces = kSpaces;
  description.format_count = std::size(kFormats);
  description.formats = kFormats;
  description.capability_count = static_cast<uint32_t>(capabilities.size());
  description.capabilities = capabilities.data();
  description.limits = {settings.streams > 1 ? settings.streams + 1 : 256, 65536, 65536,
                        settings.streams > 1 ? 0u : 1u, settings.wait_timeout_ns};
}

namespace host_cpu {
extern const regie_device_table device_table = {
    regie::sdk::head(sizeof(regie_device_table), REGIE_DIGEST_DEVICE),
    1,
    0,
    kDevices,
    create,
    destroy,
    describe_device,
    allocate,
    release,
    stream_create,
    stream_destroy,
    stream_wait,
    kernel_load,
    kernel_release,
    prepare,
    executable_release,
    launch,
    copy,
    call_host,
    fence_create,
    fence_destroy,
    fence_signal,
    fence_wait,
    host_wait,
    now};
}  // namespace host_cpu
