/* draft/regie.device_ahead: what a device can do before there is a model for it, so that the first one starts
 * sooner: have a library choose its instructions, touch the code that every model runs. For
 * regie_open_ahead; a device need not have it.
 *
 * An entry belongs to the device of the same name in the same library. */
#ifndef REGIE_C_DEVICE_AHEAD_H
#define REGIE_C_DEVICE_AHEAD_H

#include "regie/c/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REGIE_DEVICE_AHEAD_ID "draft/regie.device_ahead"

typedef struct regie_device_ahead_table {
  regie_table_head head; /* REGIE_DIGEST_DEVICE_AHEAD */
  uint32_t count;
  uint32_t reserved;
  const regie_device_info* devices;
  /* On a thread of the host's own, which the end of the process waits for: a few milliseconds at most. Other
   * functions of the library run meanwhile. Whether it fails changes nothing but the time that is saved. */
  regie_status (*get_ready)(uint32_t index, const regie_host* host);
} regie_device_ahead_table;

#ifdef __cplusplus
}
#endif
#endif
