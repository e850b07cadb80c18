/* draft/regie.placer: decides which engine computes which node. */
#ifndef REGIE_C_PLACER_H
#define REGIE_C_PLACER_H

#include "regie/c/engine.h"
#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_PLACER_ID "draft/regie.placer"

typedef struct regie_placement_node {
  uint32_t node;          /* id in the graph */
  uint32_t forced_engine; /* by the user, or because regions run on the host; REGIE_NONE: free */
  const regie_answer*
      answers; /* one an engine, in the order of regie_graph.engines (which is the priority) */
} regie_placement_node;

typedef struct regie_placement_problem {
  uint32_t struct_size;
  uint32_t node_count;
  const regie_graph* graph;
  const regie_placement_node* nodes; /* program order, all regions */
  /* Nanoseconds to move `bytes` from memory space `from` to `to`. */
  double (*transfer_ns)(const struct regie_placement_problem* self, uint32_t from, uint32_t to,
                        uint64_t bytes);
  /* To be called once a node. */
  regie_status (*assign)(const struct regie_placement_problem* self, uint32_t index, uint32_t engine,
                         regie_str reason);
  void* state;
  /* Nanoseconds that a node on engine `to` waits for a value of a node on engine `from` beyond the transfer:
   * 0 for one engine, and between memory spaces, where the transfer's latency has it. */
  double (*sync_ns)(const struct regie_placement_problem* self, uint32_t from, uint32_t to);
} regie_placement_problem;

typedef struct regie_placer_table {
  regie_table_head head; /* REGIE_DIGEST_PLACER */
  uint32_t count;
  uint32_t reserved;
  const regie_pass_info* placers;
  regie_status (*place)(uint32_t index, const regie_host* host, const regie_config* options,
                        const regie_placement_problem* problem);
} regie_placer_table;

#ifdef __cplusplus
}
#endif
#endif
