# minitorch_build_info(<module>): compiles into the module which sources it was made from.
#
# `minitorch doctor` reads the text back from the file (minitorch/cli/build_info.py), without
# loading it, and compares the fingerprint with that of the sources it finds.
# As a script (cmake -P) this file does the build step: hash the sources, write build_info.cpp.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE _sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*.cpp ${SOURCE_DIR}/*.hpp)
  list(FILTER _sources EXCLUDE REGEX "^tests/")
  list(SORT _sources)
  set(_all "")
  foreach(_source IN LISTS _sources)
    file(SHA256 ${SOURCE_DIR}/${_source} _hash)
    string(APPEND _all "${_source} ${_hash}\n")
  endforeach()
  string(SHA256 _fingerprint "${_all}")
  string(SUBSTRING ${_fingerprint} 0 16 FINGERPRINT)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.cpp.in ${OUTPUT} @ONLY)
  return()
endif()

set(_build_info_script ${CMAKE_CURRENT_LIST_FILE})

function(minitorch_build_info module)
  set(flavour "")
  set(version "")
  if(module STREQUAL "_mpi")
    set(flavour ${MINITORCH_MPI_FLAVOUR})
    set(version ${MINITORCH_MPI_VERSION})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/csrc/*.cpp
       ${CMAKE_CURRENT_SOURCE_DIR}/csrc/*.hpp)
  list(FILTER sources EXCLUDE REGEX "/csrc/tests/")
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${module}_build_info.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND}
      -D SOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}/csrc -D OUTPUT=${output}
      -D COMPILER=${CMAKE_CXX_COMPILER_ID}-${CMAKE_CXX_COMPILER_VERSION}
      -D BUILD_TYPE=${CMAKE_BUILD_TYPE} -D SANITIZE=${MINITORCH_SANITIZE}
      -D CHOICE=${MINITORCH_MPI} -D FLAVOUR=${flavour} -D VERSION=${version}
      -P ${_build_info_script}
    # configure_file keeps the time stamp of an unchanged file, which would rerun this for ever.
    COMMAND ${CMAKE_COMMAND} -E touch ${output}
    DEPENDS ${sources} ${_build_info_script}
    COMMENT "Fingerprint of the sources, for ${module}" VERBATIM)
  target_sources(${module} PRIVATE ${output})
endfunction()
