/* What a plug-in may call: failures, logging, dimension arithmetic, and the services of other plug-ins.
 *
 * The table is const, lives as long as the process and may be used from any thread. Extra services are found
 * by id. */
#ifndef REGIE_C_HOST_H
#define REGIE_C_HOST_H

#include "regie/c/log.h"
#include "regie/c/status.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  REGIE_DIM_ADD = 1,
  REGIE_DIM_SUB = 2,
  REGIE_DIM_MUL = 3,
  REGIE_DIM_FLOORDIV = 4,
  REGIE_DIM_CEILDIV = 5,
  REGIE_DIM_MOD = 6,
  REGIE_DIM_MIN = 7,
  REGIE_DIM_MAX = 8
};

typedef struct regie_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  /* A host-side interface, e.g. "draft/regie.host.ops" (op_kernel.h); NULL if the host has none of that id.
   */
  const void* (*find)(const char* interface_id);
  /* Keeps message and place (of the user's file: "model.onnx: node 'conv1'"; may be empty) for the calling
   * thread and returns `code`, so that one writes `return host->fail(code, ...)`. Both strings are copied. */
  regie_status (*fail)(regie_status code, regie_str message, regie_str where);
  void (*log)(regie_log_level level, regie_str component, regie_str message);

  /* Dimension arithmetic. `dims` is regie_graph.dims or that of the request. Results are canonical: two equal
   * polynomials give one handle. Division by a constant zero gives REGIE_DIM_UNKNOWN, as does any operand
   * that is. */
  regie_dim (*dim_op)(regie_dim_table* dims, uint32_t op, regie_dim a, regie_dim b);
  /* A named symbol with an inclusive range; the same name gives the same handle, its range narrowed. Flag 1:
   * data-dependent (known only after the node that produces it has run). */
  regie_dim (*dim_symbol)(regie_dim_table* dims, regie_str name, int64_t lower, int64_t upper,
                          uint32_t flags);
  /* The least and greatest value that the expression can take over the ranges of its symbols. */
  void (*dim_range)(regie_dim_table* dims, regie_dim dim, int64_t* lower, int64_t* upper);
  /* Text such as "2*N+1" into `buffer`, at most `size` bytes with terminator; gives the length that it has.
   */
  size_t (*dim_print)(regie_dim_table* dims, regie_dim dim, char* buffer, size_t size);
} regie_host;

/* Configuration of an object: keys and values from TOML or `--set`, all as text. Valid during the call. */
typedef struct regie_setting {
  regie_str key;
  regie_str value;
} regie_setting;

typedef struct regie_config {
  uint32_t count;
  uint32_t reserved;
  const regie_setting* settings;
} regie_config;

#ifdef __cplusplus
}
#endif
#endif
