# Everything that is flags: the compiler cache, the linker, sanitizers, warnings.

set(REGIE_GNU OFF)
set(REGIE_CLANG OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(REGIE_GNU ON)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(REGIE_CLANG ON)
endif()

# Several worktrees share one cache: no absolute path may reach the compiler's output or the cache's key.
if(REGIE_CCACHE)
  find_program(REGIE_CCACHE_PROGRAM ccache)
  if(REGIE_CCACHE_PROGRAM)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
                 ${REGIE_CCACHE_PROGRAM})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  endif()
endif()
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)

if(REGIE_FAST_LINKER)
  find_program(REGIE_MOLD mold)
  find_program(REGIE_LLD ld.lld)
  if(REGIE_MOLD)
    add_link_options(-fuse-ld=mold)
  elseif(REGIE_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
add_link_options(-Wl,--as-needed)

# --- sanitizers --------------------------------------------------------------------------------------------------
# REGIE_PLUGIN_BUILD_FLAGS is the sanitizer identity that a plug-in states and the host compares: 1 ASan, 2 TSan.
set(REGIE_PLUGIN_BUILD_FLAGS 0)
if(REGIE_SANITIZER STREQUAL "")
elseif(REGIE_SANITIZER STREQUAL "address")
  set(REGIE_PLUGIN_BUILD_FLAGS 1)
  # vptr needs type information that hidden visibility takes away at the plug-ins' boundary.
  set(flags -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
elseif(REGIE_SANITIZER STREQUAL "thread")
  set(REGIE_PLUGIN_BUILD_FLAGS 2)
  set(flags -fsanitize=thread)
elseif(REGIE_SANITIZER STREQUAL "fuzz")
  if(NOT REGIE_CLANG)
    message(FATAL_ERROR "REGIE_SANITIZER=fuzz needs clang (libFuzzer): -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  set(REGIE_PLUGIN_BUILD_FLAGS 1)
  set(flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
else()
  message(FATAL_ERROR "REGIE_SANITIZER is '${REGIE_SANITIZER}'; known: address, thread, fuzz, or empty")
endif()
if(flags)
  add_compile_options(${flags} -fno-omit-frame-pointer -g1)
  add_link_options(${flags})
  unset(flags)
endif()
# clang leaves a sanitizer's run time to the executable, so its shared objects cannot be closed.
if(REGIE_CLANG AND NOT REGIE_SANITIZER STREQUAL "")
  set(REGIE_PLUGIN_OPEN_SYMBOLS ON)
endif()

# --- warnings ----------------------------------------------------------------------------------------------------
set(REGIE_WARNINGS -Wall -Wextra -Wpedantic)
if(REGIE_WERROR)
  list(APPEND REGIE_WARNINGS -Werror)
endif()
if(REGIE_GNU)
  # False alarms of g++ 12 in the standard library when it optimises or instruments.
  list(APPEND REGIE_WARNINGS -Wno-error=maybe-uninitialized -Wno-error=array-bounds
       -Wno-error=stringop-overflow -Wno-error=stringop-overread -Wno-error=restrict -Wno-error=free-nonheap-object)
  if(NOT REGIE_SANITIZER STREQUAL "")
    list(APPEND REGIE_WARNINGS -Wno-maybe-uninitialized)
  endif()
endif()
add_compile_options(${REGIE_WARNINGS})
