/* draft/regie.device: run-time half of a backend: memory, streams, kernels, copies, fences, a clock.
 *
 * A device object may be used from several threads; a stream from one at a time. Work on a stream runs in the
 * order it was enqueued; enqueue returns at once unless the queue is full (a device with
 * `limits.inline_streams` runs the work before it returns). Errors stick to the stream: later work on it is
 * dropped and each wait gives the first error. */
#ifndef REGIE_C_DEVICE_H
#define REGIE_C_DEVICE_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_DEVICE_ID "draft/regie.device"

typedef struct regie_device regie_device;
typedef struct regie_stream regie_stream;
typedef struct regie_fence regie_fence; /* a timeline: a 64-bit value that only grows */
typedef struct regie_loaded_kernel regie_loaded_kernel;
typedef struct regie_executable regie_executable; /* a kernel made ready for concrete shapes and a width */

typedef struct regie_device_info {
  regie_str name;
  regie_str doc;
} regie_device_info;

typedef struct regie_space_info {
  regie_str name;
  uint32_t
      host_visible;   /* 1: addresses are ordinary pointers that the host may read and write between runs */
  uint32_t alignment; /* of every buffer, bytes, power of two */
  uint64_t capacity;  /* bytes; 0: not limited */
} regie_space_info;

typedef struct regie_device_limits {
  uint32_t streams, fences, queue_depth;
  uint32_t inline_streams;  /* 1: enqueue computes before it returns */
  uint64_t wait_timeout_ns; /* default of host_wait */
} regie_device_limits;

typedef struct regie_device_description {
  uint32_t struct_size;
  uint32_t space_count, format_count, capability_count;
  const regie_space_info* spaces;
  const regie_str* formats; /* kernel formats that it accepts */
  const regie_str* capabilities;
  regie_device_limits limits;
} regie_device_description;

typedef struct regie_kernel_image {
  uint32_t struct_size;
  uint32_t flags; /* REGIE_KERNEL_* of engine.h */
  regie_str format;
  const void* blob; /* stays mapped as long as the kernel is loaded */
  uint64_t blob_size;
} regie_kernel_image;

/* Operands and results of a launch: `data` holds device addresses; concrete shapes as in prepare. */
typedef struct regie_launch {
  uint32_t struct_size;
  uint32_t task; /* index of the task in the model, for error messages and profiles */
  const regie_tensor* operands;
  regie_tensor* results;
  uint32_t operand_count, result_count;
  void* scratch;
  uint64_t* begin_ns; /* NULL, or where to put the device's clock when the work began and ended */
  uint64_t* end_ns;
} regie_launch;

enum { REGIE_COPY_TO_DEVICE = 1, REGIE_COPY_FROM_DEVICE = 2, REGIE_COPY_INSIDE = 3 };

typedef struct regie_device_table {
  regie_table_head head; /* REGIE_DIGEST_DEVICE */
  uint32_t count;
  uint32_t reserved;
  const regie_device_info* devices;
  regie_status (*create)(uint32_t index, const regie_host* host, const regie_config* params,
                         regie_device** device);
  void (*destroy)(regie_device* device);
  /* Lives as long as the device. */
  const regie_device_description* (*describe)(regie_device* device);

  /* Any space: aligned to its alignment, contents undefined. OUT_OF_MEMORY says how much was asked for and is
   * left. */
  regie_status (*allocate)(regie_device* device, uint32_t space, uint64_t bytes, void** address);
  void (*release)(regie_device* device, uint32_t space, void* address);

  regie_status (*stream_create)(regie_device* device, regie_stream** stream);
  void (*stream_destroy)(regie_stream* stream); /* waits for what is enqueued */
  /* Waits until all that is enqueued has run; gives the sticky error. */
  regie_status (*stream_wait)(regie_stream* stream, uint64_t timeout_ns);

  /* Refuses formats not listed (UNSUPPORTED) and malformed blobs (CORRUPT). */
  regie_status (*kernel_load)(regie_device* device, const regie_kernel_image* image,
                              regie_loaded_kernel** kernel);
  void (*kernel_release)(regie_loaded_kernel* kernel);
  /* Makes the kernel ready for these shapes. `data` of operands that are constants or packed weights holds
   * their device address, and is NULL otherwise. Tells the scratch that a launch needs. */
  regie_status (*prepare)(regie_loaded_kernel* kernel, const regie_tensor* operands, uint32_t operand_count,
                          const regie_tensor* results, uint32_t result_count, uint32_t threads,
                          regie_executable** executable, uint64_t* scratch_bytes);
  void (*executable_release)(regie_executable* executable);
  /* The tensors, their dims and the launch are copied or used before the call returns. */
  regie_status (*launch)(regie_stream* stream, const regie_executable* executable,
                         const regie_launch* launch);

  /* `direction` says which side is host memory; the host side must stay valid until the copy has run. */
  regie_status (*copy)(regie_stream* stream, uint32_t direction, void* to, const void* from, uint64_t bytes);
  /* Calls `function(context)` on a thread of the device when the stream gets there. It must not call this
   * table. */
  regie_status (*call_host)(regie_stream* stream, void (*function)(void* context), void* context);

  regie_status (*fence_create)(regie_device* device, regie_fence** fence);
  void (*fence_destroy)(regie_fence* fence);
  regie_status (*fence_signal)(regie_stream* stream, regie_fence* fence, uint64_t value);
  /* Streams of the same device only; waits for other devices go through host_wait. */
  regie_status (*fence_wait)(regie_stream* stream, regie_fence* fence, uint64_t value);
  /* TIMEOUT after `timeout_ns`; DEVICE if the stream that was to signal it has failed. */
  regie_status (*host_wait)(regie_fence* fence, uint64_t value, uint64_t timeout_ns);

  uint64_t (*now)(regie_device* device); /* nanoseconds; of the simulation where there is one */
} regie_device_table;

#ifdef __cplusplus
}
#endif
#endif
