/* draft/regie.host.reuse: what a scheduler may ask about bytes that tasks of several streams could share,
 * while `schedule` runs.
 *
 * Two buffers share bytes only if all that touches the one has ended before anything touches the other. One
 * event more may make that so. What it costs the scheduler knows; what it saves the memory planner of the
 * pipeline knows, and this asks it. Found by regie_host.find; all functions are for the problem that the
 * calling thread has been given, and only until `schedule` returns. */
#ifndef REGIE_C_REUSE_H
#define REGIE_C_REUSE_H

#include "regie/c/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_HOST_REUSE_ID "draft/regie.host.reuse"

typedef struct regie_reuse_buffer {
  uint32_t value; /* that owns the bytes, or REGIE_NONE: the room that the kernel of touching[0] works in */
  uint32_t space; /* memory space */
  uint64_t size;  /* bytes that it takes of an arena */
  uint64_t alignment; /* of its place */
  uint32_t kept;      /* 1: whoever gets the graph's results reads it after all tasks */
  uint32_t touch_count;
  const uint32_t* touching; /* tasks, ascending */
} regie_reuse_buffer;

typedef struct regie_reuse_step {
  uint32_t task, stream;
} regie_reuse_step;

typedef struct regie_reuse_event {
  uint32_t from, to; /* tasks */
} regie_reuse_event;

/* A schedule that might be chosen. */
typedef struct regie_reuse_schedule {
  uint32_t struct_size;
  uint32_t event_count;
  const regie_reuse_step* steps; /* all tasks, as they would be issued */
  const regie_reuse_event* events;
  /* 0: little effort, to compare many; 1: with the effort of the plan that will be made. */
  uint32_t thorough;
  uint32_t reserved;
} regie_reuse_schedule;

typedef struct regie_host_reuse {
  uint32_t struct_size;
  uint32_t reserved;
  /* Bytes that the arenas of all memory spaces may take together; 0: any number. */
  uint64_t (*limit)(const regie_schedule_problem* problem);
  /* What will lie in arenas, whatever the schedule. None where lives are not told by pairs: with control flow
   * or symbolic sizes, or if nobody plans after this scheduler. Theirs until `schedule` returns. */
  regie_status (*buffers)(const regie_schedule_problem* problem, const regie_reuse_buffer** list,
                          uint32_t* count);
  /* The plan that would be made: bytes of all arenas together, and, if `offsets` is given, where each buffer
   * lies in its own. */
  regie_status (*plan)(const regie_schedule_problem* problem, const regie_reuse_schedule* schedule,
                       uint64_t* bytes, uint64_t* offsets);
  /* What the scheduler decided, for the ledger: events that are there for the sake of memory alone, bytes by
   * which all arenas together are smaller for them, and predicted time that they take. */
  regie_status (*chosen)(const regie_schedule_problem* problem, uint32_t events, uint64_t bytes, double ns);
} regie_host_reuse;

#ifdef __cplusplus
}
#endif
#endif
