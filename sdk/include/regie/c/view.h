/* Read-only views: tensors, types, attributes, values, nodes, regions, graphs. Frozen early.
 *
 * All pointers are spans into host storage. They are valid during the call that received them and must not be
 * kept. Ids index the arrays of `regie_graph`; they are never reused within a compile, so an entry may be
 * dead (kind 0, or op.data NULL): skip it. Nobody but the host writes. */
#ifndef REGIE_C_VIEW_H
#define REGIE_C_VIEW_H

#include "regie/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_NONE 0xffffffffu /* an absent optional operand, result, node or region */

/* Element types. Numbers equal those of ONNX's TensorProto.DataType. */
typedef uint16_t regie_elem;
enum {
  REGIE_ELEM_UNKNOWN = 0,
  REGIE_F32 = 1,
  REGIE_U8 = 2,
  REGIE_I8 = 3,
  REGIE_U16 = 4,
  REGIE_I16 = 5,
  REGIE_I32 = 6,
  REGIE_I64 = 7,
  REGIE_STRING = 8,
  REGIE_BOOL = 9,
  REGIE_F16 = 10,
  REGIE_F64 = 11,
  REGIE_U32 = 12,
  REGIE_U64 = 13,
  REGIE_C64 = 14,
  REGIE_C128 = 15,
  REGIE_BF16 = 16,
  REGIE_F8E4M3FN = 17,
  REGIE_F8E4M3FNUZ = 18,
  REGIE_F8E5M2 = 19,
  REGIE_F8E5M2FNUZ = 20,
  REGIE_U4 = 21,
  REGIE_I4 = 22,
  REGIE_F4E2M1 = 23,
  REGIE_F8E8M0 = 24, /* powers of two, no sign; 0xff is NaN */
  REGIE_U2 = 25,
  REGIE_I2 = 26
};

/* A dimension: >= 0 is a constant; < 0 (but not REGIE_DIM_UNKNOWN) is a handle of an expression in the
 * graph's dimension table (host.h). Equal handles are equal expressions, as expressions are hash-consed. */
typedef int64_t regie_dim;
#define REGIE_DIM_UNKNOWN INT64_MIN /* not inferred yet; never in a graph whose shapes are known */

/* Formats (data layouts). Low 16 bits: kind; high 15 bits: parameter (C0); bit 31: index into the opaque
 * table. */
typedef uint32_t regie_format;
enum {
  REGIE_FORMAT_ND = 0, /* row-major in the order of the dimensions */
  REGIE_FORMAT_NCHW = 1,
  REGIE_FORMAT_NHWC = 2,
  REGIE_FORMAT_NC1HWC0 = 3,
  REGIE_FORMAT_FRACTAL_Z = 4,
  REGIE_FORMAT_FRACTAL_NZ = 5
};
#define REGIE_FORMAT_OPAQUE_BIT 0x80000000u

/* What a value holds. */
enum { REGIE_TENSOR = 0, REGIE_SEQUENCE = 1, REGIE_OPTIONAL = 2, REGIE_OPTIONAL_SEQUENCE = 3 };

typedef struct regie_type {
  regie_elem elem;
  uint16_t container; /* REGIE_TENSOR ... */
  int32_t rank;       /* -1: not known yet */
  const regie_dim* dims;
  regie_format format;        /* how the bytes lie */
  regie_format origin_format; /* how the framework meant the dimensions */
} regie_type;

/* Dense data with concrete dimensions. Sub-byte types are packed, two or four a byte, low bits first.
 * Strings: `data` points to regie_str[count]. `strides` in elements, NULL: row-major. */
typedef struct regie_tensor {
  regie_elem elem;
  uint16_t reserved;
  int32_t rank;
  const int64_t* dims;
  const int64_t* strides;
  void* data; /* written only where the function's contract says so */
  uint64_t bytes;
} regie_tensor;

enum {
  REGIE_ATTR_INT = 1,
  REGIE_ATTR_FLOAT = 2,
  REGIE_ATTR_STRING = 3,
  REGIE_ATTR_INTS = 4,
  REGIE_ATTR_FLOATS = 5,
  REGIE_ATTR_STRINGS = 6,
  REGIE_ATTR_TENSOR = 7
};

typedef struct regie_attr {
  regie_str name;
  uint32_t kind;  /* REGIE_ATTR_* */
  uint32_t count; /* of the lists; 1 otherwise */
  union {
    int64_t i;
    double f;
    regie_str s;
    const int64_t* ints;
    const double* floats;
    const regie_str* strs;
    const regie_tensor* tensor;
  } v;
} regie_attr;

/* A reader: operand `operand` of node `node`; or, if `node` has REGIE_USE_REGION set, result `operand` of
 * that region. */
typedef struct regie_use {
  uint32_t node;
  uint32_t operand;
} regie_use;
#define REGIE_USE_REGION 0x80000000u

enum {
  REGIE_VALUE_DEAD = 0,
  REGIE_VALUE_ARGUMENT = 1,
  REGIE_VALUE_CONSTANT = 2,
  REGIE_VALUE_WEIGHT = 3,
  REGIE_VALUE_RESULT = 4
};

typedef struct regie_value {
  uint32_t id;
  uint32_t kind;  /* REGIE_VALUE_* */
  uint32_t owner; /* RESULT: node id; others: region id */
  uint32_t index; /* which result or argument */
  regie_str name; /* as in the framework where it came from there; may be empty */
  regie_type type;
  const regie_tensor* data; /* CONSTANT, WEIGHT; NULL in rule tests where only the type is known */
  const regie_dim*
      content; /* element values of a small integer tensor where known (shape arithmetic), else NULL */
  uint32_t content_count;
  uint32_t use_count;
  const regie_use* uses; /* in no particular, but a reproducible, order */
  uint32_t alias_of;     /* assignment: this value lives in the bytes of that value; REGIE_NONE: own bytes */
  uint32_t space;        /* assignment: index of the target's memory space; REGIE_NONE before placement */
  uint64_t alias_offset; /* bytes into alias_of */
} regie_value;

typedef struct regie_node {
  uint32_t id;
  uint32_t op_id;      /* interned operator: equal ids are equal names within one process */
  regie_str op;        /* "Conv", "regie.FusedConv"; data NULL: dead */
  regie_str name;      /* the framework's name of the node; may be empty */
  uint32_t region;     /* the region that holds it */
  uint32_t prev, next; /* neighbours in program order, REGIE_NONE at the ends */
  uint32_t operand_count, result_count, attr_count, region_count, control_count, origin_count;
  const uint32_t* operands; /* value ids; REGIE_NONE: absent */
  const uint32_t* results;  /* value ids; REGIE_NONE: not asked for */
  const regie_attr* attrs;  /* sorted by name */
  const uint32_t* regions;
  const uint32_t* control; /* nodes that must have run before */
  const uint32_t* origins; /* indices into regie_graph.origins: the framework operators it came from */
  uint32_t engine;         /* assignment: index into regie_graph.engines, REGIE_NONE before placement */
  uint32_t stream;         /* assignment: stream of that engine's device, REGIE_NONE before scheduling */
  uint64_t order;          /* ascending in program order within its region */
} regie_node;

typedef struct regie_region {
  uint32_t id;
  uint32_t parent; /* the node that owns it; REGIE_NONE for the graph's own region (id 0) */
  regie_str name;
  uint32_t arg_count, result_count;
  const uint32_t* args;    /* value ids */
  const uint32_t* results; /* value ids: any visible value */
  uint32_t first, last;    /* program order, REGIE_NONE if empty */
} regie_region;

typedef struct regie_engine_ref {
  regie_str name;   /* of the engine in the target */
  regie_str device; /* of the device that it compiles for */
  uint32_t device_index;
  uint32_t space; /* memory space that its kernels read and write */
} regie_engine_ref;

typedef struct regie_dim_table regie_dim_table; /* opaque; functions in host.h */

typedef struct regie_graph {
  uint32_t struct_size;
  uint32_t node_count, value_count, region_count; /* array lengths, dead entries included */
  regie_str name;
  const regie_node* nodes;
  const regie_value* values;
  const regie_region* regions; /* 0 is the graph itself */
  const regie_str* origins;    /* e.g. "conv1 (Conv)" */
  uint32_t origin_count;
  uint32_t changed_count;
  const uint32_t* changed; /* nodes new or changed since this pass last ran; all live nodes the first time */
  regie_dim_table* dims;
  const regie_engine_ref* engines;
  uint32_t engine_count;
  uint32_t reserved;
} regie_graph;

#ifdef __cplusplus
}
#endif
#endif
