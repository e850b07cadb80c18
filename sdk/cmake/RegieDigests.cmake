# The digests of the plug-in interface, as the build that asks sees it.
#
# A draft interface is negotiated by the SHA-256 of its header, so that two builds that saw different headers never
# call into each other. The digest of a header covers the headers of regie/c/ that it includes, transitively: a change
# in view.h changes the digest of everything that speaks in views.

# regie_write_digests(<include root> <output header>): for each <include root>/regie/c/NAME.h a line
#   #define REGIE_DIGEST_NAME "<64 hexadecimal digits>"
# Recomputed when a header changes, appears or disappears; rewritten only when a digest differs.
function(regie_write_digests root output)
  file(GLOB headers CONFIGURE_DEPENDS ${root}/regie/c/*.h)
  # The tile program is data with a version of its own, not an interface that two builds negotiate.
  list(FILTER headers EXCLUDE REGEX "/tile\\.h$")
  list(SORT headers)
  set(text "#pragma once\n// Written by RegieDigests.cmake: SHA-256 of each header of the plug-in interface with what it includes.\n")
  foreach(header IN LISTS headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    get_filename_component(name ${header} NAME)
    set(closure "")
    _regie_header_closure(${root} ${name} closure)
    list(REMOVE_ITEM closure ${name})
    list(SORT closure)
    file(READ ${header} content)
    foreach(other IN LISTS closure)
      file(READ ${root}/regie/c/${other} part)
      string(APPEND content "${part}")
    endforeach()
    string(SHA256 digest "${content}")
    get_filename_component(stem ${header} NAME_WE)
    string(MAKE_C_IDENTIFIER ${stem} stem)
    string(TOUPPER ${stem} stem)
    string(APPEND text "#define REGIE_DIGEST_${stem} \"${digest}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${text}" @ONLY)
endfunction()

# Adds to <list> the name of a header of regie/c/ and of every header there that it includes.
function(_regie_header_closure root name out)
  set(seen ${${out}})
  if(name IN_LIST seen)
    return()
  endif()
  if(NOT EXISTS ${root}/regie/c/${name})
    message(FATAL_ERROR "regie/c/${name} is included by a header of the plug-in interface, but absent in ${root}")
  endif()
  list(APPEND seen ${name})
  file(STRINGS ${root}/regie/c/${name} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
  foreach(line IN LISTS lines)
    if(line MATCHES "include[ \t]*[<\"]regie/c/([A-Za-z0-9_.-]+)[>\"]")
      _regie_header_closure(${root} ${CMAKE_MATCH_1} seen)
    elseif(line MATCHES "include[ \t]*\"([A-Za-z0-9_.-]+)\"" AND EXISTS ${root}/regie/c/${CMAKE_MATCH_1})
      _regie_header_closure(${root} ${CMAKE_MATCH_1} seen)
    endif()
  endforeach()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()
