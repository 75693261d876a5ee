# SPDX-License-Identifier: Apache-2.0
# Every external library, as one interface target each: dep_absl, dep_grpc, dep_json, dep_yaml,
# dep_sqlite, dep_prometheus, dep_beast, dep_tls, dep_cli, dep_spdlog. debug and tsan link the shared
# libraries (fast links); release links all but glibc, libstdc++, OpenSSL and prometheus-cpp statically.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED)
find_package(GTest REQUIRED)
find_package(Protobuf REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# static_archives(TARGET PACKAGE... [EXTRA -lNAME...]): links the archives that pkg-config names for
# these packages; glibc's own parts stay shared.
function(static_archives target)
  cmake_parse_arguments(ARG "" "" "EXTRA" ${ARGN})
  execute_process(
    COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs-only-l ${ARG_UNPARSED_ARGUMENTS}
    OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(archives)
  list(APPEND archives ${ARG_EXTRA})
  list(FILTER archives EXCLUDE REGEX "^-l(pthread|dl|m|rt|c|ssl|crypto|atomic)$")
  list(REMOVE_DUPLICATES archives)
  list(JOIN archives " " archives)
  target_link_libraries(${target} INTERFACE
    "-Wl,-Bstatic -Wl,--start-group ${archives} -Wl,--end-group -Wl,-Bdynamic" Threads::Threads)
endfunction()

add_library(dep_absl INTERFACE)
if(SWITCHYARD_STATIC)
  static_archives(dep_absl absl_status absl_statusor absl_strings absl_str_format
    absl_synchronization absl_time absl_flat_hash_map absl_cleanup)
else()
  target_link_libraries(dep_absl INTERFACE absl::status absl::statusor absl::strings
    absl::str_format absl::synchronization absl::time absl::any_invocable absl::flat_hash_map
    Threads::Threads)
endif()

add_library(dep_json INTERFACE)
target_link_libraries(dep_json INTERFACE nlohmann_json::nlohmann_json)

add_library(dep_spdlog INTERFACE)
target_compile_definitions(dep_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

add_library(dep_beast INTERFACE)  # header-only; needs only threads
target_link_libraries(dep_beast INTERFACE Threads::Threads)
if(SWITCHYARD_SANITIZE STREQUAL "thread")
  # ThreadSanitizer does not know fences; Asio's queues have mutexes beside them.
  target_compile_definitions(dep_beast INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()

# OpenSSL 3, shared in every preset: its fixes are the distribution's then, and every one with our
# glibc has it. It would be 4.4 MB of the program.
add_library(dep_tls INTERFACE)
target_link_libraries(dep_tls INTERFACE ssl crypto)

add_library(dep_cli INTERFACE)  # header-only

add_library(dep_grpc INTERFACE)
add_library(dep_yaml INTERFACE)
add_library(dep_sqlite INTERFACE)
if(SWITCHYARD_STATIC)
  # grpc++_unsecure: our sockets are local files, root only; no TLS, no OpenSSL. Its .pc file
  # forgets c-ares, upb and address_sorting.
  static_archives(dep_grpc grpc++_unsecure protobuf
    EXTRA -lcares -lupb -laddress_sorting -lz)
  target_link_libraries(dep_yaml INTERFACE "-Wl,-Bstatic -lyaml-cpp -Wl,-Bdynamic")
  target_link_libraries(dep_sqlite INTERFACE "-Wl,-Bstatic -lsqlite3 -lz -Wl,-Bdynamic" m dl)
else()
  target_link_libraries(dep_grpc INTERFACE grpc++_unsecure grpc_unsecure gpr protobuf Threads::Threads)
  target_link_libraries(dep_yaml INTERFACE yaml-cpp)
  target_link_libraries(dep_sqlite INTERFACE sqlite3)
endif()

add_library(dep_prometheus INTERFACE)  # Debian ships only the shared library
target_link_libraries(dep_prometheus INTERFACE prometheus-cpp-core)
