# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and the linker, for every target alike.
option(SWITCHYARD_WERROR "Warnings are errors; scripts/mutate turns it off" ON)
add_compile_options(-Wall -Wextra -Wshadow $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O2 takes a std::optional<std::string> that is empty for one that is not initialised.
  add_compile_options(-Wno-maybe-uninitialized)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")
set(CMAKE_C_FLAGS_DEBUG "-Og -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

if(SWITCHYARD_SANITIZE)
  add_compile_options(-fsanitize=${SWITCHYARD_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SWITCHYARD_SANITIZE})
  if(SWITCHYARD_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # Debian's gRPC is built without RTTI checks in mind: vptr needs typeinfo that its .so does not export.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

if(SWITCHYARD_STATIC)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
