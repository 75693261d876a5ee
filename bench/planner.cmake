# SPDX-License-Identifier: Apache-2.0
# Included by bench/CMakeLists.txt. Run: build/release/bin/planner_bench
find_package(benchmark REQUIRED)
add_executable(planner_bench ${CMAKE_CURRENT_LIST_DIR}/planner_bench.cpp)
target_compile_definitions(planner_bench PRIVATE SWITCHYARD_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(planner_bench PRIVATE fabric benchmark::benchmark_main)
