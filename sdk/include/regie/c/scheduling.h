/* draft/regie.host.scheduling: what a scheduler may ask about tasks and tell about its decisions, while
 * `schedule` runs.
 *
 * Found by regie_host.find; all functions are for the problem that the calling thread has been given, and
 * only until `schedule` returns. */
#ifndef REGIE_C_SCHEDULING_H
#define REGIE_C_SCHEDULING_H

#include "regie/c/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_HOST_SCHEDULING_ID "draft/regie.host.scheduling"

typedef struct regie_host_scheduling {
  uint32_t struct_size;
  uint32_t reserved;
  /* 1: no task comes of it, as its results lie on the bytes of its operands. It is issued as any other, but
   * nobody waits for it: who reads its results waits for those that it is after. */
  uint32_t (*runs_nothing)(const regie_schedule_problem* problem, uint32_t task);
  /* A line for the ledger, about a task or, with REGIE_NONE, about all; `kind` is a word: "stream". */
  regie_status (*note)(const regie_schedule_problem* problem, uint32_t task, regie_str kind, regie_str text);
  /* How long a run of these tasks will take as they are issued, and with one stream a device; and how many
   * events there are at once at most, if one is used again as soon as that is safe. */
  regie_status (*predict)(const regie_schedule_problem* problem, double ns, double one_stream_ns,
                          uint32_t event_ids);
} regie_host_scheduling;

#ifdef __cplusplus
}
#endif
#endif
