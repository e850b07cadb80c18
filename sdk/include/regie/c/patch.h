/* Patches and assignments: how a plug-in says what should change. It never writes the graph itself.
 *
 * A patch is atomic: it is recorded between `begin` and `commit`, checked and applied by the host after the
 * plug-in's function has returned, in the order of the commits. One that meets a node or value that an
 * earlier patch of the same run removed is dropped and the plug-in runs again. Ids given out here are final,
 * but their views exist only after the patch is applied. New nodes take the place of `anchor` in program
 * order and inherit the origins of the removed nodes. */
#ifndef REGIE_C_PATCH_H
#define REGIE_C_PATCH_H

#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct regie_edit
    regie_edit; /* opaque: one recording, or the graph under construction for a frontend */

typedef struct regie_node_desc {
  uint32_t struct_size;
  uint32_t operand_count, result_count, attr_count, region_count, control_count;
  regie_str op;
  regie_str name;
  const uint32_t* operands;
  const regie_attr* attrs; /* any order, no name twice */
  const uint32_t* regions; /* from open_region of this recording, each used once */
  const uint32_t* control;
  const regie_str* result_names;  /* NULL: unnamed */
  const uint8_t* results_omitted; /* NULL: all are made; else result_count flags, 1: id is REGIE_NONE */
} regie_node_desc;

typedef struct regie_edit_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Patches only. `title` goes to the ledger: what and why in a few words. */
  regie_status (*begin)(regie_edit* edit, regie_str title, uint32_t anchor);
  regie_status (*commit)(regie_edit* edit);
  regie_status (*abandon)(regie_edit* edit);

  /* The tensor's dims and bytes are copied, unless the frontend's source owns them (frontend.h). `kind`:
   * REGIE_VALUE_CONSTANT or REGIE_VALUE_WEIGHT. */
  regie_status (*constant)(regie_edit* edit, uint32_t kind, const regie_tensor* tensor, regie_str name,
                           uint32_t* value);
  /* Gives `result_count` value ids (REGIE_NONE where omitted). Types are inferred by the host. Node ids count
   * up: the k-th node of this recording, whichever patch it is in, is regie_graph.node_count + k. */
  regie_status (*node)(regie_edit* edit, const regie_node_desc* desc, uint32_t* results);
  /* Nodes and constants made until close_region belong to it. Regions nest. */
  regie_status (*open_region)(regie_edit* edit, regie_str name, uint32_t arg_count, const regie_type* types,
                              const regie_str* names, uint32_t* region, uint32_t* args);
  regie_status (*close_region)(regie_edit* edit, uint32_t result_count, const uint32_t* results);

  /* Every reader of `old_value` (region results too) reads `new_value` instead, but for nodes that this patch
   * makes: so a node can be put behind a value. Types must be compatible. */
  regie_status (*replace)(regie_edit* edit, uint32_t old_value, uint32_t new_value);
  /* All its results must be unread after the patch. */
  regie_status (*remove)(regie_edit* edit, uint32_t node);
  /* Rewires one operand only (copies, conversions). */
  regie_status (*set_operand)(regie_edit* edit, uint32_t node, uint32_t operand, uint32_t value);
  /* Moves the nodes of region `which` of `node` before it, with the arguments bound to `args`; gives the
   * region's result values. `node` is to be removed in the same patch. */
  regie_status (*inline_region)(regie_edit* edit, uint32_t node, uint32_t which, const uint32_t* args,
                                uint32_t* results);

  /* Assignments: applied at once after the plug-in returned, no begin/commit. */
  regie_status (*set_type)(regie_edit* edit, uint32_t value, const regie_type* type);
  regie_status (*set_alias)(regie_edit* edit, uint32_t value, uint32_t base, uint64_t offset_bytes,
                            regie_str reason);
  regie_status (*set_engine)(regie_edit* edit, uint32_t node, uint32_t engine, regie_str reason);
  regie_status (*set_space)(regie_edit* edit, uint32_t value, uint32_t space);
  /* A line for the ledger about a node (REGIE_NONE: about the pass): `kind` such as "near-miss", "skipped",
   * "kept". */
  regie_status (*note)(regie_edit* edit, uint32_t node, regie_str kind, regie_str text);
} regie_edit_api;

#ifdef __cplusplus
}
#endif
#endif
