/* draft/regie.memory: packs buffers with lifetimes into one arena. It sees numbers only. */
#ifndef REGIE_C_MEMORY_H
#define REGIE_C_MEMORY_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_MEMORY_ID "draft/regie.memory"
#define REGIE_OFFSET_FREE UINT64_MAX

typedef struct regie_memory_buffer {
  uint64_t lower, upper; /* live in [lower, upper), in steps of the schedule; lower < upper */
  uint64_t size;         /* bytes, at the reference shapes */
  uint64_t offset;       /* fixed place, or REGIE_OFFSET_FREE */
  uint64_t alignment;    /* power of two */
  uint32_t group;        /* not 0: buffers of one group lie at one offset, whatever their lifetimes */
  uint32_t reserved;
} regie_memory_buffer;

/* Two buffers that share no byte although their lifetimes are apart. */
typedef struct regie_memory_conflict {
  uint64_t first, second; /* indices of buffers */
} regie_memory_conflict;

typedef struct regie_memory_problem {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t buffer_count;
  const regie_memory_buffer* buffers;
  uint64_t capacity; /* bytes; UINT64_MAX: the less the better */
  /* Of a search, in nodes; 0: the planner's default. The answer is a function of the problem alone. */
  uint64_t node_budget;
  uint64_t conflict_count;
  const regie_memory_conflict* conflicts;
} regie_memory_problem;

typedef struct regie_memory_answer {
  uint64_t peak; /* max(offset + size) */
  /* No plan has a lower peak: the greatest sum of sizes live at one step, each but the topmost in whole units
   * of the least alignment, or more, if the planner has proven more. */
  uint64_t lower_bound;
  uint32_t proven_optimal;
  uint32_t proven_infeasible; /* with LIMIT: no plan of that capacity exists */
  uint64_t nodes;             /* of the search that were visited */
} regie_memory_answer;

typedef struct regie_memory_table {
  regie_table_head head; /* REGIE_DIGEST_MEMORY */
  uint32_t count;
  uint32_t reserved;
  const regie_pass_info* planners;
  /* Writes `buffer_count` offsets. LIMIT if the capacity is not met. */
  regie_status (*plan)(uint32_t index, const regie_host* host, const regie_config* options,
                       const regie_memory_problem* problem, uint64_t* offsets, regie_memory_answer* answer);
} regie_memory_table;

#ifdef __cplusplus
}
#endif
#endif
