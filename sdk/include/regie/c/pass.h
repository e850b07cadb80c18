/* draft/regie.pass and draft/regie.rewrite: passes over a whole graph, and local rewrites of one node.
 *
 * Both see the graph const and answer with patches and assignments (patch.h). A pass object belongs to one
 * compile and one thread; a plug-in may be used by many compiles at once. */
#ifndef REGIE_C_PASS_H
#define REGIE_C_PASS_H

#include "regie/c/engine.h"
#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/patch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_PASS_ID "draft/regie.pass"
#define REGIE_REWRITE_ID "draft/regie.rewrite"

typedef struct regie_option_info {
  regie_str key, default_value, doc;
} regie_option_info;

typedef struct regie_pass_info {
  regie_str name; /* verb first, kebab case */
  regie_str doc;  /* one line */
  /* Property names: shapes-known, placed, scheduled, planned, or any that plug-ins agree on. A pipeline in
   * which a requirement is not met at its place is refused before anything runs. */
  uint32_t require_count, establish_count, break_count, option_count;
  const regie_str* requires_;
  const regie_str* establishes;
  const regie_str* breaks;
  const regie_option_info* options; /* an unknown or ill-typed option is refused by the host */
} regie_pass_info;

enum { REGIE_ALIAS_NONE = 0, REGIE_ALIAS_INPLACE = 1, REGIE_ALIAS_VIEW = 2 };

/* What a pass may use while it runs. The host runs a pass again until it commits no patch any more; from the
 * second run on `graph->changed` holds only what has changed since, so a pass that works on it does
 * O(changes) each time. */
typedef struct regie_pass_context regie_pass_context;
struct regie_pass_context {
  uint32_t struct_size;
  uint32_t reserved;
  const regie_host* host;
  const regie_graph* graph;
  regie_edit* edit;
  const regie_edit_api* edit_api;
  /* Infers types and contents of all results of `node` from the operands' present types and sets them at
   * once: types are facts, not decisions, and the next node's inference needs them. UNSUPPORTED,
   * INVALID_MODEL as the shape function says. */
  regie_status (*infer)(const regie_pass_context* self, uint32_t node);
  /* Computes `node`, whose operands are all constant, with its reference kernel. Fills `results`, an array of
   * the caller with one element a node result; their bytes are owned by the host and valid until the pass
   * returns. LIMIT if they would exceed `budget_bytes`. */
  regie_status (*evaluate)(const regie_pass_context* self, uint32_t node, uint64_t budget_bytes,
                           regie_tensor* results);
  /* May result `result` of `node` lie on the bytes of operand `operand`, says the engine that it is placed
   * on? */
  uint32_t (*alias_kind)(const regie_pass_context* self, uint32_t node, uint32_t result, uint32_t operand);
  /* REGIE_OP_* flags of an operator (op_kernel.h), 0 if no plug-in knows it. */
  uint32_t (*op_flags)(const regie_pass_context* self, regie_str op);
  void* state;
  /* Formats that the engine of `node`, which is placed, can compute it in (engine.h): writes up to `capacity`
   * wishes and gives how many there are. */
  uint32_t (*format_wishes)(const regie_pass_context* self, uint32_t node, regie_format_wish* wishes,
                            uint32_t capacity);
  /* What it costs `engine` to bring `value` from one format to another, at the reference shapes; negative:
   * impossible. */
  double (*reformat_ns)(const regie_pass_context* self, uint32_t engine, uint32_t value, regie_format from,
                        regie_format to);
};

typedef struct regie_pass regie_pass;

typedef struct regie_pass_table {
  regie_table_head head; /* REGIE_DIGEST_PASS */
  uint32_t count;
  uint32_t reserved;
  const regie_pass_info* passes;
  regie_status (*create)(uint32_t index, const regie_host* host, const regie_config* options,
                         regie_pass** pass);
  regie_status (*run)(regie_pass* pass, const regie_pass_context* context);
  void (*destroy)(regie_pass* pass);
} regie_pass_table;

typedef struct regie_rewrite_info {
  regie_pass_info pass;
  uint32_t op_count;
  uint32_t reserved;
  const regie_str* ops; /* nodes with these operators are shown to it; 0: all */
} regie_rewrite_info;

/* The host calls `apply` for each changed node of these operators until nothing changes; at most one patch a
 * call. */
typedef struct regie_rewrite_table {
  regie_table_head head; /* REGIE_DIGEST_PASS */
  uint32_t count;
  uint32_t reserved;
  const regie_rewrite_info* rewrites;
  regie_status (*create)(uint32_t index, const regie_host* host, const regie_config* options,
                         regie_pass** pass);
  regie_status (*apply)(regie_pass* pass, const regie_pass_context* context, uint32_t node);
  void (*destroy)(regie_pass* pass);
} regie_rewrite_table;

#ifdef __cplusplus
}
#endif
#endif
