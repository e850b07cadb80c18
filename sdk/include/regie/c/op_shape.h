/* draft/regie.op_shape: what types an operator's results have, given its operands and attributes.
 *
 * Shape functions are pure: same request, same answer, from any thread. They never see the graph. They
 * compute with dimension expressions (host.h) so that one answer holds for every size of a symbolic axis, and
 * carry the *content* of small integer tensors (Shape, Gather, Concat, arithmetic) as expressions so that a
 * Reshape fed by them is known. */
#ifndef REGIE_C_OP_SHAPE_H
#define REGIE_C_OP_SHAPE_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_OP_SHAPE_ID "draft/regie.op_shape"

typedef struct regie_operand_info {
  uint32_t present; /* 0: optional operand that is absent; the rest is zero then */
  uint32_t content_count;
  regie_type type;
  const regie_tensor* data; /* constants, else NULL */
  const regie_dim*
      content; /* where known, else NULL; also set for constant integer tensors of up to 1024 elements */
} regie_operand_info;

typedef struct regie_region_info {
  uint32_t arg_count, result_count;
  const regie_type* args;
  const regie_type* results;
} regie_region_info;

typedef struct regie_shape_request regie_shape_request;
struct regie_shape_request {
  uint32_t struct_size;
  uint32_t attr_count, operand_count, result_count, region_count;
  regie_str op;
  const regie_attr* attrs; /* sorted by name; defaults of the schema are filled in by the host */
  const regie_operand_info* operands;
  const regie_region_info* regions;
  regie_dim_table* dims;
  /* Each result that was asked for must be set once. The type is copied. */
  regie_status (*set_result)(const regie_shape_request* self, uint32_t result, const regie_type* type);
  regie_status (*set_content)(const regie_shape_request* self, uint32_t result, const regie_dim* content,
                              uint32_t count);
  void* sink;
};

typedef struct regie_op_shape_table {
  regie_table_head head; /* REGIE_DIGEST_OP_SHAPE */
  uint32_t count;
  uint32_t reserved;
  const regie_str* ops; /* `count` operator names */
  /* INVALID_MODEL with the reason if the operands cannot be ("Conv: weight has 3 input channels, input has
   * 4"); the host adds the node's name and the file. UNSUPPORTED if the operator is legal but not covered. */
  regie_status (*infer)(uint32_t op, const regie_host* host, const regie_shape_request* request);
} regie_op_shape_table;

#ifdef __cplusplus
}
#endif
#endif
