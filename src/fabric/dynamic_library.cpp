// SPDX-License-Identifier: Apache-2.0
#include "fabric/dynamic_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace switchyard::fabric {

Result<DynamicLibrary> DynamicLibrary::Open(const std::vector<std::string>& names) {
  std::string problems;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return DynamicLibrary(name, handle);
    }
    const char* error = ::dlerror();
    absl::StrAppend(&problems, problems.empty() ? "" : "; ",
                    error == nullptr ? name.c_str() : error);
  }
  return absl::NotFoundError(problems);
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Status DynamicLibrary::Find(const char* name, void*& symbol) const {
  symbol = ::dlsym(handle_, name);
  if (symbol != nullptr) return OkStatus();
  return absl::UnimplementedError(absl::StrCat(name_, " has no function ", name,
                                               ": the library is too old for this agent, or is "
                                               "another one; install the driver's own version"));
}

}  // namespace switchyard::fabric
