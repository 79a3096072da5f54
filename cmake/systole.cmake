# One folder is one library with its dependencies listed (docs: src/README.md).
#
#   systole_library(store             # or `store HOT`: compiled with -O1 where the rest of a sanitised build is -O0;
#                                     # `store SMALL`: in a release for size, where nothing computes
#     SOURCES posix.cc memory.cc     # or GLOB for folders of ops and kernels
#     TESTS   posix_test.cc
#     DEPS    base                   # folders of ours
#     LIBS    PkgConfig::ZSTD)       # libraries of others
#
# makes the target systole_<name> and, where there are tests, <name>_test. One that takes long says how many seconds a
# sanitised build of it takes, set_tests_properties(store_test PROPERTIES COST 60), and begins early (tools/run-tests).
#
#   systole_labels("processes;waits" a_test b_test)
#
# says which tests `make test` runs released, or not at all (CONTRIBUTING.md). They are the target tests_released, the
# others tests_sanitized: no build compiles tests that it does not run.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers -Wno-unused-parameter)
# gcc 12 warns falsely of strings that are joined (its bugs 105329 and 105651); ASan looks at what these would.
add_compile_options("$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
if(SYSTOLE_WERROR)
  add_compile_options(-Werror)
endif()
if(SYSTOLE_SANITIZE)
  add_compile_options(-fsanitize=${SYSTOLE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SYSTOLE_SANITIZE})
  # What UBSan finds ends the program. gcc's messages are no way to: ASan would watch over each check's own data, 300 MB
  # in `systole`, which every process begins with. It traps, and ASan tells the place; only vptr is not checked so, by
  # clang for fuzz/ alone.
  if(SYSTOLE_SANITIZE MATCHES undefined)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      add_compile_options(-fsanitize-undefined-trap-on-error)
    else()
      add_compile_options(-fno-sanitize-recover=undefined)
    endif()
  endif()
  # Tests start hundreds of processes, and each would write the address of every global that ASan knows into pages of
  # its own, 140 MB in `systole`: more than half of its start. A program that lies at a fixed address has them linked.
  if(SYSTOLE_SANITIZE MATCHES address)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()

# An executable of ours.
function(systole_executable name)
  add_executable(${name} ${ARGN})
  if(SYSTOLE_SANITIZE MATCHES address)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/sanitizer.cc)
  endif()
endfunction()

function(systole_library name)
  cmake_parse_arguments(ARG "GLOB;HOT;SMALL" "" "SOURCES;TESTS;DEPS;LIBS;TEST_DEPS" ${ARGN})
  if(ARG_GLOB)
    file(GLOB sources CONFIGURE_DEPENDS *.cc)
    file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
    if(tests)
      list(REMOVE_ITEM sources ${tests})
    endif()
    list(APPEND ARG_SOURCES ${sources})
    list(APPEND ARG_TESTS ${tests})
  endif()
  if(ARG_SOURCES)
    add_library(systole_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(systole_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(systole_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  if(ARG_HOT AND CMAKE_BUILD_TYPE STREQUAL Debug)
    target_compile_options(systole_${name} PRIVATE -O1)
  elseif(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(systole_${name} PRIVATE -Os)
    systole_precompiled(systole_${name} SMALL)
  elseif(ARG_SOURCES)
    systole_precompiled(systole_${name})
  endif()
  target_link_libraries(systole_${name} ${scope} fmt::fmt Threads::Threads ${ARG_LIBS})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(systole_${name} ${scope} systole_${dep})
  endforeach()
  if(ARG_TESTS)
    systole_test(${name}_test SOURCES ${ARG_TESTS} DEPS ${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

function(systole_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  systole_executable(${name} ${ARG_SOURCES})
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${name} PRIVATE systole_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} systole_places GTest::gtest GTest::gtest_main)
  systole_precompiled(${name} TESTS)
  add_test(NAME ${name} COMMAND ${name})
  set_property(GLOBAL APPEND PROPERTY SYSTOLE_TESTS ${name})
endfunction()

# Tests that load vendors' plugins, whose leaks are not ours. After what else sets their ENVIRONMENT.
function(systole_loads_plugins)
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/vendors.supp)
  endforeach()
endfunction()

function(systole_labels labels)
  set_tests_properties(${ARGN} PROPERTIES LABELS "${labels}")
  set_property(GLOBAL APPEND PROPERTY SYSTOLE_LABELLED ${ARGN})
endfunction()

# After all tests.
function(systole_test_targets)
  get_property(tests GLOBAL PROPERTY SYSTOLE_TESTS)
  get_property(labelled GLOBAL PROPERTY SYSTOLE_LABELLED)
  list(REMOVE_ITEM tests ${labelled})
  add_custom_target(tests_sanitized DEPENDS ${tests})
  add_custom_target(tests_released DEPENDS systole)
  foreach(test ${labelled})
    if(TARGET ${test})  # not a script
      add_dependencies(tests_released ${test})
    endif()
  endforeach()
endfunction()
