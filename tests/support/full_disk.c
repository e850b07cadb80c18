/* Preloaded into a process, it plays a full disk: writes to files (not to the terminal's three) fail with
 * ENOSPC once REGIE_TEST_DISK_BYTES have been written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static long long room = -1;

ssize_t write(int file, const void* data, size_t size) {
  static ssize_t (*next)(int, const void*, size_t);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "write"); /* as POSIX says to do it */
  if (file <= 2) return next(file, data, size);
  if (room < 0) {
    const char* text = getenv("REGIE_TEST_DISK_BYTES");
    room = text ? atoll(text) : 0;
  }
  if ((long long)size > room) {
    errno = ENOSPC;
    return -1;
  }
  room -= (long long)size;
  return next(file, data, size);
}
