# Sources by folder. A folder's files need no list: a new file is found at the next build.

# regie_glob(<variable> <pattern>...): sources below the current folder, sorted.
function(regie_glob out)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  list(SORT files)
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# regie_never_empty(<variable> <name>): a target needs at least one source; a young folder has none.
function(regie_never_empty variable name)
  if(NOT ${variable})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_empty.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "namespace regie {}\n")
    set(${variable} ${file} PARENT_SCOPE)
  endif()
endfunction()
