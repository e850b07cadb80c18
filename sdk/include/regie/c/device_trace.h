/* draft/regie.device_trace: what a device can tell of its work beyond when a launch began and ended: what
 * each task waited for, which of its engines worked on it, what the parts of an engine did meanwhile. For
 * profiles; a device need not have it.
 *
 * An entry belongs to the device of the same name in the same library; a stream is one of that device. All
 * times are of the device's own clock (`now` of device.h). */
#ifndef REGIE_C_DEVICE_TRACE_H
#define REGIE_C_DEVICE_TRACE_H

#include "regie/c/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_DEVICE_TRACE_ID "draft/regie.device_trace"

/* A part of the device that works on its own: an engine, a copy engine, a pipe of a core. */
typedef struct regie_trace_lane {
  regie_str name;
  uint32_t parent;    /* the lane of which it is a part; REGIE_NONE: none */
  uint32_t is_engine; /* 1: tasks occupy it as a whole, one at a time */
} regie_trace_lane;

/* A launch or a copy. Of the gap before it, `ready_ns` - `free_ns` is what the hardware needs between two
 * tasks; the rest up to `begin_ns` is the host's up to `issued_ns`, then the events' up to `event_ns`, then
 * the engine's, which was busy. */
typedef struct regie_trace_task {
  uint64_t tag; /* of the work, as the host gave it */
  uint64_t issue_ns,
      issued_ns;             /* the host handed it over; it was blocked while the stream's queue was full */
  uint64_t free_ns;          /* what was before it on its stream had ended; 0: nothing was */
  uint64_t ready_ns;         /* the stream could start another one */
  uint64_t event_ns;         /* the last event that it waited for had come; 0: it waited for none */
  uint64_t begin_ns, end_ns; /* dispatched; its completion was known */
  uint64_t run_ns, ran_ns;   /* the engine computed */
  uint32_t lane;             /* the engine; REGIE_NONE: none */
  uint32_t reserved;
  uint64_t bytes;     /* read and written, or copied */
  uint64_t far_bytes; /* of these, what came from or went to the memory behind the caches */
  double flops;       /* multiplications and additions that the operator takes; 0: not known */
  double least_ns;    /* that the device could take for these flops and far bytes at its full rates */
} regie_trace_task;

/* What a part of an engine did, within a task. */
typedef struct regie_trace_slice {
  uint64_t tag;
  uint32_t lane;
  uint32_t reserved;
  uint64_t begin_ns, end_ns;
  regie_str name;
} regie_trace_slice;

/* The host waited for a stream or one of its fences. */
typedef struct regie_trace_wait {
  uint64_t begin_ns, end_ns;
} regie_trace_wait;

/* The host computed something itself. */
typedef struct regie_trace_host {
  uint64_t tag;
  uint64_t begin_ns, end_ns;
} regie_trace_host;

/* Of one stream, in order. Lives until the next call for this stream. */
typedef struct regie_trace {
  uint32_t struct_size;
  uint32_t lane_count;
  const regie_trace_lane* lanes; /* of the device: the same for all of its streams */
  uint64_t task_count, slice_count, wait_count;
  const regie_trace_task* tasks;
  const regie_trace_slice* slices;
  const regie_trace_wait* waits;
  uint64_t host_count;
  const regie_trace_host* host; /* of the device, since any of its streams was first recorded */
} regie_trace;

typedef struct regie_device_trace_table {
  regie_table_head head; /* REGIE_DIGEST_DEVICE_TRACE */
  uint32_t count;
  uint32_t reserved;
  const regie_device_info* devices;
  /* From now on tells of this stream's tagged work, or no longer. Forgets what was recorded. */
  void (*record)(regie_stream* stream, uint32_t on);
  /* Of the next launch or copy on this stream. */
  void (*tag)(regie_stream* stream, uint64_t tag);
  /* What has ended since `record`; to be called when the stream has been waited for. */
  regie_status (*collect)(regie_stream* stream, regie_trace* trace);
  /* The host, which hands work over, was busy with other things for so long: what a device with a clock of
   * its own cannot see. `tag`: of that work; 0: none. */
  void (*host_spent)(regie_device* device, uint64_t ns, uint64_t tag);
} regie_device_trace_table;

#ifdef __cplusplus
}
#endif
#endif
