/* draft/regie.scheduler: order of the tasks, their streams, and the events between streams. */
#ifndef REGIE_C_SCHEDULER_H
#define REGIE_C_SCHEDULER_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_SCHEDULER_ID "draft/regie.scheduler"

typedef struct regie_schedule_task {
  uint32_t node;   /* id in the graph */
  uint32_t device; /* index of the device that runs it */
  uint32_t after_count;
  uint32_t reserved;
  const uint32_t* after; /* tasks (indices) that must have ended before it starts */
  double cost_ns;
} regie_schedule_task;

typedef struct regie_schedule_device {
  regie_str name;
  uint32_t max_streams;
  uint32_t max_events;
} regie_schedule_device;

/* The tasks of one region, in a valid order. */
typedef struct regie_schedule_problem {
  uint32_t struct_size;
  uint32_t task_count, device_count;
  uint32_t reserved;
  const regie_graph* graph;
  const regie_schedule_task* tasks;
  const regie_schedule_device* devices;
  /* Once a task, in the order in which the host shall issue them. Streams count from 0 on each device. */
  regie_status (*issue)(const struct regie_schedule_problem* self, uint32_t task, uint32_t stream);
  /* `to` waits for `from`: tasks on different streams or devices. */
  regie_status (*event)(const struct regie_schedule_problem* self, uint32_t from, uint32_t to,
                        regie_str reason);
  void* state;
} regie_schedule_problem;

typedef struct regie_scheduler_table {
  regie_table_head head; /* REGIE_DIGEST_SCHEDULER */
  uint32_t count;
  uint32_t reserved;
  const regie_pass_info* schedulers;
  regie_status (*schedule)(uint32_t index, const regie_host* host, const regie_config* options,
                           const regie_schedule_problem* problem);
} regie_scheduler_table;

#ifdef __cplusplus
}
#endif
#endif
