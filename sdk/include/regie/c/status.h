/* Status codes and strings that cross the plug-in boundary. Frozen: see CHANGELOG.md, heading ABI.
 *
 * A function that can fail returns a `regie_status`. The words of the failure are handed to the host with
 * `regie_host.fail` (host.h) on the same thread before returning; the host keeps them until the next failure
 * on that thread. So no memory is passed across that the other side would have to free. */
#ifndef REGIE_C_STATUS_H
#define REGIE_C_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t regie_status;

enum {
  REGIE_OK = 0,
  REGIE_INVALID_MODEL = 1, /* the user's model file breaks its format's rules */
  REGIE_INVALID_INPUT = 2, /* an argument, option, tensor or configuration file of the user is wrong */
  REGIE_UNSUPPORTED = 3,   /* well-formed, but not something that this build can do */
  REGIE_NOT_FOUND = 4,     /* a named file, plug-in, pass, input ... does not exist */
  REGIE_IO = 5,            /* the operating system refused a read or a write */
  REGIE_CORRUPT = 6,       /* a checksum or a length does not match */
  REGIE_OUT_OF_MEMORY = 7, /* an allocation failed or a memory limit would be exceeded */
  REGIE_LIMIT = 8,         /* a budget (bytes, nodes, streams, events ...) is used up */
  REGIE_BAD_PLUGIN = 9,    /* a plug-in was refused or broke its contract */
  REGIE_TIMEOUT = 10,      /* a wait took longer than its limit */
  REGIE_DEVICE = 11,       /* a device reported an error; it sticks to the stream */
  REGIE_INTERNAL = 12      /* an invariant of Regie itself does not hold: a bug, please report */
};

/* UTF-8 bytes without terminator; `data` may be NULL when `size` is 0. The owner is said where it is used. */
typedef struct regie_str {
  const char* data;
  size_t size;
} regie_str;

#ifdef __cplusplus
}
#endif
#endif
