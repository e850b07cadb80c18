/* The one symbol of a plug-in: `regie_plugin_entry`, const data. Frozen.
 *
 * Loading a library runs no code of it: no registration, no constructors. The host reads this struct, refuses
 * the library by name if the ABI major, the size, the magic or the sanitizer identity does not fit, and then
 * asks `find` for interface tables. `find` is pure: it may be called from any thread, any number of times,
 * and gives a pointer to const data that lives as long as the library, or NULL for an id that the plug-in
 * does not know.
 *
 * Draft interfaces: id "draft/regie.<kind>"; the table starts with a `regie_table_head` whose digest must
 * equal the host's digest of the same header. A stable interface would be "regie.<kind>/<revision>" and never
 * changes again. */
#ifndef REGIE_C_ENTRY_H
#define REGIE_C_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_ENTRY_MAGIC 0x4c504752u /* "RGPL", little endian */
#define REGIE_ABI_MAJOR 1u
#define REGIE_ABI_MINOR 0u

enum { REGIE_BUILD_ASAN = 1u, REGIE_BUILD_TSAN = 2u };

typedef struct regie_plugin_entry_t {
  uint32_t magic; /* REGIE_ENTRY_MAGIC */
  uint32_t
      struct_size;    /* sizeof(regie_plugin_entry_t) as the plug-in knew it; fields are only ever appended */
  uint32_t abi_major; /* must equal the host's */
  uint32_t abi_minor; /* must not exceed the host's */
  uint32_t build_flags; /* REGIE_BUILD_*; must equal the host's, as mixed sanitizers crash */
  uint32_t reserved;
  const char* name;    /* unique among the loaded plug-ins; equals the manifest's */
  const char* version; /* semantic version of the plug-in; part of cache keys */
  const void* (*find)(const char* interface_id);
} regie_plugin_entry_t;

typedef struct regie_table_head {
  uint32_t struct_size; /* size of the whole table, head included */
  uint32_t reserved;
  const char* header_digest; /* REGIE_DIGEST_<HEADER> from regie_digests.h of the plug-in's build */
} regie_table_head;

#if defined(_WIN32)
#define REGIE_EXPORT __declspec(dllexport)
#else
#define REGIE_EXPORT __attribute__((visibility("default")))
#endif

extern REGIE_EXPORT const regie_plugin_entry_t regie_plugin_entry;

#ifdef __cplusplus
}
#endif
#endif
