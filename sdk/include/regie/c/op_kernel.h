/* draft/regie.op_kernel: reference kernels, the meaning of an operator in plain code.
 *
 * They serve constant folding, rule tests, the null and AICPU devices, and every engine that has nothing
 * better. Two steps: `prepare` reads attributes and concrete shapes once and may allocate; `run` only
 * computes: it allocates nothing, keeps no state between calls, and may be called from several threads on one
 * state with separate scratch. */
#ifndef REGIE_C_OP_KERNEL_H
#define REGIE_C_OP_KERNEL_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_OP_KERNEL_ID "draft/regie.op_kernel"
#define REGIE_HOST_OPS_ID "draft/regie.host.ops"

enum {
  REGIE_OP_INPLACE = 1u, /* result 0 may lie on the bytes of any operand that has its type and shape */
  REGIE_OP_VIEW = 2u, /* result 0 is operand 0's bytes under another shape (Reshape, Flatten, Identity ...) */
  REGIE_OP_NONDETERMINISTIC = 4u, /* never folded, never merged with its like */
  REGIE_OP_DYNAMIC_RESULT = 8u,   /* a result's shape is known only after it ran */
  /* One result, of the shape to which the operands are broadcast, each element of it a function of the
   * operands' elements at its place alone: may be part of a regie.Pointwise, and means the same on scalars.
   */
  REGIE_OP_ELEMENTWISE = 16u
};

typedef struct regie_op_info {
  regie_str op;
  uint32_t flags; /* REGIE_OP_* */
  uint32_t reserved;
} regie_op_info;

/* Concrete description of one node. Operands that are absent have elem REGIE_ELEM_UNKNOWN. `data` is set for
 * constants, else NULL. Valid during prepare only. Operators with regions (regie.Pointwise) find them in
 * `graph`. */
typedef struct regie_op_request {
  uint32_t struct_size;
  uint32_t attr_count, operand_count, result_count, region_count;
  regie_str op;
  const regie_attr* attrs;
  const regie_tensor* operands;
  const regie_tensor* results;
  const regie_graph* graph; /* NULL if the node has no regions */
  const uint32_t* regions;
} regie_op_request;

typedef struct regie_op_state regie_op_state; /* of the plug-in */

typedef struct regie_op_call {
  uint32_t struct_size;
  uint32_t reserved;
  const regie_tensor* operands; /* as in the request, data set */
  regie_tensor* results;        /* as in the request, data set unless the shape depends on data */
  void* scratch;                /* scratch_bytes of prepare, aligned to 64 */
  /* Results of data-dependent shape: asks the caller for memory; NULL if it refuses. Then results[i] is set.
   */
  void* (*allocate)(void* context, uint32_t result, regie_elem elem, int32_t rank, const int64_t* dims);
  void* context;
} regie_op_call;

typedef struct regie_op_kernel_table {
  regie_table_head head; /* REGIE_DIGEST_OP_KERNEL */
  uint32_t count;
  uint32_t reserved;
  const regie_op_info* ops; /* `count` entries */
  /* UNSUPPORTED with the reason where the kernel does not cover this type or attribute. */
  regie_status (*prepare)(uint32_t op, const regie_host* host, const regie_op_request* request,
                          regie_op_state** state, uint64_t* scratch_bytes);
  regie_status (*run)(const regie_op_state* state, const regie_host* host, const regie_op_call* call);
  void (*release)(regie_op_state* state);
} regie_op_kernel_table;

/* Host interface REGIE_HOST_OPS_ID: the kernels and shape functions of all plug-ins, by operator name. */
typedef struct regie_host_ops {
  uint32_t struct_size;
  uint32_t reserved;
  /* NOT_FOUND if no plug-in has it. The table stays loaded. */
  regie_status (*find_kernel)(regie_str op, const regie_op_kernel_table** table, uint32_t* index);
} regie_host_ops;

#ifdef __cplusplus
}
#endif
#endif
