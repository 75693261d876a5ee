# SPDX-License-Identifier: Apache-2.0
# The house: one library target a folder of src/, each with what stands to its left. This table is
# the only place that says so; configuring fails on a link to the right, and the test
# house.includes (cmake/CheckIncludes.cmake) fails on an include to the right.
set(HOUSE_ROOMS base store pci fabric tenancy cdi kube agent)
set(HOUSE_LEFT_OF_base)
set(HOUSE_LEFT_OF_store base)
set(HOUSE_LEFT_OF_pci base)
set(HOUSE_LEFT_OF_fabric base)
set(HOUSE_LEFT_OF_tenancy base store pci fabric)
set(HOUSE_LEFT_OF_cdi base store pci fabric tenancy)
set(HOUSE_LEFT_OF_kube base store pci fabric tenancy cdi)
set(HOUSE_LEFT_OF_agent base store pci fabric tenancy cdi kube)

# house_library(NAME LINKS room... EXTERNAL dep_...)
# Every .cpp of the folder is in the library; every *_test.cpp is in <NAME>_test, and its cases are
# ctest entries of their own.
function(house_library name)
  cmake_parse_arguments(ARG "" "" "LINKS;EXTERNAL;TEST_LINKS" ${ARGN})
  foreach(room IN LISTS ARG_LINKS)
    if(NOT room IN_LIST HOUSE_LEFT_OF_${name})
      message(FATAL_ERROR "${name} may not link ${room}: it does not stand to its left "
        "(cmake/House.cmake: ${HOUSE_LEFT_OF_${name}})")
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp)
  file(GLOB mains CONFIGURE_DEPENDS *_main.cpp)
  list(REMOVE_ITEM sources ${tests} ${mains})
  if(NOT sources)
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ARG_LINKS} dep_absl ${ARG_EXTERNAL})
  if(tests)
    unit_test(${name}_test SOURCES ${tests} LINKS ${name} ${ARG_TEST_LINKS})
  endif()
endfunction()

# Programs whose code runs on threads of its own: label "threads", target tsan_tests. kube_test is not
# among them: Debian's gRPC is not instrumented, and its hand-overs between threads look like races.
set(HOUSE_THREADED base_test store_test fabric_test tenancy_test agent_test sim_kubelet_test)
add_custom_target(tsan_tests)

# unit_test(NAME SOURCES ... LINKS ...): a GoogleTest program, one ctest entry a case.
function(unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PROPERTIES" ${ARGN})
  # The debug preset has all of them, tsan those with threads; fuzz and release have tests of their own.
  if(SWITCHYARD_FUZZ OR SWITCHYARD_STATIC
      OR (SWITCHYARD_SANITIZE STREQUAL "thread" AND NOT name IN_LIST HOUSE_THREADED))
    return()
  endif()
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${name} PRIVATE SWITCHYARD_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    SWITCHYARD_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    SWITCHYARD_LIB_DIR="${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock_main)
  set(label unit)
  if(name IN_LIST HOUSE_THREADED)
    set(label threads)
    add_dependencies(tsan_tests ${name})
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120 LABELS ${label} ${ARG_PROPERTIES})
endfunction()

add_test(NAME house.includes
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -P ${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake)
add_test(NAME house.includes_finds_a_planted_one
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/cmake/planted -P ${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake)
set_tests_properties(house.includes_finds_a_planted_one PROPERTIES
  PASS_REGULAR_EXPRESSION "kube does not stand to the")
