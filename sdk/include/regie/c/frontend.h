/* draft/regie.frontend: reads a framework's model file into a graph.
 *
 * A frontend owns its wire schema, translates older operator sets and foreign operators into the canonical
 * ones, and builds the graph through the same functions that patches use (patch.h). It names nodes as the
 * framework does. */
#ifndef REGIE_C_FRONTEND_H
#define REGIE_C_FRONTEND_H

#include "regie/c/entry.h"
#include "regie/c/host.h"
#include "regie/c/patch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_FRONTEND_ID "draft/regie.frontend"

typedef struct regie_source regie_source;
struct regie_source {
  uint32_t struct_size;
  uint32_t reserved;
  regie_str path;   /* as the user wrote it; empty for bytes in memory */
  const void* data; /* the whole file, mapped; valid during import */
  uint64_t size;
  /* Bytes of a file beside the model (external weights). `relative` must stay inside the model's folder:
   * absolute paths, "..", and links that leave it are refused (INVALID_MODEL); absent file NOT_FOUND; short
   * file CORRUPT. `length` 0: to the end of the file. Bytes that came from here or from `data` are kept
   * mapped by the host as long as constants made of them live, and are not copied where they are aligned for
   * their element type. */
  regie_status (*external)(const regie_source* self, regie_str relative, uint64_t offset, uint64_t length,
                           const void** data, uint64_t* size);
};

typedef struct regie_import {
  uint32_t struct_size;
  uint32_t reserved;
  const regie_host* host;
  const regie_source* source;
  const regie_config*
      options;      /* e.g. key "shape", value "x=16,1,8,8"; the host has checked keys against `options` */
  regie_edit* edit; /* region 0 is open */
  const regie_edit_api* edit_api;
  regie_dim_table* dims;
  /* Arguments of region 0, in the order of the calls; the name is the input's name. */
  regie_status (*argument)(const struct regie_import* self, regie_str name, const regie_type* type,
                           uint32_t* value);
  /* Results of region 0 with their names. */
  regie_status (*results)(const struct regie_import* self, uint32_t count, const uint32_t* values,
                          const regie_str* names);
  /* View of a value made so far, its type inferred where possible; valid until the next call that builds. */
  const regie_value* (*value)(const struct regie_import* self, uint32_t value);
  void (*set_graph_name)(const struct regie_import* self, regie_str name);
  /* What is being read: the framework's node `name` of operator `op`. It is the origin of the nodes made from
   * now on and the place in messages, so that an operator translated into several nodes stays one to the
   * user. `op` empty: `name` is a place only, such as "initializer 'w'". Both empty: each node made is its
   * own origin. */
  void (*set_origin)(const struct regie_import* self, regie_str name, regie_str op);
} regie_import;

typedef struct regie_frontend_info {
  regie_str name; /* "onnx" */
  regie_str doc;
  regie_str extensions; /* ".onnx .pb": a hint, `probe` decides */
} regie_frontend_info;

typedef struct regie_frontend_table {
  regie_table_head head; /* REGIE_DIGEST_FRONTEND */
  uint32_t count;
  uint32_t reserved;
  const regie_frontend_info* frontends;
  /* 0 (no) to 100 (certain): are these bytes a model of mine? Looks at the path's ending and the first bytes
   * only. */
  uint32_t (*probe)(uint32_t index, regie_str path, const void* head, uint64_t head_size, uint64_t file_size);
  regie_status (*import_model)(uint32_t index, const regie_import* import);
} regie_frontend_table;

#ifdef __cplusplus
}
#endif
#endif
