/* draft/regie.host.sharing: what a scheduler may ask and decide about bytes, while `schedule` runs.
 *
 * Which result may be written over an operand depends on the order: only the last reader may. So a scheduler
 * that chooses the order can choose that with it. Found by regie_host.find; all functions are for the problem
 * that the calling thread has been given, and only until `schedule` returns. */
#ifndef REGIE_C_SHARING_H
#define REGIE_C_SHARING_H

#include "regie/c/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_HOST_SHARING_ID "draft/regie.host.sharing"

typedef struct regie_host_sharing {
  uint32_t struct_size;
  uint32_t reserved;
  /* REGIE_ALIAS_* (pass.h): may the result lie on the bytes of the operand, says the engine of the task's
   * node? Its kernel works either way. */
  uint32_t (*alias_kind)(const regie_schedule_problem* problem, uint32_t task, uint32_t result,
                         uint32_t operand);
  /* Bytes that the task's kernel needs to work in; 0 if only the run tells. Compiles the kernels of the graph
   * when it is first asked. */
  regie_status (*scratch_bytes)(const regie_schedule_problem* problem, uint32_t task, uint64_t* bytes);
  /* Result `result` of `task`, which was issued last, is written over the bytes of value `over`, which must
   * own them. All that touch them, but for `task`, must have ended before it starts. */
  regie_status (*write_over)(const regie_schedule_problem* problem, uint32_t task, uint32_t result,
                             uint32_t over);
} regie_host_sharing;

#ifdef __cplusplus
}
#endif
#endif
