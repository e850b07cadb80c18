/* draft/regie.engine: compile-time half of a backend. It answers for nodes and compiles them to kernels.
 *
 * An engine object belongs to one target and one compile; its functions are called from one thread at a time.
 * Kernels are plain data: the host stores blob and weights in the model, and the device (device.h) runs them,
 * maybe years later. */
#ifndef REGIE_C_ENGINE_H
#define REGIE_C_ENGINE_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_ENGINE_ID "draft/regie.engine"

typedef struct regie_engine regie_engine;

typedef struct regie_engine_info {
  regie_str name;
  regie_str doc;
} regie_engine_info;

/* From placement on, every attribute that an operator's schema gives a default is explicit in its node.
 *
 * Answer about one node. The strings are copied by the host before the next call. */
typedef struct regie_answer {
  uint32_t can;       /* 1: yes */
  uint32_t reference; /* 1: only by the operator's reference kernel, which is slow and is reported as such */
  regie_str reason;   /* why not; or why so */
  double cost_ns;     /* predicted time of one run at the reference shapes */
} regie_answer;

/* Shapes of a node at the reference binding of the symbols. `data` is set for constants. Absent operands:
 * elem 0. */
typedef struct regie_engine_shapes {
  const regie_tensor* operands;
  const regie_tensor* results;
} regie_engine_shapes;

typedef struct regie_packed_weight {
  uint32_t operand; /* which operand these bytes take the place of at every launch */
  uint32_t alignment;
  const void* data;
  uint64_t size;
  regie_str layout; /* "portable" (the tensor's own bytes) or "opaque:<engine>:<digest>" */
} regie_packed_weight;

enum {
  REGIE_KERNEL_ANY_SHAPE = 1u, /* the device can prepare it for shapes other than those it was compiled for */
  REGIE_KERNEL_REFERENCE = 2u  /* runs the operator's reference kernel */
};

typedef struct regie_kernel {
  uint32_t struct_size;
  uint32_t flags;   /* REGIE_KERNEL_* */
  regie_str format; /* a kernel format that the device lists, e.g. "host_cpu.onednn/1" */
  regie_str name;   /* for profiles: "brgconv nhwc + relu" */
  const void* blob;
  uint64_t blob_size;
  uint32_t weight_count;
  uint32_t requires_count;
  const regie_packed_weight* weights;
  const regie_str* requires_; /* device capabilities, e.g. "avx512_core" */
  uint64_t scratch_bytes;     /* at the reference shapes and the given width; planned in the arena */
} regie_kernel;

typedef struct regie_engine_compile {
  uint32_t struct_size;
  uint32_t threads; /* width that the kernel will be launched with */
  const regie_graph* graph;
  uint32_t node;
  uint32_t reserved;
  regie_engine_shapes shapes;
  /* To be called once; everything in the kernel is copied. */
  regie_status (*emit)(const struct regie_engine_compile* self, const regie_kernel* kernel);
  void* sink;
} regie_engine_compile;

/* A node may be computed in several combinations of formats: its options. Option 0 is always there: every
 * operand and result row-major. An option from 1 on is the wishes with its number; what they do not name is
 * row-major. No option is wished twice, and options count up from 1 without a gap. */
typedef struct regie_format_wish {
  uint32_t is_result; /* 0: operand */
  uint32_t index;
  regie_format
      format; /* legal for every shape that the value's type allows; takes no more bytes than row-major */
  uint32_t option;
  double saved_ns; /* of the option against option 0: the sum over its wishes counts */
} regie_format_wish;

typedef struct regie_engine_table {
  regie_table_head head; /* REGIE_DIGEST_ENGINE */
  uint32_t count;
  uint32_t reserved;
  const regie_engine_info* engines;
  /* `params`: the engine's and its device's keys of the target file. */
  regie_status (*create)(uint32_t index, const regie_host* host, const regie_config* params,
                         regie_engine** engine);
  void (*destroy)(regie_engine* engine);
  regie_status (*ask)(regie_engine* engine, const regie_graph* graph, uint32_t node,
                      const regie_engine_shapes* shapes, regie_answer* answer);
  /* REGIE_ALIAS_* (pass.h): may result lie on the bytes of operand? */
  uint32_t (*alias)(regie_engine* engine, const regie_graph* graph, uint32_t node, uint32_t result,
                    uint32_t operand);
  /* Writes up to `capacity` wishes, ascending by option; gives how many there are. May be NULL: all is
   * row-major. Which option was taken, `compile` reads in the types of the graph's values. */
  uint32_t (*formats)(regie_engine* engine, const regie_graph* graph, uint32_t node,
                      const regie_engine_shapes* shapes, regie_format_wish* wishes, uint32_t capacity);
  /* A fusion about to be made: the new node as it would be. 0 and a reason to veto. May be NULL. */
  uint32_t (*accept_fusion)(regie_engine* engine, const regie_graph* graph, uint32_t node, regie_str* reason);
  regie_status (*compile)(regie_engine* engine, const regie_engine_compile* request);
  /* Predicted time of a regie.Reformat node that brings a tensor of these dimensions from one format to the
   * other; negative: not possible. May be NULL if `formats` is. */
  double (*reformat_ns)(regie_engine* engine, const regie_tensor* tensor, regie_format from, regie_format to);
} regie_engine_table;

#ifdef __cplusplus
}
#endif
#endif
