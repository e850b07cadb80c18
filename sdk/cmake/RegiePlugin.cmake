# regie_add_plugin: one plug-in, built the same way inside the source tree and from the install prefix.
#
#   regie_add_plugin(
#     NAME onnx                              # file name: onnx.so and onnx.toml; the target is regie-plugin-onnx
#     VERSION 0.1.0
#     SOURCES onnx.cpp reader.cpp
#     PROVIDES frontend:onnx pass:fold-constants ...      # <kind>:<name>
#     [PROTOS onnx.proto ...]                # compiled with protobuf's lite run time
#     [ENVIRONMENT NAME ...]                 # variables that change what it gives, its libraries' too: part of caches' keys
#     [LINK library ...])
#
# The sources get on their include path the SDK and "regie_digests.h" (REGIE_DIGEST_<HEADER>: the interface as this
# build saw it), and as macros
#   REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION   strings, so that a copy under another name needs no edit
#   REGIE_PLUGIN_BUILD_FLAGS                  sanitizers: 1 ASan, 2 TSan; from the prefix: set the variable of that name
#
# A plug-in is a closed object: hidden visibility, no unique symbols that the dynamic linker would merge across
# libraries, no re-export of archives linked in, nothing undefined, and one symbol exported.
#
# With REGIE_STATIC_PLUGINS the same sources become an archive whose entry symbol is renamed
# regie_plugin_entry_<NAME>; a generated table carries manifests and entries (kernel/plugins/static_plugins.h).

function(regie_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;VERSION" "SOURCES;PROVIDES;PROTOS;ENVIRONMENT;LINK")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "regie_add_plugin(${arg_NAME}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(required NAME VERSION SOURCES PROVIDES)
    if(NOT arg_${required})
      message(FATAL_ERROR "regie_add_plugin(${arg_NAME}): ${required} is missing")
    endif()
  endforeach()
  if(NOT arg_NAME MATCHES "^[a-z0-9][a-z0-9_-]*$")
    message(FATAL_ERROR "regie_add_plugin: NAME '${arg_NAME}': use a-z, 0-9, '_' and '-'")
  endif()
  foreach(item IN LISTS arg_PROVIDES)
    if(NOT item MATCHES "^[a-z][a-z-]*:[A-Za-z0-9_.-]+$")
      message(FATAL_ERROR "regie_add_plugin(${arg_NAME}): PROVIDES '${item}' is not <kind>:<name>")
    endif()
  endforeach()

  set(target regie-plugin-${arg_NAME})
  list(JOIN arg_PROVIDES "\", \"" provides)
  set(manifest "schema = 1\nname = \"${arg_NAME}\"\nversion = \"${arg_VERSION}\"\n")
  string(APPEND manifest "library = \"${arg_NAME}.so\"\nprovides = [\"${provides}\"]\n")
  if(arg_ENVIRONMENT)
    list(JOIN arg_ENVIRONMENT "\", \"" environment)
    string(APPEND manifest "environment = [\"${environment}\"]\n")
  endif()

  if(REGIE_STATIC_PLUGINS)
    string(MAKE_C_IDENTIFIER ${arg_NAME} symbol)
    add_library(${target} STATIC ${arg_SOURCES})
    target_compile_definitions(${target} PRIVATE regie_plugin_entry=regie_plugin_entry_${symbol})
    # Each plug-in has its own idea of what is behind a handle; in one binary they need different names.
    foreach(handle engine device stream fence loaded_kernel executable op_state)
      target_compile_definitions(${target} PRIVATE regie_${handle}=regie_${handle}_${symbol})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY REGIE_STATIC_PLUGIN_NAMES ${arg_NAME})
    set_property(GLOBAL PROPERTY REGIE_STATIC_PLUGIN_MANIFEST_${symbol} "${manifest}")
  else()
    add_library(${target} MODULE ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${arg_NAME})
    if(REGIE_PLUGIN_OUTPUT_DIRECTORY)
      set(directory ${REGIE_PLUGIN_OUTPUT_DIRECTORY})
    else()
      set(directory ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${directory} INSTALL_RPATH "")
    file(CONFIGURE OUTPUT ${directory}/${arg_NAME}.toml CONTENT "${manifest}" @ONLY)
    # Templates of the standard library are visible whatever the compiler is told; the linker keeps them in.
    set(exports ${CMAKE_CURRENT_BINARY_DIR}/regie_plugin.exports)
    file(CONFIGURE OUTPUT ${exports} CONTENT "{ global: regie_plugin_entry; local: *; };\n" @ONLY)
    target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL LINKER:--version-script=${exports})
    if(NOT REGIE_PLUGIN_OPEN_SYMBOLS)
      target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION lib/regie/plugins)
    install(FILES ${directory}/${arg_NAME}.toml DESTINATION lib/regie/plugins)
  endif()

  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  if(NOT REGIE_PLUGIN_BUILD_FLAGS)
    set(REGIE_PLUGIN_BUILD_FLAGS 0)
  endif()
  target_compile_definitions(${target} PRIVATE
    REGIE_PLUGIN_NAME="${arg_NAME}" REGIE_PLUGIN_VERSION="${arg_VERSION}"
    REGIE_PLUGIN_BUILD_FLAGS=${REGIE_PLUGIN_BUILD_FLAGS})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  if(arg_PROTOS)
    regie_add_protos(${target} ${arg_PROTOS})
  endif()
  target_link_libraries(${target} PRIVATE regie::sdk ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY REGIE_PLUGIN_TARGETS ${target})
endfunction()

# regie_add_protos(<target> file.proto...): compiles the schemas for the lite run time; NAME.pb.h is on the include path.
function(regie_add_protos target)
  find_package(Protobuf REQUIRED)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}-proto)
  file(MAKE_DIRECTORY ${out})
  foreach(proto IN LISTS ARGN)
    get_filename_component(path ${proto} ABSOLUTE)
    get_filename_component(folder ${path} DIRECTORY)
    get_filename_component(stem ${path} NAME_WLE)
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND protobuf::protoc --cpp_out=lite:${out} -I ${folder} ${path}
      DEPENDS ${path} VERBATIM)
    set_source_files_properties(${out}/${stem}.pb.cc PROPERTIES COMPILE_OPTIONS "-w")
    target_sources(${target} PRIVATE ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${out})
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
endfunction()
