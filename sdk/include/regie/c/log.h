/* Log levels. Plug-ins log through `regie_host.log`; the host decides what is shown and where. Frozen. */
#ifndef REGIE_C_LOG_H
#define REGIE_C_LOG_H

#include <stdint.h>

typedef int32_t regie_log_level;
enum { REGIE_LOG_DEBUG = 0, REGIE_LOG_INFO = 1, REGIE_LOG_WARNING = 2, REGIE_LOG_ERROR = 3 };

#endif
