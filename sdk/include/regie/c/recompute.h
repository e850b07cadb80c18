/* draft/regie.host.recompute: what a scheduler may ask and decide about computing values again, while
 * `schedule` runs.
 *
 * A value that lies idle over the peak need not be kept if a task makes it again before it is read. Whether
 * that pays depends on the order, so who chooses the order chooses it. The host changes the graph and has it
 * scheduled anew; it keeps what it has if the plan is not smaller then. Found by regie_host.find; all
 * functions are for the problem that the calling thread has been given, and only until `schedule` returns. */
#ifndef REGIE_C_RECOMPUTE_H
#define REGIE_C_RECOMPUTE_H

#include "regie/c/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_HOST_RECOMPUTE_ID "draft/regie.host.recompute"

enum {
  REGIE_RECOMPUTE_NOT = 0,   /* not now */
  REGIE_RECOMPUTE_PAYS = 1,  /* where little time gives many bytes */
  REGIE_RECOMPUTE_LIMIT = 2, /* whatever brings the peak down to the limit, the cheapest */
};

typedef struct regie_host_recompute {
  uint32_t struct_size;
  uint32_t reserved;
  /* REGIE_RECOMPUTE_*; with REGIE_RECOMPUTE_LIMIT `bytes` is the peak of this region's bytes to come down to.
   */
  uint32_t (*wanted)(const regie_schedule_problem* problem, uint64_t* bytes);
  /* 1: the task's one result can be made again, with the same bits, by running it once more while its
   * operands are what they were. */
  uint32_t (*may_repeat)(const regie_schedule_problem* problem, uint32_t task);
  /* All tasks, in an order that is wanted. One that occurs again is computed again there: who reads its
   * result later reads what was made last. When the graph is scheduled anew, its program order is this one.
   * Called at most once. */
  regie_status (*repeat)(const regie_schedule_problem* problem, const uint32_t* steps, uint32_t count);
} regie_host_recompute;

#ifdef __cplusplus
}
#endif
#endif
