# Headers of the system and of libraries that most files include, compiled once and not in each file: half a second of a
# file, a second of a test. Never headers of ours: a change in one would compile everything again. A file still includes
# what it uses.
#
#   systole_precompiled(target)         # of libraries
#   systole_precompiled(target SMALL)   # of libraries compiled for size in a release (systole_library)
#   systole_precompiled(target TESTS)   # of tests: GoogleTest's too
#
# gcc takes them only with the flags that they were compiled with: those of a target with options of its own, or of a
# source with SKIP_PRECOMPILE_HEADERS, are left alone.

set(precompiled <algorithm> <array> <charconv> <cmath> <cstdint> <cstdlib> <cstring> <filesystem> <fstream> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <tuple>
  <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# gcc never writes the same bytes twice, so that ccache would share nothing between build folders. It is told to go by
# the headers' text instead, whose hash stands beside what was compiled (CCACHE_PCH_EXTSUM).
function(systole_precompiled_sum target)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \\1" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" text)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled_text.cc "${text}\n")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -E -P ${CMAKE_BINARY_DIR}/precompiled_text.cc
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.gch.sum "${sum}")
endfunction()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "")
  add_library(systole_precompiled_libraries OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(systole_precompiled_libraries PRIVATE fmt::fmt Threads::Threads)
  target_precompile_headers(systole_precompiled_libraries PRIVATE ${precompiled})
  systole_precompiled_sum(systole_precompiled_libraries ${precompiled})

  if(CMAKE_BUILD_TYPE STREQUAL Release)
    add_library(systole_precompiled_small OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
    target_link_libraries(systole_precompiled_small PRIVATE fmt::fmt Threads::Threads)
    target_compile_options(systole_precompiled_small PRIVATE -Os)
    target_precompile_headers(systole_precompiled_small PRIVATE ${precompiled})
    systole_precompiled_sum(systole_precompiled_small ${precompiled})
  endif()

  add_library(systole_precompiled_tests OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(systole_precompiled_tests PRIVATE fmt::fmt Threads::Threads GTest::gtest)
  set_target_properties(systole_precompiled_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(systole_precompiled_tests PRIVATE -fPIE)  # as executables have it
  target_precompile_headers(systole_precompiled_tests PRIVATE ${precompiled} <gtest/gtest.h>)
  systole_precompiled_sum(systole_precompiled_tests ${precompiled} <gtest/gtest.h>)
endif()

function(systole_precompiled target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  elseif("TESTS" IN_LIST ARGN)
    target_precompile_headers(${target} REUSE_FROM systole_precompiled_tests)
  elseif("SMALL" IN_LIST ARGN)
    target_precompile_headers(${target} REUSE_FROM systole_precompiled_small)
  else()
    target_precompile_headers(${target} REUSE_FROM systole_precompiled_libraries)
  endif()
endfunction()
