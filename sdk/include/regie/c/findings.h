/* draft/regie.host.findings: what an engine finds out about a whole graph while it is asked for formats
 * (engine.h), kept for the next compile, and told to the user.
 *
 * An engine may look at more than the node that it is asked about, and that may take long. What it finds is
 * the graph's, not the node's: the kernels' cache does not know of it, and no answer says it. Found by
 * regie_host.find; NULL where there is no compile, as in a test of an engine alone. All functions are for the
 * graph that the calling thread compiles; of another one nothing is known, and nothing is kept. */
#ifndef REGIE_C_FINDINGS_H
#define REGIE_C_FINDINGS_H

#include "regie/c/host.h"
#include "regie/c/view.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_HOST_FINDINGS_ID "draft/regie.host.findings"

typedef struct regie_host_findings {
  uint32_t struct_size;
  uint32_t reserved;
  /* A number that grows with each change of nodes, operands, types and engines: while it is the same, what
   * was found about the graph holds. 0: of another graph. */
  uint64_t (*revision)(const regie_graph* graph);
  /* What `engine` (its index) kept for a graph of the same content, with the same parameters, code and
   * processor: calls `take` once, or not at all. `question`: all else that the answer depends on. Content
   * is operators, attributes, types, the engines' indices and the bytes of constants, in program order, not
   * names and ids: what is kept must not speak of these. */
  void (*recall)(const regie_graph* graph, uint32_t engine, regie_str question,
                 void (*take)(void* to, const void* bytes, uint64_t size), void* to);
  /* To be recalled; it took `nanoseconds` to find. Copied. */
  void (*keep)(const regie_graph* graph, uint32_t engine, regie_str question, const void* bytes,
               uint64_t size, uint64_t nanoseconds);
  /* A line for the ledger about a node, as `regie explain` shows it; `kind` is a word: "operands". */
  void (*note)(const regie_graph* graph, uint32_t engine, uint32_t node, regie_str kind, regie_str text);
  /* A line for who compiles, about the whole graph; `figures` are the numbers in it by name, for programs,
   * and may be NULL. One a topic: the last counts. */
  void (*tell)(const regie_graph* graph, uint32_t engine, regie_str topic, regie_str text,
               const regie_config* figures);
} regie_host_findings;

#ifdef __cplusplus
}
#endif
#endif
