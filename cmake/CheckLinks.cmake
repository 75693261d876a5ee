# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=FILE -P CheckLinks.cmake: fails if the program needs a shared library beyond the C
# and C++ runtimes, OpenSSL and the one that is shipped beside it, or is larger than 14 MB.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ldd ${PROGRAM} OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${needed}")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^[ \t]*$|linux-vdso|ld-linux|libc\\.so|libm\\.so|libgcc_s|libstdc\\+\\+|libssl\\.so\\.3|libcrypto\\.so\\.3|libprometheus-cpp-core")
    message(SEND_ERROR "needs more than a base image has: ${line}")
  endif()
endforeach()
if(NOT needed MATCHES "libprometheus-cpp-core[^\n]*bin/libprometheus")
  message(SEND_ERROR "libprometheus-cpp-core is not taken from beside the program:\n${needed}")
endif()
file(SIZE ${PROGRAM} size)
if(size GREATER 14000000)
  message(SEND_ERROR "${size} bytes; the limit is 14000000")
endif()
message(STATUS "${size} bytes")
